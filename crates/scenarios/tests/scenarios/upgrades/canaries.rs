//! The clusters that go first, and what they let through.

use std::time::Duration;

use drover_api::names::RETRY_ANNOTATION;
use drover_testkit::World;
use serde_json::json;

use super::{
    Field, action, canary, message, said,
    spokes::{Doing, Platform},
};
use crate::running::reach;

drover_testkit::scenarios! {
    Own {
        decisions_3_and_20_a_canary_is_counted_twice_and_upgraded_once,
        decision_21_canaries_outside_the_selection_are_left_alone_and_told,
        decision_22_canaries_that_are_nobody_shut_the_gate,
        decision_23_all_clusters_may_be_canaries,
        decision_24_canaries_run_in_parallel_inside_the_limit,
        decision_25_the_gate_opens_when_all_canaries_are_through,
        decision_26_a_canary_that_failed_may_be_retried,
        decision_27_an_offline_canary_keeps_the_gate_shut,
        decision_27_a_canary_that_its_upgrade_has_cut_off_keeps_the_gate_shut,
        decision_28_a_canary_that_is_there_already_counts_and_runs_no_post_action,
        a_soak_keeps_the_rest_waiting,
    }
}

async fn decisions_3_and_20_a_canary_is_counted_twice_and_upgraded_once(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.upgrade(json!({ "maxConcurrency": 2, "canaryClusters": canary(&["a"]) }), json!({})).await;
    let status = field.is_complete().await;
    let canaries = status.canary_clusters_summery.clone().unwrap_or_default();
    assert_eq!((canaries.total, canaries.initialized, canaries.complete), (1, 1, 1));
    assert_eq!(super::numbers(&status), [2, 2, 0, 2, 0, 0]);
    let record = field.is_at("a", "Complete/Upgraded").await;
    assert_eq!(record.spec.canary, Some(true));
    field.hub.stop().await;
}

async fn decision_21_canaries_outside_the_selection_are_left_alone_and_told(world: World) {
    let field = Field::of(world, &["a", "b", "c"]).await;
    field.select(&["a", "b"]).await;
    field.upgrade(json!({ "canaryClusters": canary(&["a", "c"]) }), json!({})).await;
    let status = field.is_complete().await;
    assert_eq!(said(&status, "CanariesSelected").as_deref(), Some("True/CanariesOutsideSelection"));
    assert!(message(&status, "CanariesSelected").ends_with("not upgraded: c"), "{status:?}");
    assert_eq!(field.place("c").await, None);
    field.hub.stop().await;
}

async fn decision_22_canaries_that_are_nobody_shut_the_gate(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.upgrade(json!({ "canaryClusters": canary(&["nobody"]) }), json!({})).await;
    let status = field.says("CanariesSelected", "False/NoCanariesSelected").await;
    assert!(status.message.unwrap_or_default().contains("canaryClusters selects none"));
    field.settle().await;
    assert_eq!(field.place("a").await.as_deref(), Some("Waiting/Queued"));

    field.change(json!({ "spec": { "upgradeStrategy": { "canaryClusters": canary(&["a"]) } } })).await;
    field.is_complete().await;
    field.hub.stop().await;
}

async fn decision_23_all_clusters_may_be_canaries(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.upgrade(json!({ "canaryClusters": canary(&["a", "b"]) }), json!({})).await;
    let status = field.is_complete().await;
    assert_eq!(status.canary_clusters_summery.unwrap_or_default().complete, 2);
    field.hub.stop().await;
}

async fn decision_24_canaries_run_in_parallel_inside_the_limit(world: World) {
    let field = Field::of(world, &["a", "b", "c", "d"]).await;
    field.platforms(&["a", "b", "c"], Platform::Moves).await;
    field.upgrade(json!({ "maxConcurrency": 2, "canaryClusters": canary(&["a", "b", "c"]) }), json!({})).await;
    let status = field.counts([4, 2, 2, 0, 0, 2]).await;
    assert_eq!(status.phase.map(|phase| format!("{phase:?}")).as_deref(), Some("Canaries"));
    field.platforms(&["a", "b", "c"], Platform::Completes).await;
    field.is_complete().await;
    field.hub.stop().await;
}

async fn decision_25_the_gate_opens_when_all_canaries_are_through(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.behave("a", |spoke| (spoke.operators, spoke.post_action) = (Doing::Runs, Doing::Runs)).await;
    let rest = json!({ "ocpOperators": super::operators(), "postUpgradeAction": action("check") });
    field.upgrade(json!({ "maxConcurrency": 2, "canaryClusters": canary(&["a"]) }), rest).await;
    field.is_at("a", "Operators/OperatorsRunning").await;
    field.settle().await;
    assert_eq!(field.place("b").await.as_deref(), Some("Waiting/Queued"));
    field.behave("a", |spoke| spoke.operators = Doing::Succeeds).await;
    field.is_at("a", "PostAction/PostActionRunning").await;
    field.settle().await;
    assert_eq!(field.place("b").await.as_deref(), Some("Waiting/Queued"));
    field.behave("a", |spoke| spoke.post_action = Doing::Succeeds).await;
    field.is_at("b", "Complete/Upgraded").await;
    field.hub.stop().await;
}

