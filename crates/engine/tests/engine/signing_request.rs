//! Who gets an agent's certificate, and who does not.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{
    cluster::{ManagedCluster, ManagedClusterSpec, ManagedClusterStatus},
    names::{CLUSTER_JOINED, CLUSTER_NAME_LABEL, JOINED_ANNOTATION, REJOIN_ANNOTATION},
};
use drover_engine::{
    certificate::{CLIENT_SIGNER, Malformed},
    cluster::signing_request::{Flaw, Verdict, Wait, awaits_own_certificate, judge},
    condition::{self, Holds, Says},
};
use k8s_openapi::{
    ByteString,
    api::certificates::v1::{
        CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
        CertificateSigningRequestStatus,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
    jiff::Timestamp,
};
use kube::ResourceExt;
use p256::{
    ecdsa::{DerSignature, SigningKey},
    elliptic_curve::Generate,
    pkcs8::LineEnding,
};
use x509_cert::{
    builder::{Builder, RequestBuilder},
    der::{EncodePem, asn1::Ia5String},
    ext::pkix::{SubjectAltName, name::GeneralName},
};

const AGENT: &str = "CN=system:open-cluster-management:c1:agent,O=system:open-cluster-management:c1+O=system:open-cluster-management:managed-clusters";
const BOOTSTRAP: &str = "system:bootstrappers:managedcluster";

/// A request for this subject, with an alternative name if there is one.
pub(crate) fn pem(subject: &str, alternative: Option<&str>) -> String {
    let alternative = alternative.map(|name| SubjectAltName(vec![dns(name)]));
    pem_asking(subject, |request| {
        if let Some(names) = &alternative {
            request.add_extension(names).expect("a name can be added");
        }
    })
}

/// A request for this subject, with what is added to it.
pub(crate) fn pem_asking(subject: &str, add: impl FnOnce(&mut RequestBuilder)) -> String {
    let key = SigningKey::generate();
    let mut request = RequestBuilder::new(subject.parse().expect("a valid subject")).expect("a request can be made");
    add(&mut request);
    let request = request.build::<_, DerSignature>(&key).expect("a request can be signed");
    request.to_pem(LineEnding::LF).expect("a request can be written")
}

/// The name of a host, as certificates have it.
pub(crate) fn dns(name: &str) -> GeneralName {
    GeneralName::DnsName(Ia5String::new(name).expect("a valid name"))
}

/// A request of the cluster c1, by somebody who brings clusters in.
fn request(pem: &str) -> CertificateSigningRequest {
    CertificateSigningRequest {
        metadata: ObjectMeta {
            labels: Some(BTreeMap::from([(CLUSTER_NAME_LABEL.to_owned(), "c1".to_owned())])),
            ..ObjectMeta::default()
        },
        spec: CertificateSigningRequestSpec {
            request: ByteString(pem.as_bytes().to_vec()),
            signer_name: CLIENT_SIGNER.to_owned(),
            usages: Some(["digital signature", "key encipherment", "client auth"].map(str::to_owned).to_vec()),
            username: Some("system:bootstrap:abcdef".to_owned()),
            groups: Some(vec![BOOTSTRAP.to_owned()]),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    }
}

/// The same request, made by somebody else.
pub(crate) fn by(mut request: CertificateSigningRequest, user: &str, groups: &[&str]) -> CertificateSigningRequest {
    request.spec.username = Some(user.to_owned());
    request.spec.groups = Some(groups.iter().map(|group| (*group).to_owned()).collect());
    request
}

fn cluster(accepted: bool) -> ManagedCluster {
    ManagedCluster::new("c1", ManagedClusterSpec { hub_accepts_client: accepted, ..ManagedClusterSpec::default() })
}

fn verdict(request: &CertificateSigningRequest, cluster: Option<&ManagedCluster>) -> Verdict {
    judge(request, cluster, &BTreeSet::from([BOOTSTRAP.to_owned()]))
}

fn approves(request: &CertificateSigningRequest, cluster: &ManagedCluster) -> bool {
    matches!(verdict(request, Some(cluster)), Verdict::Approve(_))
}

#[test]
fn an_accepted_cluster_joins_and_no_other() {
    let first = request(&pem(AGENT, None));
    assert!(approves(&first, &cluster(true)));
    assert_eq!(verdict(&first, Some(&cluster(false))), Verdict::Wait(Wait::Acceptance));
    assert_eq!(verdict(&first, None), Verdict::Wait(Wait::Acceptance));
    let mut going = cluster(true);
    going.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
    assert_eq!(verdict(&first, Some(&going)), Verdict::Wait(Wait::Leaving));
    // Its agent still has to finish its work.
    let own = ["system:open-cluster-management:c1", "system:open-cluster-management:managed-clusters"];
    assert!(approves(&by(first, "system:open-cluster-management:c1:agent", &own), &going));
}

#[test]
fn a_cluster_that_has_joined_is_not_taken_over_by_somebody_who_may_bring_clusters_in() {
    let again = request(&pem(AGENT, None));
    let mut says_so = cluster(true);
    let says = Says { type_: CLUSTER_JOINED, holds: Holds::Yes, reason: "Test", message: "", generation: None };
    let conditions = condition::with(Vec::new(), says, Timestamp::UNIX_EPOCH);
    says_so.status = Some(ManagedClusterStatus { conditions, ..ManagedClusterStatus::default() });
    let mut marked = cluster(true);
    marked.annotations_mut().insert(JOINED_ANNOTATION.to_owned(), "true".to_owned());
    for mut joined in [says_so, marked] {
        assert_eq!(verdict(&again, Some(&joined)), Verdict::Wait(Wait::Rejoin));
        joined.annotations_mut().insert(REJOIN_ANNOTATION.to_owned(), "true".to_owned());
        assert!(approves(&again, &joined));
    }
}

#[test]
fn an_agent_renews_its_own_certificate_and_nobody_elses() {
    let asked = request(&pem(AGENT, None));
    let own = ["system:open-cluster-management:c1", "system:open-cluster-management:managed-clusters"];
    let itself = "system:open-cluster-management:c1:agent";
    assert!(approves(&by(asked.clone(), itself, &own), &cluster(true)));
    assert_eq!(verdict(&by(asked.clone(), itself, &own), Some(&cluster(false))), Verdict::Wait(Wait::Acceptance));
    for (user, groups) in [
        ("system:open-cluster-management:c1:other", own),
        ("system:open-cluster-management:c10:agent", ["system:open-cluster-management:c10", own[1]]),
        // Nobody has this name without its group, unless somebody gave it away.
        (itself, ["system:authenticated", own[1]]),
    ] {
        let refused = verdict(&by(asked.clone(), user, &groups), Some(&cluster(true)));
        assert_eq!(refused, Verdict::Deny(Flaw::Foreign(user.to_owned())), "{user}");
    }
}

#[test]
fn an_agent_that_is_also_in_the_bootstrap_group_is_still_an_agent() {
    let asked = request(&pem(AGENT, None));
    let user = "system:open-cluster-management:c2:agent";
    let refused = verdict(&by(asked, user, &["system:open-cluster-management:c2", BOOTSTRAP]), Some(&cluster(true)));
    assert_eq!(refused, Verdict::Deny(Flaw::Foreign(user.to_owned())));
}

#[test]
fn what_a_stranger_asks_for_is_left_for_a_person() {
    let by_alice = |pem: &str| by(request(pem), "alice", &["system:authenticated"]);
    assert_eq!(verdict(&by_alice(&pem(AGENT, None)), Some(&cluster(true))), Verdict::Wait(Wait::Stranger));
    assert_eq!(verdict(&by_alice(&pem("CN=alice", None)), Some(&cluster(true))), Verdict::None);
}

#[test]
fn a_subject_that_is_not_exactly_the_agents_is_denied() {
    let own = "O=system:open-cluster-management:c1+O=system:open-cluster-management:managed-clusters";
    for subject in [
        // The prefix of another cluster, and the reverse.
        "CN=system:open-cluster-management:c10:agent,O=system:open-cluster-management:c10+O=system:open-cluster-management:managed-clusters".to_owned(),
        format!("CN=system:open-cluster-management:c:agent,{own}"),
        format!("CN=system:open-cluster-management:c1,{own}"),
        format!("CN=system:open-cluster-management:c1:,{own}"),
        format!("CN=system:open-cluster-management:c1:agent:more,{own}"),
        format!("CN=system:open-cluster-management:c1:agent,{own}+O=system:masters"),
        "CN=system:open-cluster-management:c1:agent,O=system:open-cluster-management:c1".to_owned(),
        format!("CN=admin,CN=system:open-cluster-management:c1:agent,{own}"),
        format!("OU=unit,CN=system:open-cluster-management:c1:agent,{own}"),
        own.to_owned(),
    ] {
        let refused = verdict(&request(&pem(&subject, None)), Some(&cluster(true)));
        assert_eq!(refused, Verdict::Deny(Flaw::Subject("c1".into())), "{subject}");
    }
}

#[test]
fn whatever_else_is_asked_for_is_denied() {
    let accepted = cluster(true);
    let refused = |request: &CertificateSigningRequest| verdict(request, Some(&accepted));
    for name in ["api.example.com", "c1.addon.open-cluster-management.io"] {
        assert_eq!(refused(&request(&pem(AGENT, Some(name)))), Verdict::Deny(Malformed::Extensions.into()), "{name}");
    }
    let one = pem(AGENT, None);
    for unreadable in ["nonsense", "", &format!("{one}{one}"), &format!("preamble\n{one}")] {
        assert_eq!(refused(&request(unreadable)), Verdict::Deny(Malformed::Unreadable.into()), "{unreadable}");
    }
    for usages in [vec!["client auth", "server auth"], vec!["digital signature"], vec![]] {
        let mut asked = request(&one);
        asked.spec.usages = Some(usages.iter().map(|usage| (*usage).to_owned()).collect());
        assert_eq!(refused(&asked), Verdict::Deny(Malformed::Usages.into()), "{usages:?}");
    }
}

#[test]
fn what_is_not_an_agents_request_or_is_decided_is_left_alone() {
    let asked = request(&pem(AGENT, None));
    let mut other_signer = asked.clone();
    other_signer.spec.signer_name = "example.com/signer".to_owned();
    let mut of_addon = asked.clone();
    of_addon
        .metadata
        .labels
        .get_or_insert_default()
        .insert("open-cluster-management.io/addon-name".to_owned(), "a".to_owned());
    let mut unlabelled = asked.clone();
    unlabelled.metadata.labels = None;
    for request in [other_signer, of_addon, unlabelled] {
        assert_eq!(verdict(&request, Some(&cluster(true))), Verdict::None);
    }
    let mut decided = asked;
    let denied = CertificateSigningRequestCondition { type_: "Denied".to_owned(), ..Default::default() };
    decided.status = Some(CertificateSigningRequestStatus { conditions: Some(vec![denied]), certificate: None });
    assert_eq!(verdict(&decided, Some(&cluster(true))), Verdict::None);
}

#[test]
fn what_is_approved_is_signed_unless_it_is_anothers() {
    let approved = |mut request: CertificateSigningRequest| {
        let approved = CertificateSigningRequestCondition { type_: "Approved".to_owned(), ..Default::default() };
        request.status = Some(CertificateSigningRequestStatus { conditions: Some(vec![approved]), certificate: None });
        request
    };
    let asked = request(&pem(AGENT, None));
    assert!(!awaits_own_certificate(&asked), "nobody has approved it");
    assert!(awaits_own_certificate(&approved(asked.clone())));
    // A person who approves what a stranger asks for has looked at who it is.
    assert!(awaits_own_certificate(&approved(by(asked.clone(), "alice", &[]))));
    let other = by(asked.clone(), "system:open-cluster-management:c2:agent", &["system:open-cluster-management:c2"]);
    assert!(!awaits_own_certificate(&approved(other)));
    assert!(!awaits_own_certificate(&approved(request(&pem("CN=system:admin", None)))));
    let mut signed = approved(asked);
    signed.status.get_or_insert_default().certificate = Some(ByteString::default());
    assert!(!awaits_own_certificate(&signed));
}
