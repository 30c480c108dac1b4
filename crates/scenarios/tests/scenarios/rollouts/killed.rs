//! A hub that is killed after every single write it makes: what it has begun comes to the same end.

use std::{collections::BTreeMap, time::Duration};

use drover_api::{
    addon::{ClusterManagementAddOn, ManagedClusterAddOn, ManagedClusterAddOnSpec},
    drover::RolloutState,
};
use drover_testkit::{
    World,
    play::{Behaviour, Crowd},
    wait,
};
use kube::{Api, ResourceExt as _, api::ListParams};
use serde_json::{Value, json};

use super::{
    ADDON, Field, XXX, YYY,
    observer::{Moment, Observer},
    said, said_on, start, upgrade,
    versions::of_version,
};
use crate::{
    life::Life,
    running::{change, create},
};

drover_testkit::scenarios! {
    Own {
        a_hub_that_is_killed_after_every_write_comes_to_the_same_end,
        a_hub_that_is_restarted_after_a_rollout_writes_nothing,
        a_hub_that_is_restarted_beside_a_failure_writes_nothing,
    }
}

const AWS: [&str; 9] = ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9"];
const CANARIES: [&str; 3] = ["c1", "c2", "c3"];
/// The same add-on under another name, which is left in peace.
const STEADY: &str = "steady";
const DONE: &str = "False/UpgradeSucceed: 9/9 upgrade completed with no errors.";

/// The steady add-on is made, or changed, with these placements, and runs everywhere.
async fn roll_out_steadily(field: &Field, config: &str, words: &str) {
    let spec = json!({ "installStrategy": { "type": "Placements", "placements": upgrade(config) } });
    let addons = field.addons();
    if addons.get_opt(STEADY).await.expect("add-ons can be read").is_some() {
        change(&addons, STEADY, json!({ "spec": spec })).await;
    } else {
        let spec = serde_json::from_value(spec).expect("a valid add-on");
        create(&addons, ClusterManagementAddOn::new(STEADY, spec)).await;
    }
    wait::until(&addons, STEADY, words, |addon| said(addon, "aws-placement").as_deref() == Some(words)).await;
}

async fn a_hub_that_is_killed_after_every_write_comes_to_the_same_end(world: World) {
    let field = Field::new(world).await;
    let steady = Crowd::gather(field.world.client(), STEADY);
    field.with_canaries(&AWS, &CANARIES, &upgrade(XXX)).await;
    roll_out_steadily(&field, XXX, "False/InstallSucceed: 9/9 install completed with no errors.").await;
    roll_out_steadily(&field, YYY, DONE).await;
    let field = rest(field).await;
    field.hub.stop().await;

    let mut life = Life::of_one_write(&field.client);
    let mut field = Field { hub: start(life.client(), &field.clock, field.dialect).await, ..field };
    let observer = Observer::start(&field.world).await;
    field.list(&upgrade(YYY)).await;
    let mut writes = Vec::new();
    loop {
        life.end().await;
        writes.extend(life.writes());
        if is_done(&field).await {
            break;
        }
        life = Life::of_one_write(&field.client);
        // The one that was before is gone with this, whatever it was about to do.
        field.hub = start(life.client(), &field.clock, field.dialect).await;
    }
    // The last one too is dead, and would wait for ever for the answer to what it was about to write.
    field.hub = start(field.client.clone(), &field.clock, field.dialect).await;
    mark(&field).await;
    judge(&observer.finish().await);
    for cluster in AWS.iter().chain(&CANARIES) {
        let path = format!("/namespaces/{cluster}/managedclusteraddons/{ADDON}/status ");
        assert!(writes.iter().any(|write| write.contains(&path)), "{cluster} in {writes:#?}");
    }
    assert_eq!(told(&field, ADDON).await, told(&field, STEADY).await);
    field.hub.stop().await;
    drop(steady);
}

/// Whether all of it has been told: by each cluster, by each placement, and by what is remembered.
async fn is_done(field: &Field) -> bool {
    let addon = field.addons().get(ADDON).await.expect("the add-on is there");
    let rollout = field.rollouts().get(ADDON).await.expect("the rollout is there");
    said(&addon, "aws-placement").as_deref() == Some(DONE)
        && rollout.status.is_some_and(|status| status.state == Some(RolloutState::Complete))
}

/// The same field at rest, with a hub that has seen all that there is, and done what there was to do.
async fn rest(field: Field) -> Field {
    let field = field.restart().await;
    mark(&field).await;
    field
}

/// Waits until the hub has acted on what came after everything else.
async fn mark(field: &Field) {
    let name = field.world.unique("marker");
    let spec = json!({ "installStrategy": { "type": "Manual" } });
    let spec = serde_json::from_value(spec).expect("a valid add-on");
    create(&field.addons(), ClusterManagementAddOn::new(&name, spec)).await;
    let on_cluster = Api::<ManagedClusterAddOn>::namespaced(field.world.client(), "a1");
    create(&on_cluster, ManagedClusterAddOn::new(&name, ManagedClusterAddOnSpec::default())).await;
    let is_said = |addon: &ManagedClusterAddOn| said_on(addon).is_some();
    wait::until(&on_cluster, &name, "the hub has seen it", is_said).await;
}

