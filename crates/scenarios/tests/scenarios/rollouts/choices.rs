//! What the specifications leave open, and Drover has decided: one scenario for each choice.

use std::{collections::BTreeSet, time::Duration};

use drover_api::{
    addon::{AddOnDeploymentConfig, ClusterManagementAddOn, ManagedClusterAddOn},
    drover::{GateState, RolloutState},
};
use drover_testkit::{World, play::Behaviour, wait};
use k8s_openapi::api::events::v1::Event;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    ADDON, Field, XXX, YYY, ZZZ, behind, hash_of, observer::Observer, placement, progress_of, published, rolling,
    upgrade,
};
use crate::running::{change, create};

drover_testkit::scenarios! {
    Own {
        a_canary_that_was_cut_off_keeps_the_gate_shut,
        what_was_halted_does_not_block_its_cure,
        going_back_to_what_is_trusted_needs_no_canary,
        a_cluster_in_two_placements_follows_the_canaries_in_either_order,
        a_gate_that_opens_during_a_pause_moves_nobody,
        an_override_on_a_canary_keeps_the_gate_shut_unless_it_is_the_same,
        version_and_configuration_change_as_one,
        who_joins_while_it_is_halted_gets_what_is_known_to_be_good,
        who_goes_offline_keeps_its_add_on_and_catches_up,
        canaries_have_to_stay_well_for_a_while,
        who_is_late_has_failed_until_it_succeeds,
        failures_are_tolerated_up_to_their_budget,
        what_happens_is_told,
        a_canary_that_turns_unhealthy_halts_what_rolls_out,
        what_no_placement_selects_follows_the_defaults_at_once,
        a_missing_configuration_moves_nobody,
        an_edit_in_place_waits_for_its_canaries,
    }
}

const AWS: [&str; 4] = ["a1", "a2", "a3", "a4"];
const CANARIES: [&str; 2] = ["c1", "c2"];
const DONE: &str = "False/UpgradeSucceed: 4/4 upgrade completed with no errors.";
/// What is said of clusters too many of which have failed.
const HALTED: &str =
    "nothing new is begun until one of them succeeds, something else is wanted, or drover.dev/retry is set";

/// A strategy with more settings.
fn limited(mut strategy: Value, limits: &Value) -> Value {
    let settings = if strategy["type"] == "RollingUpdate" { "rollingUpdate" } else { "rollingUpdateWithCanary" };
    for (name, value) in limits.as_object().into_iter().flatten() {
        strategy[settings][name] = value.clone();
    }
    strategy
}

/// The canaries are well with the second configuration, and the first cluster behind them has failed with it.
async fn halted(world: World) -> (Field, String) {
    let field = Field::behind_canaries(world, &AWS, &CANARIES).await;
    field.behave(&AWS, Behaviour::Silent);
    field.list(&upgrade(YYY)).await;
    field.says("aws-placement", "True/Upgrading: 1/4 upgrading...").await;
    let moved = field.clusters_on(YYY).await;
    let failed = moved.into_iter().find(|cluster| AWS.contains(&cluster.as_str())).expect("one of them is moving");
    field.fail(&failed).await;
    field.pass(Duration::from_mins(1));
    let words = format!("False/UpgradeFailed: 1/4 upgrade failed. 1 failed. 1 failed where 0 may: {HALTED}");
    field.says("aws-placement", &words).await;
    (field, failed)
}

async fn a_canary_that_was_cut_off_keeps_the_gate_shut(world: World) {
    let field = Field::behind_canaries(world, &AWS, &CANARIES).await;
    field.behave(&["c1"], Behaviour::Silent);
    field.list(&upgrade(YYY)).await;
    field.is_given("c1", YYY).await;
    field.reach("c1", "Unknown").await;
    field.select("canary-placement", &["c2"]).await;
    field.is_given("c2", YYY).await;
    field.says("canary-placement", "False/UpgradeSucceed: 1/1 upgrade completed with no errors.").await;
    field.says("aws-placement", "True/WaitingForCanary: waitingForCanary... 1 of 2 canaries is not done: c1").await;
    assert_eq!(field.clusters_on(YYY).await, ["c1", "c2"]);

    field.annotate("drover.dev/skip", Some("c1")).await;
    field.says("aws-placement", DONE).await;
    field.hub.stop().await;
}

