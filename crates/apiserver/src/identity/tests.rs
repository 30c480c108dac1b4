use std::{str::FromStr, time::Duration};

use k8s_openapi::jiff::Timestamp;
use p256::{
    ecdsa::{DerSignature, SigningKey},
    pkcs8::EncodePublicKey,
};
use serde_json::{Value, json};
use x509_cert::{
    builder::{Builder, CertificateBuilder, profile::BuilderProfile},
    certificate::TbsCertificate,
    der::Encode,
    ext::Extension,
    name::Name,
    serial_number::SerialNumber,
    spki::{SubjectPublicKeyInfoOwned, SubjectPublicKeyInfoRef},
    time::Validity,
};

use super::*;

fn key() -> SigningKey {
    SigningKey::from_slice(&[7; 32]).expect("a key")
}

/// A certificate with nothing in it but a name, in whatever form.
struct Bare(Name);

impl BuilderProfile for Bare {
    fn get_issuer(&self, subject: &Name) -> Name {
        subject.clone()
    }

    fn get_subject(&self) -> Name {
        self.0.clone()
    }

    fn build_extensions(
        &self,
        _: SubjectPublicKeyInfoRef<'_>,
        _: SubjectPublicKeyInfoRef<'_>,
        _: &TbsCertificate,
    ) -> x509_cert::builder::Result<Vec<Extension>> {
        Ok(Vec::new())
    }
}

fn certificate(subject: &str) -> Vec<u8> {
    let key = key();
    let subject = Name::from_str(subject).expect("a name");
    let public = key.verifying_key().to_public_key_der().expect("a key");
    let public = SubjectPublicKeyInfoOwned::try_from(public.as_bytes()).expect("a key");
    let profile = Bare(subject);
    let validity = Validity::from_now(Duration::from_mins(1)).expect("a time");
    let builder = CertificateBuilder::new(profile, SerialNumber::from(1_u32), validity, public).expect("a builder");
    let certificate = builder.build::<_, DerSignature>(&key).expect("a certificate");
    certificate.to_der().expect("it is written down")
}

#[test]
fn a_certificate_names_a_user_and_groups_however_they_are_written() {
    let apart = of_certificate(&certificate("CN=jane,O=a,O=b")).expect("somebody");
    let together = of_certificate(&certificate("CN=jane,O=a+O=b")).expect("somebody");
    for user in [&apart, &together] {
        let mut groups = user.groups.clone();
        groups.sort();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("jane", ""));
        assert_eq!(groups, ["a", "b", "system:authenticated"]);
    }
    let credential = &apart.extra["authentication.kubernetes.io/credential-id"][0];
    assert!(credential.starts_with("X509SHA256=") && credential.len() == 75, "{credential}");
}

#[test]
fn a_certificate_may_have_one_uid() {
    let user = of_certificate(&certificate("CN=jane,1.3.6.1.4.1.57683.2=#0c0131"));
    assert_eq!(user.map(|user| user.uid), Ok("1".to_owned()));
    let several = of_certificate(&certificate("CN=jane,1.3.6.1.4.1.57683.2=#0c0131,1.3.6.1.4.1.57683.2=#0c0132"));
    assert!(matches!(several, Err(Unidentified::SeveralUids(_))));
    let empty = of_certificate(&certificate("CN=jane,1.3.6.1.4.1.57683.2=#0c00"));
    assert_eq!(empty, Err(Unidentified::EmptyUid));
}

#[test]
fn a_certificate_without_a_name_is_nobodys() {
    assert_eq!(of_certificate(&certificate("O=a")), Err(Unidentified::Nameless));
    assert_eq!(of_certificate(b"nonsense"), Err(Unidentified::Unreadable));
}

const ACCOUNT: Account<'_> = Account { namespace: "default", name: "robot", uid: "u1" };

