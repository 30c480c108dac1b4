//! Clusters of an upgrade, counted.

use std::time::Duration;

use drover_api::cluster::{ActionSummary, ClustersSummary};

use super::{
    member::{ActionTally, Standing},
    plan::Member,
};

/// How many clusters stand where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All.
    pub total: i64,
    /// Those that were begun, those that are over by now included.
    pub initialized: i64,
    /// Those that are being upgraded.
    pub partial: i64,
    /// Those that are done.
    pub complete: i64,
    /// Those that have failed.
    pub failed: i64,
    /// Those of them that were begun.
    pub failed_begun: i64,
    /// Those that wait.
    pub pending: i64,
    /// Those that wait and can not have their turn.
    pub barred: i64,
    /// Those for which what comes before is under way or done.
    pub preparing: i64,
    /// Those that were begun before and wait for their turn to do again what comes before. The hub's own cluster comes after all others.
    pub queued_again: i64,
    /// Those that were begun before and do again what comes before.
    pub preparing_again: i64,
    /// Those that have one of the places of those that are upgraded at a time.
    pub in_slots: i64,
    /// Those that have failed and are on their way all the same.
    pub still_moving: i64,
    /// Those that are not selected, and stay because they were begun.
    pub unselected: i64,
    /// Those to which something will happen yet.
    pub restless: i64,
    pre_action: Actions,
    post_action: Actions,
    /// How many have told how long they took, and how long that was altogether.
    finished: i64,
    took: Duration,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Actions {
    total: i64,
    applied: i64,
    available: i64,
    degraded: i64,
}

impl Actions {
    fn count(&mut self, tally: ActionTally, by: i64) {
        self.total += by * i64::from(tally.total);
        self.applied += by * i64::from(tally.applied);
        self.available += by * i64::from(tally.available);
        self.degraded += by * i64::from(tally.degraded);
    }

    fn summary(&self) -> ActionSummary {
        ActionSummary {
            total: number(self.total),
            applied: number(self.applied),
            available: number(self.available),
            progressing: number(self.total - self.available - self.degraded),
            degraded: number(self.degraded),
        }
    }
}

impl Tally {
    /// Adds a cluster, or takes it away.
    pub fn count(&mut self, member: &Member, is_there: bool) {
        let by = if is_there { 1 } else { -1 };
        self.total += by;
        self.unselected += by * i64::from(!member.is_selected);
        self.restless += by * i64::from(!member.standing.is_at_rest());
        self.in_slots += by * i64::from(member.standing.has_slot());
        let is_again = member.turn.is_again();
        self.queued_again += by * i64::from(is_again && matches!(member.standing, Standing::Queued { .. }));
        self.preparing_again += by * i64::from(is_again && member.standing == Standing::Preparing);
        match &member.standing {
            Standing::Queued { .. } => self.pending += by,
            Standing::Barred => {
                self.pending += by;
                self.barred += by;
            }
            Standing::Preparing | Standing::Ready => {
                self.pending += by;
                self.preparing += by;
            }
            Standing::Begun | Standing::Resumable => self.initialized += by,
            Standing::Partial => {
                self.initialized += by;
                self.partial += by;
            }
            Standing::Complete => {
                self.initialized += by;
                self.complete += by;
            }
            Standing::Failed { was_begun, is_moving } => {
                self.failed += by;
                self.failed_begun += by * i64::from(*was_begun);
                self.initialized += by * i64::from(*was_begun);
                self.still_moving += by * i64::from(*is_moving);
            }
            Standing::Leaving => {}
        }
        self.pre_action.count(member.pre_action, by);
        self.post_action.count(member.post_action, by);
        if let Some(took) = member.took {
            self.finished += by;
            self.took = if is_there { self.took + took } else { self.took.saturating_sub(took) };
        }
    }

    /// The counts as they are told.
    #[must_use]
    pub fn summary(&self) -> ClustersSummary {
        ClustersSummary {
            total: number(self.total),
            initialized: number(self.initialized),
            partial_upgrade: number(self.partial),
            complete: number(self.complete),
            failed: number(self.failed),
            pending: number(self.pending),
        }
    }

    /// How the actions before the upgrade are doing.
    #[must_use]
    pub fn pre_action(&self) -> ActionSummary {
        self.pre_action.summary()
    }

    /// How the actions after the upgrade are doing.
    #[must_use]
    pub fn post_action(&self) -> ActionSummary {
        self.post_action.summary()
    }

    /// How long it takes until all clusters are done that wait or are under way, that many at a time, if they take as long as those that are
    /// done; nothing if none is, or all are.
    #[must_use]
    pub fn remaining(&self, limit: usize) -> Option<Duration> {
        let finished = u32::try_from(self.finished).ok().filter(|finished| *finished > 0)?;
        let left = u32::try_from(self.restless).ok().filter(|left| *left > 0)?;
        let rounds = left.div_ceil(u32::try_from(limit).unwrap_or(u32::MAX).max(1));
        (self.took / finished).checked_mul(rounds)
    }
}

fn number(count: i64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