async fn what_was_halted_does_not_block_its_cure(world: World) {
    let (field, failed) = halted(world).await;
    field.list(&upgrade(ZZZ)).await;
    // Who has failed is moved to the cure first.
    field.is_given(&failed, ZZZ).await;
    field.behave(&AWS, Behaviour::Well);
    let addon = field.says("aws-placement", DONE).await;
    assert_eq!(published(&addon, "aws-placement").0, ZZZ);
    field.hub.stop().await;
}

async fn going_back_to_what_is_trusted_needs_no_canary(world: World) {
    let field = Field::behind_canaries(world, &AWS, &CANARIES).await;
    field.list(&upgrade(YYY)).await;
    field.says("aws-placement", DONE).await;
    field.behave(&CANARIES, Behaviour::Silent);
    // Not what ran last, but what was known to be good before.
    field.list(&upgrade(XXX)).await;
    for cluster in AWS {
        field.is_given(cluster, XXX).await;
    }
    let addon = field.says("aws-placement", DONE).await;
    assert_eq!(published(&addon, "aws-placement").0, XXX);
    field.says("canary-placement", "True/Upgrading: 1/2 upgrading...").await;
    field.hub.stop().await;
}

async fn a_cluster_in_two_placements_follows_the_canaries_in_either_order(world: World) {
    let field = Field::behind_canaries(world, &["a1", "a2", "a3"], &["b1", "c1"]).await;
    field.select("aws-placement", &["a1", "a2", "a3", "b1"]).await;
    let (aws, canaries) = (behind("canary-placement", "100%"), rolling("100%"));
    let aws = |config: &str| placement("aws-placement", config, aws.clone());
    let canaries = |config: &str| placement("canary-placement", config, canaries.clone());
    for (config, list) in [(YYY, [aws(YYY), canaries(YYY)]), (ZZZ, [canaries(ZZZ), aws(ZZZ)])] {
        field.behave(&["b1", "c1"], Behaviour::Silent);
        field.list(&list).await;
        field.is_given("b1", config).await;
        field.says("canary-placement", "True/Upgrading: 2/2 upgrading...").await;
        field
            .says(
                "aws-placement",
                "True/WaitingForCanary: waitingForCanary... 2 of 2 canaries are not done, b1 among them",
            )
            .await;
        assert_eq!(field.clusters_on(config).await, ["b1", "c1"]);
        field.behave(&["b1", "c1"], Behaviour::Well);
        field.says("aws-placement", DONE).await;
    }
    field.hub.stop().await;
}

async fn a_gate_that_opens_during_a_pause_moves_nobody(world: World) {
    let field = Field::behind_canaries(world, &AWS, &CANARIES).await;
    field.annotate("drover.dev/pause", Some("default/aws-placement")).await;
    field.list(&upgrade(YYY)).await;
    let is_open = |gate: &drover_api::drover::Gate| gate.state == GateState::Open && gate.opened.is_some();
    let status = field
        .remembers("the gate is open for what is wanted", |status| {
            let progress = progress_of(status, "aws-placement");
            let for_wanted = progress.gates.iter().find(|gate| Some(&gate.set) == progress.wanted.as_ref());
            for_wanted.is_some_and(is_open) && progress.wanted != progress.last_applied
        })
        .await;
    assert_eq!(progress_of(&status, "aws-placement").state, Some(RolloutState::Paused));
    assert_eq!(
        status.acknowledged.and_then(|acknowledged| acknowledged.pause).as_deref(),
        Some("default/aws-placement")
    );
    let words =
        "True/Upgrading: 0/4 upgrading... paused by the annotation drover.dev/pause of the ClusterManagementAddOn";
    field.says("aws-placement", words).await;
    assert_eq!(field.clusters_on(YYY).await, CANARIES);

    field.annotate("drover.dev/pause", None).await;
    field.says("aws-placement", DONE).await;
    field.hub.stop().await;
}