fn issuer() -> Issuer {
    Issuer::new(key(), "https://kubernetes.default.svc")
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn issue(body: Value) -> Result<Value, crate::failure::Failure> {
    let request = TokenRequest { body, now: at(1_000_000), id: "j1".to_owned() };
    issuer().issue(request, &ACCOUNT, &["api".to_owned()])
}

fn verify(token: &str, audience: &str, second: i64, uid: Option<&str>) -> Result<Verified, Why> {
    issuer().verify(token, &[audience.to_owned()], at(second), |namespace, name| {
        assert_eq!((namespace, name), ("default", "robot"));
        uid.map(ToOwned::to_owned)
    })
}

fn token() -> String {
    let answer = issue(json!({ "spec": {} })).expect("a token");
    answer["status"]["token"].as_str().expect("a token").to_owned()
}

#[test]
fn a_token_proves_which_service_account_it_is() {
    let verified = verify(&token(), "api", 1_000_100, Some("u1")).expect("somebody");
    assert_eq!(verified.audiences, ["api"]);
    assert_eq!(verified.user.name, "system:serviceaccount:default:robot");
    assert_eq!(verified.user.uid, "u1");
    assert_eq!(
        verified.user.groups,
        ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
    );
    assert_eq!(verified.user.extra["authentication.kubernetes.io/credential-id"], ["JTI=j1"]);
}

#[test]
fn a_token_ends_and_is_for_somebody() {
    let token = token();
    assert_eq!(verify(&token, "api", 1_000_000 + 3661, Some("u1")), Err(Why::Expired));
    assert_eq!(verify(&token, "api", 1_000_000 - 61, Some("u1")), Err(Why::NotYet));
    let others = verify(&token, "vault", 1_000_000, Some("u1")).expect_err("for others");
    assert_eq!(others.to_string(), r#"token audiences ["api"] is invalid for the target audiences ["vault"]"#);
    assert_eq!(verify(&token, "api", 1_000_000, None), Err(Why::Gone("robot".to_owned())));
    assert!(matches!(verify(&token, "api", 1_000_000, Some("u2")), Err(Why::Another { .. })));
}

#[test]
fn a_token_that_was_touched_proves_nothing() {
    let token = token();
    let (signed, signature) = token.rsplit_once('.').expect("three parts");
    let other = Issuer::new(SigningKey::from_slice(&[8; 32]).expect("a key"), "https://kubernetes.default.svc");
    let verify = |token: &str| verify(token, "api", 1_000_000, Some("u1"));
    assert_eq!(other.verify(&token, &["api".to_owned()], at(1_000_000), |_, _| None), Err(Why::Signature));
    let swapped: String = signature.chars().map(|c| if c == 'A' { 'B' } else { 'A' }).collect();
    assert_eq!(verify(&format!("{signed}.{swapped}")), Err(Why::Signature));
    for foreign in ["", "x", "a.b.c", "x.y"] {
        assert_eq!(verify(foreign), Err(Why::Foreign));
    }
}

#[test]
fn a_request_for_a_token_is_answered_in_full() {
    let answer = issue(json!({ "spec": { "audiences": ["vault"], "expirationSeconds": 600 } })).expect("a token");
    let metadata =
        json!({ "name": "robot", "namespace": "default", "uid": "u1", "creationTimestamp": "1970-01-12T13:46:40Z" });
    assert_eq!(answer["metadata"], metadata);
    assert_eq!(answer["spec"], json!({ "audiences": ["vault"], "expirationSeconds": 600, "boundObjectRef": null }));
    assert_eq!(answer["status"]["expirationTimestamp"], "1970-01-12T13:56:40Z");
}

#[test]
fn a_request_for_a_token_that_makes_no_sense_is_refused() {
    let refused = |body| issue(body).expect_err("refused").message;
    assert_eq!(
        refused(json!({ "spec": { "expirationSeconds": 10 } })),
        r#"TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes"#
    );
    assert_eq!(
        refused(json!({ "metadata": { "name": "other" }, "spec": {} })),
        r#"TokenRequest.authentication.k8s.io "robot" is invalid: metadata.name: Invalid value: "other": must match the service account name if specified"#
    );
    assert!(
        refused(json!({ "metadata": { "uid": "u2" }, "spec": {} }))
            .contains("does not match the UID of the service account (u1)")
    );
}

#[test]
fn the_public_key_can_be_read_by_others() {
    let keys = issuer().key_set();
    assert_eq!((&keys["keys"][0]["kty"], &keys["keys"][0]["crv"]), (&json!("EC"), &json!("P-256")));
    assert_eq!(keys["keys"][0]["x"].as_str().map(str::len), Some(43));
}

#[test]
fn a_token_that_is_written_down_is_compared_as_a_whole() {
    let user = User { name: "jane".into(), ..User::default() };
    let known = [StaticToken { token: "secret".into(), user }];
    let jane = of_static_token("secret", &known).expect("somebody");
    assert_eq!((jane.name.as_str(), jane.groups), ("jane", vec!["system:authenticated".to_owned()]));
    for wrong in ["", "secre", "secrets", "Secret"] {
        assert_eq!(of_static_token(wrong, &known), None);
    }
    assert_eq!(anonymous().groups, ["system:unauthenticated"]);
}
