//! Add-ons on a real Kubernetes, and what their scenarios share.

mod install;

use drover_api::{
    addon::{ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::{ManagedCluster, Placement},
};
use drover_hub::{Hub, Options};
use drover_runtime::clock::Clock;
use drover_testkit::{World, objects, wait};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::running::{bound_namespace, create, make_cluster, options};

/// The add-ons that are offered.
fn offers(world: &World) -> Api<ClusterManagementAddOn> {
    Api::all(world.client())
}

/// The add-ons on a cluster.
fn addons(world: &World, cluster: &str) -> Api<ManagedClusterAddOn> {
    Api::namespaced(world.client(), cluster)
}

fn clusters(world: &World) -> Api<ManagedCluster> {
    Api::all(world.client())
}

/// Offers an add-on that is installed as this strategy says.
async fn offer(world: &World, name: &str, strategy: Value) -> ClusterManagementAddOn {
    let mut addon = objects::addon(name);
    addon.spec.install_strategy = serde_json::from_value(strategy).expect("a strategy");
    create(&offers(world), addon).await
}

/// The strategy that installs an add-on on the clusters of these placements.
fn by_placements<const N: usize>(namespace: &str, placements: [&str; N]) -> Value {
    let placements = placements.map(|name| json!({ "namespace": namespace, "name": name })).to_vec();
    json!({ "type": "Placements", "placements": placements })
}

/// Waits until an add-on is on a cluster.
async fn until_on(world: &World, cluster: &str, addon: &str) -> ManagedClusterAddOn {
    wait::until(&addons(world, cluster), addon, &format!("it is on {cluster}"), |_| true).await
}

/// Waits until an add-on is not on a cluster.
async fn until_off(world: &World, cluster: &str, addon: &str) {
    wait::gone(&addons(world, cluster), addon).await;
}

/// The uid of an add-on on a cluster, if it is there.
async fn uid(world: &World, cluster: &str, addon: &str) -> Option<String> {
    addons(world, cluster).get_opt(addon).await.expect("add-ons can be read")?.uid()
}

/// Waits until the hub has seen everything that was done before: it installs another add-on, on a cluster that is there.
async fn until_noticed(world: &World, cluster: &str) {
    let marker = world.unique("marker");
    let every = json!({ "type": "ClusterLabelSelector", "labelSelector": {} });
    offer(world, &marker, every).await;
    until_on(world, cluster, &marker).await;
}

/// A cluster that is accepted and available, with a namespace, for a hub that does not care for clusters.
async fn make_kept(world: &World, cluster: &str) {
    make_cluster(world, cluster, "default").await;
    world.namespace_named(cluster).await;
}

/// A hub that runs these controllers.
async fn start_some(client: Client, controllers: &str, clock: Clock) -> Hub {
    let options = Options { controllers: controllers.parse().expect("a valid list"), ..options() };
    Hub::start(client, &options, clock).await.expect("the hub starts")
}

/// A namespace with placements, each of the clusters with a label of its name.
async fn placing<const N: usize>(world: &World, names: [&str; N]) -> String {
    let namespace = bound_namespace(world, "default").await;
    let placements = Api::<Placement>::namespaced(world.client(), &namespace);
    for name in names {
        let labels = json!({ "matchLabels": { name: "true" } });
        let spec = json!({ "predicates": [{ "requiredClusterSelector": { "labelSelector": labels } }] });
        create(&placements, Placement::new(name, serde_json::from_value(spec).expect("a placement"))).await;
    }
    namespace
}
