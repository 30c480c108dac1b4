//! The sets of works that there are, where their works are, and whom a change of them concerns.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{cluster::ManagedCluster, reference::ClusterName, work::ManifestWorkReplicaSet};
use drover_engine::{
    presence::{answers_the_same, is_as_reachable},
    tracker::Dirty,
    work::replica_set::{WorkTemplate, placed_work::PlacedWork},
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

/// The sets of works that there are, and their works.
#[derive(Default)]
pub(crate) struct WorkSets {
    pub(super) sets: Store<ManifestWorkReplicaSet>,
    /// The works of each set, by cluster.
    works_of: BTreeMap<ObjectKey, BTreeMap<ClusterName, BTreeSet<ObjectKey>>>,
    /// The sets that list a placement.
    followers: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// The template of each set.
    pub(super) templates: BTreeMap<ObjectKey, WorkTemplate>,
}

impl WorkSets {
    /// The clusters on which a set has works.
    pub(super) fn clusters_of(&self, set: &ObjectKey) -> impl Iterator<Item = &ClusterName> {
        self.works_of.get(set).into_iter().flat_map(BTreeMap::keys)
    }

    /// Takes note of whose a work is now, and returns whom that concerns.
    fn sort(&mut self, change: &Change<CachedWork>) -> BTreeSet<ObjectKey> {
        let cluster = ClusterName::from(&*change.key.namespace);
        let [old, new] = [&change.old, &change.new]
            .map(|work| work.as_ref().and_then(|work| work.placed.as_ref()).map(|work| work.set().clone()));
        if let Some(old) = &old
            && let Some(works) = self.works_of.get_mut(old)
        {
            remove_from(works, &cluster, &change.key);
            if works.is_empty() {
                self.works_of.remove(old);
            }
        }
        if let Some(new) = &new {
            let works = self.works_of.entry(new.clone()).or_default();
            works.entry(cluster).or_default().insert(change.key.clone());
        }
        old.into_iter().chain(new).collect()
    }

    /// Takes note of what a set asks for now.
    fn relist(&mut self, change: &Change<ManifestWorkReplicaSet>) {
        if let (Some(old), Some(new)) = (&change.old, &change.new)
            && old.spec == new.spec
        {
            return;
        }
        for placement in change.old.iter().flat_map(|set| placements_of(set)) {
            remove_from(&mut self.followers, &placement, &change.key);
        }
        let Some(set) = &change.new else {
            self.templates.remove(&change.key);
            return;
        };
        self.templates.insert(change.key.clone(), WorkTemplate::of(set));
        for placement in placements_of(set) {
            self.followers.entry(placement).or_default().insert(change.key.clone());
        }
    }
}

/// The placements that a set lists, which are in its own namespace.
fn placements_of(set: &ManifestWorkReplicaSet) -> BTreeSet<ObjectKey> {
    let namespace = set.namespace().unwrap_or_default();
    set.spec.placement_refs.iter().map(|placement| ObjectKey::namespaced(&namespace, &placement.name)).collect()
}

/// Whether a cluster can have works as before, and answers as before.
fn takes_works_the_same(one: &ManagedCluster, other: &ManagedCluster) -> bool {
    let (meta, other_meta) = (one.meta(), other.meta());
    one.spec.hub_accepts_client == other.spec.hub_accepts_client
        && meta.uid == other_meta.uid
        && meta.deletion_timestamp.is_some() == other_meta.deletion_timestamp.is_some()
        && answers_the_same(one, other)
        && is_as_reachable(one, other)
}

impl Cache {
    /// The works of a set on a cluster.
    pub(super) fn placed_works_on(&self, set: &ObjectKey, cluster: &ClusterName) -> impl Iterator<Item = &PlacedWork> {
        let works = self.work_sets.works_of.get(set).and_then(|works| works.get(cluster));
        works.into_iter().flatten().filter_map(|work| self.works.get(work)?.placed.as_deref())
    }

    /// All works of a set.
    pub(super) fn placed_works_of(&self, set: &ObjectKey) -> impl Iterator<Item = &PlacedWork> {
        let works = self.work_sets.works_of.get(set).into_iter().flat_map(BTreeMap::values).flatten();
        works.filter_map(|work| self.works.get(work)?.placed.as_deref())
    }

    /// Takes note of whose a work is now, and has the sets that it was and is of look at its
    /// cluster.
    pub(crate) fn placed_work_changed(&mut self, change: &Change<CachedWork>, queues: &Queues) {
        let cluster = ClusterName::from(&*change.key.namespace);
        for set in self.work_sets.sort(change) {
            queues.work_sets.mark_with(set, Dirty::member(&cluster));
        }
    }

    /// Marks the sets that list a placement.
    pub(crate) fn mark_work_sets_of(&self, placement: &ObjectKey, queues: &Queues) {
        for set in self.work_sets.followers.get(placement).into_iter().flatten() {
            queues.work_sets.mark(set.clone());
        }
    }

    /// Has the sets that list a placement look at a cluster again, which it selects now or has selected.
    pub(crate) fn look_again_at_work(&self, placement: &ObjectKey, cluster: &ClusterName, queues: &Queues) {
        for set in self.work_sets.followers.get(placement).into_iter().flatten() {
            queues.work_sets.mark_with(set.clone(), Dirty::member(cluster));
        }
    }

    /// Has the sets look at a cluster again that have works there, or may have.
    pub(crate) fn mark_work_sets_on(&self, cluster: &str, queues: &Queues) {
        let with_works =
            self.works.in_namespace(cluster).filter_map(|(_, work)| Some(work.placed.as_ref()?.set().clone()));
        let selected_by = self.selections.get(cluster).into_iter().flat_map(BTreeMap::keys);
        let selecting = selected_by.filter_map(|placement| self.work_sets.followers.get(placement)).flatten().cloned();
        for set in with_works.chain(selecting).collect::<BTreeSet<_>>() {
            queues.work_sets.mark_with(set, Dirty::member(&ClusterName::from(cluster)));
        }
    }

    /// Has the sets look at a cluster again if its change makes a difference to works.
    pub(crate) fn mark_work_sets(&self, change: &Change<ManagedCluster>, queues: &Queues) {
        if !matches!((&change.old, &change.new), (Some(old), Some(new)) if takes_works_the_same(old, new)) {
            self.mark_work_sets_on(&change.key.name, queues);
        }
    }
}

impl Tracks<ManifestWorkReplicaSet> for Cache {
    fn store(&mut self) -> &mut Store<ManifestWorkReplicaSet> {
        &mut self.work_sets.sets
    }

    fn changed(&mut self, change: &Change<ManifestWorkReplicaSet>, queues: &Queues) {
        self.work_sets.relist(change);
        queues.work_sets.mark(change.key.clone());
    }
}
