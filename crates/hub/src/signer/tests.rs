//! Certificates by CAs of every kind. Their keys, and the request, are in `tests-data`, and were made with OpenSSL.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc, time::Duration};

use axum::{Router, extract::State, http::StatusCode, routing};
use drover_engine::plan::WriteResult;
use drover_runtime::{cache::SharedCache, clock::ManualClock};
use k8s_openapi::jiff::SignedDuration;
use kube::{Client, core::Status};
use rustls::{RootCertStore, crypto::ring::default_provider, pki_types::UnixTime, server::WebPkiClientVerifier};
use serde_json::{Value, json};

use super::*;
use crate::cache::Queues;

fn file(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests-data").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn noon() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a time")
}

fn secret(parts: &[(&str, Vec<u8>)]) -> Secret {
    let data =
        parts.iter().map(|(name, bytes)| ((*name).to_owned(), ByteString(bytes.clone()))).collect::<BTreeMap<_, _>>();
    Secret { data: Some(data), ..Secret::default() }
}

/// A Secret with the CA of this certificate and key.
fn ca(certificate: &str, key: &str) -> Secret {
    secret(&[("tls.crt", file(&format!("ca/{certificate}"))), ("tls.key", file(&format!("ca/{key}")))])
}

fn request() -> CertificateSigningRequest {
    let request = json!({
        "metadata": { "name": "request", "uid": "1-2-3" },
        "spec": {
            "request": ByteString(file("agent.csr")),
            "signerName": "example.com/signer",
            "usages": ["digital signature", "key encipherment", "client auth"],
        },
    });
    serde_json::from_value(request).expect("a request")
}

/// Whether a server that trusts the CA lets a client in that has the certificate.
fn lets_in(ca: &str, certificate: &[u8], now: Timestamp) -> Result<(), rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&file(&format!("ca/{ca}"))).expect("a certificate")).expect("a CA");
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(default_provider()));
    let verifier = verifier.build().expect("a verifier");
    let certificate = CertificateDer::from_pem_slice(certificate).expect("a certificate");
    let since = Duration::from_secs(now.as_second().try_into().expect("a time after 1970"));
    verifier.verify_client_cert(&certificate, &[], UnixTime::since_unix_epoch(since)).map(|_| ())
}

#[test]
fn a_ca_of_every_kind_signs_what_servers_accept() {
    for (certificate, key) in [
        ("rsa.crt", "rsa.pkcs1.key"),
        ("rsa.crt", "rsa.pkcs8.key"),
        ("p256.crt", "p256.sec1.key"),
        ("p256.crt", "p256.pkcs8.key"),
        ("p384.crt", "p384.sec1.key"),
        ("p384.crt", "p384.pkcs8.key"),
        ("ed25519.crt", "ed25519.pkcs8.key"),
    ] {
        let signed = sign(&ca(certificate, key), &request(), noon()).unwrap_or_else(|flaw| panic!("{key}: {flaw}"));
        lets_in(certificate, &signed, noon()).unwrap_or_else(|error| panic!("{key}: {error}"));
        let other = if certificate == "rsa.crt" { "p256.crt" } else { "rsa.crt" };
        assert!(lets_in(other, &signed, noon()).is_err(), "{key} is not the key of {other}");
        let tomorrow = noon() + SignedDuration::from_hours(25);
        assert!(lets_in(certificate, &signed, tomorrow).is_err(), "{key}: it is valid for a day");
    }
}

#[test]
fn a_ca_that_can_not_sign_says_why() {
    let (certificate, key) = (file("ca/p256.crt"), file("ca/p256.pkcs8.key"));
    let nonsense = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".to_vec();
    for (secret, flaw) in [
        (Secret::default(), SigningFlaw::NoPair),
        (secret(&[("tls.crt", certificate.clone()), ("ca.key", key.clone())]), SigningFlaw::NoPair),
        (secret(&[("tls.crt", certificate.clone()), ("tls.key", Vec::new())]), SigningFlaw::NoPair),
        (secret(&[("tls.crt", b"nonsense".to_vec()), ("tls.key", key.clone())]), SigningFlaw::CertificateUnreadable),
        (secret(&[("tls.crt", key.clone()), ("tls.key", key)]), SigningFlaw::CertificateUnreadable),
        (ca("no-ca.crt", "p256.pkcs8.key"), SigningFlaw::NotAnAuthority),
        (ca("p256.crt", "p384.pkcs8.key"), SigningFlaw::Mismatch),
        (ca("rsa.crt", "ed25519.pkcs8.key"), SigningFlaw::Mismatch),
        (secret(&[("tls.crt", certificate.clone()), ("tls.key", nonsense)]), SigningFlaw::KeyUnusable),
        (secret(&[("tls.crt", certificate.clone()), ("tls.key", certificate)]), SigningFlaw::KeyUnusable),
        (ca("p256.crt", "p256.encrypted.key"), SigningFlaw::KeyUnusable),
        (ca("p521.crt", "p521.pkcs8.key"), SigningFlaw::KeyUnusable),
    ] {
        let names: Vec<_> = secret.data.iter().flatten().map(|(name, _)| name.clone()).collect();
        assert_eq!(sign(&secret, &request(), noon()).map(|_| ()), Err(flaw), "{names:?}");
    }
}

