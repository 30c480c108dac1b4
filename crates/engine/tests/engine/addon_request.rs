//! Who gets the certificate of an add-on's agent, and from whom.

use drover_api::{
    addon::RegistrationSpec,
    names::{ADDON_NAME_LABEL, CLUSTER_NAME_LABEL},
};
use drover_engine::{
    certificate::{CLIENT_SIGNER, Malformed},
    registration::request::{Flaw, Signer, Verdict, addon_of_request, judge, signer},
};
use k8s_openapi::{ByteString, api::certificates::v1::CertificateSigningRequest};
use kube::ResourceExt;
use serde_json::{Value, json};
use x509_cert::{
    der::{
        asn1::{Ia5String, OctetString},
        oid::db::rfc5280::ID_KP_SERVER_AUTH,
    },
    ext::pkix::{ExtendedKeyUsage, SubjectAltName, name::GeneralName},
};

use crate::signing_request::{by, dns, pem, pem_asking};

const USER: &str = "system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent";
const OWN_GROUP: &str = "system:open-cluster-management:cluster:c1:addon:hello";
const SHARED_GROUP: &str = "system:open-cluster-management:addon:hello";
const AGENT: &str = "system:open-cluster-management:c1:agent";
const AGENTS: [&str; 2] = ["system:open-cluster-management:c1", "system:open-cluster-management:managed-clusters"];
const CUSTOM_SIGNER: &str = "example.com/signer";
const HOST: &str = "hello.addon.open-cluster-management.io";

/// An add-on that registers with the hub's API server and with something else.
fn specs() -> Vec<RegistrationSpec> {
    let subject = json!({ "user": "user1", "groups": ["g1", "g2"], "organizationUnit": ["o1", "o2"] });
    let custom = json!({ "signerName": CUSTOM_SIGNER, "subject": subject, "signingCA": { "name": "ca-secret" } });
    let specs = json!([{ "type": "KubeClient" }, { "type": "CustomSigner", "customSigner": custom }]);
    serde_json::from_value(specs).expect("registrations")
}

/// The subject of the add-on's agent on c1, as OCM's agents write it.
fn own_subject() -> String {
    format!("CN={USER},O={OWN_GROUP}+O={SHARED_GROUP}")
}

/// A request for this subject, by the agent of the cluster c1, with the name of a host, as OCM's agents write it.
fn request(subject: &str) -> CertificateSigningRequest {
    let request = json!({
        "metadata": { "name": "addon-c1-hello", "labels": { CLUSTER_NAME_LABEL: "c1", ADDON_NAME_LABEL: "hello" } },
        "spec": {
            "request": ByteString(pem(subject, Some(HOST)).into_bytes()),
            "signerName": CLIENT_SIGNER,
            "usages": ["digital signature", "key encipherment", "client auth"],
        },
    });
    by(serde_json::from_value(request).expect("a request"), AGENT, &AGENTS)
}

fn own_request() -> CertificateSigningRequest {
    request(&own_subject())
}

/// A request for this subject from the add-on's other signer.
fn custom_request(subject: &str) -> CertificateSigningRequest {
    let mut request = request(subject);
    request.spec.signer_name = CUSTOM_SIGNER.into();
    request
}

fn for_cluster(mut request: CertificateSigningRequest, cluster: &str) -> CertificateSigningRequest {
    request.labels_mut().insert(CLUSTER_NAME_LABEL.to_owned(), cluster.to_owned());
    request
}

fn with_pem(pem: &str) -> CertificateSigningRequest {
    let mut request = own_request();
    request.spec.request = ByteString(pem.as_bytes().to_vec());
    request
}

fn with_usages(usages: &[&str]) -> CertificateSigningRequest {
    let mut request = own_request();
    request.spec.usages = Some(usages.iter().map(|usage| (*usage).to_owned()).collect());
    request
}

fn decided(mut request: CertificateSigningRequest, status: Value) -> CertificateSigningRequest {
    request.status = Some(serde_json::from_value(status).expect("a status"));
    request
}

fn approved(request: CertificateSigningRequest) -> CertificateSigningRequest {
    decided(request, json!({ "conditions": [{ "type": "Approved", "status": "True" }] }))
}

fn requester(user: &str, cluster: &str) -> Flaw {
    Flaw::Requester { user: user.to_owned(), cluster: cluster.into() }
}

fn name(expected: &str) -> Flaw {
    Flaw::Name { expected: expected.to_owned() }
}

fn groups(expected: &[&str]) -> Flaw {
    Flaw::Groups { expected: expected.iter().map(|group| (*group).to_owned()).collect() }
}

