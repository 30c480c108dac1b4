//! What agents of add-ons may do on the hub, and until when.

use drover_api::cluster::ManagedCluster;
use drover_engine::{addon, registration::permission::bindings, revision::Set};
use serde_json::{Value, json};

use super::*;
use crate::addon::{
    render_cache::{RenderCache, RenderRequest},
    scene::{Scene, noon, words},
};

const BINDING: &str = "open-cluster-management:hello:one:clusterrole:cm-admin";
const CREATE: &str = "Create RoleBinding one/open-cluster-management:hello:one:clusterrole:cm-admin";
const DELETE: &str = "Delete RoleBinding one/open-cluster-management:hello:one:clusterrole:cm-admin";

fn key() -> ObjectKey {
    ObjectKey::namespaced("one", "hello")
}

fn registration() -> Value {
    let permission = json!({ "type": "CurrentCluster", "currentCluster": { "clusterRoleName": "cm-admin" } });
    json!([{ "type": "KubeClient", "kubeClient": { "hubPermissions": [permission] } }])
}

/// A cluster with an add-on that was made from its template.
fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.cluster("one", &json!({}));
    scene.template("hello", &registration());
    let given = scene.given("hello");
    scene.on_cluster("one", "hello", &json!({ "status": { "conditions": [given] } }));
    make(&scene);
    scene
}

/// Makes the works of the add-on.
fn make(scene: &Scene) {
    let on_cluster = scene.cache.addons.mcas.get(&key()).expect("it is there");
    let record = scene.cache.configs.rollout(&ObjectKey::cluster_wide("hello")).expect("it is there");
    let set = Set::read(&record.status.as_ref().expect("it has a status").sets[0]);
    scene.cache.addons.render_cache.make(&RenderRequest { cache: &scene.cache, on_cluster, set: &set });
}

/// The same, with what its agent may do.
fn bound() -> Scene {
    let mut scene = scene();
    let on_cluster = scene.cache.addons.mcas.get(&key()).expect("it is there");
    let specs: Vec<_> = serde_json::from_value(registration()).expect("registrations");
    let [binding] = &*bindings(on_cluster, &specs) else { panic!("not one binding") };
    let binding = serde_json::to_value(binding).expect("a binding is JSON");
    scene.set::<RoleBinding>(Some("one"), BINDING, binding);
    scene
}

fn writes(scene: &mut Scene) -> Vec<String> {
    words(&scene.plan(&Permissions, &key()))
}

/// Shuts the add-on's cluster out.
fn shut_out(scene: &mut Scene) {
    scene.set::<ManagedCluster>(None, "one", json!({ "spec": { "hubAcceptsClient": false } }));
}

#[test]
fn an_agent_gets_what_its_template_says() {
    assert_eq!(writes(&mut scene()), [CREATE]);
    assert_eq!(writes(&mut bound()), [""; 0]);
}

#[test]
fn what_an_agent_may_do_goes_when_its_add_on_is_gone_and_not_before() {
    let mut scene = bound();
    let given = scene.given("hello");
    let going =
        json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" }, "status": { "conditions": [given] } });
    scene.on_cluster("one", "hello", &going);
    assert_eq!(writes(&mut scene), [""; 0], "it may have something to finish");
    scene.gone::<ManagedClusterAddOn>(Some("one"), "hello");
    assert_eq!(writes(&mut scene), [DELETE]);
}

#[test]
fn who_is_shut_out_or_was_given_nothing_may_do_nothing() {
    let mut scene = bound();
    shut_out(&mut scene);
    assert_eq!(writes(&mut scene), [DELETE]);
    scene.cluster("one", &json!({}));
    assert_eq!(writes(&mut scene), [""; 0]);
    scene.on_cluster("one", "hello", &json!({ "metadata": { "uid": "another" } }));
    assert_eq!(writes(&mut scene), [DELETE], "this is another one, whose turn has not come");
}

#[test]
fn who_is_shut_out_keeps_nothing_though_its_add_on_is_on_its_way_out() {
    let mut scene = bound();
    scene.on_cluster("one", "hello", &json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }));
    shut_out(&mut scene);
    assert_eq!(writes(&mut scene), [DELETE]);
}

#[test]
fn whoever_looks_at_the_add_on_of_a_cluster_that_is_shut_out_sees_what_is_to_go_and_says_so_when_it_is_gone() {
    let mut scene = bound();
    shut_out(&mut scene);
    let seen = |scene: &Scene| {
        let on_cluster = scene.cache.addons.mcas.get(&key()).expect("it is there");
        let state =
            addon::on_cluster::render_state(&scene.cache, on_cluster, noon()).expect("it is known what it was given");
        let bindings =
            AgentBindings::rendered(&scene.cache, on_cluster, &state).expect("it is known what they are to be");
        let writes: Vec<_> = bindings.writes().iter().map(Write::to_string).collect();
        (
            writes,
            matches!(bindings.registered(), Some(Registered::Failed(why)) if why.starts_with("the cluster is not accepted")),
        )
    };
    assert_eq!(seen(&scene), (vec![DELETE.to_owned()], false));
    scene.gone::<RoleBinding>(Some("one"), BINDING);
    assert_eq!(seen(&scene), (Vec::new(), true));
}

#[test]
fn a_server_that_was_not_reached_has_refused_nothing() {
    let create = Write::create(RoleBinding::default());
    assert_eq!(refusal(&create, &WriteResult::Unreachable("connection refused".to_owned())), None);
}

#[test]
fn an_agent_that_runs_keeps_what_it_may_do_when_its_template_is_lost_or_can_not_be_read() {
    let mut scene = bound();
    // As a hub finds it that is started again.
    scene.cache.addons.render_cache = RenderCache::default();
    scene.cache.list_own_types(&[], &scene.queues);
    assert_eq!(writes(&mut scene), [""; 0], "its content is kept nowhere");
    let mut scene = bound();
    let mut record =
        serde_json::to_value(scene.cache.configs.rollout(&ObjectKey::cluster_wide("hello"))).expect("JSON");
    let hook = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "hook",
        "annotations": { "addon.open-cluster-management.io/addon-pre-delete": "" } } });
    let spec = json!({ "addonName": "hello", "agentSpec": { "workload": { "manifests": [hook] } } });
    let content = drover_engine::hash::content(&json!({ "spec": spec }));
    record["status"]["sets"][0]["configs"][0]["specHash"] = json!(drover_engine::hash::spec_hash(&content));
    scene.cache.list_own_types(&[("hello", spec)], &scene.queues);
    scene.set::<drover_api::drover::AddOnRollout>(None, "hello", json!({ "status": record["status"] }));
    make(&scene);
    assert_eq!(writes(&mut scene), [""; 0], "what it is given next makes no sense");
}

#[test]
fn what_is_refused_is_said_with_what_to_do_about_it() {
    let mut scene = scene();
    let permissions = Permissions;
    let create = scene.plan(&permissions, &key()).parallel.remove(0);
    scene.sent(&permissions, &key(), PlanPart::Write(&create), &WriteResult::Forbidden("you may not".to_owned()));
    let plan = scene.plan(&permissions, &key());
    assert_eq!(words(&plan), ["Patch ManagedClusterAddOn one/hello", CREATE]);
    assert_eq!(plan.parallel, [create], "it is tried again");
    let why = scene.state::<Permissions>(&key()).first().expect("it was noted").to_owned();
    assert!(why.contains("you may not") && why.ends_with("labelled drover.dev/hub-binds=true"), "{why}");
}
