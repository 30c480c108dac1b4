//! The hub: what it knows of the fleet, and the controllers that act on it.
//!
//! One watch for each kind keeps the [fleet](fleet) up to date. A change marks the keys that depend on it; each
//! controller decides on its keys with the fleet in view and writes what differs. Of several hubs one leads and writes; the
//! others keep their fleet warm.

mod cluster_set;
mod fleet;
mod placement;

use std::{io, net::SocketAddr};

use drover_runtime::{
    clock::Clock,
    controller::{Controller, Reconciler, Tools},
    fleet::Shared,
    gate::Gate,
    informer::{Freshness, Informer},
    lease::{Elector, Leadership, NoIdentity},
    metrics::Metrics,
    queue::Queue,
    serve::{Server, endpoints},
    store::ObjectKey,
};
use kube::{Client, runtime::watcher};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{
    cluster_set::{ClusterSets, DEFAULT_SET, GLOBAL_SET, SetBindings},
    fleet::{Fleet, Queues},
    placement::Placements,
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
}

/// A hub at work. It ends when it is [stopped](Self::stop).
#[derive(Debug)]
pub struct Hub {
    health: Option<SocketAddr>,
    /// Ends the controllers, before anything else ends.
    controllers: Stage,
    /// Ends everything that the controllers rely on.
    foundation: Stage,
}

/// Tasks that end together.
#[derive(Debug)]
struct Stage {
    end: CancellationToken,
    tasks: JoinSet<()>,
}

impl Stage {
    fn new() -> Self {
        Self { end: CancellationToken::new(), tasks: JoinSet::new() }
    }

    async fn stop(mut self) {
        self.end.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

impl Hub {
    /// Starts a hub on the server that `client` reaches.
    pub async fn start(client: Client, options: &Options, clock: Clock) -> Result<Self, Error> {
        let metrics = Metrics::new();
        let freshness = Freshness::default();
        let queues = Queues::new(&clock);
        let fleet = Shared::new(Fleet::new(queues.clone()));
        let mut foundation = Stage::new();
        let leadership = elect(&client, options, &clock, &metrics, &mut foundation)?;
        watch_everything(&client, &fleet, &freshness, &metrics, &mut foundation);
        let (gate, keep_fresh) = Gate::new(leadership, freshness.clone());
        let end = foundation.end.clone();
        foundation.tasks.spawn(async move {
            end.run_until_cancelled(keep_fresh).await;
        });
        let health = serve(options, &metrics, &freshness, &clock, &mut foundation).await?;

        let tools = Tools { fleet, gate, clock, metrics };
        let mut controllers = Stage::new();
        // Every hub has these two sets, even where nothing has told of them yet.
        for set in [DEFAULT_SET, GLOBAL_SET] {
            queues.sets.mark(ObjectKey::cluster_wide(set));
        }
        run(ClusterSets, queues.sets, &client, &tools, &mut controllers);
        run(SetBindings, queues.bindings, &client, &tools, &mut controllers);
        run(Placements, queues.placements, &client, &tools, &mut controllers);
        Ok(Self { health, controllers, foundation })
    }

    /// Where health and metrics are served.
    #[must_use]
    pub fn health(&self) -> Option<SocketAddr> {
        self.health
    }

    /// Ends the hub: what is being written is finished, and then the lease is released.
    pub async fn stop(self) {
        info!("finishing what is being written");
        self.controllers.stop().await;
        self.foundation.stop().await;
    }
}

/// Takes part in the election, if there is one.
fn elect(
    client: &Client,
    options: &Options,
    clock: &Clock,
    metrics: &Metrics,
    stage: &mut Stage,
) -> Result<watch::Receiver<Leadership>, Error> {
    let Some(identity) = &options.identity else {
        let (alone, leadership) = watch::channel(Leadership::Alone);
        let end = stage.end.clone();
        stage.tasks.spawn(async move {
            end.cancelled().await;
            drop(alone);
        });
        return Ok(leadership);
    };
    let (elector, leadership) = Elector::new(client.clone(), &options.namespace, LEASE, identity, clock.clone())?;
    stage.tasks.spawn(elector.run(stage.end.clone()));
    stage.tasks.spawn(count_leadership(leadership.clone(), metrics.clone()));
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
fn watch_everything(
    client: &Client,
    fleet: &Shared<Fleet>,
    freshness: &Freshness,
    metrics: &Metrics,
    stage: &mut Stage,
) {
    macro_rules! watch {
        ($($kind:ident),+) => { $({
            let informer = Informer::<drover_api::cluster::$kind>::new(client.clone(), watcher::Config::default(), freshness, metrics);
            let (end, fleet) = (stage.end.clone(), fleet.clone());
            stage.tasks.spawn(async move {
                end.run_until_cancelled(informer.run(fleet)).await;
            });
        })+ };
    }
    watch!(
        ManagedCluster,
        ManagedClusterSet,
        ManagedClusterSetBinding,
        Placement,
        PlacementDecision,
        AddOnPlacementScore
    );
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
    let (end, clock) = (stage.end.clone(), clock.clone());
    stage.tasks.spawn(async move { drop(server.run(router, &clock, end).await) });
    Ok(Some(bound))
}

fn run<R: Reconciler<Fleet>>(
    reconciler: R,
    queue: std::sync::Arc<Queue<R::Key>>,
    client: &Client,
    tools: &Tools<Fleet>,
    stage: &mut Stage,
) {
    let controller = Controller::new(reconciler, queue, client.clone(), tools.clone());
    stage.tasks.spawn(controller.run(stage.end.clone()));
}
