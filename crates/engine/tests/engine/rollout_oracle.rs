//! What can be said of a world without the planner: who decides for whom, who is on the way, who has failed, and what canaries have shown.
//!
//! It is written from the rules alone, knows nothing of lanes and standings, and is as slow as it likes.

use std::{collections::BTreeSet, time::Duration};

use drover_api::{grammar::SetFingerprint, reference::ClusterName};
use drover_engine::{
    presence::Source,
    revision::Set,
    revision::markers::{Proof, Verdict},
    rollout::{
        Plan, Target,
        member::Member,
        strategy::{Stage, Strategy},
    },
};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::rollout_world::{World, effective};

/// How long something may fail to apply.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a cluster holds up what comes next.
const STUCK_AFTER: Duration = Duration::from_mins(10);

pub(crate) fn later(time: Timestamp, length: Duration) -> Timestamp {
    time + SignedDuration::try_from(length).expect("a length that fits")
}

/// What is known of an add-on's present state.
fn current_proof(member: &Member<Set>) -> Option<&Proof> {
    let addon = member.addon.as_ref()?;
    addon.proof.as_ref().filter(|proof| Some(&proof.set) == effective(addon).as_ref())
}

pub(crate) fn given(member: &Member<Set>) -> Option<&SetFingerprint> {
    Some(&member.addon.as_ref()?.given.as_ref()?.set)
}

pub(crate) fn proof_of<'m>(member: &'m Member<Set>, set: &SetFingerprint) -> Option<&'m Proof> {
    member.addon.as_ref()?.proof.as_ref().filter(|proof| proof.set == *set)
}

pub(crate) fn has_verdict(member: &Member<Set>, set: &SetFingerprint, verdict: Verdict) -> bool {
    proof_of(member, set).is_some_and(|proof| proof.verdict == verdict)
}

/// Whether a cluster can be given anything now.
pub(crate) fn is_ready(member: &Member<Set>) -> bool {
    let is_free = member.addon.as_ref().is_some_and(|addon| !addon.is_at_odds);
    is_free && member.is_online && !member.steering.is_skipped && !member.steering.is_paused
}

