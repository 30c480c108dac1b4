//! What makes no sense, or is not there: each is told with its cause, takes no cluster away, and holds up nobody.

use drover_api::cluster::{
    ManagedClusterSet, ManagedClusterSetBinding, ManagedClusterSetBindingSpec, Placement, PlacementSpec,
};
use drover_testkit::{World, wait};
use kube::Api;
use serde_json::{Value, json};

use super::{decisions, label, message, names, placement, placements, until_selected};
use crate::running::{as_hub, bound_namespace, change, condition, create, make_cluster, satisfied, selected, start};

drover_testkit::scenarios! {
    Own {
        placements_that_make_no_sense_say_so_and_keep_their_decisions,
        sets_that_are_not_bound_or_not_there_are_named,
        a_set_whose_selector_makes_no_sense_keeps_its_clusters,
        one_placement_that_can_not_be_read_holds_up_nobody,
    }
}

/// Edits that the server takes and nobody can follow, and what is said of each.
fn nonsense() -> Vec<(&'static str, Value, &'static str)> {
    let by_labels = |requirement: Value| json!({ "predicates": [{ "requiredClusterSelector": { "labelSelector": { "matchExpressions": [requirement] } } }] });
    vec![
        (
            "operator",
            by_labels(json!({ "key": "env", "operator": "in", "values": ["prod"] })),
            r#"labelSelector: the operator "in" of "env" is none of In, NotIn, Exists and DoesNotExist"#,
        ),
        (
            "no-values",
            by_labels(json!({ "key": "env", "operator": "In" })),
            r#"labelSelector: In of "env" needs values"#,
        ),
        (
            "key",
            by_labels(json!({ "key": "the env", "operator": "Exists" })),
            r#"labelSelector: "the env" can not be the name of a label or a claim"#,
        ),
        (
            "claim",
            json!({ "predicates": [{ "requiredClusterSelector": { "claimSelector": {
                "matchExpressions": [{ "key": "region", "operator": "Near", "values": ["eu"] }],
            } } }] }),
            r#"claimSelector: the operator "Near" of "region" is none of"#,
        ),
        (
            "cel",
            json!({ "predicates": [{ "requiredClusterSelector": { "celSelector": { "celExpressions": ["not cel ("] } } }] }),
            r#"the expression "not cel (" "#,
        ),
        (
            "prioritizer",
            json!({ "prioritizerPolicy": { "configurations": [{ "scoreCoordinate": { "builtIn": "Luck" } }] } }),
            r#"prioritizerPolicy.configurations[0]: there is no built-in "Luck": write Steady,"#,
        ),
        (
            "toleration",
            json!({ "tolerations": [{ "value": "broken" }] }),
            "tolerations[0]: write a key, or the operator Exists to tolerate every taint",
        ),
        (
            "group",
            json!({ "decisionStrategy": { "groupStrategy": { "decisionGroups": [{
                "groupName": "canary",
                "groupClusterSelector": { "labelSelector": { "matchExpressions": [{ "key": "ring", "operator": "is" }] } },
            }] } } }),
            r#"decisionGroups[0].groupClusterSelector.labelSelector: the operator "is" of "ring""#,
        ),
    ]
}

fn is_misconfigured(placement: &Placement) -> bool {
    let conditions = placement.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    condition(conditions, "PlacementMisconfigured") == Some(("True", "Misconfigured"))
}

async fn placements_that_make_no_sense_say_so_and_keep_their_decisions(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    make_cluster(&world, "one", "default").await;
    let namespace = bound_namespace(&world, "default").await;
    let placements = placements(&world, &namespace);
    for (name, edit, cause) in nonsense() {
        create(&placements, Placement::new(name, PlacementSpec::default())).await;
        until_selected(&placements, name, 1).await;

        change(&placements, name, json!({ "spec": edit })).await;

        let told = wait::until(&placements, name, "it says that it makes no sense", is_misconfigured).await;
        let message = message(&told, "PlacementMisconfigured");
        assert!(message.contains(cause), "{name}: {message}");
        assert_eq!(satisfied(&told), Some(("False", "NotAllDecisionsScheduled")), "{name}");
        assert_eq!(selected(&told), Some(1), "{name}");
    }
    // The rest goes on, with a cluster that is new to all.
    make_cluster(&world, "two", "default").await;
    create(&placements, Placement::new("other", PlacementSpec::default())).await;
    until_selected(&placements, "other", 2).await;
    for (name, edit, _) in nonsense() {
        assert_eq!(decisions(&world, &namespace, name).await, names(["one"]), "{name}");
        let field = edit.as_object().and_then(|edit| edit.keys().next()).expect("an edit is of a field");
        change(&placements, name, json!({ "spec": { field: null } })).await;
        let corrected = until_selected(&placements, name, 2).await;
        assert!(!is_misconfigured(&corrected), "{name}");
    }
    hub.stop().await;
}

