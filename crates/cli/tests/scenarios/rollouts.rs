//! Rollouts of add-ons: what the specifications tell of them, on a real server, with a crowd of clusters and an add-on manager that is not ours.

mod bad_input;
mod canary;
mod edits;
mod lifecycle;
mod steering;

mod versions;

use std::{collections::BTreeMap, time::Duration};

use drover_api::{
    addon::{AddOnDeploymentConfig, AddOnHubConfig, AddOnTemplate, ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::{ManagedCluster, Placement, PlacementDecision},
    drover::AddOnRollout,
    names::{PLACEMENT_LABEL, PROGRESSING},
};
use drover_hub::{Hub, Options};
use drover_runtime::clock::ManualClock;
use drover_testkit::{World, objects, play::Crowd, wait};
use futures_util::{StreamExt as _, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::running::{as_hub, change, create, hub_clock, options};

/// The name of the add-on.
const ADDON: &str = "helloworld";

/// A hub that looks after add-ons only, so that a scenario decides itself which clusters placements select and which can be reached.
struct Field {
    world: World,
    hub: Hub,
    clock: ManualClock,
    crowd: Crowd,
}

impl Field {
    async fn new(world: World) -> Self {
        let clock = hub_clock();
        let client = as_hub(&world).await;
        let options = Options { controllers: "addon".parse().expect("a controller"), ..options() };
        let hub = Hub::start(client, &options, clock.clock()).await.expect("the hub starts");
        let crowd = Crowd::gather(world.client(), ADDON);
        Self { world, hub, clock, crowd }
    }

    fn addons(&self) -> Api<ClusterManagementAddOn> {
        Api::all(self.world.client())
    }

    fn on(&self, cluster: &str) -> Api<ManagedClusterAddOn> {
        Api::namespaced(self.world.client(), cluster)
    }

    fn rollouts(&self) -> Api<AddOnRollout> {
        Api::all(self.world.client())
    }

    fn placements(&self) -> Api<Placement> {
        Api::namespaced(self.world.client(), "default")
    }

    /// Makes clusters that can be reached.
    async fn clusters(&self, names: &[&str]) {
        stream::iter(names).for_each_concurrent(16, |name| self.cluster(name)).await;
    }

    async fn cluster(&self, name: &str) {
        self.world.namespace_named(name).await;
        create(&Api::all(self.world.client()), objects::cluster(name)).await;
        self.reach(name, "True").await;
    }

    /// Has a cluster be available, or not.
    async fn reach(&self, name: &str, available: &str) {
        let condition = json!({
            "type": "ManagedClusterConditionAvailable", "status": available, "reason": "Scenario", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let status = Patch::Merge(json!({ "status": { "conditions": [condition] } }));
        let clusters = Api::<ManagedCluster>::all(self.world.client());
        clusters.patch_status(name, &PatchParams::default(), &status).await.expect("a cluster has a status");
    }

    /// Has a placement select exactly these clusters.
    async fn select(&self, placement: &str, clusters: &[&str]) {
        let placements = self.placements();
        if placements.get_opt(placement).await.expect("placements can be read").is_none() {
            let object = json!({
                "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
                "metadata": { "name": placement }, "spec": {},
            });
            let object = serde_json::from_value(object).expect("a valid placement");
            create(&placements, object).await;
        }
        let slice = format!("{placement}-decision-1");
        let slices = Api::<PlacementDecision>::namespaced(self.world.client(), "default");
        if slices.get_opt(&slice).await.expect("decisions can be read").is_none() {
            let object = json!({
                "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
                "metadata": { "name": slice, "labels": { PLACEMENT_LABEL: placement } },
            });
            create(&slices, serde_json::from_value(object).expect("a valid decision")).await;
        }
        let decisions: Vec<_> = clusters.iter().map(|name| json!({ "clusterName": name, "reason": "" })).collect();
        let params = PatchParams::default();
        let status = Patch::Merge(json!({ "status": { "decisions": decisions } }));
        slices.patch_status(&slice, &params, &status).await.expect("a decision has a status");
        let status =
            Patch::Merge(json!({ "status": { "numberOfSelectedClusters": clusters.len(), "conditions": [] } }));
        placements.patch_status(placement, &params, &status).await.expect("a placement has a status");
    }

    /// Makes a configuration that asks for a version.
    async fn hub_config(&self, name: &str, version: &str) {
        let spec = json!({ "desiredVersion": version });
        let config = AddOnHubConfig::new(name, serde_json::from_value(spec).expect("a valid configuration"));
        create(&Api::all(self.world.client()), config).await;
    }

    /// Makes the add-on, or changes it, with these placements.
    async fn list(&self, placements: &[Value]) {
        let spec = json!({ "installStrategy": { "type": "Placements", "placements": placements } });
        let addons = self.addons();
        if addons.get_opt(ADDON).await.expect("add-ons can be read").is_some() {
            change(&addons, ADDON, json!({ "spec": spec })).await;
        } else {
            let addon = ClusterManagementAddOn::new(ADDON, serde_json::from_value(spec).expect("a valid add-on"));
            addons.create(&PostParams::default(), &addon).await.expect("an add-on can be made");
        }
    }

    /// Makes settings of the add-on, or changes them.
    async fn settings(&self, name: &str, value: &str) {
        let configs = Api::<AddOnDeploymentConfig>::namespaced(self.world.client(), "default");
        let spec = json!({ "customizedVariables": [{ "name": "SETTING", "value": value }] });
        if configs.get_opt(name).await.expect("settings can be read").is_some() {
            change(&configs, name, json!({ "spec": spec })).await;
        } else {
            let spec = serde_json::from_value(spec).expect("valid settings");
            create(&configs, AddOnDeploymentConfig::new(name, spec)).await;
        }
    }

    /// Makes a template of the add-on that is that version.
    async fn template(&self, name: &str, version: &str) {
        let manifest = objects::config_map(name);
        let spec = json!({
            "addonName": ADDON, "version": version, "agentSpec": { "workload": { "manifests": [manifest] } },
        });
        let template = AddOnTemplate::new(name, serde_json::from_value(spec).expect("a valid template"));
        create(&Api::all(self.world.client()), template).await;
    }

    async fn annotate(&self, key: &str, value: Option<&str>) {
        change(&self.addons(), ADDON, json!({ "metadata": { "annotations": { key: value } } })).await;
    }

    /// Waits until a placement says this of itself: status/reason: message.
    async fn says(&self, placement: &str, words: &str) -> ClusterManagementAddOn {
        let what = format!("{placement} says {words:?}");
        wait::until(&self.addons(), ADDON, &what, |addon| said(addon, placement).as_deref() == Some(words)).await
    }

    /// Waits until the add-on on a cluster says this of itself.
    async fn says_on(&self, cluster: &str, words: &str) -> ManagedClusterAddOn {
        let what = format!("the add-on on {cluster} says {words:?}");
        wait::until(&self.on(cluster), ADDON, &what, |addon| said_on(addon).as_deref() == Some(words)).await
    }

    /// Waits until what remembers the rollouts says this of them.
    async fn remembers(&self, message: &str) -> AddOnRollout {
        let said = |rollout: &AddOnRollout| rollout.status.as_ref().and_then(|status| status.message.clone());
        wait::until(&self.rollouts(), ADDON, &format!("it says {message:?}"), |rollout| {
            said(rollout).as_deref() == Some(message)
        })
        .await
    }

    /// Lets time pass.
    fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// Which hub configuration each cluster was given, by name.
    async fn given(&self) -> BTreeMap<String, String> {
        let addons = Api::<ManagedClusterAddOn>::all(self.world.client());
        let addons = addons.list(&ListParams::default()).await.expect("add-ons can be listed");
        let given = |addon: &ManagedClusterAddOn| addon.status.as_ref()?.config_references.first()?.name.clone();
        addons.iter().map(|addon| (addon.namespace().unwrap_or_default(), given(addon).unwrap_or_default())).collect()
    }
}

/// What a placement says of itself.
fn said(addon: &ClusterManagementAddOn, placement: &str) -> Option<String> {
    let progressions = &addon.status.as_ref()?.install_progressions;
    let progression = progressions.iter().find(|progression| progression.placement.name == placement)?;
    words(&progression.conditions)
}

/// What an add-on on a cluster says of itself.
fn said_on(addon: &ManagedClusterAddOn) -> Option<String> {
    words(&addon.status.as_ref()?.conditions)
}

fn words(conditions: &[Condition]) -> Option<String> {
    let condition = conditions.iter().find(|condition| condition.type_ == PROGRESSING)?;
    Some(format!("{}/{}: {}", condition.status, condition.reason, condition.message))
}

/// A placement with a hub configuration.
fn placement(name: &str, hub_config: &str, strategy: impl Into<Value>) -> Value {
    let strategy: Value = strategy.into();
    let config =
        json!({ "group": "addon.open-cluster-management.io", "resource": "addonhubconfigs", "name": hub_config });
    json!({ "name": name, "namespace": "default", "configs": [config], "rolloutStrategy": strategy })
}

/// A reference to a configuration of a kind that comes with add-ons.
fn config(resource: &str, name: &str) -> Value {
    let namespace = (resource == "addondeploymentconfigs").then_some("default");
    json!({ "group": "addon.open-cluster-management.io", "resource": resource, "namespace": namespace, "name": name })
}

fn update_all() -> Value {
    json!({ "type": "UpdateAll" })
}

fn rolling(window: &str) -> Value {
    json!({ "type": "RollingUpdate", "rollingUpdate": { "maxConcurrentlyUpdating": window } })
}

fn behind(canary: &str, window: &str) -> Value {
    let canary = json!({ "placement": { "name": canary, "namespace": "default" }, "maxConcurrentlyUpdating": window });
    json!({ "type": "RollingUpdateWithCanary", "rollingUpdateWithCanary": canary })
}
