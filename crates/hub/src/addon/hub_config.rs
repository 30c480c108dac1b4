//! The controller of configurations that ask for a version: tells which versions may be asked for.
//!
//! Watches them, the add-ons that refer to them, and the templates of those. Its key is an AddOnHubConfig. It writes that object's status.

use drover_api::addon::{AddOnHubConfig, AddOnHubConfigStatus};
use drover_engine::{
    addon::{resolver::ConfigResolver, versions::in_common},
    plan::{NoAction, Plan, Write},
};
use drover_runtime::{
    cache::Tracks,
    controller::Reconciler,
    store::{Change, ObjectKey, Store},
};
use k8s_openapi::jiff::Timestamp;

use crate::cache::{Cache, Queues};

pub(crate) struct HubConfigs;

impl Reconciler<Cache> for HubConfigs {
    type Key = ObjectKey;
    type State = ();
    type Action = NoAction;

    const NAME: &'static str = "drover-addon-hub-config";

    fn plan(&self, cache: &Cache, key: &ObjectKey, (): &mut (), _now: Timestamp) -> Plan {
        let Some(config) = cache.addons.hub_configs.get(key) else { return Plan::default() };
        let users = cache.configs.users_of_hub_config(key);
        let addons = users.iter().filter_map(|addon| cache.addons.cmas.get(addon));
        let versions: Vec<_> = addons.map(|addon| ConfigResolver::of(cache, addon).versions).collect();
        with_versions(config, &AddOnHubConfigStatus { supported_versions: in_common(&versions) }).into_iter().collect()
    }
}

fn with_versions(config: &AddOnHubConfig, status: &AddOnHubConfigStatus) -> Option<Write> {
    // Where there is nothing to say, nothing is as good as a status that says so.
    let nothing = AddOnHubConfigStatus::default();
    if config.status.as_ref().unwrap_or(&nothing) == status {
        return None;
    }
    let wanted = AddOnHubConfig { status: Some(status.clone()), ..config.clone() };
    Write::status(config, &wanted)
}

impl Tracks<AddOnHubConfig> for Cache {
    fn store(&mut self) -> &mut Store<AddOnHubConfig> {
        &mut self.addons.hub_configs
    }

    fn changed(&mut self, change: &Change<AddOnHubConfig>, queues: &Queues) {
        if change.new.is_some() {
            queues.hub_configs.mark(change.key.clone());
        } else {
            queues.hub_configs.forget(&change.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use drover_api::{addon::ClusterManagementAddOn, names::SUPPORTED_VERSIONS_ANNOTATION};
    use serde_json::{Value, json};

    use super::*;
    use crate::addon::scene::{Scene, drain, words};

    fn addon(scene: &mut Scene, name: &str, versions: &str, config: &str) {
        let configs =
            json!([{ "group": "addon.open-cluster-management.io", "resource": "addonhubconfigs", "name": config }]);
        let annotations = json!({ SUPPORTED_VERSIONS_ANNOTATION: versions });
        let addon = json!({ "metadata": { "annotations": annotations }, "spec": { "defaultConfigs": configs } });
        scene.set::<ClusterManagementAddOn>(None, name, addon);
    }

    fn config(scene: &mut Scene, supported: &Value) {
        scene.set::<AddOnHubConfig>(
            None,
            "config",
            json!({ "spec": {}, "status": { "supportedVersions": supported } }),
        );
    }

    fn plan(scene: &mut Scene) -> Vec<String> {
        words(&scene.plan(&HubConfigs, &ObjectKey::cluster_wide("config")))
    }

    #[test]
    fn versions_are_told_once_and_as_they_are() {
        let mut scene = Scene::new();
        config(&mut scene, &json!([]));
        assert_eq!(plan(&mut scene), [""; 0], "nobody refers to it");
        addon(&mut scene, "one", "v1,v2", "config");
        assert_eq!(plan(&mut scene), ["Patch AddOnHubConfig config"]);
        config(&mut scene, &json!(["v1", "v2"]));
        assert_eq!(plan(&mut scene), [""; 0]);
        addon(&mut scene, "two", "v2", "config");
        assert_eq!(plan(&mut scene), ["Patch AddOnHubConfig config"]);
        config(&mut scene, &json!(["v2"]));
        addon(&mut scene, "two", "v2, not a version", "config");
        assert_eq!(plan(&mut scene), [""; 0], "what can be read counts");
    }

    #[test]
    fn it_is_looked_at_when_what_it_follows_from_changes() {
        let mut scene = Scene::new();
        let marked = |scene: &Scene| drain(&scene.queues.hub_configs);
        config(&mut scene, &json!([]));
        assert_eq!(marked(&scene), ["config"]);
        addon(&mut scene, "one", "v1", "config");
        assert_eq!(marked(&scene), ["config"], "it is referred to");
        addon(&mut scene, "one", "v2", "config");
        assert_eq!(marked(&scene), ["config"], "there are other versions");
        addon(&mut scene, "one", "v2", "other");
        assert_eq!(marked(&scene), ["config", "other"], "it is not referred to any more");
        addon(&mut scene, "one", "v3", "other");
        assert_eq!(marked(&scene), ["other"], "it is none of its business");
    }
}