/// Has a user configure the add-on on one cluster, as its manager lets them.
async fn configure(field: &Field, cluster: &str, config: &str) {
    let type_ = json!({ "group": "addon.open-cluster-management.io", "resource": "addonhubconfigs" });
    let status = Patch::Merge(json!({ "status": { "supportedConfigs": [type_] } }));
    let addons = field.on(cluster);
    addons.patch_status(ADDON, &PatchParams::default(), &status).await.expect("a manager says what it supports");
    let mut config = json!({ "name": config });
    config["group"] = type_["group"].clone();
    config["resource"] = type_["resource"].clone();
    change::<ManagedClusterAddOn>(&addons, ADDON, json!({ "spec": { "configs": [config] } })).await;
}

async fn an_override_on_a_canary_keeps_the_gate_shut_unless_it_is_the_same(world: World) {
    let field = Field::behind_canaries(world, &AWS, &CANARIES).await;
    configure(&field, "c1", ZZZ).await;
    // It applies at once, outside of any rollout.
    field.is_given("c1", ZZZ).await;
    field.list(&upgrade(YYY)).await;
    let words = "True/WaitingForCanary: waitingForCanary... the canary c1 has configs or a version of its own: remove them, or skip the cluster";
    field.says("aws-placement", words).await;
    assert_eq!(field.given().await["c1"], ZZZ);

    configure(&field, "c1", YYY).await;
    field.says("aws-placement", DONE).await;
    field.hub.stop().await;
}

/// A placement with two configurations.
fn with_two(deployment_config: &str, hub_config: &str) -> Value {
    let mut entry = placement("aws-placement", hub_config, rolling("50%"));
    let other = json!({
        "group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs",
        "namespace": "default", "name": deployment_config,
    });
    entry["configs"].as_array_mut().expect("it has configurations").push(other);
    entry
}

async fn version_and_configuration_change_as_one(world: World) {
    let field = Field::new(world).await;
    let clusters = ["c1", "c2"];
    field.clusters(&clusters).await;
    field.hub_configs().await;
    for name in ["small", "large"] {
        let spec = json!({ "customizedVariables": [{ "name": "SIZE", "value": name }] });
        let config = AddOnDeploymentConfig::new(name, serde_json::from_value(spec).expect("a valid configuration"));
        create(&Api::namespaced(field.world.client(), "default"), config).await;
    }
    field.select("aws-placement", &clusters).await;
    let observer = Observer::start(&field.world).await;
    field.list(&[with_two("small", XXX)]).await;
    field.says("aws-placement", "False/InstallSucceed: 2/2 install completed with no errors.").await;
    field.list(&[with_two("large", YYY)]).await;
    field.says("aws-placement", "False/UpgradeSucceed: 2/2 upgrade completed with no errors.").await;
    field.hub.stop().await;

    let moments = observer.finish().await;
    let given = moments.iter().flat_map(|moment| moment.values()).filter(|seen| seen.given.is_some());
    let given: BTreeSet<_> = given.map(|seen| (seen.configs.clone(), seen.version.clone())).collect();
    let of = |deployment: &str, hub: &str, version: &str| {
        (vec![deployment.to_owned(), hub.to_owned()], Some(version.to_owned()))
    };
    assert_eq!(given, BTreeSet::from([of("small", XXX, "v0.10.0"), of("large", YYY, "v0.11.0")]));
}

