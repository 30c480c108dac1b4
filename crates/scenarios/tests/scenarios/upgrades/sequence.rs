//! The user stories of the specification, and each line of its sequence of operations.

use drover_api::names::{UPGRADE_LABEL, UPGRADE_PART_LABEL};
use drover_engine::upgrade::naming::{Part, part_name};
use drover_testkit::{World, wait};
use kube::ResourceExt as _;
use serde_json::json;

use super::{
    Field, HOME, TO, UPGRADE, action, canary, message, numbers, operators, said,
    spokes::{Doing, FROM, Platform},
};

drover_testkit::scenarios! {
    Own {
        story_1_and_line_1_nothing_is_upgraded_before_its_pre_action_is_available,
        line_2_a_degraded_pre_action_holds_up_its_own_cluster_only,
        lines_3_and_11_actions_are_removed_when_all_clusters_are_done,
        story_2_and_decision_10_the_upgrade_of_a_group_is_told_for_each_cluster,
        story_3_and_line_6_operators_come_after_the_platform,
        story_4_and_lines_4_and_5_canaries_go_first_and_a_failed_one_stops_the_rest,
        line_7_who_is_begun_goes_on_and_who_is_not_may_go_when_the_selection_changes,
        line_8_never_more_than_so_many_at_a_time,
        story_5_and_lines_9_and_10_a_post_action_follows_and_fails_its_cluster,
    }
}

async fn story_1_and_line_1_nothing_is_upgraded_before_its_pre_action_is_available(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.behave("a", |spoke| spoke.pre_action = Doing::Runs).await;
    field.upgrade(json!({}), json!({ "preUpgradeAction": action("backup") })).await;

    field.is_at("a", "PreAction/PreActionRunning").await;
    let work = field.work("a", Part::PreAction).await;
    assert_eq!(work.labels()[UPGRADE_LABEL], part_name(HOME, UPGRADE));
    assert_eq!(work.labels()[UPGRADE_PART_LABEL], "pre-action");
    let status = field.has("the action runs", |status| {
        let summary = status.pre_upgrade_action_summary.clone().unwrap_or_default();
        (summary.total, summary.applied, summary.available, summary.progressing) == (1, 1, 0, 1)
    });
    let status = status.await;
    assert_eq!(said(&status, "Applied").as_deref(), Some("True/ManagedClustersUpgradeApplied"));
    assert_eq!(numbers(&status), [1, 0, 0, 0, 0, 1]);
    assert!(!field.parts("a").await.contains(&"platform".to_owned()));

    field.behave("a", |spoke| spoke.pre_action = Doing::Succeeds).await;
    let record = field.is_at("a", "Complete/Upgraded").await.status.expect("it was waited for");
    assert!(record.pre_action.is_some());
    assert_eq!((record.from_version.as_deref(), record.current_version.as_deref()), (Some(FROM), Some(TO)));
    let status = field.is_complete().await;
    let summary = status.pre_upgrade_action_summary.unwrap_or_default();
    assert_eq!((summary.total, summary.available), (1, 1));
    field.hub.stop().await;
}

async fn line_2_a_degraded_pre_action_holds_up_its_own_cluster_only(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.behave("a", |spoke| spoke.pre_action = Doing::Fails).await;
    field.upgrade(json!({ "maxConcurrency": 1 }), json!({ "preUpgradeAction": action("backup") })).await;

    let record = field.is_at("a", "Waiting/PreActionDegraded").await.status.expect("it was waited for");
    assert!(record.message.unwrap_or_default().contains("the action says so"));
    field.is_at("b", "Complete/Upgraded").await;
    let status = field.counts([2, 1, 0, 1, 0, 1]).await;
    assert_eq!(status.pre_upgrade_action_summary.unwrap_or_default().degraded, 1);

    field.behave("a", |spoke| spoke.pre_action = Doing::Succeeds).await;
    field.is_at("a", "Complete/Upgraded").await;
    field.is_complete().await;
    field.hub.stop().await;
}

