//! What belongs to clusters on the hub, and whom a change of it concerns.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{
    addon::ManagedClusterAddOn,
    cluster::ManagedCluster,
    names::{CLEANUP_PRIORITY_ANNOTATION, CLUSTER_LEASE, CLUSTER_NAME_LABEL},
    reference::ClusterName,
    work::ManifestWork,
};
use drover_engine::cluster::{
    access::{self, Part},
    availability::{self, Heartbeat, Sight},
    conditions, signing_request,
};
use drover_runtime::{
    fleet::Tracks,
    store::{Change, ObjectKey, Store},
};
use k8s_openapi::{
    ByteString,
    api::{
        certificates::v1::CertificateSigningRequest,
        coordination::v1::Lease,
        core::v1::Namespace,
        rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding},
    },
};
use kube::{
    Resource, ResourceExt,
    api::{ObjectMeta, PartialObjectMeta},
    runtime::watcher,
};

use crate::fleet::Fleet;

/// What belongs to clusters.
#[derive(Default)]
pub(crate) struct Belongings {
    pub(super) namespaces: Store<Namespace>,
    roles: Store<ClusterRole>,
    role_bindings: Store<ClusterRoleBinding>,
    bindings: Store<RoleBinding>,
    pub(super) leases: Store<Lease>,
    heartbeats: BTreeMap<ClusterName, Heartbeat>,
    pub(super) addons: Store<PartialObjectMeta<ManagedClusterAddOn>>,
    pub(super) works: Store<PartialObjectMeta<ManifestWork>>,
    pub(super) requests: Store<CertificateSigningRequest>,
    /// The requests for each cluster, until they are decided on.
    pending: BTreeMap<ClusterName, BTreeSet<ObjectKey>>,
}

impl Belongings {
    /// The role of a cluster's agents outside of any namespace.
    pub(super) fn role(&self, cluster: &ClusterName) -> Option<&ClusterRole> {
        self.roles.get(&ObjectKey::cluster_wide(&access::role_name(cluster))).map(|role| &**role)
    }

    /// The binding of that role.
    pub(super) fn role_binding(&self, cluster: &ClusterName) -> Option<&ClusterRoleBinding> {
        self.role_bindings.get(&ObjectKey::cluster_wide(&access::role_name(cluster))).map(|binding| &**binding)
    }

    /// The binding of a part of what agents do in the cluster's namespace.
    pub(super) fn binding(&self, cluster: &ClusterName, part: Part) -> Option<&RoleBinding> {
        let key = ObjectKey::namespaced(cluster.as_str(), &access::binding_name(cluster, part));
        self.bindings.get(&key).map(|binding| &**binding)
    }

    /// The latest renewal of a cluster's lease.
    pub(super) fn heartbeat(&self, cluster: &ClusterName) -> Option<Heartbeat> {
        self.heartbeats.get(cluster).copied()
    }

    /// The requests for a cluster that are not decided on.
    pub(crate) fn pending(&self, cluster: &ClusterName) -> impl Iterator<Item = &ObjectKey> {
        self.pending.get(cluster).into_iter().flatten()
    }
}

/// Which leases are clusters'.
pub(crate) fn leases() -> watcher::Config {
    watcher::Config::default().fields(&format!("metadata.name={CLUSTER_LEASE}"))
}

/// Which roles, bindings and requests belong to clusters.
pub(crate) fn labelled() -> watcher::Config {
    watcher::Config::default().labels(CLUSTER_NAME_LABEL)
}

/// Keeps of an add-on's or a work's metadata what its removal depends on.
pub(crate) fn trim_remains<K: Resource>(object: &mut PartialObjectMeta<K>) {
    let ObjectMeta { name, namespace, uid, resource_version, deletion_timestamp, finalizers, annotations, .. } =
        std::mem::take(&mut object.metadata);
    let mut annotations = annotations.unwrap_or_default();
    annotations.retain(|key, _| key == CLEANUP_PRIORITY_ANNOTATION);
    let annotations = (!annotations.is_empty()).then_some(annotations);
    object.metadata = ObjectMeta {
        name,
        namespace,
        uid,
        resource_version,
        deletion_timestamp,
        finalizers,
        annotations,
        ..ObjectMeta::default()
    };
}

/// Keeps of a request that has its certificate only that it has.
pub(crate) fn trim_request(request: &mut CertificateSigningRequest) {
    request.managed_fields_mut().clear();
    if let Some(certificate) = request.status.as_mut().and_then(|status| status.certificate.as_mut()) {
        *certificate = ByteString::default();
        request.spec.request = ByteString::default();
    }
}

/// The cluster that something is labelled with.
fn labelled_with<K: Resource>(object: &K) -> Option<ClusterName> {
    object.labels().get(CLUSTER_NAME_LABEL).map(|name| ClusterName::from(name.as_str()))
}

impl Fleet {
    fn mark_cluster(&self, cluster: &ClusterName) {
        self.queues.clusters.mark(ObjectKey::cluster_wide(cluster.as_str()));
    }

    /// Marks the clusters that something was or is labelled with.
    fn mark_labelled<K: Resource>(&self, change: &Change<K>) {
        let clusters: BTreeSet<_> =
            change.old.iter().chain(&change.new).filter_map(|object| labelled_with(&**object)).collect();
        for cluster in clusters {
            self.mark_cluster(&cluster);
        }
    }