/// Fails if there was a moment at which a hub had done what it must not.
fn judge(moments: &[Moment]) {
    let of_addon = |cluster: &&str| moments.iter().filter_map(|moment| moment.get(*cluster)).collect::<Vec<_>>();
    let last = moments.last().expect("there was something");
    let wanted = last["a1"].given.clone().expect("it was given something");
    for cluster in AWS.iter().chain(&CANARIES) {
        let mut given: Vec<_> = of_addon(cluster).into_iter().filter_map(|seen| seen.given.clone()).collect();
        given.dedup();
        assert_eq!((given.len(), given.last()), (2, Some(&wanted)), "{cluster} was given {given:?}");
    }
    for moment in moments {
        let moving = |clusters: &[&str]| clusters.iter().filter(|cluster| moment[**cluster].is_moving()).count();
        assert!(moving(&AWS) <= 3 && moving(&CANARIES) <= 2, "too many are on their way: {moment:#?}");
        let is_begun = AWS.iter().any(|cluster| moment[*cluster].given.as_ref() == Some(&wanted));
        let runs = |cluster: &&str| {
            let seen = &moment[*cluster];
            seen.given.as_ref() == Some(&wanted) && !seen.is_moving()
        };
        assert!(!is_begun || CANARIES.iter().all(runs), "begun before the canaries were done: {moment:#?}");
    }
}

/// All that is told of an add-on and its rollouts, without times and its name.
async fn told(field: &Field, addon: &str) -> BTreeMap<String, Value> {
    let mut told = BTreeMap::new();
    let hub = field.addons().get(addon).await.expect("the add-on is there");
    told.insert("add-on".to_owned(), timeless(&hub.status));
    let rollout = field.rollouts().get(addon).await.expect("the rollout is there");
    told.insert("rollout".to_owned(), timeless(&rollout.status));
    let all = Api::<ManagedClusterAddOn>::all(field.world.client());
    let all = all.list(&ListParams::default().fields(&format!("metadata.name={addon}"))).await;
    for on_cluster in all.expect("add-ons can be listed") {
        told.insert(on_cluster.namespace().unwrap_or_default(), timeless(&on_cluster.status));
    }
    told
}

fn timeless(status: &impl serde::Serialize) -> Value {
    const TIMES: [&str; 6] = ["lastTransitionTime", "started", "finished", "opened", "firstWanted", "since"];
    let mut status = serde_json::to_value(status).expect("a status is JSON");
    strip(&mut status, &TIMES);
    status
}

fn strip(value: &mut Value, fields: &[&str]) {
    match value {
        Value::Object(object) => {
            object.retain(|field, _| !fields.contains(&field.as_str()));
            object.values_mut().for_each(|value| strip(value, fields));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| strip(item, fields)),
        _ => {}
    }
}

async fn a_hub_that_is_restarted_after_a_rollout_writes_nothing(world: World) {
    let field = Field::behind_canaries(world, &["a1", "a2"], &["c1"]).await;
    field.list(&upgrade(YYY)).await;
    field.says("aws-placement", "False/UpgradeSucceed: 2/2 upgrade completed with no errors.").await;
    assert_eq!(writes_a_day_later(field).await, [""; 0]);
}

/// Versions that placements assign stay where they are, and who has failed still has.
async fn a_hub_that_is_restarted_beside_a_failure_writes_nothing(world: World) {
    let field = Field::with_versions(world, "v1,v2", &["a1", "a2"]).await;
    let list = async |version| field.list(&[of_version("global-placement", Some(version), "global-config")]).await;
    list("v1").await;
    field.says("global-placement", "False/Succeed: 2/2 install completed with no errors.").await;
    field.crowd.behave("a2", Behaviour::Silent);
    list("v2").await;
    field.says_on("a2", "True/Upgrading: Upgrading addon to version v2.").await;
    field.fail("a2").await;
    field.pass(Duration::from_mins(1));
    let has_failed = |addon: &ManagedClusterAddOn| said_on(addon).is_some_and(|said| said.starts_with("False/Failed"));
    wait::until(&field.on("a2"), ADDON, "it has failed", has_failed).await;
    let is_assigned =
        |addon: &ManagedClusterAddOn| addon.spec.install_version.as_ref().is_some_and(|it| it.as_str() == "v2");
    for cluster in ["a1", "a2"] {
        wait::until(&field.on(cluster), ADDON, "it is assigned v2", is_assigned).await;
    }
    assert_eq!(writes_a_day_later(field).await, [""; 0]);
}

/// What a hub writes that is started again on a field where nothing is left to do, a day later, so that whatever depends on the time
/// alone would show.
pub(super) async fn writes_a_day_later(field: Field) -> Vec<String> {
    let field = rest(field).await;
    field.hub.stop().await;
    field.clock.advance(Duration::from_hours(24));
    let life = Life::without_end(&field.client);
    let field = Field { hub: start(life.client(), &field.clock, field.dialect).await, ..field };
    mark(&field).await;
    field.hub.stop().await;
    let mut writes = life.writes();
    assert!(writes.iter().any(|write| write.contains("marker")), "{writes:?}");
    writes.retain(|write| !write.contains("marker"));
    writes
}