async fn lines_3_and_11_actions_are_removed_when_all_clusters_are_done(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.platforms(&["b"], Platform::Moves).await;
    let actions = json!({ "preUpgradeAction": action("backup"), "postUpgradeAction": action("check") });
    field.upgrade(json!({ "maxConcurrency": 2 }), actions).await;
    field.is_at("a", "Complete/Upgraded").await;
    field.is_at("b", "Upgrading/Upgrading").await;
    field.counts([2, 2, 1, 1, 0, 0]).await;
    // They stay until everybody is done.
    field.has_parts("a", &["post-action", "pre-action"]).await;

    field.platforms(&["b"], Platform::Completes).await;
    field.is_complete().await;
    for cluster in ["a", "b"] {
        for part in Part::ALL {
            wait::gone(&field.works(cluster), &part.work_name(cluster, &part_name(HOME, UPGRADE))).await;
        }
        field.is_nobodys(cluster).await;
    }
    let status = field.is_complete().await;
    assert_eq!(status.post_upgrade_action_summary.unwrap_or_default().available, 2, "what is gone was done");
    field.hub.stop().await;
}

async fn story_2_and_decision_10_the_upgrade_of_a_group_is_told_for_each_cluster(world: World) {
    let field = Field::of(world, &["a", "b", "c"]).await;
    field.platforms(&["a", "b", "c"], Platform::Moves).await;
    field.upgrade(json!({ "maxConcurrency": 2 }), json!({})).await;

    let status = field.counts([3, 2, 2, 0, 0, 1]).await;
    assert_eq!(message(&status, "Selected"), "ManagedClusters upgrade select 3 clusters");
    assert_eq!(said(&status, "InProgress").as_deref(), Some("True/ManagedClustersUpgradeInProgress"));
    assert_eq!(message(&status, "InProgress"), "ManagedClusters upgrade in progress on 2 clusters");
    assert_eq!(message(&status, "Complete"), "0 of 3 clusters complete");
    assert_eq!(status.progress.as_deref(), Some("0/3"));
    let upgrade = field.upgrades().get(UPGRADE).await.expect("it is there");
    assert_eq!(status.observed_generation, upgrade.metadata.generation);
    assert!(status.conditions.iter().all(|said| said.observed_generation == upgrade.metadata.generation));
    let table = field.world.kubectl(["get", "clusterupgrades", "--all-namespaces"]).await.success();
    assert_eq!(table.matches("Working towards 4.12.0: 40% complete").count(), 2, "{table}");
    assert_eq!(table.matches("it waits for its turn").count(), 1, "{table}");

    field.platforms(&["a", "b", "c"], Platform::Completes).await;
    let status = field.is_complete().await;
    assert_eq!(numbers(&status), [3, 3, 0, 3, 0, 0]);
    assert_eq!(message(&status, "Complete"), "ManagedClusters upgrade Complete");
    let table = field.world.kubectl(["get", "managedclustersupgrades", "--namespace", HOME]).await.success();
    let row: Vec<_> = table.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!(row[..5], [UPGRADE, TO, "3/3", "0", "Complete"], "{table}");
    let described = field.world.kubectl(["describe", "managedclustersupgrades", UPGRADE, "--namespace", HOME]);
    let described = described.await.success();
    assert!(described.contains("UpgradeComplete"), "{described}");
    field.hub.stop().await;
}

async fn story_3_and_line_6_operators_come_after_the_platform(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.behave("a", |spoke| (spoke.platform, spoke.operators) = (Platform::Moves, Doing::Runs)).await;
    field.upgrade(json!({}), json!({ "ocpOperators": operators() })).await;
    field.is_at("a", "Upgrading/Upgrading").await;
    assert!(!field.parts("a").await.contains(&"operators".to_owned()));

    field.platforms(&["a"], Platform::Completes).await;
    let record = field.is_at("a", "Operators/OperatorsRunning").await;
    assert!(record.status.is_some_and(|status| status.platform_completed.is_some()));
    let work = field.work("a", Part::Operators).await;
    assert_eq!(work.name_any(), "a-operators-upgrade");
    field.counts([1, 1, 1, 0, 0, 0]).await;

    field.behave("a", |spoke| spoke.operators = Doing::Succeeds).await;
    let record = field.is_at("a", "Complete/Upgraded").await;
    assert!(record.status.is_some_and(|status| status.operators_completed.is_some()));
    wait::gone(&field.works("a"), "a-operators-upgrade").await;
    field.hub.stop().await;
}

