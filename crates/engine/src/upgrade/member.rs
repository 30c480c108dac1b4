//! One cluster of an upgrade: how it stands, and the one thing that is to be done about it next.
//!
//! All that is decided is kept in the cluster's ClusterUpgrade. What is intended is written there first, and done after that: who finds a phase
//! without the work that belongs to it makes the work. So each thing can be done again, and nothing depends on what a process has in mind.

mod effects;
mod phases;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use drover_api::{
    cluster::OperatorUpgrades,
    drover::{
        ActionDone, ClusterUpgrade, ClusterUpgradePhase as Phase, ClusterUpgradeSpec, ClusterUpgradeStatus, UpgradeRef,
    },
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::{
    action::{Action, Doing},
    naming::Part,
    platform::{Errand, Order},
    reason::Reason,
    target::Target,
    work::PartWork,
};
use crate::condition::Holds;

/// How long an agent may fail to read or apply something before it is believed that it can not.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long an agent may take to take something up before that is not counted as its cluster's time.
pub const DELIVERY_GRACE: Duration = Duration::from_mins(5);

/// What every cluster of an upgrade is looked at by.
#[derive(Clone, Debug)]
pub struct Course {
    /// The upgrade.
    pub upgrade: UpgradeRef,
    /// What clusters are upgraded to, and what is sent for that.
    pub errand: Errand,
    /// Which operators are upgraded.
    pub operators: Option<OperatorUpgrades>,
    /// What is sent to upgrade them.
    pub operator_order: Option<Order>,
    /// What is done before.
    pub pre_action: Option<Action>,
    /// What is done after.
    pub post_action: Option<Action>,
    /// How long the upgrade of a platform may take.
    pub platform_limit: Duration,
    /// How long that of operators may take.
    pub operators_limit: Duration,
    /// Whether the cluster on which the hub runs may be upgraded.
    pub may_upgrade_hub: bool,
    /// When somebody last asked to try again what had failed.
    pub retried: Option<Timestamp>,
    /// Whether every cluster has come to rest, so that what the actions have left can go.
    pub is_at_rest: bool,
    /// Since when clusters are looked at without interruption. Who has just begun to look knows nothing of how long anything took.
    pub attentive_since: Timestamp,
}

/// Whether a cluster is one of those that are upgraded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// It is.
    In {
        /// Whether it is one of the canaries.
        is_canary: bool,
    },
    /// It is not selected at the moment, which may be all there is to it.
    Unsure,
    /// It is not.
    Out,
}

/// Whose a cluster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody's.
    Nobody,
    /// This upgrade's.
    Us,
    /// Another's.
    Other(String),
}

/// Whether a cluster can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It can.
    Online,
    /// It can not.
    Offline {
        /// Since when, if that is known.
        since: Option<Timestamp>,
    },
}

/// What is known of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// By which it is told from another of its name.
    pub uid: Option<String>,
    /// Whether it can be reached.
    pub reach: Reach,
    /// Whether works can be made for it.
    pub takes_works: bool,
    /// The version that it claims to run.
    pub version: Option<String>,
    /// Whose it is.
    pub owner: Owner,
    /// Whether the hub runs on it.
    pub is_hub: bool,
}

/// All that one cluster is decided by.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Whether it is upgraded.
    pub membership: Membership,
    /// The cluster, unless it is gone or goes.
    pub cluster: Option<&'a Cluster>,
    /// What was decided before.
    pub record: Option<&'a ClusterUpgrade>,
    /// Its works.
    pub works: &'a BTreeMap<Part, PartWork>,
}

/// What a cluster may do now that waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Nothing.
    Wait,
    /// Begin with what comes before its upgrade.
    Prepare,
    /// Begin.
    Start,
}

/// How a cluster stands, for whoever decides on turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It waits for its turn.
    Queued {
        /// Whether it has been promised its turn.
        is_claimed: bool,
    },
    /// It has begun before, and waits for its turn to do what is left.
    Resumable,
    /// It can not have its turn now.
    Barred,
    /// What comes before its upgrade is under way.
    Preparing,
    /// That is done, and it waits for its turn.
    Ready,
    /// Its upgrade is written, and not begun.
    Begun,
    /// It is being upgraded.
    Partial,
    /// It is done.
    Complete,
    /// It has failed.
    Failed {
        /// Whether it was begun.
        was_begun: bool,
        /// Whether it is still on its way.
        is_moving: bool,
    },
    /// It is on its way out of the upgrade.
    Leaving,
}

impl Standing {
    /// Whether the cluster has one of the places of those that are upgraded at a time.
    #[must_use]
    pub fn has_slot(&self) -> bool {
        matches!(self, Self::Begun | Self::Partial)
    }

