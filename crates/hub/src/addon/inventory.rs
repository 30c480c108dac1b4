//! The add-ons that there are, the clusters that they are on, and whom a change of them concerns.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use drover_api::{
    addon::{AddOnHubConfig, ClusterManagementAddOn, InstallStrategyType, ManagedClusterAddOn, PlacementStrategy},
    cluster::{ManagedCluster, Placement},
    reference::{ClusterName, PlacementRef},
};
use drover_engine::{
    addon::{
        configuration::asks_for_something,
        inheritance::{is_managed, passes_on_the_same, strategy},
        install::Choice,
        invalid_status::with_invalid_status,
    },
    cluster::marks::Feature,
    presence::{answers_the_same, is_as_reachable},
    revision::Set,
    rollout::Snapshot,
    template::has_the_same_registries,
    tracker::Dirty,
};
use drover_runtime::{
    cache::Tracks,
    decode::Damaged,
    store::{Change, ObjectKey, Store},
};
use kube::{Resource, ResourceExt};

use super::render_cache::RenderCache;
use crate::cache::{Cache, Queues, remove_from};

/// The add-ons that there are, and the clusters that they are on.
#[derive(Default)]
pub(crate) struct Inventory {
    pub(crate) cmas: Store<ClusterManagementAddOn>,
    pub(crate) mcas: Store<ManagedClusterAddOn>,
    /// The configurations that ask for a version.
    pub(super) hub_configs: Store<AddOnHubConfig>,
    /// The works of each add-on on a cluster, in whichever namespace.
    pub(super) works_of: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// What the rollout controller has last planned for each add-on.
    snapshots: BTreeMap<ObjectKey, Arc<Snapshot<Set>>>,
    /// Where each add-on is, by its name.
    on_clusters: BTreeMap<Arc<str>, BTreeSet<ObjectKey>>,
    /// Where each add-on has something of its own that a user has asked for there, by its name.
    own_ways: BTreeMap<Arc<str>, BTreeSet<ObjectKey>>,
    /// How the clusters of each add-on are chosen.
    choices: BTreeMap<ObjectKey, Choice>,
    /// The add-ons that list a placement, or wait for its clusters.
    followers: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Renders works from templates.
    pub(crate) render_cache: RenderCache,
}

/// The key of a placement that an add-on names.
pub(crate) fn placement_key(placement: &PlacementRef) -> ObjectKey {
    ObjectKey::namespaced(&placement.namespace, &placement.name)
}

impl Inventory {
    /// Where an add-on is.
    pub(crate) fn on_clusters(&self, addon: &str) -> impl Iterator<Item = &ObjectKey> {
        self.on_clusters.get(addon).into_iter().flatten()
    }

    /// How the clusters of an add-on are chosen, if it can be read.
    pub(crate) fn choice(&self, addon: &ObjectKey) -> Option<&Choice> {
        self.choices.get(addon)
    }

    /// What the rollout controller has last planned for an add-on; nothing before its first plan.
    pub(super) fn snapshot(&self, addon: &ObjectKey) -> Option<&Snapshot<Set>> {
        self.snapshots.get(addon).map(|snapshot| &**snapshot)
    }

    /// Replaces that.
    pub(super) fn publish(&mut self, addon: ObjectKey, snapshot: Option<Snapshot<Set>>) {
        match snapshot {
            Some(snapshot) => drop(self.snapshots.insert(addon, Arc::new(snapshot))),
            None => drop(self.snapshots.remove(&addon)),
        }
    }

    /// Takes note of an add-on's strategy as it is now.
    fn relist(&mut self, change: &Change<ClusterManagementAddOn>) {
        for placement in change.old.iter().flat_map(|addon| placements_of(addon)) {
            remove_from(&mut self.followers, &placement, &change.key);
        }
        self.choices.remove(&change.key);
        let Some(addon) = &change.new else {
            return;
        };
        for placement in placements_of(addon) {
            self.followers.entry(placement).or_default().insert(change.key.clone());
        }
        self.choices.insert(change.key.clone(), Choice::of(addon));
    }

    /// Takes note of where an add-on is now.
    fn find(&mut self, change: &Change<ManagedClusterAddOn>) {
        let name = &change.key.name;
        if change.new.is_some() {
            self.on_clusters.entry(Arc::clone(name)).or_default().insert(change.key.clone());
        } else {
            remove_from(&mut self.on_clusters, name, &change.key);
        }
        if change.new.as_deref().is_some_and(asks_for_something) {
            self.own_ways.entry(Arc::clone(name)).or_default().insert(change.key.clone());
        } else {
            remove_from(&mut self.own_ways, name, &change.key);
        }
    }

