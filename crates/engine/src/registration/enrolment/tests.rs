use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::*;

fn keeper(driver: KubeClientDriver) -> Keeper {
    Keeper { cluster: "c1".into(), agent: "a1".to_owned(), is_hosted: true, driver }
}

fn addon(status: &Value) -> ManagedClusterAddOn {
    let addon = json!({ "metadata": { "namespace": "c1", "name": "a" }, "spec": {}, "status": status });
    serde_json::from_value(addon).expect("an add-on")
}

fn for_hub(subject: &Value) -> Value {
    json!({ "signerName": CLIENT_SIGNER, "subject": subject })
}

fn proofs(driver: KubeClientDriver, status: &Value) -> Vec<(String, Proof)> {
    let enrolments = keeper(driver).enrolments(&addon(status));
    enrolments.into_iter().map(|(place, enrolment)| (place.name, enrolment.proof)).collect()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a valid time")
}

#[test]
fn secrets_and_subjects_are_called_as_in_ocm() {
    let status = json!({ "registrations": [
        for_hub(&json!({})),
        { "signerName": "example.com/x", "subject": { "user": "u", "groups": ["g"], "organizationUnit": ["o"] } },
    ] });
    let group = "system:open-cluster-management:cluster:c1:addon:a";
    let subject = |user: &str, groups: &[&str], units: &[&str]| Subject {
        user: Some(user.to_owned()),
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
        organization_units: units.iter().map(|&unit| unit.to_owned()).collect(),
        ..Subject::default()
    };
    let certificate = |signer: &str, subject| Proof::Certificate { signer: signer.to_owned(), subject };
    let expected = [
        ("a-example.com-x-client-cert".to_owned(), certificate("example.com/x", subject("u", &["g"], &["o"]))),
        (
            "a-hub-kubeconfig".to_owned(),
            certificate(CLIENT_SIGNER, subject(&format!("{group}:agent:a1"), &[group], &[])),
        ),
    ];
    assert_eq!(proofs(KubeClientDriver::Csr, &status), expected);
}

#[test]
fn both_shapes_of_a_registration_are_read() {
    let typed = json!({ "registrations": [
        { "signerName": "", "type": "kubeClient", "kubeClient": { "subject": { "user": "u", "groups": ["g"] } } },
        { "type": "customSigner", "customSigner": { "signerName": "example.com/x", "subject": { "user": "v" } } },
    ] });
    let flat = json!({ "registrations": [
        for_hub(&json!({ "user": "u", "groups": ["g"] })), { "signerName": "example.com/x", "subject": { "user": "v" } },
    ] });
    assert_eq!(proofs(KubeClientDriver::Csr, &typed), proofs(KubeClientDriver::Csr, &flat));
}

#[test]
fn an_add_on_is_where_its_status_or_its_spec_says() {
    let mut found = addon(&json!({}));
    let keeper = keeper(KubeClientDriver::Csr);
    let home = |addon: &ManagedClusterAddOn| keeper.home(addon);
    assert_eq!(home(&found), (Home::Managed, NAMESPACE.to_owned()));
    found.spec.install_namespace = Some("asked".to_owned());
    assert_eq!(home(&found).1, "asked");
    found.status = Some(serde_json::from_value(json!({ "namespace": "found" })).expect("a status"));
    found.annotations_mut().insert(HOSTING_CLUSTER_ANNOTATION.to_owned(), "elsewhere".to_owned());
    assert_eq!(home(&found), (Home::Management, "found".to_owned()));
    let at_home = Keeper { is_hosted: false, ..keeper.clone() };
    assert_eq!(at_home.home(&found).0, Home::Managed);
}

#[test]
fn tokens_are_asked_for_when_the_hub_is_ready() {
    let ready = json!([{ "type": TOKEN_INFRASTRUCTURE_READY, "status": "True", "reason": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
        "message": "ServiceAccount c1/a-agent (UID: 7-8) is ready" }]);
    let of = |driver: Value, conditions: &Value| {
        let status =
            json!({ "registrations": [for_hub(&json!({}))], "kubeClientDriver": driver, "conditions": conditions });
        proofs(KubeClientDriver::Token, &status).remove(0).1
    };
    assert_eq!(of(json!("csr"), &ready), Proof::Awaited, "the hub does not know of it yet");
    assert_eq!(of(json!("token"), &json!([])), Proof::Awaited, "there is no account yet");
    assert_eq!(of(json!("token"), &ready), Proof::Token { account: "a-agent".to_owned(), uid: "7-8".to_owned() });
    let former = json!({ "registrations": [for_hub(&json!({}))], "kubeClientDriver": "token" });
    assert_eq!(proofs(KubeClientDriver::Csr, &former)[0].1, Proof::Awaited, "the hub still expects the account");
    let stale = json!({ "registrations": [for_hub(&json!({ "user": "system:serviceaccount:c1:a-agent" }))], "kubeClientDriver": "csr" });
    assert_eq!(proofs(KubeClientDriver::Csr, &stale)[0].1, Proof::Awaited, "the hub has not named the user yet");
}

#[test]
fn it_is_declared_how_agents_prove_themselves() {
    let reported = |driver, status: Value| json!(keeper(driver).report(&addon(&status), &[], None, at(0)));
    let one = json!({ "registrations": [for_hub(&json!({ "user": "u" }))] });
    let flat = reported(KubeClientDriver::Csr, one.clone());
    assert_eq!((&flat["kubeClientDriver"], &flat["registrations"]), (&json!("csr"), &one["registrations"]));
    let with_token = reported(KubeClientDriver::Token, one);
    let account = json!({ "user": "system:serviceaccount:c1:a-agent" });
    assert_eq!(
        (&with_token["kubeClientDriver"], &with_token["registrations"][0]["subject"]),
        (&json!("token"), &account)
    );
    let typed = json!({ "registrations": [{ "type": "kubeClient", "kubeClient": { "subject": { "user": "u" } } }] });
    let typed = reported(KubeClientDriver::Token, typed);
    assert_eq!(typed["registrations"][0]["kubeClient"], json!({ "subject": account, "driver": "token" }));
    let none = reported(
        KubeClientDriver::Token,
        json!({ "registrations": [{ "signerName": "example.com/x" }], "kubeClientDriver": "csr" }),
    );
    assert_eq!(none.get("kubeClientDriver"), None);
}

