//! The managed cluster's side: an agent that joins a hub, applies its works, and reports.
//!
//! An agent talks to two servers. To the hub it is known by a certificate, for which it [asks](join) and which it renews; from it come works, and to it goes what became of
//! them. On the managed cluster it makes what works say, and keeps it so; and it gets the agents of [add-ons](addon) what they are known by. What fails on one side leaves
//! the other alone: a hub that does not answer removes nothing.

mod addon;
mod cluster;
mod heartbeat;
mod install;
mod join;
mod line;
mod work;

use std::{collections::BTreeMap, fmt::Debug, sync::Arc, time::Duration};

use drover_api::{
    addon::{KubeClientDriver, ManagedClusterAddOn},
    cluster::{ClusterClaim, ManagedCluster},
    work::{AppliedManifestWork, ManifestWork},
};
use drover_engine::{
    registration::enrolment::{Home, Imprint, Keeper, kept_by},
    work::{RawJson, hub_hash},
};
use drover_runtime::{
    backoff::Backoff,
    cache::{SharedCache, Tracks},
    clock::Clock,
    controller::Tools,
    gate::Gate,
    informer::{Freshness, Informer},
    kinds::Caches,
    metrics::Metrics,
    pace::Pace,
    queue::Queue,
    stage::Stage,
};
use k8s_openapi::{api::core::v1::Node, serde::de::DeserializeOwned};
use kube::{Client, Resource, runtime::watcher};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

pub use self::join::Identity;
use self::{
    addon::{Attending, Roster, Terms, Trade},
    cluster::{Checkup, Domain, Reports},
    heartbeat::Heartbeat,
    join::{Credentials, Joining, Rotation, connect},
    line::Line,
    work::{Applying, Clearing, Queues, Reporting, Settings, Site, Watching},
};

/// How long a work may be missing on the hub before what it has left on the cluster is removed.
pub const EVICTION_GRACE: Duration = Duration::from_hours(1);

/// How many works are listed at once. Works are large until they are [kept](work), and what they took then is not given back.
const WORKS_AT_ONCE: u32 = 20;

/// How an agent is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who it is.
    pub identity: Identity,
    /// By which it tells what it has applied from what other agents on the same cluster have; the hash of the hub's address if it is not set.
    pub agent_id: Option<String>,
    /// How long a work may be missing on the hub before what it has left on the cluster is removed.
    pub eviction_grace: Duration,
    /// How long values may be that are reported as JSON because they have no type of their own; without it they are refused.
    pub raw_json: Option<usize>,
    /// How the agents of add-ons prove themselves to the hub's API server.
    pub addon_proof: AddOnProof,
}

/// How the agents of add-ons prove themselves to the hub's API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddOnProof {
    /// By certificates.
    Certificates,
    /// By tokens of service accounts.
    Tokens {
        /// For how many seconds they are asked for.
        seconds: i64,
    },
}

impl AddOnProof {
    fn driver(self) -> KubeClientDriver {
        match self {
            Self::Certificates => KubeClientDriver::Csr,
            Self::Tokens { .. } => KubeClientDriver::Token,
        }
    }

    fn seconds(self) -> Option<i64> {
        match self {
            Self::Certificates => None,
            Self::Tokens { seconds } => Some(seconds),
        }
    }
}

/// An agent at work. It ends when it is [stopped](Self::stop).
#[derive(Debug)]
pub struct Agent {
    end: CancellationToken,
    task: JoinHandle<()>,
}

/// The servers that an agent talks to besides its hub.
#[derive(Clone)]
pub struct Clusters {
    /// The cluster that it manages.
    pub managed: Client,
    /// The cluster where its own objects are, its credentials among them, if the agent does not run on the managed one.
    pub management: Option<Client>,
}

impl Clusters {
    /// Where the agent's own objects are.
    fn own(&self) -> &Client {
        self.management.as_ref().unwrap_or(&self.managed)
    }

    fn at(&self, home: Home) -> &Client {
        match home {
            Home::Managed => &self.managed,
            Home::Management => self.own(),
        }
    }

    /// The places that are different clusters.
    fn homes(&self) -> impl Iterator<Item = Home> {
        let management = self.management.as_ref().map(|_| Home::Management);
        [Home::Managed].into_iter().chain(management)
    }
}

impl Agent {
    /// Starts an agent.
    #[must_use]
    pub fn start(clusters: Clusters, options: Options, clock: Clock, metrics: Metrics) -> Self {
        let end = CancellationToken::new();
        let joining = Joining::new(options.identity.clone(), clusters.own().clone(), clock.clone());
        let life = Life { clusters, options, joining, clock, metrics };
        let ended = end.clone();
        let task = tokio::spawn(Box::pin(life.run(ended)));
        Self { end, task }
    }

