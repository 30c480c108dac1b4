//! What is done on clusters before and after.

use drover_api::{drover::ClusterUpgrade, names::RETRY_ANNOTATION};
use drover_engine::upgrade::naming::{Part, part_name};
use drover_testkit::{World, wait};
use kube::{ResourceExt as _, api::DeleteParams};
use serde_json::json;

use super::{
    Field, HOME, UPGRADE, action, canary,
    spokes::{Doing, Platform},
};

drover_testkit::scenarios! {
    Own {
        decisions_51_and_54_an_action_that_has_succeeded_stays_done_when_its_work_is_gone,
        decision_52_an_action_that_turns_bad_before_the_start_holds_its_cluster_up,
        decisions_53_and_55_works_of_failed_clusters_stay_until_a_retry,
        decision_56_a_retry_runs_only_what_failed,
        decisions_57_to_62_operators_are_asked_for_as_they_are_listed,
        jobs_of_an_action_are_waited_for_though_nothing_says_so,
    }
}

async fn decisions_51_and_54_an_action_that_has_succeeded_stays_done_when_its_work_is_gone(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.platforms(&["a"], Platform::Moves).await;
    field.behave("a", |spoke| spoke.pre_action = Doing::Fails).await;
    let rest = json!({ "preUpgradeAction": action("backup") });
    field.upgrade(json!({ "canaryClusters": canary(&["a"]) }), rest).await;
    field.is_at("a", "Waiting/PreActionDegraded").await;
    field.behave("a", |spoke| spoke.pre_action = Doing::Succeeds).await;
    let record = field.is_at("a", "Upgrading/Upgrading").await.status.expect("it was waited for");
    assert!(record.pre_action.is_some());
    let work = field.work("a", Part::PreAction).await;
    field.works("a").delete(&work.name_any(), &DeleteParams::default()).await.expect("a work can be removed");
    field.settle().await;
    assert!(!field.parts("a").await.contains(&"pre-action".to_owned()), "it is not done twice");
    let status = field.has("it is counted", |status| status.pre_upgrade_action_summary.is_some()).await;
    assert_eq!(status.pre_upgrade_action_summary.unwrap_or_default().available, 1);
    field.platforms(&["a"], Platform::Completes).await;
    field.is_complete().await;
    field.hub.stop().await;
}

async fn decision_52_an_action_that_turns_bad_before_the_start_holds_its_cluster_up(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.platforms(&["a", "b"], Platform::Moves).await;
    field.upgrade(json!({}), json!({ "preUpgradeAction": action("backup") })).await;
    field.counts([2, 1, 1, 0, 0, 1]).await;
    let begun = if field.place("a").await.as_deref() == Some("Upgrading/Upgrading") { "a" } else { "b" };
    let ready = if begun == "a" { "b" } else { "a" };
    field.is_at(ready, "PreAction/Prepared").await;
    field.behave(ready, |spoke| spoke.pre_action = Doing::Fails).await;
    field.is_at(ready, "Waiting/PreActionDegraded").await;
    field.platforms(&[begun], Platform::Completes).await;
    field.is_at(begun, "Complete/Upgraded").await;
    field.settle().await;
    field.is_at(ready, "Waiting/PreActionDegraded").await;
    field.hub.stop().await;
}

async fn decisions_53_and_55_works_of_failed_clusters_stay_until_a_retry(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.behave("a", |spoke| spoke.post_action = Doing::Fails).await;
    let rest = json!({ "preUpgradeAction": action("backup"), "postUpgradeAction": action("check") });
    field.upgrade(json!({ "maxConcurrency": 2 }), rest).await;
    field.says("Failed", "True/ManagedClustersUpgradeFinishedWithFailures").await;
    // What has turned bad when it is over is of no account.
    field.behave("b", |spoke| spoke.pre_action = Doing::Fails).await;
    field.is_at("b", "Complete/Upgraded").await;
    field.settle().await;
    field.has_parts("b", &[]).await;
    // They tell what went wrong.
    field.has_parts("a", &["platform", "post-action", "pre-action"]).await;

    field.behave("a", |spoke| spoke.post_action = Doing::Succeeds).await;
    field.annotate(RETRY_ANNOTATION, "1").await;
    field.is_complete().await;
    field.settle().await;
    field.has_parts("a", &[]).await;
    field.hub.stop().await;
}

