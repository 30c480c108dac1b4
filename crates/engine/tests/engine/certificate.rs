//! What certificates say, and when there are none.

use drover_engine::certificate::{Algorithm, Authority, Draft, Malformed, SigningFlaw, draft};
use k8s_openapi::{
    ByteString,
    api::certificates::v1::CertificateSigningRequest,
    jiff::{SignedDuration, Timestamp},
};
use p256::{
    ecdsa::{
        DerSignature, SigningKey,
        signature::{Signer, Verifier},
    },
    elliptic_curve::Generate,
    pkcs8::EncodePublicKey,
};
use serde_json::json;
use x509_cert::{
    Certificate, TbsCertificate,
    builder::{self, Builder, CertificateBuilder, profile::BuilderProfile},
    der::{
        Decode, DecodePem, Encode,
        asn1::{Any, GeneralizedTime, OctetString},
        oid::{AssociatedOid, db::rfc5280::ID_KP_CLIENT_AUTH},
        pem,
    },
    ext::{
        Extension,
        pkix::{
            AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages, SubjectAltName,
            SubjectKeyIdentifier,
        },
    },
    name::Name,
    serial_number::SerialNumber,
    spki::{SubjectPublicKeyInfoOwned, SubjectPublicKeyInfoRef},
    time::{Time, Validity},
};

use crate::signing_request::{pem as request_pem, pem_asking};

const SUBJECT: &str = "CN=user1,O=g1+O=g2,OU=o1";

fn noon() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().expect("a time")
}

fn hours(hours: i64) -> SignedDuration {
    SignedDuration::from_hours(hours)
}

/// A CA with these extensions, whose key is told by it.
struct Ca(Vec<Extension>);

impl BuilderProfile for Ca {
    fn get_issuer(&self, subject: &Name) -> Name {
        subject.clone()
    }

    fn get_subject(&self) -> Name {
        "CN=test CA,O=tests".parse().expect("a name")
    }

    fn build_extensions(
        &self,
        _: SubjectPublicKeyInfoRef<'_>,
        _: SubjectPublicKeyInfoRef<'_>,
        _: &TbsCertificate,
    ) -> builder::Result<Vec<Extension>> {
        Ok(self.0.clone())
    }
}

fn extension<T: Encode + AssociatedOid>(value: &T) -> Extension {
    let encoded = OctetString::new(value.to_der().expect("an extension")).expect("an extension");
    Extension { extn_id: T::OID, critical: false, extn_value: encoded }
}

fn key_identifier() -> OctetString {
    OctetString::new([1, 2, 3]).expect("an identifier")
}

fn of_ca() -> Vec<Extension> {
    let constraints = BasicConstraints { ca: true, path_len_constraint: None };
    let usages = KeyUsage(KeyUsages::KeyCertSign | KeyUsages::CRLSign);
    vec![extension(&constraints), extension(&usages), extension(&SubjectKeyIdentifier(key_identifier()))]
}

/// The certificate of a CA that is valid in this time.
fn certificate(key: &SigningKey, extensions: Vec<Extension>, from: Timestamp, until: Timestamp) -> Vec<u8> {
    let time = |time: Timestamp| {
        let since = std::time::Duration::from_secs(time.as_second().try_into().expect("a time after 1970"));
        Time::GeneralTime(GeneralizedTime::from_unix_duration(since).expect("a time"))
    };
    let public = SubjectPublicKeyInfoOwned::from_key(key.verifying_key()).expect("a public key");
    let validity = Validity::new(time(from), time(until));
    let built = CertificateBuilder::new(Ca(extensions), SerialNumber::from(7_u8), validity, public).expect("a builder");
    built.build::<_, DerSignature>(key).expect("a certificate").to_der().expect("a certificate")
}

/// A CA that is valid for a year around noon.
fn authority(key: &SigningKey) -> Authority {
    let validity = (noon() - hours(24 * 180), noon() + hours(24 * 180));
    Authority::read(&certificate(key, of_ca(), validity.0, validity.1)).expect("a CA")
}

fn request(pem: &str) -> CertificateSigningRequest {
    let request = json!({
        "metadata": { "name": "request", "uid": "1-2-3" },
        "spec": {
            "request": ByteString(pem.as_bytes().to_vec()),
            "signerName": "example.com/signer",
            "usages": ["digital signature", "key encipherment", "client auth"],
        },
    });
    serde_json::from_value(request).expect("a request")
}

fn sign(key: &SigningKey, draft: Draft) -> Certificate {
    let signature: DerSignature = key.sign(draft.to_be_signed());
    let pem = draft.signed(signature.as_bytes()).expect("it can be written");
    Certificate::from_pem(pem).expect("a certificate")
}

fn drafted(request: &CertificateSigningRequest, ca: &Authority) -> Draft {
    draft(request, ca, Algorithm::EcdsaSha256, hours(24), noon()).expect("a draft")
}

/// From when and until when a certificate is valid, in seconds from noon.
fn validity(certificate: &Certificate) -> (i64, i64) {
    let validity = certificate.tbs_certificate().validity();
    let seconds = |time: Time| i64::try_from(time.to_unix_duration().as_secs()).expect("a time") - noon().as_second();
    (seconds(validity.not_before), seconds(validity.not_after))
}

