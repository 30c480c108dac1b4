//! Time-outs, late success, and what clocks may do.

use std::time::Duration;

use drover_api::drover::ClusterUpgrade;
use drover_engine::upgrade::naming::part_name;
use drover_testkit::{World, wait};
use serde_json::json;

use super::{
    Field, HOME, UPGRADE, action, said,
    spokes::{Doing, Platform},
};

drover_testkit::scenarios! {
    Own {
        decisions_35_and_36_the_time_counts_from_delivery_and_late_success_repairs,
        decision_37_a_hub_that_was_away_looks_before_it_says_that_time_is_up,
        decision_38_operators_have_a_time_of_their_own,
        decision_39_an_action_that_never_ends_has_failed,
        decisions_43_and_44_feedback_that_is_missing_or_makes_no_sense_decides_nothing,
    }
}

async fn decisions_35_and_36_the_time_counts_from_delivery_and_late_success_repairs(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.platforms(&["a"], Platform::Silent).await;
    field.upgrade(json!({ "clusterUpgradeTimeout": "1h" }), json!({ "postUpgradeAction": action("check") })).await;
    field.is_at("a", "Upgrading/NotDelivered").await;
    field.clock.advance(Duration::from_mins(61));
    field.settle().await;
    field.is_at("a", "Upgrading/NotDelivered").await;
    field.platforms(&["a"], Platform::Moves).await;
    field.is_at("a", "Upgrading/Upgrading").await;
    field.clock.advance(Duration::from_mins(55));
    field.settle().await;
    field.is_at("a", "Upgrading/Upgrading").await;
    field.clock.advance(Duration::from_mins(10));
    let record = field.is_at("a", "Failed/TimedOut").await.status.expect("it was waited for");
    assert!(record.message.unwrap_or_default().contains("Working towards 4.12.0"));
    let status = field.counts([1, 1, 0, 0, 1, 0]).await;
    assert_eq!(said(&status, "Failed").as_deref(), Some("True/ManagedClustersUpgradeFailed"));

    field.platforms(&["a"], Platform::Completes).await;
    let record = field.is_at("a", "Complete/Upgraded").await.status.expect("it was waited for");
    assert!(record.post_action.is_some(), "what comes after is done after all");
    let status = field.is_complete().await;
    assert_eq!(said(&status, "Failed").as_deref(), Some("False/ManagedClustersUpgradeNotFailed"));
    field.hub.stop().await;
}

async fn decision_37_a_hub_that_was_away_looks_before_it_says_that_time_is_up(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.platforms(&["a"], Platform::Moves).await;
    field.upgrade(json!({ "clusterUpgradeTimeout": "1h" }), json!({})).await;
    field.is_at("a", "Upgrading/Upgrading").await;
    field.clock.advance(Duration::from_hours(3));
    let field = field.restart().await;
    // It has just begun to look, so that the cluster may have been done all the while.
    field.platforms(&["a"], Platform::Completes).await;
    field.is_at("a", "Complete/Upgraded").await;
    field.hub.stop().await;
}

async fn decision_38_operators_have_a_time_of_their_own(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.behave("a", |spoke| spoke.operators = Doing::Runs).await;
    let rest = json!({ "ocpOperators": super::operators() });
    field.upgrade(json!({ "operatorsUpgradeTimeout": "20m" }), rest).await;
    let is_delivered = |record: &ClusterUpgrade| {
        super::place(record) == "Operators/OperatorsRunning"
            && record.status.as_ref().is_some_and(|status| status.delivered.is_some())
    };
    wait::until(&field.records("a"), &part_name(HOME, UPGRADE), "the agent has taken it up", is_delivered).await;
    field.clock.advance(Duration::from_mins(12));
    field.settle().await;
    field.is_at("a", "Operators/OperatorsRunning").await;
    field.clock.advance(Duration::from_mins(9));
    let record = field.is_at("a", "Failed/OperatorsTimedOut").await.status.expect("it was waited for");
    assert!(record.platform_completed.is_some());
    field.behave("a", |spoke| spoke.operators = Doing::Succeeds).await;
    field.is_at("a", "Complete/Upgraded").await;
    field.hub.stop().await;
}

async fn decision_39_an_action_that_never_ends_has_failed(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.behave("a", |spoke| spoke.pre_action = Doing::Runs).await;
    field.behave("b", |spoke| spoke.post_action = Doing::Runs).await;
    let (mut pre, mut post) = (action("backup"), action("check"));
    (pre["timeout"], post["timeout"]) = (json!("30m"), json!("40m"));
    let rest = json!({ "preUpgradeAction": pre, "postUpgradeAction": post });
    field.upgrade(json!({ "maxConcurrency": 2 }), rest).await;
    field.is_at("a", "PreAction/PreActionRunning").await;
    field.is_at("b", "PostAction/PostActionRunning").await;
    field.clock.advance(Duration::from_mins(14));
    field.settle().await;
    field.clock.advance(Duration::from_mins(14));
    field.settle().await;
    field.clock.advance(Duration::from_mins(13));
    let record = field.is_at("a", "Waiting/PreActionDegraded").await.status.expect("it was waited for");
    assert!(record.message.unwrap_or_default().ends_with("it did not end in time"));
    let record = field.is_at("b", "Failed/PostActionDegraded").await.status.expect("it was waited for");
    assert!(record.message.unwrap_or_default().ends_with("it did not end in time"));
    field.hub.stop().await;
}

async fn decisions_43_and_44_feedback_that_is_missing_or_makes_no_sense_decides_nothing(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.behave("a", |spoke| spoke.is_telling = false).await;
    field.platforms(&["b"], Platform::Garbled).await;
    field.upgrade(json!({ "maxConcurrency": 2 }), json!({})).await;
    field.is_at("a", "PreAction/Preflight").await;
    field.is_at("b", "Upgrading/Upgrading").await;
    field.counts([2, 1, 0, 0, 0, 1]).await;
    field.clock.advance(Duration::from_mins(6));
    let record = field.is_at("a", "Waiting/Unreadable").await;
    assert!(
        record.status.is_some_and(|status| status.message.unwrap_or_default().contains("there is no ClusterVersion"))
    );
    field.behave("a", |spoke| spoke.is_telling = true).await;
    field.is_at("a", "Complete/Upgraded").await;
    field.platforms(&["b"], Platform::Completes).await;
    field.is_at("b", "Complete/Upgraded").await;
    field.hub.stop().await;
}
