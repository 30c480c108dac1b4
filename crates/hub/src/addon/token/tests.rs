//! What is made for tokens, and what is said of it.

use drover_api::names::TOKEN_INFRASTRUCTURE_READY;
use serde_json::{Value, json};

use super::*;
use crate::addon::scene::{Scene, drain, noon, words};

fn key() -> ObjectKey {
    ObjectKey::namespaced("one", "hello")
}

/// A fleet with an add-on whose agent has this driver.
fn with_driver(driver: &str) -> Scene {
    let mut scene = Scene::new();
    scene.set::<ManagedClusterAddOn>(Some("one"), "hello", addon(driver, &[]));
    scene
}

fn addon(driver: &str, conditions: &[Value]) -> Value {
    let registrations = json!([{ "type": "kubeClient", "kubeClient": { "driver": driver } }]);
    json!({ "spec": {}, "status": { "registrations": registrations, "conditions": conditions } })
}

impl Scene {
    /// Makes be there what the add-on's agent needs.
    fn make_all(&mut self) {
        let addon = self.cache.addons.mcas.get(&key()).expect("the add-on is there").clone();
        self.set::<ServiceAccount>(Some("one"), "hello-agent", json!(token_infrastructure::account(&addon)));
        self.set::<Role>(Some("one"), "hello-token-role", json!(token_infrastructure::role(&addon)));
        self.set::<RoleBinding>(Some("one"), "hello-token-role", json!(token_infrastructure::binding(&addon)));
    }
}

#[test]
fn all_is_made_and_then_said() {
    let (mut scene, controller) = (with_driver("token"), TokenInfrastructure);
    assert_eq!(drain(&scene.queues.tokens), ["one/hello"]);
    assert_eq!(
        words(&scene.plan(&controller, &key())),
        [
            "Create ServiceAccount one/hello-agent",
            "Create Role one/hello-token-role",
            "Create RoleBinding one/hello-token-role",
        ]
    );
    scene.make_all();
    assert_eq!(drain(&scene.queues.tokens), ["one/hello"]);
    assert_eq!(words(&scene.plan(&controller, &key())), ["Patch ManagedClusterAddOn one/hello"]);
    let stored = scene.cache.addons.mcas.get(&key()).expect("the add-on is there").clone();
    let account = Made::of(&scene.cache, &key()).account.expect("the account is there");
    let said =
        token_infrastructure::saying(&stored, Readiness::Ready(account), noon()).status.expect("it has a status");
    scene.set::<ManagedClusterAddOn>(Some("one"), "hello", json!({ "spec": {}, "status": said }));
    assert_eq!(words(&scene.plan(&controller, &key())).len(), 0);
    scene.gone::<Role>(Some("one"), "hello-token-role");
    assert_eq!(words(&scene.plan(&controller, &key())), ["Create Role one/hello-token-role"]);
}

#[test]
fn what_somebody_has_changed_is_put_back() {
    let (mut scene, controller) = (with_driver("token"), TokenInfrastructure);
    scene.make_all();
    let addon = scene.cache.addons.mcas.get(&key()).expect("the add-on is there").clone();
    let mut role = token_infrastructure::role(&addon);
    role.rules.as_mut().expect("it has rules")[0].resource_names = None;
    scene.set::<Role>(Some("one"), "hello-token-role", json!(role));
    let mut binding = token_infrastructure::binding(&addon);
    binding.role_ref.name = "other".to_owned();
    scene.set::<RoleBinding>(Some("one"), "hello-token-role", json!(binding));
    let put_back = ["Patch Role one/hello-token-role", "Delete RoleBinding one/hello-token-role"];
    let plan = scene.plan(&controller, &key());
    assert_eq!(words(&plan), put_back);
    let rules = plan.ordered[0].body().expect("a patch")["rules"].clone();
    assert_eq!(rules, json!(token_infrastructure::role(&addon).rules), "lists are written whole");
}

#[test]
fn somebody_elses_binding_is_left_alone() {
    let (mut scene, controller) = (with_driver("csr"), TokenInfrastructure);
    let addon = scene.cache.addons.mcas.get(&key()).expect("the add-on is there").clone();
    let mut binding = token_infrastructure::binding(&addon);
    binding.metadata.labels = None;
    scene.set::<RoleBinding>(Some("one"), "hello-token-role", json!(binding));
    assert_eq!(words(&scene.plan(&controller, &key())).len(), 0);
}

#[test]
fn who_uses_certificates_has_nothing_of_it() {
    let (mut scene, controller) = (with_driver("token"), TokenInfrastructure);
    scene.make_all();
    let condition = json!({ "type": TOKEN_INFRASTRUCTURE_READY, "status": "True", "reason": "", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    scene.set::<ManagedClusterAddOn>(Some("one"), "hello", addon("csr", &[condition]));
    assert_eq!(
        words(&scene.plan(&controller, &key())),
        [
            "Delete RoleBinding one/hello-token-role",
            "Delete Role one/hello-token-role",
            "Delete ServiceAccount one/hello-agent",
        ]
    );
    scene.gone::<RoleBinding>(Some("one"), "hello-token-role");
    scene.gone::<Role>(Some("one"), "hello-token-role");
    scene.gone::<ServiceAccount>(Some("one"), "hello-agent");
    assert_eq!(words(&scene.plan(&controller, &key())), ["Patch ManagedClusterAddOn one/hello"]);
    drain(&scene.queues.tokens);
    scene.set::<ManagedClusterAddOn>(Some("one"), "hello", addon("csr", &[]));
    assert_eq!(drain(&scene.queues.tokens), ["one/hello"]);
    assert_eq!(words(&scene.plan(&controller, &key())).len(), 0);
    let other = json!({ "spec": {}, "status": { "namespace": "x" } });
    scene.set::<ManagedClusterAddOn>(Some("one"), "hello", other);
    assert_eq!(drain(&scene.queues.tokens).len(), 0, "there is nothing to be done about tokens");
}

#[test]
fn what_the_server_does_not_take_is_said_before_it_is_tried_again() {
    let (mut scene, controller) = (with_driver("token"), TokenInfrastructure);
    let create = scene.plan(&controller, &key()).ordered.remove(0);
    scene.sent(&controller, &key(), PlanPart::Write(&create), &WriteResult::Conflict);
    assert_eq!(scene.plan(&controller, &key()).ordered.len(), 3, "the object has changed");
    scene.sent(&controller, &key(), PlanPart::Write(&create), &WriteResult::Forbidden("no".to_owned()));
    let words = words(&scene.plan(&controller, &key()));
    assert_eq!((words.len(), words[0].as_str()), (4, "Patch ManagedClusterAddOn one/hello"));
}
