//! What the agent reports of its cluster: that it has joined, that its API server answers, its version, what its nodes have, and its claims.

use std::{sync::Arc, time::Duration};

use drover_api::{
    cluster::{ClusterClaim, ClusterVersions, ManagedCluster},
    names::{CERTIFICATE_ROTATED, CLUSTER_AVAILABLE, CLUSTER_CLOCK_SYNCED, CLUSTER_JOINED},
    reference::ClusterName,
};
use drover_engine::{
    condition::{Holds, Says, holds, with},
    join::{self, claimed, resources},
    plan::{NoAction, Plan, Write},
};
use drover_runtime::{
    cache::{SharedCache, Tracks},
    caches,
    clock::Clock,
    controller::Reconciler,
    decode::Damaged,
    queue::Queue,
    store::{Change, ObjectKey, Store},
};
use k8s_openapi::{
    api::core::v1::{Node, NodeStatus},
    apimachinery::pkg::apis::meta::v1::Condition,
    jiff::{SignedDuration, Timestamp},
};
use kube::{Client, api::ObjectMeta};
use tokio::sync::watch;
use tracing::debug;

use crate::join::Rotation;

/// How often the cluster's API server is asked whether it is well, and how often when it last was not.
const CHECK: Duration = Duration::from_mins(1);
const CHECK_AGAIN: Duration = Duration::from_secs(5);
/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// For how long it may be unwell before that is reported.
const GRACE: SignedDuration = SignedDuration::from_secs(20);

/// What the agent knows of its cluster, and of what the hub has of it.
pub(crate) struct Domain {
    name: ClusterName,
    /// The cluster as the hub has it.
    clusters: Store<ManagedCluster>,
    nodes: Store<Node>,
    claims: Store<ClusterClaim>,
    /// Whether nodes and claims have been listed: until then nothing is said of them.
    knows_nodes: bool,
    knows_claims: bool,
    version: Option<String>,
    /// Whether the version may be another by now.
    version_is_stale: bool,
    health: Health,
    rotation: Rotation,
    /// How often the hub wants the lease renewed; nothing while it does not accept the cluster.
    accepted: watch::Sender<Option<Duration>>,
    /// Whether the hub has heard of the cluster lately, and believes its times.
    heard: watch::Sender<bool>,
}

/// How the cluster's API server is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Health {
    /// Nobody has asked yet.
    Unknown,
    Well,
    /// It does not answer, or says that it is unwell, for long enough.
    Unwell(String),
}

impl Domain {
    pub(crate) fn new(name: ClusterName) -> Self {
        Self {
            name,
            clusters: Store::default(),
            nodes: Store::default(),
            claims: Store::default(),
            knows_nodes: false,
            knows_claims: false,
            version: None,
            version_is_stale: true,
            health: Health::Unknown,
            rotation: Rotation::None,
            accepted: watch::Sender::new(None),
            heard: watch::Sender::new(false),
        }
    }

    /// How often the hub wants the lease renewed, whenever that changes; nothing while it does not accept the cluster.
    pub(crate) fn accepted(&self) -> watch::Receiver<Option<Duration>> {
        self.accepted.subscribe()
    }

    /// Whether the hub has heard of the cluster lately, and believes its times, whenever that changes.
    pub(crate) fn heard(&self) -> watch::Receiver<bool> {
        self.heard.subscribe()
    }

    /// Takes note of how the last attempt to renew the certificate went.
    pub(crate) fn rotated(&mut self, rotation: Rotation, queue: &Queue<ObjectKey>) {
        self.rotation = rotation;
        queue.mark(self.key());
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::cluster_wide(self.name.as_str())
    }
}

caches!(Domain => Arc<Queue<ObjectKey>>; ManagedCluster, Node, ClusterClaim);

impl Tracks<ManagedCluster> for Domain {
    fn store(&mut self) -> &mut Store<ManagedCluster> {
        &mut self.clusters
    }

    /// The agent writes anew what is missing in the status.
    fn salvage(damaged: &Damaged<ManagedCluster>) -> Option<ManagedCluster> {
        damaged.without_defects()
    }

