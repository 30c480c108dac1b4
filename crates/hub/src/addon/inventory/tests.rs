//! A change concerns those whom it can matter to, and nobody else.

use drover_api::{
    cluster::PlacementDecision,
    names::{ADDON_NAME_LABEL, ADDON_NAMESPACE_LABEL, HOSTING_CLUSTER_ANNOTATION},
};
use serde_json::json;

use super::*;
use crate::{
    addon::scene::{Scene, drain, named},
    manifest_work::CachedWork,
};

/// Who was marked.
#[derive(Debug, Default, PartialEq)]
struct Marked {
    installs: Vec<String>,
    addons: Vec<String>,
}

fn marked<const I: usize, const A: usize>(installs: [&str; I], addons: [&str; A]) -> Marked {
    Marked { installs: installs.map(str::to_owned).into(), addons: addons.map(str::to_owned).into() }
}

impl Scene {
    /// A fleet with the clusters one and two. The add-on `placed` is installed by the placement x, `gated` by y behind the canaries of x,
    /// `labelled` by a label, and `manual` by hand. The placement x has selected the cluster one.
    fn of_four() -> Self {
        let mut scene = Self::new();
        let mut behind = named("y");
        behind["rolloutStrategy"] =
            json!({ "type": "RollingUpdateWithCanary", "rollingUpdateWithCanary": { "placement": named("x") } });
        scene.addon("placed", &json!({ "type": "Placements", "placements": [named("x")] }));
        scene.addon("gated", &json!({ "type": "Placements", "placements": [behind] }));
        let labels = json!({ "matchLabels": { "env": "prod" } });
        scene.addon("labelled", &json!({ "type": "ClusterLabelSelector", "labelSelector": labels }));
        scene.addon("manual", &json!({ "type": "Manual" }));
        for cluster in ["one", "two"] {
            scene.cluster(cluster, &json!({}));
        }
        scene.decide("x", &["one"]);
        for placement in ["x", "y"] {
            scene.placement(placement, 1);
        }
        scene.marked();
        scene
    }

    /// Who was marked by a change.
    fn marked(&self) -> Marked {
        Marked { installs: drain(&self.queues.installs), addons: drain(&self.queues.addons) }
    }
}

#[test]
fn what_an_add_on_says_of_itself_is_no_reason_to_look_at_all_clusters() {
    let mut scene = Scene::of_four();
    scene.on_cluster("one", "placed", &json!({}));
    assert_eq!(scene.marked(), marked(["placed"], ["one/placed"]));
    let status = json!({ "status": { "namespace": "somewhere" } });
    drain(&scene.queues.rollouts);
    scene.on_cluster("one", "placed", &status);
    assert_eq!(scene.marked(), marked([], ["one/placed"]));
    assert_eq!(drain(&scene.queues.rollouts), ["placed"], "what is given next may depend on it");
    let annotated = json!({ "metadata": { "annotations": { "drover.dev/installed": "true" } } });
    scene.on_cluster("one", "placed", &annotated);
    assert_eq!(scene.marked(), marked(["placed"], ["one/placed"]));
    let going = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    scene.on_cluster("one", "placed", &going);
    assert_eq!(scene.marked(), marked(["placed"], ["one/placed"]));
    scene.gone::<ManagedClusterAddOn>(Some("one"), "placed");
    assert_eq!(scene.marked(), marked(["placed"], ["one/placed"]), "it may have left something behind");
    assert_eq!(scene.cache.addons.on_clusters("placed").count(), 0);
}

