//! Rollouts that people steer by annotations.

use std::time::Duration;

use drover_api::drover::{AddOnRolloutStatus, RolloutState};
use drover_testkit::{World, play::Behaviour};
use serde_json::json;

use super::{ADDON, Field, XXX, YYY, ZZZ, hash_of, placement, progress_of, published, rolling};
use crate::running::change;

drover_testkit::scenarios! {
    Own {
        who_is_skipped_is_left_out,
        who_is_paused_waits,
        a_retry_is_done_once_and_survives_the_hub,
        a_pin_holds_until_it_is_removed_or_something_else_is_configured,
        what_makes_no_sense_is_named,
    }
}

const CLUSTERS: [&str; 2] = ["c1", "c2"];
const DONE: &str = "False/UpgradeSucceed: 2/2 upgrade completed with no errors.";

async fn start(world: World) -> Field {
    Field::of_one_placement(world, &CLUSTERS, &rolling("50%")).await
}

async fn want(field: &Field, config: &str) {
    field.list(&[placement("aws-placement", config, rolling("50%"))]).await;
}

async fn who_is_skipped_is_left_out(world: World) {
    let field = start(world).await;
    field.annotate("drover.dev/skip", Some("c1")).await;
    want(&field, YYY).await;
    field.says("aws-placement", &DONE.replace("2/2", "1/2")).await;
    assert_eq!(field.clusters_on(YYY).await, ["c2"]);
    let status = field.remembers("the skip is taken up", |status| status.acknowledged.is_some()).await;
    assert_eq!(status.acknowledged.and_then(|acknowledged| acknowledged.skip).as_deref(), Some("c1"));

    field.annotate("drover.dev/skip", None).await;
    field.says("aws-placement", DONE).await;
    field.hub.stop().await;
}

async fn who_is_paused_waits(world: World) {
    let field = start(world).await;
    let pause = |value: Option<&str>| json!({ "metadata": { "annotations": { "drover.dev/pause": value } } });
    change(&field.on("c1"), ADDON, pause(Some("true"))).await;
    want(&field, YYY).await;
    field.is_given("c2", YYY).await;
    let status = field
        .remembers("one is done, and the other is paused", |status| {
            let clusters = progress_of(status, "aws-placement").clusters.clone().unwrap_or_default();
            (clusters.proven, clusters.paused) == (1, 1)
        })
        .await;
    let clusters = status.acknowledged.map(|acknowledged| acknowledged.clusters).unwrap_or_default();
    let taken_up: Vec<_> = clusters.iter().map(|entry| (entry.cluster.as_str(), entry.pause.as_deref())).collect();
    assert_eq!(taken_up, [("c1", Some("true"))]);
    assert_eq!(field.clusters_on(YYY).await, ["c2"]);

    change(&field.on("c1"), ADDON, pause(None)).await;
    field.says("aws-placement", DONE).await;
    field.hub.stop().await;
}

fn is_halted(status: &AddOnRolloutStatus) -> bool {
    status.state == Some(RolloutState::Halted)
}

fn retry(status: &AddOnRolloutStatus) -> Option<&str> {
    status.acknowledged.as_ref()?.retry.as_deref()
}

