//! When members are observed again although nothing has changed.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::reference::ClusterName;
use k8s_openapi::jiff::Timestamp;

/// The wake-up times of members.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    by_time: BTreeSet<(Timestamp, ClusterName)>,
    of: BTreeMap<ClusterName, Timestamp>,
}

impl Wakes {
    /// Replaces the time of a member.
    pub(super) fn set(&mut self, cluster: &ClusterName, time: Option<Timestamp>) {
        if let Some(former) = self.of.remove(cluster) {
            self.by_time.remove(&(former, cluster.clone()));
        }
        if let Some(time) = time {
            self.by_time.insert((time, cluster.clone()));
            self.of.insert(cluster.clone(), time);
        }
    }

    /// The members whose time has come.
    pub(super) fn due(&self, now: Timestamp) -> impl Iterator<Item = &ClusterName> {
        self.by_time.iter().take_while(move |(time, _)| *time <= now).map(|(_, cluster)| cluster)
    }

    /// The first time.
    pub(super) fn first(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(time, _)| *time)
    }
}