#[test]
fn an_agent_gets_what_its_template_says_however_the_subject_is_arranged() {
    for subject in [
        own_subject(),
        format!("O={SHARED_GROUP}+O={OWN_GROUP},CN={USER}"),
        format!("CN={USER},O={OWN_GROUP},O={SHARED_GROUP}"),
        format!("CN={USER}+O={OWN_GROUP}+O={SHARED_GROUP}"),
    ] {
        assert!(matches!(judge(&request(&subject), &specs()), Verdict::Approve(_)), "{subject}");
    }
    let custom = custom_request("CN=user1,O=g1+O=g2,OU=o1+OU=o2");
    assert!(matches!(judge(&custom, &specs()), Verdict::Approve(_)));
    assert!(matches!(judge(&with_usages(&["client auth"]), &specs()), Verdict::Approve(_)));
}

#[test]
fn who_is_no_agent_of_the_cluster_gets_nothing() {
    let bootstrap = "system:bootstrap:abcdef";
    let others = "system:open-cluster-management:c10:agent";
    let of_others = ["system:open-cluster-management:c10", AGENTS[1]];
    let c10 = |user: &str, groups: &[&str]| by(for_cluster(own_request(), "c10"), user, groups);
    for (request, flaw) in [
        // The agent of c10 for c1, and the reverse.
        (by(own_request(), others, &of_others), requester(others, "c1")),
        (c10(AGENT, &AGENTS), requester(AGENT, "c10")),
        // A name, or a group, that is another's.
        (by(own_request(), others, &AGENTS), requester(others, "c1")),
        (by(own_request(), AGENT, &of_others), requester(AGENT, "c1")),
        (by(own_request(), AGENT, &["system:authenticated"]), requester(AGENT, "c1")),
        // What is no agent's name.
        (by(own_request(), AGENTS[0], &AGENTS), requester(AGENTS[0], "c1")),
        (by(own_request(), &format!("{AGENT}:more"), &AGENTS), requester(&format!("{AGENT}:more"), "c1")),
        (
            by(own_request(), "system:open-cluster-management:c1:", &AGENTS),
            requester("system:open-cluster-management:c1:", "c1"),
        ),
        // The add-on's agent does not renew for itself, the cluster's does.
        (by(own_request(), USER, &[OWN_GROUP, SHARED_GROUP]), requester(USER, "c1")),
        (by(own_request(), bootstrap, &["system:bootstrappers:managedcluster"]), requester(bootstrap, "c1")),
        (by(own_request(), "alice", &["system:authenticated"]), requester("alice", "c1")),
        (by(own_request(), "", &[]), requester("", "c1")),
    ] {
        assert_eq!(judge(&request, &specs()), Verdict::Deny(flaw));
    }
}

#[test]
fn a_subject_that_is_not_exactly_the_expected_one_is_denied() {
    let both = [OWN_GROUP, SHARED_GROUP];
    let organisations = format!("O={OWN_GROUP}+O={SHARED_GROUP}");
    for (subject, flaw) in [
        // Another cluster's agent, which this begins like, or which begins like this.
        (own_subject().replace(":c1:", ":c10:"), name(USER)),
        (own_subject().replace(":c1:", ":c:"), name(USER)),
        (format!("CN={USER}2,{organisations}"), name(USER)),
        (format!("CN=system:admin,{organisations}"), name(USER)),
        (organisations.clone(), name(USER)),
        // Who reads it might take either.
        (format!("CN=system:admin,CN={USER},{organisations}"), name(USER)),
        (format!("CN={USER},CN={USER},{organisations}"), name(USER)),
        (format!("{}+O=system:masters", own_subject()), groups(&both)),
        (format!("{}+O=system:authenticated", own_subject()), groups(&both)),
        (format!("CN={USER},O={OWN_GROUP}"), groups(&both)),
        (format!("CN={USER},O={OWN_GROUP}+O={}", SHARED_GROUP.replace("hello", "other")), groups(&both)),
        (format!("CN={USER}"), groups(&both)),
        (format!("{},OU=unit", own_subject()), Flaw::Units { expected: [].into() }),
        (format!("{},C=DE", own_subject()), Flaw::Parts),
        // What the other signer may sign for.
        ("CN=user1,O=g1+O=g2,OU=o1+OU=o2".to_owned(), name(USER)),
    ] {
        assert_eq!(judge(&request(&subject), &specs()), Verdict::Deny(flaw), "{subject}");
    }
}

