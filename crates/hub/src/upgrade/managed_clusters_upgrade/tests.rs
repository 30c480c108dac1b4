//! What the controller of upgrades writes, and what that costs.

use drover_api::{
    cluster::ManagedClustersUpgrade,
    drover::ClusterUpgrade,
    names::{GIVEN_ANNOTATION, UPGRADE_FINALIZER, UPGRADE_LABEL, UPGRADE_PART_LABEL, UPGRADED_BY_ANNOTATION},
};
use drover_engine::upgrade::{
    facts::UpgradeFacts,
    naming::part_name,
    platform,
    reason::Reason,
    status::{APPLIED, COMPLETE, FAILED, IN_PROGRESS, SELECTED},
    target::Target,
};
use serde_json::{Value, json};

use super::*;
use crate::{
    addon::scene::{Scene, drain, named, noon, words},
    manifest_work::CachedWork,
};

const HOME: &str = "default";
const MANY: usize = 10_000;

fn to_4_12() -> ObjectKey {
    ObjectKey::namespaced(HOME, "to-4-12")
}

fn controller() -> ClusterUpgrades {
    ClusterUpgrades::new(Metrics::new())
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("cluster-{number:05}")).collect()
}

/// An upgrade of the clusters of the placement x, ten at a time.
fn upgrade(scene: &mut Scene, rest: &Value) {
    let spec = json!({ "placement": [named("x")], "clusterVersion": { "version": "4.12.0" },
        "upgradeStrategy": { "maxConcurrency": 10 } });
    let mut object = json!({ "metadata": { "finalizers": [UPGRADE_FINALIZER], "generation": 1 }, "spec": spec });
    object.as_object_mut().expect("an object").extend(rest.as_object().cloned().unwrap_or_default());
    scene.set::<ManagedClustersUpgrade>(Some(HOME), "to-4-12", object);
}

/// A fleet with an upgrade of these clusters, all of which wait for their turn.
fn waiting(clusters: &[String]) -> Scene {
    let mut scene = Scene::new();
    upgrade(&mut scene, &json!({}));
    scene.decide("x", clusters);
    scene.placement("x", clusters.len());
    for cluster in clusters {
        scene.available(cluster, "True");
        scene.namespace(cluster, &json!({}));
        record(
            &mut scene,
            cluster,
            json!({ "phase": "Waiting", "reason": "Queued", "message": Reason::Queued.to_string() }),
        );
    }
    scene
}

/// The record of a cluster, which says this.
fn record(scene: &mut Scene, cluster: &str, mut status: Value) {
    status["observedGeneration"] = json!(1);
    status["phaseStarted"] = json!(noon().to_string());
    let spec = json!({ "upgrade": { "namespace": HOME, "name": "to-4-12", "uid": "to-4-12" },
        "target": { "version": "4.12.0" }, "clusterUID": cluster });
    let object = json!({ "metadata": { "generation": 1 }, "spec": spec, "status": status });
    scene.set::<ClusterUpgrade>(Some(cluster), &part_name(HOME, "to-4-12"), object);
}

