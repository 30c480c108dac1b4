//! Which types are watched, what is found, whom a change concerns, and which revisions are kept.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use drover_api::{
    cluster::ManagedCluster,
    drover::{AddOnRollout, ConfigRevision, SetConfig},
};
use drover_engine::{
    addon::{config_revision, rollout::AddOnRolloutState},
    hash::spec_hash,
    plan::Verb,
};
use drover_runtime::{
    cache::{SharedCache, Tracks},
    clock::{ManualClock, after},
    controller::Reconciler,
    decode::Decoded,
    queue::{Done, Queue},
};
use k8s_openapi::jiff::Timestamp;
use kube::api::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{revision::missing, *};
use crate::{addon::Rollouts, cache::Cache};

const GROUP: &str = "addon.open-cluster-management.io";
const HOME: &str = "hub";

fn noon() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a time")
}

/// A hub's knowledge of configurations, to be changed as watches would.
struct Scene {
    cache: SharedCache<Cache>,
    freshness: Freshness,
    queues: Queues,
    /// What is kept of the revision that is collected.
    idle: Option<Timestamp>,
    version: u64,
}

impl Cache {
    /// Finds out that these are all the templates that there are, each with what it is, and that there are no hub configurations.
    pub(crate) fn list_own_types(&mut self, templates: &[(&str, Value)], queues: &Queues) {
        self.configs.watch_own_types(queues);
        for own in own_types() {
            let ticket = Arc::clone(&self.configs.wanted().borrow()[&own]);
            self.see_config(&own, &ticket, Sighting::ListBegins, queues);
            for (name, spec) in templates.iter().filter(|_| own == content::templates()) {
                let object =
                    json!({ "metadata": { "name": name, "resourceVersion": "1", "generation": 1 }, "spec": spec });
                let object = serde_json::from_value(object).expect("an object");
                self.see_config(&own, &ticket, Sighting::Object(Config::store(&own, &object)), queues);
            }
            self.see_config(&own, &ticket, Sighting::ListEnds, queues);
        }
    }

    /// Finds out that these are all the configurations of a type that there are.
    pub(crate) fn list_configs(
        &mut self,
        of: &ConfigGroupResource,
        configs: impl IntoIterator<Item = DynamicObject>,
        queues: &Queues,
    ) {
        self.configs.list_all(of, configs, queues);
        self.mark_concerned(queues);
    }

    /// Finds out that templates can not be listed.
    pub(crate) fn refuse_templates(&mut self, refusal: Refusal, queues: &Queues) {
        let ticket = Arc::clone(&self.configs.wanted().borrow()[&content::templates()]);
        self.see_config(&content::templates(), &ticket, Sighting::Refused(refusal), queues);
    }
}

impl Scene {
    fn new() -> Self {
        let clock = ManualClock::at(noon()).clock();
        let (freshness, queues) = (Freshness::default(), Queues::new(&clock));
        let mut cache = Cache::new(clock);
        cache.configs = Configs::new(HOME, &freshness);
        Self { cache: SharedCache::new(cache, queues.clone()), freshness, queues, idle: None, version: 0 }
    }

    /// An object in a version that comes after all others.
    fn object<K: DeserializeOwned>(&mut self, namespace: &str, name: &str, object: &Value) -> K {
        let mut object = object.clone();
        self.version += 1;
        object["metadata"]["name"] = name.into();
        object["metadata"]["namespace"] = namespace.into();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        serde_json::from_value(object).expect("an object")
    }

    fn addon(&mut self, name: &str, spec: &Value) {
        let addon = self.object::<ClusterManagementAddOn>("", name, &json!({ "spec": spec }));
        self.cache.apply(addon);
    }

    fn addon_gone(&mut self, name: &str) {
        let last = self.object::<ClusterManagementAddOn>("", name, &json!({ "spec": {} })).metadata;
        self.cache.delete::<ClusterManagementAddOn>(&last);
    }

    fn on_cluster(&mut self, cluster: &str, name: &str, configs: &Value) {
        let addon = self.object::<ManagedClusterAddOn>(cluster, name, &json!({ "spec": { "configs": configs } }));
        self.cache.apply(addon);
    }

    fn ticket(&self, of: &str) -> Option<Arc<Ticket>> {
        self.cache.read().configs.wanted().borrow().get(&type_(of)).cloned()
    }

