use std::{fs, os::unix::fs::PermissionsExt as _, sync::Arc};

use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    crypto::ring::default_provider,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
    server::WebPkiClientVerifier,
};

use super::*;

fn noon() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().expect("a time")
}

fn pki(hosts: &Hosts) -> Pki {
    Pki::new(Roots::new(noon()).expect("roots"), hosts, noon()).expect("keys and certificates")
}

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")
}

fn roots(pki: &Pki) -> Arc<RootCertStore> {
    let mut store = RootCertStore::empty();
    store.add(der(&pki.authority.certificate)).expect("an authority");
    Arc::new(store)
}

fn at(time: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(std::time::Duration::from_secs(time.as_second().try_into().expect("after 1970")))
}

#[test]
fn clients_know_the_server_under_every_name_and_address() {
    let hosts = Hosts { names: vec!["hub.example.com".to_owned()], addresses: vec![[10, 0, 0, 7].into()] };
    let pki = pki(&hosts);
    let verifier = WebPkiServerVerifier::builder_with_provider(roots(&pki), default_provider().into());
    let verifier = verifier.build().expect("a verifier");
    let is_known = |name: &'static str, time| {
        let name = ServerName::try_from(name).expect("a name");
        verifier.verify_server_cert(&der(&pki.serving.certificate), &[], &name, &[], at(time)).is_ok()
    };
    for name in ["localhost", "127.0.0.1", "::1", "kubernetes.default.svc", "hub.example.com", "10.0.0.7"] {
        assert!(is_known(name, noon()), "{name}");
    }
    assert!(!is_known("elsewhere.example.com", noon()));
    assert!(!is_known("localhost", noon() + SignedDuration::from_hours(400 * 24)));
}

#[test]
fn the_server_knows_its_administrator_and_nobody_of_another_server() {
    let (one, other) = (pki(&Hosts::default()), pki(&Hosts::default()));
    let verifier = WebPkiClientVerifier::builder_with_provider(roots(&one), default_provider().into());
    let verifier = verifier.build().expect("a verifier");
    let is_known = |pki: &Pki| verifier.verify_client_cert(&der(&pki.admin.certificate), &[], at(noon())).is_ok();
    assert!(is_known(&one));
    assert!(!is_known(&other));
    let serving = verifier.verify_client_cert(&der(&one.serving.certificate), &[], at(noon()));
    assert!(serving.is_err(), "what the server shows is not for clients");
}

#[test]
fn what_is_kept_is_found_again_and_nobody_else_can_read_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pki");
    let kept = Folder::new(&path).roots(noon()).expect("new ones");
    assert_eq!(Folder::new(&path).roots(noon()).expect("the same"), kept);
    for entry in fs::read_dir(&path).expect("the folder is there") {
        let mode = entry.expect("a file").metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o700);
}

#[test]
fn what_is_missing_or_spoilt_is_said_and_nothing_is_made_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pki");
    Folder::new(&path).roots(noon()).expect("new ones");
    let key = fs::read_to_string(path.join("ca.key")).expect("the key");
    fs::write(path.join("ca.key"), "nonsense").expect("it can be written");
    let told = Folder::new(&path).roots(noon()).expect_err("the key is no key").to_string();
    assert!(told.contains("ca.key can not be read as a key"), "{told}");
    fs::remove_file(path.join("ca.key")).expect("it can be removed");
    let told = Folder::new(&path).roots(noon()).expect_err("the key is missing").to_string();
    assert!(told.contains("ca.key is missing beside ca.crt"), "{told}");
    fs::write(path.join("ca.key"), key).expect("it can be written");
    Folder::new(&path).roots(noon()).expect("all is well again");
}
