//! What is kept of an add-on's rollouts from one plan to the next, so that a change of one cluster
//! costs a look at one cluster.

use std::collections::BTreeSet;

use drover_api::{
    addon::ManagedClusterAddOn,
    drover::{AcknowledgedCluster, AddOnRollout},
    grammar::{SetFingerprint, Version},
    reference::ClusterName,
};
use k8s_openapi::jiff::Timestamp;

use super::{BLOCKED, RejectedRecord};
use crate::{
    addon::catalog::Template,
    plan::{PlanPart, PlanStep, WriteResult},
    revision::Set,
    rollout::{Course, Rollout, Snapshot},
    steering::Steering,
    tracker::{Dirty, KeyState, Tracker},
};

/// What is kept of an add-on's rollouts from one plan to the next.
#[derive(Debug)]
pub struct AddOnRolloutState {
    /// The clusters of the add-on, with their derived states.
    pub tracker: Tracker<Rollout<Set>, AddOnContext>,
    /// The state of each placement rollout after the last plan.
    pub(super) courses: Vec<Course<Set>>,
    /// The steering of single clusters that was acknowledged.
    pub(super) acknowledged: Vec<AcknowledgedCluster>,
    /// The clusters with steering annotations.
    pub(super) steered: BTreeSet<ClusterName>,
    /// The record that the server has rejected, and that is not sent for now.
    pub(super) rejected: Option<RejectedRecord>,
    /// The revisions that were recorded when this was last planned.
    pub(super) recorded: Option<BTreeSet<SetFingerprint>>,
}

/// What every cluster of an add-on is observed by. If it changes, all of them are observed again.
#[derive(Clone, Debug, PartialEq)]
pub struct AddOnContext {
    pub(super) templates: Vec<Template>,
    pub(super) supported: Vec<Version>,
    pub(super) steering: Steering,
}

impl Default for AddOnRolloutState {
    fn default() -> Self {
        Self {
            tracker: Tracker::new(Rollout::new(Vec::new())),
            courses: Vec::new(),
            acknowledged: Vec::new(),
            steered: BTreeSet::new(),
            rejected: None,
            recorded: None,
        }
    }
}

impl KeyState for AddOnRolloutState {
    type Payload = Dirty;

    fn mark(&mut self, dirty: Dirty) {
        self.tracker.mark(dirty);
    }

    fn is_empty(&self) -> bool {
        self.tracker.context().is_none() && self.rejected.is_none()
    }
}

impl AddOnRolloutState {
    /// Starts over, with other placements or strategies.
    pub(super) fn restart(&mut self, rollout: Rollout<Set>) {
        self.tracker.replace_index(rollout);
        self.courses.clear();
        self.acknowledged.clear();
        self.steered.clear();
    }

    /// What other controllers read of it. `None` before the first plan, which says of no cluster that it
    /// has failed or waits, although it may have.
    #[must_use]
    pub fn snapshot(&self) -> Option<Snapshot<Set>> {
        self.tracker.context().map(|_| self.tracker.index.snapshot(&self.courses))
    }

    /// Records what a part of the last plan came to.
    pub fn sent<A: PlanStep>(&mut self, part: PlanPart<'_, A>, result: &WriteResult, now: Timestamp) {
        self.tracker.throttle.sent::<AddOnRollout, A>(part, result, now);
        match part {
            PlanPart::Write(write) => {
                if write.kind().is::<ManagedClusterAddOn>() {
                    self.tracker.pending.sent();
                }
                self.rejected = RejectedRecord::after(self.rejected.take(), write, result, now);
            }
            PlanPart::Event(event) if event.reason == BLOCKED => {
                self.rejected.iter_mut().for_each(|rejected| rejected.is_announced = true);
            }
            PlanPart::Event(_) | PlanPart::Action(_) => {}
        }
    }
}