/// A cluster whose platform is being upgraded, as far as its agent says.
fn under_way(scene: &mut Scene, cluster: &str, message: &str) {
    let condition = json!({ "type": "ManagedClusterConditionAvailable", "status": "True", "reason": "", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let object = json!({ "metadata": { "annotations": { UPGRADED_BY_ANNOTATION: "default/to-4-12" } },
        "spec": { "hubAcceptsClient": true }, "status": { "conditions": [condition] } });
    scene.set::<drover_api::cluster::ManagedCluster>(None, cluster, object);
    let time = noon().to_string();
    record(scene, cluster, json!({ "phase": "Upgrading", "started": time, "delivered": time }));
    work(scene, cluster, message);
}

fn work(scene: &mut Scene, cluster: &str, message: &str) {
    let target = Target::of(&serde_json::from_value(json!({ "version": "4.12.0" })).expect("a target"));
    let note = format!("{} 2026-01-01T00:00:00Z", platform::upgrade(&target).name);
    let text = |name: &str, value: &str| json!({ "name": name, "fieldValue": { "type": "String", "string": value } });
    let values = json!([text("version", "4.12.0"), text("state", "Partial"), text("message", message)]);
    let manifest = json!({ "resourceMeta": { "ordinal": 0, "resource": "clusterversions" }, "conditions": [],
        "statusFeedback": { "values": values } });
    let applied = json!({ "type": "Applied", "status": "True", "reason": "", "message": "", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let object = json!({
        "metadata": { "generation": 1, "annotations": { GIVEN_ANNOTATION: note },
            "labels": { UPGRADE_LABEL: part_name(HOME, "to-4-12"), UPGRADE_PART_LABEL: "platform" } },
        "spec": {},
        "status": { "conditions": [applied], "resourceStatus": { "manifests": [manifest] } },
    });
    scene.set::<CachedWork>(Some(cluster), &format!("{cluster}-cluster-upgrade"), object);
}

/// How many clusters were looked at so far.
fn looks(controller: &ClusterUpgrades) -> u64 {
    let metrics = controller.metrics.encode();
    let line = metrics.lines().find(|line| line.contains("drover-upgrade\"") && line.contains("look"));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
}

#[test]
fn an_upgrade_is_marked_before_anything_is_made() {
    let mut scene = waiting(&names(1));
    upgrade(&mut scene, &json!({ "metadata": { "generation": 1 } }));
    assert_eq!(words(&scene.plan(&controller(), &to_4_12())), ["Patch ManagedClustersUpgrade default/to-4-12"]);
}

#[test]
fn of_ten_thousand_clusters_one_that_gets_on_costs_one_look_and_one_write() {
    let clusters = names(MANY);
    let (mut scene, controller) = (waiting(&clusters), controller());
    for cluster in &clusters[..10] {
        under_way(&mut scene, cluster, "10%");
    }
    scene.plan(&controller, &to_4_12());
    assert_eq!(looks(&controller), 10_000 + 10, "all once, and who may do what comes before once more");
    drain(&scene.queues.upgrades);
    let before = looks(&controller);
    // Those whose turn it is are looked at in every plan, and those under way until what is said of them is written.
    let standing = 10 + 10;

    work(&mut scene, "cluster-00003", "40%");
    assert_eq!(drain(&scene.queues.upgrades), ["default/to-4-12"]);
    let plan = scene.plan(&controller, &to_4_12());
    assert!(looks(&controller) - before <= 1 + 2 * standing, "{} looks", looks(&controller) - before);
    let about = words(&plan).into_iter().filter(|write| write.contains("cluster-00003")).collect::<Vec<_>>();
    assert_eq!(about, [format!("Patch ClusterUpgrade cluster-00003/{}", part_name(HOME, "to-4-12"))]);
}

#[test]
fn what_is_said_of_the_whole_is_written_once_a_second_and_stays_small() {
    let clusters = names(MANY);
    let (mut scene, controller) = (waiting(&clusters), controller());
    let is_told = |plan: &Plan| words(plan).iter().any(|write| write == "Patch ManagedClustersUpgrade default/to-4-12");
    let plan = scene.plan(&controller, &to_4_12());
    assert!(is_told(&plan));
    assert!(is_told(&scene.plan(&controller, &to_4_12())), "a plan that is dropped delays nothing");
    scene.accept(&controller, &to_4_12(), &plan);
    for cluster in &clusters[..9000] {
        record(
            &mut scene,
            cluster,
            json!({ "phase": "Failed", "failedPhase": "PostAction", "finished": noon().to_string() }),
        );
    }
    let plan = scene.plan(&controller, &to_4_12());
    assert!(!is_told(&plan) && plan.wake.is_some(), "not twice in a second");
    let later = noon().checked_add(std::time::Duration::from_secs(1)).expect("a time");
    assert!(is_told(&scene.plan_at(&controller, &to_4_12(), later)));

    let facts = drover_engine::upgrade::status::Facts {
        stored: None,
        generation: Some(1),
        fleet: &scene.state::<ClusterUpgrades>(&to_4_12()).tracker.index,
        hold: None,
        passed: None,
        has_canaries: false,
        outside: Vec::new(),
        unclear: Vec::new(),
        complaints: Vec::new(),
        refusal: None,
        acknowledged: None,
        limit: 10,
        now: noon(),
    };
    let status = facts.status();
    assert_eq!(status.clusters_summery.as_ref().map(|summary| (summary.total, summary.failed)), Some((10_000, 9000)));
    let types: Vec<_> = status.conditions.iter().map(|condition| condition.type_.as_str()).collect();
    assert_eq!(types, [SELECTED, APPLIED, IN_PROGRESS, COMPLETE, FAILED]);
    assert!(serde_json::to_vec(&status).expect("JSON").len() < 100 << 10);
}

#[test]
fn what_does_not_concern_an_upgrade_is_not_told_to_it() {
    let mut scene = waiting(&names(1));
    drain(&scene.queues.upgrades);
    scene.available("elsewhere", "True");
    scene.placement("y", 0);
    assert_eq!(drain(&scene.queues.upgrades), [""; 0]);
    scene.available("cluster-00000", "Unknown");
    assert_eq!(drain(&scene.queues.upgrades), ["default/to-4-12"]);
}

#[test]
fn clusters_are_let_go_before_an_upgrade_that_is_deleted() {
    let mut scene = waiting(&names(1));
    under_way(&mut scene, "cluster-00000", "10%");
    let metadata =
        json!({ "finalizers": [UPGRADE_FINALIZER], "generation": 2, "deletionTimestamp": "2026-01-01T00:00:00Z" });
    upgrade(&mut scene, &json!({ "metadata": metadata }));
    let plan = |scene: &mut Scene| words(&scene.plan(&controller(), &to_4_12()));
    assert_eq!(plan(&mut scene), ["Delete ManifestWork cluster-00000/cluster-00000-cluster-upgrade"]);
    scene.gone::<CachedWork>(Some("cluster-00000"), "cluster-00000-cluster-upgrade");
    assert_eq!(plan(&mut scene), ["Patch ManagedCluster cluster-00000"]);
    scene.available("cluster-00000", "True");
    let name = part_name(HOME, "to-4-12");
    assert_eq!(plan(&mut scene), [format!("Delete ClusterUpgrade cluster-00000/{name}")]);
    scene.gone::<ClusterUpgrade>(Some("cluster-00000"), &name);
    assert_eq!(plan(&mut scene), ["Patch ManagedClustersUpgrade default/to-4-12"]);
}

#[test]
fn without_an_approver_nothing_is_begun_that_asks_for_operators() {
    let mut scene = waiting(&names(1));
    let operators = json!({ "include": [{ "name": "gitops", "namespace": "ops" }] });
    let spec =
        json!({ "placement": [named("x")], "clusterVersion": { "version": "4.12.0" }, "ocpOperators": operators });
    upgrade(&mut scene, &json!({ "spec": spec }));
    let told = |scene: &mut Scene| {
        let plan = scene.plan(&controller(), &to_4_12());
        let claims = words(&plan).iter().any(|write| write == "Patch ManagedCluster cluster-00000");
        let complaint = scene.cache.upgrades.settings[&to_4_12()].flaws.first().cloned().unwrap_or_default();
        (claims, complaint)
    };
    let (is_begun, complaint) = told(&mut scene);
    assert!(!is_begun && complaint.ends_with("start it with --operator-approver-image"), "{complaint}");
    // One whose platform is done meanwhile is not done for want of an approver.
    let time = noon().to_string();
    under_way(&mut scene, "cluster-00000", "10%");
    record(&mut scene, "cluster-00000", json!({ "phase": "Operators", "started": time, "platformCompleted": time }));
    scene.plan(&controller(), &to_4_12());
    assert_eq!(scene.state::<ClusterUpgrades>(&to_4_12()).tracker.index.tally().complete, 0);
}

#[test]
fn what_an_upgrade_has_left_that_somebody_removed_by_force_is_in_nobodys_way() {
    let mut scene = waiting(&names(1));
    let stray = |scene: &mut Scene, deleted: Option<&str>| {
        let mut metadata = json!({ "generation": 1,
            "labels": { UPGRADE_LABEL: part_name(HOME, "gone"), UPGRADE_PART_LABEL: "platform" } });
        if let Some(deleted) = deleted {
            (metadata["deletionTimestamp"], metadata["finalizers"]) = (json!(deleted), json!(["agent"]));
        }
        scene.set::<CachedWork>(
            Some("cluster-00000"),
            "cluster-00000-cluster-upgrade",
            json!({ "metadata": metadata, "spec": {} }),
        );
    };
    let rival = |scene: &Scene| scene.cache.rival(&part_name(HOME, "to-4-12"), &"cluster-00000".into());
    // One that its agent has yet to take leave of is waited for.
    stray(&mut scene, Some("2026-01-01T00:00:00Z"));
    assert_eq!(rival(&scene), Some(part_name(HOME, "gone")));
    stray(&mut scene, None);
    assert_eq!(rival(&scene), None);
    // It is not taken over, because what is reported of it is of another upgrade.
    under_way(&mut scene, "cluster-00000", "10%");
    stray(&mut scene, None);
    let told = json!({ "phase": "Upgrading", "started": noon().to_string(), "reason": "NotDelivered",
        "message": Reason::NotDelivered.to_string() });
    record(&mut scene, "cluster-00000", told);
    let writes = words(&scene.plan(&controller(), &to_4_12()));
    assert!(
        writes.contains(&"Delete ManifestWork cluster-00000/cluster-00000-cluster-upgrade".to_owned()),
        "{writes:?}"
    );
}

#[test]
fn those_of_whom_nobody_can_tell_whether_they_are_left_out_cost_nothing_meanwhile() {
    let clusters = names(1000);
    let (mut scene, controller) = (waiting(&clusters), controller());
    scene.gone::<drover_api::cluster::Placement>(Some(HOME), "x");
    for cluster in &clusters {
        let told = json!({ "phase": "Waiting", "reason": "Unselected", "message": Reason::Unselected.to_string() });
        record(&mut scene, cluster, told);
    }
    scene.plan(&controller, &to_4_12());
    assert_eq!(scene.state::<ClusterUpgrades>(&to_4_12()).unsure.len(), 1000);
    let before = looks(&controller);
    scene.available("cluster-00003", "Unknown");
    scene.plan(&controller, &to_4_12());
    assert_eq!(looks(&controller) - before, 1);
}