    /// Ends the agent: what is being written is finished.
    pub async fn stop(self) {
        self.end.cancel();
        if self.task.await.is_err() {
            warn!("this is a bug: the agent panicked");
        }
    }
}

/// All that an agent does, as long as it runs.
struct Life {
    clusters: Clusters,
    options: Options,
    joining: Joining,
    clock: Clock,
    metrics: Metrics,
}

impl Life {
    /// By what the agent tells what is its own at that hub from what is other agents'.
    fn agent_id(&self, credentials: &Credentials) -> String {
        self.options.agent_id.clone().unwrap_or_else(|| hub_hash(&credentials.hub.server))
    }

    /// What the agent writes into the Secrets of add-ons that are for that hub, on each of the clusters.
    fn imprints(&self, credentials: &Credentials) -> BTreeMap<Home, Imprint> {
        let Identity { cluster, namespace, secret, .. } = &self.options.identity;
        let imprint = |home| Imprint {
            cluster: cluster.to_string(),
            kept_by: kept_by(cluster, namespace, secret, home),
            hub: credentials.hub.clone(),
        };
        self.clusters.homes().map(|home| (home, imprint(home))).collect()
    }

    /// Makes what the agent needs on its cluster, which may not answer at the moment.
    async fn install(&self) {
        let mut delays = Backoff::new(Duration::from_secs(1), Duration::from_mins(1)).delays();
        while let Err(error) = install::install(&self.clusters.managed).await {
            warn!(cluster = %self.options.identity.cluster, %error, "could not install what the agent needs, and will try again");
            self.clock.sleep(delays.next().unwrap_or_default()).await;
        }
    }

    /// Joins, and does what the hub says until the hub does not know the agent any more; then joins anew.
    async fn run(self, end: CancellationToken) {
        Box::pin(end.run_until_cancelled(self.install())).await;
        while let Some(credentials) = end.run_until_cancelled(self.joining.join()).await {
            let line = match connect(&credentials).await {
                Ok(client) => Line::new(client),
                Err(error) => {
                    warn!(%error, "the credentials can not be used, and others are asked for");
                    self.joining.refuse(&credentials);
                    end.run_until_cancelled(self.clock.sleep(Duration::from_secs(10))).await;
                    continue;
                }
            };
            info!(cluster = %self.options.identity.cluster, hub = credentials.hub.server, "joined");
            let session = Session::start(&self, &line.client(), &credentials);
            let left = end.run_until_cancelled(self.joining.stay(&line, credentials, &session.rotation)).await;
            session.stop().await;
            match left {
                None => return,
                Some(reason) => {
                    warn!(cluster = %self.options.identity.cluster, %reason, "left the hub, and joining anew");
                }
            }
        }
    }
}

/// What an agent does while it is known to a hub.
struct Session {
    rotation: watch::Sender<Rotation>,
    controllers: Stage,
    foundation: Stage,
}

impl Session {
    fn start(life: &Life, hub: &Client, credentials: &Credentials) -> Self {
        let mut session =
            Self { rotation: watch::Sender::default(), controllers: Stage::default(), foundation: Stage::default() };
        let domain = session.report_cluster(life, hub);
        session.attend_works(life, hub, credentials);
        let roster = session.attend_addons(life, hub, credentials);
        let heard = domain.read().heard();
        session.foundation.spawn(tell_hearing(heard, roster));
        session
    }

    /// Keeps the hub up to date on the cluster.
    fn report_cluster(&mut self, life: &Life, hub: &Client) -> SharedCache<Domain> {
        let (clock, cluster) = (&life.clock, &life.options.identity.cluster);
        let domain = SharedCache::new(Domain::new(cluster.clone()), Arc::new(Queue::new(clock.clone())));
        let freshness = Freshness::default();
        let own = watcher::Config::default().fields(&format!("metadata.name={cluster}"));
        let managed = &life.clusters.managed;
        self.watch::<ManagedCluster, _>(hub, own, &freshness, life, &domain);
        // Nobody waits for these: a cluster that does not answer is reported too.
        let unawaited = Freshness::default();
        self.watch::<Node, _>(managed, watcher::Config::default(), &unawaited, life, &domain);
        self.watch::<ClusterClaim, _>(managed, watcher::Config::default(), &unawaited, life, &domain);
        let checkup = Checkup { managed: managed.clone(), domain: domain.clone(), clock: clock.clone() };
        self.foundation.spawn(checkup.run());
        let heartbeat = Heartbeat {
            hub: hub.clone(),
            namespace: cluster.to_string(),
            domain: domain.clone(),
            clock: clock.clone(),
        };
        self.foundation.spawn(heartbeat.run());
        self.foundation.spawn(tell_rotations(self.rotation.subscribe(), domain.clone()));
        let tools = self.tools(domain.clone(), freshness, life);
        self.controllers.control(Reports, domain.queues(), hub, &tools);
        domain
    }

