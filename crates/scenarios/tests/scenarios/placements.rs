//! Placements on a real Kubernetes: what they select, what they follow, and what they say of it.

mod bad_input;
mod never_missing;
mod tables;

use std::{collections::BTreeSet, time::Duration};

use drover_api::{
    cluster::{
        AddOnPlacementScore, AddOnPlacementScoreSpec, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding,
        ManagedClusterSetBindingSpec, ManagedClusterSetSpec, Placement, PlacementDecision, PlacementSpec,
    },
    names::{
        CLUSTER_CLOCK_SYNCED, DECISION_GROUP_INDEX_LABEL, DECISION_GROUP_NAME_LABEL, PLACEMENT_LABEL, UNREACHABLE_TAINT,
    },
};
use drover_runtime::clock::after;
use drover_testkit::{World, play::Agent, wait};
use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};

use crate::running::{
    as_hub, bound_namespace, change, condition, create, hub_clock, make_cluster, satisfied, selected, start, start_at,
};

drover_testkit::scenarios! {
    Own {
        a_placement_selects_follows_and_explains,
        a_taint_is_tolerated_for_as_long_as_the_placement_says,
        a_cluster_that_can_not_be_reached_leaves_and_comes_back,
        a_cluster_that_is_being_deleted_is_dropped,
        the_best_scores_decide_for_as_long_as_they_are_valid,
        clusters_are_spread_as_far_as_there_are_any,
        groups_are_written_on_the_decisions,
    }
}

/// A placement as its author writes it.
fn placement(name: &str, spec: Value) -> Placement {
    Placement::new(name, serde_json::from_value(spec).expect("a placement"))
}

fn placements(world: &World, namespace: &str) -> Api<Placement> {
    Api::namespaced(world.client(), namespace)
}

/// The clusters that a slice lists, in its order.
fn listed(slice: &PlacementDecision) -> Vec<&str> {
    let decisions = slice.status.iter().flat_map(|status| &status.decisions);
    decisions.map(|decision| decision.cluster_name.as_str()).collect()
}

/// The slices of a placement, and nobody else's.
fn of(placement: &str) -> String {
    format!("{PLACEMENT_LABEL}={placement}")
}

/// The clusters in all slices of a placement.
async fn decisions(world: &World, namespace: &str, placement: &str) -> BTreeSet<String> {
    let slices = Api::<PlacementDecision>::namespaced(world.client(), namespace);
    let slices = slices.list(&ListParams::default().labels(&of(placement))).await.expect("decisions can be read");
    slices.iter().flat_map(listed).map(str::to_owned).collect()
}

fn names<const N: usize>(clusters: [&str; N]) -> BTreeSet<String> {
    clusters.map(str::to_owned).into()
}

/// What a condition of a placement says in words.
fn message(placement: &Placement, type_: &str) -> String {
    let conditions = placement.status.iter().flat_map(|status| &status.conditions);
    conditions.filter(|condition| condition.type_ == type_).map(|condition| condition.message.clone()).collect()
}

/// Waits until a placement has selected so many clusters, and says so of its latest edit.
async fn until_selected(placements: &Api<Placement>, name: &str, count: i32) -> Placement {
    wait::until(placements, name, &format!("it selects {count}"), |placement| {
        let conditions = placement.status.iter().flat_map(|status| &status.conditions);
        let mut observed = conditions.map(|condition| condition.observed_generation);
        selected(placement) == Some(count) && observed.all(|generation| generation == placement.metadata.generation)
    })
    .await
}

async fn label(world: &World, cluster: &str, key: &str, value: &str) {
    let clusters = Api::<ManagedCluster>::all(world.client());
    change(&clusters, cluster, json!({ "metadata": { "labels": { key: value } } })).await;
}

/// Waits until the hub has seen that so many clusters have a label and are well. A placement that is made now decides on all of
/// them at once; one that is made before keeps whom it found first.
async fn until_seen(placements: &Api<Placement>, key: &str, count: i32) {
    let labels = json!({ "matchExpressions": [{ "key": key, "operator": "Exists" }] });
    let spec = json!({ "predicates": [{ "requiredClusterSelector": { "labelSelector": labels } }] });
    create(placements, placement("seen", spec)).await;
    until_selected(placements, "seen", count).await;
}