#[test]
fn what_has_become_of_credentials_is_told_when_all_is_known() {
    let status = json!({ "registrations": [for_hub(&json!({})), { "signerName": "example.com/x", "subject": { "user": "u" } }] });
    let addon = addon(&status);
    let keeper = keeper(KubeClientDriver::Csr);
    let enrolments: Vec<_> = keeper.enrolments(&addon).into_values().collect();
    let told = |outcomes: &[(&Enrolment, &Outcome)]| {
        let conditions = keeper.report(&addon, outcomes, None, at(0)).conditions;
        conditions.into_iter().map(|said| (said.type_, said.status, said.reason, said.message)).next()
    };
    let (early, late) = (Outcome::Kept { until: at(60) }, Outcome::Kept { until: at(120) });
    let failed = Outcome::Failed("no".to_owned());
    assert_eq!(told(&[(&enrolments[0], &late)]), None);
    let said = |status: &str, reason: &str, message: &str| {
        Some((CERTIFICATE_ROTATED.to_owned(), status.to_owned(), reason.to_owned(), message.to_owned()))
    };
    assert_eq!(
        told(&[(&enrolments[0], &late), (&enrolments[1], &early)]),
        said("True", "ClientCertificateUpdated", "client certificate rotated, and valid until 1970-01-01T00:01:00Z")
    );
    assert_eq!(told(&[(&enrolments[1], &failed)]), said("False", "ClientCertificateUpdateFailed", "no"));
}

fn imprint() -> Imprint {
    let hub = Hub { server: "https://hub".to_owned(), authority: None, proxy: None };
    Imprint { cluster: "c1".to_owned(), kept_by: "us".to_owned(), hub }
}

/// A Secret of ours with a token.
fn with_token() -> Kept {
    let claims = json!({ "iat": 1000, "exp": 2000, "kubernetes.io": { "serviceaccount": { "uid": "7" } } });
    Kept {
        kept_by: Some("us".to_owned()),
        cluster: Some("c1".to_owned()),
        token: Some(format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims.to_string())).into_bytes()),
        certificate: None,
        access: Some(Access { hub: imprint().hub, by: Means::Token }),
    }
}

fn judged(uid: &str, kept: Option<&Kept>, now: i64) -> Verdict {
    let proof = Proof::Token { account: "a".to_owned(), uid: uid.to_owned() };
    judge(&proof, kept, &imprint(), at(now)).expect("it is known")
}

#[test]
fn a_token_is_good_for_its_account_its_hub_and_its_time() {
    let kept = with_token();
    assert_eq!(judged("7", Some(&kept), 1799), Verdict::Good { renew: at(1800), until: at(2000) });
    assert_eq!(judged("7", Some(&kept), 1800), Verdict::Renew);
    assert_eq!(judged("7", Some(&kept), 2000), Verdict::Useless(Flaw::Expired(at(2000))));
    assert_eq!(judged("8", Some(&kept), 1000), Verdict::Useless(Flaw::OtherAccount));
    assert_eq!(judged("7", None, 1000), Verdict::Useless(Flaw::None));
    let mut elsewhere = kept.clone();
    elsewhere.access = elsewhere
        .access
        .map(|access| Access { hub: Hub { server: "https://other".to_owned(), ..access.hub }, ..access });
    assert_eq!(judged("7", Some(&elsewhere), 1000), Verdict::Useless(Flaw::OtherHub));
    assert_eq!(judge(&Proof::Awaited, Some(&kept), &imprint(), at(0)), None);
}

#[test]
fn what_stands_beside_good_credentials_is_put_in_order() {
    let kept = with_token();
    let spoilt = [
        Kept { kept_by: None, ..kept.clone() },
        Kept { cluster: None, ..kept.clone() },
        Kept { access: None, ..kept.clone() },
        Kept { access: Some(Access { hub: imprint().hub, by: Means::Certificate }), ..kept.clone() },
    ];
    for spoilt in spoilt {
        assert_eq!(judged("7", Some(&spoilt), 1000), Verdict::Untidy, "{spoilt:?}");
    }
}

#[test]
fn the_secrets_of_others_are_left_alone() {
    let kept = with_token();
    let others = [
        Kept { kept_by: Some("them".to_owned()), ..kept.clone() },
        // As that by which the cluster's own agent is let in.
        Kept { kept_by: None, cluster: None, ..kept.clone() },
        Kept { kept_by: None, cluster: Some("c2".to_owned()), ..kept },
        Kept::default(),
    ];
    for others in others {
        assert_eq!(judged("7", Some(&others), 1000), Verdict::Foreign, "{others:?}");
    }
}

#[test]
fn agents_are_told_apart() {
    let of = |cluster: &str, namespace: &str, home| kept_by(&cluster.into(), namespace, "s", home);
    let one = of("c1", "n", Home::Managed);
    assert!(one.len() == 16 && one == of("c1", "n", Home::Managed));
    for other in [of("c2", "n", Home::Managed), of("c1", "m", Home::Managed), of("c1", "n", Home::Management)] {
        assert_ne!(one, other);
    }
}
