//! What is kept of a set of works from one plan to the next, so that a change of one cluster costs a
//! look at one cluster.

use std::collections::BTreeMap;

use drover_api::{
    drover::RolloutProgress, grammar::SetFingerprint, reference::ClusterName, work::ManifestWorkReplicaSet,
};
use k8s_openapi::jiff::Timestamp;

use super::{revision::Template, tally::Tally};
use crate::{
    plan::{PlanPart, PlanStep, WriteResult},
    rollout::{Course, Rollout},
    tracker::{Batches, Dirty, KeyState, Tracker},
};

/// What is kept of a set of works from one plan to the next.
#[derive(Debug)]
pub struct ReplicaSetState {
    /// The clusters of the set, with their derived states.
    pub(super) tracker: Tracker<Rollout<Template>, ReplicaSetContext>,
    /// The state of each placement rollout after the last plan.
    pub(super) courses: Vec<Course<Template>>,
    /// The progress of each placement rollout, by the name of the placement, as long as the template
    /// stays.
    pub(super) remembered: BTreeMap<String, RolloutProgress>,
    /// The works that each placement decides for, counted.
    pub(super) sums: Vec<Tally>,
    /// All works, counted.
    pub(super) sum: Tally,
    /// What each cluster counts for, and for which placement.
    tallies: BTreeMap<ClusterName, (Option<usize>, Tally)>,
}

/// What every cluster of a set is observed by. If it changes, all of them are observed again.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReplicaSetContext {
    /// The fingerprint of the template.
    pub(super) goal: SetFingerprint,
    /// The labels that works have from their set.
    pub(super) labels: BTreeMap<String, String>,
    /// Of each placement, whether it is known which clusters it selects.
    pub(super) are_clear: Vec<bool>,
}

impl Default for ReplicaSetState {
    fn default() -> Self {
        Self {
            tracker: Tracker::new(Rollout::new(Vec::new())),
            courses: Vec::new(),
            remembered: BTreeMap::new(),
            sums: Vec::new(),
            sum: Tally::default(),
            tallies: BTreeMap::new(),
        }
    }
}

impl KeyState for ReplicaSetState {
    type Payload = Dirty;

    fn mark(&mut self, dirty: Dirty) {
        self.tracker.mark(dirty);
    }

    fn is_empty(&self) -> bool {
        self.tracker.context().is_none()
    }
}

impl ReplicaSetState {
    /// A state whose plans write this many clusters at most. Production uses the default.
    #[must_use]
    pub fn with_batches_of(size: usize) -> Self {
        let mut state = Self::default();
        state.tracker.pending = Batches::of_size(size);
        state
    }

    /// Records what a part of a plan came to.
    pub fn sent<A: PlanStep>(&mut self, part: PlanPart<'_, A>, result: &WriteResult, now: Timestamp) {
        self.tracker.sent::<ManifestWorkReplicaSet, A>(part, result, now);
    }

    /// Starts over, with other placements or strategies.
    pub(super) fn restart(&mut self, rollout: Rollout<Template>) {
        self.sums = vec![Tally::default(); rollout.entries().len()];
        (self.sum, self.tallies, self.courses) = (Tally::default(), BTreeMap::new(), Vec::new());
        self.tracker.replace_index(rollout);
    }

    /// Replaces what all clusters are observed by.
    pub(super) fn set_context(&mut self, context: ReplicaSetContext) {
        let goal = context.goal.clone();
        if self.tracker.set_context(context).is_some_and(|before| before.goal != goal) {
            self.remembered.clear();
        }
    }

    /// Replaces what a cluster counts for, and for which placement; `None` if it counts for nothing.
    pub(super) fn count(&mut self, cluster: &ClusterName, now: Option<(Option<usize>, Tally)>) {
        if let Some((entry, tally)) = self.tallies.remove(cluster) {
            self.sum -= tally;
            if let Some(sum) = entry.and_then(|entry| self.sums.get_mut(entry)) {
                *sum -= tally;
            }
        }
        let Some((entry, tally)) = now else { return };
        self.sum += tally;
        if let Some(sum) = entry.and_then(|entry| self.sums.get_mut(entry)) {
            *sum += tally;
        }
        self.tallies.insert(cluster.clone(), (entry, tally));
    }
}
