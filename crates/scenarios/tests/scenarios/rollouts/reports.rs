//! Agents report that the works of the old revision are not applied any more.
//! Their clusters wait for their turn.

use std::collections::BTreeSet;

use drover_api::{
    drover::RolloutState,
    names::{DECISION_GROUP_INDEX_LABEL, PROVEN},
};
use drover_testkit::{World, play::Behaviour, wait};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::{
    ADDON, Field, XXX, YYY, behind,
    observer::{Moment, Observer, Seen},
    placement, progress_of, rolling, update_all,
};

drover_testkit::scenarios! {
    Own {
        rolling_update_keeps_failing_clusters_within_the_window,
        progressive_keeps_failing_clusters_within_the_window,
        progressive_per_group_keeps_failing_clusters_behind_the_groups_before_and_their_soak,
        open_gate_keeps_failing_clusters_within_the_window,
        closed_gate_keeps_failing_clusters_back,
        paused_update_all_keeps_failing_clusters_back,
        paused_all_keeps_failing_clusters_back,
        canary_that_fails_to_apply_after_the_gate_opened_halts_new_starts,
    }
}

const CLUSTERS: [&str; 3] = ["a", "b", "c"];
const PLACEMENT: &str = "aws-placement";
const DONE: &str = "False/UpgradeSucceed: 3/3 upgrade completed with no errors.";

fn is_assigned(seen: &Seen) -> bool {
    seen.configs == [YYY]
}

/// The most clusters that were in flight to the second configuration at one moment.
fn most_in_flight(moments: &[Moment], clusters: &[&str]) -> usize {
    let mut updated = BTreeSet::new();
    let in_flight = moments.iter().map(|moment| {
        let assigned = clusters.iter().filter_map(|name| moment.get(*name)).filter(|seen| is_assigned(seen));
        let assigned: Vec<_> = assigned.collect();
        let is_updated = |seen: &&&Seen| !seen.is_moving();
        updated.extend(assigned.iter().filter(is_updated).map(|seen| seen.cluster.clone()));
        assigned.iter().filter(|seen| !updated.contains(&seen.cluster)).count()
    });
    in_flight.max().unwrap_or_default()
}

/// Has clusters report that what they run is not applied any more. Returns when the hub has
/// recorded it.
async fn fail_to_apply(field: &Field, clusters: &[&str]) {
    for cluster in clusters {
        field.fail(cluster).await;
        let what = format!("{cluster} is noted as a cluster that ran its revision");
        let addon = wait::until(&field.on(cluster), ADDON, &what, |addon| {
            let mut conditions = addon.status.iter().flat_map(|status| &status.conditions);
            conditions.any(|condition| condition.type_ == PROVEN && condition.status == "Unknown")
        })
        .await;
        assert_eq!(addon.namespace().as_deref(), Some(*cluster));
    }
}

/// Rolls out with one slot while the other clusters fail on the old revision.
async fn rolls_out_one_by_one(world: World, strategy: &Value) {
    let field = Field::of_one_placement(world, &CLUSTERS, strategy).await;
    field.behave(&CLUSTERS, Behaviour::Silent);
    let observer = Observer::start(&field.world).await;
    field.list(&[placement(PLACEMENT, YYY, strategy.clone())]).await;
    field.says(PLACEMENT, "True/Upgrading: 1/3 upgrading...").await;
    let first = field.clusters_on(YYY).await.remove(0);
    let others: Vec<_> = CLUSTERS.into_iter().filter(|name| *name != first).collect();
    fail_to_apply(&field, &others).await;

    // The next one begins when the first is done, and the last one waits.
    field.behave(&[&first], Behaviour::Well);
    field.says(PLACEMENT, "True/Upgrading: 2/3 upgrading...").await;
    field.behave(&CLUSTERS, Behaviour::Well);
    field.says(PLACEMENT, DONE).await;
    let moments = observer.finish().await;
    assert_eq!(most_in_flight(&moments, &CLUSTERS), 1);
    field.hub.stop().await;
}

