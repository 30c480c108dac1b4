//! The hub: what it knows of the fleet, and the controllers that act on it.
//!
//! One watch for each kind keeps the [cache](cache) up to date. A change marks the keys that depend on it; each
//! controller decides on its keys with the cache in view and writes what differs. Of several hubs one leads and writes; the
//! others keep their cache warm.

mod manifest_work;

mod addon;
mod adopt;
mod cache;
mod cached_kinds;
mod cluster;
mod cluster_set;
mod config;
mod controllers;
mod debug;
mod defect;
mod fleet_facts;
mod placement;
mod signer;
mod upgrade;
mod work;

use std::{collections::BTreeSet, fmt::Debug, io, net::SocketAddr};

use drover_api::{
    addon::{AddOnHubConfig, ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::{
        AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, ManagedClustersUpgrade,
        Placement, PlacementDecision,
    },
    drover::{AddOnRollout, ClusterUpgrade, ConfigRevision},
    work::ManifestWorkReplicaSet,
};
use drover_engine::cluster_set::{DEFAULT_SET, GLOBAL_SET};
use drover_runtime::{
    cache::{SharedCache, Tracks},
    clock::Clock,
    controller::Tools,
    gate::Gate,
    informer::{Freshness, Informer},
    lease::{Elector, Leadership, NoIdentity},
    metrics::Metrics,
    serve::{Server, endpoints},
    stage::Stage,
    store::ObjectKey,
};
use k8s_openapi::{
    api::{
        certificates::v1::CertificateSigningRequest,
        coordination::v1::Lease,
        core::v1::{Namespace, ServiceAccount},
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    serde::de::DeserializeOwned,
};
use kube::{Client, Resource, api::PartialObjectMeta, runtime::watcher};
use tokio::sync::watch;
use tracing::info;

use crate::{
    addon::{AddOnRequests, AddOns, HubConfigs, Installs, Permissions, Rollouts, TokenInfrastructure, for_tokens},
    cache::{Cache, Queues},
    cluster::{
        Clusters, SigningRequests, is_binding_for_addons, is_binding_for_agents, is_for_agents, leases, requests,
        trim_request,
    },
    cluster_set::{ClusterSets, SetBindings},
    config::{Configs, Revisions, Watching},
    debug::Debugger,
    defect::DefectReports,
    manifest_work::CachedWork,
    placement::Placements,
    upgrade::ClusterUpgrades,
    work::{Completions, ReplicaSets},
};
pub use drover_engine::{revision::EPOCH, upgrade::operator_work::Approver};

pub use crate::{
    addon::{Dialect, detect_dialect},
    controllers::{Area, Controllers, NotControllers},
};

/// The name of the Lease by which hubs agree on who leads.
const LEASE: &str = "drover-hub";

/// How a hub is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The namespace of the hub's own objects, its Lease among them.
    pub namespace: String,
    /// Who this hub is in the election of a leader; without it there is no election, and it has to be the only one.
    pub identity: Option<String>,
    /// Where health and metrics are served; without it they are not.
    pub health_listen: Option<SocketAddr>,
    /// Which controllers it runs.
    pub controllers: Controllers,
    /// The groups whose members may bring clusters in: the requests of accepted clusters for their first certificate are
    /// approved if one of these made them.
    pub bootstrap_groups: BTreeSet<String>,
    /// The Secret with the CA for clients of the API server, where Kubernetes has no signer for them: the hub signs the certificates of agents
    /// itself. Without it, it leaves that to Kubernetes.
    pub client_ca: Option<ObjectKey>,
    /// Where it is told why placements select what they select; without it, it is not. It is plain HTTP, and whoever asks sends a
    /// token: this is for a loopback address.
    pub debug_listen: Option<SocketAddr>,
    /// Whether it takes over the add-ons that somebody else has made where they should be: it removes them when they are
    /// no longer wanted there.
    pub adopt_existing: bool,
    /// In whose words it reports on add-ons.
    pub dialect: Dialect,
    /// What upgrades operators on clusters; without it they can not be.
    pub approver: Option<Approver>,
    /// The epoch of the renderer: [`EPOCH`], unless somebody tries what a later Drover would do to what this one has rendered.
    pub epoch: i64,
}

/// Why a hub could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has no name for the election.
    #[error(transparent)]
    NoIdentity(#[from] NoIdentity),
    /// Health and metrics can not be served.
    #[error(
        "could not listen on {address} for health and metrics: {source}; choose another address with --health-listen"
    )]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// Nobody can be told about placements.
    #[error(
        "could not listen on {address} for questions about placements: {source}; choose another address with --debug-listen"
    )]
    ListenDebug {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}