    /// The add-ons that choose clusters by labels.
    fn by_labels(&self) -> impl Iterator<Item = (&ObjectKey, &Choice)> {
        self.choices.iter().filter(|(_, choice)| matches!(choice, Choice::ByLabels(_)))
    }
}

/// The entries of an add-on's list, if it is installed by placements.
fn listed(addon: &ClusterManagementAddOn) -> &[PlacementStrategy] {
    let strategy = addon.spec.install_strategy.as_ref();
    let strategy = strategy.filter(|strategy| strategy.kind == InstallStrategyType::Placements);
    strategy.map_or(&[], |strategy| &strategy.placements)
}

/// The placements that an add-on lists, and those whose clusters it waits for.
fn placements_of(addon: &ClusterManagementAddOn) -> BTreeSet<ObjectKey> {
    let canaries = |entry: &PlacementStrategy| {
        let gated = entry.rollout_strategy.as_ref()?.rolling_update_with_canary.as_ref()?;
        Some(placement_key(&gated.placement))
    };
    let listed = listed(addon);
    listed.iter().map(|entry| placement_key(&entry.placement)).chain(listed.iter().filter_map(canaries)).collect()
}

/// Whether an object was there and still is, and `is_same` says that nothing has changed.
fn stays<K>(change: &Change<K>, is_same: impl FnOnce(&K, &K) -> bool) -> bool {
    matches!((&change.old, &change.new), (Some(old), Some(new)) if is_same(old, new))
}

/// Whether a placement says the same of its decision.
fn decides_the_same(one: &Placement, other: &Placement) -> bool {
    let decided = |placement: &Placement| placement.status.as_ref().map(|status| status.number_of_selected_clusters);
    let groups = |placement: &Placement| placement.status.clone().map(|status| status.decision_groups);
    let going = |placement: &Placement| placement.metadata.deletion_timestamp.is_some();
    decided(one) == decided(other) && groups(one) == groups(other) && going(one) == going(other)
}

/// Whether an add-on is meant in the same way.
fn asks_the_same(one: &ClusterManagementAddOn, other: &ClusterManagementAddOn) -> bool {
    one.spec == other.spec && one.meta().annotations == other.meta().annotations && is_same_object(one, other)
}

/// Whether an add-on has the same for those on clusters.
fn owns_the_same(one: &ClusterManagementAddOn, other: &ClusterManagementAddOn) -> bool {
    let is_same_strategy = strategy(one) == strategy(other) && assigning(one) == assigning(other);
    is_same_strategy && is_managed(one) == is_managed(other) && is_same_object(one, other)
}

/// The placements that assign a version to the add-ons on their clusters.
fn assigning(addon: &ClusterManagementAddOn) -> BTreeSet<&PlacementRef> {
    let asks = |entry: &&PlacementStrategy| entry.addon_template.as_ref().is_some_and(|it| it.version().is_some());
    listed(addon).iter().filter(asks).map(|entry| &entry.placement).collect()
}

/// Whether these are states of one object, which is on its way out in both or in none.
fn is_same_object<K: Resource>(one: &K, other: &K) -> bool {
    let (one, other) = (one.meta(), other.meta());
    one.uid == other.uid && one.deletion_timestamp.is_some() == other.deletion_timestamp.is_some()
}

/// Whether a cluster may have add-ons as before.
fn takes_part_the_same(one: &ManagedCluster, other: &ManagedCluster) -> bool {
    one.spec.hub_accepts_client == other.spec.hub_accepts_client && is_same_object(one, other)
}

impl Cache {
    /// Whether one of the placements that an add-on lists, or its labels, choose a cluster.
    fn chooses(&self, addon: &ObjectKey, cluster: &str) -> bool {
        let selected_by = self.selections.get(cluster);
        let is_selected =
            |entry: &PlacementStrategy| selected_by.is_some_and(|by| by.contains_key(&placement_key(&entry.placement)));
        let is_listed = self.addons.cmas.get(addon).is_some_and(|addon| listed(addon).iter().any(is_selected));
        let (cluster, choice) = (self.cluster(&ClusterName::from(cluster)), self.addons.choice(addon));
        is_listed || cluster.zip(choice).is_some_and(|(cluster, choice)| choice.takes(cluster))
    }

