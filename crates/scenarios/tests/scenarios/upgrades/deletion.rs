//! The end of upgrades that are deleted.

use drover_api::names::{UPGRADE_FINALIZER, WORK_FINALIZER};
use drover_engine::upgrade::naming::{Part, part_name};
use drover_testkit::{World, wait};
use kube::{ResourceExt as _, api::DeleteParams};
use serde_json::json;

use super::{
    Field, HOME, UPGRADE, action,
    spokes::{Doing, FROM, Platform},
};
use crate::running::change;

drover_testkit::scenarios! {
    Own {
        decision_66_deletion_interrupts_nobody_and_leaves_nothing,
        decision_66_deletion_does_not_hang_on_a_cluster_that_is_away,
    }
}

async fn decision_66_deletion_interrupts_nobody_and_leaves_nothing(world: World) {
    let field = Field::of(world, &["a", "b", "c"]).await;
    field.platforms(&["a", "b"], Platform::Moves).await;
    field.behave("c", |spoke| spoke.post_action = Doing::Fails).await;
    let rest = json!({ "preUpgradeAction": action("backup"), "postUpgradeAction": action("check") });
    let made = field.upgrade(json!({ "maxConcurrency": 2 }), rest).await;
    assert_eq!(made.finalizers(), [""; 0]);
    field.has("some are begun", |status| super::numbers(status)[1] >= 2).await;
    let upgrade = field.upgrades().get(UPGRADE).await.expect("it is there");
    assert_eq!(upgrade.finalizers(), [UPGRADE_FINALIZER]);

    field.upgrades().delete(UPGRADE, &DeleteParams::default()).await.expect("it can be deleted");
    wait::gone(&field.upgrades(), UPGRADE).await;
    for cluster in ["a", "b", "c"] {
        assert_eq!(field.place(cluster).await, None);
        field.has_parts(cluster, &[]).await;
        field.is_nobodys(cluster).await;
    }
    assert_eq!(field.spokes.get("a").version, FROM);
    field.hub.stop().await;
}

async fn decision_66_deletion_does_not_hang_on_a_cluster_that_is_away(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.platforms(&["a"], Platform::Moves).await;
    field.upgrade(json!({}), json!({})).await;
    field.is_at("a", "Upgrading/Upgrading").await;
    let name = Part::Platform.work_name("a", &part_name(HOME, UPGRADE));
    change(&field.works("a"), &name, json!({ "metadata": { "finalizers": [WORK_FINALIZER] } })).await;

    field.upgrades().delete(UPGRADE, &DeleteParams::default()).await.expect("it can be deleted");
    wait::gone(&field.upgrades(), UPGRADE).await;
    let work = field.works("a").get(&name).await.expect("its agent has not seen yet that it goes");
    assert!(work.metadata.deletion_timestamp.is_some());
    field.is_nobodys("a").await;

    // Another upgrade waits for it to be gone.
    field.upgrade_as("second", json!({}), json!({ "clusterVersion": { "version": "4.12.9" } })).await;
    field.is_at_of("second", "a", "Waiting/OwnedByAnotherUpgrade").await;
    change(&field.works("a"), &name, json!({ "metadata": { "finalizers": null } })).await;
    wait::gone(&field.works("a"), &name).await;
    field.platforms(&["a"], Platform::Completes).await;
    field.is_at_of("second", "a", "Complete/Upgraded").await;
    field.hub.stop().await;
}