#[test]
fn a_decision_concerns_who_lists_the_placement_or_waits_for_its_clusters() {
    let mut scene = Scene::of_four();
    scene.decide("x", &["one", "two"]);
    assert_eq!(scene.marked(), marked(["gated", "placed"], []));
    scene.decide("y", &["two"]);
    assert_eq!(scene.marked(), marked(["gated"], []));
    scene.decide("z", &["two"]);
    assert_eq!(scene.marked(), marked([], []));
    scene.gone::<PlacementDecision>(Some("default"), "y-1");
    assert_eq!(scene.marked(), marked(["gated"], []));

    let x = |count: u8, message: &str| {
        let condition = json!({ "type": "PlacementSatisfied", "status": "True", "reason": "", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        json!({ "spec": {}, "status": { "numberOfSelectedClusters": count, "conditions": [condition] } })
    };
    scene.set::<Placement>(Some("default"), "x", x(2, "a"));
    assert_eq!(scene.marked(), marked(["gated", "placed"], []));
    scene.set::<Placement>(Some("default"), "x", x(2, "b"));
    assert_eq!(scene.marked(), marked([], []), "what it says in words does not matter");
    scene.gone::<Placement>(Some("default"), "x");
    assert_eq!(scene.marked(), marked(["gated", "placed"], []));

    scene.addon("placed", &json!({ "type": "Manual" }));
    scene.marked();
    scene.decide("x", &["two"]);
    assert_eq!(scene.marked(), marked(["gated"], []), "it lists it no more");
}

#[test]
fn a_cluster_that_comes_or_goes_concerns_who_may_want_it() {
    let mut scene = Scene::of_four();
    scene.on_cluster("one", "manual", &json!({}));
    scene.marked();
    let labels = json!({ "labels": { "env": "prod" } });
    scene.cluster("three", &labels);
    assert_eq!(scene.marked(), marked(["labelled"], []));
    let leaving = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
    scene.cluster("one", &leaving);
    assert_eq!(scene.marked(), marked(["gated", "manual", "placed"], ["one/manual"]));
    scene.cluster("two", &json!({ "annotations": { "x": "y" } }));
    assert_eq!(scene.marked(), marked([], []));
    scene.gone::<ManagedCluster>(None, "one");
    assert_eq!(scene.marked(), marked(["gated", "manual", "placed"], ["one/manual"]));
}

#[test]
fn other_versions_concern_the_clusters_that_have_one_of_their_own() {
    let mut scene = Scene::of_four();
    scene.on_cluster("one", "placed", &json!({ "spec": { "installVersion": "v2" } }));
    scene.on_cluster("two", "placed", &json!({}));
    scene.marked();
    let offering = json!({ "annotations": { "addon.open-cluster-management.io/supported-versions": "v1,v2" } });
    let strategy = json!({ "type": "Placements", "placements": [named("x")] });
    let addon = json!({ "metadata": offering, "spec": { "installStrategy": strategy } });
    scene.set::<ClusterManagementAddOn>(None, "placed", addon);
    assert_eq!(scene.marked(), marked(["placed"], ["one/placed"]));
}

#[test]
fn labels_concern_who_goes_by_them() {
    let mut scene = Scene::of_four();
    scene.cluster("two", &json!({ "labels": { "env": "prod" } }));
    assert_eq!(scene.marked(), marked(["labelled"], []));
    scene.cluster("two", &json!({ "labels": { "env": "prod", "x": "y" } }));
    assert_eq!(scene.marked(), marked([], []));
    scene.cluster("two", &json!({}));
    assert_eq!(scene.marked(), marked(["labelled"], []));
}

#[test]
fn whether_a_cluster_answers_concerns_who_is_on_it_without_being_chosen() {
    let mut scene = Scene::of_four();
    for cluster in ["one", "two"] {
        scene.on_cluster(cluster, "placed", &json!({}));
    }
    scene.marked();
    scene.available("one", "True");
    assert_eq!(scene.marked(), marked([], ["one/placed"]), "what an add-on says of itself depends on it");
    scene.available("one", "Unknown");
    assert_eq!(scene.marked(), marked([], ["one/placed"]));
    scene.available("two", "Unknown");
    assert_eq!(scene.marked(), marked(["placed"], ["two/placed"]));
    scene.available("two", "False");
    assert_eq!(scene.marked(), marked([], ["two/placed"]));
}

#[test]
fn annotations_of_a_cluster_concern_its_add_ons() {
    let mut scene = Scene::of_four();
    scene.on_cluster("one", "placed", &json!({}));
    scene.on_cluster("one", "manual", &json!({}));
    scene.on_cluster("two", "placed", &json!({}));
    scene.marked();
    let copied = json!({ "annotations": { "addon.open-cluster-management.io/x": "y" } });
    scene.cluster("one", &copied);
    assert_eq!(scene.marked(), marked([], ["one/manual", "one/placed"]));
}

#[test]
fn an_add_on_concerns_those_on_clusters_when_it_has_something_else_for_them() {
    let mut scene = Scene::of_four();
    scene.on_cluster("one", "manual", &json!({}));
    scene.marked();
    let manual = json!({ "installStrategy": { "type": "Manual" } });
    scene.set::<ClusterManagementAddOn>(
        None,
        "manual",
        json!({ "spec": manual, "status": { "defaultVersion": "1.0.0" } }),
    );
    assert_eq!(scene.marked(), marked([], []));
    let configured = json!({ "installStrategy": { "type": "Manual" },
        "defaultConfigs": [{ "resource": "configmaps", "name": "x" }] });
    scene.set::<ClusterManagementAddOn>(None, "manual", json!({ "spec": configured }));
    assert_eq!(scene.marked(), marked(["manual"], []));
    let labelled = json!({ "installStrategy": { "type": "ClusterLabelSelector", "labelSelector": {} } });
    scene.set::<ClusterManagementAddOn>(None, "manual", json!({ "spec": labelled }));
    assert_eq!(scene.marked(), marked(["manual"], ["one/manual"]));
    scene.gone::<ClusterManagementAddOn>(None, "manual");
    assert_eq!(scene.marked(), marked(["manual"], ["one/manual"]));
}

#[test]
fn when_one_add_on_of_a_cluster_that_leaves_is_gone_the_others_are_looked_at() {
    let mut scene = Scene::of_four();
    scene.on_cluster("one", "manual", &json!({}));
    scene.on_cluster("one", "other", &json!({}));
    scene.cluster("one", &json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }));
    scene.marked();
    scene.gone::<ManagedClusterAddOn>(Some("one"), "other");
    assert_eq!(scene.marked().installs, ["gated", "manual", "other", "placed"]);
}