/// A hub at work. It ends when it is [stopped](Self::stop).
#[derive(Debug)]
pub struct Hub {
    health: Option<SocketAddr>,
    debug: Option<SocketAddr>,
    /// Ends the controllers, before anything else ends.
    controllers: Stage,
    /// Ends everything that the controllers rely on.
    foundation: Stage,
}

impl Hub {
    /// Starts a hub on the server that `client` reaches.
    pub async fn start(client: Client, options: &Options, clock: Clock) -> Result<Self, Error> {
        let metrics = Metrics::new();
        let freshness = Freshness::default();
        let cache = empty_cache(options, &freshness, &metrics, &clock);
        let mut foundation = Stage::default();
        let leadership = elect(&client, options, &clock, &metrics, &mut foundation)?;
        Watches { client: &client, cache: &cache, freshness: &freshness, metrics: &metrics, stage: &mut foundation }
            .start(options, &clock);
        let (gate, keep_fresh) = Gate::new(leadership, freshness.clone());
        foundation.spawn(keep_fresh);
        let health = serve(options, &metrics, &freshness, &clock, &mut foundation).await?;

        let debugger = Debugger { client: client.clone(), cache: cache.clone(), freshness, clock: clock.clone() };
        let debug = serve_debugger(options, debugger, &mut foundation).await?;

        let tools = Tools { identity: options.identity.clone(), ..Tools::new(cache, gate, clock, metrics) };
        let mut controllers = Stage::default();
        run_controllers(options, &client, &tools, &mut controllers);
        Ok(Self { health, debug, controllers, foundation })
    }

    /// Where health and metrics are served.
    #[must_use]
    pub fn health(&self) -> Option<SocketAddr> {
        self.health
    }

    /// Where it is told why placements select what they select.
    #[must_use]
    pub fn debug(&self) -> Option<SocketAddr> {
        self.debug
    }

    /// Ends the hub: what is being written is finished, and then the lease is released.
    pub async fn stop(self) {
        info!("finishing what is being written");
        self.controllers.stop().await;
        self.foundation.stop().await;
    }
}

/// A fleet of which nothing is known yet.
fn empty_cache(options: &Options, freshness: &Freshness, metrics: &Metrics, clock: &Clock) -> SharedCache<Cache> {
    let mut cache = Cache::new(clock.clone());
    cache.dialect = options.dialect;
    cache.epoch = options.epoch;
    cache.upgrades.approver.clone_from(&options.approver);
    cache.keeps_clusters = options.controllers.runs(Area::Cluster);
    cache.addons.render_cache.metrics = metrics.clone();
    cache.configs = Configs::new(&options.namespace, freshness);
    SharedCache::new(cache, Queues::new(clock))
}

/// Takes part in the election, if there is one.
fn elect(
    client: &Client,
    options: &Options,
    clock: &Clock,
    metrics: &Metrics,
    stage: &mut Stage,
) -> Result<watch::Receiver<Leadership>, Error> {
    let Some(identity) = &options.identity else { return Ok(stage.alone()) };
    let (elector, leadership) = Elector::new(client.clone(), &options.namespace, LEASE, identity, clock.clone())?;
    stage.spawn_until_told(|end| elector.run(end));
    // It ends with the election.
    let counted = count_leadership(leadership.clone(), metrics.clone());
    stage.spawn_until_told(|_| counted);
    Ok(leadership)
}

/// Keeps count of whether this hub leads, until the election is over.
async fn count_leadership(mut leadership: watch::Receiver<Leadership>, metrics: Metrics) {
    loop {
        metrics.leading(*leadership.borrow_and_update() != Leadership::Standby);
        if leadership.changed().await.is_err() {
            return;
        }
    }
}