async fn decision_26_a_canary_that_failed_may_be_retried(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.behave("a", |spoke| spoke.post_action = Doing::Fails).await;
    let rest = json!({ "postUpgradeAction": action("check") });
    field.upgrade(json!({ "canaryClusters": canary(&["a"]) }), rest).await;
    let failed = field.is_at("a", "Failed/PostActionDegraded").await.status.expect("it was waited for");
    let status =
        field.has("it is over", |status| status.phase.is_some_and(|phase| format!("{phase:?}") == "Failed")).await;
    assert!(status.message.unwrap_or_default().contains("a failed as a canary"));

    // The action is made anew, and the platform is left alone.
    field.annotate(RETRY_ANNOTATION, "once").await;
    field
        .has("it is taken up", |status| {
            status.acknowledged.as_ref().is_some_and(|acknowledged| acknowledged.retry.as_deref() == Some("once"))
        })
        .await;
    let work = field.work("a", drover_engine::upgrade::naming::Part::PostAction).await;
    field.behave("a", |spoke| spoke.post_action = Doing::Succeeds).await;
    let done = field.is_at("a", "Complete/Upgraded").await.status.expect("it was waited for");
    assert_eq!(done.platform_completed, failed.platform_completed, "only what failed is tried again");
    assert!(work.metadata.uid.is_some());
    field.is_complete().await;
    field.hub.stop().await;
}

async fn decision_27_an_offline_canary_keeps_the_gate_shut(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    reach(&field.world, "a", "Unknown").await;
    field.upgrade(json!({ "canaryClusters": canary(&["a"]) }), json!({})).await;
    field.is_at("a", "Waiting/Offline").await;
    let status = field.has("it says whom it waits for", |status| status.message.is_some()).await;
    assert!(status.message.unwrap_or_default().contains("0 of 1 canaries are done"));
    field.settle().await;
    assert_eq!(field.place("b").await.as_deref(), Some("Waiting/Queued"));
    reach(&field.world, "a", "True").await;
    field.is_complete().await;
    field.hub.stop().await;
}

async fn decision_27_a_canary_that_its_upgrade_has_cut_off_keeps_the_gate_shut(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.platforms(&["a"], Platform::Moves).await;
    field.upgrade(json!({ "canaryClusters": canary(&["a"]), "clusterUpgradeTimeout": "1h" }), json!({})).await;
    field.is_at("a", "Upgrading/Upgrading").await;
    // It does not come back, so that its placement does not select it any more.
    reach(&field.world, "a", "Unknown").await;
    field.select(&["b"]).await;
    let is_told =
        |status: &super::Status| message(status, "Selected").contains("1 cluster besides, not selected any more");
    field.has("it stays in the count", is_told).await;
    field.clock.advance(Duration::from_hours(2));
    field.counts([2, 1, 0, 0, 1, 1]).await;
    field.is_at("a", "Failed/TimedOut").await;
    field.clock.advance(Duration::from_hours(24));
    field.settle().await;
    let status = field.counts([2, 1, 0, 0, 1, 1]).await;
    assert!(status.message.unwrap_or_default().starts_with("a failed as a canary"));
    assert_eq!(field.place("b").await.as_deref(), Some("Waiting/Queued"));
    field.hub.stop().await;
}

async fn decision_28_a_canary_that_is_there_already_counts_and_runs_no_post_action(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.behave("a", |spoke| super::TO.clone_into(&mut spoke.version)).await;
    let rest = json!({ "postUpgradeAction": action("check") });
    field.upgrade(json!({ "canaryClusters": canary(&["a"]) }), rest).await;
    let record = field.is_at("a", "Complete/AlreadyAtTarget").await.status.expect("it was waited for");
    assert!(record.post_action.is_none() && record.started.is_none());
    field.is_at("b", "Complete/Upgraded").await;
    let status = field.is_complete().await;
    assert_eq!(status.post_upgrade_action_summary.unwrap_or_default().total, 1);
    field.hub.stop().await;
}

async fn a_soak_keeps_the_rest_waiting(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.upgrade(json!({ "canaryClusters": canary(&["a"]), "canarySoak": "1h" }), json!({})).await;
    field.is_at("a", "Complete/Upgraded").await;
    let status = field.has("it soaks", |status| status.canaries_passed.is_some()).await;
    assert!(status.message.unwrap_or_default().contains("wait until"));
    let field = field.restart().await;
    field.settle().await;
    assert_eq!(field.place("b").await.as_deref(), Some("Waiting/Queued"));
    field.clock.advance(Duration::from_hours(1));
    field.is_at("b", "Complete/Upgraded").await;
    field.hub.stop().await;
}
