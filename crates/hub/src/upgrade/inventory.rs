//! The upgrades that there are, their records and works on clusters, and whom a change of them concerns.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{
    cluster::{ManagedCluster, ManagedClustersUpgrade},
    drover::ClusterUpgrade,
    reference::ClusterName,
};
use drover_engine::{
    presence::answers_the_same,
    tracker::Dirty,
    upgrade::{
        UpgradeSettings,
        naming::{Part, part_name},
        operator_work::Approver,
        upgrade_work::UpgradeWork,
        work::PartWork,
    },
};
use drover_runtime::{
    cache::Tracks,
    store::{Change, ObjectKey, Store},
};
use kube::{Resource, ResourceExt};

use crate::{
    cache::{Cache, Queues, remove_from},
    manifest_work::CachedWork,
};

/// The upgrades that there are, and their parts on clusters.
#[derive(Default)]
pub(crate) struct Upgrades {
    pub(super) objects: Store<ManagedClustersUpgrade>,
    records: Store<ClusterUpgrade>,
    /// The upgrade whose parts have that name.
    pub(super) named: BTreeMap<String, ObjectKey>,
    /// The clusters on which there are parts of that name.
    clusters: BTreeMap<String, BTreeSet<ClusterName>>,
    /// The upgrades that list a placement.
    followers: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// What follows from the spec of each upgrade.
    pub(super) settings: BTreeMap<ObjectKey, UpgradeSettings>,
    /// What upgrades operators on clusters, if the hub was told.
    pub(crate) approver: Option<Approver>,
}

impl Upgrades {
    /// The record of an upgrade on a cluster.
    pub(super) fn record(&self, part_name: &str, cluster: &ClusterName) -> Option<&ClusterUpgrade> {
        self.records.get(&ObjectKey::namespaced(cluster.as_str(), part_name)).map(|record| &**record)
    }

    /// The clusters on which an upgrade has parts.
    pub(super) fn clusters_of(&self, part_name: &str) -> impl Iterator<Item = &ClusterName> {
        self.clusters.get(part_name).into_iter().flatten()
    }

    /// Takes note of whether there is something of that name on a cluster.
    fn sort(&mut self, part_name: &str, cluster: &ClusterName, is_there: bool) {
        if is_there {
            self.clusters.entry(part_name.to_owned()).or_default().insert(cluster.clone());
        } else if let Some(clusters) = self.clusters.get_mut(part_name) {
            clusters.remove(cluster);
            if clusters.is_empty() {
                self.clusters.remove(part_name);
            }
        }
    }

    /// Takes note of what an upgrade asks for now.
    fn relist(&mut self, change: &Change<ManagedClustersUpgrade>) {
        let is_same = |old: &ManagedClustersUpgrade, new: &ManagedClustersUpgrade| {
            old.spec == new.spec && old.metadata.uid == new.metadata.uid
        };
        if matches!((&change.old, &change.new), (Some(old), Some(new)) if is_same(old, new)) {
            return;
        }
        for placement in change.old.iter().flat_map(|upgrade| placements_of(upgrade)) {
            remove_from(&mut self.followers, &placement, &change.key);
        }
        let name = part_name(&change.key.namespace, &change.key.name);
        let Some(upgrade) = &change.new else {
            self.named.remove(&name);
            self.settings.remove(&change.key);
            return;
        };
        self.named.insert(name, change.key.clone());
        self.settings.insert(change.key.clone(), UpgradeSettings::of(upgrade, self.approver.as_ref()));
        for placement in placements_of(upgrade) {
            self.followers.entry(placement).or_default().insert(change.key.clone());
        }
    }
}

/// The placements that an upgrade lists.
fn placements_of(upgrade: &ManagedClustersUpgrade) -> BTreeSet<ObjectKey> {
    upgrade.spec.placement.iter().map(|listed| ObjectKey::namespaced(&listed.namespace, &listed.name)).collect()
}

/// Whether a cluster is to upgrades as it was before.
fn is_upgraded_the_same(one: &ManagedCluster, other: &ManagedCluster) -> bool {
    let (meta, other_meta) = (one.meta(), other.meta());
    let told = |cluster: &ManagedCluster| {
        cluster.status.as_ref().map(|status| (status.conditions.clone(), status.cluster_claims.clone()))
    };
    one.spec.hub_accepts_client == other.spec.hub_accepts_client
        && meta.uid == other_meta.uid
        && meta.deletion_timestamp.is_some() == other_meta.deletion_timestamp.is_some()
        && one.labels() == other.labels()
        && one.annotations() == other.annotations()
        && told(one) == told(other)
        && answers_the_same(one, other)
}

impl Cache {
    /// The work of a part on a cluster, whichever upgrade it is of.
    pub(super) fn upgrade_work(&self, part_name: &str, part: Part, cluster: &ClusterName) -> Option<&UpgradeWork> {
        let name = part.work_name(cluster.as_str(), part_name);
        self.works.get(&ObjectKey::namespaced(cluster.as_str(), &name))?.upgrade.as_deref()
    }