async fn rolling_update_keeps_failing_clusters_within_the_window(world: World) {
    rolls_out_one_by_one(world, &rolling("25%")).await;
}

async fn progressive_keeps_failing_clusters_within_the_window(world: World) {
    rolls_out_one_by_one(world, &json!({ "type": "Progressive", "progressive": { "maxConcurrency": 1 } })).await;
}

async fn progressive_per_group_keeps_failing_clusters_behind_the_groups_before_and_their_soak(world: World) {
    let strategy = json!({ "type": "ProgressivePerGroup", "progressivePerGroup": { "minSuccessTime": "10m" } });
    let field = Field::new(world).await;
    field.hub_configs().await;
    field.clusters(&CLUSTERS).await;
    field.select("grouped", &[]).await;
    for (index, clusters) in [("0", &["a"][..]), ("1", &["b", "c"])] {
        let labels = [(DECISION_GROUP_INDEX_LABEL, index)];
        field.decide(&format!("grouped-{index}"), "grouped", &labels, clusters).await;
    }
    // All get the first configuration at once.
    field.list(&[placement("grouped", XXX, update_all())]).await;
    field.says("grouped", "False/InstallSucceed: 3/3 install completed with no errors.").await;
    field.behave(&CLUSTERS, Behaviour::Silent);
    field.list(&[placement("grouped", YYY, strategy)]).await;
    field.says("grouped", "True/Upgrading: 1/3 upgrading...").await;
    fail_to_apply(&field, &["b"]).await;
    field.behave(&["a"], Behaviour::Well);
    field
        .remembers("the first group soaks", |status| {
            let progress = progress_of(status, "grouped");
            progress.clusters.as_ref().is_some_and(|clusters| (clusters.proven, clusters.given) == (1, 0))
        })
        .await;
    fail_to_apply(&field, &["c"]).await;
    assert_eq!(field.clusters_on(YYY).await, ["a"], "the first group soaks");
    field.pass(std::time::Duration::from_mins(9));
    assert_eq!(field.clusters_on(YYY).await, ["a"], "the first group soaks");
    field.pass(std::time::Duration::from_mins(1));
    field.says("grouped", "True/Upgrading: 3/3 upgrading...").await;
    field.hub.stop().await;
}

async fn open_gate_keeps_failing_clusters_within_the_window(world: World) {
    let field = Field::behind_canaries(world, &CLUSTERS, &["k"]).await;
    let list = [
        placement(PLACEMENT, YYY, behind("canary-placement", "25%")),
        placement("canary-placement", YYY, rolling("100%")),
    ];
    field.behave(&CLUSTERS, Behaviour::Silent);
    let observer = Observer::start(&field.world).await;
    field.list(&list).await;
    field.says(PLACEMENT, "True/Upgrading: 1/3 upgrading...").await;
    let on_the_way = field.clusters_on(YYY).await;
    let others: Vec<_> = CLUSTERS.into_iter().filter(|name| !on_the_way.contains(&(*name).to_owned())).collect();
    fail_to_apply(&field, &others).await;
    let first: Vec<_> = CLUSTERS.into_iter().filter(|name| !others.contains(name)).collect();
    field.behave(&first, Behaviour::Well);
    field.says(PLACEMENT, "True/Upgrading: 2/3 upgrading...").await;
    field.behave(&CLUSTERS, Behaviour::Well);
    field.says(PLACEMENT, DONE).await;
    let moments = observer.finish().await;
    assert_eq!(most_in_flight(&moments, &CLUSTERS), 1);
    field.hub.stop().await;
}

