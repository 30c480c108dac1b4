//! Upgrades of clusters: canaries first, the rest a few at a time, with actions before and after, and nobody interrupted.

mod actions;
mod bad_input;
mod canaries;
mod deletion;
mod edits;
mod killed;
mod selection;
mod sequence;
mod spokes;
mod time;
mod told;
mod versions;
mod window;

use std::time::Duration;

use drover_api::{
    cluster::{ManagedCluster, ManagedClustersUpgrade, ManagedClustersUpgradeStatus as Status},
    drover::ClusterUpgrade,
    names::UPGRADED_BY_ANNOTATION,
    work::ManifestWork,
};
use drover_engine::upgrade::naming::{Part, part_name};
use drover_hub::{Hub, Options};
use drover_runtime::clock::ManualClock;
use drover_testkit::{World, objects, wait};
use futures_util::{StreamExt as _, stream};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use self::spokes::{Platform, Spoke, Spokes};
use crate::running::{as_hub, change, condition, create, hub_clock, options, reach, select};

/// The name of the upgrade in most scenarios.
const UPGRADE: &str = "to-4-12";
/// Its namespace.
const HOME: &str = "default";
/// The version that clusters are upgraded to.
const TO: &str = "4.12.0";

/// A hub that looks after upgrades only, so that a scenario decides itself which clusters are selected and which can be reached.
struct Field {
    world: World,
    client: Client,
    hub: Hub,
    clock: ManualClock,
    spokes: Spokes,
}

impl Field {
    async fn new(world: World) -> Self {
        let clock = hub_clock();
        let client = as_hub(&world).await;
        let hub = start(client.clone(), &clock).await;
        let spokes = Spokes::new(world.client());
        Self { world, client, hub, clock, spokes }
    }

    /// Clusters that can be reached, all of which a placement selects.
    async fn of(world: World, clusters: &[&str]) -> Self {
        let field = Self::new(world).await;
        field.clusters(clusters).await;
        field.select(clusters).await;
        field
    }

    /// Ends the hub, and starts another one.
    async fn restart(self) -> Self {
        self.hub.stop().await;
        Self { hub: start(self.client.clone(), &self.clock).await, ..self }
    }

    fn upgrades(&self) -> Api<ManagedClustersUpgrade> {
        Api::namespaced(self.world.client(), HOME)
    }

    fn records(&self, cluster: &str) -> Api<ClusterUpgrade> {
        Api::namespaced(self.world.client(), cluster)
    }

    fn works(&self, cluster: &str) -> Api<ManifestWork> {
        Api::namespaced(self.world.client(), cluster)
    }

    fn managed(&self) -> Api<ManagedCluster> {
        Api::all(self.world.client())
    }

    async fn clusters(&self, names: &[&str]) {
        stream::iter(names)
            .for_each_concurrent(16, async |name| {
                self.world.namespace_named(name).await;
                create(&self.managed(), objects::cluster(name)).await;
                reach(&self.world, name, "True").await;
            })
            .await;
    }

    /// Has the placement `all` select exactly these clusters.
    async fn select(&self, clusters: &[&str]) {
        select(&self.world, HOME, "all", clusters).await;
    }

    async fn behave(&self, cluster: &str, change: impl FnOnce(&mut Spoke)) {
        self.spokes.behave(cluster, change).await;
    }

    /// Has the platforms of clusters behave like this.
    async fn platforms(&self, clusters: &[&str], platform: Platform) {
        for cluster in clusters {
            self.behave(cluster, |spoke| spoke.platform = platform).await;
        }
    }

    /// Upgrades the clusters of the placement, with what else is said.
    async fn upgrade(&self, strategy: Value, rest: Value) -> ManagedClustersUpgrade {
        self.upgrade_as(UPGRADE, strategy, rest).await
    }

    async fn upgrade_as(&self, name: &str, strategy: Value, rest: Value) -> ManagedClustersUpgrade {
        let mut spec = json!({
            "placement": [{ "namespace": HOME, "name": "all" }],
            "clusterVersion": { "version": TO, "channel": "stable-4.12" },
            "upgradeStrategy": strategy,
        });
        for (field, value) in rest.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        self.make(name, spec).await
    }

    async fn make(&self, name: &str, spec: Value) -> ManagedClustersUpgrade {
        let spec = serde_json::from_value(spec).expect("a valid upgrade");
        create(&self.upgrades(), ManagedClustersUpgrade::new(name, spec)).await
    }

    async fn change(&self, patch: Value) {
        change(&self.upgrades(), UPGRADE, patch).await;
    }

    /// What the server says to a change that it does not take.
    async fn refuses(&self, patch: Value) -> String {
        let refused = self.upgrades().patch(UPGRADE, &PatchParams::default(), &Patch::Merge(patch)).await;
        refused.expect_err("it makes no sense").to_string()
    }

    async fn annotate(&self, name: &str, value: &str) {
        self.change(json!({ "metadata": { "annotations": { (name): value } } })).await;
    }

    /// Waits until a cluster is there: phase/reason.
    async fn is_at(&self, cluster: &str, where_: &str) -> ClusterUpgrade {
        self.is_at_of(UPGRADE, cluster, where_).await
    }

    async fn is_at_of(&self, upgrade: &str, cluster: &str, where_: &str) -> ClusterUpgrade {
        let is_there = |record: &ClusterUpgrade| place(record) == where_;
        let what = format!("{cluster} is at {where_}");
        wait::until(&self.records(cluster), &part_name(HOME, upgrade), &what, is_there).await
    }