/// Starts one watch for each kind.
struct Watches<'a> {
    client: &'a Client,
    cache: &'a SharedCache<Cache>,
    freshness: &'a Freshness,
    metrics: &'a Metrics,
    stage: &'a mut Stage,
}

impl Watches<'_> {
    fn start(mut self, options: &Options, clock: &Clock) {
        let controllers = &options.controllers;
        self.all::<ManagedCluster>();
        self.all::<ManagedClusterSet>();
        self.all::<ManagedClusterSetBinding>();
        self.all::<Placement>();
        self.all::<PlacementDecision>();
        self.all::<AddOnPlacementScore>();
        if [Area::Cluster, Area::AddOn, Area::Work, Area::Upgrade].into_iter().any(|area| controllers.runs(area)) {
            self.all::<Namespace>();
            self.all::<CachedWork>();
        }
        if controllers.runs(Area::Cluster) || controllers.runs(Area::AddOn) {
            self.all::<ManagedClusterAddOn>();
            self.run::<CertificateSigningRequest>(self.informer(requests()).trimmed(trim_request));
        }
        if controllers.runs(Area::Cluster) {
            self.belongings();
        }
        if controllers.runs(Area::AddOn) {
            self.all::<ClusterManagementAddOn>();
            self.configs(&options.namespace, clock);
            if options.dialect == Dialect::Drover {
                self.all::<AddOnHubConfig>();
            }
            self.some::<ServiceAccount>(for_tokens());
            self.some::<Role>(for_tokens());
        }
        if controllers.runs(Area::Work) {
            self.all::<ManifestWorkReplicaSet>();
        }
        if controllers.runs(Area::Upgrade) {
            self.all::<ManagedClustersUpgrade>();
            self.all::<ClusterUpgrade>();
        }
        self.role_bindings(controllers);
    }

    /// Bindings of agents. Those of clusters are found by their names.
    fn role_bindings(&mut self, controllers: &Controllers) {
        if controllers.runs(Area::Cluster) {
            self.run::<RoleBinding>(self.informer(watcher::Config::default()).only(is_binding_for_agents));
        } else if controllers.runs(Area::AddOn) {
            self.run::<RoleBinding>(self.informer(watcher::Config::default()).only(is_binding_for_addons));
        }
    }

    /// What belongs to clusters.
    fn belongings(&mut self) {
        self.run::<ClusterRole>(self.informer(watcher::Config::default()).only(is_for_agents));
        self.run::<ClusterRoleBinding>(self.informer(watcher::Config::default()).only(is_for_agents));
        self.some::<Lease>(leases());
    }

    /// What add-ons are configured with, of whatever type.
    fn configs(&mut self, namespace: &str, clock: &Clock) {
        self.all::<AddOnRollout>();
        self.run::<ConfigRevision>(self.informer(watcher::Config::default()).within(namespace));
        self.all::<PartialObjectMeta<CustomResourceDefinition>>();
        self.cache.update(|cache, queues| cache.configs.watch_own_types(queues));
        let watching = Watching {
            client: self.client.clone(),
            cache: self.cache.clone(),
            metrics: self.metrics.clone(),
            clock: clock.clone(),
        };
        self.stage.spawn(watching.run());
    }

    fn all<K: Watched>(&mut self)
    where
        Cache: Tracks<K>,
    {
        self.some::<K>(watcher::Config::default());
    }

    fn some<K: Watched>(&mut self, which: watcher::Config)
    where
        Cache: Tracks<K>,
    {
        self.run::<K>(self.informer(which));
    }

    fn informer<K: Watched>(&self, which: watcher::Config) -> Informer<K> {
        Informer::new(self.client.clone(), which, self.freshness, self.metrics)
    }

    fn run<K: Watched>(&mut self, informer: Informer<K>)
    where
        Cache: Tracks<K>,
    {
        self.stage.spawn(informer.run(self.cache.clone()));
    }
}

/// A kind that can be watched.
trait Watched: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static {}

impl<K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static> Watched for K {}

