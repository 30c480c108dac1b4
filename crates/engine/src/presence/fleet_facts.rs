//! What is known of clusters and of the placements that select them.

use drover_api::{
    cluster::{ManagedCluster, Placement},
    reference::ClusterName,
};

use super::{Decided, Known, Unclear, decided};
use crate::{cluster::available, condition::Holds, plan::ObjectKey};

/// What decisions about members are made from. The hub reads it from its cache.
pub trait FleetFacts {
    /// A ManagedCluster.
    fn cluster(&self, name: &ClusterName) -> Known<&ManagedCluster>;

    /// Whether a cluster has a namespace that is not being deleted.
    fn has_namespace(&self, cluster: &ClusterName) -> bool;

    /// Whether this hub removes what belongs to clusters that leave.
    fn keeps_clusters(&self) -> bool;

    /// A Placement.
    fn placement(&self, key: &ObjectKey) -> Known<&Placement>;

    /// Whether a PlacementDecision in a namespace cannot be parsed. It is not known whose it is.
    fn has_unreadable_decisions(&self, namespace: &str) -> bool;

    /// The clusters that a placement has selected.
    fn selected_by(&self, placement: &ObjectKey) -> impl Iterator<Item = ClusterName>;

    /// A cluster that exists and stays.
    fn staying_cluster(&self, name: &ClusterName) -> Option<&ManagedCluster> {
        self.cluster(name).into_option().filter(|cluster| cluster.metadata.deletion_timestamp.is_none())
    }

    /// Whether a cluster says that it is available.
    fn is_online(&self, cluster: &ClusterName) -> bool {
        self.staying_cluster(cluster).is_some_and(|cluster| available(cluster) == Holds::Yes)
    }

    /// Whether works can be made for a cluster: it is accepted, stays, and has a namespace.
    fn takes_works(&self, cluster: &ClusterName) -> bool {
        self.staying_cluster(cluster).is_some_and(|cluster| cluster.spec.hub_accepts_client)
            && self.has_namespace(cluster)
    }

    /// What a placement says of its decision, if it does and that can be parsed.
    fn decided(&self, placement: &ObjectKey) -> Result<Decided, Unclear> {
        decided(self.placement(placement), self.has_unreadable_decisions(&placement.namespace))
    }
}
