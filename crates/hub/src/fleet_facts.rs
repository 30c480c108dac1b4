//! Reads what is known of clusters and placements out of the cache.

use drover_api::{
    cluster::{ManagedCluster, Placement},
    reference::ClusterName,
};
use drover_engine::{
    plan::ObjectKey,
    presence::{FleetFacts, Known},
};
use drover_runtime::store::Store;
use kube::Resource;

use crate::cache::Cache;

impl FleetFacts for Cache {
    fn cluster(&self, name: &ClusterName) -> Known<&ManagedCluster> {
        known(&self.clusters, &ObjectKey::cluster_wide(name.as_str()))
    }

    fn has_namespace(&self, cluster: &ClusterName) -> bool {
        let namespace = self.belongings.namespace(cluster);
        namespace.is_some_and(|namespace| namespace.metadata.deletion_timestamp.is_none())
    }

    fn keeps_clusters(&self) -> bool {
        self.keeps_clusters
    }

    fn placement(&self, key: &ObjectKey) -> Known<&Placement> {
        known(&self.placements, key)
    }

    fn has_unreadable_decisions(&self, namespace: &str) -> bool {
        self.decisions.unknown().any(|slice| &*slice.namespace == namespace)
    }

    fn selected_by(&self, placement: &ObjectKey) -> impl Iterator<Item = ClusterName> {
        self.selected_by(placement)
    }
}

/// What is known of an object.
pub(crate) fn known<'a, K: Resource>(store: &'a Store<K>, key: &ObjectKey) -> Known<&'a K> {
    match store.get(key) {
        Some(object) => Known::There(object),
        None if store.has(key) => Known::Unreadable,
        None => Known::Missing,
    }
}
