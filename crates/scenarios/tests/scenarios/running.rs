//! What scenarios with a hub share: the hub, under the role that `deploy/` ships, and the objects that it acts on.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Duration,
};

use drover_api::{
    cluster::{ManagedCluster, ManagedClusterSetBinding, ManagedClusterSetBindingSpec, Placement, PlacementDecision},
    names::{CLUSTER_AVAILABLE, CLUSTER_SET_LABEL, PLACEMENT_LABEL},
};
use drover_hub::{Approver, Controllers, Dialect, EPOCH, Hub, Options};
use drover_runtime::clock::{Clock, ManualClock, after};
use drover_testkit::{
    World,
    objects::{self, Described as _},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
    discovery::{Scope, pinned_kind},
};
use serde_json::{Value, json};
use tracing_subscriber::EnvFilter;

use crate::documents::{read, repository};

pub(crate) const NAMESPACE: &str = "open-cluster-management-hub";

/// The hub's own client, with the permissions that `deploy/` gives it, where its policies are in force.
pub(crate) async fn as_hub(world: &World) -> Client {
    for part in ["deploy/hub", "deploy/policies"] {
        deploy(&world.client(), part).await;
    }
    world.service_account(NAMESPACE, "drover-hub").await
}

/// Applies what a folder has, as `kubectl apply --server-side` does, which takes longer than many a scenario.
async fn deploy(client: &Client, folder: &str) {
    let mut files: Vec<_> = fs::read_dir(repository().join(folder))
        .expect("the folder is there")
        .map(|file| file.expect("a file").path())
        .collect();
    files.sort();
    apply(client, files.iter().flat_map(|file| read(file))).await;
}

/// Applies objects in that order.
pub(crate) async fn apply(client: &Client, objects: impl IntoIterator<Item = DynamicObject>) {
    let mut kinds = BTreeMap::new();
    for object in objects {
        let types = object.types.clone().expect("it says what it is");
        let kind = GroupVersionKind::try_from(&types).expect("a valid kind");
        let known = (types.api_version, types.kind);
        if !kinds.contains_key(&known) {
            kinds.insert(known.clone(), pinned_kind(client, &kind).await.expect("the kind is served"));
        }
        let (resource, capabilities) = &kinds[&known];
        let api: Api<DynamicObject> = match object.metadata.namespace.as_deref() {
            Some(namespace) if capabilities.scope == Scope::Namespaced => {
                Api::namespaced_with(client.clone(), namespace, resource)
            }
            _ => Api::all_with(client.clone(), resource),
        };
        let applied = api.patch(&object.name_any(), &PatchParams::apply("kubectl"), &Patch::Apply(&object)).await;
        applied.unwrap_or_else(|error| panic!("{}: {error}", object.name_any()));
    }
}

pub(crate) async fn start(client: Client, identity: Option<&str>) -> Hub {
    start_at(client, identity, Clock::system()).await
}

pub(crate) async fn start_at(client: Client, identity: Option<&str>, clock: Clock) -> Hub {
    show_what_hubs_say();
    let options = Options { identity: identity.map(str::to_owned), ..options() };
    Hub::start(client, &options, clock).await.expect("the hub starts")
}

/// Has what a hub says show with the scenario that failed.
pub(crate) fn show_what_hubs_say() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,kube=warn"));
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_test_writer().try_init();
}

/// A clock for a hub, to be moved by hand. It is ahead of the server's, so that no cluster is made in its future.
pub(crate) fn hub_clock() -> ManualClock {
    ManualClock::at(after(Timestamp::now(), Duration::from_mins(1)))
}

/// How a hub is run that is alone.
pub(crate) fn options() -> Options {
    Options {
        namespace: NAMESPACE.to_owned(),
        identity: None,
        health_listen: None,
        debug_listen: None,
        client_ca: None,
        adopt_existing: false,
        dialect: Dialect::Drover,
        epoch: EPOCH,
        approver: Some(Approver::Drover { image: "registry.example.com/drover:scenario".to_owned() }),
        controllers: Controllers::default(),
        bootstrap_groups: BTreeSet::from(["system:bootstrappers:managedcluster".to_owned()]),
    }
}

