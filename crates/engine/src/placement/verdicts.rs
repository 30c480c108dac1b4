//! A placement's verdicts on all clusters in reach, kept up to date at the cost of what changed.
//!
//! Whoever learns of a change says so: of one cluster, or of what is in reach. The next update judges that cluster, or all,
//! and those whose verdict was to hold until now.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::reference::ClusterName;
use k8s_openapi::jiff::Timestamp;

use super::{Verdict, sets::Reach};

/// What verdicts are found from, as it is now.
pub trait Evidence {
    /// The sets that the placement takes clusters from.
    fn reach(&self) -> Reach;

    /// The clusters of a set, if there is such a set.
    fn members(&self, set: &str) -> Option<&BTreeSet<ClusterName>>;

    /// The verdict on a cluster, if there is such a cluster.
    fn judge(&self, cluster: &ClusterName) -> Option<Verdict>;
}

/// The verdicts of one placement: one on each cluster in reach.
#[derive(Debug, Default)]
pub struct Verdicts {
    /// Where clusters come from; nothing where that has to be found out.
    reach: Option<Reach>,
    known: BTreeMap<ClusterName, Verdict>,
    /// The clusters that have changed since they were judged, and those that have come or gone.
    stale: BTreeSet<ClusterName>,
    /// Until when verdicts hold, of those that do not hold for ever.
    due: BTreeSet<(Timestamp, ClusterName)>,
}

/// What an update came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// How many clusters were looked at.
    pub judged: usize,
    /// Whether a decision could be another one than before.
    pub changed: bool,
}

impl Verdicts {
    /// Takes note that a cluster has changed, has come or has gone.
    pub fn look_again_at(&mut self, cluster: &ClusterName) {
        self.stale.insert(cluster.clone());
        // Where nobody asks for an update, names must not pile up.
        if self.stale.len() > self.known.len() {
            self.reach_changed();
        }
    }

    /// Takes note that other sets may be in reach, or that clusters have moved between sets. Then all are judged again: nobody
    /// tells of a change of a cluster while it is out of reach.
    pub fn reach_changed(&mut self) {
        *self = Self::default();
    }

    /// The verdict on a cluster as of the last update.
    #[must_use]
    pub fn get(&self, cluster: &ClusterName) -> Option<&Verdict> {
        self.known.get(cluster)
    }

    /// All verdicts as of the last update, by the name of their cluster.
    pub fn iter(&self) -> impl Iterator<Item = &Verdict> {
        self.known.values()
    }

    /// When the first of the verdicts may be another one though nothing but time has passed.
    #[must_use]
    pub fn next_change(&self) -> Option<Timestamp> {
        self.due.first().map(|(time, _)| *time)
    }

    /// Brings the verdicts up to date, and returns the sets that their clusters are from.
    pub fn update(&mut self, evidence: &impl Evidence, now: Timestamp) -> (&Reach, Update) {
        let known_reach = self.reach.take();
        let mut changed = known_reach.is_none();
        let reach = known_reach.unwrap_or_else(|| {
            let reach = evidence.reach();
            self.stale.extend(sets(&reach).filter_map(|set| evidence.members(set)).flatten().cloned());
            reach
        });
        while self.due.first().is_some_and(|(time, _)| *time <= now) {
            self.stale.extend(self.due.pop_first().map(|(_, cluster)| cluster));
        }
        let mut judged = 0;
        // Taken out when it is done: whoever is judged when something panics is judged again.
        while let Some(cluster) = self.stale.first().cloned() {
            let is_in_reach = sets(&reach).any(|set| evidence.members(set).is_some_and(|set| set.contains(&cluster)));
            judged += usize::from(is_in_reach);
            let verdict = if is_in_reach { evidence.judge(&cluster) } else { None };
            changed |= self.replace(&cluster, verdict);
            self.stale.remove(&cluster);
        }
        (self.reach.insert(reach), Update { judged, changed })
    }

    /// Puts a verdict in the place of the former, and says whether that makes a difference. Until when a verdict holds, and
    /// what it hinges on, makes none.
    fn replace(&mut self, cluster: &ClusterName, verdict: Option<Verdict>) -> bool {
        let former = self.known.remove(cluster);
        if let Some(time) = former.as_ref().and_then(|former| former.may_change) {
            self.due.remove(&(time, cluster.clone()));
        }
        if let Some(time) = verdict.as_ref().and_then(|verdict| verdict.may_change) {
            self.due.insert((time, cluster.clone()));
        }
        let changed = former.as_ref().map(|former| &former.outcome) != verdict.as_ref().map(|verdict| &verdict.outcome);
        self.known.extend(verdict.map(|verdict| (cluster.clone(), verdict)));
        changed
    }
}

fn sets(reach: &Reach) -> impl Iterator<Item = &str> {
    let sets = match reach {
        Reach::Sets(sets) => Some(sets),
        Reach::Unbound | Reach::NoIntersection { .. } => None,
    };
    sets.into_iter().flatten().map(String::as_str)
}