async fn who_joins_while_it_is_halted_gets_what_is_known_to_be_good(world: World) {
    let (field, failed) = halted(world).await;
    field.clusters(&["a5"]).await;
    field.select("aws-placement", &["a1", "a2", "a3", "a4", "a5"]).await;
    field.is_given("a5", XXX).await;
    field.says_on("a5", "False/InstallSucceed: install completed with no errors.").await;

    // One that succeeds after all lifts the halt.
    assert_eq!(field.clusters_on(YYY).await.len(), 3);
    field.behave(&AWS, Behaviour::Well);
    field.says_on(&failed, "False/UpgradeSucceed: upgrade completed with no errors.").await;
    field.says("aws-placement", &DONE.replace("4/4", "5/5")).await;
    field.hub.stop().await;
}

async fn who_goes_offline_keeps_its_add_on_and_catches_up(world: World) {
    let field = Field::of_one_placement(world, &AWS, &rolling("25%")).await;
    field.reach("a4", "Unknown").await;
    field.select("aws-placement", &["a1", "a2", "a3"]).await;
    field.list(&[placement("aws-placement", YYY, rolling("25%"))]).await;
    field.says("aws-placement", "False/UpgradeSucceed: 3/3 upgrade completed with no errors.").await;
    assert_eq!(field.given().await["a4"], XXX);

    field.reach("a4", "True").await;
    field.select("aws-placement", &AWS).await;
    field.is_given("a4", YYY).await;
    field.says("aws-placement", DONE).await;
    field.hub.stop().await;
}

async fn canaries_have_to_stay_well_for_a_while(world: World) {
    let list = |config: &str| {
        let soak = limited(rolling("50%"), &json!({ "minSuccessTime": "5m" }));
        [
            placement("aws-placement", config, behind("canary-placement", "25%")),
            placement("canary-placement", config, soak),
        ]
    };
    let field = Field::behind_canaries(world, &AWS, &CANARIES).await;
    field.pass(Duration::from_hours(1));
    field.list(&list(YYY)).await;
    let first = one_is_done(&field).await;
    assert_eq!(field.clusters_on(YYY).await, [first], "the other canary waits for it to stay well");
    field.pass(Duration::from_mins(5));
    for canary in CANARIES {
        field.is_given(canary, YYY).await;
        field.is_noted(canary, "Proven").await;
    }
    field
        .remembers("the gate waits for the time to pass", |status| {
            let gates = &progress_of(status, "aws-placement").gates;
            gates.iter().any(|gate| {
                gate.message.as_ref().is_some_and(|why| why.starts_with("the canaries have to stay well until"))
            })
        })
        .await;
    assert_eq!(field.clusters_on(YYY).await, CANARIES);
    field.pass(Duration::from_mins(5));
    field.says("aws-placement", DONE).await;
    field.hub.stop().await;
}

/// Waits until one canary runs the second configuration, and returns which.
async fn one_is_done(field: &Field) -> String {
    field
        .remembers("one canary is done", |status| {
            progress_of(status, "canary-placement")
                .clusters
                .as_ref()
                .is_some_and(|clusters| (clusters.proven, clusters.waiting) == (1, 1))
        })
        .await;
    field.clusters_on(YYY).await.remove(0)
}

async fn who_is_late_has_failed_until_it_succeeds(world: World) {
    let strategy = limited(rolling("50%"), &json!({ "progressDeadline": "10m" }));
    let field = Field::of_one_placement(world, &CANARIES, &strategy).await;
    field.behave(&CANARIES, Behaviour::Silent);
    field.list(&[placement("aws-placement", YYY, strategy)]).await;
    field.says("aws-placement", "True/Upgrading: 1/2 upgrading...").await;
    field.pass(Duration::from_mins(10));
    let words = format!("False/UpgradeFailed: 1/2 upgrade failed. 1 timed out. 1 failed where 0 may: {HALTED}");
    field.says("aws-placement", &words).await;
    field.behave(&CANARIES, Behaviour::Well);
    field.says("aws-placement", "False/UpgradeSucceed: 2/2 upgrade completed with no errors.").await;
    field.hub.stop().await;
}