/// A cluster that is accepted and available.
pub(crate) async fn make_cluster(world: &World, name: &str, set: &str) {
    let clusters = Api::<ManagedCluster>::all(world.client());
    create(&clusters, objects::cluster(name).labelled(CLUSTER_SET_LABEL, set)).await;
    reach(world, name, "True").await;
}

/// Has a cluster be available, or not.
pub(crate) async fn reach(world: &World, cluster: &str, available: &str) {
    let condition = json!({
        "type": CLUSTER_AVAILABLE, "status": available, "reason": "Scenario", "message": "as the scenario says",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = Patch::Merge(json!({ "status": { "conditions": [condition] } }));
    let clusters = Api::<ManagedCluster>::all(world.client());
    clusters.patch_status(cluster, &PatchParams::default(), &status).await.expect("a cluster has a status");
}

pub(crate) async fn create<K>(api: &Api<K>, object: K) -> K
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    api.create(&PostParams::default(), &object).await.expect("an object can be made")
}

pub(crate) async fn change<K>(api: &Api<K>, name: &str, patch: Value) -> K
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("an object can be changed")
}

/// Has a placement select exactly these clusters, where no hub decides on placements.
pub(crate) async fn select(world: &World, namespace: &str, placement: &str, clusters: &[&str]) {
    let slice = format!("{placement}-decision-1");
    has_placement(world, namespace, placement).await;
    decide(world, (namespace, &slice), placement, &[], clusters).await;
    count(world, namespace, placement, json!({ "numberOfSelectedClusters": clusters.len(), "conditions": [] })).await;
}

/// Has a placement be there.
pub(crate) async fn has_placement(world: &World, namespace: &str, placement: &str) {
    let placements = Api::<Placement>::namespaced(world.client(), namespace);
    if placements.get_opt(placement).await.expect("placements can be read").is_none() {
        let object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": { "name": placement }, "spec": {},
        });
        create(&placements, serde_json::from_value(object).expect("a valid placement")).await;
    }
}

/// Has a placement say this of its decision.
pub(crate) async fn count(world: &World, namespace: &str, placement: &str, status: Value) {
    let placements = Api::<Placement>::namespaced(world.client(), namespace);
    let status = Patch::Merge(json!({ "status": status }));
    placements.patch_status(placement, &PatchParams::default(), &status).await.expect("a placement has a status");
}

/// Has one slice of a placement's decisions, by its namespace and name, name exactly these clusters.
pub(crate) async fn decide(
    world: &World,
    (namespace, slice): (&str, &str),
    placement: &str,
    labels: &[(&str, &str)],
    clusters: &[&str],
) {
    let slices = Api::<PlacementDecision>::namespaced(world.client(), namespace);
    if slices.get_opt(slice).await.expect("decisions can be read").is_none() {
        let labels: BTreeMap<_, _> = labels.iter().copied().chain([(PLACEMENT_LABEL, placement)]).collect();
        let object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
            "metadata": { "name": slice, "labels": labels },
        });
        create(&slices, serde_json::from_value(object).expect("a valid decision")).await;
    }
    let decisions: Vec<_> = clusters.iter().map(|name| json!({ "clusterName": name, "reason": "" })).collect();
    let status = Patch::Merge(json!({ "status": { "decisions": decisions } }));
    slices.patch_status(slice, &PatchParams::default(), &status).await.expect("a decision has a status");
}

/// A namespace that is bound to a set.
pub(crate) async fn bound_namespace(world: &World, set: &str) -> String {
    let namespace = world.namespace("bound").await;
    let spec = ManagedClusterSetBindingSpec { cluster_set: set.to_owned() };
    let binding = ManagedClusterSetBinding::new(set, spec);
    create(&Api::namespaced(world.client(), &namespace), binding).await;
    namespace
}

pub(crate) fn condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<(&'a str, &'a str)> {
    let found = conditions.iter().find(|condition| condition.type_ == type_)?;
    Some((found.status.as_str(), found.reason.as_str()))
}

pub(crate) fn satisfied(placement: &Placement) -> Option<(&str, &str)> {
    condition(&placement.status.as_ref()?.conditions, "PlacementSatisfied")
}

pub(crate) fn selected(placement: &Placement) -> Option<i32> {
    placement.status.as_ref().map(|status| status.number_of_selected_clusters)
}
