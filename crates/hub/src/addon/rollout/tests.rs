//! What is decided on what an add-on's rollouts remember.

use drover_api::addon::ManagedClusterAddOn;
use serde_json::{Value, json};

use super::*;
use crate::addon::scene::{Scene, drain, words};

const SET: &str = "0123456789abcdef";

fn hello() -> ObjectKey {
    ObjectKey::cluster_wide("hello")
}

fn controller() -> Rollouts {
    Rollouts { dialect: Dialect::Drover }
}

/// What remembers the rollouts of an add-on that has this uid.
fn record(scene: &mut Scene, uid: &str, status: &Value) {
    let owner = json!({ "apiVersion": "addon.open-cluster-management.io/v1beta1", "kind": "ClusterManagementAddOn",
        "name": "hello", "uid": uid, "controller": true });
    let mut object = json!({ "metadata": { "ownerReferences": [owner] }, "spec": {} });
    if !status.is_null() {
        object["status"] = status.clone();
    }
    scene.set::<AddOnRollout>(None, "hello", object);
}

fn sets(names: &[&str]) -> Value {
    let set =
        |name: &&str| json!({ "fingerprint": name, "configs": [], "epoch": 1, "firstWanted": "2026-01-01T00:00:00Z" });
    json!({ "sets": names.iter().map(set).collect::<Vec<_>>() })
}

fn given(scene: &mut Scene, cluster: &str, set: &str) {
    let condition = json!({ "type": "drover.dev/Given", "status": "True", "reason": "Given", "message": set,
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let status = json!({ "conditions": [condition] });
    scene.set::<ManagedClusterAddOn>(Some(cluster), "hello", json!({ "spec": {}, "status": status }));
}

#[test]
fn what_remembers_rollouts_is_made_and_belongs_to_the_add_on_that_there_is() {
    let mut scene = Scene::new();
    scene.addon("hello", &json!({ "type": "Manual" }));
    assert_eq!(words(&scene.plan(&controller(), &hello())), ["Create AddOnRollout hello"]);
    record(&mut scene, "former", &sets(&[]));
    assert_eq!(words(&scene.plan(&controller(), &hello())), ["Patch AddOnRollout hello"], "nothing but its owner");
    record(&mut scene, "hello", &sets(&[]));
    let decided = words(&scene.plan(&controller(), &hello()));
    assert_eq!(decided, ["Patch AddOnRollout hello", "Patch ClusterManagementAddOn hello"], "what it remembers");
}

#[test]
fn add_ons_on_clusters_speak_of_what_is_remembered_again() {
    let mut scene = Scene::new();
    scene.addon("hello", &json!({ "type": "Manual" }));
    given(&mut scene, "one", SET);
    given(&mut scene, "two", "ffffffffffffffff");
    record(&mut scene, "hello", &Value::Null);
    let marked = |scene: &Scene| drain(&scene.fleet.queues.addons);
    marked(&scene);

    record(&mut scene, "hello", &sets(&[]));
    assert_eq!(marked(&scene), ["one/hello", "two/hello"], "nothing was known of any before");
    scene.plan(&controller(), &hello());
    marked(&scene);
    record(&mut scene, "hello", &sets(&["aaaaaaaaaaaaaaaa"]));
    assert_eq!(marked(&scene), [""; 0], "nobody was given it");
    record(&mut scene, "hello", &sets(&["aaaaaaaaaaaaaaaa", SET]));
    assert_eq!(marked(&scene), ["one/hello"]);
    scene.gone::<AddOnRollout>(None, "hello");
    assert_eq!(marked(&scene), [""; 0], "there is nothing to say until it is made again");
}
