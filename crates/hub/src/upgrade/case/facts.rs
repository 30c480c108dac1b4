//! What is known of one cluster of an upgrade.

use drover_api::{
    cluster::ManagedCluster,
    drover::ClusterUpgrade,
    names::{CLUSTER_AVAILABLE, LOCAL_CLUSTER_LABEL, UPGRADE_PRIORITY_LABEL, UPGRADED_BY_ANNOTATION, VERSION_CLAIM},
    reference::ClusterName,
};
use drover_engine::{
    placement::sets::Reach as SetsInReach,
    presence::Unselected,
    upgrade::{
        member::{Cluster, Membership, Owner, Reach},
        plan::Turn,
        selection::{Departure, departure},
    },
};
use drover_runtime::store::ObjectKey;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::Case;
use crate::upgrade::book::Pages;

impl Case<'_> {
    pub(super) fn record(&self, cluster: &ClusterName) -> Option<&ClusterUpgrade> {
        self.cache.upgrades.record(&self.blueprint.part_name, cluster)
    }

    /// A cluster that is there and stays.
    fn staying(&self, cluster: &ClusterName) -> Option<&ManagedCluster> {
        self.cache.cluster(cluster).map(|found| &**found).filter(|found| found.metadata.deletion_timestamp.is_none())
    }

    /// What is known of a cluster, unless it is gone or goes.
    pub(super) fn known(&self, cluster: &ClusterName) -> Option<Cluster> {
        let found = self.staying(cluster)?;
        let claims = found.status.iter().flat_map(|status| &status.cluster_claims);
        let version = claims.filter(|claim| claim.name == VERSION_CLAIM).map(|claim| claim.value.clone()).next();
        Some(Cluster {
            uid: found.metadata.uid.clone(),
            reach: self.reach_of(cluster, found),
            takes_works: self.cache.takes_works(cluster),
            version: version.filter(|version| !version.is_empty()),
            owner: self.owner(cluster, found),
            is_hub: is_hub(found),
        })
    }

    fn reach_of(&self, cluster: &ClusterName, found: &ManagedCluster) -> Reach {
        if self.cache.is_online(cluster) {
            return Reach::Online;
        }
        let mut conditions = found.status.iter().flat_map(|status| &status.conditions);
        let said = conditions.find(|condition| condition.type_ == CLUSTER_AVAILABLE);
        Reach::Offline { since: said.map(|condition| condition.last_transition_time.0) }
    }

    /// Whose a cluster is. What names an upgrade that there is none of says nothing.
    fn owner(&self, cluster: &ClusterName, found: &ManagedCluster) -> Owner {
        if let Some(rival) = self.cache.upgrades.rival(&self.blueprint.part_name, cluster) {
            return Owner::Other(rival);
        }
        match found.annotations().get(UPGRADED_BY_ANNOTATION) {
            Some(owner) if *owner == self.blueprint.owner => Owner::Us,
            Some(owner) if self.is_upgrade(owner) => Owner::Other(owner.clone()),
            Some(_) | None => Owner::Nobody,
        }
    }

    fn is_upgrade(&self, owner: &str) -> bool {
        let key = owner.split_once('/').map(|(namespace, name)| ObjectKey::namespaced(namespace, name));
        key.is_some_and(|key| self.cache.upgrades.objects.has(&key))
    }

    pub(super) fn turn(&self, cluster: &ClusterName) -> Turn {
        let found = self.staying(cluster);
        let priority = found.and_then(|found| found.labels().get(UPGRADE_PRIORITY_LABEL)?.parse().ok()).unwrap_or(0);
        let uid = found.and_then(|found| found.metadata.uid.as_deref());
        let turn = Turn::of(cluster, uid, &self.blueprint.part_name, priority, found.is_some_and(is_hub));
        turn.given(self.record(cluster))
    }

    /// Whether a cluster is one of those that are upgraded, and when that may change though nothing is heard.
    pub(super) fn membership(&self, cluster: &ClusterName, pages: &mut Pages) -> (Membership, Option<Timestamp>) {
        let (membership, wake) = self.judge(cluster, pages);
        if membership == Membership::Unsure {
            pages.unsure.insert(cluster.clone());
        } else {
            pages.unsure.remove(cluster);
        }
        (membership, wake)
    }

    fn judge(&self, cluster: &ClusterName, pages: &mut Pages) -> (Membership, Option<Timestamp>) {
        let is_selected = self.is_selected(cluster);
        let is_canary = self.is_canary(cluster);
        if is_canary && !is_selected && self.record(cluster).is_none() {
            pages.outside.insert(cluster.clone());
        } else {
            pages.outside.remove(cluster);
        }
        if is_selected {
            pages.tracker.absences.remove(cluster);
            return (Membership::In { is_canary }, None);
        }
        let Some(record) = self.record(cluster) else {
            pages.tracker.absences.remove(cluster);
            return (Membership::Out, None);
        };
        self.leaving(cluster, record, pages)
    }

    /// Whether a cluster that nothing selects is believed to be left out.
    fn leaving(
        &self,
        cluster: &ClusterName,
        record: &ClusterUpgrade,
        pages: &mut Pages,
    ) -> (Membership, Option<Timestamp>) {
        let is_clear = self.placements.iter().all(|listed| listed.decided.is_ok()) && self.blueprint.flaws.is_empty();
        if !is_clear {
            pages.tracker.absences.insert(cluster.clone(), None);
            return (Membership::Unsure, None);
        }
        let unselected = Unselected {
            cluster: self.cache.known_cluster(cluster),
            before: pages.tracker.absences.get(cluster).copied().flatten(),
            is_confirmed: pages.confirmed(self.is_confirmed()),
            keeps_clusters: self.cache.keeps_clusters,
        };
        let reach = self.known(cluster).map(|known| known.reach);
        match departure(&unselected, reach, record, self.now) {
            Departure::Sure => (Membership::Out, None),
            Departure::Unsure { known, again } => {
                pages.tracker.absences.insert(cluster.clone(), Some(known));
                (Membership::Unsure, again)
            }
        }
    }

    /// Whether all placements agree with their decisions on how many they select.
    pub(super) fn is_confirmed(&self) -> bool {
        *self.is_confirmed.get_or_init(|| {
            self.placements.iter().all(|listed| {
                let count = self.cache.count_selected_by(&listed.key);
                listed.decided.is_ok_and(|decided| decided.clusters == count)
            })
        })
    }

    /// Whether a placement selects a cluster, or the upgrade itself.
    pub(super) fn is_selected(&self, cluster: &ClusterName) -> bool {
        let Some(found) = self.staying(cluster) else { return false };
        let by = self.cache.selections.get(cluster);
        let is_placed = |key| by.is_some_and(|by| by.contains_key(key));
        let mut clear = self.placements.iter().filter(|listed| listed.decided.is_ok());
        clear.any(|listed| is_placed(&listed.key)) || self.is_matched(cluster, found)
    }

    fn is_matched(&self, cluster: &ClusterName, found: &ManagedCluster) -> bool {
        let (Some(selector), SetsInReach::Sets(sets)) = (&self.blueprint.selector, &self.reach) else { return false };
        sets.iter().any(|set| self.is_in_set(cluster, set)) && selector.matches(found)
    }

    fn is_in_set(&self, cluster: &ClusterName, set: &str) -> bool {
        self.cache.members.get(set).is_some_and(|members| members.clusters.contains(cluster))
    }

    /// Whether a cluster is one of the canaries. One that is not there any more is what it was, and the one on which the hub runs is the last of all.
    pub(super) fn is_canary(&self, cluster: &ClusterName) -> bool {
        let Some(found) = self.staying(cluster).filter(|_| self.is_selected(cluster) || self.record(cluster).is_none())
        else {
            return self.record(cluster).is_some_and(|record| record.spec.canary == Some(true));
        };
        let Some(canaries) = &self.blueprint.canaries else { return false };
        let is_in_sets = canaries.sets().is_empty() || canaries.sets().iter().any(|set| self.is_in_set(cluster, set));
        is_in_sets && canaries.matches(found) && !is_hub(found)
    }
}

/// Whether the hub runs on a cluster.
fn is_hub(cluster: &ManagedCluster) -> bool {
    cluster.labels().get(LOCAL_CLUSTER_LABEL).is_some_and(|value| value == "true")
}
