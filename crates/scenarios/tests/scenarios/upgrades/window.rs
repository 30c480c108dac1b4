//! How many clusters are upgraded at a time, in which order, and what stops more from being begun.

use std::time::Duration;

use drover_api::names::{PAUSE_ANNOTATION, RETRY_ANNOTATION, UPGRADE_PRIORITY_LABEL};
use drover_testkit::World;
use serde_json::json;

use super::{
    Field, action, numbers, said,
    spokes::{Doing, Platform},
};
use crate::running::{change, reach};

drover_testkit::scenarios! {
    Own {
        decisions_29_and_30_who_prepares_has_a_place_of_its_own_and_who_checks_keeps_its_slot,
        decisions_31_and_32_the_limit_is_one_and_may_be_raised_and_lowered,
        decision_33_who_is_late_and_still_moving_keeps_others_from_starting,
        decision_34_a_priority_comes_before_the_stable_order,
        decisions_41_and_42_offline_clusters_hold_no_slot_and_are_begun_when_they_are_back,
        a_pause_begins_nobody_and_interrupts_nobody,
        a_failure_budget_stops_the_rest_until_a_retry,
    }
}

async fn decisions_29_and_30_who_prepares_has_a_place_of_its_own_and_who_checks_keeps_its_slot(world: World) {
    let clusters = ["a", "b", "c"];
    let field = Field::of(world, &clusters).await;
    for cluster in clusters {
        field.behave(cluster, |spoke| spoke.post_action = Doing::Runs).await;
    }
    let rest = json!({ "preUpgradeAction": action("backup"), "postUpgradeAction": action("check") });
    field.upgrade(json!({ "maxConcurrency": 1 }), rest).await;
    let status = field.has("one checks and one is prepared", |status| {
        let pre = status.pre_upgrade_action_summary.clone().unwrap_or_default();
        numbers(status) == [3, 1, 1, 0, 0, 2] && (pre.total, pre.available) == (2, 2)
    });
    assert_eq!(status.await.post_upgrade_action_summary.unwrap_or_default().total, 1);
    for cluster in clusters {
        field.behave(cluster, |spoke| spoke.post_action = Doing::Succeeds).await;
    }
    field.is_complete().await;
    field.hub.stop().await;
}

async fn decisions_31_and_32_the_limit_is_one_and_may_be_raised_and_lowered(world: World) {
    let clusters = ["a", "b", "c", "d"];
    let field = Field::of(world, &clusters).await;
    field.platforms(&clusters, Platform::Moves).await;
    field.upgrade(json!({}), json!({})).await;
    field.counts([4, 1, 1, 0, 0, 3]).await;
    let refused = field.refuses(json!({ "spec": { "upgradeStrategy": { "maxConcurrency": 0 } } })).await;
    assert!(refused.contains("let at least 1 cluster be upgraded at a time"), "{refused}");

    field.change(json!({ "spec": { "upgradeStrategy": { "maxConcurrency": 10 } } })).await;
    field.counts([4, 4, 4, 0, 0, 0]).await;
    field.change(json!({ "spec": { "upgradeStrategy": { "maxConcurrency": 1 } } })).await;
    field.settle().await;
    field.counts([4, 4, 4, 0, 0, 0]).await;
    field.platforms(&clusters, Platform::Completes).await;
    field.is_complete().await;
    field.hub.stop().await;
}

async fn decision_33_who_is_late_and_still_moving_keeps_others_from_starting(world: World) {
    let clusters = ["a", "b", "c", "d"];
    let field = Field::of(world, &clusters).await;
    field.platforms(&clusters, Platform::Moves).await;
    field.upgrade(json!({ "maxConcurrency": 1, "clusterUpgradeTimeout": "1h" }), json!({})).await;
    for late in 1..=2 {
        field.counts([4, late, 1, 0, late - 1, 4 - late]).await;
        field.clock.advance(Duration::from_hours(1));
    }
    let status = field.counts([4, 2, 0, 0, 2, 2]).await;
    assert!(
        status.message.clone().unwrap_or_default().contains("2 clusters failed to be upgraded in time"),
        "{status:?}"
    );
    field.settle().await;
    field.counts([4, 2, 0, 0, 2, 2]).await;

    field.platforms(&clusters, Platform::Completes).await;
    let status = field.is_complete().await;
    assert_eq!(said(&status, "Failed").as_deref(), Some("False/ManagedClustersUpgradeNotFailed"), "late is not lost");
    field.hub.stop().await;
}