    /// Where a cluster is now: phase/reason; nothing if it has no record.
    async fn place(&self, cluster: &str) -> Option<String> {
        let record = self.records(cluster).get_opt(&part_name(HOME, UPGRADE)).await.expect("records can be read");
        record.map(|record| place(&record))
    }

    /// The work of a part, once it is there.
    async fn work(&self, cluster: &str, part: Part) -> ManifestWork {
        let name = part.work_name(cluster, &part_name(HOME, UPGRADE));
        wait::until(&self.works(cluster), &name, "it is there", |work| work.metadata.deletion_timestamp.is_none()).await
    }

    /// The parts of which there are works on a cluster.
    async fn parts(&self, cluster: &str) -> Vec<String> {
        let works = self.works(cluster).list(&ListParams::default()).await.expect("works can be listed");
        let mut names: Vec<_> =
            works.iter().filter_map(|work| work.labels().get("drover.dev/upgrade-part").cloned()).collect();
        names.sort();
        names
    }

    /// Waits until there are works of exactly these parts on a cluster.
    async fn has_parts(&self, cluster: &str, parts: &[&str]) {
        wait::attempt(&format!("{cluster} has {parts:?}"), async || {
            let found = self.parts(cluster).await;
            if found == parts { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    }

    /// Waits until no upgrade has a cluster.
    async fn is_nobodys(&self, cluster: &str) {
        let is_nobodys = |cluster: &ManagedCluster| !cluster.annotations().contains_key(UPGRADED_BY_ANNOTATION);
        wait::until(&self.managed(), cluster, "it is nobody's", is_nobodys).await;
    }

    /// Waits until an upgrade says this of itself as it is now, while time passes: what it says is written once a second.
    async fn has(&self, what: &str, is_so: impl Fn(&Status) -> bool) -> Status {
        self.has_of(UPGRADE, what, is_so).await
    }

    async fn has_of(&self, upgrade: &str, what: &str, is_so: impl Fn(&Status) -> bool) -> Status {
        wait::attempt(what, async || {
            self.clock.advance(Duration::from_secs(1));
            let found = self.upgrades().get(upgrade).await.expect("it is there");
            let status = found.status.unwrap_or_default();
            let is_current = status.observed_generation == found.metadata.generation;
            if is_current && is_so(&status) { Ok(status) } else { Err(format!("{status:#?}")) }
        })
        .await
    }

    /// Waits until a condition of the upgrade is like this: status/reason.
    async fn says(&self, type_: &str, words: &str) -> Status {
        self.has(&format!("{type_} is {words}"), |status| said(status, type_).as_deref() == Some(words)).await
    }

    /// Waits until the upgrade counts its clusters like this: total, initialized, partial, complete, failed, pending.
    async fn counts(&self, counts: [i32; 6]) -> Status {
        self.has(&format!("it counts {counts:?}"), |status| numbers(status) == counts).await
    }

    /// Waits until all clusters are upgraded.
    async fn is_complete(&self) -> Status {
        self.says("Complete", "True/ManagedClustersUpgradeComplete").await
    }

    /// Whose a cluster is.
    async fn owner(&self, cluster: &str) -> Option<String> {
        let cluster = self.managed().get(cluster).await.expect("it is there");
        cluster.annotations().get(UPGRADED_BY_ANNOTATION).cloned()
    }

    /// Waits until the hub has acted on what came after everything else.
    async fn settle(&self) {
        for _ in 0..2 {
            let name = self.world.unique("marker");
            let placement = json!([{ "namespace": HOME, "name": "nobody" }]);
            self.make(&name, json!({ "placement": placement, "clusterVersion": { "version": TO } })).await;
            let is_seen = |status: &Status| said(status, "Selected").as_deref() == Some("False/NoClustersSelected");
            self.has_of(&name, "the hub has seen it", is_seen).await;
        }
    }
}

async fn start(client: Client, clock: &ManualClock) -> Hub {
    crate::running::show_what_hubs_say();
    let options = Options { controllers: "upgrade".parse().expect("a controller"), ..options() };
    Hub::start(client, &options, clock.clock()).await.expect("the hub starts")
}

fn place(record: &ClusterUpgrade) -> String {
    let status = record.status.clone().unwrap_or_default();
    let phase = status.phase.map(|phase| format!("{phase:?}")).unwrap_or_default();
    format!("{phase}/{}", status.reason.unwrap_or_default())
}

fn said(status: &Status, type_: &str) -> Option<String> {
    condition(&status.conditions, type_).map(|(status, reason)| format!("{status}/{reason}"))
}

fn message(status: &Status, type_: &str) -> String {
    let found = status.conditions.iter().find(|condition| condition.type_ == type_);
    found.map(|condition| condition.message.clone()).unwrap_or_default()
}

/// Total, initialized, partial, complete, failed, pending.
fn numbers(status: &Status) -> [i32; 6] {
    let it = status.clusters_summery.clone().unwrap_or_default();
    [it.total, it.initialized, it.partial_upgrade, it.complete, it.failed, it.pending]
}

fn canary(names: &[&str]) -> Value {
    json!({ "clusterSelector": { "matchExpressions": [{ "key": "name", "operator": "In", "values": names }] } })
}

/// An action that makes a map of that name.
fn action(name: &str) -> Value {
    json!({ "manifestWork": { "workload": { "manifests": [objects::config_map(name)] } } })
}

fn operators() -> Value {
    json!({ "include": [{ "name": "gitops", "namespace": "openshift-operators" }] })
}
