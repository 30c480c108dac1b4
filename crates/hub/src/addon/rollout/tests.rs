//! What is decided on what an add-on's rollouts remember.

use std::{collections::BTreeSet, time::Duration};

use drover_api::{
    addon::{ClusterManagementAddOn, ConfigGroupResource, ManagedClusterAddOn},
    drover::AddOnRolloutSpec,
};
use drover_engine::{
    plan::{Subresource, Write},
    tracker::BATCH,
};
use drover_runtime::clock::after;
use serde_json::{Value, json};

use super::*;
use crate::addon::scene::{Scene, drain, named, noon, words};

const SET: &str = "0123456789abcdef";

fn hello() -> ObjectKey {
    ObjectKey::cluster_wide("hello")
}

fn controller() -> Rollouts {
    Rollouts
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
    let plan = scene.plan(&controller(), &hello());
    assert_eq!(words(&plan), ["Patch AddOnRollout hello"]);
    let metadata = plan.ordered[0].body().expect("a patch")["metadata"].clone();
    assert_eq!(metadata["ownerReferences"][0]["uid"], "hello", "nothing but its owner");
    record(&mut scene, "hello", &sets(&[]));
    let plan = scene.plan(&controller(), &hello());
    assert_eq!(words(&plan), ["Patch AddOnRollout hello", "Patch ClusterManagementAddOn hello"], "what it remembers");
    assert!(plan.ordered.iter().all(|write| write.subresource() == Some(Subresource::Status)));
}

#[test]
fn add_ons_on_clusters_speak_of_what_is_remembered_again() {
    let mut scene = Scene::new();
    scene.addon("hello", &json!({ "type": "Manual" }));
    given(&mut scene, "one", SET);
    given(&mut scene, "two", "ffffffffffffffff");
    record(&mut scene, "hello", &Value::Null);
    let marked = |scene: &Scene| drain(&scene.queues.addons);
    marked(&scene);

    record(&mut scene, "hello", &sets(&[]));
    assert_eq!(marked(&scene), ["one/hello", "two/hello"], "nothing was known of any before");
    scene.plan(&controller(), &hello());
    marked(&scene);
    record(&mut scene, "hello", &sets(&["aaaaaaaaaaaaaaaa"]));
    scene.plan(&controller(), &hello());
    assert_eq!(marked(&scene), [""; 0], "nobody was given it");
    record(&mut scene, "hello", &sets(&["aaaaaaaaaaaaaaaa", SET]));
    scene.plan(&controller(), &hello());
    assert_eq!(marked(&scene), ["one/hello"]);
    scene.gone::<AddOnRollout>(None, "hello");
    assert_eq!(marked(&scene), [""; 0], "there is nothing to say until it is made again");
}

/// A configuration by which an add-on is configured, and the placement that it lists.
fn configured(scene: &mut Scene) {
    let type_ = ConfigGroupResource { group: "example.com".to_owned(), resource: "things".to_owned() };
    let mut placement = named("all");
    placement["configs"] = json!([{ "group": "example.com", "resource": "things", "namespace": "ns", "name": "one" }]);
    scene.placement("all", 1);
    scene.decide("all", &["one"]);
    scene.cluster("one", &json!({}));
    scene.available("one", "True");
    scene.on_cluster("one", "hello", &json!({}));
    scene.addon("hello", &json!({ "type": "Placements", "placements": [placement] }));
    let thing = json!({ "metadata": { "namespace": "ns", "name": "one", "resourceVersion": "1" }, "spec": {} });
    scene.cache.configs.list_all(&type_, [serde_json::from_value(thing).expect("a thing")], &scene.queues);
}

