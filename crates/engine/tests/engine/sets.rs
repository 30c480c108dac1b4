//! Which clusters are in reach, and what a placement says where none is.

use drover_api::cluster::{ManagedClusterSet, ManagedClusterSetBinding};
use drover_engine::placement::{
    sets::{self, Membership, Reach},
    status,
};
use serde_json::{Value, json};

use crate::fleet::{Case, cluster, condition, plain};

fn set(name: &str, selector: &Value) -> ManagedClusterSet {
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": { "clusterSelector": selector } }))
        .expect("a set")
}

fn bindings(names: &[&str]) -> Vec<ManagedClusterSetBinding> {
    let binding = |name: &&str| json!({ "metadata": { "name": name }, "spec": { "clusterSet": name } });
    names.iter().map(|name| serde_json::from_value(binding(name)).expect("a binding")).collect()
}

fn reach(named: &[&str], bound: &[&str], existing: &[&str]) -> Reach {
    let named: Vec<_> = named.iter().map(|&name| name.to_owned()).collect();
    sets::reach(&named, &bindings(bound), |set| existing.contains(&set))
}

fn reason(reach: Reach, clusters: Vec<drover_api::cluster::ManagedCluster>) -> (String, String) {
    let mut case = Case::new(&json!({}), clusters);
    case.reach = reach;
    let (_, reason, message) = condition(&case.decide().status, status::SATISFIED);
    (reason, message)
}

#[test]
fn bound_sets_that_exist_are_in_reach() {
    let sets = |names: &[&str]| Reach::Sets(names.iter().map(|&name| name.to_owned()).collect());
    assert_eq!(reach(&[], &["a", "b"], &["a", "b"]), sets(&["a", "b"]));
    assert_eq!(reach(&[], &["a", "b"], &["a"]), sets(&["a"]));
    assert_eq!(reach(&["b", "c"], &["a", "b"], &["a", "b", "c"]), sets(&["b"]));
    assert_eq!(reach(&[], &["a"], &[]), Reach::Unbound);
    assert_eq!(reach(&["a"], &[], &["a"]), Reach::Unbound);
    assert_eq!(reach(&["c"], &["a"], &["a", "c"]), Reach::NoIntersection { named: ["c".to_owned()].into() });
}

#[test]
fn the_reason_says_why_nothing_is_in_reach() {
    let in_reach = || reach(&[], &["a"], &["a"]);
    assert_eq!(reason(reach(&[], &[], &[]), vec![]).0, "NoManagedClusterSetBindings");
    let (why, message) = reason(reach(&["c"], &["a"], &["a"]), vec![]);
    assert_eq!(why, "NoIntersection");
    assert_eq!(message, "the placement names sets to which the namespace is not bound, or which do not exist: c");
    assert_eq!(reason(in_reach(), vec![]).0, "AllManagedClusterSetsEmpty");
    let taint = json!({ "spec": { "taints": [{ "key": "t", "effect": "NoSelect" }] } });
    assert_eq!(reason(in_reach(), vec![cluster("c", &json!({}), &taint)]).0, "NoManagedClusterMatched");
    assert_eq!(reason(in_reach(), vec![plain("c")]).0, "AllDecisionsScheduled");
}

#[test]
fn members_go_by_the_label_of_the_set_or_by_a_selector() {
    let fleet = [
        cluster("in-a", &json!({ "cluster.open-cluster-management.io/clusterset": "a" }), &json!({})),
        cluster("prod", &json!({ "env": "prod" }), &json!({})),
    ];
    let members = |selector: Value| {
        let members = Membership::of(&set("a", &selector)).expect("a selector that makes sense");
        let members = fleet.iter().filter(|cluster| members.contains(cluster));
        members.map(|cluster| cluster.cluster_name().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(members(json!({})), ["in-a"]);
    assert_eq!(members(json!({ "selectorType": "LabelSelector", "labelSelector": {} })), ["in-a", "prod"]);
    let prod = json!({ "matchLabels": { "env": "prod" } });
    assert_eq!(members(json!({ "selectorType": "LabelSelector", "labelSelector": prod })), ["prod"]);
    assert!(members(json!({ "selectorType": "LabelSelector" })).is_empty());
}

#[test]
fn a_set_that_makes_no_sense_is_named() {
    let bad = json!({ "matchExpressions": [{ "key": "env", "operator": "Near", "values": ["a"] }] });
    let set = set("a", &json!({ "selectorType": "LabelSelector", "labelSelector": bad }));
    let error = sets::Membership::of(&set).expect_err("no such operator").to_string();
    assert!(error.starts_with("ClusterSet: the set a clusterSelector.labelSelector: the operator \"Near\""), "{error}");
}