    /// Marks the add-ons that list a placement, or wait for its clusters.
    pub(crate) fn mark_followers(&self, placement: &ObjectKey, queues: &Queues) {
        for addon in self.addons.followers.get(placement).into_iter().flatten() {
            queues.installs.mark(addon.clone());
            queues.rollouts.mark(addon.clone());
        }
    }

    /// Marks whoever goes by what a placement says of its decision.
    pub(crate) fn mark_followers_of(&self, change: &Change<Placement>, queues: &Queues) {
        if !stays(change, decides_the_same) {
            self.mark_followers(&change.key, queues);
        }
    }

    /// Marks the add-ons that may come to a cluster, or leave it.
    pub(crate) fn mark_installs_on(&self, cluster: &str, queues: &Queues) {
        for (addon, _) in self.addons.mcas.in_namespace(cluster) {
            queues.installs.mark(ObjectKey::cluster_wide(&addon.name));
        }
        let selected_by = self.selections.get(cluster).into_iter().flat_map(BTreeMap::keys);
        for addon in selected_by.filter_map(|placement| self.addons.followers.get(placement)).flatten() {
            queues.installs.mark(addon.clone());
        }
        if let Some(cluster) = self.cluster(&ClusterName::from(cluster)) {
            for (addon, _) in self.addons.by_labels().filter(|(_, choice)| choice.takes(cluster)) {
                queues.installs.mark(addon.clone());
            }
        }
    }

    /// Marks the add-ons that a cluster's change concerns.
    pub(crate) fn mark_addons(&self, change: &Change<ManagedCluster>, queues: &Queues) {
        let name = &*change.key.name;
        let says_the_same = |old: &ManagedCluster, new: &ManagedCluster| {
            passes_on_the_same(old, new) && is_as_reachable(old, new) && has_the_same_registries(old, new)
        };
        if !stays(change, says_the_same) {
            for (addon, _) in self.addons.mcas.in_namespace(name) {
                queues.addons.mark(addon.clone());
            }
        }
        if !stays(change, takes_part_the_same) {
            // Who is shut out keeps nothing, and who is let in again gets it back.
            for (addon, _) in self.addons.mcas.in_namespace(name) {
                queues.addons.mark(addon.clone());
                queues.permissions.mark(addon.clone());
            }
            self.mark_installs_on(name, queues);
            self.mark_rollouts_on(name, queues);
        } else if !stays(change, answers_the_same) {
            self.mark_unchosen(name, queues);
            self.mark_rollouts_on(name, queues);
        }
        for (addon, choice) in self.addons.by_labels() {
            let takes = |cluster: &Option<Arc<ManagedCluster>>| cluster.as_ref().is_some_and(|it| choice.takes(it));
            if takes(&change.old) != takes(&change.new) {
                queues.installs.mark(addon.clone());
            }
        }
    }

    /// Marks the add-ons that are on a cluster although nothing chooses it: they may wait for it to answer.
    fn mark_unchosen(&self, cluster: &str, queues: &Queues) {
        let there = self.addons.mcas.in_namespace(cluster).map(|(key, _)| ObjectKey::cluster_wide(&key.name));
        for addon in there.filter(|addon| !self.chooses(addon, cluster)) {
            queues.installs.mark(addon);
        }
    }

    /// Marks the cluster of an add-on that has come, gone, or is otherwise than before, because the cluster has a label that says so.
    fn mark_featured(&self, change: &Change<ManagedClusterAddOn>, queues: &Queues) {
        let feature = |addon: &Option<Arc<ManagedClusterAddOn>>| addon.as_deref().and_then(Feature::of);
        let cluster = ObjectKey::cluster_wide(&change.key.namespace);
        if feature(&change.old) != feature(&change.new) && self.clusters.has(&cluster) {
            queues.clusters.mark(cluster);
        }
    }

    /// Marks the add-ons, because it is known now which versions there are, or not known any more.
    pub(crate) fn mark_all_versions(&self, queues: &Queues) {
        for (addon, _) in self.addons.cmas.iter() {
            self.mark_versions_of(&addon.name, queues);
        }
    }