    fn changed(&mut self, _: &Change<ManagedCluster>, queue: &Arc<Queue<ObjectKey>>) {
        let cluster = self.clusters.get(&self.key());
        let accepted = cluster.filter(|cluster| cluster.spec.hub_accepts_client).map(|cluster| {
            let seconds = u64::try_from(cluster.spec.lease_duration_seconds).unwrap_or_default();
            Duration::from_secs(seconds.max(1))
        });
        let is_heard = cluster.is_some_and(|cluster| {
            let available = holds(conditions(cluster), CLUSTER_AVAILABLE);
            may_report(cluster) && available != Some(Holds::Unknown)
        });
        self.heard.send_if_modified(|known| std::mem::replace(known, is_heard) != is_heard);
        self.accepted.send_if_modified(|known| std::mem::replace(known, accepted) != accepted);
        queue.mark(self.key());
    }
}

impl Tracks<Node> for Domain {
    fn store(&mut self) -> &mut Store<Node> {
        &mut self.nodes
    }

    /// Of a node it is told what it has, and nothing else.
    fn trim(node: &mut Node) {
        let ObjectMeta { name, uid, resource_version, .. } = std::mem::take(&mut node.metadata);
        node.metadata = ObjectMeta { name, uid, resource_version, ..ObjectMeta::default() };
        if let Some(status) = &mut node.status {
            let (capacity, allocatable) = (status.capacity.take(), status.allocatable.take());
            *status = NodeStatus::default();
            (status.capacity, status.allocatable) = (capacity, allocatable);
        }
    }

    fn changed(&mut self, change: &Change<Node>, queue: &Arc<Queue<ObjectKey>>) {
        let has = |node: &Option<Arc<Node>>| node.as_deref().map(has);
        if self.knows_nodes && has(&change.old) != has(&change.new) {
            queue.mark(self.key());
        }
    }

    fn listed(&mut self, queue: &Arc<Queue<ObjectKey>>) {
        self.knows_nodes = true;
        // Who had to look anew may look at another version.
        self.version_is_stale = true;
        queue.mark(self.key());
    }
}

impl Tracks<ClusterClaim> for Domain {
    fn store(&mut self) -> &mut Store<ClusterClaim> {
        &mut self.claims
    }

    fn changed(&mut self, _: &Change<ClusterClaim>, queue: &Arc<Queue<ObjectKey>>) {
        queue.mark(self.key());
    }

    fn listed(&mut self, queue: &Arc<Queue<ObjectKey>>) {
        self.knows_claims = true;
        queue.mark(self.key());
    }
}

fn has(node: &Node) -> join::Node {
    let status = node.status.as_ref();
    let amounts = |amounts: Option<
        &std::collections::BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>,
    >| {
        let amounts = amounts.into_iter().flatten();
        amounts
            .map(|(name, amount)| (name.clone(), drover_api::grammar::Quantity::Text(amount.0.as_str().into())))
            .collect()
    };
    join::Node {
        capacity: amounts(status.and_then(|status| status.capacity.as_ref())),
        allocatable: amounts(status.and_then(|status| status.allocatable.as_ref())),
        is_schedulable: !node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default(),
    }
}

/// Who reports.
pub(crate) struct Reports;

impl Reconciler<Domain> for Reports {
    type Key = ObjectKey;
    type State = ();
    type Action = NoAction;
    const NAME: &'static str = "registration-agent";

    fn plan(&self, domain: &Domain, key: &ObjectKey, (): &mut (), now: Timestamp) -> Plan {
        let Some(stored) = domain.clusters.get(key).filter(|cluster| may_report(cluster)) else {
            return Plan::default();
        };
        Write::status(&**stored, &domain.report(stored, now)).into_iter().collect()
    }
}

/// Whether the hub has let the cluster in. Where clocks differ too much, times that are reported would mean something else there.
fn may_report(cluster: &ManagedCluster) -> bool {
    cluster.spec.hub_accepts_client && holds(conditions(cluster), CLUSTER_CLOCK_SYNCED) != Some(Holds::No)
}

fn conditions(cluster: &ManagedCluster) -> &[Condition] {
    cluster.status.as_ref().map_or(&[], |status| &status.conditions)
}