    fn watched(&self) -> Vec<String> {
        self.cache.read().configs.wanted().borrow().keys().map(ToString::to_string).collect()
    }

    fn see(&self, of: &str, sighting: Sighting<DynamicObject>) {
        let ticket = self.ticket(of).expect("the type is watched");
        self.see_for(of, &ticket, sighting);
    }

    fn see_for(&self, of: &str, ticket: &Arc<Ticket>, sighting: Sighting<DynamicObject>) {
        let sighting = sighting.map(|object| Config::store(&type_(of), &object));
        self.cache.update(|cache, queues| cache.see_config(&type_(of), ticket, sighting, queues));
    }

    /// A configuration that is seen.
    fn config(&mut self, of: &str, namespace: &str, name: &str, config: &Value) {
        let object = self.object(namespace, name, config);
        self.see(of, Sighting::Object(object));
    }

    fn config_gone(&mut self, of: &str, namespace: &str, name: &str) {
        let last = self.object::<DynamicObject>(namespace, name, &json!({})).metadata;
        self.see(of, Sighting::Gone(Box::new(last)));
    }

    fn listed(&self, of: &str) {
        self.see(of, Sighting::ListBegins);
        self.see(of, Sighting::ListEnds);
    }

    fn find(&self, of: &str, namespace: &str, name: &str) -> Found {
        self.cache.read().configs.find(&reference(of, namespace, name))
    }

    fn revision(&mut self, of: &str, content: &str) {
        let mut revision = config_revision::revision(&reference(of, "ns", "one"), spec_hash(content), Some(content));
        self.version += 1;
        revision.metadata.namespace = Some(HOME.to_owned());
        revision.metadata.resource_version = Some(self.version.to_string());
        revision.metadata.creation_timestamp = serde_json::from_value(json!(noon())).expect("a time");
        self.cache.apply(revision);
    }

    /// A rollout with one set of each of these contents.
    fn rollout(&mut self, name: &str, of: &str, contents: &[&str]) {
        let sets: Vec<_> = contents
            .iter()
            .map(|content| {
                json!({
                    "fingerprint": "0123456789abcdef",
                    "configs": [set_config(of, "one", content)],
                    "epoch": 1,
                    "firstWanted": noon(),
                })
            })
            .collect();
        let rollout = self.object::<AddOnRollout>("", name, &json!({ "status": { "sets": sets } }));
        self.cache.apply(rollout);
    }

    fn rollout_gone(&mut self, name: &str) {
        let last = self.object::<AddOnRollout>("", name, &json!({})).metadata;
        self.cache.delete::<AddOnRollout>(&last);
    }

    fn revision_gone(&mut self, of: &str, content: &str) {
        let name = config_revision::name(&type_(of), &spec_hash(content));
        let last = self.object::<DynamicObject>(HOME, &name, &json!({})).metadata;
        self.cache.delete::<ConfigRevision>(&last);
    }

    /// What becomes of the revision of a content, so long after noon.
    fn collect(&mut self, of: &str, content: &str, later: Duration) -> Plan {
        let key = ObjectKey::namespaced(HOME, &config_revision::name(&type_(of), &spec_hash(content)));
        let plan = Revisions.plan(&self.cache.read(), &key, &mut self.idle, after(noon(), later));
        match (&plan.ordered[..], plan.wake) {
            ([], None) => Plan::Keep,
            ([], Some(wake)) => Plan::Wait(wake),
            ([write], None) if write.verb() == Verb::Delete && write.kind().is::<ConfigRevision>() => Plan::Delete,
            other => panic!("{other:?}"),
        }
    }