    /// Whether nothing more will happen to the cluster by itself.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        matches!(self, Self::Complete | Self::Failed { .. } | Self::Leaving)
    }
}

/// What is to be done about a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Its record is made.
    Make(Box<ClusterUpgradeSpec>),
    /// Its record is made to say what it is upgraded to from now on.
    Retarget(Box<ClusterUpgradeSpec>),
    /// Its record says this.
    Tell(Box<ClusterUpgradeStatus>),
    /// It is told whose it is.
    Claim,
    /// It is let go.
    Release,
    /// A work is made, or made to say this.
    Send(Part, Box<Order>),
    /// These works are removed.
    Withdraw(Vec<Part>),
    /// Its record is removed.
    Drop,
}

/// How far an action is, for counts.
#[expect(clippy::struct_excessive_bools, reason = "the specification counts each of them by itself")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionTally {
    /// Whether the cluster is to do it.
    pub total: bool,
    /// Whether it is applied.
    pub applied: bool,
    /// Whether it is done.
    pub available: bool,
    /// Whether it has failed.
    pub degraded: bool,
}

/// What comes of a look at a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// How it stands.
    pub standing: Standing,
    /// What is done about it, if anything.
    pub act: Option<Act>,
    /// When it wants attention though nothing has changed.
    pub wake: Option<Timestamp>,
    /// How far the action before is.
    pub pre_action: ActionTally,
    /// How far the action after is.
    pub post_action: ActionTally,
    /// How long its upgrade took, if it was upgraded.
    pub took: Option<Duration>,
}

/// A cluster under consideration.
struct Subject<'a> {
    facts: Facts<'a>,
    cluster: &'a Cluster,
    record: &'a ClusterUpgrade,
    /// What the cluster is held to, which may not be what is wanted now.
    errand: Cow<'a, Errand>,
    course: &'a Course,
    permit: Permit,
    now: Timestamp,
}

/// What was found of a cluster in its phase.
struct Found {
    /// What its record is to say.
    status: ClusterUpgradeStatus,
    standing: Standing,
    wake: Option<Timestamp>,
    /// Whether it has to be told first whose it is.
    needs_claim: bool,
}

/// Looks at a cluster.
#[must_use]
pub fn look(facts: Facts, course: &Course, permit: Permit, now: Timestamp) -> Look {
    let Some(cluster) = facts.cluster else { return dismiss(facts, &Owner::Nobody) };
    let Some(record) = facts.record else {
        return match facts.membership {
            // There is no place for it yet.
            Membership::In { .. } if !cluster.takes_works => plain(Standing::Barred, None),
            Membership::In { is_canary } => {
                plain(Standing::Barred, Some(Act::Make(Box::new(spec(course, cluster, is_canary)))))
            }
            Membership::Unsure | Membership::Out => dismiss(facts, &cluster.owner),
        };
    };
    let is_other = record.spec.cluster_uid != cluster.uid || record.spec.upgrade.uid != course.upgrade.uid;
    if is_other || record.metadata.deletion_timestamp.is_some() {
        let look = dismiss(facts, &cluster.owner);
        // It starts afresh, and is waited for until then.
        let is_in = matches!(facts.membership, Membership::In { .. });
        return if is_in { Look { standing: Standing::Barred, ..look } } else { look };
    }
    let is_same = record.spec.target == *course.errand.target.written();
    let errand =
        if is_same { Cow::Borrowed(&course.errand) } else { Cow::Owned(Errand::of(Target::of(&record.spec.target))) };
    Subject { facts, cluster, record, errand, course, permit, now }.look()
}

/// Lets a cluster go that the upgrade has nothing to do with any more.
fn dismiss(facts: Facts, owner: &Owner) -> Look {
    let there: Vec<_> = facts.works.iter().filter(|(_, work)| !work.is_leaving).map(|(part, _)| *part).collect();
    let is_there = facts.record.is_some_and(|record| record.metadata.deletion_timestamp.is_none());
    let act = match () {
        () if !there.is_empty() => Some(Act::Withdraw(there)),
        () if *owner == Owner::Us => Some(Act::Release),
        () if is_there => Some(Act::Drop),
        () => None,
    };
    plain(Standing::Leaving, act)
}

fn plain(standing: Standing, act: Option<Act>) -> Look {
    let (pre_action, post_action) = (ActionTally::default(), ActionTally::default());
    Look { standing, act, wake: None, pre_action, post_action, took: None }
}

/// What a cluster's record is made with.
fn spec(course: &Course, cluster: &Cluster, is_canary: bool) -> ClusterUpgradeSpec {
    ClusterUpgradeSpec {
        upgrade: course.upgrade.clone(),
        target: course.errand.target.written().clone(),
        operators: course.operators.clone(),
        cluster_uid: cluster.uid.clone(),
        canary: is_canary.then_some(true),
    }
}