async fn decision_34_a_priority_comes_before_the_stable_order(world: World) {
    let clusters = ["a", "b", "c", "d"];
    let field = Field::of(world, &clusters).await;
    for (cluster, priority) in [("a", "3"), ("b", "0"), ("c", "2"), ("d", "1")] {
        change(&field.managed(), cluster, json!({ "metadata": { "labels": { (UPGRADE_PRIORITY_LABEL): priority } } }))
            .await;
    }
    field.platforms(&clusters, Platform::Moves).await;
    field.upgrade(json!({}), json!({})).await;
    for cluster in ["b", "d", "c", "a"] {
        field.is_at(cluster, "Upgrading/Upgrading").await;
        field.platforms(&[cluster], Platform::Completes).await;
        field.is_at(cluster, "Complete/Upgraded").await;
    }
    field.hub.stop().await;
}

async fn decisions_41_and_42_offline_clusters_hold_no_slot_and_are_begun_when_they_are_back(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    reach(&field.world, "a", "Unknown").await;
    field.platforms(&["b"], Platform::Moves).await;
    field.upgrade(json!({}), json!({})).await;
    let record = field.is_at("a", "Waiting/Offline").await.status.expect("it was waited for");
    assert_eq!(record.message.as_deref(), Some("the cluster can not be reached since 2026-01-01T00:00:00Z"));
    field.is_at("b", "Upgrading/Upgrading").await;

    // Upgrades take clusters down for a while.
    reach(&field.world, "b", "Unknown").await;
    field.settle().await;
    field.counts([2, 1, 1, 0, 0, 1]).await;
    reach(&field.world, "b", "True").await;
    field.platforms(&["b"], Platform::Completes).await;
    field.is_at("b", "Complete/Upgraded").await;
    let status = field.has("it says why it is not over", |status| status.message.is_some()).await;
    assert!(status.message.unwrap_or_default().contains("1 cluster can not be begun"));
    reach(&field.world, "a", "True").await;
    field.is_complete().await;
    field.hub.stop().await;
}

async fn a_pause_begins_nobody_and_interrupts_nobody(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.platforms(&["a", "b"], Platform::Moves).await;
    field.upgrade(json!({}), json!({})).await;
    field.counts([2, 1, 1, 0, 0, 1]).await;
    field.annotate(PAUSE_ANNOTATION, "true").await;
    let status = field.has("it is taken up", |status| {
        status.acknowledged.as_ref().is_some_and(|acknowledged| acknowledged.pause.as_deref() == Some("true"))
    });
    assert_eq!(status.await.phase.map(|phase| format!("{phase:?}")).as_deref(), Some("Paused"));
    field.platforms(&["a", "b"], Platform::Completes).await;
    field.counts([2, 1, 0, 1, 0, 1]).await;
    let field = field.restart().await;
    field.settle().await;
    field.counts([2, 1, 0, 1, 0, 1]).await;
    field.annotate(PAUSE_ANNOTATION, "false").await;
    field.is_complete().await;
    field.hub.stop().await;
}

async fn a_failure_budget_stops_the_rest_until_a_retry(world: World) {
    let clusters = ["a", "b", "c", "d"];
    let field = Field::of(world, &clusters).await;
    for cluster in clusters {
        field.behave(cluster, |spoke| spoke.post_action = Doing::Fails).await;
    }
    let rest = json!({ "postUpgradeAction": action("check") });
    field.upgrade(json!({ "maxFailures": 1 }), rest).await;
    let status = field.counts([4, 2, 0, 0, 2, 2]).await;
    assert_eq!(status.phase.map(|phase| format!("{phase:?}")).as_deref(), Some("Failed"));
    assert!(status.message.unwrap_or_default().starts_with("2 clusters failed, and 1 may"));
    field.settle().await;
    field.counts([4, 2, 0, 0, 2, 2]).await;

    for cluster in clusters {
        field.behave(cluster, |spoke| spoke.post_action = Doing::Succeeds).await;
    }
    field.annotate(RETRY_ANNOTATION, "again").await;
    field.is_complete().await;
    field.hub.stop().await;
}
