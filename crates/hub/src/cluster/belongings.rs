//! What belongs to clusters on the hub, and whom a change of it concerns.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use drover_api::{
    cluster::ManagedCluster,
    names::{CLUSTER_AVAILABLE, CLUSTER_LEASE},
    reference::ClusterName,
};
use drover_engine::{
    cluster::{
        acceptance::Access,
        access::{self, Part},
        availability::{self, Heartbeat, Sight, Signs},
        conditions,
    },
    registration::{permission, token_infrastructure},
};
use drover_runtime::{
    cache::Tracks,
    clock::after,
    store::{Change, ObjectKey, Store},
};
use k8s_openapi::{
    api::{
        certificates::v1::CertificateSigningRequest,
        coordination::v1::Lease,
        core::v1::Namespace,
        rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding},
    },
    jiff::Timestamp,
};
use kube::{Resource, api::ObjectMeta, runtime::watcher};

use crate::cache::{Cache, Queues, remove_from};

/// What belongs to clusters.
#[derive(Default)]
pub(crate) struct Belongings {
    namespaces: Store<Namespace>,
    roles: Store<ClusterRole>,
    role_bindings: Store<ClusterRoleBinding>,
    bindings: Store<RoleBinding>,
    /// The bindings for the agent of each add-on on a cluster, in whichever namespace.
    bindings_of: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    pub(super) leases: Store<Lease>,
    heartbeats: BTreeMap<ClusterName, Heartbeat>,
    /// When agents last said whether their cluster is available, while the hub was looking.
    reports: BTreeMap<ClusterName, Timestamp>,
    /// Whether renewals of leases are seen, and until when they may have been missed.
    sight: EyeSight,
    pub(crate) requests: Store<CertificateSigningRequest>,
    /// The requests for each cluster, until they are decided on.
    pub(super) pending: BTreeMap<ClusterName, BTreeSet<ObjectKey>>,
    /// The requests for each add-on on a cluster, until they are denied or signed.
    pub(super) open: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
}

/// Whether changes are seen.
#[derive(Clone, Copy, Default)]
enum EyeSight {
    /// Not yet, or not at the moment.
    #[default]
    Blind,
    /// Since that time.
    Since(Timestamp),
}

impl EyeSight {
    /// How long changes can come late after they are seen again, one after the other.
    const CATCHING_UP: Duration = Duration::from_secs(10);

    /// Whether what is seen now has just happened.
    fn is_live(self, now: Timestamp) -> bool {
        matches!(self, Self::Since(time) if after(time, Self::CATCHING_UP) <= now)
    }
}

impl Belongings {
    /// The namespace of a cluster's name.
    pub(crate) fn namespace(&self, cluster: &ClusterName) -> Option<&Namespace> {
        self.namespaces.get(&ObjectKey::cluster_wide(cluster.as_str())).map(|namespace| &**namespace)
    }

    /// The role of a cluster's agents outside of any namespace. What all clusters share is nobody's.
    pub(super) fn role(&self, cluster: &ClusterName) -> Option<&ClusterRole> {
        let role = self.roles.get(&ObjectKey::cluster_wide(&access::role_name(cluster)))?;
        (!access::RESERVED.contains(&cluster.as_str())).then_some(role)
    }

    /// The binding of that role.
    pub(super) fn role_binding(&self, cluster: &ClusterName) -> Option<&ClusterRoleBinding> {
        self.role_bindings.get(&ObjectKey::cluster_wide(&access::role_name(cluster))).map(|binding| &**binding)
    }

    /// The binding of a part of what agents do in the cluster's namespace.
    pub(super) fn binding(&self, cluster: &ClusterName, part: Part) -> Option<&RoleBinding> {
        self.binding_at(&ObjectKey::namespaced(cluster.as_str(), &access::binding_name(cluster, part)))
    }

    /// A binding of agents.
    pub(crate) fn binding_at(&self, key: &ObjectKey) -> Option<&RoleBinding> {
        self.bindings.get(key).map(|binding| &**binding)
    }

    /// The bindings for the agent of an add-on on a cluster that is made from a template.
    pub(crate) fn bindings_of_addon(&self, addon: &ObjectKey) -> impl Iterator<Item = &RoleBinding> {
        self.bindings_of.get(addon).into_iter().flatten().filter_map(|key| self.binding_at(key))
    }