async fn a_placement_selects_follows_and_explains(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    for number in 0..103 {
        make_cluster(&world, &format!("cluster-{number:03}"), "production").await;
    }
    let namespace = world.namespace("placing").await;
    let placements = placements(&world, &namespace);
    create(&placements, Placement::new("all", PlacementSpec::default())).await;
    wait::until(&placements, "all", "it says that nothing is bound", |placement| {
        satisfied(placement) == Some(("False", "NoManagedClusterSetBindings"))
    })
    .await;

    create(
        &Api::<ManagedClusterSet>::all(world.client()),
        ManagedClusterSet::new("production", ManagedClusterSetSpec::default()),
    )
    .await;
    let spec = ManagedClusterSetBindingSpec { cluster_set: "production".to_owned() };
    create(&Api::namespaced(world.client(), &namespace), ManagedClusterSetBinding::new("production", spec)).await;
    let placement = until_selected(&placements, "all", 103).await;
    assert_eq!(satisfied(&placement), Some(("True", "AllDecisionsScheduled")));
    assert_eq!(decisions(&world, &namespace, "all").await.len(), 103);
    let slices = Api::<PlacementDecision>::namespaced(world.client(), &namespace);
    let sizes = slices.list(&ListParams::default()).await.expect("decisions can be read");
    let sizes: Vec<_> = sizes.iter().map(|slice| listed(slice).len()).collect();
    assert_eq!(sizes, [100, 3], "slices hold at most 100 clusters");

    let clusters = Api::<ManagedCluster>::all(world.client());
    let taint = json!({ "spec": { "taints": [{ "key": "example.com/broken", "effect": "NoSelect" }] } });
    change(&clusters, "cluster-007", taint).await;
    let placement = until_selected(&placements, "all", 102).await;
    let told = message(&placement, "PlacementSatisfied");
    assert!(told.contains("102 of 103 clusters selected; left out: 1"), "{told}");
    assert!(!decisions(&world, &namespace, "all").await.contains("cluster-007"));

    placements.delete("all", &DeleteParams::default()).await.expect("a placement can be deleted");
    wait::gone(&slices, "all-decision-1").await;
    hub.stop().await;
}

async fn a_taint_is_tolerated_for_as_long_as_the_placement_says(world: World) {
    let clock = hub_clock();
    let hub = start_at(as_hub(&world).await, None, clock.clock()).await;
    for cluster in ["one", "two"] {
        make_cluster(&world, cluster, "default").await;
    }
    let namespace = bound_namespace(&world, "default").await;
    let placements = placements(&world, &namespace);
    let patient = json!({ "tolerations": [
        { "key": "example.com/maintenance", "operator": "Exists", "tolerationSeconds": 60 },
    ] });
    create(&placements, placement("patient", patient.clone())).await;
    create(&placements, Placement::new("strict", PlacementSpec::default())).await;
    until_selected(&placements, "patient", 2).await;
    until_selected(&placements, "strict", 2).await;

    let clusters = Api::<ManagedCluster>::all(world.client());
    let taint = json!({ "spec": { "taints": [{ "key": "example.com/maintenance", "effect": "NoSelect" }] } });
    change(&clusters, "one", taint).await;
    let tainted = wait::until(&clusters, "one", "the taint has a time", |one| {
        one.spec.taints.iter().any(|taint| taint.time_added.is_some())
    })
    .await;
    let added = tainted.spec.taints[0].time_added.clone().expect("it was waited for");
    assert_eq!(added.0.as_second(), clock.clock().now().as_second());
    until_selected(&placements, "strict", 1).await;

    clock.advance(Duration::from_secs(59));
    // What is decided now is decided 59 seconds later.
    create(&placements, placement("later", patient)).await;
    until_selected(&placements, "later", 2).await;
    assert_eq!(decisions(&world, &namespace, "patient").await, names(["one", "two"]));
    clock.advance(Duration::from_secs(1));
    for placement in ["patient", "later"] {
        let out = until_selected(&placements, placement, 1).await;
        let told = message(&out, "PlacementSatisfied");
        assert!(told.contains("1 with the taint example.com/maintenance not tolerated"), "{told}");
        assert_eq!(decisions(&world, &namespace, placement).await, names(["two"]));
    }
    hub.stop().await;
}