async fn decision_56_a_retry_runs_only_what_failed(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.behave("a", |spoke| spoke.operators = Doing::Fails).await;
    let rest = json!({ "ocpOperators": super::operators(), "preUpgradeAction": action("backup") });
    field.upgrade(json!({}), rest).await;
    let failed = field.is_at("a", "Failed/OperatorsFailed").await.status.expect("it was waited for");
    let first = field.work("a", Part::Operators).await;
    field.annotate(RETRY_ANNOTATION, "1").await;
    field.has("it is taken up", |status| status.acknowledged.is_some()).await;
    let again = field.is_at("a", "Failed/OperatorsFailed");
    again.await;
    let second = wait_for_another(&field, &first).await;
    assert_ne!(first.metadata.uid, second);
    field.behave("a", |spoke| spoke.operators = Doing::Succeeds).await;
    let done = field.is_at("a", "Complete/Upgraded").await.status.expect("it was waited for");
    assert_eq!((done.platform_completed, done.pre_action), (failed.platform_completed, failed.pre_action));
    field.hub.stop().await;
}

/// Waits until another work stands in the place of one.
async fn wait_for_another(field: &Field, first: &drover_api::work::ManifestWork) -> Option<String> {
    let is_another = |work: &drover_api::work::ManifestWork| work.metadata.uid != first.metadata.uid;
    let work = wait::until(&field.works("a"), &first.name_any(), "it is made anew", is_another).await;
    work.metadata.uid
}

async fn decisions_57_to_62_operators_are_asked_for_as_they_are_listed(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.behave("a", |spoke| spoke.operators = Doing::Runs).await;
    let asked = json!({ "include": [{ "name": "gitops", "namespace": "ops" }], "exclude": [{ "name": "storage", "namespace": "ops" }] });
    field.upgrade(json!({}), json!({ "ocpOperators": asked })).await;
    let work = field.work("a", Part::Operators).await;
    let job = work.spec.manifests().iter().find(|manifest| manifest["kind"] == "Job").expect("a Job").to_string();
    for part in
        ["approve-operators", "--include=ops/gitops", "--exclude=ops/storage", "registry.example.com/drover:scenario"]
    {
        assert!(job.contains(part), "{part}: {job}");
    }
    // What is found on the cluster is told here, and stays.
    let said = "0 of 1 upgraded; ops/gitops: is not on this cluster, and is left out";
    field.behave("a", |spoke| spoke.operators_said = said).await;
    let is_told = |record: &ClusterUpgrade| {
        let status = record.status.clone().unwrap_or_default();
        status.operators.as_deref() == Some(said) && status.message.unwrap_or_default().ends_with(said)
    };
    wait::until(&field.records("a"), &part_name(HOME, UPGRADE), "it says where operators are", is_told).await;
    field.behave("a", |spoke| spoke.operators = Doing::Succeeds).await;
    field.is_complete().await;
    let record = field.is_at("a", "Complete/Upgraded").await.status.expect("it was waited for");
    assert_eq!(record.operators.as_deref(), Some(said));

    // Nothing is asked for where nothing is listed.
    let nothing = json!({ "ocpOperators": { "approveAllUpgrades": false } });
    field.behave("a", |spoke| super::spokes::FROM.clone_into(&mut spoke.version)).await;
    field.upgrade_as("no-operators", json!({}), nothing).await;
    let record = field.is_at_of("no-operators", "a", "Complete/Upgraded").await.status.expect("it was waited for");
    assert!(record.operators_completed.is_none());
    field.hub.stop().await;
}

async fn jobs_of_an_action_are_waited_for_though_nothing_says_so(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.behave("a", |spoke| spoke.pre_action = Doing::Runs).await;
    let job =
        json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "backup", "namespace": "default" } });
    let action = json!({ "manifestWork": { "workload": { "manifests": [job] } } });
    field.upgrade(json!({}), json!({ "preUpgradeAction": action })).await;
    let work = field.work("a", Part::PreAction).await;
    let rules = &work.spec.manifest_configs[0].condition_rules;
    let types: Vec<_> = rules.iter().map(|rule| rule.condition.as_str()).collect();
    assert_eq!(types, ["Complete", "Degraded"]);
    field.is_at("a", "PreAction/PreActionRunning").await;
    field.behave("a", |spoke| spoke.pre_action = Doing::Succeeds).await;
    field.is_complete().await;
    field.hub.stop().await;
}
