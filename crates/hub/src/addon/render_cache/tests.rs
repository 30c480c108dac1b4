//! How often works are made, for whom, and why.

use drover_api::addon::ConfigGroupResource;
use drover_engine::{addon::resolver::ConfigResolver, plan::Plan};
use serde_json::{Value, json};

use super::*;
use crate::{
    addon::{
        Rollouts,
        scene::{Scene, drain, words},
    },
    adopt::CreateOrAdopt,
    manifest_work::CachedWork,
};

const CLUSTERS: [&str; 3] = ["one", "three", "two"];

fn settings() -> ConfigGroupResource {
    let (group, resource) = ("addon.open-cluster-management.io".to_owned(), "addondeploymentconfigs".to_owned());
    ConfigGroupResource { group, resource }
}

/// Makes these be the settings of the clusters: each has its own, which holds one value.
fn settle(scene: &mut Scene, version: u32, values: [&str; 3]) {
    let configs = CLUSTERS.iter().zip(values).map(|(cluster, value)| {
        let metadata = json!({ "namespace": cluster, "name": "own", "resourceVersion": format!("{version}") });
        let spec = json!({ "customizedVariables": [{ "name": "LOG_LEVEL", "value": value }] });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).expect("settings")
    });
    let configs: Vec<_> = configs.collect();
    scene.cache.list_configs(&settings(), configs, &scene.queues);
}

/// A fleet whose clusters were given an add-on that is made from a template, each with settings of its own.
fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.template("hello", &json!([]));
    let given = scene.given("hello");
    for cluster in CLUSTERS {
        scene.available(cluster, "True");
        let ConfigGroupResource { group, resource } = settings();
        let own = json!({ "group": group, "resource": resource, "namespace": cluster, "name": "own" });
        let on_cluster = json!({ "spec": { "configs": [own] }, "status": { "conditions": [given] } });
        scene.on_cluster(cluster, "hello", &on_cluster);
    }
    settle(&mut scene, 1, ["1", "1", "1"]);
    scene.plan(&Rollouts, &ObjectKey::cluster_wide("hello"));
    scene
}

fn work_on(scene: &mut Scene, cluster: &str) -> Plan<CreateOrAdopt> {
    scene.plan(&AddOns, &ObjectKey::namespaced(cluster, "hello"))
}

/// Works on all add-ons that are marked, as the hub would, and says which they were.
fn work(scene: &mut Scene) -> Vec<String> {
    let marked = drain(&scene.queues.addons);
    for cluster in marked.iter().filter_map(|key| key.strip_suffix("/hello")) {
        work_on(scene, cluster);
    }
    marked
}

/// How often works have been made.
fn renderings(scene: &Scene) -> u32 {
    let metrics = scene.cache.addons.render_cache.metrics.encode();
    let line = r#"drover_steps_total{controller="drover-addon",step="render"} "#;
    metrics.lines().find_map(|found| found.strip_prefix(line)).map_or(0, |count| count.parse().expect("a number"))
}

/// The work that a cluster is to have, as it was made, with this status.
fn store(scene: &mut Scene, cluster: &str, status: &Value) {
    let key = ObjectKey::namespaced(cluster, "hello");
    let on_cluster = scene.cache.addons.mcas.get(&key).expect("it is there");
    let addon = scene.cache.addons.cmas.get(&ObjectKey::cluster_wide("hello")).expect("it is there");
    let shelf = ConfigResolver::of(&scene.cache, addon);
    let own = shelf.own(on_cluster).expect("it has its own").overrides.expect("they can be had");
    let set = shelf.configured(None, None).expect("it can be had").set.with(&own);
    let request = RenderRequest { cache: &scene.cache, on_cluster, set: &set };
    let RenderState::Rendered(blueprint, _) = scene.cache.addons.render_cache.look(&request) else {
        panic!("it was made")
    };
    let mut rendering = request.render(&blueprint, &Holds::new()).expect("it can be made");
    let mut work = serde_json::to_value(rendering.works.remove(0).work).expect("a work");
    work["status"] = status.clone();
    scene.set::<CachedWork>(Some(cluster), "addon-hello-deploy-0", work);
}

