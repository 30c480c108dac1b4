//! How a cluster stands to the set that its placement is moving to.

use std::{sync::Arc, time::Duration};

use drover_api::grammar::SetFingerprint;
use k8s_openapi::jiff::Timestamp;

use super::{
    member::{Member, Presence},
    revision::Revision,
    strategy::Strategy,
};
use crate::{
    member::Failure,
    revision::markers::{Given, Proof, Verdict},
    time::after,
};

/// How long something may fail to apply before that counts as a failure: what it needs may be on its way.
pub(super) const APPLY_GRACE_PERIOD: Duration = Duration::from_mins(1);

/// A set that clusters are moved to.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal<R> {
    /// Its name.
    pub fingerprint: SetFingerprint,
    /// What it consists of.
    pub set: Arc<R>,
}

impl<R: Revision> Goal<R> {
    /// The set that an add-on is to run when it was given this one, by name.
    fn effective(&self, addon: &Presence<R>) -> SetFingerprint {
        match &addon.overrides {
            None => self.fingerprint.clone(),
            Some(overrides) => self.set.with_overrides(overrides),
        }
    }
}

/// What clusters are measured by.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measure<R> {
    /// What they are moved to.
    pub(super) goal: Option<Goal<R>>,
    /// What is wanted in the end: another set, as long as canaries are trying it.
    pub(super) wanted: Option<SetFingerprint>,
    /// When the rollout began: who was unhealthy before is no failure of it.
    pub(super) started: Option<Timestamp>,
    /// When the goal was reached by all who could be reached: who was given it before that has nothing to show any more, and is no
    /// failure of the rollout when it turns unhealthy.
    pub(super) settled: Option<Timestamp>,
    /// When everybody was last told to try again.
    pub(super) retried: Option<Timestamp>,
}

impl<R> Default for Measure<R> {
    fn default() -> Self {
        Self { goal: None, wanted: None, started: None, settled: None, retried: None }
    }
}

impl<R: Revision> Measure<R> {
    /// When a cluster was given the goal, if the others had reached it by then.
    pub(super) fn late(&self, member: &Member<R>) -> Option<Timestamp> {
        let given = member.addon.as_ref()?.given.as_ref()?;
        let is_on_goal = self.goal.as_ref().is_some_and(|goal| goal.fingerprint == given.set);
        (is_on_goal && given.since > self.settled?).then_some(given.since)
    }
}

/// How a cluster stands to the goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The add-on is not there yet.
    Absent,
    /// It is left out.
    Skipped,
    /// It was told to wait.
    Paused {
        /// Whether it was on its way to something else then, and still is.
        is_moving: bool,
    },
    /// It can not be reached.
    Offline,
    /// It waits for its turn.
    Waiting(Step),
    /// It is on its way to another set, which is not wanted any more.
    Stray,
    /// It was given what is wanted in the end, before the others.
    Ahead {
        /// Whether it runs it.
        is_there: bool,
    },
    /// It was given the goal, and does not run it yet.
    Moving {
        /// When that would be a failure.
        until: Option<Timestamp>,
    },
    /// It runs the goal, and has to stay well for a while.
    Soaking {
        /// For how long.
        until: Timestamp,
    },
    /// It runs the goal.
    Done,
    /// A user has configured it otherwise, and it runs that, or keeps what it has.
    OwnWay,
    /// A user has asked for something that can not be had, and it has nothing yet.
    AtOdds,
    /// It was given the goal, and failed.
    Failed(Failure),
}

/// What a cluster's turn would be. Earlier ones go before later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// It ran something else, and is not well with it any more.
    Cure,
    /// It runs nothing yet, so that nothing can be disturbed.
    Install,
    /// It runs something else.
    Upgrade,
}

/// How a cluster stands, and when that changes by itself.
pub(super) fn judge<R: Revision>(
    member: &Member<R>,
    measure: &Measure<R>,
    strategy: &Strategy,
    now: Timestamp,
) -> (Standing, Option<Timestamp>) {
    let standing = stand(member, measure, strategy, now);
    let changes = match &standing {
        Standing::Moving { until } => *until,
        Standing::Soaking { until } => Some(*until),
        _ => None,
    };
    (standing, changes)
}

fn stand<R: Revision>(member: &Member<R>, measure: &Measure<R>, strategy: &Strategy, now: Timestamp) -> Standing {
    if member.steering.is_skipped {
        return Standing::Skipped;
    }
    let Some(addon) = &member.addon else {
        return if member.is_online { Standing::Absent } else { Standing::Offline };
    };
    if addon.is_at_odds {
        return if addon.given.is_some() { Standing::OwnWay } else { Standing::AtOdds };
    }
    match (&measure.goal, &addon.given) {
        (Some(goal), Some(given)) if given.set == goal.fingerprint => {
            let retried = member.steering.retried.max(measure.retried);
            let is_settled = measure.settled.is_some_and(|settled| given.since <= settled);
            let limits = Limits { strategy, retried, started: measure.started, is_settled };
            on_goal(member, addon, given, goal, &limits, now)
        }
        _ if !member.is_online => Standing::Offline,
        (_, Some(given)) if Some(&given.set) == measure.wanted.as_ref() => {
            Standing::Ahead { is_there: arrived(addon).is_some() }
        }
        (_, given) if member.steering.is_paused => {
            Standing::Paused { is_moving: given.is_some() && arrived(addon).is_none() }
        }
        (_, None) => Standing::Waiting(Step::Install),
        _ => match arrived(addon) {
            Some(Verdict::Proven) => Standing::Waiting(Step::Upgrade),
            Some(_) => Standing::Waiting(Step::Cure),
            None => Standing::Stray,
        },
    }
}

