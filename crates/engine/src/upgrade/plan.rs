//! Whose turn it is: canaries first, then the rest, never more at a time than allowed.
//!
//! Clusters are kept by how they stand, and counted as they change, so that what comes of a change of one costs a look at one.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use drover_api::{drover::ClusterUpgrade, grammar::SetFingerprint, reference::ClusterName};
use k8s_openapi::jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::{
    member::{ActionTally, Permit, Standing, after},
    tally::Tally,
};
use crate::{tracker::MemberIndex, words::clusters};

/// How clusters are upgraded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strategy {
    /// How many at a time.
    pub limit: usize,
    /// Whether canaries go first.
    pub has_canaries: bool,
    /// How long canaries have to have been done.
    pub soak: Duration,
    /// How many may fail before no more are begun.
    pub max_failures: Option<usize>,
}

/// The turn of a cluster among those that wait: the lowest is first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    /// The cluster on which the hub runs is the last.
    is_hub: bool,
    /// Who is to be tried again comes before who was never begun.
    is_fresh: bool,
    /// What people say of its turn.
    priority: i64,
    /// So that neighbours are not hit together, and every upgrade begins elsewhere.
    shuffle: u64,
}

impl Turn {
    /// The turn of a cluster in an upgrade.
    #[must_use]
    pub fn of(cluster: &ClusterName, uid: Option<&str>, upgrade: &str, priority: i64, is_hub: bool) -> Self {
        let digest = Sha256::digest(format!("{upgrade}/{}/{cluster}", uid.unwrap_or_default()));
        let mut shuffle = [0; 8];
        shuffle.copy_from_slice(&digest[..8]);
        Self { is_hub, is_fresh: true, priority, shuffle: u64::from_be_bytes(shuffle) }
    }

    /// The same turn, given what was done about the cluster before.
    #[must_use]
    pub fn given(self, record: Option<&ClusterUpgrade>) -> Self {
        let status = record.and_then(|record| record.status.as_ref());
        if status.is_some_and(|status| status.started.is_some()) { self.again() } else { self }
    }

    fn again(self) -> Self {
        Self { is_fresh: false, ..self }
    }

    /// Whether it is that of a cluster that was begun before, and that need not wait for all others.
    #[must_use]
    pub fn is_again(&self) -> bool {
        !self.is_fresh && !self.is_hub
    }
}

/// A cluster of an upgrade, as whoever decides on turns sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Whether it is one of the canaries.
    pub is_canary: bool,
    /// Whether it is selected; one that is not any more has been begun before.
    pub is_selected: bool,
    /// Its turn.
    pub turn: Turn,
    /// How it stands.
    pub standing: Standing,
    /// How far the action before is.
    pub pre_action: ActionTally,
    /// How far the action after is.
    pub post_action: ActionTally,
    /// How long it took, if it is done.
    pub took: Option<Duration>,
}

/// What keeps clusters from being begun that wait for their turn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Hold {
    /// Somebody has paused the upgrade.
    #[error("the upgrade is paused: take the annotation drover.dev/pause off to go on")]
    Paused,
    /// There are to be canaries, and none is selected.
    #[error(
        "canaryClusters selects none of the clusters that are upgraded, so that nothing is begun: correct its clusterSelector"
    )]
    NoCanaries,
    /// A canary has failed.
    #[error(
        "{failed} failed as a canary, so that no other cluster is begun: see its ClusterUpgrade; correct what it says and annotate the upgrade with drover.dev/retry, leave it out, or change the target"
    )]
    CanaryFailed {
        /// One that has.
        failed: ClusterName,
    },
    /// Canaries are not done yet.
    #[error("{done} of {total} canaries are done; the other clusters wait for them")]
    Canaries {
        /// How many are.
        done: i64,
        /// How many there are.
        total: i64,
    },
    /// Canaries are done, and it is waited whether they stay well.
    #[error("all canaries are done, and the other clusters wait until {until}")]
    Soak {
        /// Until when.
        until: Timestamp,
    },
    /// Too many have failed.
    #[error(
        "{} failed, and {allowed} may, so that no more are begun: correct what their ClusterUpgrades say and annotate the upgrade with drover.dev/retry",
        clusters(*failed)
    )]
    Failures {
        /// How many have.
        failed: i64,
        /// How many may.
        allowed: usize,
    },
    /// Too many have failed that are still on their way.
    #[error("{} failed to be upgraded in time and are still on their way, so that no more are begun", clusters(*moving))]
    StillMoving {
        /// How many.
        moving: i64,
    },
}

/// That all canaries were upgraded to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The target.
    pub target: SetFingerprint,
    /// When the last of them was.
    pub time: Timestamp,
}

/// Whose turn it is, and why it is not that of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Who may do what now.
    pub permits: Vec<(ClusterName, Permit)>,
    /// What keeps others from being begun.
    pub hold: Option<Hold>,
    /// That the canaries have passed.
    pub passed: Option<Passed>,
    /// When this is to be decided on again though nothing has changed.
    pub wake: Option<Timestamp>,
}

