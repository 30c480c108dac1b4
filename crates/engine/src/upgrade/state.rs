//! What is kept of an upgrade from one plan to the next, so that a change of one cluster costs a look
//! at one cluster.

use std::{collections::BTreeSet, time::Duration};

use drover_api::{cluster::ManagedClustersUpgrade, reference::ClusterName};
use k8s_openapi::jiff::Timestamp;

use super::plan::Fleet;
use crate::{
    plan::{PlanPart, PlanStep, WriteResult},
    time::after,
    tracker::{Batches, Dirty, KeyState, Tracker},
};

/// If more time has passed since the last plan, reports may have been missed, or the clock has jumped.
const INTERRUPTION: Duration = Duration::from_mins(15);

/// What is kept of an upgrade from one plan to the next.
#[derive(Debug, Default)]
pub struct UpgradeState {
    /// The clusters of the upgrade, with their derived states.
    pub tracker: Tracker<Fleet, UpgradeContext>,
    /// The clusters that nothing selects, and of which it is not sure yet that they are left out.
    pub unsure: BTreeSet<ClusterName>,
    /// Whether all placements agreed with their decisions when that was last needed.
    is_confirmed: bool,
    /// The clusters that are selected as canaries and are not upgraded.
    pub(super) outside: BTreeSet<ClusterName>,
    /// When this was last planned, and since when without interruption.
    attended: Option<(Timestamp, Timestamp)>,
}

/// What every cluster of an upgrade is observed by. If it changes, all of them are observed again.
#[derive(Clone, Debug, PartialEq)]
pub struct UpgradeContext {
    /// The generation of the upgrade.
    pub(super) generation: Option<i64>,
    /// The sets that its selector takes clusters from.
    pub(super) sets: BTreeSet<String>,
    /// Of each placement, whether it is known which clusters it selects.
    pub(super) are_clear: Vec<bool>,
    pub(super) may_upgrade_hub: bool,
    pub(super) retried: Option<Timestamp>,
    pub(super) is_at_rest: bool,
}

impl KeyState for UpgradeState {
    type Payload = Dirty;

    fn mark(&mut self, dirty: Dirty) {
        self.tracker.mark(dirty);
    }

    fn is_empty(&self) -> bool {
        self.tracker.context().is_none()
    }
}

impl UpgradeState {
    /// A state whose plans write this many clusters at most. Production uses the default.
    #[must_use]
    pub fn with_batches_of(size: usize) -> Self {
        let mut state = Self::default();
        state.tracker.pending = Batches::of_size(size);
        state
    }

    /// Records what a part of a plan came to.
    pub fn sent<A: PlanStep>(&mut self, part: PlanPart<'_, A>, result: &WriteResult, now: Timestamp) {
        self.tracker.sent::<ManagedClustersUpgrade, A>(part, result, now);
    }

    /// Records the time of a plan, and returns since when this is planned without interruption.
    pub(super) fn attend(&mut self, now: Timestamp) -> Timestamp {
        let without_interruption =
            self.attended.filter(|(last, _)| *last <= now && now <= after(*last, INTERRUPTION)).map(|(_, since)| since);
        let since = without_interruption.unwrap_or_else(|| {
            self.tracker.mark(Dirty::All);
            now
        });
        self.attended = Some((now, since));
        since
    }

    /// Records whether all placements agree with their decisions. No event of a cluster says so, but it
    /// decides whether those that are unsure are left out.
    pub(super) fn confirmed(&mut self, is_confirmed: bool) -> bool {
        if self.is_confirmed != is_confirmed {
            self.is_confirmed = is_confirmed;
            self.tracker.mark(self.unsure.iter().cloned().collect());
        }
        is_confirmed
    }
}
