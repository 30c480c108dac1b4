//! A hub that is driven, and what is asked of it.

use drover_api::addon::AddOnRolloutStrategy;
use drover_testkit::World;
use kube::{Api, Client, api::ListParams};

use super::{naive_hub::NaiveHub, *};

drover_testkit::scenarios! { on kube
    Own { a_hub_is_driven_and_its_requests_are_counted }
}

async fn a_hub_is_driven_and_its_requests_are_counted(world: World) {
    let _hub = NaiveHub::start(world.client());
    let rollout = Rollout { pid: Some(std::process::id()), failures: 1, changes: 2, ..rollout() };

    let findings = rollout.measure_there(world.kubeconfig(), 4).await.unwrap();

    let sent = |cost: &meter::Cost, resource: &str, verb: &str| {
        let sort = (resource.to_owned(), verb.to_owned());
        (cost.hub.of(&sort), cost.own.of(&sort))
    };
    let [install, upgrade] = findings.phases.as_slice() else { panic!("there are two phases") };
    assert_eq!(sent(&install.cost, "managedclusteraddons", "POST"), (4, 0));
    assert_eq!(sent(&install.cost, "manifestworks", "POST"), (0, 4));
    assert_eq!(sent(&install.cost, "manifestworks/status", "PATCH"), (0, 4));
    assert!(sent(&install.cost, "managedclusteraddons/status", "PATCH").0 >= 8);
    assert_eq!(sent(&upgrade.cost, "managedclusteraddons", "POST"), (0, 0));
    assert_eq!(sent(&upgrade.cost, "manifestworks", "PATCH"), (0, 4));
    assert_eq!(sent(&upgrade.cost, "addondeploymentconfigs", "PATCH"), (0, 1));
    assert!(sent(&upgrade.cost, "managedclusteraddons/status", "PATCH").0 >= 7);
    assert!(install.cost.cpu > Some(Duration::ZERO) && install.cost.peak_megabytes > Some(1.0));
    // To not available and back, each of which this hub writes down.
    let touched = &findings.touched[0];
    assert!(touched.cost.hub.writes() >= 2, "{:?}", touched.cost);
    assert_eq!(left(&world.client()).await, 0);
}

/// How much is left of what was made.
async fn left(client: &Client) -> usize {
    let all = ListParams::default();
    let clusters = Api::<drover_api::cluster::ManagedCluster>::all(client.clone()).list(&all).await.unwrap();
    let addons = Api::<ManagedClusterAddOn>::all(client.clone()).list(&all).await.unwrap();
    clusters.items.len() + addons.items.len()
}

fn rollout() -> Rollout {
    Rollout {
        clusters: vec![4],
        kubeconfig: None,
        pid: None,
        delay: "0s".parse().unwrap(),
        failures: 0,
        strategy: None,
        ocm: false,
        templated: false,
        changes: CHANGES,
        drover: None,
        output: None,
    }
}

#[test]
fn strategies_are_of_the_api_and_have_the_window() {
    for strategy in [Strategy::RollingUpdate, Strategy::Progressive] {
        let spec = strategy.spec(3);
        let read: AddOnRolloutStrategy = serde_json::from_value(spec.clone()).unwrap();
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(written, spec);
    }
}

#[test]
fn an_addon_is_done_when_it_says_so_and_runs_something_else_than_before() {
    let addon = |reason: &str, applied: Value| -> ManagedClusterAddOn {
        let progressing = json!({ "type": "Progressing", "status": "False", "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let reference = json!({ "group": "g", "resource": "r", "lastAppliedConfig": applied,
            "desiredConfig": { "name": "config", "specHash": "new" } });
        serde_json::from_value(json!({
            "metadata": { "name": "addon" }, "spec": {},
            "status": { "conditions": [progressing], "configReferences": [reference] },
        }))
        .unwrap()
    };
    let (new, old) = (json!({ "name": "config", "specHash": "new" }), json!({ "name": "config", "specHash": "old" }));
    let hash = |text: &str| text.parse::<SpecHash>().unwrap();
    for reason in ["InstallSucceed", "UpgradeSucceed", "Succeed", "Completed"] {
        assert!(is_done(&addon(reason, new.clone()), None));
        assert!(is_done(&addon(reason, new.clone()), Some(&[hash("old")])));
        assert!(!is_done(&addon(reason, new.clone()), Some(&[hash("new")])));
        assert!(!is_done(&addon(reason, old.clone()), None));
    }
    assert!(!is_done(&addon("UpgradeFailed", new), None));
    assert!(!is_done(&addon("Completed", Value::Null), None));
}

#[test]
fn an_addon_runs_what_it_was_given_when_it_runs_all_of_it() {
    let reference = |resource: &str, applied: &str| {
        json!({ "group": "g", "resource": resource, "desiredConfig": { "name": "config", "specHash": "new" },
            "lastAppliedConfig": { "name": "config", "specHash": applied } })
    };
    let runs = |references: &[Value]| {
        let status = json!({ "configReferences": references });
        let addon = json!({ "metadata": { "name": "addon" }, "spec": {}, "status": status });
        applied(&serde_json::from_value(addon).unwrap()).map(|hashes| hashes.len())
    };
    assert_eq!(runs(&[reference("settings", "new"), reference("templates", "new")]), Some(2));
    assert_eq!(runs(&[reference("settings", "new"), reference("templates", "old")]), None);
    assert_eq!(runs(&[]), None, "nothing is known yet");
}

#[test]
fn the_command_says_what_was_asked_for() {
    let plain = Rollout { clusters: vec![500, 4000], ..rollout() };
    assert_eq!(plain.command(), "rollout --clusters 500,4000");
    let templated = Rollout { templated: true, ..rollout() };
    assert_eq!(templated.command(), "rollout --clusters 4 --templated");
    let ocm = Rollout {
        kubeconfig: Some("hub.yaml".into()),
        pid: Some(1),
        ocm: true,
        failures: 2,
        changes: 10,
        delay: "1s".parse().unwrap(),
        strategy: Some(Strategy::Progressive),
        ..rollout()
    };
    assert_eq!(
        ocm.command(),
        "rollout --clusters 4 --kubeconfig FILE --pid PID --ocm --strategy progressive --delay 1s --failures 2 --changes 10"
    );
}
