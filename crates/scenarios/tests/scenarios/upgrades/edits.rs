//! Upgrades that are edited while they run, and upgrades that want the same cluster.

use drover_engine::upgrade::naming::{Part, part_name};
use drover_testkit::{World, wait};
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use super::{
    Field, HOME, TO, UPGRADE, action, canary,
    spokes::{Doing, FROM, Platform},
};

drover_testkit::scenarios! {
    Own {
        decision_63_who_is_under_way_finishes_the_old_target_and_canaries_go_first_again,
        decision_64_an_edited_action_reaches_those_who_have_not_done_it,
        decision_65_the_second_upgrade_of_a_cluster_waits_and_says_for_whom,
        the_target_of_a_cluster_under_way_can_not_be_edited,
    }
}

async fn decision_63_who_is_under_way_finishes_the_old_target_and_canaries_go_first_again(world: World) {
    let field = Field::of(world, &["a", "b", "c"]).await;
    field.platforms(&["b", "c"], Platform::Moves).await;
    field.upgrade(json!({ "maxConcurrency": 1, "canaryClusters": canary(&["a"]) }), json!({})).await;
    field.counts([3, 2, 1, 1, 0, 1]).await;
    let begun = if field.place("b").await.as_deref() == Some("Upgrading/Upgrading") { "b" } else { "c" };
    let waiting = if begun == "b" { "c" } else { "b" };

    field.platforms(&["a"], Platform::Moves).await;
    field.change(json!({ "spec": { "clusterVersion": { "version": "4.12.5" } } })).await;
    let of = |version: &'static str| {
        move |record: &drover_api::drover::ClusterUpgrade| record.spec.target.version.as_deref() == Some(version)
    };
    let name = part_name(HOME, UPGRADE);
    wait::until(&field.records(waiting), &name, "it has the new target", of("4.12.5")).await;
    wait::until(&field.records("a"), &name, "the canary has the new target", of("4.12.5")).await;
    field.settle().await;
    let under_way = field.is_at(begun, "Upgrading/Upgrading").await;
    assert_eq!(under_way.spec.target.version.as_deref(), Some(TO), "it is not turned around");

    field.platforms(&[begun], Platform::Completes).await;
    field.is_at("a", "Upgrading/Upgrading").await;
    assert_eq!(field.spokes.get(begun).version, TO, "it has finished the old one");
    field.settle().await;
    assert_eq!(field.place(waiting).await.as_deref(), Some("Waiting/Queued"), "the canary goes first again");
    field.platforms(&["a", waiting], Platform::Completes).await;
    let status = field.is_complete().await;
    let upgrade = field.upgrades().get(UPGRADE).await.expect("it is there");
    assert_eq!(status.observed_generation, upgrade.metadata.generation);
    for cluster in ["a", "b", "c"] {
        assert_eq!(field.spokes.get(cluster).version, "4.12.5");
    }
    field.hub.stop().await;
}

async fn decision_64_an_edited_action_reaches_those_who_have_not_done_it(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.platforms(&["a"], Platform::Moves).await;
    field.behave("b", |spoke| spoke.pre_action = Doing::Runs).await;
    let rest = json!({ "preUpgradeAction": action("backup") });
    field.upgrade(json!({ "canaryClusters": canary(&["a"]), "maxConcurrency": 2 }), rest).await;
    field.is_at("a", "Upgrading/Upgrading").await;
    field.change(json!({ "spec": { "preUpgradeAction": action("better-backup") } })).await;
    field.settle().await;
    let work = field.work("a", Part::PreAction).await;
    assert_eq!(work.spec.manifests()[0]["metadata"]["name"], "backup", "who has done it does not do it again");
    field.platforms(&["a"], Platform::Completes).await;
    let work = field.work("b", Part::PreAction).await;
    assert_eq!(work.spec.manifests()[0]["metadata"]["name"], "better-backup");
    field.hub.stop().await;
}

async fn decision_65_the_second_upgrade_of_a_cluster_waits_and_says_for_whom(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.platforms(&["a"], Platform::Moves).await;
    field.upgrade(json!({ "maxConcurrency": 2 }), json!({})).await;
    field.is_at("a", "Upgrading/Upgrading").await;
    field.is_at("b", "Complete/Upgraded").await;
    assert_eq!(field.owner("a").await.as_deref(), Some("default/to-4-12"));

    let later = json!({ "clusterVersion": { "version": "4.12.9" } });
    field.upgrade_as("second", json!({ "maxConcurrency": 2 }), later).await;
    let record =
        field.is_at_of("second", "a", "Waiting/OwnedByAnotherUpgrade").await.status.expect("it was waited for");
    assert!(record.message.unwrap_or_default().contains("the upgrade default/to-4-12 has the cluster"));
    field.is_at_of("second", "b", "Complete/Upgraded").await;
    assert_eq!(field.spokes.get("a").version, FROM);

    field.platforms(&["a"], Platform::Completes).await;
    field.is_at_of("second", "a", "Complete/Upgraded").await;
    assert_eq!(field.spokes.get("a").version, "4.12.9");
    field.hub.stop().await;
}

async fn the_target_of_a_cluster_under_way_can_not_be_edited(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.platforms(&["a"], Platform::Moves).await;
    field.upgrade(json!({}), json!({})).await;
    let record = field.is_at("a", "Upgrading/Upgrading").await;
    let patch = Patch::Merge(json!({ "spec": { "target": { "version": "4.13.0" } } }));
    let refused = field.records("a").patch(&record.name_any(), &PatchParams::default(), &patch).await;
    let refused = refused.expect_err("it is under way").to_string();
    assert!(refused.contains("the target of a cluster under way never changes"), "{refused}");
    field.upgrades().delete(UPGRADE, &DeleteParams::default()).await.expect("it can be deleted");
    field.hub.stop().await;
}
