//! What other controllers read of rollouts: an immutable view of one plan.

use std::sync::Arc;

use drover_api::reference::ClusterName;
use rpds::HashTrieMapSync;

use super::{Course, Entry, PlacementBlockers, Revision, Standing};
use crate::member::MemberState;

/// Which entry decides for each cluster, and how the cluster stands there. A copy shares its
/// structure with the original, so that publishing it costs what has changed since.
pub(super) type Standings = HashTrieMapSync<ClusterName, (usize, Standing)>;

/// The rollouts of one subject, as one plan has left them.
#[derive(Clone, Debug)]
pub struct Snapshot<R: Revision> {
    entries: Arc<[Entry]>,
    courses: Arc<[Course<R>]>,
    /// What keeps the clusters of each entry waiting.
    blockers: Arc<[PlacementBlockers]>,
    standings: Standings,
}

impl<R: Revision> Snapshot<R> {
    pub(super) fn new(entries: &[Entry], courses: &[Course<R>], standings: &Standings) -> Self {
        let blockers = courses.iter().map(Course::blockers).collect();
        Self { entries: entries.into(), courses: courses.into(), blockers, standings: standings.clone() }
    }

    /// The entry that decides for a cluster.
    #[must_use]
    pub fn entry(&self, cluster: &ClusterName) -> Option<&Entry> {
        self.entries.get(self.standings.get(cluster)?.0)
    }

    /// What that entry does now.
    #[must_use]
    pub fn course(&self, cluster: &ClusterName) -> Option<&Course<R>> {
        self.courses.get(self.standings.get(cluster)?.0)
    }

    /// The state of a cluster.
    #[must_use]
    pub fn state(&self, cluster: &ClusterName) -> MemberState {
        let Some((entry, standing)) = self.standings.get(cluster) else { return MemberState::Deselected };
        let nothing = PlacementBlockers::default();
        let blockers = self.blockers.get(*entry).unwrap_or(&nothing);
        blockers.state(standing, self.entries.get(*entry).and_then(|entry| entry.source.placement()))
    }

    /// The clusters that an entry decides for.
    pub fn clusters(&self) -> impl Iterator<Item = &ClusterName> {
        self.standings.keys()
    }
}