/// Starts the controllers that the hub is to run.
fn run_controllers(options: &Options, client: &Client, tools: &Tools<Cache>, stage: &mut Stage) {
    let queues = tools.cache.queues();
    stage.control(DefectReports, &queues.defects, client, tools);
    if options.controllers.runs(Area::Cluster) {
        stage.control(Clusters, &queues.clusters, client, tools);
        let requests = SigningRequests::new(options.bootstrap_groups.clone(), options.client_ca.clone());
        stage.control(requests, &queues.requests, client, tools);
    } else {
        queues.clusters.close();
        queues.requests.close();
    }
    if options.controllers.runs(Area::ClusterSet) {
        // Every hub has these two sets, even where nothing has told of them yet.
        for set in [DEFAULT_SET, GLOBAL_SET] {
            queues.sets.mark(ObjectKey::cluster_wide(set));
        }
        stage.control(ClusterSets, &queues.sets, client, tools);
        stage.control(SetBindings, &queues.bindings, client, tools);
    } else {
        queues.sets.close();
        queues.bindings.close();
    }
    if options.controllers.runs(Area::Placement) {
        stage.control(Placements { metrics: tools.metrics.clone() }, &queues.placements, client, tools);
    } else {
        queues.placements.close();
    }
    if options.controllers.runs(Area::AddOn) {
        let installs = Installs::new(options.adopt_existing, tools.metrics.clone());
        stage.control(installs, &queues.installs, client, tools);
        stage.control(AddOns, &queues.addons, client, tools);
        stage.control(Rollouts, &queues.rollouts, client, tools);
        stage.control(TokenInfrastructure, &queues.tokens, client, tools);
        stage.control(Permissions, &queues.permissions, client, tools);
        let requests = AddOnRequests::new(options.namespace.clone(), options.client_ca.clone());
        stage.control(requests, &queues.addon_requests, client, tools);
        stage.control(Revisions, &queues.revisions, client, tools);
    } else {
        let Queues { installs, addons, tokens, permissions, addon_requests, revisions, .. } = queues;
        for queue in [installs, addons, tokens, permissions, addon_requests, revisions] {
            queue.close();
        }
        queues.rollouts.close();
    }
    if options.controllers.runs(Area::Work) {
        stage.control(ReplicaSets::new(tools.metrics.clone()), &queues.work_sets, client, tools);
        stage.control(Completions, &queues.completions, client, tools);
    } else {
        queues.work_sets.close();
        queues.completions.close();
    }
    if options.controllers.runs(Area::Upgrade) {
        stage.control(ClusterUpgrades::new(tools.metrics.clone()), &queues.upgrades, client, tools);
    } else {
        queues.upgrades.close();
    }
    // Versions are not OCM's.
    if options.controllers.runs(Area::AddOn) && options.dialect == Dialect::Drover {
        stage.control(HubConfigs, &queues.hub_configs, client, tools);
    } else {
        queues.hub_configs.close();
    }
}

async fn serve(
    options: &Options,
    metrics: &Metrics,
    freshness: &Freshness,
    clock: &Clock,
    stage: &mut Stage,
) -> Result<Option<SocketAddr>, Error> {
    let Some(address) = options.health_listen else { return Ok(None) };
    let server = Server::bind(address).await.map_err(|source| Error::Listen { address, source })?;
    let bound = server.address();
    let freshness = freshness.clone();
    let router = endpoints(metrics.clone(), move || freshness.missing());
    let clock = clock.clone();
    stage.spawn_until_told(|end| async move { drop(server.run(router, &clock, end).await) });
    Ok(Some(bound))
}

async fn serve_debugger(options: &Options, debugger: Debugger, stage: &mut Stage) -> Result<Option<SocketAddr>, Error> {
    let Some(address) = options.debug_listen else { return Ok(None) };
    let server = Server::bind(address).await.map_err(|source| Error::ListenDebug { address, source })?;
    let bound = server.address();
    let clock = debugger.clock.clone();
    stage.spawn_until_told(|end| async move { drop(server.run(debugger.endpoints(), &clock, end).await) });
    Ok(Some(bound))
}
