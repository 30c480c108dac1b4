//! How a change of a template reaches the clusters.

use std::time::Duration;

use drover_api::{
    names::{
        DECISION_GROUP_INDEX_LABEL, DECISION_GROUP_NAME_LABEL, MANIFESTWORK_APPLIED, PLACEMENT_ROLLED_OUT,
        PROVEN_ANNOTATION,
    },
    work::ManifestWork,
};
use drover_engine::work::replica_set::naming::work_name;
use drover_testkit::{World, play::Behaviour, wait};
use kube::ResourceExt as _;
use serde_json::json;

use super::{Field, HOME, SET, message, one_at_a_time, said, template};
use crate::running::{change, condition, count, decide, has_placement, reach};

drover_testkit::scenarios! {
    Own {
        a_change_reaches_clusters_in_waves,
        groups_come_one_after_the_other,
        where_a_rule_says_when_it_is_done_that_is_waited_for,
        clusters_that_fail_on_their_old_template_wait_for_a_slot,
        cluster_in_flight_to_a_former_template_keeps_its_slot,
        too_many_failures_stop_a_change_and_a_better_one_goes_on,
        a_cluster_that_takes_too_long_has_failed,
        a_cluster_has_to_stay_well_before_the_next_begins,
        who_turns_unwell_after_a_rollout_holds_up_no_newcomer,
        an_offline_cluster_holds_up_nobody_and_catches_up,
    }
}

async fn a_change_reaches_clusters_in_waves(world: World) {
    let clusters = ["a", "b", "c"];
    let field = Field::of_one_placement(world, &clusters, one_at_a_time()).await;
    field.behave(&clusters, Behaviour::Silent);
    field.roll_out("v2").await;
    for (index, cluster) in clusters.iter().enumerate() {
        field.is_given(cluster, "v2").await;
        let done = i64::try_from(index).expect("small");
        field.counts(SET, [3, 3, done + 1, done, done, 1, 0]).await;
        field.settle().await;
        assert_eq!(field.clusters_on("v2").await, clusters[..=index], "by name, and not before the last one is done");
        field.behave(&[cluster], Behaviour::Well);
    }
    field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    field.hub.stop().await;
}

async fn groups_come_one_after_the_other(world: World) {
    let field = Field::new(world).await;
    let clusters = ["a", "b", "c", "d", "e"];
    field.clusters(&clusters).await;
    has_placement(&field.world, HOME, "all").await;
    let slices: [(&str, &str, &str, &[&str]); 3] =
        [("all-1", "0", "rest", &["a", "b"]), ("all-2", "1", "canaries", &["c", "d"]), ("all-3", "2", "last", &["e"])];
    for (slice, index, name, group) in slices {
        let labels = [(DECISION_GROUP_INDEX_LABEL, index), (DECISION_GROUP_NAME_LABEL, name)];
        decide(&field.world, (HOME, slice), "all", &labels, group).await;
    }
    let group = |index: i32, name: &str, count: i32| json!({ "decisionGroupIndex": index, "decisionGroupName": name, "decisions": [], "clusterCount": count });
    let groups = [group(0, "rest", 2), group(1, "canaries", 2), group(2, "last", 1)];
    let status = json!({ "numberOfSelectedClusters": 5, "decisionGroups": groups, "conditions": [] });
    count(&field.world, HOME, "all", status).await;
    let mandatory = json!({ "mandatoryDecisionGroups": [{ "groupName": "canaries" }] });
    let strategy = json!({ "type": "ProgressivePerGroup", "progressivePerGroup": mandatory });
    field.behave(&clusters, Behaviour::Silent);
    field.make(SET, json!([{ "name": "all", "rolloutStrategy": strategy }]), "v1").await;

    let waves: [(&[&str], i64, i64); 3] = [(&["c", "d"], 0, 2), (&["a", "b"], 2, 4), (&["e"], 4, 5)];
    for (wave, before, after) in waves {
        let status = field.counts(SET, [5, after, after, before, before, after - before, 0]).await;
        let groups = status.placement_summary[0].available_decision_groups.clone();
        assert_eq!(groups, Some(format!("3 ({before} / 5 clusters applied)")));
        field.settle().await;
        assert_eq!(i64::try_from(field.versions().await.len()), Ok(after));
        for cluster in wave {
            field.is_given(cluster, "v1").await;
        }
        field.behave(wave, Behaviour::Well);
    }
    field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    field.hub.stop().await;
}

