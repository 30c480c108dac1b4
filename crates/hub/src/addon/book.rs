//! What is kept of each add-on's rollouts, so that a change of one cluster is a look at one cluster.

use std::{collections::BTreeSet, time::Duration};

use drover_api::{
    drover::{AcknowledgedCluster, AddOnRollout, RolloutState},
    grammar::{SetFingerprint, Version},
    reference::ClusterName,
};
use drover_engine::{
    addon::catalog::Template,
    plan::{NoAction, PlanPart, WriteResult},
    revision::Set,
    rollout::{Course, Rollout, Snapshot},
    steering::Steering,
    tracker::{Dirty, StatusThrottle},
};
use drover_runtime::{clock::after, controller::KeyState};
use k8s_openapi::jiff::Timestamp;

use super::rollout::{BLOCKED, Refusal};

/// How long a rollout that is under way goes without a look at everybody.
const PATIENCE: Duration = Duration::from_mins(5);

/// The rollouts of one add-on.
#[derive(Debug)]
pub(crate) struct Pages {
    /// The clusters, by how they stand.
    pub(super) rollout: Rollout<Set>,
    /// The courses that were last set.
    pub(super) courses: Vec<Course<Set>>,
    /// What all clusters were looked at by.
    pub(super) context: Context,
    /// What was taken up of what people ask for on single clusters.
    pub(super) acknowledged: Vec<AcknowledgedCluster>,
    /// Clusters that somebody steers by annotations.
    pub(super) steered: BTreeSet<ClusterName>,
    dirty: Dirty,
    /// When everybody was last looked at.
    looked: Option<Timestamp>,
    /// When the record was last written.
    pub(super) throttle: StatusThrottle,
    /// What the server does not accept, and is not sent for now.
    pub(super) refusal: Option<Refusal>,
    /// The revisions that were recorded when this was last planned.
    pub(super) recorded: Option<BTreeSet<SetFingerprint>>,
    /// Whether anything stands in it: not before the rollouts were looked at for the first time.
    is_filled: bool,
}

/// What every cluster of an add-on is looked at by. If it changes, all of them are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Context {
    pub(super) templates: Vec<Template>,
    pub(super) supported: Vec<Version>,
    pub(super) steering: Steering,
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            rollout: Rollout::new(Vec::new()),
            courses: Vec::new(),
            context: Context::default(),
            acknowledged: Vec::new(),
            steered: BTreeSet::new(),
            dirty: Dirty::All,
            looked: None,
            throttle: StatusThrottle::default(),
            refusal: None,
            recorded: None,
            is_filled: false,
        }
    }
}

impl KeyState for Pages {
    type Payload = Dirty;

    fn mark(&mut self, dirty: Dirty) {
        self.dirty.merge(dirty);
    }

    fn is_empty(&self) -> bool {
        !self.is_filled && self.refusal.is_none()
    }
}

impl Pages {
    /// Begins anew, with other ways in which clusters get the add-on.
    pub(super) fn begin(&mut self, rollout: Rollout<Set>) {
        *self = Self {
            rollout,
            throttle: self.throttle,
            refusal: self.refusal.take(),
            recorded: self.recorded.take(),
            is_filled: true,
            ..Self::default()
        };
    }

    /// Who has to be looked at again: nobody from now on. Nothing means everybody.
    pub(super) fn take_stale(&mut self, now: Timestamp) -> Option<BTreeSet<ClusterName>> {
        match std::mem::take(&mut self.dirty) {
            Dirty::All => {
                self.looked = Some(now);
                None
            }
            Dirty::Members(members) => Some(members),
        }
    }

    /// What other controllers read of it, once it was planned: before that it says of no cluster that it has failed or waits, which may
    /// not be so.
    pub(super) fn snapshot(&self) -> Option<Snapshot<Set>> {
        self.is_filled.then(|| self.rollout.snapshot(&self.courses))
    }

    /// Records what a part of a plan came to.
    pub(super) fn sent(&mut self, part: PlanPart<'_, NoAction>, result: &WriteResult, now: Timestamp) {
        match part {
            PlanPart::Write(write) => {
                self.refusal = Refusal::after(self.refusal.take(), write, result, now);
                if write.kind().is::<AddOnRollout>() && *result == WriteResult::Done {
                    self.throttle.written(now);
                }
            }
            PlanPart::Event(event) if event.reason == BLOCKED => {
                self.refusal.iter_mut().for_each(|refusal| refusal.is_announced = true);
            }
            PlanPart::Event(_) | PlanPart::Action(_) => {}
        }
    }

    /// When everybody is to be looked at again though nothing is heard of them, as long as a rollout is under way: progress does not
    /// depend on an event that may have been missed.
    pub(super) fn next_look(&self) -> Option<Timestamp> {
        let is_under_way = self.courses.iter().any(|course| course.progress.state != Some(RolloutState::Complete));
        self.looked.filter(|_| is_under_way).map(|looked| after(looked, PATIENCE))
    }

    /// Takes note that some clusters have to be looked at again.
    pub(super) fn look_again_at(&mut self, these: impl IntoIterator<Item = ClusterName>) {
        self.dirty.merge(these.into_iter().collect());
    }

    /// Takes note that every cluster has to be looked at again.
    pub(super) fn look_again_at_everybody(&mut self) {
        self.dirty = Dirty::All;
    }
}
