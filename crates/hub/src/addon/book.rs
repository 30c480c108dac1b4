//! What is kept of each add-on's rollouts, so that a change of one cluster is a look at one cluster.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use drover_api::{
    drover::{AcknowledgedCluster, RolloutState},
    grammar::Version,
    reference::ClusterName,
};
use drover_engine::{
    addon::catalog::Template,
    revision::Set,
    rollout::{Course, Rollout},
    steering::Steering,
};
use drover_runtime::clock::after;
use k8s_openapi::jiff::Timestamp;

use crate::stale::Stale;

/// How long a rollout that is under way goes without a look at everybody.
const PATIENCE: Duration = Duration::from_mins(5);

/// The rollouts of one add-on.
#[derive(Debug, Default)]
pub(crate) struct Book(Mutex<Pages>);

/// What stands in a book.
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
    /// Who has to be looked at again.
    stale: Stale,
    /// When everybody was last looked at.
    looked: Option<Timestamp>,
    /// When counts were last written down.
    pub(super) counted: Option<Timestamp>,
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
            stale: Stale::Everybody,
            looked: None,
            counted: None,
            is_filled: false,
        }
    }
}

impl Book {
    /// What stands in it.
    pub(crate) fn open(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What stands in it, once anything does. An empty book says of nobody that he has failed or waits, which is not so.
    pub(crate) fn open_filled(&self) -> Option<MutexGuard<'_, Pages>> {
        Some(self.open()).filter(|pages| pages.is_filled)
    }

    /// Takes note that a cluster has to be looked at again.
    pub(crate) fn look_again_at(&self, cluster: &ClusterName) {
        self.open().look_again_at([cluster.clone()]);
    }
}

impl Pages {
    /// Begins anew, with other ways in which clusters get the add-on.
    pub(super) fn begin(&mut self, rollout: Rollout<Set>) {
        *self = Self { rollout, counted: self.counted, is_filled: true, ..Self::default() };
    }

    /// Who has to be looked at again: nobody from now on. Nothing means everybody.
    pub(super) fn take_stale(&mut self, now: Timestamp) -> Option<BTreeSet<ClusterName>> {
        let stale = self.stale.take();
        if stale.is_none() {
            self.looked = Some(now);
        }
        stale
    }

    /// When everybody is to be looked at again though nothing is heard of them, as long as a rollout is under way: progress does not
    /// depend on an event that may have been missed.
    pub(super) fn next_look(&self) -> Option<Timestamp> {
        let is_under_way = self.courses.iter().any(|course| course.progress.state != Some(RolloutState::Complete));
        self.looked.filter(|_| is_under_way).map(|looked| after(looked, PATIENCE))
    }

    /// Takes note that some clusters have to be looked at again.
    pub(super) fn look_again_at(&mut self, these: impl IntoIterator<Item = ClusterName>) {
        self.stale.add(these);
    }

    /// Takes note that every cluster has to be looked at again.
    pub(super) fn look_again_at_everybody(&mut self) {
        self.stale = Stale::Everybody;
    }
}
