//! What is kept of each upgrade, so that a change of one cluster is a look at one cluster.

use std::{collections::BTreeSet, time::Duration};

use drover_api::{cluster::ManagedClustersUpgrade, reference::ClusterName};
use drover_engine::{
    plan::{PlanPart, PlanStep, Subresource, Write, WriteResult},
    tracker::{Dirty, Tracker},
    upgrade::plan,
};
use drover_runtime::{clock::after, controller::KeyState};
use k8s_openapi::jiff::Timestamp;

/// Who has not looked for so long has missed something, or time has jumped.
const INATTENTION: Duration = Duration::from_mins(15);

/// What is kept of one upgrade.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pub(super) tracker: Tracker<plan::Fleet, Context>,
    /// Those of the clusters that nothing selects of which nobody can tell yet whether they are left out.
    pub(super) unsure: BTreeSet<ClusterName>,
    /// Whether all placements agreed with their decisions when that was last needed.
    is_confirmed: bool,
    /// The clusters that are selected as canaries and are not upgraded.
    pub(super) outside: BTreeSet<ClusterName>,
    /// When this was last planned, and since when it is without interruption.
    attended: Option<(Timestamp, Timestamp)>,
}

/// What every cluster of an upgrade is looked at by. If it changes, all of them are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Context {
    /// The generation of the upgrade.
    pub(super) generation: Option<i64>,
    /// The sets that its selector takes clusters from.
    pub(super) sets: BTreeSet<String>,
    /// Of each placement, whether it says whom it selects.
    pub(super) are_clear: Vec<bool>,
    pub(super) may_upgrade_hub: bool,
    pub(super) retried: Option<Timestamp>,
    pub(super) is_at_rest: bool,
}

impl KeyState for Pages {
    type Payload = Dirty;

    fn mark(&mut self, dirty: Dirty) {
        self.tracker.mark(dirty);
    }

    fn is_empty(&self) -> bool {
        self.tracker.context().is_none()
    }
}

impl Pages {
    /// Records what a part of a plan came to.
    pub(super) fn sent<A: PlanStep>(&mut self, part: PlanPart<'_, A>, result: &WriteResult, now: Timestamp) {
        self.tracker.sent(part, result);
        let is_status = |write: &Write| {
            write.kind().is::<ManagedClustersUpgrade>() && write.subresource() == Some(Subresource::Status)
        };
        if matches!(part, PlanPart::Write(write) if is_status(write)) && *result == WriteResult::Done {
            self.tracker.throttle.written(now);
        }
    }

    /// Notes the time, and says since when clusters are looked at without interruption.
    pub(super) fn attend(&mut self, now: Timestamp) -> Timestamp {
        let without_interruption =
            self.attended.filter(|(last, _)| *last <= now && now <= after(*last, INATTENTION)).map(|(_, since)| since);
        let since = without_interruption.unwrap_or_else(|| {
            self.tracker.mark(Dirty::All);
            now
        });
        self.attended = Some((now, since));
        since
    }

    /// Notes whether all placements agree with their decisions. Whether somebody is left out is known when they do, which is told of
    /// none of their clusters.
    pub(super) fn confirmed(&mut self, is_confirmed: bool) -> bool {
        if self.is_confirmed != is_confirmed {
            self.is_confirmed = is_confirmed;
            self.tracker.mark(self.unsure.iter().cloned().collect());
        }
        is_confirmed
    }
}
