//! What the install controller writes, and what it keeps in mind.

use drover_api::names::{CLEANUP_PRIORITY_ANNOTATION, INSTALLED_ANNOTATION};
use drover_runtime::decode::Defect;
use k8s_openapi::api::core::v1::Namespace;
use serde_json::{Value, json};

use super::*;
use crate::addon::scene::{Scene, drain, named, noon, words};

/// A fleet with an add-on that is installed by the placement x, which selects these clusters.
fn placed<S: AsRef<str>>(clusters: &[S]) -> Scene {
    let mut scene = Scene::new();
    scene.addon("hello", &json!({ "type": "Placements", "placements": [named("x")] }));
    scene.decide("x", clusters);
    scene.placement("x", clusters.len());
    for cluster in clusters {
        scene.cluster(cluster.as_ref(), &json!({}));
        scene.namespace(cluster.as_ref(), &json!({}));
    }
    scene
}

fn hello() -> ObjectKey {
    ObjectKey::cluster_wide("hello")
}

fn installs() -> Installs {
    Installs::new(false, Metrics::new())
}

/// What an add-on is like that the hub has made.
fn ours() -> Value {
    json!({ "metadata": { "annotations": { INSTALLED_ANNOTATION: "true" } } })
}

#[test]
fn many_clusters_are_dealt_with_in_steps() {
    let names: Vec<_> = (0..300).map(|number| format!("cluster-{number:03}")).collect();
    let (mut scene, installs) = (placed(&names), installs());
    let plan = scene.plan(&installs, &hello());
    assert_eq!((plan.parallel.len(), plan.ordered.len(), plan.wake), (BATCH, 0, Some(noon())));
    assert_eq!(words(&plan)[0], "Create ManagedClusterAddOn cluster-000/hello");
    // Nothing has come of it, which must not keep the others from their turn.
    let plan = scene.plan(&installs, &hello());
    assert_eq!(words(&plan)[0], "Create ManagedClusterAddOn cluster-256/hello");
    assert_eq!(words(&plan)[44], "Create ManagedClusterAddOn cluster-000/hello");
    assert_eq!(plan.parallel.len(), BATCH);
}

#[test]
fn a_cluster_without_a_namespace_waits_for_it() {
    let (mut scene, installs) = (placed(&["one", "two", "three"]), installs());
    scene.gone::<Namespace>(None, "one");
    scene.namespace("two", &json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }));
    assert_eq!(words(&scene.plan(&installs, &hello())), ["Create ManagedClusterAddOn three/hello"]);
    drain(&scene.queues.installs);
    scene.namespace("one", &json!({}));
    assert_eq!(drain(&scene.queues.installs), ["hello"]);
    assert_eq!(scene.plan(&installs, &hello()).parallel.len(), 2);
}

#[test]
fn an_absence_is_kept_in_mind_until_it_is_over() {
    let (mut scene, installs) = (placed(&["one", "two"]), installs());
    for cluster in ["one", "two"] {
        scene.on_cluster(cluster, "hello", &ours());
    }
    scene.decide("x", &["one"]);
    let at =
        |scene: &mut Scene, seconds| scene.plan_at(&installs, &hello(), after(noon(), Duration::from_secs(seconds)));
    assert_eq!(
        (words(&at(&mut scene, 0)).len(), at(&mut scene, 3).wake),
        (0, Some(after(noon(), Duration::from_secs(10))))
    );
    scene.decide("x", &["one", "two"]);
    assert_eq!((words(&at(&mut scene, 9)).len(), at(&mut scene, 9).wake), (0, None));
    assert!(scene.state::<Installs>(&hello()).is_empty(), "there is nothing to remember");
    scene.decide("x", &["one"]);
    assert_eq!(words(&at(&mut scene, 10)).len(), 0, "this is another absence");
    assert_eq!(words(&at(&mut scene, 20)), ["Delete ManagedClusterAddOn two/hello"]);
}

#[test]
fn what_hinders_an_add_on_is_looked_at_again() {
    let (mut scene, installs) = (placed(&["one"]), installs());
    scene.gone::<Placement>(Some("default"), "x");
    let plan = scene.plan(&installs, &hello());
    assert_eq!((words(&plan).len(), plan.wake), (0, Some(after(noon(), PATIENCE))));
}

#[test]
fn a_slice_that_can_not_be_read_may_be_any_placements() {
    let (mut scene, installs) = (placed(&["one"]), installs());
    scene.on_cluster("two", "hello", &ours());
    let defect = Defect { path: "status".to_owned(), message: "invalid".to_owned() };
    scene.cache.decisions.keep(&ObjectKey::namespaced("elsewhere", "odd"), defect.clone());
    assert_eq!(words(&scene.plan(&installs, &hello())).len(), 2);
    scene.cache.decisions.keep(&ObjectKey::namespaced("default", "odd"), defect);
    assert_eq!(words(&scene.plan(&installs, &hello())).len(), 0);
}

#[test]
fn what_is_there_when_the_hub_begins_is_taken_over_if_it_is_asked_to() {
    let mut scene = placed(&["inside", "new"]);
    for cluster in ["inside", "outside"] {
        scene.on_cluster(cluster, "hello", &json!({}));
    }
    assert_eq!(words(&scene.plan(&installs(), &hello())), ["Create ManagedClusterAddOn new/hello"]);

    let adopting = Installs::new(true, Metrics::new());
    assert_eq!(words(&scene.plan(&adopting, &hello())), ["Patch ManagedClusterAddOn inside/hello"]);
    scene.on_cluster("inside", "hello", &ours());
    assert_eq!(words(&scene.plan(&adopting, &hello())), ["Create ManagedClusterAddOn new/hello"]);
    // What comes later is somebody's own.
    scene.on_cluster("new", "hello", &json!({}));
    assert_eq!(words(&scene.plan(&adopting, &hello())).len(), 0);
    scene.addon("later", &json!({ "type": "Placements", "placements": [named("x")] }));
    for cluster in ["inside", "new"] {
        scene.on_cluster(cluster, "later", &json!({}));
    }
    assert_eq!(words(&scene.plan(&adopting, &ObjectKey::cluster_wide("later"))).len(), 0);
}

#[test]
fn a_cluster_that_leaves_is_seen_out_in_order_if_nobody_else_does() {
    let (mut scene, installs) = (placed::<&str>(&[]), installs());
    scene.cluster("one", &json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }));
    scene.on_cluster("one", "hello", &json!({ "metadata": { "annotations": { CLEANUP_PRIORITY_ANNOTATION: "7" } } }));
    scene.on_cluster("one", "by-hand", &json!({}));
    let by_hand = ObjectKey::cluster_wide("by-hand");
    assert_eq!(words(&scene.plan(&installs, &by_hand)), ["Delete ManagedClusterAddOn one/by-hand"]);
    assert_eq!(words(&scene.plan(&installs, &hello())).len(), 0, "it is not its turn");
    scene.gone::<ManagedClusterAddOn>(Some("one"), "by-hand");
    assert_eq!(words(&scene.plan(&installs, &hello())), ["Delete ManagedClusterAddOn one/hello"]);
    scene.cache.keeps_clusters = true;
    assert_eq!(words(&scene.plan(&installs, &hello())).len(), 0, "the cluster controller does it");
}