#[test]
fn clusters_whose_assignment_is_rejected_do_not_hold_up_the_others() {
    let mut scene = Scene::new();
    configured(&mut scene);
    let names: Vec<_> = (0..BATCH + 44).map(|number| format!("cluster-{number:03}")).collect();
    for name in &names {
        scene.available(name, "True");
        scene.on_cluster(name, "hello", &json!({}));
    }
    scene.placement("all", names.len());
    scene.decide("all", &names);
    record(&mut scene, "hello", &sets(&[]));
    let mut assigned = BTreeSet::new();
    for _ in 0..2 {
        let plan = scene.plan(&controller(), &hello());
        let is_assignment = |write: &&Write| write.kind().is::<ManagedClusterAddOn>();
        for write in plan.parallel.iter().filter(is_assignment) {
            assigned.insert(write.key().namespace.clone());
            scene.sent(&controller(), &hello(), PlanPart::Write(write), &forbidden());
        }
    }
    assert!(names.iter().all(|name| assigned.contains(name.as_str())), "{} have had their turn", assigned.len());
}

fn forbidden() -> WriteResult {
    WriteResult::Forbidden("you may not".to_owned())
}

/// The write that makes what remembers the rollouts.
fn create_record() -> Write {
    Write::create(AddOnRollout::new("hello", AddOnRolloutSpec {}))
}

fn status_of(scene: &mut Scene, controller: &Rollouts) -> (Vec<String>, Option<Timestamp>) {
    let plan = scene.plan(controller, &hello());
    (words(&plan), plan.wake)
}

#[test]
fn a_content_that_is_not_taken_blocks_who_wants_it_and_is_tried_again() {
    let mut scene = Scene::new();
    configured(&mut scene);
    record(&mut scene, "hello", &sets(&[]));
    let controller = controller();
    let (all, _) = status_of(&mut scene, &controller);
    assert!(all[0].starts_with("Create ConfigRevision"), "{all:?}");
    assert!(all.contains(&"Patch ManagedClusterAddOn one/hello".to_owned()), "{all:?}");

    let create = scene.plan(&controller, &hello()).ordered.remove(0);
    scene.sent(&controller, &hello(), PlanPart::Write(&create), &forbidden());
    let minute = Some(after(noon(), Duration::from_mins(1)));
    let (blocked, wake) = status_of(&mut scene, &controller);
    assert_eq!(blocked, ["Patch AddOnRollout hello", "Patch ClusterManagementAddOn hello"], "nobody is given anything");
    assert_eq!(wake, minute);
    let later = scene.plan_at(&controller, &hello(), after(noon(), Duration::from_mins(1)));
    assert_eq!(words(&later), all, "it is tried again");
}

#[test]
fn a_record_that_is_not_taken_is_told_on_the_add_on() {
    let mut scene = Scene::new();
    configured(&mut scene);
    let controller = controller();
    assert_eq!(status_of(&mut scene, &controller).0, ["Create AddOnRollout hello"]);
    scene.sent(&controller, &hello(), PlanPart::Write(&create_record()), &forbidden());
    assert_eq!(status_of(&mut scene, &controller).0, ["Patch ClusterManagementAddOn hello"]);
    let mut scene = Scene::new();
    configured(&mut scene);
    let other = Rollouts;
    scene.sent(&other, &hello(), PlanPart::Write(&create_record()), &WriteResult::Exists("it exists".to_owned()));
    let addon = scene.cache.addons.mcas.get(&ObjectKey::namespaced("one", "hello")).cloned().expect("it is there");
    scene.sent(&other, &hello(), PlanPart::Write(&Write::delete(&*addon)), &forbidden());
    assert_eq!(
        status_of(&mut scene, &other).0,
        ["Create AddOnRollout hello"],
        "somebody was faster, or it is another matter"
    );
}

#[test]
fn a_refusal_is_an_event_once_all_else_is_said() {
    let mut scene = Scene::new();
    scene.set::<ClusterManagementAddOn>(None, "hello", json!({ "spec": {}, "status": {} }));
    let controller = controller();
    scene.sent(&controller, &hello(), PlanPart::Write(&create_record()), &forbidden());
    let plan = scene.plan(&controller, &hello());
    scene.accept(&controller, &hello(), &plan);
    assert_eq!((words(&plan).len(), plan.events.len()), (0, 1), "there are no placements of which to say something");
    let event = format!("{:?}", plan.events);
    assert!(event.contains("could not Create AddOnRollout hello: you may not"), "{event}");
    assert_eq!(scene.plan(&controller, &hello()).events.len(), 0, "once is enough");
}