    /// Gets the agents of add-ons what they are known by, and tells how they are.
    fn attend_addons(&mut self, life: &Life, hub: &Client, credentials: &Credentials) -> SharedCache<Roster> {
        let Options { identity, addon_proof, .. } = &life.options;
        let keeper = Keeper {
            cluster: identity.cluster.clone(),
            agent: credentials.agent.clone(),
            is_hosted: life.clusters.management.is_some(),
            driver: addon_proof.driver(),
        };
        let roster = SharedCache::new(Roster::new(keeper), Arc::new(Queue::new(life.clock.clone())));
        let freshness = Freshness::default();
        let addons =
            Informer::<ManagedClusterAddOn>::new(hub.clone(), watcher::Config::default(), &freshness, &life.metrics);
        self.foundation.spawn(addons.within(identity.cluster.as_str()).run(roster.clone()));
        let trade = Trade {
            hub: hub.clone(),
            roster: roster.clone(),
            terms: Terms { certificate_seconds: identity.expiration_seconds, token_seconds: addon_proof.seconds() },
            clock: life.clock.clone(),
            metrics: life.metrics.clone(),
        };
        let attending = Attending { trade, clusters: life.clusters.clone(), imprints: life.imprints(credentials) };
        self.controllers.spawn_until_told(|end| attending.run(end));
        let tools = self.tools(roster.clone(), freshness, life);
        self.controllers.control(addon::Reports, roster.queues(), hub, &tools);
        roster
    }

    /// Applies works, and reports on them.
    fn attend_works(&mut self, life: &Life, hub: &Client, credentials: &Credentials) {
        let clock = &life.clock;
        let settings = Settings {
            agent_id: life.agent_id(credentials),
            hub_hash: hub_hash(&credentials.hub.server),
            namespace: life.options.identity.cluster.to_string(),
            grace: life.options.eviction_grace,
            raw_json: life.options.raw_json.map_or(RawJson::Refused, RawJson::UpTo),
        };
        let site = SharedCache::new(Site::new(settings, clock.clone()), Queues::new(clock));
        let freshness = Freshness::default();
        let managed = &life.clusters.managed;
        let few_at_once = watcher::Config::default().page_size(WORKS_AT_ONCE);
        let works = Informer::<ManifestWork>::new(hub.clone(), few_at_once, &freshness, &life.metrics);
        self.foundation.spawn(works.within(life.options.identity.cluster.as_str()).run(site.clone()));
        self.watch::<AppliedManifestWork, _>(managed, watcher::Config::default(), &freshness, life, &site);
        let watching = Watching {
            managed: managed.clone(),
            site: site.clone(),
            metrics: life.metrics.clone(),
            clock: clock.clone(),
        };
        self.foundation.spawn(watching.run());
        let queues = site.queues().clone();
        let tools = self.tools(site, freshness, life);
        self.controllers.control(Applying, &queues.applying, managed, &tools);
        self.controllers.control(Clearing, &queues.clearing, managed, &tools);
        // A hub that is busy is no reason to slow down on the cluster.
        let tools = Tools { pace: Pace::new(clock.clone(), life.metrics.clone()), ..tools };
        self.controllers.control(Reporting, &queues.reporting, hub, &tools);
    }

    fn watch<K, F>(
        &mut self,
        client: &Client,
        which: watcher::Config,
        freshness: &Freshness,
        life: &Life,
        cache: &SharedCache<F>,
    ) where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
        F: Tracks<K>,
    {
        let informer = Informer::<K>::new(client.clone(), which, freshness, &life.metrics);
        self.foundation.spawn(informer.run(cache.clone()));
    }

    /// What controllers work with. An agent is alone: there is nobody to agree with on who acts.
    fn tools<F: Caches>(&mut self, cache: SharedCache<F>, freshness: Freshness, life: &Life) -> Tools<F> {
        let (gate, keep_fresh) = Gate::new(self.foundation.alone(), freshness);
        self.foundation.spawn(keep_fresh);
        Tools::new(cache, gate, life.clock.clone(), life.metrics.clone())
    }

    async fn stop(self) {
        self.controllers.stop().await;
        self.foundation.stop().await;
    }
}

/// Has add-ons told of only while the hub has heard of their cluster.
async fn tell_hearing(mut heard: watch::Receiver<bool>, roster: SharedCache<Roster>) {
    loop {
        let is_heard = *heard.borrow_and_update();
        roster.update(|roster, queue| roster.heard(is_heard, queue));
        if heard.changed().await.is_err() {
            return;
        }
    }
}

/// Has the cluster's status tell how the last attempt to renew the certificate went.
async fn tell_rotations(mut rotations: watch::Receiver<Rotation>, domain: SharedCache<Domain>) {
    while rotations.changed().await.is_ok() {
        let rotation = rotations.borrow_and_update().clone();
        domain.update(|domain, queue| domain.rotated(rotation, queue));
    }
}