/// A fleet whose works are all there, as they were made.
fn settled() -> Scene {
    let mut scene = scene();
    work(&mut scene);
    for cluster in CLUSTERS {
        store(&mut scene, cluster, &json!({}));
    }
    work(&mut scene);
    scene
}

#[test]
fn works_are_made_once_for_each_cluster() {
    let mut scene = scene();
    assert_eq!(work(&mut scene), ["one/hello", "three/hello", "two/hello"]);
    assert_eq!(renderings(&scene), 3);
    for cluster in CLUSTERS {
        store(&mut scene, cluster, &json!({}));
    }
    assert_eq!(work(&mut scene), ["one/hello", "three/hello", "two/hello"]);
    assert_eq!(renderings(&scene), 3);
}

#[test]
fn an_edit_of_one_clusters_settings_is_rendered_for_that_cluster_alone() {
    let mut scene = settled();
    settle(&mut scene, 2, ["1", "1", "9"]);
    assert_eq!(work(&mut scene), ["two/hello"]);
    assert_eq!(renderings(&scene), 4);
    for cluster in ["one", "three"] {
        work_on(&mut scene, cluster);
    }
    assert_eq!(renderings(&scene), 4, "the others have what they are to have");
}

#[test]
fn nothing_is_rendered_because_of_a_works_status() {
    let mut scene = settled();
    let condition = json!({ "type": "Applied", "status": "True", "reason": "", "message": "", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    store(&mut scene, "two", &json!({ "conditions": [condition] }));
    assert_eq!(work(&mut scene), ["two/hello"]);
    assert_eq!(renderings(&scene), 3);
}

#[test]
fn a_work_that_somebody_has_removed_is_rendered_for_its_cluster_alone() {
    let mut scene = settled();
    scene.gone::<CachedWork>(Some("two"), "addon-hello-deploy-0");
    assert_eq!(work(&mut scene), ["two/hello"]);
    assert_eq!(renderings(&scene), 4);
    assert!(words(&work_on(&mut scene, "two")).contains(&"Create ManifestWork two/addon-hello-deploy-0".to_owned()));
}

#[test]
fn what_was_made_is_known_without_a_look_at_the_settings() {
    let mut scene = settled();
    let before = renderings(&scene);
    let key = ObjectKey::namespaced("two", "hello");
    let on_cluster = scene.cache.addons.mcas.get(&key).expect("it is there").clone();
    let addon = scene.cache.addons.cmas.get(&ObjectKey::cluster_wide("hello")).expect("it is there").clone();
    let shelf = ConfigResolver::of(&scene.cache, &addon);
    let own = shelf.own(&on_cluster).expect("it has its own").overrides.expect("they can be had");
    let set = shelf.configured(None, None).expect("it can be had").set.with(&own);
    // The settings are gone, and kept nowhere.
    scene.cache.list_configs(&settings(), Vec::new(), &scene.queues);
    let request = RenderRequest { cache: &scene.cache, on_cluster: &on_cluster, set: &set };
    assert!(request.is_lost());
    let looked = scene.cache.addons.render_cache.look(&request);
    assert!(matches!(looked, RenderState::Rendered(..)), "nobody has to ask for them again");
    scene.cache.addons.render_cache.forget(&key);
    assert!(
        matches!(scene.cache.addons.render_cache.look(&request), RenderState::Former(Some(_))),
        "now it can not be told"
    );
    assert_eq!(renderings(&scene), before);
}

#[test]
fn one_template_too_many_makes_one_be_read_again_and_not_all() {
    let mut blueprints = Blueprints::default();
    let key = |number: usize| (format!("template-{number}"), SpecHash::default());
    let none = || Err("of no use".to_owned());
    for number in 0..TEMPLATES {
        blueprints.keep(key(number), none());
    }
    assert!(blueprints.get(&key(0)).is_some());
    blueprints.keep(key(TEMPLATES), none());
    let there = (0..=TEMPLATES).filter(|number| blueprints.kept.contains_key(&key(*number)));
    assert_eq!(there.count(), TEMPLATES);
    assert!(blueprints.kept.contains_key(&key(0)), "somebody has just asked for it");
}