/// The works of the add-on `hosted` on the cluster one, by their keys.
fn works_of_hosted(scene: &Scene) -> Vec<String> {
    let addon = scene.cache.addons.mcas.get(&ObjectKey::namespaced("one", "hosted")).expect("it is there");
    scene.cache.addon_works(addon).into_iter().map(|work| ObjectKey::of(work).to_string()).collect()
}

#[test]
fn a_work_counts_for_the_cluster_that_it_was_made_for() {
    let mut scene = Scene::of_four();
    let hosted = json!({ "metadata": { "annotations": { HOSTING_CLUSTER_ANNOTATION: "host" } } });
    scene.on_cluster("one", "hosted", &json!({}));
    let labelled = |addon: &str, cluster: Option<&str>| {
        let mut labels = json!({ ADDON_NAME_LABEL: addon });
        if let Some(cluster) = cluster {
            labels[ADDON_NAMESPACE_LABEL] = json!(cluster);
        }
        json!({ "metadata": { "labels": labels }, "spec": {} })
    };
    for (namespace, name, work) in [
        ("one", "own", labelled("hosted", None)),
        ("one", "others", labelled("placed", None)),
        ("one", "for-two", labelled("hosted", Some("two"))),
        ("host", "hosts-own", labelled("hosted", None)),
        ("host", "for-one", labelled("hosted", Some("one"))),
        ("stranger", "for-one", labelled("hosted", Some("one"))),
    ] {
        scene.set::<CachedWork>(Some(namespace), name, work);
    }
    assert_eq!(works_of_hosted(&scene), ["one/own"], "nobody hosts it");
    scene.on_cluster("one", "hosted", &hosted);
    assert_eq!(works_of_hosted(&scene), ["host/for-one", "one/own"]);

    scene.marked();
    scene.set::<CachedWork>(Some("host"), "for-one", labelled("hosted", Some("two")));
    assert_eq!(scene.marked(), marked([], ["one/hosted", "two/hosted"]));
    scene.gone::<CachedWork>(Some("one"), "own");
    assert_eq!(works_of_hosted(&scene), [""; 0]);
}