impl Domain {
    /// The cluster as it is to be reported.
    fn report(&self, stored: &ManagedCluster, now: Timestamp) -> ManagedCluster {
        let mut cluster = stored.clone();
        let status = cluster.status.get_or_insert_default();
        for says in self.conditions() {
            let says = Says { generation: None, ..says.says() };
            status.conditions = with(std::mem::take(&mut status.conditions), says, now);
        }
        if let Some(version) = &self.version {
            status.version = Some(ClusterVersions { kubernetes: Some(version.clone()) });
        }
        if self.knows_nodes {
            let nodes: Vec<_> = self.nodes.iter().map(|(_, node)| has(node)).collect();
            let (capacity, allocatable) = resources(&nodes);
            // Others may count resources that no node has.
            status.capacity.extend(capacity);
            status.allocatable = allocatable;
        }
        if self.knows_claims {
            status.cluster_claims = claimed(self.claims.iter().map(|(_, claim)| &**claim));
        }
        cluster
    }

    fn conditions(&self) -> Vec<Said> {
        let joined = Said::new(CLUSTER_JOINED, true, "ManagedClusterJoined", "Managed cluster joined");
        let available = match &self.health {
            Health::Unknown => None,
            Health::Well => {
                Some(Said::new(CLUSTER_AVAILABLE, true, "ManagedClusterAvailable", "Managed cluster is available"))
            }
            Health::Unwell(why) => {
                Some(Said::new(CLUSTER_AVAILABLE, false, "ManagedClusterKubeAPIServerUnavailable", why))
            }
        };
        let rotated = match &self.rotation {
            Rotation::None => None,
            Rotation::Done(until) => {
                let message = format!("client certificate rotated, and valid until {until}");
                Some(Said::new(CERTIFICATE_ROTATED, true, "ClientCertificateUpdated", &message))
            }
            Rotation::Failed(why) => Some(Said::new(CERTIFICATE_ROTATED, false, "ClientCertificateUpdateFailed", why)),
        };
        [Some(joined), available, rotated].into_iter().flatten().collect()
    }
}

/// What a condition of the cluster is to say.
struct Said {
    type_: &'static str,
    holds: bool,
    reason: &'static str,
    message: String,
}

impl Said {
    fn new(type_: &'static str, holds: bool, reason: &'static str, message: &str) -> Self {
        Self { type_, holds, reason, message: message.to_owned() }
    }

    fn says(&self) -> Says<'_> {
        let Self { type_, holds, reason, message } = self;
        Says { type_, holds: (*holds).into(), reason, message, generation: None }
    }
}

/// Who asks the cluster's API server how it is.
pub(crate) struct Checkup {
    pub(crate) managed: Client,
    pub(crate) domain: SharedCache<Domain>,
    pub(crate) clock: Clock,
}

impl Checkup {
    /// Asks for ever.
    pub(crate) async fn run(self) {
        let mut unwell_since = None;
        loop {
            let checked = tokio::select! {
                checked = self.check() => checked.map_err(|error| error.to_string()),
                () = self.clock.sleep(PATIENCE) => Err("it does not answer".to_owned()),
            };
            let rest = match checked {
                Ok(version) => {
                    unwell_since = None;
                    self.note(Health::Well, version);
                    CHECK
                }
                Err(error) => {
                    debug!(%error, "the cluster's API server is unwell");
                    let now = self.clock.now();
                    let since = *unwell_since.get_or_insert(now);
                    if now.duration_since(since) >= GRACE {
                        let why =
                            format!("the API server of the managed cluster does not answer that it is well: {error}");
                        self.note(Health::Unwell(why), None);
                    }
                    CHECK_AGAIN
                }
            };
            self.clock.sleep(rest).await;
        }
    }

    /// Asks once, and for the version too if that may be another.
    async fn check(&self) -> Result<Option<String>, kube::Error> {
        let ask = async |path: &str| {
            let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
            self.managed.request_text(request).await
        };
        match ask("/livez").await {
            // Those that are old do not have it.
            Err(kube::Error::Api(status)) if status.code == 404 => drop(ask("/healthz").await?),
            answer => drop(answer?),
        }
        if !self.domain.read().version_is_stale {
            return Ok(None);
        }
        Ok(Some(self.managed.apiserver_version().await?.git_version))
    }

    fn note(&self, health: Health, version: Option<String>) {
        self.domain.update(|domain, queue| {
            let is_news = domain.health != health || version.is_some();
            if let Some(version) = version {
                (domain.version, domain.version_is_stale) = (Some(version), false);
            }
            domain.health = health;
            if is_news {
                queue.mark(domain.key());
            }
        });
    }
}