/// All clusters of an upgrade.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    members: BTreeMap<ClusterName, Member>,
    /// Who waits, in the order of turns: canaries, and the others.
    lines: [Lines; 2],
    all: Tally,
    canaries: Tally,
    failed: BTreeSet<ClusterName>,
    failed_canaries: BTreeSet<ClusterName>,
    /// The clusters on which the hub runs, as far as something will happen to them yet, in the order of turns.
    hubs: BTreeSet<(Turn, ClusterName)>,
    /// Those of them that are under way.
    hubs_under_way: BTreeSet<ClusterName>,
}

/// Those who wait for their turn.
#[derive(Clone, Debug, Default)]
struct Lines {
    /// For one to do what is left.
    resumable: BTreeSet<(Turn, ClusterName)>,
    /// For one to begin, with all done that comes before.
    ready: BTreeSet<(Turn, ClusterName)>,
    /// Those who have been promised one to do what comes before.
    claimed: BTreeSet<(Turn, ClusterName)>,
    /// For one to do what comes before.
    queued: BTreeSet<(Turn, ClusterName)>,
}

impl Lines {
    fn of(&mut self, standing: &Standing) -> Option<&mut BTreeSet<(Turn, ClusterName)>> {
        match standing {
            Standing::Resumable => Some(&mut self.resumable),
            Standing::Ready => Some(&mut self.ready),
            Standing::Queued { is_claimed: true } => Some(&mut self.claimed),
            Standing::Queued { is_claimed: false } => Some(&mut self.queued),
            _ => None,
        }
    }
}

impl Fleet {
    /// Takes note of a cluster as it is now, or that the upgrade has nothing to do with it any more.
    pub fn update(&mut self, name: &ClusterName, member: Option<Member>) {
        if self.members.get(name) == member.as_ref() {
            return;
        }
        if let Some(former) = self.members.remove(name) {
            self.count(name, &former, false);
        }
        if let Some(member) = member.filter(|member| member.standing != Standing::Leaving) {
            self.count(name, &member, true);
            self.members.insert(name.clone(), member);
        }
    }

    fn count(&mut self, name: &ClusterName, member: &Member, is_there: bool) {
        let key = (member.turn.clone(), name.clone());
        if let Some(line) = self.lines[usize::from(!member.is_canary)].of(&member.standing) {
            if is_there {
                line.insert(key)
            } else {
                line.remove(&key)
            };
        }
        self.all.count(member, is_there);
        let has_failed = is_there && matches!(member.standing, Standing::Failed { .. });
        note(&mut self.failed, name, has_failed);
        note(&mut self.failed_canaries, name, has_failed && member.is_canary);
        let is_under_way =
            member.standing.has_slot() || matches!(member.standing, Standing::Preparing | Standing::Ready);
        note(&mut self.hubs_under_way, name, is_there && member.turn.is_hub && is_under_way);
        let is_restless_hub = member.turn.is_hub && !member.standing.is_at_rest();
        note(&mut self.hubs, &(member.turn.clone(), name.clone()), is_there && is_restless_hub);
        if member.is_canary {
            self.canaries.count(member, is_there);
        }
    }

