//! What all kinds of rollouts keep of their members from one plan to the next.
//!
//! A [`Tracker`] holds the derived state of each member in a [`MemberIndex`], and knows which
//! members are out of date: those that have changed, those whose time has come, those about which
//! something is left to do, and from time to time all of them. A plan costs what has changed, not
//! the size of the fleet.
//!
//! A plan may be made and dropped. What the server has answered changes a tracker only in
//! [`Tracker::sent`].

mod batch;
mod dirty;
mod key_state;
mod rejections;
mod status_throttle;
#[cfg(test)]
mod tests;
mod wakes;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use drover_api::reference::ClusterName;
use k8s_openapi::jiff::Timestamp;
use kube::Resource;

use self::wakes::Wakes;
pub use self::{
    batch::{BATCH, Batches},
    dirty::Dirty,
    key_state::{KeyState, Payload},
    rejections::Rejections,
    status_throttle::StatusThrottle,
};
use crate::{
    plan::{PlanPart, PlanStep, WriteResult},
    presence::Absence,
    rollout::{Revision, Rollout, member::Member},
};

/// How long members that are under way are not observed again when no event says that they have
/// changed: progress must not depend on an event that may have been missed.
pub const RESYNC_INTERVAL: Duration = Duration::from_mins(5);

/// The planner of a kind of rollout, which keeps its members and counts them as they change.
pub trait MemberIndex {
    /// The derived state of a member.
    type Member;

    /// Replaces the derived state of a member; `None` if it is no member any more.
    fn update(&mut self, cluster: &ClusterName, member: Option<Self::Member>);

    /// The members.
    fn members(&self) -> impl Iterator<Item = &ClusterName>;

    /// Whether nothing is under way, so that no resync is needed.
    fn is_settled(&self) -> bool;
}

impl<R: Revision> MemberIndex for Rollout<R> {
    type Member = Member<R>;

    fn update(&mut self, cluster: &ClusterName, member: Option<Member<R>>) {
        self.update(cluster, member);
    }

    fn members(&self) -> impl Iterator<Item = &ClusterName> {
        self.members().map(|(cluster, _)| cluster)
    }

    fn is_settled(&self) -> bool {
        self.is_settled()
    }
}

/// What a look at one member has found.
#[derive(Debug)]
pub struct Observation<M> {
    /// Its derived state; `None` if it is no member.
    pub member: Option<M>,
    /// When to observe it again although nothing has changed.
    pub wake: Option<Timestamp>,
}

/// The members of one subject, and which of them are out of date. `I` is the planner, `C` what all
/// members are observed by.
#[derive(Debug)]
pub struct Tracker<I, C> {
    /// The planner with the derived state of each member.
    pub index: I,
    /// The members about which something is left to do. They are observed again with each plan, a
    /// batch at a time.
    pub pending: Batches,
    /// Since when members have not been selected any more, as far as that is known. Those that are
    /// selected are not in it.
    pub absences: BTreeMap<ClusterName, Option<Absence>>,
    /// When the status of the subject was last written.
    pub throttle: StatusThrottle,
    /// What the server has rejected.
    pub rejections: Rejections,
    context: Option<C>,
    dirty: Dirty,
    resynced: Option<Timestamp>,
    wakes: Wakes,
}

impl<I: MemberIndex + Default, C> Default for Tracker<I, C> {
    fn default() -> Self {
        Self::new(I::default())
    }
}

impl<I: MemberIndex, C> Tracker<I, C> {
    /// A tracker that has observed no member yet.
    #[must_use]
    pub fn new(index: I) -> Self {
        Self {
            index,
            pending: Batches::default(),
            absences: BTreeMap::new(),
            throttle: StatusThrottle::default(),
            rejections: Rejections::default(),
            context: None,
            dirty: Dirty::All,
            resynced: None,
            wakes: Wakes::default(),
        }
    }

    /// Marks members as out of date.
    pub fn mark(&mut self, dirty: Dirty) {
        self.dirty.merge(dirty);
    }

    /// What all members are observed by; `None` before the first plan.
    #[must_use]
    pub fn context(&self) -> Option<&C> {
        self.context.as_ref()
    }

    /// Replaces the planner, because the subject lists other placements or strategies.
    pub fn replace_index(&mut self, index: I) {
        self.index = index;
        self.dirty = Dirty::All;
    }

    /// The members to observe now: those that are out of date, those whose time has come, and the
    /// next batch of those about which something is left to do. When all are, `candidates` are
    /// observed too. Each of them has to be [observed](Self::observed).
    pub fn take_dirty(
        &mut self,
        now: Timestamp,
        candidates: impl FnOnce() -> BTreeSet<ClusterName>,
    ) -> BTreeSet<ClusterName> {
        if self.next_resync().is_some_and(|time| time <= now) {
            self.dirty = Dirty::All;
        }
        match std::mem::take(&mut self.dirty) {
            Dirty::All => {
                self.resynced = Some(now);
                let known = self.index.members().chain(self.absences.keys()).chain(self.pending.iter());
                known.cloned().chain(candidates()).collect()
            }
            Dirty::Members(mut members) => {
                members.extend(self.wakes.due(now).cloned());
                members.extend(self.pending.next_batch());
                members
            }
        }
    }

    /// Replaces what is known of a member.
    pub fn observed(&mut self, cluster: &ClusterName, observation: Observation<I::Member>) {
        self.wakes.set(cluster, observation.wake);
        self.index.update(cluster, observation.member);
    }

    /// When all members are observed again although no event has marked them; `None` while nothing
    /// is under way.
    #[must_use]
    pub fn next_resync(&self) -> Option<Timestamp> {
        let resynced = self.resynced.filter(|_| !self.index.is_settled())?;
        Some(resynced.checked_add(RESYNC_INTERVAL).unwrap_or(Timestamp::MAX))
    }

    /// When a member is observed again although nothing has changed.
    #[must_use]
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.wakes.first()
    }

    /// When to plan again although nothing has changed.
    #[must_use]
    pub fn wake(&self) -> Option<Timestamp> {
        self.next_wake().into_iter().chain(self.next_resync()).min()
    }

    /// Records what a part of a plan came to. `K` is the kind of the subject.
    pub fn sent<K, A>(&mut self, part: PlanPart<'_, A>, result: &WriteResult, now: Timestamp)
    where
        K: Resource<DynamicType = ()>,
        A: PlanStep,
    {
        if is_about_member::<K, A>(part) {
            self.pending.sent();
        }
        self.rejections.record(part, result);
        self.throttle.sent::<K, A>(part, result, now);
    }
}

/// Whether a part of a plan is about a member, and not about the subject, whose kind is `K`.
fn is_about_member<K, A>(part: PlanPart<'_, A>) -> bool
where
    K: Resource<DynamicType = ()>,
{
    match part {
        PlanPart::Write(write) => !write.kind().is::<K>(),
        PlanPart::Action(_) => true,
        PlanPart::Event(_) => false,
    }
}

impl<I: MemberIndex, C: PartialEq> Tracker<I, C> {
    /// Replaces what all members are observed by, and returns what it was if it has changed. All
    /// members are out of date then.
    pub fn set_context(&mut self, context: C) -> Option<C> {
        if self.context.as_ref() == Some(&context) {
            return None;
        }
        self.dirty = Dirty::All;
        self.context.replace(context)
    }
}