    /// The works of an upgrade on a cluster.
    pub(super) fn upgrade_works(&self, part_name: &str, cluster: &ClusterName) -> BTreeMap<Part, PartWork> {
        let own = Part::ALL.into_iter().filter_map(|part| self.upgrade_work(part_name, part, cluster));
        let own = own.filter(|work| work.part_name() == part_name);
        own.filter_map(|work| work.part()).map(|(part, work)| (part, work.clone())).collect()
    }

    /// Marks the upgrades that list a placement.
    pub(crate) fn mark_upgrades_of(&self, placement: &ObjectKey, queues: &Queues) {
        for upgrade in self.upgrades.followers.get(placement).into_iter().flatten() {
            queues.upgrades.mark(upgrade.clone());
        }
    }

    /// Has the upgrades that list a placement look at a cluster again, which it selects now or has selected.
    pub(crate) fn look_again_at_upgrade(&self, placement: &ObjectKey, cluster: &ClusterName, queues: &Queues) {
        for upgrade in self.upgrades.followers.get(placement).into_iter().flatten() {
            queues.upgrades.mark_with(upgrade.clone(), Dirty::member(cluster));
        }
    }

    /// Has the upgrades look at everybody again that select clusters from sets.
    pub(crate) fn mark_selecting_upgrades(&self, queues: &Queues) {
        for (key, settings) in &self.upgrades.settings {
            if settings.has_selector() {
                queues.upgrades.mark_with(key.clone(), Dirty::All);
            }
        }
    }

    /// Has the upgrades look at a cluster again that may have to do with it.
    pub(crate) fn mark_upgrades_on(&self, cluster: &str, queues: &Queues) {
        let name = ClusterName::from(cluster);
        let selected_by = self.selections.get(&name);
        for (key, settings) in &self.upgrades.settings {
            let has_part = || self.upgrades.clusters.get(&settings.part_name).is_some_and(|all| all.contains(&name));
            let is_selected = || {
                let mut by = selected_by.into_iter().flat_map(BTreeMap::keys);
                by.any(|placement| self.upgrades.followers.get(placement).is_some_and(|all| all.contains(key)))
            };
            if settings.has_selector() || has_part() || is_selected() {
                queues.mark_upgrade_on(key, &name);
            }
        }
    }

    /// Has the upgrades look at a cluster again if its change makes a difference to them.
    pub(crate) fn mark_upgrades(&self, change: &Change<ManagedCluster>, queues: &Queues) {
        if !matches!((&change.old, &change.new), (Some(old), Some(new)) if is_upgraded_the_same(old, new)) {
            self.mark_upgrades_on(&change.key.name, queues);
        }
    }

    /// Takes note of a change of what has that name on a cluster.
    fn part_changed(&mut self, part_name: &str, cluster: &ClusterName, queues: &Queues) {
        let has_record = self.upgrades.record(part_name, cluster).is_some();
        let is_there = has_record || !self.upgrade_works(part_name, cluster).is_empty();
        self.upgrades.sort(part_name, cluster, is_there);
        if let Some(upgrade) = self.upgrades.named.get(part_name).cloned() {
            queues.mark_upgrade_on(&upgrade, cluster);
        }
    }
}

impl Cache {
    /// Has the upgrades that a work was and is of look at its cluster.
    pub(crate) fn upgrade_work_changed(&mut self, change: &Change<CachedWork>, queues: &Queues) {
        let cluster = ClusterName::from(&*change.key.namespace);
        let names = [&change.old, &change.new]
            .map(|work| work.as_ref().and_then(|work| work.upgrade.as_ref()).map(|work| work.part_name().to_owned()));
        let is_gone = names[0].is_some() && names[1].is_none();
        for name in names.into_iter().flatten().collect::<BTreeSet<_>>() {
            self.part_changed(&name, &cluster, queues);
        }
        if is_gone {
            // Others may have waited for it to be gone.
            self.mark_upgrades_on(cluster.as_str(), queues);
        }
    }
}

impl Queues {
    /// Enqueues an upgrade because one of its clusters has changed.
    fn mark_upgrade_on(&self, upgrade: &ObjectKey, cluster: &ClusterName) {
        self.upgrades.mark_with(upgrade.clone(), Dirty::member(cluster));
    }
}

impl Tracks<ManagedClustersUpgrade> for Cache {
    fn store(&mut self) -> &mut Store<ManagedClustersUpgrade> {
        &mut self.upgrades.objects
    }

    fn changed(&mut self, change: &Change<ManagedClustersUpgrade>, queues: &Queues) {
        self.upgrades.relist(change);
        queues.upgrades.mark(change.key.clone());
        if change.new.is_none() {
            // Whoever waits for its clusters may go on.
            for key in self.upgrades.settings.keys() {
                queues.upgrades.mark_with(key.clone(), Dirty::All);
            }
        }
    }
}

impl Tracks<ClusterUpgrade> for Cache {
    fn store(&mut self) -> &mut Store<ClusterUpgrade> {
        &mut self.upgrades.records
    }

    fn changed(&mut self, change: &Change<ClusterUpgrade>, queues: &Queues) {
        self.part_changed(&change.key.name, &ClusterName::from(&*change.key.namespace), queues);
    }
}