    /// Marks the cluster of a namespace if somebody waits for what is in it to go.
    fn mark_leaving(&self, namespace: &str) {
        let key = ObjectKey::cluster_wide(namespace);
        let is_going = |metadata: &ObjectMeta| metadata.deletion_timestamp.is_some();
        let cluster = self.clusters.get(&key).is_some_and(|cluster| is_going(&cluster.metadata));
        let namespace = self.belongings.namespaces.get(&key).is_some_and(|namespace| is_going(&namespace.metadata));
        if cluster || namespace {
            self.queues.clusters.mark(key);
        }
    }

    /// Marks what depends on a cluster besides placements and sets.
    pub(crate) fn mark_belongings(&self, change: &Change<ManagedCluster>) {
        self.queues.clusters.mark(change.key.clone());
        for request in self.belongings.pending(&ClusterName::from(&*change.key.name)) {
            self.queues.requests.mark(request.clone());
        }
    }

    /// Takes note of a renewal. Most tell nothing but that the cluster is as it was.
    fn heard_of(&mut self, cluster: &ClusterName, heartbeat: Heartbeat) {
        self.belongings.heartbeats.insert(cluster.clone(), heartbeat);
        let key = ObjectKey::cluster_wide(cluster.as_str());
        let is_news = heartbeat.sight == Sight::Found
            || self.clusters.get(&key).is_some_and(|cluster| {
                availability::judge(cluster, Some(heartbeat), heartbeat.noticed).conditions != conditions(cluster)
            });
        if is_news {
            self.queues.clusters.mark(key);
        }
    }
}

impl Tracks<Namespace> for Fleet {
    fn store(&mut self) -> &mut Store<Namespace> {
        &mut self.belongings.namespaces
    }

    fn changed(&mut self, change: &Change<Namespace>) {
        if self.clusters.has(&change.key) {
            self.queues.clusters.mark(change.key.clone());
        }
    }
}

impl Tracks<ClusterRole> for Fleet {
    fn store(&mut self) -> &mut Store<ClusterRole> {
        &mut self.belongings.roles
    }

    fn changed(&mut self, change: &Change<ClusterRole>) {
        self.mark_labelled(change);
    }
}

impl Tracks<ClusterRoleBinding> for Fleet {
    fn store(&mut self) -> &mut Store<ClusterRoleBinding> {
        &mut self.belongings.role_bindings
    }

    fn changed(&mut self, change: &Change<ClusterRoleBinding>) {
        self.mark_labelled(change);
    }
}

impl Tracks<RoleBinding> for Fleet {
    fn store(&mut self) -> &mut Store<RoleBinding> {
        &mut self.belongings.bindings
    }

    fn changed(&mut self, change: &Change<RoleBinding>) {
        self.mark_labelled(change);
    }
}

impl Tracks<Lease> for Fleet {
    fn store(&mut self) -> &mut Store<Lease> {
        &mut self.belongings.leases
    }

    fn changed(&mut self, change: &Change<Lease>) {
        let cluster = ClusterName::from(&*change.key.namespace);
        let renewed = |lease: &Lease| lease.spec.as_ref()?.renew_time.as_ref().map(|time| time.0);
        match (&change.old, &change.new) {
            (_, None) => {
                self.belongings.heartbeats.remove(&cluster);
                self.mark_cluster(&cluster);
            }
            (old, Some(new)) => {
                let before = old.as_ref().and_then(|old| renewed(old));
                // A lease that nobody has renewed yet counts from when it was made.
                let made = || new.metadata.creation_timestamp.as_ref().map(|time| time.0);
                let Some(renewed) = renewed(new).or_else(made).filter(|renewed| Some(*renewed) != before) else {
                    return;
                };
                let sight = if before.is_some() { Sight::Live } else { Sight::Found };
                self.heard_of(&cluster, Heartbeat { renewed, noticed: self.clock.now(), sight });
            }
        }
    }
}

impl Tracks<PartialObjectMeta<ManagedClusterAddOn>> for Fleet {
    fn store(&mut self) -> &mut Store<PartialObjectMeta<ManagedClusterAddOn>> {
        &mut self.belongings.addons
    }

    fn changed(&mut self, change: &Change<PartialObjectMeta<ManagedClusterAddOn>>) {
        self.mark_leaving(&change.key.namespace);
    }
}

impl Tracks<PartialObjectMeta<ManifestWork>> for Fleet {
    fn store(&mut self) -> &mut Store<PartialObjectMeta<ManifestWork>> {
        &mut self.belongings.works
    }

    fn changed(&mut self, change: &Change<PartialObjectMeta<ManifestWork>>) {
        self.mark_leaving(&change.key.namespace);
    }
}

impl Tracks<CertificateSigningRequest> for Fleet {
    fn store(&mut self) -> &mut Store<CertificateSigningRequest> {
        &mut self.belongings.requests
    }

    fn changed(&mut self, change: &Change<CertificateSigningRequest>) {
        if let Some(cluster) = change.old.as_ref().and_then(|request| signing_request::cluster_of(request)) {
            let pending = self.belongings.pending.entry(cluster.clone()).or_default();
            pending.remove(&change.key);
            if pending.is_empty() {
                self.belongings.pending.remove(&cluster);
            }
        }
        let Some(request) = change.new.as_ref().filter(|request| !signing_request::is_decided(request)) else { return };
        if let Some(cluster) = signing_request::cluster_of(request) {
            self.belongings.pending.entry(cluster).or_default().insert(change.key.clone());
            self.queues.requests.mark(change.key.clone());
        }
    }
}