    /// What a cluster's agent has.
    pub(super) fn access(&self, cluster: &ClusterName) -> Access {
        Access {
            role: self.role(cluster).is_some() || self.role_binding(cluster).is_some(),
            namespace: Part::ALL.into_iter().any(|part| self.binding(cluster, part).is_some()),
        }
    }

    /// What was heard of a cluster's agent.
    pub(super) fn signs(&self, cluster: &ClusterName, now: Timestamp) -> Signs {
        Signs {
            heartbeat: self.heartbeats.get(cluster).copied(),
            report: self.reports.get(cluster).copied(),
            blind_until: Some(match self.sight {
                EyeSight::Blind => now,
                EyeSight::Since(time) => time,
            }),
        }
    }
}

/// How long one watch of leases lasts.
const LEASE_WATCH_SECONDS: u32 = 60;

/// Which leases are clusters'.
pub(crate) fn leases() -> watcher::Config {
    // A watch whose server has vanished is noticed when it should have ended: well before clusters would count as silent.
    watcher::Config::default().fields(&format!("metadata.name={CLUSTER_LEASE}")).timeout(LEASE_WATCH_SECONDS)
}

/// Whether a binding is an agent's, be it of a cluster or of an add-on.
pub(crate) fn is_binding_for_agents(binding: &RoleBinding) -> bool {
    is_for_agents(binding) || is_binding_for_addons(binding)
}

/// Whether a binding is for the agent of an add-on: for its tokens, or because a template says so.
pub(crate) fn is_binding_for_addons(binding: &RoleBinding) -> bool {
    let name = binding.metadata.name.as_deref().unwrap_or_default();
    token_infrastructure::addon_of_role(name).is_some() || permission::addon_of(name).is_some()
}

/// Whether a role or binding is an agent's. By its name, and not by a label, which somebody could take off: what is not seen is
/// not taken away either.
pub(crate) fn is_for_agents<K: Resource>(object: &K) -> bool {
    object.meta().name.as_deref().is_some_and(access::is_for_agents)
}

/// When the agent spoke of its cluster's availability, to tell one time from another.
fn spoken(cluster: &ManagedCluster) -> Option<(&str, Timestamp)> {
    let spoken = conditions(cluster).iter().find(|condition| condition.type_ == CLUSTER_AVAILABLE)?;
    (spoken.status != "Unknown").then_some((&spoken.status, spoken.last_transition_time.0))
}

impl Queues {
    fn mark_cluster(&self, cluster: &ClusterName) {
        self.clusters.mark(ObjectKey::cluster_wide(cluster.as_str()));
    }

    /// Marks the cluster whose own role, or its binding, this is.
    fn mark_owner(&self, key: &ObjectKey) {
        if let Some(cluster) = access::cluster_of_role(&key.name) {
            self.mark_cluster(&cluster);
        }
    }
}

impl Cache {
    /// Marks the cluster of a namespace if somebody waits for what is in it to go.
    pub(crate) fn mark_leaving(&self, namespace: &str, queues: &Queues) {
        let key = ObjectKey::cluster_wide(namespace);
        let is_going = |metadata: &ObjectMeta| metadata.deletion_timestamp.is_some();
        let cluster = self.clusters.get(&key).is_some_and(|cluster| is_going(&cluster.metadata));
        let namespace = self.belongings.namespaces.get(&key).is_some_and(|namespace| is_going(&namespace.metadata));
        if cluster || namespace {
            queues.clusters.mark(key);
        }
    }

    /// Marks what depends on a cluster besides placements and sets.
    pub(crate) fn mark_belongings(&mut self, change: &Change<ManagedCluster>, queues: &Queues) {
        self.hear_report(change);
        queues.clusters.mark(change.key.clone());
        for request in self.belongings.pending(&ClusterName::from(&*change.key.name)) {
            queues.requests.mark(request.clone());
        }
        for request in self.belongings.open_on(&change.key.name) {
            queues.addon_requests.mark(request.clone());
        }
    }

    /// Takes note of what an agent says of its cluster, as a sign that it is there.
    fn hear_report(&mut self, change: &Change<ManagedCluster>) {
        let cluster = ClusterName::from(&*change.key.name);
        match (&change.old, &change.new) {
            (_, None) => {
                self.belongings.reports.remove(&cluster);
                self.belongings.heartbeats.remove(&cluster);
            }
            (Some(old), Some(new)) if spoken(new).is_some() && spoken(new) != spoken(old) => {
                self.belongings.reports.insert(cluster, self.clock.now());
            }
            _ => {}
        }
    }