async fn where_a_rule_says_when_it_is_done_that_is_waited_for(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["a", "b"]).await;
    field.select("all", &["a", "b"]).await;
    field.behave(&["a", "b"], Behaviour::Silent);
    field.make(SET, json!([{ "name": "all", "rolloutStrategy": one_at_a_time() }]), "v1").await;
    let rule = |condition: &str| json!({ "condition": condition, "type": "CEL", "celExpressions": ["false"] });
    let mut told = template("v2");
    told["manifestConfigs"] = json!([{
        "resourceIdentifier": { "resource": "configmaps", "namespace": "default", "name": "hello" },
        "conditionRules": [rule("Progressing"), rule("Degraded")],
    }]);
    field.is_given("a", "v1").await;
    change(&field.sets(), SET, json!({ "spec": { "manifestWorkTemplate": told } })).await;
    field.is_given("a", "v2").await;

    field.report("a", &[("Applied", "True"), ("Available", "True")]).await;
    field.counts(SET, [2, 1, 1, 1, 1, 1, 0]).await;
    let well = [("Applied", "True"), ("Available", "True"), ("Progressing", "True"), ("Degraded", "False")];
    field.report("a", &well).await;
    field.settle().await;
    assert_eq!(field.clusters_on("v2").await, ["a"], "it is still coming up");
    field
        .report("a", &[("Applied", "True"), ("Available", "True"), ("Progressing", "False"), ("Degraded", "False")])
        .await;
    field.is_given("b", "v2").await;

    field
        .report("b", &[("Applied", "True"), ("Available", "True"), ("Progressing", "True"), ("Degraded", "True")])
        .await;
    let status = field.counts(SET, [2, 2, 2, 2, 2, 1, 1]).await;
    assert_eq!(said(&status, MANIFESTWORK_APPLIED).as_deref(), Some("False/NotAsExpected"));
    assert!(message(&status, PLACEMENT_ROLLED_OUT).contains("1 failed, where 0 may"), "{status:?}");
    field.hub.stop().await;
}

async fn fail_on_old_template(field: &Field, cluster: &str) {
    field.behave(&[cluster], Behaviour::Fails);
    let fails = |work: &ManifestWork| {
        let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        condition(conditions, "Applied").is_some_and(|(status, _)| status == "False")
    };
    wait::until(&field.works(cluster), &work_name(HOME, SET), "it fails on its old template", fails).await;
}

async fn clusters_that_fail_on_their_old_template_wait_for_a_slot(world: World) {
    let clusters = ["a", "b", "c"];
    let field = Field::of_one_placement(world, &clusters, one_at_a_time()).await;
    field.behave(&clusters, Behaviour::Silent);
    field.roll_out("v2").await;
    field.is_given("a", "v2").await;
    fail_on_old_template(&field, "b").await;
    fail_on_old_template(&field, "c").await;
    field.settle().await;
    assert_eq!(field.clusters_on("v2").await, ["a"]);
    field.behave(&["a"], Behaviour::Well);
    field.is_given("b", "v2").await;
    field.settle().await;
    assert_eq!(field.clusters_on("v2").await, ["a", "b"]);
    field.behave(&clusters, Behaviour::Well);
    field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    field.hub.stop().await;
}

/// A cluster that fails on the template it ran comes before others, and not before one in flight.
async fn cluster_in_flight_to_a_former_template_keeps_its_slot(world: World) {
    let clusters = ["a", "b", "c"];
    let field = Field::of_one_placement(world, &clusters, one_at_a_time()).await;
    field.behave(&clusters, Behaviour::Silent);
    reach(&field.world, "a", "Unknown").await;
    field.roll_out("v2").await;
    field.is_given("b", "v2").await;
    reach(&field.world, "a", "True").await;
    fail_on_old_template(&field, "a").await;
    field.settle().await;
    let field = field.restart().await;
    field.roll_out("v3").await;
    field.is_given("b", "v3").await;
    field.settle().await;
    assert_eq!(field.clusters_on("v3").await, ["b"]);
    field.behave(&["b"], Behaviour::Well);
    field.is_given("a", "v3").await;
    field.behave(&clusters, Behaviour::Well);
    field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    field.hub.stop().await;
}