#[test]
fn a_subject_of_a_templates_own_is_compared_as_exactly() {
    let units = Flaw::Units { expected: ["o1".to_owned(), "o2".to_owned()].into() };
    for (subject, flaw) in [
        (own_subject(), name("user1")),
        ("CN=user11,O=g1+O=g2,OU=o1+OU=o2".to_owned(), name("user1")),
        ("CN=user1,O=g1,OU=o1+OU=o2".to_owned(), groups(&["g1", "g2"])),
        ("CN=user1,O=g1+O=g2+O=g3,OU=o1+OU=o2".to_owned(), groups(&["g1", "g2"])),
        ("CN=user1,O=g1+O=g2".to_owned(), units.clone()),
        ("CN=user1,O=g1+O=g2,OU=o1".to_owned(), units.clone()),
        ("CN=user1,O=g1+O=g2,OU=o1+OU=o2+OU=o3".to_owned(), units),
    ] {
        assert_eq!(judge(&custom_request(&subject), &specs()), Verdict::Deny(flaw), "{subject}");
    }
}

#[test]
fn an_agent_names_the_host_that_ocms_agents_name_or_none() {
    for host in [Some(HOST), None] {
        let request = with_pem(&pem(&own_subject(), host));
        assert!(matches!(judge(&request, &specs()), Verdict::Approve(_)), "{host:?}");
    }
    let names = |names: &[GeneralName]| {
        let names = SubjectAltName(names.to_vec());
        pem_asking(&own_subject(), |request| request.add_extension(&names).expect("names can be added"))
    };
    let address = || GeneralName::IpAddress(OctetString::new([127, 0, 0, 1]).expect("an address"));
    let server = ExtendedKeyUsage(vec![ID_KP_SERVER_AUTH]);
    let own = SubjectAltName(vec![dns(HOST)]);
    for pem in [
        names(&[dns("other.addon.open-cluster-management.io")]),
        names(&[dns("hello.addon.open-cluster-management.io.example.com")]),
        names(&[dns("HELLO.addon.open-cluster-management.io")]),
        names(&[dns(HOST), dns("kubernetes.default.svc")]),
        names(&[dns(HOST), dns(HOST)]),
        names(&[dns(HOST), address()]),
        names(&[address()]),
        names(&[GeneralName::Rfc822Name(Ia5String::new(HOST).expect("a name"))]),
        names(&[]),
        pem_asking(&own_subject(), |request| request.add_extension(&server).expect("uses can be added")),
        pem_asking(&own_subject(), |request| {
            request.add_extension(&own).expect("names can be added");
            request.add_extension(&server).expect("uses can be added");
        }),
        pem_asking(&own_subject(), |request| {
            request.add_extension(&own).expect("names can be added");
            request.add_extension(&own).expect("names can be added");
        }),
    ] {
        assert_eq!(judge(&with_pem(&pem), &specs()), Verdict::Deny(Malformed::Extensions.into()), "{pem}");
        assert_eq!(signer(&approved(with_pem(&pem)), &specs()), None, "{pem}");
    }
}

#[test]
fn whatever_else_is_asked_for_is_denied() {
    let one = pem(&own_subject(), None);
    let mut cases = vec![
        (with_pem(&pem(&own_subject(), Some("api.example.com"))), Malformed::Extensions),
        (with_usages(&["client auth", "server auth"]), Malformed::Usages),
        (with_usages(&["digital signature", "key encipherment"]), Malformed::Usages),
        (with_usages(&["client auth", "cert sign"]), Malformed::Usages),
        (with_usages(&[]), Malformed::Usages),
    ];
    let label = one.replace("CERTIFICATE REQUEST", "CERTIFICATE");
    for unreadable in
        ["", "nonsense", &one.replace('M', "N"), &format!("{one}{one}"), &format!("preamble\n{one}"), &label]
    {
        cases.push((with_pem(unreadable), Malformed::Unreadable));
    }
    for (request, flaw) in cases {
        assert_eq!(judge(&request, &specs()), Verdict::Deny(flaw.into()), "{:?}", request.spec.usages);
    }
}

#[test]
fn a_signer_that_the_add_on_does_not_register_with_is_denied() {
    let asks = |signer: &str, specs: &[RegistrationSpec]| {
        let mut request = own_request();
        request.spec.signer_name = signer.to_owned();
        judge(&request, specs)
    };
    let flaw = |signer: &str, expected: &[&str]| {
        let expected = expected.iter().map(|signer| (*signer).to_owned()).collect();
        Verdict::Deny(Flaw::Signer { signer: signer.to_owned(), expected })
    };
    for foreign in ["example.com/signer2", "example.com/", "kubernetes.io/kube-apiserver-client-kubelet"] {
        assert_eq!(asks(foreign, &specs()), flaw(foreign, &[CLIENT_SIGNER, CUSTOM_SIGNER]));
    }
    assert_eq!(asks(CLIENT_SIGNER, &specs()[1..]), flaw(CLIENT_SIGNER, &[CUSTOM_SIGNER]));
    assert_eq!(asks(CLIENT_SIGNER, &[]), flaw(CLIENT_SIGNER, &[]));
}