    /// All clusters, counted.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.all
    }

    /// The canaries, counted.
    #[must_use]
    pub fn canaries(&self) -> &Tally {
        &self.canaries
    }

    /// A canary that has failed, if one has.
    #[must_use]
    pub fn failed_canary(&self) -> Option<&ClusterName> {
        self.failed_canaries.first()
    }

    /// The clusters that have failed.
    pub fn failed(&self) -> impl Iterator<Item = &ClusterName> {
        self.failed.iter()
    }

    /// The clusters that there are.
    pub fn members(&self) -> impl Iterator<Item = (&ClusterName, &Member)> {
        self.members.iter()
    }

    /// How a cluster stands.
    #[must_use]
    pub fn member(&self, name: &ClusterName) -> Option<&Member> {
        self.members.get(name)
    }

    /// Decides whose turn it is. `passed` is what is known of canaries, `target` what clusters are upgraded to now.
    #[must_use]
    pub fn plan(
        &self,
        strategy: &Strategy,
        target: &SetFingerprint,
        passed: Option<&Passed>,
        is_paused: bool,
        now: Timestamp,
    ) -> Plan {
        let passed = self.passed(strategy, target, passed, now);
        let gate = self.gate(strategy, passed.as_ref(), now);
        let brake = self.brake(strategy, is_paused);
        let wake = match &gate {
            Some(Hold::Soak { until }) => Some(*until),
            _ => None,
        };
        let mut plan = Plan { passed, wake, ..Plan::default() };
        if brake.is_none() {
            plan.permits = self.permits(strategy.limit, gate.as_ref());
        }
        plan.hold = brake.or(gate);
        plan
    }

    /// Whether the canaries have passed: once they have, that stays so for the target.
    fn passed(
        &self,
        strategy: &Strategy,
        target: &SetFingerprint,
        stored: Option<&Passed>,
        now: Timestamp,
    ) -> Option<Passed> {
        if !strategy.has_canaries {
            return None;
        }
        if let Some(stored) = stored.filter(|stored| stored.target == *target) {
            return Some(stored.clone());
        }
        let is_over = self.canaries.total > 0 && self.canaries.complete == self.canaries.total;
        is_over.then(|| Passed { target: target.clone(), time: now })
    }

    /// What keeps those from being begun who are no canaries.
    fn gate(&self, strategy: &Strategy, passed: Option<&Passed>, now: Timestamp) -> Option<Hold> {
        if !strategy.has_canaries {
            return None;
        }
        if let Some(passed) = passed {
            let until = after(passed.time, strategy.soak);
            return (until > now).then_some(Hold::Soak { until });
        }
        if self.all.total > 0 && self.canaries.total == 0 {
            return Some(Hold::NoCanaries);
        }
        if let Some(failed) = self.failed_canary() {
            return Some(Hold::CanaryFailed { failed: failed.clone() });
        }
        Some(Hold::Canaries { done: self.canaries.complete, total: self.canaries.total })
    }

    /// What keeps everybody from being begun.
    fn brake(&self, strategy: &Strategy, is_paused: bool) -> Option<Hold> {
        if is_paused {
            return Some(Hold::Paused);
        }
        let limit = i64::try_from(strategy.limit).unwrap_or(i64::MAX);
        if self.all.still_moving > limit {
            return Some(Hold::StillMoving { moving: self.all.still_moving });
        }
        let allowed = strategy.max_failures?;
        // Who was not begun has not failed for what is rolled out.
        let failed = self.all.failed_begun;
        let is_over = failed > i64::try_from(allowed).unwrap_or(i64::MAX);
        is_over.then_some(Hold::Failures { failed, allowed })
    }

    /// Who may begin, with what is left of the places. Some are kept for those who are to be tried again, as far as they prepare for it or can
    /// begin to. While the others are held back, what they hold of the places before their upgrades does not keep canaries from theirs; once
    /// a canary has failed, only what was begun before is gone on with.
    fn permits(&self, limit: usize, gate: Option<&Hold>) -> Vec<(ClusterName, Permit)> {
        let count = |number: i64| usize::try_from(number).unwrap_or(0);
        let lines = &self.lines[..if gate.is_none() { 2 } else { 1 }];
        let fresh = if matches!(gate, Some(Hold::CanaryFailed { .. })) { &[] } else { lines };
        let resumable = lines.iter().flat_map(|lines| &lines.resumable);
        let ready = fresh.iter().flat_map(|lines| &lines.ready);
        let claimed = fresh.iter().flat_map(|lines| &lines.claimed);
        let queued = fresh.iter().flat_map(|lines| &lines.queued);
        let tally = if gate.is_none() { &self.all } else { &self.canaries };
        let slots = limit.saturating_sub(count(self.all.in_slots));
        let places = limit.saturating_sub(count(tally.preparing));
        let kept = count(tally.preparing_again) + count(tally.queued_again).min(places);
        let turns = |line: &mut dyn Iterator<Item = &(Turn, ClusterName)>, number: usize, permit: Permit| {
            let names = line.filter(|(turn, name)| self.is_its_turn(turn, name)).map(|(_, name)| name.clone());
            names.take(number).map(|name| (name, permit)).collect::<Vec<_>>()
        };
        let (again, fresh): (Vec<_>, Vec<_>) = resumable.chain(ready).partition(|(turn, _)| turn.is_again());
        let mut permits = turns(&mut again.into_iter(), slots, Permit::Start);
        let left = slots.saturating_sub(permits.len()).saturating_sub(kept);
        permits.extend(turns(&mut fresh.into_iter(), left, Permit::Start));
        permits.extend(turns(&mut claimed.chain(queued), places, Permit::Prepare));
        permits
    }

    /// Whether a cluster may have its turn beside the one on which the hub runs: that one waits until all others are at rest, and from then
    /// on all others wait for it.
    fn is_its_turn(&self, turn: &Turn, name: &ClusterName) -> bool {
        if self.hubs_under_way.is_empty() {
            return !turn.is_hub || self.is_last(name);
        }
        self.hubs_under_way.contains(name)
    }

    /// Whether every cluster has come to rest on which no hub runs, and this is the first of those on which one does.
    fn is_last(&self, name: &ClusterName) -> bool {
        let are_others_at_rest = usize::try_from(self.all.restless) == Ok(self.hubs.len());
        are_others_at_rest && self.hubs.first().is_some_and(|(_, first)| first == name)
    }
}

impl MemberIndex for Fleet {
    type Member = Member;

    fn update(&mut self, cluster: &ClusterName, member: Option<Member>) {
        self.update(cluster, member);
    }

    fn members(&self) -> impl Iterator<Item = &ClusterName> {
        self.members.keys()
    }

    fn is_settled(&self) -> bool {
        self.all.restless == 0
    }
}

/// Takes note of whether somebody is one of these.
fn note<T: Ord + Clone>(names: &mut BTreeSet<T>, name: &T, is_one: bool) {
    if is_one {
        names.insert(name.clone());
    } else {
        names.remove(name);
    }
}