async fn sets_that_are_not_bound_or_not_there_are_named(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    make_cluster(&world, "one", "default").await;
    let namespace = bound_namespace(&world, "default").await;
    let placements = placements(&world, &namespace);
    create(&placements, placement("all", json!({}))).await;
    until_selected(&placements, "all", 1).await;

    let bindings = Api::<ManagedClusterSetBinding>::namespaced(world.client(), &namespace);
    let spec = ManagedClusterSetBindingSpec { cluster_set: "missing".to_owned() };
    create(&bindings, ManagedClusterSetBinding::new("missing", spec)).await;
    let unbound = wait::until(&bindings, "missing", "it is not bound", |binding| {
        let conditions = binding.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        condition(conditions, "Bound") == Some(("False", "ClusterSetNotFound"))
    })
    .await;
    let told = &unbound.status.expect("it was waited for").conditions[0].message;
    assert!(told.contains("there is no ManagedClusterSet missing"), "{told}");

    create(&placements, placement("elsewhere", json!({ "clusterSets": ["global", "missing"] }))).await;
    let elsewhere = wait::until(&placements, "elsewhere", "it says why it selects nothing", |placement| {
        satisfied(placement) == Some(("False", "NoIntersection"))
    })
    .await;
    let told = message(&elsewhere, "PlacementSatisfied");
    assert!(told.contains("or which do not exist: global, missing"), "{told}");
    // A set that is bound counts, whatever stands beside it.
    create(&placements, placement("both", json!({ "clusterSets": ["default", "missing"] }))).await;
    until_selected(&placements, "both", 1).await;
    assert_eq!(decisions(&world, &namespace, "all").await, names(["one"]));
    hub.stop().await;
}

async fn a_set_whose_selector_makes_no_sense_keeps_its_clusters(world: World) {
    let client = as_hub(&world).await;
    let hub = start(client.clone(), None).await;
    make_cluster(&world, "one", "default").await;
    label(&world, "one", "env", "prod").await;
    let sets = Api::<ManagedClusterSet>::all(world.client());
    let selector = |operator: &str| {
        json!({ "clusterSelector": { "selectorType": "LabelSelector", "labelSelector": {
            "matchExpressions": [{ "key": "env", "operator": operator, "values": ["prod"] }],
        } } })
    };
    let spec = serde_json::from_value(selector("In")).expect("a set");
    create(&sets, ManagedClusterSet::new("production", spec)).await;
    let namespace = bound_namespace(&world, "production").await;
    let placements = placements(&world, &namespace);
    create(&placements, placement("all", json!({}))).await;
    until_selected(&placements, "all", 1).await;

    change(&sets, "production", json!({ "spec": selector("in") })).await;
    let told = wait::until(&sets, "production", "it says that it makes no sense", |set| {
        let conditions = set.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        condition(conditions, "ClusterSetEmpty") == Some(("False", "Misconfigured"))
    })
    .await;
    let told = &told.status.expect("it was waited for").conditions[0].message;
    assert!(told.contains(r#"the operator "in" of "env""#), "{told}");
    create(&placements, placement("later", json!({}))).await;
    until_selected(&placements, "later", 1).await;
    assert_eq!(decisions(&world, &namespace, "all").await, names(["one"]));
    hub.stop().await;

    // A hub that never knew which clusters they were.
    let hub = start(client, None).await;
    let told = wait::until(&placements, "all", "it says that the set makes no sense", is_misconfigured).await;
    let told = message(&told, "PlacementMisconfigured");
    assert!(told.contains("the set production clusterSelector.labelSelector"), "{told}");
    assert_eq!(decisions(&world, &namespace, "all").await, names(["one"]));
    change(&sets, "production", json!({ "spec": selector("NotIn") })).await;
    until_selected(&placements, "all", 0).await;
    hub.stop().await;
}

async fn one_placement_that_can_not_be_read_holds_up_nobody(world: World) {
    let client = as_hub(&world).await;
    let hub = start(client.clone(), None).await;
    make_cluster(&world, "one", "default").await;
    let namespace = bound_namespace(&world, "default").await;
    let placements = placements(&world, &namespace);
    create(&placements, placement("odd", json!({}))).await;
    until_selected(&placements, "odd", 1).await;
    // A server that is less strict than ours stores what nobody can read.
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/numberOfClusters";
    let loose = json!([
        { "op": "remove", "path": format!("{field}/type") },
        { "op": "remove", "path": format!("{field}/format") },
        { "op": "add", "path": format!("{field}/x-kubernetes-preserve-unknown-fields"), "value": true },
    ]);
    let crd = "crd/placements.cluster.open-cluster-management.io";
    world.kubectl(["patch", crd, "--type=json", "-p", &loose.to_string()]).await.success();
    let odd = r#"{"spec":{"numberOfClusters":"many"}}"#;
    let patch = ["--namespace", &namespace, "patch", "placement", "odd", "--type=merge", "-p"];
    world.kubectl(patch.into_iter().chain([odd])).await.success();

    create(&placements, placement("plain", json!({}))).await;
    until_selected(&placements, "plain", 1).await;
    hub.stop().await;
    // A hub that never saw it readable.
    let hub = start(client, None).await;
    make_cluster(&world, "two", "default").await;
    create(&placements, placement("later", json!({}))).await;
    until_selected(&placements, "later", 2).await;
    assert_eq!(decisions(&world, &namespace, "odd").await, names(["one"]), "what can not be read is not gone");
    world.kubectl(patch.into_iter().chain([r#"{"spec":{"numberOfClusters":null}}"#])).await.success();
    until_selected(&placements, "odd", 2).await;
    hub.stop().await;
}
