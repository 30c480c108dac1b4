//! Rollouts of add-ons: what the specifications tell of them, on a real server, with a crowd of clusters and an add-on manager that is not ours.

mod bad_input;
mod canary;
mod choices;
mod edits;
mod groups;
mod invalid_status;
mod killed;
mod lifecycle;
mod observer;
mod ocm;
mod reports;
mod steering;
mod templates;
mod versions;

use std::{collections::BTreeMap, time::Duration};

use drover_api::{
    addon::{
        AddOnDeploymentConfig, AddOnHubConfig, AddOnTemplate, ClusterManagementAddOn, ConfigSpecHash,
        InstallConfigReference, ManagedClusterAddOn, ManagedClusterAddOnSpec,
    },
    cluster::Placement,
    drover::{AddOnRollout, AddOnRolloutStatus, RolloutProgress},
    names::{PROGRESSING, PROVEN},
};
use drover_engine::hash::{content, spec_hash};
use drover_hub::{Dialect, Hub, Options};
use drover_runtime::{clock::ManualClock, decode::Decoded};
use drover_testkit::{
    World, objects,
    play::{Behaviour, Crowd},
    wait,
};
use futures_util::{StreamExt as _, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::running::{as_hub, change, create, decide, hub_clock, options, reach, select};

/// The name of the add-on.
const ADDON: &str = "helloworld";

/// What a placement asks for in most scenarios: first the one, then the other.
const XXX: &str = "hub-config-xxx";
const YYY: &str = "hub-config-yyy";
const ZZZ: &str = "hub-config-zzz";

/// A hub that looks after add-ons only, so that a scenario decides itself which clusters placements select and which can be reached.
struct Field {
    world: World,
    client: Client,
    hub: Hub,
    clock: ManualClock,
    crowd: Crowd,
    dialect: Dialect,
}

impl Field {
    async fn new(world: World) -> Self {
        Self::speaking(world, Dialect::Drover).await
    }

    async fn speaking(world: World, dialect: Dialect) -> Self {
        let clock = hub_clock();
        let client = as_hub(&world).await;
        let hub = start(client.clone(), &clock, dialect).await;
        let crowd = Crowd::gather(world.client(), ADDON);
        Self { world, client, hub, clock, crowd, dialect }
    }

    /// Clusters behind canaries, all of which run the first configuration.
    async fn behind_canaries(world: World, aws: &[&str], canaries: &[&str]) -> Self {
        let field = Self::new(world).await;
        field.with_canaries(aws, canaries, &upgrade(XXX)).await;
        field
    }

    /// Makes clusters behind canaries, and has them run what is listed.
    async fn with_canaries(&self, aws: &[&str], canaries: &[&str], list: &[Value]) {
        self.clusters(aws).await;
        self.clusters(canaries).await;
        self.hub_configs().await;
        self.select("aws-placement", aws).await;
        self.select("canary-placement", canaries).await;
        self.list(list).await;
        let total = aws.len();
        self.says("aws-placement", &format!("False/InstallSucceed: {total}/{total} install completed with no errors."))
            .await;
    }

    /// Clusters of one placement, all of which run the first configuration.
    async fn of_one_placement(world: World, clusters: &[&str], strategy: &Value) -> Self {
        let field = Self::new(world).await;
        field.clusters(clusters).await;
        field.hub_configs().await;
        field.select("aws-placement", clusters).await;
        field.list(&[placement("aws-placement", XXX, strategy.clone())]).await;
        let total = clusters.len();
        field
            .says("aws-placement", &format!("False/InstallSucceed: {total}/{total} install completed with no errors."))
            .await;
        field
    }

    /// Ends the hub, and starts another one.
    async fn restart(self) -> Self {
        self.restart_after(async |_| {}).await
    }

    /// Ends the hub, has something happen while there is none, and starts another one.
    async fn restart_after(self, happens: impl AsyncFnOnce(&ManualClock)) -> Self {
        self.hub.stop().await;
        happens(&self.clock).await;
        Self { hub: start(self.client.clone(), &self.clock, self.dialect).await, ..self }
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
        reach(&self.world, name, available).await;
    }

    /// Has a placement select exactly these clusters.
    async fn select(&self, placement: &str, clusters: &[&str]) {
        select(&self.world, "default", placement, clusters).await;
    }

    /// Has one slice of a placement's decisions name exactly these clusters.
    async fn decide(&self, slice: &str, placement: &str, labels: &[(&str, &str)], clusters: &[&str]) {
        decide(&self.world, ("default", slice), placement, labels, clusters).await;
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

    async fn hub_configs(&self) {
        for (name, version) in [(XXX, "v0.10.0"), (YYY, "v0.11.0"), (ZZZ, "v0.12.0")] {
            self.hub_config(name, version).await;
        }
    }

    fn behave(&self, clusters: &[&str], behaviour: Behaviour) {
        for cluster in clusters {
            self.crowd.behave(cluster, behaviour);
        }
    }

    /// Has somebody install the add-on on a cluster by hand.
    async fn install_by_hand(&self, cluster: &str) {
        create(&self.on(cluster), ManagedClusterAddOn::new(ADDON, ManagedClusterAddOnSpec::default())).await;
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
    async fn reports(&self, message: &str) -> AddOnRollout {
        let said = |rollout: &AddOnRollout| rollout.status.as_ref().and_then(|status| status.message.clone());
        wait::until(&self.rollouts(), ADDON, &format!("it says {message:?}"), |rollout| {
            said(rollout).as_deref() == Some(message)
        })
        .await
    }

    /// Waits until the add-on on a cluster was given a configuration.
    async fn is_given(&self, cluster: &str, config: &str) -> ManagedClusterAddOn {
        let what = format!("{cluster} is given {config}");
        wait::until(&self.on(cluster), ADDON, &what, |addon| given_to(addon).as_deref() == Some(config)).await
    }

    /// Waits until the hub has noted down how a cluster stands to what it was given.
    async fn is_noted(&self, cluster: &str, verdict: &str) -> ManagedClusterAddOn {
        let what = format!("{cluster} is noted as {verdict}");
        wait::until(&self.on(cluster), ADDON, &what, |addon| verdict_on(addon) == Some(verdict)).await
    }

    /// Has a cluster report that what it was given can not be applied, and waits until the hub has noted it down.
    async fn fail(&self, cluster: &str) {
        self.crowd.behave(cluster, Behaviour::Fails);
        self.is_noted(cluster, "Failing").await;
    }

    /// Waits until what is remembered of the rollouts is like this.
    async fn remembers(&self, what: &str, is_so: impl Fn(&AddOnRolloutStatus) -> bool) -> AddOnRolloutStatus {
        let has = |rollout: &AddOnRollout| rollout.status.as_ref().is_some_and(&is_so);
        wait::until(&self.rollouts(), ADDON, what, has).await.status.expect("it was waited for")
    }

    /// Lets time pass.
    fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// Which hub configuration each cluster was given, by name, even where a client has written an
    /// invalid status.
    async fn given(&self) -> BTreeMap<String, String> {
        let addons = Api::<Decoded<ManagedClusterAddOn>>::all(self.world.client());
        let addons = addons.list(&ListParams::default()).await.expect("add-ons can be listed");
        let addons = addons.into_iter().map(|addon| match addon.0 {
            Ok(addon) => addon,
            Err(damaged) => damaged.without_defects().expect("only its status is invalid"),
        });
        addons.map(|addon| (addon.namespace().unwrap_or_default(), given_to(&addon).unwrap_or_default())).collect()
    }

    /// The clusters that were given a configuration.
    async fn clusters_on(&self, config: &str) -> Vec<String> {
        let given = self.given().await;
        given.into_iter().filter(|(_, given)| given == config).map(|(cluster, _)| cluster).collect()
    }
}

async fn start(client: Client, clock: &ManualClock, dialect: Dialect) -> Hub {
    let options = Options { controllers: "addon".parse().expect("a controller"), dialect, ..options() };
    Hub::start(client, &options, clock.clock()).await.expect("the hub starts")
}

/// The name of the first configuration that an add-on was given.
fn given_to(addon: &ManagedClusterAddOn) -> Option<String> {
    addon.status.as_ref()?.config_references.first()?.name.clone()
}

fn verdict_on(addon: &ManagedClusterAddOn) -> Option<&str> {
    let conditions = &addon.status.as_ref()?.conditions;
    conditions.iter().find(|condition| condition.type_ == PROVEN).map(|condition| condition.reason.as_str())
}

/// What is remembered of a placement.
fn progress_of<'a>(status: &'a AddOnRolloutStatus, placement: &str) -> &'a RolloutProgress {
    let found = status.placements.iter().find(|known| known.placement.name == placement);
    &found.expect("the placement is listed").progress
}

/// The hash of a configuration that asks for a version.
fn hash_of(version: &str) -> String {
    spec_hash(&content(&json!({ "spec": { "desiredVersion": version } }))).to_string()
}

/// What a placement publishes of its one configuration: its name, and the hashes of what is desired, known to be good, and applied.
/// Both shapes say the same.
fn published(addon: &ClusterManagementAddOn, placement: &str) -> (String, [String; 3]) {
    let status = addon.status.as_ref().expect("it has a status");
    let flat = status.install_progression.iter().find(|progression| progression.placement.name == placement);
    let flat = flat.expect("the placement is listed");
    let nested = status.install_progressions.iter().find(|progression| progression.placement.name == placement);
    let nested = nested.expect("the placement is listed in the other shape");
    assert_eq!(flat.conditions, nested.conditions);
    assert_eq!((flat.config_references.len(), nested.config_references.len()), (1, 1));
    let reference = &flat.config_references[0];
    let hashes = [
        &reference.desired_config_spec_hash,
        &reference.last_known_good_config_spec_hash,
        &reference.last_applied_config_spec_hash,
    ];
    let hashes = hashes.map(ToString::to_string);
    let InstallConfigReference { desired_config, last_known_good_config, last_applied_config, .. } =
        &nested.config_references[0];
    let hash = |config: &Option<ConfigSpecHash>| {
        config.as_ref().map(|config| config.spec_hash.to_string()).unwrap_or_default()
    };
    assert_eq!([desired_config, last_known_good_config, last_applied_config].map(hash), hashes);
    (reference.config.referent.name.clone(), hashes)
}

/// What the add-on on a cluster says of its one configuration: its name, and the hashes of what is desired and applied. Both shapes say
/// the same.
fn published_on(addon: &ManagedClusterAddOn) -> (String, [String; 2]) {
    let status = addon.status.as_ref().expect("it has a status");
    let [reference] = status.config_references.as_slice() else { panic!("not one configuration: {status:?}") };
    let flat = [&reference.desired_config_spec_hash, &reference.last_applied_config_spec_hash];
    let flat = flat.map(|hash| hash.as_ref().map(ToString::to_string).unwrap_or_default());
    let nested = [&reference.desired_config, &reference.last_applied_config];
    let nested = nested.map(|config| config.as_ref().map(|config| config.spec_hash.to_string()).unwrap_or_default());
    assert_eq!(flat, nested);
    (reference.name.clone().unwrap_or_default(), flat)
}

/// An add-on behind canaries, with a configuration for both placements.
fn upgrade(config: &str) -> [Value; 2] {
    [
        placement("aws-placement", config, behind("canary-placement", "25%")),
        placement("canary-placement", config, rolling("50%")),
    ]
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