impl Subject<'_> {
    fn look(&self) -> Look {
        let stored = self.status();
        let phase = stored.phase.unwrap_or(Phase::Waiting);
        // Whose platform is upgraded goes on to the end. One that failed and waits to be tried again is as free as one that failed.
        let may_go = match phase {
            Phase::Waiting | Phase::PreAction => stored.platform_completed.is_none(),
            Phase::Failed => true,
            Phase::Upgrading | Phase::Operators | Phase::PostAction | Phase::Complete => false,
        };
        // What a cluster came to for another target says nothing of this one, and it is not upgraded to this one.
        let is_past = phase == Phase::Complete && !self.is_same_target();
        if self.facts.membership == Membership::Out && (may_go || is_past) {
            return dismiss(self.facts, &self.cluster.owner);
        }
        if let Some(look) = self.retarget(&stored, phase) {
            return look;
        }
        let mut found = self.follow(stored.clone(), phase);
        let act = self.act(&stored, &mut found);
        let took = took(&found.status);
        Look {
            pre_action: self.tally(Part::PreAction, &found.status),
            post_action: self.tally(Part::PostAction, &found.status),
            standing: self.counted(&stored, phase, &found),
            act,
            wake: found.wake.into_iter().chain(self.deadlines(phase)).filter(|wake| *wake > self.now).min(),
            took,
        }
    }

    /// When something comes to its end, though nothing is heard of it, that was sent to the cluster before its upgrade.
    fn deadlines(&self, phase: Phase) -> impl Iterator<Item = Timestamp> {
        let is_before = matches!(phase, Phase::Waiting | Phase::PreAction);
        let preflight = is_before.then(|| self.preflight().1).flatten();
        let action = is_before.then(|| self.action_deadline()).flatten();
        // What lies ahead was asked for before the clock was set back.
        let retry = self.course.retried.filter(|_| is_before);
        let parts = [Part::PreAction, Part::PostAction].into_iter();
        let patience = parts.filter_map(|part| patience(self.work(part)?));
        [preflight, action, retry].into_iter().flatten().chain(patience)
    }

    /// When the action before the upgrade takes too long, if it is under way.
    fn action_deadline(&self) -> Option<Timestamp> {
        let action = self.course.pre_action.as_ref()?;
        let is_under_way = matches!(self.doing(Part::PreAction, action)?, Doing::Sent | Doing::Progressing);
        let work = self.work(Part::PreAction).filter(|_| is_under_way)?;
        Some(self.look_at(after(work.since(), action.limit)))
    }

    /// How the cluster counts. It has a place from when that is found, and is over, or its place is free, only once that is written.
    fn counted(&self, stored: &ClusterUpgradeStatus, phase: Phase, found: &Found) -> Standing {
        let is_over = matches!(phase, Phase::Complete | Phase::Failed);
        if is_over && self.facts.membership == Membership::Unsure && !self.is_same_target() {
            // What it came to, it came to for another target; whether it is upgraded to this one is not known.
            return Standing::Barred;
        }
        let is_written = found.status.phase.unwrap_or(Phase::Waiting) == phase;
        if is_written || found.standing.has_slot() || found.standing == Standing::Preparing {
            return found.standing.clone();
        }
        match phase {
            Phase::Waiting => Standing::Barred,
            Phase::PreAction => Standing::Preparing,
            Phase::Upgrading => Standing::Begun,
            Phase::Operators | Phase::PostAction => Standing::Partial,
            Phase::Complete => Standing::Complete,
            Phase::Failed => Standing::Failed { was_begun: stored.started.is_some(), is_moving: false },
        }
    }

    /// What the record says of what it says now that the cluster is upgraded to. What it said of something else is void.
    fn status(&self) -> ClusterUpgradeStatus {
        let stored = self.record.status.clone().unwrap_or_default();
        if stored.observed_generation == self.record.metadata.generation {
            return stored;
        }
        ClusterUpgradeStatus {
            observed_generation: self.record.metadata.generation,
            current_version: stored.current_version,
            acknowledged: stored.acknowledged,
            ..ClusterUpgradeStatus::default()
        }
    }

    /// Has a cluster be upgraded to what is wanted now, if that was edited and the cluster is not under way.
    fn retarget(&self, stored: &ClusterUpgradeStatus, phase: Phase) -> Option<Look> {
        let Membership::In { is_canary } = self.facts.membership else { return None };
        let wanted = spec(self.course, self.cluster, is_canary);
        let is_settled = phase != Phase::Waiting || stored.started.is_some() || stored.platform_completed.is_some();
        let is_same = self.is_same_target() && (is_settled || self.record.spec == wanted);
        if is_same {
            return None;
        }
        match phase {
            Phase::Waiting | Phase::Complete | Phase::Failed => {
                Some(plain(Standing::Barred, Some(Act::Retarget(Box::new(wanted)))))
            }
            // It has not begun, and waits again first.
            Phase::PreAction => {
                let waits = self.waits(stored.clone(), &Reason::Queued);
                Some(plain(Standing::Preparing, Some(Act::Tell(Box::new(waits)))))
            }
            Phase::Upgrading | Phase::Operators | Phase::PostAction => None,
        }
    }

    /// Whether the cluster is held to what is wanted now.
    fn is_same_target(&self) -> bool {
        self.errand.target.name() == self.course.errand.target.name()
    }

    /// The target that the cluster is held to.
    fn target(&self) -> &Target {
        &self.errand.target
    }

    fn work(&self, part: Part) -> Option<&PartWork> {
        self.facts.works.get(&part).filter(|work| !work.is_leaving)
    }

    fn has(&self, part: Part) -> bool {
        self.facts.works.contains_key(&part)
    }

    /// How far an action is whose work is there and is the one that is asked for.
    fn doing(&self, part: Part, action: &Action) -> Option<Doing> {
        let work = self.work(part).filter(|work| work.says(&action.order.name))?;
        // What can not be applied now may be a moment later: after an upgrade much is not there yet.
        if patience(work).is_some_and(|until| until > self.now) {
            return Some(Doing::Sent);
        }
        Some(action.doing(work))
    }

    /// Whether a time has come. Who has only just begun to look waits a moment longer: the news may be on its way.
    fn has_come(&self, time: Timestamp) -> bool {
        time <= self.now && after(self.course.attentive_since, ATTENTION) <= self.now
    }

    /// Whether a time has come, or had come before and the cluster waits for that reason: who has just begun to look does not take it back.
    fn has_come_for(&self, reason: &Reason, time: Timestamp) -> bool {
        let stored = self.record.status.as_ref();
        let is_told = stored.is_some_and(|status| status.reason.as_deref() == Some(reason.word()));
        self.has_come(time) || (is_told && time <= self.now)
    }

    /// Whether the action before the upgrade has had all its time.
    fn is_up(&self, work: &PartWork, action: &Action) -> bool {
        self.has_come_for(&Reason::PreActionDegraded { why: None }, after(work.since(), action.limit))
    }

    /// When to look whether a time has come.
    fn look_at(&self, time: Timestamp) -> Timestamp {
        time.max(after(self.course.attentive_since, ATTENTION))
    }

    fn tally(&self, part: Part, status: &ClusterUpgradeStatus) -> ActionTally {
        let (action, done) = match part {
            Part::PreAction => (&self.course.pre_action, &status.pre_action),
            _ => (&self.course.post_action, &status.post_action),
        };
        let Some(action) = action else { return ActionTally::default() };
        let is_done = |done: &ActionDone| status.started.is_some() || done.action == action.order.name;
        if done.as_ref().is_some_and(is_done) {
            return ActionTally { total: true, applied: true, available: true, degraded: false };
        }
        let Some(doing) = self.doing(part, action) else { return ActionTally::default() };
        let is_late = match part {
            Part::PreAction => self.work(part).is_some_and(|work| self.is_up(work, action)),
            _ => status.failed_phase == Some(Phase::PostAction),
        };
        ActionTally {
            total: true,
            applied: doing != Doing::Sent,
            available: doing == Doing::Available,
            degraded: matches!(doing, Doing::Degraded(_)) || (is_late && doing != Doing::Available),
        }
    }
}

/// Until when it is waited whether a work can be applied that could not be.
fn patience(work: &PartWork) -> Option<Timestamp> {
    let is_refused = work.report.applied.is_some_and(|said| said.holds == Holds::No);
    is_refused.then(|| after(work.since(), PATIENCE))
}

/// How long an upgrade took that is done.
fn took(status: &ClusterUpgradeStatus) -> Option<Duration> {
    let (Some(Time(started)), Some(Time(finished))) = (&status.started, &status.finished) else { return None };
    let is_done = status.phase == Some(Phase::Complete);
    is_done.then(|| Duration::try_from(finished.duration_since(*started)).unwrap_or_default())
}

/// How long somebody has to have looked at a cluster to say that something took too long.
const ATTENTION: Duration = Duration::from_secs(10);

/// A while after a time.
pub(super) fn after(time: Timestamp, while_: Duration) -> Timestamp {
    time.checked_add(while_).unwrap_or(Timestamp::MAX)
}