    fn missing(&self, configs: &[SetConfig]) -> Vec<String> {
        missing(&self.cache.read(), configs).iter().map(ToString::to_string).collect()
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Keep,
    Wait(Timestamp),
    Delete,
}

/// A type, written as `resource.group`.
fn type_(text: &str) -> ConfigGroupResource {
    let (resource, group) = text.split_once('.').unwrap_or((text, ""));
    ConfigGroupResource { group: group.to_owned(), resource: resource.to_owned() }
}

fn reference(of: &str, namespace: &str, name: &str) -> AddOnConfig {
    serde_json::from_value(config(of, namespace, name)).expect("a reference")
}

fn config(of: &str, namespace: &str, name: &str) -> Value {
    let ConfigGroupResource { group, resource } = type_(of);
    let namespace = (!namespace.is_empty()).then_some(namespace);
    json!({ "group": group, "resource": resource, "namespace": namespace, "name": name })
}

fn set_config(of: &str, name: &str, content: &str) -> SetConfig {
    let mut config = config(of, "ns", name);
    config["specHash"] = spec_hash(content).to_string().into();
    serde_json::from_value(config).expect("a configuration in a set")
}

fn defaults(of: &str, name: &str) -> Value {
    json!({ "defaultConfigs": [config(of, "ns", name)] })
}

/// What was marked, and is not any more.
fn marked<P: drover_runtime::queue::Payload>(queue: &Queue<ObjectKey, P>) -> Vec<String> {
    let mut keys = Vec::new();
    while let Poll::Ready(key) = pin!(queue.take()).poll(&mut Context::from_waker(Waker::noop())) {
        queue.done(&key, Done::Well(None));
        keys.push(key.to_string());
    }
    keys.sort();
    keys
}

fn content_of(found: &Found) -> (String, Option<i64>, Option<String>) {
    match found {
        Found::Content { hash, generation, version } => {
            (hash.to_string(), *generation, version.as_ref().map(ToString::to_string))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_type_is_watched_while_somebody_refers_to_it() {
    let mut scene = Scene::new();
    scene.addon("first", &defaults("things.example.com", "one"));
    let ticket = scene.ticket("things.example.com").expect("it is watched");
    assert_eq!(scene.freshness.missing(), ["things.example.com"]);

    scene.on_cluster("cluster", "first", &json!([config("things.example.com", "ns", "own")]));
    scene.addon("first", &defaults("things.example.com", "other"));
    scene.addon("first", &json!({}));
    let still = scene.ticket("things.example.com").expect("it is watched");
    assert!(Arc::ptr_eq(&ticket, &still), "it is watched once");

    scene.on_cluster("cluster", "first", &json!([]));
    assert_eq!(scene.watched(), Vec::<String>::new());
    drop((ticket, still));
    assert_eq!(scene.freshness.missing(), Vec::<String>::new(), "nobody waits for it any more");

    scene.addon("second", &defaults("things.example.com", "one"));
    scene.addon_gone("second");
    assert_eq!(scene.watched(), Vec::<String>::new());
}

#[test]
fn every_place_where_a_configuration_can_be_named_counts() {
    let mut scene = Scene::new();
    scene.addon(
        "addon",
        &json!({
            "defaultConfigs": [config("defaults.a", "", "__reserved_no_default__"), config("defaults.b", "ns", "one")],
            "supportedConfigs": [
                { "group": "a", "resource": "supported" },
                { "group": "b", "resource": "supported", "defaultConfig": { "namespace": "ns", "name": "one" } },
                { "group": "c", "resource": "supported", "defaultConfig": { "name": "__reserved_no_default__" } },
            ],
            "installStrategy": { "type": "Placements", "placements": [{
                "namespace": "ns",
                "name": "placement",
                "configs": [config("placements.a", "ns", "one")],
                "addonTemplate": { "configs": [config("templates.a", "ns", "one")] },
            }] },
        }),
    );
    let types =
        ["defaults.a", "supported.a", "placements.a", "templates.a", "defaults.b", "supported.b", "supported.c"];
    let mut watched = scene.watched();
    watched.sort();
    let mut expected = types.to_vec();
    expected.sort_unstable();
    assert_eq!(watched, expected);

    for of in types {
        scene.listed(of);
        marked(&scene.queues.rollouts);
        scene.config(of, "ns", "one", &json!({}));
        let is_named = !matches!(of, "defaults.a" | "supported.a" | "supported.c");
        let expected: &[&str] = if is_named { &["addon"] } else { &[] };
        assert_eq!(marked(&scene.queues.rollouts), expected, "{of}");
    }
}

#[test]
fn a_change_concerns_those_who_refer_to_it() {
    let mut scene = Scene::new();
    scene.addon("by-default", &defaults("things.example.com", "one"));
    scene.addon("other", &defaults("things.example.com", "other"));
    scene.on_cluster("cluster", "overridden", &json!([config("things.example.com", "ns", "one")]));
    scene.listed("things.example.com");
    let marks = |scene: &Scene| (marked(&scene.queues.rollouts), marked(&scene.queues.addons));
    let nobody = (Vec::<String>::new(), Vec::<String>::new());
    let users = (vec!["by-default".to_owned(), "overridden".to_owned()], vec!["cluster/overridden".to_owned()]);
    marks(&scene);

    let first = json!({ "metadata": { "generation": 1 }, "spec": { "a": 1 } });
    scene.config("things.example.com", "ns", "one", &first);
    assert_eq!(marks(&scene), users, "it came");
    let mut labelled = first.clone();
    labelled["metadata"]["labels"] = json!({ "a": "b" });
    labelled["status"] = json!({ "well": true });
    scene.config("things.example.com", "ns", "one", &labelled);
    assert_eq!(marks(&scene), nobody, "what it contains has not changed");
    scene.config("things.example.com", "ns", "one", &json!({ "metadata": { "generation": 2 }, "spec": { "a": 1 } }));
    assert_eq!(marks(&scene), users, "another generation");
    scene.config("things.example.com", "ns", "one", &json!({ "metadata": { "generation": 2 }, "spec": { "a": 2 } }));
    assert_eq!(marks(&scene), users, "another content");
    scene.config("things.example.com", "ns", "nobody's", &first);
    scene.config("things.example.com", "another", "one", &first);
    assert_eq!(marks(&scene), nobody);
    scene.config_gone("things.example.com", "ns", "one");
    assert_eq!(marks(&scene), users, "it went");

    scene.addon("by-default", &json!({}));
    scene.on_cluster("cluster", "overridden", &json!([]));
    marks(&scene);
    scene.config("things.example.com", "ns", "one", &first);
    assert_eq!(marks(&scene), nobody, "nobody refers to it any more");
}

/// What is done about the rollouts of an add-on.
fn roll_out(scene: &Scene, addon: &str) -> Vec<String> {
    let rollouts = Rollouts;
    let plan =
        rollouts.plan(&scene.cache.read(), &ObjectKey::cluster_wide(addon), &mut AddOnRolloutState::default(), noon());
    plan.ordered.iter().chain(&plan.parallel).map(ToString::to_string).collect()
}

#[test]
fn who_has_nothing_is_given_something_when_the_configuration_comes_that_was_asked_for() {
    let mut scene = Scene::new();
    let of = "things.example.com";
    scene.addon("hello", &json!({ "supportedConfigs": [{ "group": "example.com", "resource": "things" }] }));
    scene.rollout("hello", of, &[]);
    scene.cache.update(|cache, queues| cache.list_own_types(&[], queues));
    let available = json!([{ "type": "ManagedClusterConditionAvailable", "status": "True", "reason": "", "message": "",
        "lastTransitionTime": noon() }]);
    let cluster = json!({ "spec": { "hubAcceptsClient": true }, "status": { "conditions": available } });
    let cluster = scene.object::<ManagedCluster>("", "one", &cluster);
    scene.cache.apply(cluster);
    let on_cluster = json!({ "spec": { "configs": [config(of, "ns", "own")] },
        "status": { "supportedConfigs": [{ "group": "example.com", "resource": "things" }] } });
    let on_cluster = scene.object::<ManagedClusterAddOn>("one", "hello", &on_cluster);
    scene.cache.apply(on_cluster);
    scene.listed(of);
    let given = "Patch ManagedClusterAddOn one/hello".to_owned();
    assert!(!roll_out(&scene, "hello").contains(&given), "what it asks for is not there");
    scene.config(of, "ns", "own", &json!({ "spec": {} }));
    assert!(roll_out(&scene, "hello").contains(&given));
}

#[test]
fn a_template_concerns_the_clusters_that_have_something_of_their_own() {
    let mut scene = Scene::new();
    let of = format!("addontemplates.{GROUP}");
    scene.cache.update(|cache, queues| cache.configs.watch_own_types(queues));
    scene.listed(&of);
    scene.addon("hello", &json!({}));
    let assigned = json!({ "drover.dev/assigned-version": "v1" });
    for (cluster, on_cluster) in [
        ("own-version", json!({ "spec": { "installVersion": "v2" } })),
        ("own-config", json!({ "spec": { "configs": [config("things.example.com", "ns", "one")] } })),
        ("assigned", json!({ "metadata": { "annotations": assigned }, "spec": { "installVersion": "v1" } })),
        ("nothing", json!({ "spec": {} })),
    ] {
        let on_cluster = scene.object::<ManagedClusterAddOn>(cluster, "hello", &on_cluster);
        scene.cache.apply(on_cluster);
    }
    let own = ["own-config/hello", "own-version/hello"];
    for text in ["first", "edited in place"] {
        marked(&scene.queues.addons);
        let template = json!({ "spec": { "addonName": "hello", "version": "v2", "text": text } });
        scene.config(&of, "", "two", &template);
        assert_eq!(marked(&scene.queues.addons), own, "{text}");
    }
    scene.config(&of, "", "three", &json!({ "spec": { "addonName": "other" } }));
    assert_eq!(marked(&scene.queues.addons), [""; 0]);
    let on_cluster = scene.object::<ManagedClusterAddOn>("own-version", "hello", &json!({ "spec": {} }));
    scene.cache.apply(on_cluster);
    marked(&scene.queues.addons);
    scene.config_gone(&of, "", "two");
    assert_eq!(marked(&scene.queues.addons), ["own-config/hello"]);
}

#[test]
fn what_is_found_says_what_is_known() {
    let mut scene = Scene::new();
    let found = |scene: &Scene| scene.find("things.example.com", "ns", "one");
    assert_eq!(found(&scene), Found::NotYet, "nobody has referred to it");
    scene.addon("addon", &defaults("things.example.com", "one"));
    scene.see("things.example.com", Sighting::ListBegins);
    scene.config("things.example.com", "ns", "one", &json!({ "metadata": { "generation": 3 } }));
    assert_eq!(found(&scene), Found::NotYet, "there may be more to come");
    let mut states = Vec::new();
    let mut next = |scene: &Scene, sighting| {
        marked(&scene.queues.rollouts);
        scene.see("things.example.com", sighting);
        states.push(found(scene));
        assert_eq!(marked(&scene.queues.rollouts), ["addon"]);
    };
    next(&scene, Sighting::ListEnds);
    next(&scene, Sighting::Refused(Refusal::Forbidden));
    next(&scene, Sighting::Refused(Refusal::NoSuchKind));
    next(&scene, Sighting::Refused(Refusal::Failing));
    next(&scene, Sighting::ListEnds);
    let there = Found::Content { hash: spec_hash("{}"), generation: Some(3), version: None };
    assert_eq!(states, [there, Found::Forbidden, Found::NoSuchType, Found::NotYet, Found::Missing]);

    let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
    let text = format!(r#"{{ "metadata": {{ "namespace": "ns", "name": "one" }}, "spec": {deep} }}"#);
    let Decoded(Err(damaged)) = Decoded::parse(&text).expect("it has metadata") else { panic!("it is nested deeply") };
    scene.see("things.example.com", Sighting::Damaged(damaged));
    assert_eq!(found(&scene), Found::NotYet, "it is there, but what it says is not known");
}

#[test]
fn what_is_served_otherwise_is_not_known_until_it_is_listed() {
    let mut scene = Scene::new();
    scene.addon("addon", &defaults("things.example.com", "one"));
    scene.config("things.example.com", "ns", "one", &json!({}));
    scene.see("things.example.com", Sighting::ListEnds);
    let ticket = scene.ticket("things.example.com").expect("it is watched");
    scene.cache.update(|cache, queues| cache.start_config_anew(&type_("things.example.com"), &ticket, queues));
    assert_eq!(scene.find("things.example.com", "ns", "one"), Found::NotYet);
}

#[test]
fn who_watches_for_somebody_who_has_gone_is_not_heard() {
    let mut scene = Scene::new();
    scene.addon("addon", &defaults("things.example.com", "one"));
    let former = scene.ticket("things.example.com").expect("it is watched");
    scene.addon("addon", &json!({}));
    scene.see_for("things.example.com", &former, Sighting::ListEnds);
    scene.addon("addon", &defaults("things.example.com", "one"));
    scene.see_for("things.example.com", &former, Sighting::ListEnds);
    assert_eq!(scene.find("things.example.com", "ns", "one"), Found::NotYet);
}

#[test]
fn the_content_of_a_secret_is_not_in_memory() {
    let mut scene = Scene::new();
    let data = json!({ "data": { "password": "c2VjcmV0" } });
    for (of, is_kept) in [("secrets", false), ("configmaps", true)] {
        scene.addon(of, &defaults(of, "one"));
        scene.config(of, "ns", "one", &data);
        let cache = scene.cache.read();
        let set = set_config(of, "one", r#"{"data":{"password":"c2VjcmV0"}}"#);
        let (_, config) = cache.configs.with_content(&set).expect("it is known");
        assert_eq!(config.hash, spec_hash(r#"{"data":{"password":"c2VjcmV0"}}"#));
        assert_eq!(config.content.is_some(), is_kept, "{of}");
    }
}

#[test]
fn templates_belong_to_their_add_on_and_have_versions() {
    let mut scene = Scene::new();
    let of = format!("addontemplates.{GROUP}");
    scene.cache.update(|cache, queues| cache.configs.watch_own_types(queues));
    let label = "open-cluster-management.io/addon-version";
    let versions = |scene: &Scene, addon: &str| -> Vec<String> {
        let cache = scene.cache.read();
        let templates = cache.configs.templates_of(addon);
        templates
            .map(|(key, it)| format!("{key}@{}", it.version().map_or("none", |version| version.as_str())))
            .collect()
    };
    scene.config(&of, "", "by-spec", &json!({ "spec": { "addonName": "hello", "version": "v2" } }));
    let labelled = json!({ "metadata": { "labels": { label: "v1" } }, "spec": { "addonName": "hello" } });
    scene.config(&of, "", "by-label", &labelled);
    scene.config(&of, "", "none", &json!({ "spec": { "addonName": "hello", "version": "no version!" } }));
    scene.config(&of, "", "another", &json!({ "spec": { "addonName": "other" } }));
    assert_eq!(marked(&scene.queues.rollouts), ["hello", "other"]);
    assert_eq!(versions(&scene, "hello"), ["by-label@v1", "by-spec@v2", "none@none"]);
    assert_eq!(versions(&scene, "other"), ["another@none"]);

    scene.config(&of, "", "by-spec", &json!({ "spec": { "addonName": "other", "version": "v2" } }));
    scene.config_gone(&of, "", "by-label");
    assert_eq!(marked(&scene.queues.rollouts), ["hello", "other"]);
    assert_eq!(versions(&scene, "hello"), ["none@none"]);
    assert_eq!(versions(&scene, "other"), ["another@none", "by-spec@v2"]);
    scene.see(&of, Sighting::ListEnds);
    assert_eq!(content_of(&scene.find(&of, "", "by-spec")).2.as_deref(), Some("v2"));

    let of = format!("addonhubconfigs.{GROUP}");
    scene.config(&of, "", "v3", &json!({ "spec": { "desiredVersion": "v3" } }));
    scene.see(&of, Sighting::ListEnds);
    assert_eq!(content_of(&scene.find(&of, "", "v3")).2.as_deref(), Some("v3"));
}

#[test]
fn a_label_alone_can_change_the_version_of_a_template() {
    let mut scene = Scene::new();
    let of = format!("addontemplates.{GROUP}");
    scene.addon("hello", &json!({ "defaultConfigs": [config(&of, "", "template")] }));
    let label = "open-cluster-management.io/addon-version";
    for version in ["v1", "v2"] {
        marked(&scene.queues.rollouts);
        let template = json!({ "metadata": { "labels": { label: version } }, "spec": { "addonName": "hello" } });
        scene.config(&of, "", "template", &template);
        assert_eq!(marked(&scene.queues.rollouts), ["hello"], "{version}");
    }
}

const THINGS: &str = "things.example.com";

/// A minute, for which a revision is kept that nobody needs.
const MINUTE: Duration = Duration::from_mins(1);

/// So long after noon.
fn plus(later: Duration) -> Timestamp {
    after(noon(), later)
}

#[test]
fn a_revision_is_kept_while_a_rollout_or_a_configuration_has_its_content() {
    let mut scene = Scene::new();
    let now = Duration::ZERO;
    let idle = Plan::Wait(plus(MINUTE));
    scene.revision(THINGS, "{}");
    assert_eq!(scene.collect(THINGS, "{}", now), idle);
    marked(&scene.queues.revisions);

    scene.rollout("addon", THINGS, &["{}", r#"{"a":1}"#]);
    assert_eq!(scene.collect(THINGS, "{}", now), Plan::Keep, "a rollout needs it");
    marked(&scene.queues.revisions);
    scene.rollout("addon", THINGS, &["{}"]);
    assert!(marked(&scene.queues.revisions).is_empty(), "it still does");
    scene.rollout("addon", THINGS, &[]);
    assert_eq!(marked(&scene.queues.revisions).len(), 1, "it does not any more");
    assert_eq!(scene.collect(THINGS, "{}", now), idle);

    scene.addon("addon", &defaults(THINGS, "one"));
    assert_eq!(scene.collect(THINGS, "{}", now), Plan::Keep, "what the type contains is not known");
    scene.listed(THINGS);
    assert_eq!(marked(&scene.queues.revisions).len(), 1, "now it is");
    assert_eq!(scene.collect(THINGS, "{}", now), idle);
    scene.config(THINGS, "ns", "one", &json!({}));
    scene.config(THINGS, "ns", "two", &json!({}));
    assert_eq!(marked(&scene.queues.revisions).len(), 1, "somebody has its content");
    assert_eq!(scene.collect(THINGS, "{}", now), Plan::Keep, "two configurations have its content");
    scene.config(THINGS, "ns", "one", &json!({ "a": 1 }));
    assert!(marked(&scene.queues.revisions).is_empty(), "one still has");
    scene.config_gone(THINGS, "ns", "two");
    assert_eq!(marked(&scene.queues.revisions).len(), 1, "none has");
    assert_eq!(scene.collect(THINGS, "{}", now), idle);
    assert_eq!(scene.collect(THINGS, "{}", MINUTE), Plan::Delete);
}

#[test]
fn a_revision_stays_for_a_minute_from_when_nobody_needs_it_any_more() {
    let mut scene = Scene::new();
    scene.revision(THINGS, "{}");
    assert_eq!(scene.collect(THINGS, "{}", Duration::from_secs(59)), Plan::Wait(plus(Duration::from_secs(119))));
    marked(&scene.queues.revisions);
    scene.rollout("addon", THINGS, &["{}"]);
    assert_eq!(marked(&scene.queues.revisions).len(), 1, "it is not counted any more");
    let hour = Duration::from_hours(1);
    assert_eq!(scene.collect(THINGS, "{}", hour), Plan::Keep);
    scene.rollout_gone("addon");
    assert_eq!(scene.collect(THINGS, "{}", hour), Plan::Wait(plus(hour + MINUTE)), "what is made again may need it");
    assert_eq!(scene.collect(THINGS, "{}", MINUTE), Plan::Wait(plus(2 * MINUTE)), "the clock was set back");
    assert_eq!(scene.collect(THINGS, "{}", 2 * MINUTE), Plan::Delete);
}

#[test]
fn a_revision_that_is_gone_is_not_counted_any_more() {
    let mut scene = Scene::new();
    scene.revision(THINGS, "{}");
    scene.collect(THINGS, "{}", Duration::ZERO);
    assert!(scene.idle.is_some());
    marked(&scene.queues.revisions);
    scene.revision_gone(THINGS, "{}");
    assert_eq!(marked(&scene.queues.revisions).len(), 1);
    scene.collect(THINGS, "{}", Duration::ZERO);
    assert_eq!(scene.idle, None);
}

#[test]
fn no_revision_is_removed_while_a_rollout_can_not_be_read() {
    let mut scene = Scene::new();
    scene.revision(THINGS, "{}");
    let text = r#"{ "metadata": { "name": "addon" }, "spec": {}, "status": { "placements": 1 } }"#;
    scene.cache.receive::<AddOnRollout>(Decoded::parse(text).expect("it has metadata"));
    assert_eq!(scene.collect(THINGS, "{}", MINUTE), Plan::Keep);
    marked(&scene.queues.revisions);
    scene.rollout("addon", THINGS, &[]);
    assert_eq!(marked(&scene.queues.revisions).len(), 1);
    assert_eq!(scene.collect(THINGS, "{}", MINUTE), Plan::Wait(plus(2 * MINUTE)));
}

#[test]
fn record_enqueues_its_rollouts_when_it_comes_or_goes_or_has_another_owner_or_other_revisions() {
    let mut scene = Scene::new();
    scene.rollout("addon", THINGS, &[]);
    assert_eq!(marked(&scene.queues.rollouts), ["addon"]);
    scene.rollout("addon", THINGS, &["{}"]);
    assert_eq!(marked(&scene.queues.rollouts), ["addon"], "clusters with that revision have something else to say");
    scene.rollout("addon", THINGS, &["{}"]);
    assert!(marked(&scene.queues.rollouts).is_empty(), "nothing else in it concerns them");
    let owners = json!([{ "apiVersion": "a/v1", "kind": "A", "name": "a", "uid": "a" }]);
    let owned = json!({ "metadata": { "ownerReferences": owners } });
    let owned = scene.object::<AddOnRollout>("", "addon", &owned);
    scene.cache.apply(owned);
    assert_eq!(marked(&scene.queues.rollouts), ["addon"]);
    scene.rollout_gone("addon");
    assert_eq!(marked(&scene.queues.rollouts), ["addon"]);
}

#[test]
fn what_is_missing_is_made_from_what_has_the_content_now() {
    let mut scene = Scene::new();
    scene.addon("addon", &defaults(THINGS, "one"));
    scene.addon("secret", &defaults("secrets", "one"));
    scene.config(THINGS, "ns", "one", &json!({}));
    scene.config(THINGS, "ns", "two", &json!({}));
    scene.config("secrets", "ns", "one", &json!({}));
    let name = |of: &str, content: &str| config_revision::name(&type_(of), &spec_hash(content));
    let made = |of: &str| format!("Create ConfigRevision {HOME}/{}", name(of, "{}"));
    let set = [
        set_config(THINGS, "one", "{}"),
        set_config(THINGS, "two", "{}"),
        set_config(THINGS, "three", "{}"),
        set_config("secrets", "one", "{}"),
        set_config("unknown", "one", "{}"),
    ];
    assert_eq!(scene.missing(&set), [made("secrets"), made(THINGS)]);
    scene.revision(THINGS, "{}");
    assert_eq!(scene.missing(&set), [made("secrets")], "one is there");
    assert_eq!(
        scene.missing(&[set_config(THINGS, "one", r#"{"a":1}"#)]),
        Vec::<String>::new(),
        "that is gone for good"
    );
}

#[test]
fn revisions_are_in_memory_without_their_contents_and_are_missed_by_who_needs_them() {
    let mut scene = Scene::new();
    scene.revision(THINGS, "{}");
    scene.rollout("addon", THINGS, &["{}"]);
    scene.rollout("other", THINGS, &[]);
    let key = ObjectKey::namespaced(HOME, &config_revision::name(&type_(THINGS), &spec_hash("{}")));
    let revision = scene.cache.update(|cache, _| Tracks::<ConfigRevision>::store(cache).get(&key).cloned());
    assert_eq!(revision.expect("it is there").spec.content, None);
    marked(&scene.queues.rollouts);
    scene.revision_gone(THINGS, "{}");
    assert_eq!(marked(&scene.queues.rollouts), ["addon"]);
}

#[test]
fn a_content_is_lost_when_nobody_has_it_and_any_configuration_that_has_it_makes_it_be_kept_again() {
    let mut scene = Scene::new();
    let set = set_config(THINGS, "one", "{}");
    let is_lost = |scene: &Scene| scene.cache.read().configs.is_lost(&set);
    scene.rollout("addon", THINGS, &["{}"]);
    assert!(is_lost(&scene), "nobody refers to the type");
    scene.addon("addon", &defaults(THINGS, "one"));
    assert!(!is_lost(&scene), "what the type contains is not known");
    scene.listed(THINGS);
    assert!(is_lost(&scene));
    marked(&scene.queues.rollouts);

    scene.config(THINGS, "other", "two", &json!({}));
    assert!(!is_lost(&scene), "another configuration has it");
    assert_eq!(marked(&scene.queues.rollouts), ["addon"], "and it can be kept again");
    let made = format!("Create ConfigRevision {HOME}/{}", config_revision::name(&type_(THINGS), &spec_hash("{}")));
    assert_eq!(scene.missing(std::slice::from_ref(&set)), [made]);
    scene.config(THINGS, "other", "two", &json!({ "a": 1 }));
    assert!(is_lost(&scene));
    assert_eq!(marked(&scene.queues.rollouts), ["addon"]);

    scene.revision(THINGS, "{}");
    assert!(!is_lost(&scene), "it is kept");
    scene.addon("addon", &json!({}));
    assert!(!is_lost(&scene), "though nobody refers to the type");
    scene.revision_gone(THINGS, "{}");
    assert!(is_lost(&scene));
    scene.addon("addon", &defaults(THINGS, "one"));
    scene.see(THINGS, Sighting::Refused(Refusal::Forbidden));
    assert!(!is_lost(&scene), "nobody can tell");
    scene.see(THINGS, Sighting::Refused(Refusal::NoSuchKind));
    assert!(is_lost(&scene), "there is no such type any more");
}
