//! What the controller of sets of works writes, and what that costs.

use drover_api::{
    cluster::Placement,
    names::{REPLICA_SET_FINALIZER, REPLICA_SET_LABEL},
    work::{ManifestWork, ManifestWorkReplicaSet, ManifestWorkSpec},
};
use drover_engine::{
    plan::{Write, rejection},
    tracker::BATCH,
    work::replica_set::naming::work_name,
};
use serde_json::{Value, json};

use super::*;
use crate::{
    addon::scene::{Scene, drain, words},
    manifest_work::CachedWork,
};

const HOME: &str = "default";

fn hello() -> ObjectKey {
    ObjectKey::namespaced(HOME, "hello")
}

fn controller() -> ReplicaSets {
    ReplicaSets::new(Metrics::new())
}

fn template(version: &str) -> Value {
    let manifest =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "v": version } });
    json!({ "workload": { "manifests": [manifest] } })
}

/// A set that has its finalizer.
fn set(scene: &mut Scene, metadata: &Value, version: &str) {
    let mut all = json!({ "finalizers": [REPLICA_SET_FINALIZER], "generation": 1 });
    all.as_object_mut().expect("an object").extend(metadata.as_object().cloned().unwrap_or_default());
    let spec = json!({ "placementRefs": [{ "name": "x" }], "manifestWorkTemplate": template(version) });
    scene.set::<ManifestWorkReplicaSet>(Some(HOME), "hello", json!({ "metadata": all, "spec": spec }));
}

/// A fleet with a set on the placement x, which selects these clusters, all of which can be reached.
fn placed<S: AsRef<str>>(clusters: &[S]) -> Scene {
    let mut scene = Scene::new();
    set(&mut scene, &json!({}), "v1");
    scene.decide("x", clusters);
    scene.placement("x", clusters.len());
    for cluster in clusters {
        scene.available(cluster.as_ref(), "True");
        scene.namespace(cluster.as_ref(), &json!({}));
    }
    scene
}

/// The work of a cluster, as it is stored when the agent has said this of it.
fn work(scene: &mut Scene, cluster: &str, version: &str, applied: &str) {
    let condition = |type_: &str| {
        json!({ "type": type_, "status": applied, "reason": "", "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    let labels = json!({ REPLICA_SET_LABEL: "default.hello", "work.open-cluster-management.io/placementname": "x" });
    let object = json!({
        "metadata": { "labels": labels, "generation": 1 },
        "spec": template(version),
        "status": { "conditions": [condition("Applied"), condition("Available")] },
    });
    scene.set::<CachedWork>(Some(cluster), &work_name(HOME, "hello"), object);
}

/// How many clusters were looked at so far.
fn looks(controller: &ReplicaSets) -> u64 {
    let metrics = controller.metrics.encode();
    let line = metrics.lines().find(|line| line.contains("drover-work\"") && line.contains("look"));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
}

#[test]
fn a_set_is_marked_before_anything_is_made() {
    let mut scene = placed(&["one"]);
    set(&mut scene, &json!({ "finalizers": [] }), "v1");
    let plan = scene.plan(&controller(), &hello());
    assert_eq!(words(&plan), ["Patch ManifestWorkReplicaSet default/hello"]);
    assert_eq!(plan.ordered[0].body().expect("a patch")["metadata"]["finalizers"], json!([REPLICA_SET_FINALIZER]));
}

#[test]
fn many_clusters_are_dealt_with_in_steps() {
    let names: Vec<_> = (0..300).map(|number| format!("cluster-{number:03}")).collect();
    let plan = placed(&names).plan(&controller(), &hello());
    assert_eq!((plan.actions.len(), plan.wake.is_some()), (BATCH, true));
    assert_eq!(plan.parallel.len(), 1, "the status");
}

#[test]
fn what_one_agent_says_is_a_look_at_one_cluster() {
    let names: Vec<_> = (0..300).map(|number| format!("cluster-{number:03}")).collect();
    let (mut scene, controller) = (placed(&names), controller());
    for cluster in &names {
        work(&mut scene, cluster, "v1", "True");
    }
    scene.plan(&controller, &hello());
    assert_eq!(looks(&controller), 300);
    drain(&scene.queues.work_sets);
    work(&mut scene, "cluster-007", "v1", "False");
    assert_eq!(drain(&scene.queues.work_sets), ["default/hello"]);
    scene.plan(&controller, &hello());
    assert_eq!(looks(&controller), 301);
    scene.plan(&controller, &hello());
    assert_eq!(looks(&controller), 301, "nothing has changed");
}

#[test]
fn what_does_not_concern_a_set_is_not_told_to_it() {
    let mut scene = placed(&["one"]);
    drain(&scene.queues.work_sets);
    scene.set::<Placement>(Some("elsewhere"), "x", json!({ "spec": {} }));
    scene.available("two", "True");
    assert_eq!(drain(&scene.queues.work_sets), [""; 0]);
    scene.available("one", "Unknown");
    assert_eq!(drain(&scene.queues.work_sets), ["default/hello"]);
}

#[test]
fn a_note_is_taken_of_when_a_cluster_is_given_something() {
    let mut scene = placed(&["one"]);
    work(&mut scene, "one", "v0", "True");
    let plan = scene.plan(&controller(), &hello());
    let expected = format!("Patch ManifestWork one/{}", work_name(HOME, "hello"));
    assert!(words(&plan).contains(&expected), "{:?}", words(&plan));
}

#[test]
fn the_works_of_a_set_that_is_deleted_go_first() {
    let mut scene = placed(&["one"]);
    work(&mut scene, "one", "v1", "True");
    set(&mut scene, &json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }), "v1");
    let expected = format!("Delete ManifestWork one/{}", work_name(HOME, "hello"));
    assert_eq!(words(&scene.plan(&controller(), &hello())), [expected]);
    scene.gone::<CachedWork>(Some("one"), &work_name(HOME, "hello"));
    assert_eq!(words(&scene.plan(&controller(), &hello())), ["Patch ManifestWorkReplicaSet default/hello"]);
}

#[test]
fn only_what_nobody_else_was_faster_with_is_a_refusal() {
    let mut work = ManifestWork::new("b", ManifestWorkSpec::default());
    work.metadata.namespace = Some("a".to_owned());
    let no = || "no".to_owned();
    let (patch, create) = (Write::merge(&work, json!({})), Write::create(work));
    assert_eq!(rejection(&patch, &WriteResult::Conflict), None);
    assert_eq!(rejection(&patch, &WriteResult::Gone(no())), None);
    let refused = Some("could not Create ManifestWork a/b: no".to_owned());
    for result in [WriteResult::Gone, WriteResult::Exists, WriteResult::Forbidden, WriteResult::Unreachable] {
        assert_eq!(rejection(&create, &result(no())), refused);
    }
}

#[test]
fn a_strategy_that_nobody_can_read_moves_nobody() {
    let mut scene = placed(&["one"]);
    let strategy = json!({ "type": "All", "all": { "progressDeadline": "1hour" } });
    let spec = json!({ "placementRefs": [{ "name": "x", "rolloutStrategy": strategy }], "manifestWorkTemplate": template("v1") });
    let metadata = json!({ "finalizers": [REPLICA_SET_FINALIZER] });
    scene.set::<ManifestWorkReplicaSet>(Some(HOME), "hello", json!({ "metadata": metadata, "spec": spec }));
    assert_eq!(words(&scene.plan(&controller(), &hello())), ["Patch ManifestWorkReplicaSet default/hello"]);
}
