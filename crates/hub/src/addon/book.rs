//! What is kept of each add-on's rollouts, so that a change of one cluster is a look at one cluster.

use std::collections::BTreeSet;

use drover_api::{
    drover::{AcknowledgedCluster, AddOnRollout},
    grammar::{SetFingerprint, Version},
    reference::ClusterName,
};
use drover_engine::{
    addon::catalog::Template,
    plan::{NoAction, PlanPart, WriteResult},
    revision::Set,
    rollout::{Course, Rollout, Snapshot},
    steering::Steering,
    tracker::{Dirty, Tracker},
};
use drover_runtime::controller::KeyState;
use k8s_openapi::jiff::Timestamp;

use super::rollout::{BLOCKED, Refusal};

/// The rollouts of one add-on.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(super) tracker: Tracker<Rollout<Set>, Context>,
    /// The courses that were last set.
    pub(super) courses: Vec<Course<Set>>,
    /// What was taken up of what people ask for on single clusters.
    pub(super) acknowledged: Vec<AcknowledgedCluster>,
    /// Clusters that somebody steers by annotations.
    pub(super) steered: BTreeSet<ClusterName>,
    /// What the server does not accept, and is not sent for now.
    pub(super) refusal: Option<Refusal>,
    /// The revisions that were recorded when this was last planned.
    pub(super) recorded: Option<BTreeSet<SetFingerprint>>,
}

/// What every cluster of an add-on is looked at by. If it changes, all of them are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Context {
    pub(super) templates: Vec<Template>,
    pub(super) supported: Vec<Version>,
    pub(super) steering: Steering,
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            tracker: Tracker::new(Rollout::new(Vec::new())),
            courses: Vec::new(),
            acknowledged: Vec::new(),
            steered: BTreeSet::new(),
            refusal: None,
            recorded: None,
        }
    }
}

impl KeyState for Pages {
    type Payload = Dirty;

    fn mark(&mut self, dirty: Dirty) {
        self.tracker.mark(dirty);
    }

    fn is_empty(&self) -> bool {
        self.tracker.context().is_none() && self.refusal.is_none()
    }
}

impl Pages {
    /// Begins anew, with other ways in which clusters get the add-on.
    pub(super) fn begin(&mut self, rollout: Rollout<Set>) {
        self.tracker.replace_index(rollout);
        self.courses.clear();
        self.acknowledged.clear();
        self.steered.clear();
    }

    /// What other controllers read of it, once it was planned: before that it says of no cluster that it has failed or waits, which may
    /// not be so.
    pub(super) fn snapshot(&self) -> Option<Snapshot<Set>> {
        self.tracker.context().map(|_| self.tracker.index.snapshot(&self.courses))
    }

    /// Records what a part of a plan came to.
    pub(super) fn sent(&mut self, part: PlanPart<'_, NoAction>, result: &WriteResult, now: Timestamp) {
        match part {
            PlanPart::Write(write) => {
                self.refusal = Refusal::after(self.refusal.take(), write, result, now);
                if write.kind().is::<AddOnRollout>() && *result == WriteResult::Done {
                    self.tracker.throttle.written(now);
                }
            }
            PlanPart::Event(event) if event.reason == BLOCKED => {
                self.refusal.iter_mut().for_each(|refusal| refusal.is_announced = true);
            }
            PlanPart::Event(_) | PlanPart::Action(_) => {}
        }
    }
}
