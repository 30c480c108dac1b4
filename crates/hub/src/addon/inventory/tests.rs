//! A change concerns those whom it can matter to, and nobody else.

use drover_api::cluster::PlacementDecision;
use drover_runtime::{
    clock::ManualClock,
    queue::{Done, Queue},
};
use futures_util::FutureExt;
use k8s_openapi::jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::fleet::Queues;

struct Scene {
    fleet: Fleet,
    version: u64,
}

/// Who was marked.
#[derive(Debug, Default, PartialEq)]
struct Marked {
    installs: Vec<String>,
    addons: Vec<String>,
}

fn marked<const I: usize, const A: usize>(installs: [&str; I], addons: [&str; A]) -> Marked {
    Marked { installs: installs.map(str::to_owned).into(), addons: addons.map(str::to_owned).into() }
}

fn drain(queue: &Queue<ObjectKey>) -> Vec<String> {
    let mut keys = Vec::new();
    while queue.depth() > 0 {
        let key = queue.take().now_or_never().expect("there is one");
        queue.done(&key, Done::Well(None));
        keys.push(key.to_string());
    }
    keys.sort_unstable();
    keys
}

impl Scene {
    /// A fleet with the clusters one and two. The add-on `placed` is installed by the placement x, `gated` by y behind the canaries of x,
    /// `labelled` by a label, and `manual` by hand. The placement x has selected the cluster one.
    fn new() -> Self {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH).clock();
        let mut scene = Self { fleet: Fleet::new(Queues::new(&clock), clock), version: 0 };
        let named = |name: &str| json!({ "namespace": "default", "name": name });
        let mut behind = named("y");
        behind["rolloutStrategy"] =
            json!({ "type": "RollingUpdateWithCanary", "rollingUpdateWithCanary": { "placement": named("x") } });
        for (addon, strategy) in [
            ("placed", json!({ "type": "Placements", "placements": [named("x")] })),
            ("gated", json!({ "type": "Placements", "placements": [behind] })),
            (
                "labelled",
                json!({ "type": "ClusterLabelSelector", "labelSelector": { "matchLabels": { "env": "prod" } } }),
            ),
            ("manual", json!({ "type": "Manual" })),
        ] {
            scene.set::<ClusterManagementAddOn>(None, addon, json!({ "spec": { "installStrategy": strategy } }));
        }
        for cluster in ["one", "two"] {
            scene.cluster(cluster, &json!({}));
        }
        scene.decide("x", &["one"]);
        for placement in ["x", "y"] {
            scene.set::<Placement>(
                Some("default"),
                placement,
                json!({ "spec": {}, "status": { "numberOfSelectedClusters": 1 } }),
            );
        }
        scene.forget();
        scene
    }

    /// Makes an object be so, and says who is marked by it.
    fn set<K>(&mut self, namespace: Option<&str>, name: &str, object: Value) -> Marked
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
        Fleet: Tracks<K>,
    {
        self.version += 1;
        let mut object = object;
        let identity =
            json!({ "namespace": namespace, "name": name, "uid": name, "resourceVersion": self.version.to_string() });
        let metadata = object["metadata"].as_object().cloned().unwrap_or_default();
        object["metadata"] = identity.as_object().cloned().into_iter().flatten().chain(metadata).collect();
        object["apiVersion"] = json!(K::api_version(&()));
        object["kind"] = json!(K::kind(&()));
        let object: K = serde_json::from_value(object).expect("an object");
        let change = Tracks::<K>::store(&mut self.fleet).apply(object).expect("something changes");
        self.fleet.changed(&change);
        self.forget()
    }

    fn gone<K>(&mut self, namespace: Option<&str>, name: &str) -> Marked
    where
        K: Resource<DynamicType = ()>,
        Fleet: Tracks<K>,
    {
        self.version += 1;
        let last = kube::api::ObjectMeta {
            name: Some(name.to_owned()),
            namespace: namespace.map(str::to_owned),
            resource_version: Some(self.version.to_string()),
            ..kube::api::ObjectMeta::default()
        };
        let change = Tracks::<K>::store(&mut self.fleet).delete(&last).expect("something goes");
        self.fleet.changed(&change);
        self.forget()
    }

    fn cluster(&mut self, name: &str, metadata: &Value) -> Marked {
        self.set::<ManagedCluster>(None, name, json!({ "metadata": metadata, "spec": { "hubAcceptsClient": true } }))
    }

    fn available(&mut self, name: &str, status: &str) -> Marked {
        let condition = json!({ "type": "ManagedClusterConditionAvailable", "status": status, "reason": "", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let spec = json!({ "hubAcceptsClient": true });
        self.set::<ManagedCluster>(None, name, json!({ "spec": spec, "status": { "conditions": [condition] } }))
    }

    fn decide(&mut self, placement: &str, clusters: &[&str]) -> Marked {
        let labels = json!({ "cluster.open-cluster-management.io/placement": placement });
        let decisions: Vec<_> = clusters.iter().map(|name| json!({ "clusterName": name, "reason": "" })).collect();
        let object = json!({ "metadata": { "labels": labels }, "status": { "decisions": decisions } });
        self.set::<PlacementDecision>(Some("default"), &format!("{placement}-1"), object)
    }

    fn on_cluster(&mut self, cluster: &str, addon: &str, rest: &Value) -> Marked {
        let mut object = json!({ "spec": {} });
        object.as_object_mut().expect("an object").extend(rest.as_object().cloned().unwrap_or_default());
        self.set::<ManagedClusterAddOn>(Some(cluster), addon, object)
    }

    fn forget(&self) -> Marked {
        Marked { installs: drain(&self.fleet.queues.installs), addons: drain(&self.fleet.queues.addons) }
    }
}

#[test]
fn what_an_add_on_says_of_itself_is_no_reason_to_look_at_all_clusters() {
    let mut scene = Scene::new();
    assert_eq!(scene.on_cluster("one", "placed", &json!({})), marked(["placed"], ["one/placed"]));
    let status = json!({ "status": { "namespace": "somewhere" } });
    drain(&scene.fleet.queues.rollouts);
    assert_eq!(scene.on_cluster("one", "placed", &status), marked([], ["one/placed"]));
    assert_eq!(drain(&scene.fleet.queues.rollouts), ["placed"], "what is given next may depend on it");
    let annotated = json!({ "metadata": { "annotations": { "drover.dev/installed": "true" } } });
    assert_eq!(scene.on_cluster("one", "placed", &annotated), marked(["placed"], ["one/placed"]));
    let going = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    assert_eq!(scene.on_cluster("one", "placed", &going), marked(["placed"], ["one/placed"]));
    assert_eq!(scene.gone::<ManagedClusterAddOn>(Some("one"), "placed"), marked(["placed"], []));
    assert_eq!(scene.fleet.addons.on_clusters("placed").count(), 0);
}

#[test]
fn a_decision_concerns_who_lists_the_placement_or_waits_for_its_clusters() {
    let mut scene = Scene::new();
    assert_eq!(scene.decide("x", &["one", "two"]), marked(["gated", "placed"], []));
    assert_eq!(scene.decide("y", &["two"]), marked(["gated"], []));
    assert_eq!(scene.decide("z", &["two"]), marked([], []));
    assert_eq!(scene.gone::<PlacementDecision>(Some("default"), "y-1"), marked(["gated"], []));

    let x = |count: u8, message: &str| {
        let condition = json!({ "type": "PlacementSatisfied", "status": "True", "reason": "", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        json!({ "spec": {}, "status": { "numberOfSelectedClusters": count, "conditions": [condition] } })
    };
    let mut say = |count, message| scene.set::<Placement>(Some("default"), "x", x(count, message));
    assert_eq!(say(2, "a"), marked(["gated", "placed"], []));
    assert_eq!(say(2, "b"), marked([], []), "what it says in words does not matter");
    assert_eq!(scene.gone::<Placement>(Some("default"), "x"), marked(["gated", "placed"], []));

    scene.set::<ClusterManagementAddOn>(None, "placed", json!({ "spec": {} }));
    assert_eq!(scene.decide("x", &["two"]), marked(["gated"], []), "it lists it no more");
}

#[test]
fn a_cluster_that_comes_or_goes_concerns_who_may_want_it() {
    let mut scene = Scene::new();
    scene.on_cluster("one", "manual", &json!({}));
    let labels = json!({ "labels": { "env": "prod" } });
    assert_eq!(scene.cluster("three", &labels), marked(["labelled"], []));
    let leaving = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
    assert_eq!(scene.cluster("one", &leaving), marked(["gated", "manual", "placed"], []));
    assert_eq!(scene.cluster("two", &json!({ "annotations": { "x": "y" } })), marked([], []));
    assert_eq!(scene.gone::<ManagedCluster>(None, "one"), marked(["gated", "manual", "placed"], ["one/manual"]));
}

#[test]
fn labels_concern_who_goes_by_them() {
    let mut scene = Scene::new();
    assert_eq!(scene.cluster("two", &json!({ "labels": { "env": "prod" } })), marked(["labelled"], []));
    assert_eq!(scene.cluster("two", &json!({ "labels": { "env": "prod", "x": "y" } })), marked([], []));
    assert_eq!(scene.cluster("two", &json!({})), marked(["labelled"], []));
}

#[test]
fn whether_a_cluster_answers_concerns_who_is_on_it_without_being_chosen() {
    let mut scene = Scene::new();
    for cluster in ["one", "two"] {
        scene.on_cluster(cluster, "placed", &json!({}));
    }
    assert_eq!(scene.available("one", "True"), marked([], []));
    assert_eq!(scene.available("one", "Unknown"), marked([], []));
    assert_eq!(scene.available("two", "Unknown"), marked(["placed"], []));
    assert_eq!(scene.available("two", "False"), marked([], []));
}

#[test]
fn annotations_of_a_cluster_concern_its_add_ons() {
    let mut scene = Scene::new();
    scene.on_cluster("one", "placed", &json!({}));
    scene.on_cluster("one", "manual", &json!({}));
    scene.on_cluster("two", "placed", &json!({}));
    let copied = json!({ "annotations": { "addon.open-cluster-management.io/x": "y" } });
    assert_eq!(scene.cluster("one", &copied), marked([], ["one/manual", "one/placed"]));
}

#[test]
fn an_add_on_concerns_those_on_clusters_when_it_has_something_else_for_them() {
    let mut scene = Scene::new();
    scene.on_cluster("one", "manual", &json!({}));
    let mut set = |object| scene.set::<ClusterManagementAddOn>(None, "manual", object);
    let manual = json!({ "installStrategy": { "type": "Manual" } });
    assert_eq!(set(json!({ "spec": manual, "status": { "defaultVersion": "1.0.0" } })), marked([], []));
    let configured = json!({ "installStrategy": { "type": "Manual" },
        "defaultConfigs": [{ "resource": "configmaps", "name": "x" }] });
    assert_eq!(set(json!({ "spec": configured })), marked(["manual"], []));
    let labelled = json!({ "installStrategy": { "type": "ClusterLabelSelector", "labelSelector": {} } });
    assert_eq!(set(json!({ "spec": labelled })), marked(["manual"], ["one/manual"]));
    assert_eq!(scene.gone::<ClusterManagementAddOn>(None, "manual"), marked(["manual"], ["one/manual"]));
}

#[test]
fn when_one_add_on_of_a_cluster_that_leaves_is_gone_the_others_are_looked_at() {
    let mut scene = Scene::new();
    scene.on_cluster("one", "manual", &json!({}));
    scene.on_cluster("one", "other", &json!({}));
    scene.cluster("one", &json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }));
    assert_eq!(
        scene.gone::<ManagedClusterAddOn>(Some("one"), "other").installs,
        ["gated", "manual", "other", "placed"]
    );
}