/// An extension of a certificate, and whether it is critical.
fn get<'a, T>(contents: &'a TbsCertificate) -> Option<(bool, T)>
where
    T: Decode<'a, Error: std::fmt::Debug> + AssociatedOid,
{
    contents.get_extension::<T>().expect("it can be read")
}

#[test]
fn a_certificate_says_what_was_asked_for_and_nothing_else() {
    let key = SigningKey::generate();
    let asked = request(&request_pem(SUBJECT, None));
    let signed = sign(&key, drafted(&asked, &authority(&key)));
    let contents = signed.tbs_certificate();
    assert_eq!(contents.subject().to_string(), SUBJECT.parse::<Name>().expect("a name").to_string());
    assert_eq!(contents.issuer().to_string(), Ca(Vec::new()).get_subject().to_string());
    assert_eq!(signed.signature_algorithm(), contents.signature());
    assert_eq!(validity(&signed), (-300, 24 * 3600));
    let constraints = BasicConstraints { ca: false, path_len_constraint: None };
    assert_eq!(get::<BasicConstraints>(contents), Some((true, constraints)));
    let usages = KeyUsage(KeyUsages::DigitalSignature | KeyUsages::KeyEncipherment);
    assert_eq!(get::<KeyUsage>(contents), Some((true, usages)));
    assert_eq!(get::<ExtendedKeyUsage>(contents), Some((false, ExtendedKeyUsage(vec![ID_KP_CLIENT_AUTH]))));
    let authority = AuthorityKeyIdentifier { key_identifier: Some(key_identifier()), ..Default::default() };
    assert_eq!(get::<AuthorityKeyIdentifier>(contents), Some((false, authority)));
    assert_eq!(contents.extensions().map(Vec::len), Some(4));
    let signature = DerSignature::try_from(signed.signature().raw_bytes()).expect("a signature");
    key.verifying_key()
        .verify(&contents.to_der().expect("it can be written"), &signature)
        .expect("the CA has signed it");
}

#[test]
fn the_key_is_used_as_was_asked_for() {
    let key = SigningKey::generate();
    let mut asked = request(&request_pem(SUBJECT, None));
    for (usages, flags) in [
        (vec!["client auth"], None),
        (vec!["client auth", "key encipherment"], Some(KeyUsages::KeyEncipherment)),
        (vec!["digital signature", "client auth"], Some(KeyUsages::DigitalSignature)),
    ] {
        asked.spec.usages = Some(usages.into_iter().map(str::to_owned).collect());
        let signed = sign(&key, drafted(&asked, &authority(&key)));
        assert_eq!(get::<KeyUsage>(signed.tbs_certificate()), flags.map(|flags| (true, KeyUsage(flags.into()))));
    }
}

#[test]
fn a_subject_stays_as_it_was_encoded() {
    let key = SigningKey::generate();
    // The organisations change places, which nobody who writes DER does, but who reads it takes.
    let (_, mut encoded) = pem::decode_vec(request_pem(SUBJECT, None).as_bytes()).expect("a request");
    let places: Vec<_> =
        (1..encoded.len()).filter(|at| encoded[at - 1] == b'g' && b"12".contains(&encoded[*at])).collect();
    encoded.swap(places[0], places[1]);
    let info = Vec::<Any>::from_der(&encoded).expect("a request").swap_remove(0);
    let subject = info.decode_as::<Vec<Any>>().expect("parts")[1].to_der().expect("a subject");
    let asked = request(&pem::encode_string("CERTIFICATE REQUEST", pem::LineEnding::LF, &encoded).expect("a request"));
    let drafted = drafted(&asked, &authority(&key));
    assert!(drafted.to_be_signed().windows(subject.len()).any(|part| part == subject));
}

#[test]
fn a_request_has_one_number_and_no_other_has_it() {
    let key = SigningKey::generate();
    let number = |request: &CertificateSigningRequest| {
        sign(&key, drafted(request, &authority(&key))).tbs_certificate().serial_number().clone()
    };
    let first = request(&request_pem(SUBJECT, None));
    let mut again = first.clone();
    again.metadata.uid = Some("another".to_owned());
    assert_eq!(number(&first), number(&first));
    assert_ne!(number(&first), number(&again));
    assert_ne!(number(&first), number(&request(&request_pem(SUBJECT, None))));
    for _ in 0..20 {
        let number = number(&request(&request_pem(SUBJECT, None)));
        assert_eq!((number.as_bytes().len(), number.as_bytes()[0] & 0x80), (16, 0));
    }
}

