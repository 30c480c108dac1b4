//! What is kept of each add-on's rollouts, so that a change of one cluster is a look at one cluster.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use drover_api::{drover::AcknowledgedCluster, grammar::Version, reference::ClusterName};
use drover_engine::addon::{
    catalog::Template,
    rollout::{Course, Rollout},
    steering::Steering,
};
use k8s_openapi::jiff::Timestamp;

/// The rollouts of one add-on.
#[derive(Debug, Default)]
pub(crate) struct Book(Mutex<Pages>);

/// What stands in a book.
#[derive(Debug)]
pub(crate) struct Pages {
    /// The clusters, by how they stand.
    pub(super) rollout: Rollout,
    /// The courses that were last set.
    pub(super) courses: Vec<Course>,
    /// What all clusters were looked at by.
    pub(super) context: Context,
    /// Clusters that somebody steers by annotations.
    pub(super) steered: BTreeSet<ClusterName>,
    /// Who has to be looked at again.
    stale: Stale,
    /// When counts were last written down.
    pub(super) counted: Option<Timestamp>,
}

/// What every cluster of an add-on is looked at by. If it changes, all of them are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Context {
    pub(super) templates: Vec<Template>,
    pub(super) supported: Vec<Version>,
    pub(super) steering: Steering,
    pub(super) acknowledged: Vec<AcknowledgedCluster>,
}

#[derive(Debug)]
enum Stale {
    Everybody,
    Some(BTreeSet<ClusterName>),
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            rollout: Rollout::new(Vec::new()),
            courses: Vec::new(),
            context: Context::default(),
            steered: BTreeSet::new(),
            stale: Stale::Everybody,
            counted: None,
        }
    }
}

impl Book {
    /// What stands in it.
    pub(crate) fn open(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note that a cluster has to be looked at again.
    pub(crate) fn look_again_at(&self, cluster: &ClusterName) {
        if let Stale::Some(clusters) = &mut self.open().stale {
            clusters.insert(cluster.clone());
        }
    }
}

impl Pages {
    /// Begins anew, with other ways in which clusters get the add-on.
    pub(super) fn begin(&mut self, rollout: Rollout) {
        *self = Self { rollout, counted: self.counted, ..Self::default() };
    }

    /// Who has to be looked at again: nobody from now on. Nothing means everybody.
    pub(super) fn take_stale(&mut self) -> Option<BTreeSet<ClusterName>> {
        match std::mem::replace(&mut self.stale, Stale::Some(BTreeSet::new())) {
            Stale::Everybody => None,
            Stale::Some(clusters) => Some(clusters),
        }
    }

    /// Takes note that every cluster has to be looked at again.
    pub(super) fn look_again_at_everybody(&mut self) {
        self.stale = Stale::Everybody;
    }
}