async fn a_retry_is_done_once_and_survives_the_hub(world: World) {
    let field = start(world).await;
    field.behave(&CLUSTERS, Behaviour::Silent);
    want(&field, YYY).await;
    field.says("aws-placement", "True/Upgrading: 1/2 upgrading...").await;
    let failed = field.clusters_on(YYY).await.remove(0);
    field.fail(&failed).await;
    field.pass(Duration::from_mins(1));
    field.remembers("it is halted", is_halted).await;

    field.annotate("drover.dev/retry", Some("once")).await;
    let is_tried = |status: &AddOnRolloutStatus| retry(status) == Some("once") && !is_halted(status);
    let tried = field.remembers("it is tried again", is_tried).await;
    // Its time begins anew.
    field.pass(Duration::from_mins(1));
    let halted = field.remembers("it is halted again", is_halted).await;
    assert_eq!(halted.acknowledged, tried.acknowledged);

    let field = field.restart().await;
    field.annotate("drover.dev/skip", Some("nobody")).await;
    let skips = |status: &AddOnRolloutStatus| {
        status.acknowledged.as_ref().is_some_and(|acknowledged| acknowledged.skip.is_some())
    };
    let status = field.remembers("the new hub has looked at it", skips).await;
    assert!(is_halted(&status), "the same token does nothing: {status:#?}");
    let retried = |status: &AddOnRolloutStatus| status.acknowledged.as_ref().and_then(|all| all.retried.clone());
    assert_eq!(retried(&status), retried(&tried));

    field.annotate("drover.dev/retry", Some("twice")).await;
    field.remembers("it is tried again", |status| retry(status) == Some("twice") && !is_halted(status)).await;
    field.behave(&CLUSTERS, Behaviour::Well);
    field.says("aws-placement", DONE).await;
    field.hub.stop().await;
}

async fn a_pin_holds_until_it_is_removed_or_something_else_is_configured(world: World) {
    let field = start(world).await;
    let is_complete = |status: &AddOnRolloutStatus| status.state == Some(RolloutState::Complete);
    let status = field.remembers("all run the first", is_complete).await;
    let xxx = progress_of(&status, "aws-placement").last_applied.clone().expect("it ran");
    want(&field, YYY).await;
    field.says("aws-placement", DONE).await;

    let pin = format!("default/aws-placement={xxx}");
    field.annotate("drover.dev/pin", Some(&pin)).await;
    for cluster in CLUSTERS {
        field.is_given(cluster, XXX).await;
    }
    let held = |status: &AddOnRolloutStatus| {
        let progress = progress_of(status, "aws-placement");
        progress.pin.as_ref().is_some_and(|pin| !pin.let_go) && progress.wanted.as_ref() == Some(&xxx)
    };
    let status = field.remembers("it is held", held).await;
    assert_eq!(status.acknowledged.and_then(|acknowledged| acknowledged.pin), Some(pin.clone()));
    // What is configured is still what is desired, as the add-on's manager says it too.
    let addon = field.says("aws-placement", &format!("{DONE} held at the set {xxx} by drover.dev/pin")).await;
    let [was, is] = ["v0.10.0", "v0.11.0"].map(hash_of);
    assert_eq!(published(&addon, "aws-placement"), (YYY.to_owned(), [is, was.clone(), was]));

    field.annotate("drover.dev/pin", None).await;
    for cluster in CLUSTERS {
        field.is_given(cluster, YYY).await;
    }
    field.annotate("drover.dev/pin", Some(&pin)).await;
    for cluster in CLUSTERS {
        field.is_given(cluster, XXX).await;
    }
    want(&field, ZZZ).await;
    for cluster in CLUSTERS {
        field.is_given(cluster, ZZZ).await;
    }
    let let_go =
        |status: &AddOnRolloutStatus| progress_of(status, "aws-placement").pin.as_ref().is_some_and(|pin| pin.let_go);
    field.remembers("it is let go", let_go).await;
    // Who goes back to what was configured then is not held again.
    want(&field, YYY).await;
    for cluster in CLUSTERS {
        field.is_given(cluster, YYY).await;
    }
    field.hub.stop().await;
}

async fn what_makes_no_sense_is_named(world: World) {
    let field = start(world).await;
    field.annotate("drover.dev/pause", Some("aws-placement")).await;
    want(&field, YYY).await;
    let complains = |status: &AddOnRolloutStatus| {
        let complaint = status.conditions.iter().find(|condition| condition.type_ == "Accepted");
        complaint
            .is_some_and(|said| said.status == "False" && said.message.contains("\"aws-placement\" is no placement"))
    };
    field
        .remembers("it is named, and everything is paused", |status| {
            complains(status) && status.state == Some(RolloutState::Paused)
        })
        .await;
    assert_eq!(field.clusters_on(YYY).await, [""; 0]);
    field.annotate("drover.dev/pause", None).await;
    field.says("aws-placement", DONE).await;
    field.hub.stop().await;
}
