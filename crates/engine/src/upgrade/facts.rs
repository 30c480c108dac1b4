//! What is known of upgrades, and of their records and works on clusters.

use std::collections::BTreeMap;

use drover_api::{
    cluster::{ManagedCluster, ManagedClusterSetBinding, ManagedClustersUpgrade},
    drover::ClusterUpgrade,
    reference::ClusterName,
};

use super::{naming::Part, settings::UpgradeSettings, upgrade_work::UpgradeWork, work::PartWork};
use crate::{plan::ObjectKey, presence::FleetFacts};

/// What decisions about upgrades are made from. The hub reads it from its cache.
pub trait UpgradeFacts: FleetFacts {
    /// An upgrade.
    fn upgrade(&self, key: &ObjectKey) -> Option<&ManagedClustersUpgrade>;

    /// Whether an upgrade exists, even if it cannot be parsed.
    fn has_upgrade(&self, key: &ObjectKey) -> bool;

    /// What follows from the spec of an upgrade.
    fn settings(&self, upgrade: &ObjectKey) -> Option<&UpgradeSettings>;

    /// The upgrade whose ClusterUpgrades have this name.
    fn upgrade_of(&self, part_name: &str) -> Option<&ObjectKey>;

    /// The ClusterUpgrade of this name on a cluster.
    fn record(&self, part_name: &str, cluster: &ClusterName) -> Option<&ClusterUpgrade>;

    /// The work of a part on a cluster, whichever upgrade it is of.
    fn work(&self, part_name: &str, part: Part, cluster: &ClusterName) -> Option<&UpgradeWork>;

    /// The works of an upgrade on a cluster.
    fn works(&self, part_name: &str, cluster: &ClusterName) -> BTreeMap<Part, PartWork>;

    /// The clusters on which an upgrade has a ClusterUpgrade or works.
    fn clusters_with_parts(&self, part_name: &str) -> impl Iterator<Item = &ClusterName>;

    /// Whether a placement has selected a cluster.
    fn is_selected_by(&self, cluster: &ClusterName, placement: &ObjectKey) -> bool;

    /// How many clusters a placement has selected.
    fn count_selected_by(&self, placement: &ObjectKey) -> usize;

    /// All clusters.
    fn clusters(&self) -> impl Iterator<Item = &ManagedCluster>;

    /// Whether a cluster set exists.
    fn has_cluster_set(&self, set: &str) -> bool;

    /// Whether a cluster is in a cluster set.
    fn is_in_set(&self, cluster: &ClusterName, set: &str) -> bool;

    /// The bindings of cluster sets to a namespace.
    fn bindings_in<'f>(&'f self, namespace: &'f str) -> impl Iterator<Item = &'f ManagedClusterSetBinding>;

    /// Another upgrade that has works on a cluster of which there can be those of one upgrade only.
    fn rival(&self, part_name: &str, cluster: &ClusterName) -> Option<String> {
        let works = [Part::Platform, Part::Operators].into_iter();
        let works = works.filter_map(|part| self.work(part_name, part, cluster));
        // One that stays although its upgrade does not exist any more is owned by none.
        let is_owned = |work: &&UpgradeWork| {
            let of = work.part_name();
            of != part_name && (self.upgrade_of(of).is_some() || work.is_leaving())
        };
        let rival = works.filter(is_owned).map(UpgradeWork::part_name).next()?;
        Some(self.upgrade_of(rival).map_or_else(|| rival.to_owned(), ToString::to_string))
    }
}