#[test]
fn a_template_gets_nobody_a_name_of_its_choice_on_the_hub() {
    let custom = json!({ "signerName": CLIENT_SIGNER, "subject": { "user": "admin", "groups": ["admins"] },
        "signingCA": { "name": "ca" } });
    let specs: Vec<RegistrationSpec> =
        serde_json::from_value(json!([{ "type": "CustomSigner", "customSigner": custom }])).expect("a registration");
    let asked = request("CN=admin,O=admins");
    let flaw = Flaw::Signer { signer: CLIENT_SIGNER.to_owned(), expected: Vec::new() };
    assert_eq!(judge(&asked, &specs), Verdict::Deny(flaw));
    assert_eq!(signer(&approved(asked), &specs), None);
}

#[test]
fn one_signer_may_sign_for_several() {
    let mut specs = specs();
    let mut second = specs[1].clone();
    let custom = second.custom_signer.as_mut().expect("it has a signer");
    custom.subject = serde_json::from_value(json!({ "user": "user2", "groups": ["g"] })).expect("a subject");
    custom.signing_ca.name = "other".to_owned();
    specs.push(second);
    let asked = custom_request("CN=user2,O=g");
    assert!(matches!(judge(&asked, &specs), Verdict::Approve(_)));
    let asked = approved(asked);
    let Some(Signer::Hub(ca)) = signer(&asked, &specs) else { panic!("the hub signs") };
    assert_eq!(ca.name, "other");
}

#[test]
fn what_is_no_add_ons_request_or_is_decided_is_left_alone() {
    for label in [CLUSTER_NAME_LABEL, ADDON_NAME_LABEL] {
        let mut request = own_request();
        request.labels_mut().remove(label);
        assert_eq!((addon_of_request(&request), judge(&request, &specs())), (None, Verdict::None));
    }
    assert_eq!(addon_of_request(&own_request()), Some(("c1".into(), "hello".to_owned())));
    for condition in ["Approved", "Denied"] {
        let conditions = json!({ "conditions": [{ "type": condition, "status": "True" }] });
        assert_eq!(judge(&decided(own_request(), conditions), &specs()), Verdict::None);
    }
}

#[test]
fn what_is_approved_is_signed_once_and_only_if_it_would_be_approved_again() {
    let specs = specs();
    let custom = || custom_request("CN=user1,O=g1+O=g2,OU=o1+OU=o2");
    let ca = &specs[1].custom_signer.as_ref().expect("it has a signer").signing_ca;
    assert_eq!(signer(&approved(custom()), &specs), Some(Signer::Hub(ca)));
    assert_eq!(signer(&approved(own_request()), &specs), Some(Signer::ApiServer));
    // A person approves by name and may be mistaken, and a template may have changed.
    assert_eq!(signer(&approved(custom_request("CN=user1,O=g1+O=g2+O=g3,OU=o1+OU=o2")), &specs), None);
    assert_eq!(signer(&approved(by(custom(), "alice", &[])), &specs), None);
    assert_eq!(signer(&approved(custom()), &specs[..1]), None);
    assert_eq!(signer(&custom(), &specs), None);
    let is_approved = json!({ "type": "Approved", "status": "True" });
    for other in ["Denied", "Failed"] {
        let conditions = json!({ "conditions": [is_approved, { "type": other, "status": "True" }] });
        assert_eq!(signer(&decided(custom(), conditions), &specs), None, "{other}");
    }
    // Of a certificate that is there, the hub may keep no more than that.
    let signed = json!({ "conditions": [is_approved], "certificate": "" });
    assert_eq!(signer(&decided(custom(), signed), &specs), None);
}

#[test]
fn a_denial_says_what_is_wrong_and_what_to_change() {
    let sentence = |request: &CertificateSigningRequest| match judge(request, &specs()) {
        Verdict::Deny(flaw) => flaw.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        sentence(&by(own_request(), "alice", &[])),
        "alice asks, and is no agent of the cluster c1: that is system:open-cluster-management:c1:<agent>, in the group \
         system:open-cluster-management:c1"
    );
    assert_eq!(
        sentence(&request(&format!("CN={USER}"))),
        format!("the organisations in the subject have to be {SHARED_GROUP} and {OWN_GROUP}, and no others")
    );
    assert_eq!(
        sentence(&request(&format!("{},OU=o", own_subject()))),
        "the organisational units in the subject have to be none, and no others"
    );
}
