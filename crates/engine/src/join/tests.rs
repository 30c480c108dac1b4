use std::collections::{BTreeMap, BTreeSet};

use drover_api::{
    cluster::{ClusterClaim, ClusterClaimSpec},
    grammar::Quantity,
};
use k8s_openapi::jiff::Timestamp;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a valid time")
}

fn wanted() -> Subject {
    subject(&"c1".into(), "a1")
}

fn certificate(not_after: i64) -> Certificate {
    let Subject { user, groups, .. } = wanted();
    Certificate {
        user: user.expect("an agent has a name"),
        groups: groups.into_iter().collect(),
        units: BTreeSet::new(),
        not_before: at(0),
        not_after: at(not_after),
    }
}

#[test]
fn an_agent_is_called_as_in_ocm() {
    let Subject { user, groups, .. } = wanted();
    assert_eq!(user.as_deref(), Some("system:open-cluster-management:c1:a1"));
    assert_eq!(groups, ["system:open-cluster-management:c1", "system:open-cluster-management:managed-clusters"]);
}

#[test]
fn a_certificate_is_renewed_when_between_a_quarter_and_a_fifth_of_its_time_is_left() {
    let certificate = certificate(1000);
    let Verdict::Good { renew } = judge(&certificate, &wanted(), at(1)) else { panic!("it is good") };
    assert!((at(750)..=at(800)).contains(&renew), "{renew}");
    assert_eq!(judge(&certificate, &wanted(), renew), Verdict::Renew);
    assert_eq!(judge(&certificate, &wanted(), at(999)), Verdict::Renew);
    assert_eq!(judge(&certificate, &wanted(), at(1000)), Verdict::Useless(Flaw::Expired(at(1000))));
}

#[test]
fn not_all_agents_renew_at_one_time() {
    let times: BTreeSet<_> = (0..50)
        .map(|number| {
            let mut certificate = certificate(100_000);
            certificate.user = format!("agent-{number}");
            renewal(&certificate)
        })
        .collect();
    assert!(times.len() > 25, "{times:?}");
}

#[test]
fn somebody_elses_certificate_is_of_no_use() {
    let other = subject(&"c2".into(), "a1");
    let flaw = Flaw::Stranger("system:open-cluster-management:c1:a1".to_owned());
    assert_eq!(judge(&certificate(1000), &other, at(1)), Verdict::Useless(flaw.clone()));
    let mut more = certificate(1000);
    more.groups.insert("system:masters".to_owned());
    assert_eq!(judge(&more, &wanted(), at(1)), Verdict::Useless(flaw));
}

#[test]
fn what_is_no_certificate_is_not_read() {
    for text in ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        assert_eq!(Certificate::read(text.as_bytes()), Err(Unreadable), "{text}");
    }
}

#[test]
fn credentials_are_for_one_hub() {
    let hub = Hub { server: "https://hub:6443".to_owned(), authority: Some(b"ca".to_vec()), proxy: None };
    assert_eq!(same_hub(&hub, &hub), Ok(()));
    let moved = Hub { server: "https://other:6443".to_owned(), ..hub.clone() };
    assert_eq!(same_hub(&hub, &moved), Err(Flaw::OtherHub(hub.server.clone())));
    let renewed = Hub { authority: Some(b"new".to_vec()), ..hub.clone() };
    assert!(same_hub(&hub, &renewed).is_err());
}

fn claim(name: &str) -> ClusterClaim {
    ClusterClaim::new(name, ClusterClaimSpec { value: format!("value of {name}") })
}

#[test]
fn claims_are_reported_as_long_as_there_is_room() {
    let mut claims: Vec<_> = (0..30).map(|number| claim(&format!("custom-{number:02}"))).collect();
    claims.push(claim("id.k8s.io"));
    claims.push(claim("version.openshift.io"));
    let mut hidden = claim("a-hidden");
    hidden.metadata.labels = Some(BTreeMap::from([(drover_api::names::SPOKE_ONLY_LABEL.to_owned(), String::new())]));
    claims.push(hidden);
    let names: Vec<_> = claimed(&claims).into_iter().map(|claim| claim.name).collect();
    assert_eq!(names.len(), 22);
    assert_eq!(&names[..3], ["id.k8s.io", "version.openshift.io", "custom-00"]);
    assert_eq!(names[21], "custom-19");
}

#[test]
fn what_nodes_have_is_added_up() {
    let node = |cpu: &str, is_schedulable| {
        let has = |amount: &str| BTreeMap::from([("cpu".to_owned(), Quantity::Text(amount.into()))]);
        Node { capacity: has(cpu), allocatable: has("500m"), is_schedulable }
    };
    let nodes = [node("4", true), node("2", true), node("8", false)];
    let (capacity, allocatable) = resources(&nodes);
    assert_eq!((capacity["cpu"].to_string(), allocatable["cpu"].to_string()), ("14".to_owned(), "1".to_owned()));
}