impl World<'_> {
    /// Whether a cluster never ran what it is assigned. No report makes it so again.
    pub(crate) fn is_in_flight(&self, name: &ClusterName) -> bool {
        let addon = self.known.get(name).and_then(|member| member.addon.as_ref());
        addon.and_then(effective).is_some_and(|assigned| self.ran.get(name) != Some(&assigned))
    }

    pub(crate) fn strategy(&self, entry: usize) -> Strategy {
        self.entries[entry].strategy.clone().unwrap_or_default()
    }

    /// The entry of the canaries that another waits for.
    pub(crate) fn canary(&self, entry: usize) -> Option<usize> {
        let canary = self.strategy(entry).canary?;
        let is_it = |source: &Source| match source {
            Source::Listed(placement) | Source::Canaries(placement) => *placement == canary,
            Source::Nobody => false,
        };
        self.entries.iter().position(|entry| is_it(&entry.source))
    }

    pub(crate) fn is_gated(&self, entry: usize) -> bool {
        self.strategy(entry).canary.is_some()
    }

    pub(crate) fn gated(&self) -> impl Iterator<Item = usize> {
        (0..self.entries.len()).filter(|entry| self.is_gated(*entry))
    }

    /// Whom an entry waits for, and whom they wait for, and so on.
    fn ahead_of(&self, entry: usize) -> Vec<usize> {
        let mut chain = Vec::new();
        let mut current = entry;
        while let Some(next) = self.canary(current).filter(|next| !chain.contains(next)) {
            chain.push(next);
            current = next;
        }
        chain
    }

    pub(crate) fn waits_for_itself(&self, entry: usize) -> bool {
        let is_circular = |entry: &usize| self.ahead_of(*entry).contains(entry);
        is_circular(&entry) || self.ahead_of(entry).iter().any(is_circular)
    }

    pub(crate) fn is_listed(&self, entry: usize) -> bool {
        matches!(self.entries[entry].source, Source::Listed(_))
    }

    /// Who decides for a cluster: of the canary placements that select it the one that the others wait for, else the last in the list.
    pub(crate) fn decides(&self, member: &Member<Set>) -> Option<usize> {
        let selecting = member.selections.iter().map(|selection| selection.placement);
        let listed: Vec<_> = selecting.filter(|entry| self.is_listed(*entry)).collect();
        let is_canary = |entry: &&usize| self.gated().any(|gated| self.canary(gated) == Some(**entry));
        let canaries: Vec<_> = listed.iter().filter(is_canary).copied().collect();
        let is_first = |entry: &&usize| !self.ahead_of(**entry).iter().any(|ahead| canaries.contains(ahead));
        let first = canaries.iter().filter(is_first).max();
        first.or(canaries.iter().max()).or(listed.iter().max()).copied().or_else(|| self.decided_by_nobody(member))
    }

    fn decided_by_nobody(&self, member: &Member<Set>) -> Option<usize> {
        let addon = member.addon.as_ref()?;
        let has_list = (0..self.entries.len()).any(|entry| self.is_listed(entry));
        let nobody = self.entries.iter().position(|entry| entry.source == Source::Nobody)?;
        (addon.is_hand_made || !has_list).then_some(nobody)
    }

    /// The clusters that an entry decides for.
    pub(crate) fn decided(&self, entry: usize) -> impl Iterator<Item = (&ClusterName, &Member<Set>)> {
        self.known.iter().filter(move |(_, member)| self.decides(member) == Some(entry))
    }

    pub(crate) fn is_selected(&self, name: &ClusterName, entry: usize) -> bool {
        let member = self.known.get(name);
        member.is_some_and(|member| member.selections.iter().any(|selection| selection.placement == entry))
    }

    /// How many clusters count for an entry.
    pub(crate) fn total(&self, entry: usize) -> usize {
        let counts = |(name, member): &(&ClusterName, &Member<Set>)| {
            let moves = self.decides(member);
            let is_overlap = |moves: usize| self.is_selected(name, entry) && self.ahead_of(entry).contains(&moves);
            moves == Some(entry) || moves.is_some_and(is_overlap)
        };
        self.known.iter().filter(counts).count()
    }

    /// The stage that a cluster belongs to.
    pub(crate) fn stage(&self, entry: usize, name: &ClusterName) -> Stage {
        let selections = &self.known[name].selections;
        let selection = selections.iter().find(|selection| selection.placement == entry);
        self.strategy(entry).stages.of(&selection.map(|selection| selection.group.clone()).unwrap_or_default())
    }

    /// Whether later stages have to wait for a cluster: it can be moved, and is not updated or has
    /// not soaked.
    pub(crate) fn is_open(&self, entry: usize, name: &ClusterName, goal: &SetFingerprint) -> bool {
        let member = &self.known[name];
        if !is_ready(member) || self.has_failed(entry, member, goal) {
            return false;
        }
        if given(member) != Some(goal) {
            return true;
        }
        let stored = &self.wishes[entry].stored;
        let is_soaking = |proof: &Proof| {
            let is_proven = proof.verdict == Verdict::Proven;
            is_proven && later(proof.since, self.strategy(entry).soak) > self.now
        };
        let is_settled = stored.finished.is_some() && stored.last_applied.as_ref() == Some(goal);
        self.is_in_flight(name) || (!is_settled && current_proof(member).is_some_and(is_soaking))
    }

    /// Whether a cluster that ran a revision is unhealthy, or not applied for the grace period.
    pub(crate) fn is_unhealthy(&self, member: &Member<Set>, set: &SetFingerprint) -> bool {
        proof_of(member, set).is_some_and(|proof| match proof.verdict {
            Verdict::Unhealthy => true,
            Verdict::NoLongerApplied => later(proof.since, PATIENCE) <= self.now,
            _ => false,
        })
    }

    pub(crate) fn tolerated(&self, entry: usize, name: &ClusterName) -> (usize, Vec<&ClusterName>) {
        let strategy = self.strategy(entry);
        let stage = |name: &ClusterName| self.stage(entry, name);
        let same: Vec<_> =
            self.decided(entry).map(|(name, _)| name).filter(|other| stage(other) == stage(name)).collect();
        (strategy.tolerated(stage(name), same.len(), self.total(entry)), same)
    }

    /// Whether a cluster was given a set by an entry, and has failed with it.
    pub(crate) fn has_failed(&self, entry: usize, member: &Member<Set>, set: &SetFingerprint) -> bool {
        let Some(addon) = member.addon.as_ref().filter(|addon| !addon.is_at_odds) else { return false };
        let Some(given) = addon.given.as_ref().filter(|given| given.set == *set) else { return false };
        if member.steering.is_skipped {
            return false;
        }
        let stored = &self.wishes[entry].stored;
        let settled = stored.finished.as_ref().filter(|_| stored.last_applied.as_ref() == Some(set));
        let is_settled = settled.is_some_and(|settled| given.since <= settled.0);
        let is_older = |since: Timestamp| stored.started.as_ref().is_some_and(|started| since < started.0);
        let is_own_way = effective(addon).as_ref() != Some(set);
        let retried = member.steering.retried.max(self.retried);
        let proof = current_proof(member);
        let failing = proof.filter(|proof| proof.verdict == Verdict::Failing).map(|proof| proof.since);
        match proof.map(|proof| (proof.verdict, proof.since)) {
            _ if is_own_way && is_settled => false,
            // A cluster that has run it has met the deadline.
            Some((Verdict::Proven | Verdict::Unsettled, _)) => false,
            Some((Verdict::Unhealthy | Verdict::NoLongerApplied, since)) if is_older(since) => false,
            Some((Verdict::Unhealthy, _)) if is_settled => false,
            Some((Verdict::Unhealthy, since)) if retried.is_none_or(|retried| retried < since) => true,
            Some((Verdict::NoLongerApplied, since)) => later(since.max(retried.unwrap_or(since)), PATIENCE) <= self.now,
            _ => {
                let changed = proof.filter(|_| is_own_way).map(|proof| proof.since);
                let begun = given.since.max(retried.unwrap_or(given.since)).max(changed.unwrap_or(given.since));
                let is_late = self.strategy(entry).deadline.is_some_and(|deadline| later(begun, deadline) <= self.now);
                let no_patience = failing.map(|since| later(since.max(retried.unwrap_or(since)), PATIENCE));
                is_late || no_patience.is_some_and(|end| end <= self.now)
            }
        }
    }

    /// What an entry wants, as a plan has it.
    pub(crate) fn wanted(&self, entry: usize, plan: &Plan<Set>) -> Option<Target<Set>> {
        let wish = &self.wishes[entry];
        let pin = plan.courses[entry].progress.pin.as_ref().filter(|pin| !pin.let_go);
        match (&wish.pin, pin) {
            (Some(_), Some(pin)) => Some(Ok(crate::rollout_world::goal(crate::rollout_world::letter(&pin.set)))),
            _ => wish.configured.clone(),
        }
    }

    /// What an entry wants, if that can be had.
    pub(crate) fn wanted_set(&self, entry: usize, plan: &Plan<Set>) -> Option<SetFingerprint> {
        Some(self.wanted(entry, plan)?.ok()?.fingerprint)
    }

    /// Whether a set is known to be good behind a gate, whatever canaries say.
    pub(crate) fn is_trusted(&self, entry: usize, set: &SetFingerprint) -> bool {
        let stored = &self.wishes[entry].stored;
        stored.trusted.contains(set) || stored.last_applied.as_ref() == Some(set)
    }

    /// Whether a set came through a gate and rolls out.
    pub(crate) fn rolls_out(&self, entry: usize, set: &SetFingerprint) -> bool {
        use drover_api::drover::GateState;
        self.wishes[entry].stored.gates.iter().any(|gate| gate.set == *set && gate.state == GateState::Open)
    }

    /// Whether a canary was well with a set for long enough.
    pub(crate) fn has_soaked(&self, canary: usize, name: &ClusterName, set: &SetFingerprint) -> bool {
        let proof = self.known.get(name).and_then(|member| proof_of(member, set));
        let soak = self.strategy(canary).soak;
        proof.is_some_and(|proof| proof.verdict == Verdict::Proven && later(proof.since, soak) <= self.now)
    }

    /// Whether all canaries of a gate are well with a set, those among them that no placement selects any more.
    pub(crate) fn canaries_are_well(
        &self,
        entry: usize,
        set: &SetFingerprint,
        cut_off: &BTreeSet<ClusterName>,
        plan: &Plan<Set>,
    ) -> Result<(), String> {
        let canary = self.canary(entry).ok_or("no such placement")?;
        if !self.wishes[canary].is_there {
            return Err("the placement is gone".to_owned());
        }
        if self.waits_for_itself(entry) {
            return Err("a cycle".to_owned());
        }
        let selected = self.known.keys().filter(|name| self.is_selected(name, canary));
        let all: BTreeSet<_> = selected.chain(cut_off).collect();
        let counted: Vec<_> = all.into_iter().filter(|name| !self.known[*name].steering.is_skipped).collect();
        // Who was cut off may have come back, and can still not vouch alone for a placement that selects nobody.
        if !counted.iter().any(|name| self.is_selected(name, canary)) {
            return Err("no canaries".to_owned());
        }
        if let Some(name) = counted.iter().find(|name| !self.has_soaked(canary, name, set)) {
            return Err(format!("{name} has not shown it"));
        }
        let configured = self.wanted_set(canary, plan);
        let is_own =
            |name: &&&ClusterName| self.known[**name].addon.as_ref().is_some_and(|addon| addon.overrides.is_none());
        if configured.is_some_and(|configured| configured != *set) && counted.iter().any(|name| is_own(&name)) {
            return Err("canaries are configured to something else".to_owned());
        }
        Ok(())
    }

    /// Whether nobody is on the way to a set, or only those who have been for long, and nobody else can be begun.
    pub(crate) fn is_over(&self, entry: usize, set: &SetFingerprint) -> bool {
        let may_begin = |member: &Member<Set>| is_ready(member) && given(member) != Some(set);
        let is_halted = self.is_overdrawn(entry, set) || self.all_outdated().contains(set);
        let is_busy = |name: &ClusterName, member: &Member<Set>| {
            let is_awaited = member.is_online || self.strategy(entry).deadline.is_some();
            let is_in_flight = self.is_in_flight(name) && is_awaited;
            is_in_flight && !member.steering.is_skipped && !self.has_failed(entry, member, set)
        };
        let busy: Vec<_> = self.decided(entry).filter(|(name, member)| is_busy(name, member)).collect();
        let moving = busy.iter().filter(|(_, member)| given(member) == Some(set));
        let since = moving.filter_map(|(_, member)| member.addon.as_ref()?.given.as_ref().map(|given| given.since));
        let is_stuck = since.max().is_none_or(|since| later(since, STUCK_AFTER) <= self.now);
        // Clusters on the way to something else come first, each in its own slot.
        let is_stray = |member: &Member<Set>| may_begin(member) && given(member) != self.stored_target(entry);
        let strays = busy.iter().filter(|(_, member)| is_stray(member)).count();
        let taken = if strays > 0 { busy.len() - strays } else { busy.len() };
        let is_full = taken >= self.strategy(entry).window.of(self.total(entry));
        is_stuck && (is_halted || is_full || !self.decided(entry).any(|(_, member)| may_begin(member)))
    }

    fn stored_target(&self, entry: usize) -> Option<&SetFingerprint> {
        self.wishes[entry].stored.wanted.as_ref()
    }

    /// Whether more clusters have failed with a set than may.
    pub(crate) fn is_overdrawn(&self, entry: usize, set: &SetFingerprint) -> bool {
        self.decided(entry).any(|(name, _)| {
            let (tolerated, same) = self.tolerated(entry, name);
            same.iter().filter(|name| self.has_failed(entry, &self.known[**name], set)).count() > tolerated
        })
    }

    /// Whether a cluster that was given something as a canary still counts as one: it does until it leaves the placement while it
    /// can be reached.
    pub(crate) fn stays_canary(&self, canary: usize, name: &ClusterName) -> bool {
        let Some(member) = self.known.get(name) else { return false };
        let is_away = !member.is_online || self.decides(member).is_none();
        let is_there = member.addon.is_some() && !member.steering.is_skipped;
        is_there && (self.is_selected(name, canary) || is_away)
    }
}
