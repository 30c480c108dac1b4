//! Rollouts that people stop, and that stop by themselves.

use std::time::Duration;

use drover_api::{drover::AddOnRollout, names::PAUSE_ANNOTATION, names::RETRY_ANNOTATION};
use drover_testkit::{World, play::Behaviour, wait};
use serde_json::json;

use super::{ADDON, Field, placement, rolling};

drover_testkit::scenarios! {
    Own {
        a_pause_moves_nobody_until_it_is_lifted,
        what_takes_too_long_halts_the_rollout_until_it_is_tried_again,
    }
}

async fn acknowledged(field: &Field, what: &str, is_so: impl Fn(&AddOnRollout) -> bool) {
    wait::until(&field.rollouts(), ADDON, what, is_so).await;
}

async fn a_pause_moves_nobody_until_it_is_lifted(world: World) {
    let field = Field::new(world).await;
    let clusters = ["c1", "c2"];
    field.clusters(&clusters).await;
    field.hub_config("hub-config-xxx", "v0.10.0").await;
    field.hub_config("hub-config-yyy", "v0.11.0").await;
    field.select("aws-placement", &clusters).await;
    field.list(&[placement("aws-placement", "hub-config-xxx", rolling("50%"))]).await;
    field.says("aws-placement", "False/InstallSucceed: 2/2 install completed with no errors.").await;

    field.annotate(PAUSE_ANNOTATION, Some("true")).await;
    let taken_up = |rollout: &AddOnRollout| {
        let status = rollout.status.as_ref();
        status.and_then(|status| status.acknowledged.as_ref()?.pause.clone()).as_deref() == Some("true")
    };
    acknowledged(&field, "the pause is taken up", taken_up).await;
    field.list(&[placement("aws-placement", "hub-config-yyy", rolling("50%"))]).await;
    let by = "paused by the annotation drover.dev/pause of the ClusterManagementAddOn";
    field.says("aws-placement", &format!("True/Upgrading: 0/2 upgrading... {by}")).await;
    assert!(field.given().await.values().all(|config| config == "hub-config-xxx"));
    field.annotate(PAUSE_ANNOTATION, None).await;
    field.says("aws-placement", "False/UpgradeSucceed: 2/2 upgrade completed with no errors.").await;
    field.hub.stop().await;
}

async fn what_takes_too_long_halts_the_rollout_until_it_is_tried_again(world: World) {
    let field = Field::new(world).await;
    let clusters = ["c1", "c2", "c3", "c4"];
    field.clusters(&clusters).await;
    field.hub_config("hub-config-xxx", "v0.10.0").await;
    field.hub_config("hub-config-yyy", "v0.11.0").await;
    field.select("aws-placement", &clusters).await;
    let settings = json!({ "maxConcurrentlyUpdating": 1, "progressDeadline": "1h" });
    let strategy = json!({ "type": "RollingUpdate", "rollingUpdate": settings });
    field.list(&[placement("aws-placement", "hub-config-xxx", strategy.clone())]).await;
    field.says("aws-placement", "False/InstallSucceed: 4/4 install completed with no errors.").await;

    for cluster in clusters {
        field.crowd.behave(cluster, Behaviour::Silent);
    }
    field.list(&[placement("aws-placement", "hub-config-yyy", strategy)]).await;
    field.says("aws-placement", "True/Upgrading: 1/4 upgrading...").await;
    field.pass(Duration::from_hours(1));
    let why = "1 failed where 0 may: nothing new is begun until one of them succeeds, something else is wanted, or drover.dev/retry is set";
    field.says("aws-placement", &format!("False/UpgradeFailed: 1/4 upgrade failed. 1 timed out. {why}")).await;

    for cluster in clusters {
        field.crowd.behave(cluster, Behaviour::Well);
    }
    field.annotate(RETRY_ANNOTATION, Some("once")).await;
    field.says("aws-placement", "False/UpgradeSucceed: 4/4 upgrade completed with no errors.").await;
    field.hub.stop().await;
}