/// Whether an add-on has come to run what it was given: then it is proven, or unhealthy by now.
fn arrived<R: Revision>(addon: &Presence<R>) -> Option<Verdict> {
    let (runs, proof) = (addon.runs.as_ref()?, addon.proof.as_ref()?);
    (proof.set == *runs && proof.verdict.has_run()).then_some(proof.verdict)
}

/// What a cluster that was given the goal is held to.
struct Limits<'a> {
    strategy: &'a Strategy,
    retried: Option<Timestamp>,
    started: Option<Timestamp>,
    is_settled: bool,
}

fn on_goal<R: Revision>(
    member: &Member<R>,
    addon: &Presence<R>,
    given: &Given,
    goal: &Goal<R>,
    limits: &Limits,
    now: Timestamp,
) -> Standing {
    // An explanation of what is published knows what the cluster is to run, and not why.
    let effective = addon.runs.clone().unwrap_or_else(|| goal.effective(addon));
    let is_own_way = effective != goal.fingerprint;
    let done = if is_own_way { Standing::OwnWay } else { Standing::Done };
    if is_own_way && limits.is_settled {
        return done;
    }
    let proof = addon.proof.as_ref().filter(|proof| proof.set == effective);
    match proof {
        Some(Proof { verdict: Verdict::Proven, since, .. }) => {
            let until = after(*since, limits.strategy.soak);
            if limits.is_settled || until <= now { done } else { Standing::Soaking { until } }
        }
        Some(Proof { verdict: Verdict::Unhealthy | Verdict::NoLongerApplied, since, .. })
            if limits.started.is_some_and(|started| *since < started) =>
        {
            done
        }
        Some(Proof { verdict: Verdict::Unhealthy, .. }) if limits.is_settled => done,
        Some(Proof { verdict: Verdict::Unhealthy, since, .. })
            if limits.retried.is_none_or(|retried| retried < *since) =>
        {
            Standing::Failed(Failure::Unhealthy)
        }
        // A cluster that ran the set has met the deadline.
        Some(Proof { verdict: Verdict::NoLongerApplied, since, .. }) => {
            let until = after(limits.retried.map_or(*since, |retried| retried.max(*since)), APPLY_GRACE_PERIOD);
            if until <= now { Standing::Failed(Failure::NotApplied) } else { Standing::Moving { until: Some(until) } }
        }
        // Who has reported on it once has been in time.
        Some(Proof { verdict: Verdict::Unsettled, .. }) => {
            if limits.is_settled {
                done
            } else if member.is_online {
                Standing::Moving { until: None }
            } else {
                Standing::Offline
            }
        }
        proof => match on_its_way(
            given,
            proof.filter(|_| is_own_way || limits.is_settled),
            failing_since(proof),
            limits,
            now,
        ) {
            // Who is not heard of any more since it was given the goal may have been cut off by it: it is waited for as long as for
            // anybody else, and where nothing says how long that is, not at all.
            Standing::Moving { until: None } if !member.is_online => Standing::Offline,
            standing => standing,
        },
    }
}

fn failing_since(proof: Option<&Proof>) -> Option<Timestamp> {
    proof.filter(|proof| proof.verdict == Verdict::Failing).map(|proof| proof.since)
}

/// A cluster that was given the goal and does not run it: it is moving, or has failed to. What has changed since it was given the goal,
/// by a user or because it was there before, starts the time anew.
fn on_its_way(
    given: &Given,
    changed: Option<&Proof>,
    failing: Option<Timestamp>,
    limits: &Limits,
    now: Timestamp,
) -> Standing {
    let begun = Some(given.since).max(limits.retried).max(changed.map(|proof| proof.since));
    let no_patience = failing.max(failing.and(limits.retried)).map(|since| after(since, APPLY_GRACE_PERIOD));
    let too_late = begun.zip(limits.strategy.deadline).map(|(begun, deadline)| after(begun, deadline));
    // What ended the wait first is what it failed of, for good.
    let is_late = too_late.is_some_and(|end| no_patience.is_none_or(|other| end < other));
    let until = no_patience.into_iter().chain(too_late).min();
    if until.is_some_and(|end| end <= now) {
        return Standing::Failed(if is_late { Failure::TooLate } else { Failure::NotApplied });
    }
    Standing::Moving { until }
}