async fn too_many_failures_stop_a_change_and_a_better_one_goes_on(world: World) {
    let strategy = json!({ "type": "Progressive", "progressive": { "maxConcurrency": 1, "maxFailures": 1 } });
    let clusters = ["a", "b", "c", "d"];
    let field = Field::of_one_placement(world, &clusters, strategy).await;
    field.behave(&clusters, Behaviour::Fails);
    field.counts(SET, [4, 4, 4, 0, 4, 0, 0]).await;
    field.roll_out("v2").await;
    field.counts(SET, [4, 4, 1, 0, 0, 0, 0]).await;
    field.clock.advance(Duration::from_mins(1));
    field.counts(SET, [4, 4, 2, 0, 0, 0, 0]).await;
    field.clock.advance(Duration::from_mins(1));
    let is_halted = "2 failed, where 1 may: nothing new is begun until one of them succeeds or the template changes";
    field.has_status(SET, is_halted, |status| message(status, PLACEMENT_ROLLED_OUT).contains(is_halted)).await;
    field.settle().await;
    assert_eq!(field.clusters_on("v2").await, ["a", "b"]);

    field.behave(&clusters, Behaviour::Well);
    field.roll_out("v3").await;
    field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    assert_eq!(field.clusters_on("v3").await, clusters);
    field.hub.stop().await;
}

async fn a_cluster_that_takes_too_long_has_failed(world: World) {
    let strategy = json!({ "type": "Progressive", "progressive": { "maxConcurrency": 1, "progressDeadline": "1h" } });
    let field = Field::of_one_placement(world, &["a", "b"], strategy).await;
    field.behave(&["a", "b"], Behaviour::Silent);
    field.roll_out("v2").await;
    field.counts(SET, [2, 2, 1, 0, 0, 1, 0]).await;
    let field = field.restart().await;
    field.clock.advance(Duration::from_hours(1));
    let has_failed = |status: &_| message(status, PLACEMENT_ROLLED_OUT).contains("1 failed, where 0 may");
    field.has_status(SET, "it has failed", has_failed).await;
    assert_eq!(field.clusters_on("v2").await, ["a"]);
    field.behave(&["a", "b"], Behaviour::Well);
    field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    field.hub.stop().await;
}

/// What counts is when the hub saw it well, though the conditions are older, and another hub goes on counting.
async fn a_cluster_has_to_stay_well_before_the_next_begins(world: World) {
    let strategy = json!({ "type": "Progressive", "progressive": { "maxConcurrency": 1, "minSuccessTime": "10m" } });
    let field = Field::new(world).await;
    field.clusters(&["a", "b"]).await;
    field.select("all", &["a", "b"]).await;
    field.behave(&["a", "b"], Behaviour::Silent);
    field.make(SET, json!([{ "name": "all", "rolloutStrategy": strategy }]), "v1").await;
    field.is_given("a", "v1").await;
    field.report("a", &[("Applied", "True"), ("Available", "True")]).await;
    let is_noted = |work: &ManifestWork| work.annotations().contains_key(PROVEN_ANNOTATION);
    wait::until(&field.works("a"), &work_name(HOME, SET), "it is noted as well", is_noted).await;
    field.clock.advance(Duration::from_mins(6));
    let field = field.restart().await;
    field.settle().await;
    assert_eq!(field.clusters_on("v1").await, ["a"]);
    field.clock.advance(Duration::from_mins(4));
    field.is_given("b", "v1").await;
    field.hub.stop().await;
}

async fn who_turns_unwell_after_a_rollout_holds_up_no_newcomer(world: World) {
    let field = Field::of_one_placement(world, &["a", "b"], one_at_a_time()).await;
    field.behave(&["a"], Behaviour::Fails);
    let status = field.counts(SET, [2, 2, 2, 1, 2, 0, 0]).await;
    assert_eq!(said(&status, PLACEMENT_ROLLED_OUT).as_deref(), Some("True/Complete"));
    assert_eq!(said(&status, MANIFESTWORK_APPLIED).as_deref(), Some("False/NotAsExpected"));
    field.clock.advance(Duration::from_hours(1));
    let field = field.restart().await;
    field.clusters(&["c"]).await;
    field.select("all", &["a", "b", "c"]).await;
    field.is_given("c", "v1").await;
    field.counts(SET, [3, 3, 3, 2, 3, 0, 0]).await;
    field.hub.stop().await;
}

async fn an_offline_cluster_holds_up_nobody_and_catches_up(world: World) {
    let field = Field::of_one_placement(world, &["a", "b"], one_at_a_time()).await;
    reach(&field.world, "a", "Unknown").await;
    field.roll_out("v2").await;
    field.is_given("b", "v2").await;
    let status = field.counts(SET, [2, 2, 1, 1, 1, 0, 0]).await;
    assert_eq!(said(&status, PLACEMENT_ROLLED_OUT).as_deref(), Some("False/Progressing"));
    assert!(message(&status, PLACEMENT_ROLLED_OUT).contains("1 can not be reached"), "{status:?}");
    reach(&field.world, "a", "True").await;
    field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    assert_eq!(field.clusters_on("v2").await, ["a", "b"]);
    field.hub.stop().await;
}