#[test]
fn a_certificate_is_valid_for_a_day_or_less_and_never_when_its_ca_is_not() {
    let key = SigningKey::generate();
    let asked = |seconds: Option<i32>| {
        let mut request = request(&request_pem(SUBJECT, None));
        request.spec.expiration_seconds = seconds;
        request
    };
    let ca =
        |from: Timestamp, until: Timestamp| Authority::read(&certificate(&key, of_ca(), from, until)).expect("a CA");
    let wide = authority(&key);
    for (seconds, lasts) in [(None, 86400), (Some(3600), 3600), (Some(864_000), 86400), (Some(-5), 600)] {
        assert_eq!(validity(&sign(&key, drafted(&asked(seconds), &wide))), (-300, lasts), "{seconds:?}");
    }
    let short = ca(noon() - SignedDuration::from_secs(60), noon() + hours(2));
    assert_eq!(validity(&sign(&key, drafted(&asked(None), &short))), (-60, 7200));
    let for_ever = ca(noon() - hours(1), Timestamp::MAX);
    assert_eq!(validity(&sign(&key, drafted(&asked(None), &for_ever))), (-300, 86400));
    let at = |ca: &Authority, now| draft(&asked(None), ca, Algorithm::EcdsaSha256, hours(24), now).map(|_| ());
    let (from, until) = (noon() - SignedDuration::from_secs(60), noon() + hours(2));
    let second = SignedDuration::from_secs(1);
    assert_eq!(at(&short, from - second), Err(SigningFlaw::NotYetValid(from)));
    assert_eq!((at(&short, from), at(&short, until - second)), (Ok(()), Ok(())));
    assert_eq!(at(&short, until), Err(SigningFlaw::Expired(until)));
}

#[test]
fn a_certificate_of_the_next_half_century_has_its_year_in_full() {
    let key = SigningKey::generate();
    let now: Timestamp = "2049-12-31T18:00:00Z".parse().expect("a time");
    let ca = certificate(&key, of_ca(), now - hours(1), now + hours(1000));
    let ca = Authority::read(&ca).expect("a CA");
    let drafted =
        draft(&request(&request_pem(SUBJECT, None)), &ca, Algorithm::EcdsaSha256, hours(24), now).expect("a draft");
    let validity = *sign(&key, drafted).tbs_certificate().validity();
    assert!(matches!((validity.not_before, validity.not_after), (Time::UtcTime(_), Time::GeneralTime(_))));
    assert_eq!(validity.not_after.to_date_time().to_string(), "2050-01-01T18:00:00Z");
}

#[test]
fn who_is_no_ca_signs_nothing() {
    let key = SigningKey::generate();
    let read = |extensions| Authority::read(&certificate(&key, extensions, noon(), noon() + hours(1))).map(|_| ());
    let no_ca = BasicConstraints { ca: false, path_len_constraint: None };
    assert_eq!(read(vec![extension(&no_ca)]), Err(SigningFlaw::NotAnAuthority));
    let no_signer = KeyUsage(KeyUsages::DigitalSignature.into());
    assert_eq!(read(vec![extension(&no_signer)]), Err(SigningFlaw::NotAnAuthority));
    let silent = vec![extension(&SubjectKeyIdentifier(key_identifier()))];
    assert_eq!(read(silent), Err(SigningFlaw::NotAnAuthority), "nobody would accept what it signs");
    assert_eq!(read(Vec::new()), Ok(()), "the first version has no place to say it");
    assert_eq!(Authority::read(b"nonsense").map(|_| ()), Err(SigningFlaw::CertificateUnreadable));
    assert_eq!(Authority::read(&[]).map(|_| ()), Err(SigningFlaw::CertificateUnreadable));
}

#[test]
fn a_ca_without_a_name_for_its_key_names_none() {
    let key = SigningKey::generate();
    let ca = certificate(&key, Vec::new(), noon(), noon() + hours(1));
    let signed = sign(&key, drafted(&request(&request_pem(SUBJECT, None)), &Authority::read(&ca).expect("a CA")));
    assert_eq!(get::<AuthorityKeyIdentifier>(signed.tbs_certificate()), None);
}

#[test]
fn a_ca_knows_its_key() {
    let (key, other) = (SigningKey::generate(), SigningKey::generate());
    let public = |key: &SigningKey| key.verifying_key().to_public_key_der().expect("a key").into_vec();
    assert!(authority(&key).has_key(&public(&key)));
    assert!(!authority(&key).has_key(&public(&other)));
    assert!(!authority(&key).has_key(b"nonsense"));
}

#[test]
fn a_request_that_would_be_denied_gets_no_certificate_either() {
    let ca = authority(&SigningKey::generate());
    let flaw = |request: &CertificateSigningRequest| {
        draft(request, &ca, Algorithm::EcdsaSha256, hours(24), noon()).map(|_| ())
    };
    assert_eq!(flaw(&request("nonsense")), Err(Malformed::Unreadable.into()));
    let names = SubjectAltName(Vec::new());
    let nameless = pem_asking(SUBJECT, |request| request.add_extension(&names).expect("names can be added"));
    assert_eq!(flaw(&request(&nameless)), Err(Malformed::Extensions.into()));
}

#[test]
fn no_certificate_has_the_name_of_a_host_whatever_was_asked_for() {
    let ca = authority(&SigningKey::generate());
    for host in [None, Some("hello.addon.open-cluster-management.io")] {
        let signed = sign(&SigningKey::generate(), drafted(&request(&request_pem(SUBJECT, host)), &ca));
        assert_eq!(get::<SubjectAltName>(signed.tbs_certificate()), None, "{host:?}");
    }
}