async fn a_cluster_that_can_not_be_reached_leaves_and_comes_back(world: World) {
    let clock = hub_clock();
    let hub = start_at(as_hub(&world).await, None, clock.clock()).await;
    let (silent, talking) = (Agent::join(&world, "silent").await, Agent::join(&world, "talking").await);
    let namespace = bound_namespace(&world, "default").await;
    let placements = placements(&world, &namespace);
    create(&placements, Placement::new("all", PlacementSpec::default())).await;
    until_selected(&placements, "all", 2).await;

    clock.advance(Duration::from_mins(4));
    talking.renew_lease_at(clock.clock().now()).await;
    let clusters = Api::<ManagedCluster>::all(world.client());
    wait::until(&clusters, "talking", "the hub has seen the renewal", |cluster| {
        cluster.status.iter().any(|status| condition(&status.conditions, CLUSTER_CLOCK_SYNCED).is_some())
    })
    .await;
    clock.advance(Duration::from_mins(1));
    let placement = until_selected(&placements, "all", 1).await;
    let told = message(&placement, "PlacementSatisfied");
    assert!(told.contains(&format!("1 with the taint {UNREACHABLE_TAINT} not tolerated")), "{told}");
    assert_eq!(decisions(&world, &namespace, "all").await, names(["talking"]));

    silent.renew_lease_at(clock.clock().now()).await;
    silent.report_available().await;
    until_selected(&placements, "all", 2).await;
    assert_eq!(decisions(&world, &namespace, "all").await, names(["silent", "talking"]));
    hub.stop().await;
}

async fn a_cluster_that_is_being_deleted_is_dropped(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    for cluster in ["one", "two"] {
        make_cluster(&world, cluster, "default").await;
    }
    let namespace = bound_namespace(&world, "default").await;
    let placements = placements(&world, &namespace);
    create(&placements, Placement::new("all", PlacementSpec::default())).await;
    until_selected(&placements, "all", 2).await;

    let clusters = Api::<ManagedCluster>::all(world.client());
    let mut held = clusters.get("two").await.expect("the cluster is there").finalizers().to_vec();
    held.push("example.com/held".to_owned());
    change(&clusters, "two", json!({ "metadata": { "finalizers": held } })).await;
    clusters.delete("two", &DeleteParams::default()).await.expect("a cluster can be deleted");

    let placement = until_selected(&placements, "all", 1).await;
    let told = message(&placement, "PlacementSatisfied");
    assert!(told.contains("1 being deleted"), "{told}");
    assert_eq!(decisions(&world, &namespace, "all").await, names(["one"]));
    clusters.get("two").await.expect("the cluster is still there");
    hub.stop().await;
}

/// Reports a score of a cluster, as an add-on does that measures it.
async fn score(world: &World, cluster: &str, value: i32, valid_until: Option<Timestamp>) {
    let scores = Api::<AddOnPlacementScore>::namespaced(world.client(), cluster);
    if scores.get_opt("capacity").await.expect("scores can be read").is_none() {
        let namespaces = Api::<Namespace>::all(world.client());
        wait::until(&namespaces, cluster, "the cluster has a namespace", |_| true).await;
        create(&scores, AddOnPlacementScore::new("capacity", AddOnPlacementScoreSpec {})).await;
    }
    let status = json!({ "scores": [{ "name": "free", "value": value }], "validUntil": valid_until.map(Time) });
    let status = kube::api::Patch::Merge(json!({ "status": status }));
    scores.patch_status("capacity", &kube::api::PatchParams::default(), &status).await.expect("a score is reported");
}

async fn the_best_scores_decide_for_as_long_as_they_are_valid(world: World) {
    let clock = hub_clock();
    let hub = start_at(as_hub(&world).await, None, clock.clock()).await;
    for (cluster, value) in [("one", 10), ("two", 20), ("three", 0)] {
        make_cluster(&world, cluster, "default").await;
        score(&world, cluster, value, None).await;
    }
    let namespace = bound_namespace(&world, "default").await;
    let free = json!({ "type": "AddOn", "addOn": { "resourceName": "capacity", "scoreName": "free" } });
    let best = json!({
        "numberOfClusters": 1,
        "prioritizerPolicy": { "mode": "Exact", "configurations": [{ "scoreCoordinate": free }] },
    });
    create(&placements(&world, &namespace), placement("best", best)).await;
    let slices = Api::<PlacementDecision>::namespaced(world.client(), &namespace);
    let is = |slice: &PlacementDecision, cluster| listed(slice) == [cluster];
    wait::until(&slices, "best-decision-1", "the best is selected", |slice| is(slice, "two")).await;

    let minute = Duration::from_mins(1);
    score(&world, "three", 90, Some(after(clock.clock().now(), minute))).await;
    wait::until(&slices, "best-decision-1", "another is better", |slice| is(slice, "three")).await;
    clock.advance(minute);
    wait::until(&slices, "best-decision-1", "its score counts no longer", |slice| is(slice, "two")).await;
    hub.stop().await;
}

