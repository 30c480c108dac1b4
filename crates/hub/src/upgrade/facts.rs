//! Reads what decisions about upgrades are made from out of the cache.

use std::collections::BTreeMap;

use drover_api::{
    cluster::{ManagedCluster, ManagedClusterSetBinding, ManagedClustersUpgrade},
    drover::ClusterUpgrade,
    reference::ClusterName,
};
use drover_engine::{
    plan::ObjectKey,
    upgrade::{UpgradeSettings, facts::UpgradeFacts, naming::Part, upgrade_work::UpgradeWork, work::PartWork},
};

use crate::cache::Cache;

impl UpgradeFacts for Cache {
    fn upgrade(&self, key: &ObjectKey) -> Option<&ManagedClustersUpgrade> {
        self.upgrades.objects.get(key).map(|upgrade| &**upgrade)
    }

    fn has_upgrade(&self, key: &ObjectKey) -> bool {
        self.upgrades.objects.has(key)
    }

    fn settings(&self, upgrade: &ObjectKey) -> Option<&UpgradeSettings> {
        self.upgrades.settings.get(upgrade)
    }

    fn upgrade_of(&self, part_name: &str) -> Option<&ObjectKey> {
        self.upgrades.named.get(part_name)
    }

    fn record(&self, part_name: &str, cluster: &ClusterName) -> Option<&ClusterUpgrade> {
        self.upgrades.record(part_name, cluster)
    }

    fn work(&self, part_name: &str, part: Part, cluster: &ClusterName) -> Option<&UpgradeWork> {
        self.upgrade_work(part_name, part, cluster)
    }

    fn works(&self, part_name: &str, cluster: &ClusterName) -> BTreeMap<Part, PartWork> {
        self.upgrade_works(part_name, cluster)
    }

    fn clusters_with_parts(&self, part_name: &str) -> impl Iterator<Item = &ClusterName> {
        self.upgrades.clusters_of(part_name)
    }

    fn is_selected_by(&self, cluster: &ClusterName, placement: &ObjectKey) -> bool {
        self.selections.get(cluster).is_some_and(|by| by.contains_key(placement))
    }

    fn count_selected_by(&self, placement: &ObjectKey) -> usize {
        self.count_selected_by(placement)
    }

    fn clusters(&self) -> impl Iterator<Item = &ManagedCluster> {
        self.clusters.iter().map(|(_, cluster)| &**cluster)
    }

    fn has_cluster_set(&self, set: &str) -> bool {
        self.members.contains_key(set)
    }

    fn is_in_set(&self, cluster: &ClusterName, set: &str) -> bool {
        self.members.get(set).is_some_and(|members| members.clusters.contains(cluster))
    }

    fn bindings_in<'f>(&'f self, namespace: &'f str) -> impl Iterator<Item = &'f ManagedClusterSetBinding> {
        self.bindings.in_namespace(namespace).map(|(_, binding)| &**binding)
    }
}
