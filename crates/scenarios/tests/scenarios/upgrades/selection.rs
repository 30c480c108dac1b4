//! Which clusters are upgraded, and what becomes of those that come and go meanwhile.

use std::time::Duration;

use drover_api::{
    cluster::{ManagedClusterSet, ManagedClusterSetBinding},
    names::{CLUSTER_SET_LABEL, LOCAL_CLUSTER_LABEL, UPGRADE_HUB_ANNOTATION},
};
use drover_engine::upgrade::naming::part_name;
use drover_testkit::{
    World,
    objects::{self, Described as _},
    wait,
};
use kube::{Api, api::DeleteParams};
use serde_json::json;

use super::{Field, HOME, TO, UPGRADE, message, said, spokes::Platform};
use crate::running::{change, create, reach, select};

drover_testkit::scenarios! {
    Own {
        decision_11_placements_and_selector_are_a_union_and_the_selector_obeys_bindings,
        decision_12_that_nobody_is_selected_is_told_with_the_reason,
        decision_13_who_has_not_begun_leaves_and_its_pre_action_is_withdrawn,
        decisions_14_and_17_who_is_begun_stays_in_the_count_and_a_finished_one_stays_finished,
        decision_15_an_unreachable_cluster_is_not_left_out_at_once,
        decisions_16_and_71_who_joins_later_is_upgraded_too,
        decision_18_another_cluster_of_the_same_name_starts_afresh,
        decision_19_the_hub_s_own_cluster_is_left_alone_or_comes_last,
        decision_10c_the_name_of_a_cluster_is_its_label_or_else_its_own,
    }
}

/// Puts clusters into a set, to which the namespace is bound.
async fn in_set(field: &Field, set: &str, clusters: &[&str]) {
    let spec = json!({ "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet",
        "metadata": { "name": set }, "spec": { "clusterSelector": { "selectorType": "ExclusiveClusterSetLabel" } } });
    let sets = Api::<ManagedClusterSet>::all(field.world.client());
    create(&sets, serde_json::from_value(spec).expect("a set")).await;
    for cluster in clusters {
        change(&field.managed(), cluster, json!({ "metadata": { "labels": { (CLUSTER_SET_LABEL): set } } })).await;
    }
}

async fn bind(field: &Field, set: &str) {
    let spec = serde_json::from_value(json!({ "clusterSet": set })).expect("a binding");
    create(&Api::namespaced(field.world.client(), HOME), ManagedClusterSetBinding::new(set, spec)).await;
}

async fn decision_11_placements_and_selector_are_a_union_and_the_selector_obeys_bindings(world: World) {
    let field = Field::of(world, &["a", "b", "c"]).await;
    in_set(&field, "dev", &["b", "c"]).await;
    field.select(&["a", "b"]).await;
    select(&field.world, HOME, "more", &["a"]).await;
    let placement = json!([{ "namespace": HOME, "name": "all" }, { "namespace": HOME, "name": "more" }]);
    let selector = json!({ "clusterSets": ["dev"], "matchExpressions": [{ "key": "name", "operator": "In", "values": ["a", "b", "c"] }] });
    field.upgrade(json!({ "maxConcurrency": 3 }), json!({ "placement": placement, "clusterSelector": selector })).await;
    let status = field.counts([2, 2, 0, 2, 0, 0]).await;
    assert!(message(&status, "Selected").contains("make a ManagedClusterSetBinding"), "{status:?}");
    assert_eq!(field.place("c").await, None, "no binding lets the namespace have it");

    bind(&field, "dev").await;
    field.is_at("c", "Complete/Upgraded").await;
    let status = field.counts([3, 3, 0, 3, 0, 0]).await;
    assert_eq!(message(&status, "Selected"), "ManagedClusters upgrade select 3 clusters");
    field.hub.stop().await;
}

