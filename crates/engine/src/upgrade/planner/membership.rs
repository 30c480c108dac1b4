//! What is known of one cluster of an upgrade: whether it is a member, a canary, and which upgrade owns
//! it.

use drover_api::{
    cluster::ManagedCluster,
    drover::ClusterUpgrade,
    names::{CLUSTER_AVAILABLE, LOCAL_CLUSTER_LABEL, UPGRADE_PRIORITY_LABEL, UPGRADED_BY_ANNOTATION, VERSION_CLAIM},
    reference::ClusterName,
};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::UpgradePlanner;
use crate::{
    cluster::conditions,
    placement::sets::Reach as SetsInReach,
    plan::ObjectKey,
    presence::Unselected,
    upgrade::{
        facts::UpgradeFacts,
        member::{Cluster, Membership, Owner, Reach},
        plan::Turn,
        selection::{Departure, departure},
        state::UpgradeState,
    },
};

impl<F: UpgradeFacts> UpgradePlanner<'_, F> {
    pub(super) fn record(&self, cluster: &ClusterName) -> Option<&ClusterUpgrade> {
        self.facts.record(&self.settings.part_name, cluster)
    }

    /// What is known of a cluster, unless it is gone or goes.
    pub(super) fn known(&self, cluster: &ClusterName) -> Option<Cluster> {
        let found = self.facts.staying_cluster(cluster)?;
        let claims = found.status.iter().flat_map(|status| &status.cluster_claims);
        let version = claims.filter(|claim| claim.name == VERSION_CLAIM).map(|claim| claim.value.clone()).next();
        Some(Cluster {
            uid: found.metadata.uid.clone(),
            reach: self.reach_of(cluster, found),
            takes_works: self.facts.takes_works(cluster),
            version: version.filter(|version| !version.is_empty()),
            owner: self.owner(cluster, found),
            is_hub: is_hub(found),
        })
    }

    fn reach_of(&self, cluster: &ClusterName, found: &ManagedCluster) -> Reach {
        if self.facts.is_online(cluster) {
            return Reach::Online;
        }
        let said = conditions(found).iter().find(|condition| condition.type_ == CLUSTER_AVAILABLE);
        Reach::Offline { since: said.map(|condition| condition.last_transition_time.0) }
    }

    /// Which upgrade owns a cluster. An annotation that names an upgrade that does not exist says nothing.
    fn owner(&self, cluster: &ClusterName, found: &ManagedCluster) -> Owner {
        if let Some(rival) = self.facts.rival(&self.settings.part_name, cluster) {
            return Owner::Other(rival);
        }
        match found.annotations().get(UPGRADED_BY_ANNOTATION) {
            Some(owner) if *owner == self.settings.owner => Owner::Us,
            Some(owner) if self.is_upgrade(owner) => Owner::Other(owner.clone()),
            Some(_) | None => Owner::Nobody,
        }
    }

    fn is_upgrade(&self, owner: &str) -> bool {
        let key = owner.split_once('/').map(|(namespace, name)| ObjectKey::namespaced(namespace, name));
        key.is_some_and(|key| self.facts.has_upgrade(&key))
    }

    pub(super) fn turn(&self, cluster: &ClusterName) -> Turn {
        let found = self.facts.staying_cluster(cluster);
        let priority = found.and_then(|found| found.labels().get(UPGRADE_PRIORITY_LABEL)?.parse().ok()).unwrap_or(0);
        let uid = found.and_then(|found| found.metadata.uid.as_deref());
        let turn = Turn::of(cluster, uid, &self.settings.part_name, priority, found.is_some_and(is_hub));
        turn.given(self.record(cluster))
    }

    /// Whether a cluster is one of those that are upgraded, and when that may change without an event.
    pub(super) fn membership(
        &self,
        cluster: &ClusterName,
        state: &mut UpgradeState,
    ) -> (Membership, Option<Timestamp>) {
        let (membership, wake) = self.judge(cluster, state);
        if membership == Membership::Unsure {
            state.unsure.insert(cluster.clone());
        } else {
            state.unsure.remove(cluster);
        }
        (membership, wake)
    }

    fn judge(&self, cluster: &ClusterName, state: &mut UpgradeState) -> (Membership, Option<Timestamp>) {
        let is_selected = self.is_selected(cluster);
        let is_canary = self.is_canary(cluster);
        if is_canary && !is_selected && self.record(cluster).is_none() {
            state.outside.insert(cluster.clone());
        } else {
            state.outside.remove(cluster);
        }
        if is_selected {
            state.tracker.absences.remove(cluster);
            return (Membership::In { is_canary }, None);
        }
        let Some(record) = self.record(cluster) else {
            state.tracker.absences.remove(cluster);
            return (Membership::Out, None);
        };
        self.leaving(cluster, record, state)
    }

    /// Whether a cluster that nothing selects is believed to be left out.
    fn leaving(
        &self,
        cluster: &ClusterName,
        record: &ClusterUpgrade,
        state: &mut UpgradeState,
    ) -> (Membership, Option<Timestamp>) {
        let is_clear = self.placements.iter().all(|listed| listed.decided.is_ok()) && self.settings.flaws.is_empty();
        if !is_clear {
            state.tracker.absences.insert(cluster.clone(), None);
            return (Membership::Unsure, None);
        }
        let unselected = Unselected {
            cluster: self.facts.cluster(cluster),
            before: state.tracker.absences.get(cluster).copied().flatten(),
            is_confirmed: state.confirmed(self.is_confirmed()),
            keeps_clusters: self.facts.keeps_clusters(),
        };
        let reach = self.known(cluster).map(|known| known.reach);
        match departure(&unselected, reach, record, self.now) {
            Departure::Sure => (Membership::Out, None),
            Departure::Unsure { known, again } => {
                state.tracker.absences.insert(cluster.clone(), Some(known));
                (Membership::Unsure, again)
            }
        }
    }

    /// Whether all placements agree with their decisions on how many they select.
    pub(super) fn is_confirmed(&self) -> bool {
        *self.is_confirmed.get_or_init(|| {
            self.placements.iter().all(|listed| {
                let count = self.facts.count_selected_by(&listed.key);
                listed.decided.is_ok_and(|decided| decided.clusters == count)
            })
        })
    }

    /// Whether a placement selects a cluster, or the upgrade itself.
    pub(super) fn is_selected(&self, cluster: &ClusterName) -> bool {
        let Some(found) = self.facts.staying_cluster(cluster) else { return false };
        let mut clear = self.placements.iter().filter(|listed| listed.decided.is_ok());
        clear.any(|listed| self.facts.is_selected_by(cluster, &listed.key)) || self.is_matched(cluster, found)
    }

    fn is_matched(&self, cluster: &ClusterName, found: &ManagedCluster) -> bool {
        let (Some(selector), SetsInReach::Sets(sets)) = (&self.settings.selector, &self.reach) else { return false };
        sets.iter().any(|set| self.facts.is_in_set(cluster, set)) && selector.matches(found)
    }

    /// Whether a cluster is one of the canaries. One that does not exist any more is what it was, and the
    /// one on which the hub runs is the last of all.
    pub(super) fn is_canary(&self, cluster: &ClusterName) -> bool {
        let Some(found) =
            self.facts.staying_cluster(cluster).filter(|_| self.is_selected(cluster) || self.record(cluster).is_none())
        else {
            return self.record(cluster).is_some_and(|record| record.spec.canary == Some(true));
        };
        let Some(canaries) = &self.settings.canaries else { return false };
        let is_in_sets =
            canaries.sets().is_empty() || canaries.sets().iter().any(|set| self.facts.is_in_set(cluster, set));
        is_in_sets && canaries.matches(found) && !is_hub(found)
    }
}

/// Whether the hub runs on a cluster.
fn is_hub(cluster: &ManagedCluster) -> bool {
    cluster.labels().get(LOCAL_CLUSTER_LABEL).is_some_and(|value| value == "true")
}