async fn failures_are_tolerated_up_to_their_budget(world: World) {
    let strategy = limited(rolling("25%"), &json!({ "maxFailures": 1 }));
    let field = Field::of_one_placement(world, &AWS, &strategy).await;
    field.behave(&AWS, Behaviour::Silent);
    field.list(&[placement("aws-placement", YYY, strategy)]).await;
    field.says("aws-placement", "True/Upgrading: 1/4 upgrading...").await;
    let first = field.clusters_on(YYY).await.remove(0);
    field.fail(&first).await;
    field.pass(Duration::from_mins(1));
    field.says("aws-placement", "True/Upgrading: 2/4 upgrading... 1 failed.").await;
    let second = field.clusters_on(YYY).await.into_iter().find(|cluster| *cluster != first).expect("it goes on");
    field.fail(&second).await;
    field.pass(Duration::from_mins(1));
    let words = format!("False/UpgradeFailed: 2/4 upgrade failed. 2 failed. 2 failed where 1 may: {HALTED}");
    field.says("aws-placement", &words).await;
    field.hub.stop().await;
}

/// Waits until something was told of the add-on.
async fn is_told(field: &Field, addon: &ClusterManagementAddOn, reason: &str, note: &str) {
    let events = Api::<Event>::namespaced(field.world.client(), "default");
    let regarding = format!("regarding.uid={},reason={reason}", addon.uid().unwrap_or_default());
    wait::such(&events, &regarding, note, |event| event.note.as_deref() == Some(note)).await;
}

async fn what_happens_is_told(world: World) {
    let (field, _) = halted(world).await;
    let addon = field.addons().get(ADDON).await.expect("the add-on is there");
    let status = field.remembers("it is halted", |status| status.state == Some(RolloutState::Halted)).await;
    let progress = progress_of(&status, "aws-placement");
    let (xxx, yyy) =
        (progress.last_applied.as_ref().expect("one ran"), progress.wanted.as_ref().expect("one is wanted"));
    for (reason, note) in [
        ("RolloutFinished", format!("{xxx} runs on 4 of 4 clusters of default/aws-placement")),
        ("RolloutStarted", format!("{yyy} rolls out to 2 clusters of default/canary-placement")),
        ("RolloutFinished", format!("{yyy} runs on 2 of 2 clusters of default/canary-placement")),
        (
            "GateOpened",
            format!("the canaries are well with {yyy}, which rolls out to 4 clusters of default/aws-placement"),
        ),
        (
            "RolloutHalted",
            format!(
                "{yyy} is halted with 0 of 4 clusters of default/aws-placement done: 1 failed where 0 may: {HALTED}"
            ),
        ),
    ] {
        is_told(&field, &addon, reason, &note).await;
    }
    field.list(&upgrade(XXX)).await;
    let note = format!("{xxx}, which is known to be good, returns to 4 clusters of default/aws-placement");
    is_told(&field, &addon, "RolloutStarted", &note).await;
    field.hub.stop().await;
}

async fn a_canary_that_turns_unhealthy_halts_what_rolls_out(world: World) {
    let field = Field::behind_canaries(world, &AWS, &CANARIES).await;
    field.behave(&AWS, Behaviour::Silent);
    field.list(&upgrade(YYY)).await;
    field.says("aws-placement", "True/Upgrading: 1/4 upgrading...").await;
    field.crowd.unhealthy("c1");
    let words = "True/Upgrading: 1/4 upgrading... the canary c1 was well with this and is no longer: nothing new is begun until it recovers or is skipped";
    field.says("aws-placement", words).await;
    // What is on its way goes on.
    field.behave(&AWS, Behaviour::Well);
    field
        .says(
            "aws-placement",
            &words.replace("True/Upgrading: 1/4 upgrading...", "False/UpgradeFailed: 1/4 upgrade failed."),
        )
        .await;
    assert_eq!(field.clusters_on(YYY).await.len(), 3);

    field.crowd.healthy("c1");
    field.says("aws-placement", DONE).await;
    field.hub.stop().await;
}