async fn decision_12_that_nobody_is_selected_is_told_with_the_reason(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.select(&[]).await;
    let satisfied = json!({ "type": "PlacementSatisfied", "status": "False", "reason": "AllManagedClusterSetsEmpty",
        "message": "All ManagedClusterSets have no member", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    crate::running::count(
        &field.world,
        HOME,
        "all",
        json!({ "numberOfSelectedClusters": 0, "conditions": [satisfied] }),
    )
    .await;
    field.upgrade(json!({}), json!({})).await;
    let status = field.says("Selected", "False/NoClustersSelected").await;
    assert!(message(&status, "Selected").contains("All ManagedClusterSets have no member"), "{status:?}");
    assert_eq!(said(&status, "Complete").as_deref(), Some("False/ManagedClustersUpgradeNotStarted"));
    assert_eq!(status.phase.map(|phase| format!("{phase:?}")).as_deref(), Some("Waiting"));

    field.select(&["a"]).await;
    field.is_complete().await;
    field.hub.stop().await;
}

async fn decision_13_who_has_not_begun_leaves_and_its_pre_action_is_withdrawn(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.behave("a", |spoke| spoke.pre_action = super::spokes::Doing::Runs).await;
    let rest = json!({ "preUpgradeAction": super::action("backup") });
    field.upgrade(json!({ "maxConcurrency": 2 }), rest).await;
    field.is_at("a", "PreAction/PreActionRunning").await;
    field.is_at("b", "Complete/Upgraded").await;

    field.select(&["b"]).await;
    wait::gone(&field.records("a"), &part_name(HOME, UPGRADE)).await;
    field.has_parts("a", &[]).await;
    field.is_nobodys("a").await;
    field.is_complete().await;
    assert_eq!(field.spokes.get("a").version, super::spokes::FROM, "it was not touched");
    field.hub.stop().await;
}

async fn decisions_14_and_17_who_is_begun_stays_in_the_count_and_a_finished_one_stays_finished(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.platforms(&["a"], Platform::Moves).await;
    let rest = json!({ "ocpOperators": super::operators(), "postUpgradeAction": super::action("check") });
    field.upgrade(json!({ "maxConcurrency": 2 }), rest).await;
    field.is_at("a", "Upgrading/Upgrading").await;
    let done = field.is_at("b", "Complete/Upgraded").await;

    field.select(&[]).await;
    field.settle().await;
    field.platforms(&["a"], Platform::Completes).await;
    let record = field.is_at("a", "Complete/Upgraded").await.status.expect("it was waited for");
    assert!(record.operators_completed.is_some() && record.post_action.is_some(), "it went to the very end");
    field.counts([2, 2, 0, 2, 0, 0]).await;

    field.select(&["a", "b"]).await;
    field.settle().await;
    let again = field.is_at("b", "Complete/Upgraded").await;
    assert_eq!(again.status, done.status, "it was not upgraded once more");
    field.hub.stop().await;
}

async fn decision_15_an_unreachable_cluster_is_not_left_out_at_once(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.platforms(&["a", "b"], Platform::Moves).await;
    field.upgrade(json!({ "maxConcurrency": 1 }), json!({})).await;
    field.counts([2, 1, 1, 0, 0, 1]).await;
    let waiting = if field.place("a").await.as_deref() == Some("Upgrading/Upgrading") { "b" } else { "a" };
    let begun = if waiting == "a" { "b" } else { "a" };

    let now = field.clock.clock().now().to_string();
    let condition = json!({ "type": "ManagedClusterConditionAvailable", "status": "Unknown", "reason": "Scenario",
        "message": "", "lastTransitionTime": now });
    let status = kube::api::Patch::Merge(json!({ "status": { "conditions": [condition] } }));
    field.managed().patch_status(waiting, &kube::api::PatchParams::default(), &status).await.expect("a status");
    field.is_at(waiting, "Waiting/Offline").await;
    field.select(&[begun]).await;
    field.settle().await;
    assert_eq!(field.place(waiting).await.as_deref(), Some("Waiting/Offline"), "a network failure is no deselection");

    field.clock.advance(Duration::from_mins(5));
    wait::gone(&field.records(waiting), &part_name(HOME, UPGRADE)).await;
    field.hub.stop().await;
}

async fn decisions_16_and_71_who_joins_later_is_upgraded_too(world: World) {
    let field = Field::of(world, &["a", "b", "c"]).await;
    field.select(&["a"]).await;
    field.upgrade(json!({ "maxConcurrency": 2, "canaryClusters": super::canary(&["a", "c"]) }), json!({})).await;
    let passed = field.is_complete().await.canaries_passed;
    assert!(passed.is_some());

    field.platforms(&["c"], Platform::Moves).await;
    field.select(&["a", "b", "c"]).await;
    field.is_at("b", "Complete/Upgraded").await;
    field.platforms(&["c"], Platform::Completes).await;
    let status = field.is_complete().await;
    assert_eq!(status.canaries_passed, passed, "the gate is not shut again for one that joins later");
    field.hub.stop().await;
}

async fn decision_18_another_cluster_of_the_same_name_starts_afresh(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.upgrade(json!({}), json!({})).await;
    let first = field.is_at("a", "Complete/Upgraded").await;
    field.managed().delete("a", &DeleteParams::default()).await.expect("a cluster can be removed");
    wait::gone(&field.records("a"), &part_name(HOME, UPGRADE)).await;

    field.behave("a", |spoke| super::spokes::FROM.clone_into(&mut spoke.version)).await;
    create(&field.managed(), objects::cluster("a")).await;
    reach(&field.world, "a", "True").await;
    let second = field.is_at("a", "Complete/Upgraded").await;
    assert_ne!(first.metadata.uid, second.metadata.uid);
    assert_ne!(first.spec.cluster_uid, second.spec.cluster_uid);
    assert_eq!(field.spokes.get("a").version, TO);
    field.hub.stop().await;
}

async fn decision_19_the_hub_s_own_cluster_is_left_alone_or_comes_last(world: World) {
    let field = Field::of(world, &["a"]).await;
    let hub = objects::cluster("hub").labelled(LOCAL_CLUSTER_LABEL, "true");
    field.world.namespace_named("hub").await;
    create(&field.managed(), hub).await;
    reach(&field.world, "hub", "True").await;
    field.platforms(&["a"], Platform::Moves).await;
    field.select(&["a", "hub"]).await;
    field.upgrade(json!({ "maxConcurrency": 2 }), json!({})).await;
    field.is_at("hub", "Waiting/HubItself").await;
    field.is_at("a", "Upgrading/Upgrading").await;

    field.annotate(UPGRADE_HUB_ANNOTATION, "true").await;
    field.is_at("hub", "Waiting/HubComesLast").await;
    field.platforms(&["a"], Platform::Completes).await;
    field.is_at("hub", "Complete/Upgraded").await;
    field.hub.stop().await;
}

async fn decision_10c_the_name_of_a_cluster_is_its_label_or_else_its_own(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    in_set(&field, "dev", &["a", "b"]).await;
    bind(&field, "dev").await;
    change(&field.managed(), "b", json!({ "metadata": { "labels": { "name": "other" } } })).await;
    let selector = json!({ "matchExpressions": [{ "key": "name", "operator": "In", "values": ["a", "b"] }] });
    field.upgrade(json!({}), json!({ "placement": [], "clusterSelector": selector })).await;
    field.counts([1, 1, 0, 1, 0, 0]).await;
    assert_eq!(field.place("b").await, None);
    change(&field.managed(), "b", json!({ "metadata": { "labels": { "name": null } } })).await;
    field.is_at("b", "Complete/Upgraded").await;
    field.hub.stop().await;
}