async fn clusters_are_spread_as_far_as_there_are_any(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    let regions = [("eu-1", "eu"), ("eu-2", "eu"), ("eu-3", "eu"), ("eu-4", "eu"), ("us-1", "us"), ("us-2", "us")];
    for (cluster, region) in regions {
        make_cluster(&world, cluster, "default").await;
        label(&world, cluster, "region", region).await;
    }
    let namespace = bound_namespace(&world, "default").await;
    let placements = placements(&world, &namespace);
    until_seen(&placements, "region", 6).await;
    let over_regions = |action: &str| {
        let constraint =
            json!({ "topologyKey": "region", "topologyKeyType": "Label", "maxSkew": 1, "whenUnsatisfiable": action });
        json!({ "spreadConstraints": [constraint] })
    };
    let anyway = json!({ "numberOfClusters": 4, "spreadPolicy": over_regions("ScheduleAnyway") });
    create(&placements, placement("anyway", anyway)).await;
    until_selected(&placements, "anyway", 4).await;
    assert_eq!(decisions(&world, &namespace, "anyway").await, names(["eu-1", "eu-2", "us-1", "us-2"]));
    change(&placements, "anyway", json!({ "spec": { "numberOfClusters": 5 } })).await;
    until_selected(&placements, "anyway", 5).await;

    let strict = json!({ "numberOfClusters": 6, "spreadPolicy": over_regions("DoNotSchedule") });
    create(&placements, placement("strict", strict)).await;
    let strict = until_selected(&placements, "strict", 5).await;
    assert_eq!(satisfied(&strict), Some(("False", "NotAllDecisionsScheduled")));
    let told = message(&strict, "PlacementSatisfied");
    assert!(told.contains("5 of 6 clusters selected, 1 more wanted; left out: 1 kept back by spread"), "{told}");
    hub.stop().await;
}

/// What the slices of a placement say: the index and the name of the group, and the clusters.
async fn groups(world: &World, namespace: &str, placement: &str) -> BTreeSet<(String, String, Vec<String>)> {
    let slices = Api::<PlacementDecision>::namespaced(world.client(), namespace);
    let slices = slices.list(&ListParams::default().labels(&of(placement))).await.expect("decisions can be read");
    let label = |slice: &PlacementDecision, key| slice.labels().get(key).cloned().unwrap_or_default();
    let group = |slice: &PlacementDecision| {
        let clusters = listed(slice).into_iter().map(str::to_owned).collect();
        (label(slice, DECISION_GROUP_INDEX_LABEL), label(slice, DECISION_GROUP_NAME_LABEL), clusters)
    };
    slices.iter().map(group).collect()
}

async fn groups_are_written_on_the_decisions(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    for number in 1..=5 {
        let cluster = format!("cluster-{number}");
        make_cluster(&world, &cluster, "default").await;
        label(&world, &cluster, "ring", if number == 4 { "canary" } else { "rest" }).await;
    }
    let namespace = bound_namespace(&world, "default").await;
    let placements = placements(&world, &namespace);
    until_seen(&placements, "ring", 5).await;
    let canary = json!({
        "groupName": "canary",
        "groupClusterSelector": { "labelSelector": { "matchLabels": { "ring": "canary" } } },
    });
    let strategy = json!({ "decisionGroups": [canary], "clustersPerDecisionGroup": 2 });
    create(&placements, placement("all", json!({ "decisionStrategy": { "groupStrategy": strategy } }))).await;
    until_selected(&placements, "all", 5).await;
    let group = |index: &str, name: &str, clusters: &[&str]| {
        (index.to_owned(), name.to_owned(), clusters.iter().map(|&cluster| cluster.to_owned()).collect())
    };
    let expected = [
        group("0", "canary", &["cluster-4"]),
        group("1", "", &["cluster-1", "cluster-2"]),
        group("2", "", &["cluster-3", "cluster-5"]),
    ];
    assert_eq!(groups(&world, &namespace, "all").await, expected.into());

    label(&world, "cluster-2", "ring", "canary").await;
    let placement = wait::until(&placements, "all", "the canaries are two", |placement| {
        let groups = placement.status.iter().flat_map(|status| &status.decision_groups);
        groups.into_iter().next().is_some_and(|group| group.cluster_count == 2)
    })
    .await;
    let told = placement.status.expect("it was waited for").decision_groups;
    let told: Vec<_> = told.iter().map(|group| (group.decision_group_index, group.cluster_count)).collect();
    assert_eq!(told, [(0, 2), (1, 1), (2, 2)]);
    let groups = groups(&world, &namespace, "all").await;
    assert!(groups.contains(&group("0", "canary", &["cluster-2", "cluster-4"])), "{groups:?}");
    assert!(groups.contains(&group("1", "", &["cluster-1"])), "the others stay where they are: {groups:?}");
    hub.stop().await;
}