/// An add-on whose clusters no placement selects.
fn by_hand(strategy: &Value, config: &str) -> Value {
    let config = json!({ "group": "addon.open-cluster-management.io", "resource": "addonhubconfigs", "name": config });
    json!({ "installStrategy": strategy, "defaultConfigs": [config] })
}

async fn what_no_placement_selects_follows_the_defaults_at_once(world: World) {
    let field = Field::new(world).await;
    let clusters = ["c1", "c2", "c3"];
    field.clusters(&clusters).await;
    field.hub_configs().await;
    let spec = serde_json::from_value(by_hand(&json!({ "type": "Manual" }), XXX)).expect("a valid add-on");
    create(&field.addons(), ClusterManagementAddOn::new(ADDON, spec)).await;
    for cluster in clusters {
        field.install_by_hand(cluster).await;
    }
    for cluster in clusters {
        field.says_on(cluster, "False/InstallSucceed: install completed with no errors.").await;
    }
    field.behave(&clusters, Behaviour::Silent);
    let selector = json!({ "matchLabels": { "vendor": "OpenShift" } });
    let by_label = json!({ "type": "ClusterLabelSelector", "labelSelector": selector });
    for (strategy, config) in [(json!({ "type": "Manual" }), YYY), (by_label, ZZZ)] {
        change(&field.addons(), ADDON, json!({ "spec": by_hand(&strategy, config) })).await;
        for cluster in clusters {
            field.is_given(cluster, config).await;
        }
    }
    field
        .remembers("they are counted", |status| {
            let defaults = status.defaults.as_ref().and_then(|defaults| defaults.clusters.as_ref());
            defaults.is_some_and(|clusters| (clusters.total, clusters.given) == (3, 3))
        })
        .await;
    field.hub.stop().await;
}

async fn a_missing_configuration_moves_nobody(world: World) {
    let field = Field::of_one_placement(world, &CANARIES, &rolling("50%")).await;
    field.list(&[placement("aws-placement", "missing", rolling("50%"))]).await;
    let status = field.remembers("it is blocked", |status| status.state == Some(RolloutState::Blocked)).await;
    let message = status.message.unwrap_or_default();
    assert!(message.contains("addonhubconfigs missing"), "{message}");
    field.clusters(&["c3"]).await;
    field.select("aws-placement", &["c1", "c2", "c3"]).await;
    field.is_given("c3", XXX).await;
    assert_eq!(field.clusters_on(XXX).await, ["c1", "c2", "c3"]);
    field.hub.stop().await;
}

async fn an_edit_in_place_waits_for_its_canaries(world: World) {
    let field = Field::behind_canaries(world, &AWS, &CANARIES).await;
    let (xxx, edited) = (hash_of("v0.10.0"), hash_of("v0.10.1"));
    field.behave(&CANARIES, Behaviour::Silent);
    let configs = Api::<drover_api::addon::AddOnHubConfig>::all(field.world.client());
    change(&configs, XXX, json!({ "spec": { "desiredVersion": "v0.10.1" } })).await;
    let addon = field
        .says("aws-placement", "True/WaitingForCanary: waitingForCanary... 2 of 2 canaries are not done, c1 among them")
        .await;
    assert_eq!(published(&addon, "aws-placement"), (XXX.to_owned(), [edited.clone(), xxx.clone(), xxx]));
    field.behave(&CANARIES, Behaviour::Well);
    let addon = field.says("aws-placement", DONE).await;
    assert_eq!(published(&addon, "aws-placement").1, [edited.clone(), edited.clone(), edited]);
    field.hub.stop().await;
}