async fn story_4_and_lines_4_and_5_canaries_go_first_and_a_failed_one_stops_the_rest(world: World) {
    let field = Field::of(world, &["a", "b", "c", "d"]).await;
    field.behave("a", |spoke| spoke.post_action = Doing::Fails).await;
    field.platforms(&["b"], Platform::Moves).await;
    let strategy = json!({ "maxConcurrency": 4, "canaryClusters": canary(&["a", "b"]) });
    field.upgrade(strategy, json!({ "postUpgradeAction": action("check") })).await;

    field.is_at("a", "Failed/PostActionDegraded").await;
    field.platforms(&["b"], Platform::Completes).await;
    field.is_at("b", "Complete/Upgraded").await;
    field.says("Failed", "True/ManagedClustersUpgradeFailed").await;
    let status = field.counts([4, 2, 0, 1, 1, 2]).await;
    assert_eq!(message(&status, "Failed"), "canary a failed");
    let canaries = status.canary_clusters_summery.clone().unwrap_or_default();
    assert_eq!((canaries.total, canaries.complete, canaries.failed), (2, 1, 1));
    for cluster in ["c", "d"] {
        assert_eq!(field.place(cluster).await.as_deref(), Some("Waiting/Queued"));
        field.has_parts(cluster, &[]).await;
    }

    field.behave("a", |spoke| spoke.post_action = Doing::Succeeds).await;
    field.is_at("a", "Complete/Upgraded").await;
    let status = field.is_complete().await;
    assert!(status.canaries_passed.is_some());
    assert_eq!(said(&status, "Failed").as_deref(), Some("False/ManagedClustersUpgradeNotFailed"));
    field.hub.stop().await;
}

async fn line_7_who_is_begun_goes_on_and_who_is_not_may_go_when_the_selection_changes(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.platforms(&["a", "b"], Platform::Moves).await;
    field.upgrade(json!({ "maxConcurrency": 1 }), json!({})).await;
    field.counts([2, 1, 1, 0, 0, 1]).await;
    let begun = if field.place("a").await.as_deref() == Some("Upgrading/Upgrading") { "a" } else { "b" };
    let waiting = if begun == "a" { "b" } else { "a" };

    field.select(&[]).await;
    wait::gone(&field.records(waiting), &part_name(HOME, UPGRADE)).await;
    field.counts([1, 1, 1, 0, 0, 0]).await;
    field.platforms(&[begun], Platform::Completes).await;
    field.is_at(begun, "Complete/Upgraded").await;
    field.is_complete().await;
    field.has_parts(waiting, &[]).await;
    field.hub.stop().await;
}

async fn line_8_never_more_than_so_many_at_a_time(world: World) {
    let clusters = ["a", "b", "c", "d", "e"];
    let field = Field::of(world, &clusters).await;
    field.platforms(&clusters, Platform::Moves).await;
    field.upgrade(json!({ "maxConcurrency": 2 }), json!({})).await;
    for done in 0..3 {
        field.counts([5, done + 2, 2, done, 0, 3 - done]).await;
        let mut under_way = Vec::new();
        for cluster in clusters {
            if field.place(cluster).await.as_deref() == Some("Upgrading/Upgrading") {
                under_way.push(cluster);
            }
        }
        assert_eq!(under_way.len(), 2, "{under_way:?}");
        field.platforms(&under_way[..1], Platform::Completes).await;
    }
    field.platforms(&clusters, Platform::Completes).await;
    field.is_complete().await;
    field.hub.stop().await;
}

async fn story_5_and_lines_9_and_10_a_post_action_follows_and_fails_its_cluster(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.behave("a", |spoke| spoke.post_action = Doing::Runs).await;
    field.behave("b", |spoke| spoke.post_action = Doing::Fails).await;
    field.upgrade(json!({ "maxConcurrency": 2 }), json!({ "postUpgradeAction": action("check") })).await;

    let record = field.is_at("a", "PostAction/PostActionRunning").await.status.expect("it was waited for");
    assert!(record.platform_completed.is_some(), "it comes after the platform");
    let record = field.is_at("b", "Failed/PostActionDegraded").await.status.expect("it was waited for");
    assert!(record.platform_completed.is_some(), "the platform is upgraded all the same");
    let status = field.counts([2, 2, 1, 0, 1, 0]).await;
    let summary = status.post_upgrade_action_summary.unwrap_or_default();
    assert_eq!((summary.total, summary.progressing, summary.degraded), (2, 1, 1));

    field.behave("a", |spoke| spoke.post_action = Doing::Succeeds).await;
    let status = field.says("Failed", "True/ManagedClustersUpgradeFinishedWithFailures").await;
    assert_eq!(said(&status, "Complete").as_deref(), Some("False/ManagedClustersUpgradeFinishedWithFailures"));
    field.hub.stop().await;
}