async fn closed_gate_keeps_failing_clusters_back(world: World) {
    let field = Field::behind_canaries(world, &CLUSTERS, &["k"]).await;
    let list = [
        placement(PLACEMENT, YYY, behind("canary-placement", "25%")),
        placement("canary-placement", YYY, rolling("100%")),
    ];
    field.behave(&["k"], Behaviour::Silent);
    let observer = Observer::start(&field.world).await;
    field.list(&list).await;
    field.says(PLACEMENT, "True/WaitingForCanary: waitingForCanary... 1 of 1 canaries is not done: k").await;
    fail_to_apply(&field, &CLUSTERS).await;
    assert_eq!(field.clusters_on(YYY).await, ["k"]);
    field.behave(&["k"], Behaviour::Well);
    field.says(PLACEMENT, "True/Upgrading: 1/3 upgrading...").await;
    field.behave(&CLUSTERS, Behaviour::Well);
    field.says(PLACEMENT, DONE).await;
    let moments = observer.finish().await;
    assert_eq!(most_in_flight(&moments, &CLUSTERS), 1);
    let runs =
        |moment: &Moment, name: &str| moment.get(name).is_some_and(|seen| is_assigned(seen) && !seen.is_moving());
    let opened = moments.iter().position(|moment| runs(moment, "k")).expect("the canary is updated");
    let is_early = |moment: &Moment| CLUSTERS.iter().any(|name| moment.get(*name).is_some_and(is_assigned));
    assert!(!moments[..opened].iter().any(is_early), "the gate was closed");
    field.hub.stop().await;
}

/// Both strategies have no window; a pause holds all clusters back.
async fn is_held_back_by_a_pause(world: World, strategy: &Value) {
    let field = Field::of_one_placement(world, &CLUSTERS, strategy).await;
    field.annotate("drover.dev/pause", Some("true")).await;
    field.list(&[placement(PLACEMENT, YYY, strategy.clone())]).await;
    field
        .remembers("it is paused", |status| {
            let progress = progress_of(status, PLACEMENT);
            progress.state == Some(RolloutState::Paused) && progress.wanted != progress.last_applied
        })
        .await;
    fail_to_apply(&field, &["b", "c"]).await;
    assert_eq!(field.clusters_on(YYY).await, [""; 0]);
    field.annotate("drover.dev/pause", None).await;
    field.says(PLACEMENT, "True/Upgrading: 3/3 upgrading...").await;
    field.behave(&CLUSTERS, Behaviour::Well);
    field.says(PLACEMENT, DONE).await;
    field.hub.stop().await;
}

async fn paused_update_all_keeps_failing_clusters_back(world: World) {
    is_held_back_by_a_pause(world, &update_all()).await;
}

async fn paused_all_keeps_failing_clusters_back(world: World) {
    is_held_back_by_a_pause(world, &json!({ "type": "All" })).await;
}

async fn canary_that_fails_to_apply_after_the_gate_opened_halts_new_starts(world: World) {
    let field = Field::behind_canaries(world, &CLUSTERS, &["k"]).await;
    let list = [
        placement(PLACEMENT, YYY, behind("canary-placement", "25%")),
        placement("canary-placement", YYY, rolling("100%")),
    ];
    field.behave(&CLUSTERS, Behaviour::Silent);
    field.list(&list).await;
    field.says(PLACEMENT, "True/Upgrading: 1/3 upgrading...").await;
    fail_to_apply(&field, &["k"]).await;
    field.pass(std::time::Duration::from_mins(1));
    let is_halted = |status: &_| progress_of(status, PLACEMENT).state == Some(RolloutState::Halted);
    field.remembers("the canary halts it", is_halted).await;
    field.behave(&CLUSTERS, Behaviour::Well);
    field
        .remembers("the cluster in flight goes on", |status| {
            let clusters = progress_of(status, PLACEMENT).clusters.clone().unwrap_or_default();
            is_halted(status) && (clusters.proven, clusters.given) == (1, 0)
        })
        .await;
    assert_eq!(field.clusters_on(YYY).await.len(), 2, "the canary and the cluster that was in flight");
    field.behave(&["k"], Behaviour::Well);
    field.says(PLACEMENT, DONE).await;
    field.hub.stop().await;
}