    /// Marks whoever goes by the versions of an add-on.
    pub(crate) fn mark_versions_of(&self, addon: &str, queues: &Queues) {
        queues.rollouts.mark(ObjectKey::cluster_wide(addon));
        self.configs.mark_hub_configs_of(addon, queues);
        self.mark_own_ways(addon, queues);
    }

    /// Has the add-ons looked at again that have something of their own, because there are other versions now, or other templates of them.
    fn mark_own_ways(&self, addon: &str, queues: &Queues) {
        for on_cluster in self.addons.own_ways.get(addon).into_iter().flatten() {
            queues.mark_overridden(on_cluster);
        }
    }

    fn mark_rollouts_on(&self, cluster: &str, queues: &Queues) {
        for (addon, _) in self.addons.mcas.in_namespace(cluster) {
            let addon = ObjectKey::cluster_wide(&addon.name);
            queues.rollouts.mark_with(addon, Dirty::member(&ClusterName::from(cluster)));
        }
    }

    /// Has the rollouts that go by a placement look at a cluster again, which it selects now or has selected.
    pub(crate) fn look_again_at_member(&self, placement: &ObjectKey, cluster: &ClusterName, queues: &Queues) {
        for addon in self.addons.followers.get(placement).into_iter().flatten() {
            queues.rollouts.mark_with(addon.clone(), Dirty::member(cluster));
        }
    }

    /// Whether a cluster is there and on its way out.
    fn is_leaving(&self, cluster: &str) -> bool {
        let cluster = self.cluster(&ClusterName::from(cluster));
        cluster.is_some_and(|cluster| cluster.meta().deletion_timestamp.is_some())
    }
}

impl Queues {
    /// Enqueues an add-on on a cluster, because something that a user overrides there has changed.
    pub(crate) fn mark_overridden(&self, on_cluster: &ObjectKey) {
        self.addons.mark(on_cluster.clone());
        // What a canary runs instead of the target may be the target now, and an override may be valid now.
        let addon = ObjectKey::cluster_wide(&on_cluster.name);
        self.rollouts.mark_with(addon, Dirty::member(&ClusterName::from(&*on_cluster.namespace)));
    }
}

impl Tracks<ClusterManagementAddOn> for Cache {
    fn store(&mut self) -> &mut Store<ClusterManagementAddOn> {
        &mut self.addons.cmas
    }

    fn changed(&mut self, change: &Change<ClusterManagementAddOn>, queues: &Queues) {
        self.configs.cma_changed(change, queues);
        if !stays(change, asks_the_same) {
            self.addons.relist(change);
            self.configs.mark_hub_configs_of(&change.key.name, queues);
            self.mark_own_ways(&change.key.name, queues);
            queues.installs.mark(change.key.clone());
        }
        queues.rollouts.mark(change.key.clone());
        if !stays(change, owns_the_same) {
            for on_cluster in self.addons.on_clusters(&change.key.name) {
                queues.addons.mark(on_cluster.clone());
            }
        }
    }
}

impl Tracks<ManagedClusterAddOn> for Cache {
    fn store(&mut self) -> &mut Store<ManagedClusterAddOn> {
        &mut self.addons.mcas
    }

    fn salvage(damaged: &Damaged<ManagedClusterAddOn>) -> Option<ManagedClusterAddOn> {
        Some(with_invalid_status(damaged.without_defects()?, &damaged.defect.to_string()))
    }

    fn changed(&mut self, change: &Change<ManagedClusterAddOn>, queues: &Queues) {
        self.configs.mca_changed(change, queues);
        self.mark_leaving(&change.key.namespace, queues);
        self.mark_featured(change, queues);
        self.addons.find(change);
        // One that is gone leaves something behind.
        queues.addons.mark(change.key.clone());
        queues.mark_token_user(change);
        self.mark_requests_of(change, queues);
        let addon = ObjectKey::cluster_wide(&change.key.name);
        // What an add-on says of itself changes nothing about where it is.
        if !stays(change, |old, new| old.annotations() == new.annotations() && is_same_object(old, new)) {
            queues.installs.mark(addon.clone());
        }
        queues.rollouts.mark_with(addon, Dirty::member(&ClusterName::from(&*change.key.namespace)));
        // The next may have its turn.
        if change.new.is_none() && self.is_leaving(&change.key.namespace) {
            self.mark_installs_on(&change.key.namespace, queues);
        }
    }
}

#[cfg(test)]
mod tests;