#[test]
fn a_ca_whose_time_is_over_signs_nothing() {
    let late = "2200-01-01T00:00:00Z".parse().expect("a time");
    let flaw = sign(&ca("p256.crt", "p256.pkcs8.key"), &request(), late).expect_err("it is over");
    assert!(matches!(flaw, SigningFlaw::Expired(_)), "{flaw}");
    let flaw = sign(&ca("p256.crt", "p256.pkcs8.key"), &request(), Timestamp::UNIX_EPOCH).expect_err("it has not come");
    assert!(matches!(flaw, SigningFlaw::NotYetValid(_)), "{flaw}");
}

#[test]
fn either_pair_of_names_will_do_and_a_complete_pair_comes_before_one_that_is_not() {
    let (certificate, key) = (file("ca/p256.crt"), file("ca/p256.pkcs8.key"));
    let under_ca = [("ca.crt", certificate.clone()), ("ca.key", key.clone())];
    let beside = [("tls.crt", certificate.clone()), ("tls.key", key), ("ca.crt", file("ca/rsa.crt"))];
    let both = [&beside[..2], &[("ca.crt", file("ca/rsa.crt")), ("ca.key", file("ca/rsa.pkcs8.key"))]].concat();
    let incomplete = [&under_ca[..], &[("tls.crt", file("ca/rsa.crt"))]].concat();
    for parts in [&under_ca[..], &beside, &both, &incomplete] {
        let signed = sign(&secret(parts), &request(), noon()).expect("it signs");
        lets_in("p256.crt", &signed, noon()).expect("it is signed by it");
    }
}

#[test]
fn of_several_certificates_the_first_is_the_cas() {
    let chain = [file("ca/p256.crt"), file("ca/rsa.crt")].concat();
    let ca = secret(&[("tls.crt", chain), ("tls.key", file("ca/p256.pkcs8.key"))]);
    lets_in("p256.crt", &sign(&ca, &request(), noon()).expect("it signs"), noon()).expect("it is signed by it");
}

/// An API server with one Secret, which answers to a patch of a request with what the request is then.
fn server(secret: Secret) -> Client {
    let routes = Router::new()
        .route(
            "/api/v1/namespaces/hub/secrets/ca",
            routing::get(async |State(secret): State<Secret>| json!(secret).to_string()),
        )
        .route(
            "/apis/certificates.k8s.io/v1/certificatesigningrequests/request/status",
            routing::patch(async |body: String| {
                let patch: Value = serde_json::from_str(&body).expect("patches are JSON");
                let mut answer = json!(request());
                answer["metadata"]["resourceVersion"] = json!("2");
                answer["status"] = patch["status"].clone();
                answer.to_string()
            }),
        )
        .with_state(secret);
    Client::new(routes, "hub")
}

#[tokio::test]
async fn a_request_gets_its_certificate_from_the_secret_that_is_read_for_it() {
    let clock = ManualClock::at(noon()).clock();
    let cache = SharedCache::new(Cache::new(clock.clone()), Queues::new(&clock));
    let send = async |secret: Secret| {
        let action = Sign { request: Arc::new(request()), ca: ObjectKey::namespaced("hub", "ca"), now: noon() };
        action.execute(Writer::new(server(secret), cache.clone(), clock.clone(), "test")).await
    };
    let error = send(Secret::default()).await.expect_err("there is no CA in it");
    let WriteResult::Rejected(why) = error.result() else { panic!("it is rejected: {error}") };
    assert_eq!(why, format!("the Secret hub/ca is of no use: {}", SigningFlaw::NoPair));
    send(ca("p384.crt", "p384.sec1.key")).await.expect("it is signed");
    let stored = cache.read().belongings.requests.get(&ObjectKey::cluster_wide("request")).cloned();
    let certificate = stored.and_then(|request| request.status.clone()?.certificate).expect("it has a certificate");
    lets_in("p384.crt", &certificate.0, noon()).expect("it is signed by it");
}

#[tokio::test]
async fn secret_that_is_not_read_says_what_to_do_and_takes_no_request_away() {
    for (code, reason, result) in [
        (404, "NotFound", "no; it has to be there with the CA, and the hub needs a Role that lets it get it"),
        (403, "Forbidden", "no; it has to be there with the CA, and the hub needs a Role that lets it get it"),
    ] {
        let result = WriteResult::Rejected(format!("the Secret hub/ca is of no use: {result}"));
        assert_eq!(refused_secret(code, reason).await, (result, true), "{code}");
    }
    assert_eq!(refused_secret(429, "TooManyRequests").await, (WriteResult::Busy, true));
}

/// What signing comes to on a server that answers this to everything, and whether the request is
/// cached afterwards.
async fn refused_secret(code: u16, reason: &str) -> (WriteResult, bool) {
    let clock = ManualClock::at(noon()).clock();
    let cache = SharedCache::new(Cache::new(clock.clone()), Queues::new(&clock));
    cache.apply(request());
    let answer = json!(Status::failure("no", reason).with_code(code)).to_string();
    let code = StatusCode::from_u16(code).expect("a code");
    let routes = Router::new().fallback(async move || (code, answer));
    let writer = Writer::new(Client::new(routes, "hub"), cache.clone(), clock, "test");
    let action = Sign { request: Arc::new(request()), ca: ObjectKey::namespaced("hub", "ca"), now: noon() };
    let error = action.execute(writer).await.expect_err("the Secret is not read");
    let is_cached = cache.read().belongings.requests.has(&ObjectKey::cluster_wide("request"));
    (error.result(), is_cached)
}