    /// Takes note of a renewal. Most tell nothing but that the cluster is as it was.
    fn heard_of(&mut self, cluster: &ClusterName, heartbeat: Heartbeat, queues: &Queues) {
        self.belongings.heartbeats.insert(cluster.clone(), heartbeat);
        let key = ObjectKey::cluster_wide(cluster.as_str());
        let is_news = heartbeat.sight == Sight::Found
            || self.clusters.get(&key).is_some_and(|cluster| {
                let signs = Signs { heartbeat: Some(heartbeat), ..Signs::default() };
                availability::judge(cluster, signs, heartbeat.noticed).conditions != conditions(cluster)
            });
        if is_news {
            queues.clusters.mark(key);
        }
    }
}

impl Tracks<Namespace> for Cache {
    fn store(&mut self) -> &mut Store<Namespace> {
        &mut self.belongings.namespaces
    }

    fn changed(&mut self, change: &Change<Namespace>, queues: &Queues) {
        if self.clusters.has(&change.key) {
            queues.clusters.mark(change.key.clone());
            self.mark_installs_on(&change.key.name, queues);
            self.mark_work_sets_on(&change.key.name, queues);
            self.mark_upgrades_on(&change.key.name, queues);
        }
    }
}

impl Tracks<ClusterRole> for Cache {
    fn store(&mut self) -> &mut Store<ClusterRole> {
        &mut self.belongings.roles
    }

    fn changed(&mut self, change: &Change<ClusterRole>, queues: &Queues) {
        queues.mark_owner(&change.key);
    }
}

impl Tracks<ClusterRoleBinding> for Cache {
    fn store(&mut self) -> &mut Store<ClusterRoleBinding> {
        &mut self.belongings.role_bindings
    }

    fn changed(&mut self, change: &Change<ClusterRoleBinding>, queues: &Queues) {
        queues.mark_owner(&change.key);
    }
}

impl Tracks<RoleBinding> for Cache {
    fn store(&mut self) -> &mut Store<RoleBinding> {
        &mut self.belongings.bindings
    }

    fn changed(&mut self, change: &Change<RoleBinding>, queues: &Queues) {
        if let Some((cluster, addon)) = permission::addon_of(&change.key.name) {
            let addon = ObjectKey::namespaced(cluster.as_str(), &addon);
            if change.new.is_some() {
                self.belongings.bindings_of.entry(addon.clone()).or_default().insert(change.key.clone());
            } else {
                remove_from(&mut self.belongings.bindings_of, &addon, &change.key);
            }
            queues.addons.mark(addon);
        } else if let Some(addon) = token_infrastructure::addon_of_role(&change.key.name) {
            queues.mark_tokens(&change.key.namespace, Some(addon));
        } else {
            queues.mark_cluster(&ClusterName::from(&*change.key.namespace));
        }
    }
}

impl Tracks<Lease> for Cache {
    fn store(&mut self) -> &mut Store<Lease> {
        &mut self.belongings.leases
    }

    fn changed(&mut self, change: &Change<Lease>, queues: &Queues) {
        let cluster = ClusterName::from(&*change.key.namespace);
        let Some(lease) = &change.new else { return queues.mark_cluster(&cluster) };
        let renewed = |lease: &Lease| lease.spec.as_ref()?.renew_time.as_ref().map(|time| time.0);
        // A lease that nobody has renewed yet counts from when it was made.
        let made = || lease.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let before = change.old.as_ref().and_then(|old| renewed(old));
        let Some(renewed) = renewed(lease).or_else(made).filter(|renewed| Some(*renewed) != before) else { return };
        let now = self.clock.now();
        let is_live = before.is_some() && self.belongings.sight.is_live(now);
        let sight = if is_live { Sight::Live } else { Sight::Found };
        self.heard_of(&cluster, Heartbeat { renewed, noticed: now, sight }, queues);
    }

    fn sees(&mut self, sees: bool, _: &Queues) {
        self.belongings.sight = if sees { EyeSight::Since(self.clock.now()) } else { EyeSight::Blind };
    }
}
