//! What other controllers read of rollouts: an immutable view of one plan.

use std::sync::Arc;

use drover_api::reference::ClusterName;
use rpds::HashTrieMapSync;

use super::{Course, Entry, Hold, Revision, Standing};

/// Which entry decides for each cluster, and how the cluster stands there. A copy shares its
/// structure with the original, so that publishing it costs what has changed since.
pub(super) type Standings = HashTrieMapSync<ClusterName, (usize, Standing)>;

/// The rollouts of one subject, as one plan has left them.
#[derive(Clone, Debug)]
pub struct Snapshot<R: Revision> {
    entries: Arc<[Entry]>,
    courses: Arc<[Course<R>]>,
    standings: Standings,
}

impl<R: Revision> Snapshot<R> {
    pub(super) fn new(entries: &[Entry], courses: &[Course<R>], standings: &Standings) -> Self {
        Self { entries: entries.into(), courses: courses.into(), standings: standings.clone() }
    }

    /// The entry that decides for a cluster.
    #[must_use]
    pub fn entry(&self, cluster: &ClusterName) -> Option<&Entry> {
        self.entries.get(self.standings.get(cluster)?.0)
    }

    /// What that entry does now, and how the cluster stands to it.
    #[must_use]
    pub fn standing(&self, cluster: &ClusterName) -> Option<(Option<&Course<R>>, &Standing)> {
        let (entry, standing) = self.standings.get(cluster)?;
        Some((self.courses.get(*entry), standing))
    }

    /// What a cluster waits for, unless that is its turn in the window.
    #[must_use]
    pub fn blocked_by(&self, cluster: &ClusterName) -> Option<Hold<R>> {
        let (course, standing) = self.standing(cluster)?;
        match standing {
            Standing::Waiting(_) | Standing::Stray => course?.hold.clone(),
            Standing::Ahead { is_there: true } | Standing::Done => next_target_blocked_by(course?),
            _ => None,
        }
    }
}

/// What a cluster waits for that runs what its placement rolls out, while the target is another revision.
fn next_target_blocked_by<R: Revision>(course: &Course<R>) -> Option<Hold<R>> {
    let waits = course.goal != course.progress.wanted;
    waits.then(|| course.hold.clone().or_else(|| course.shut.clone().map(Hold::Gate)))?
}
