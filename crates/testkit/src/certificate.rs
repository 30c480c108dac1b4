//! Certificates: CAs for scenarios, and what was made with them.

use std::{sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;
use p256::{
    ecdsa::{DerSignature, SigningKey},
    elliptic_curve::Generate,
    pkcs8::{EncodePrivateKey, LineEnding},
};
use rustls::{
    RootCertStore,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, UnixTime, pem::PemObject},
    server::WebPkiClientVerifier,
};
use x509_cert::{
    builder::{Builder, CertificateBuilder, profile::cabf::Root},
    der::{Decode, EncodePem, asn1::UtcTime, oid::ObjectIdentifier},
    ext::pkix::ExtendedKeyUsage,
    serial_number::SerialNumber,
    spki::SubjectPublicKeyInfoOwned,
    time::{Time, Validity},
};

/// A CA and its key, both in PEM.
#[derive(Clone, Debug)]
pub struct Ca {
    /// The CA's certificate.
    pub certificate: Vec<u8>,
    /// The CA's key.
    pub key: Vec<u8>,
}

impl Ca {
    /// A new CA that may sign between two times.
    #[must_use]
    pub fn valid(from: Timestamp, until: Timestamp) -> Self {
        let key = SigningKey::generate();
        let public = SubjectPublicKeyInfoOwned::from_key(key.verifying_key()).expect("a key can be written down");
        let subject = "CN=CA of a scenario,O=Drover tests,C=XX".parse().expect("a valid subject");
        let profile = Root::new(false, subject).expect("a CA has such a name");
        let validity = Validity::new(time(from), time(until));
        let ca = CertificateBuilder::new(profile, SerialNumber::from(1_u32), validity, public).expect("it can be made");
        let ca = ca.build::<_, DerSignature>(&key).expect("a CA signs itself");
        Self {
            certificate: ca.to_pem(LineEnding::LF).expect("a certificate can be written as PEM").into_bytes(),
            key: key.to_pkcs8_pem(LineEnding::LF).expect("a key can be written as PEM").as_bytes().to_vec(),
        }
    }
}

fn time(time: Timestamp) -> Time {
    UtcTime::from_unix_duration(since_1970(time)).map(Time::UtcTime).expect("a time of this century's first half")
}

fn since_1970(time: Timestamp) -> Duration {
    Duration::from_secs(time.as_second().try_into().expect("a time after 1970"))
}

/// A certificate that somebody has got.
#[derive(Debug)]
pub struct Certificate {
    encoded: CertificateDer<'static>,
    read: x509_cert::Certificate,
}

impl Certificate {
    /// Reads a certificate in PEM.
    #[must_use]
    pub fn read(pem: &[u8]) -> Self {
        let encoded = CertificateDer::from_pem_slice(pem).expect("a certificate in PEM");
        let read = x509_cert::Certificate::from_der(&encoded).expect("a certificate");
        Self { encoded, read }
    }

    /// Whom it is for.
    #[must_use]
    pub fn subject(&self) -> String {
        self.read.tbs_certificate().subject().to_string()
    }

    /// From when and until when it is valid.
    #[must_use]
    pub fn validity(&self) -> (Timestamp, Timestamp) {
        let validity = self.read.tbs_certificate().validity();
        let timestamp = |time: Time| Timestamp::from_second(time.to_unix_duration().as_secs().cast_signed());
        (timestamp(validity.not_before).expect("a time"), timestamp(validity.not_after).expect("a time"))
    }

    /// What it may be used for, by the numbers that these uses have.
    #[must_use]
    pub fn uses(&self) -> Vec<ObjectIdentifier> {
        let uses = self.read.tbs_certificate().get_extension::<ExtendedKeyUsage>().expect("they can be read");
        uses.map(|(_, uses)| uses.0).unwrap_or_default()
    }

    /// The numbers of its extensions.
    #[must_use]
    pub fn extensions(&self) -> Vec<ObjectIdentifier> {
        let extensions = self.read.tbs_certificate().extensions().into_iter().flatten();
        extensions.map(|extension| extension.extn_id).collect()
    }

    /// Whether a server that trusts the CA of this certificate, which is in PEM, lets its owner in at that time.
    pub fn lets_in(&self, ca: &[u8], now: Timestamp) -> Result<(), String> {
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_slice(ca).expect("a certificate in PEM");
        roots.add(ca).expect("a CA can be trusted");
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(default_provider()));
        let verifier = verifier.build().expect("a server can verify its clients");
        let now = UnixTime::since_unix_epoch(since_1970(now));
        let verified = verifier.verify_client_cert(&self.encoded, &[], now);
        verified.map(|_| ()).map_err(|error| error.to_string())
    }
}
