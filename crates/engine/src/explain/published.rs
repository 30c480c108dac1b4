//! The states of clusters, from the published status of an add-on: its AddOnRollout, and the
//! conditions of the add-on on each cluster.
//!
//! Clusters are judged by the same code as in the tracker.

use std::collections::BTreeMap;

use drover_api::{
    addon::ManagedClusterAddOn,
    drover::{AddOnRolloutStatus, GateState, RolloutProgress, RolloutState},
    grammar::SetFingerprint,
    names::{INSTALLED_ANNOTATION, PAUSE_ANNOTATION},
    reference::{ClusterName, PlacementRef},
};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::{ClusterExplanation, Judged, conditions_of};
use crate::{
    addon::{
        configuration::asks_for_something,
        registry,
        rollout::{notes, progress_of},
        words,
    },
    member::{Blocker, BlockerKind, BlockingObject, MemberState},
    revision::{
        Set,
        markers::{Given, Proof},
    },
    rollout::{
        Entry, PlacementBlockers, Rollout, Sets, kind_of_halt, kind_of_wait,
        member::{Group, Member, Presence, Selection},
    },
    steering::Steering,
};

/// The published status of an add-on.
#[derive(Clone, Copy, Debug)]
pub struct PublishedAddOn<'a> {
    /// The ways in which clusters get the add-on.
    pub entries: &'a [Entry],
    /// What users ask for by annotations of the add-on.
    pub steering: &'a Steering,
    /// The status of its AddOnRollout.
    pub rollout: &'a AddOnRolloutStatus,
    /// The time.
    pub now: Timestamp,
}

/// What is published of one cluster.
#[derive(Clone, Debug)]
pub struct PublishedMember<'a> {
    /// The placements that select it.
    pub selected_by: Vec<&'a PlacementRef>,
    /// The add-on on it.
    pub on_cluster: Option<&'a ManagedClusterAddOn>,
    /// Whether it is reachable.
    pub is_online: bool,
}

impl PublishedAddOn<'_> {
    /// Explains all clusters.
    #[must_use]
    pub fn explain(
        &self,
        members: &BTreeMap<ClusterName, PublishedMember<'_>>,
    ) -> BTreeMap<ClusterName, ClusterExplanation> {
        let mut rollout = Rollout::new(self.entries.to_vec());
        for (cluster, member) in members {
            rollout.update(cluster, Some(self.member(cluster, member)));
        }
        let progress: Vec<_> = self.entries.iter().map(|entry| progress_of(self.rollout, &entry.source)).collect();
        let sets = registry::stored(Some(self.rollout));
        let retried = self.rollout.acknowledged.as_ref().and_then(|acknowledged| acknowledged.retried.as_ref());
        rollout.judge_by_record(&progress, &sets, retried.map(|time| time.0), self.now);
        let blockers = self.blockers(&progress, &sets);
        let explain = |(cluster, member): (&ClusterName, &PublishedMember<'_>)| {
            let judged = rollout.standing(cluster).map(|(entry, standing)| {
                let placement = self.entries[entry].source.placement();
                let state = blockers[entry].state(standing, placement);
                Judged { placement, target: progress[entry].wanted.as_ref(), state }
            });
            let judged = judged.unwrap_or(Judged { placement: None, target: None, state: MemberState::Deselected });
            (cluster.clone(), judged.explain(member.on_cluster, cluster))
        };
        members.iter().map(explain).collect()
    }

    fn member(&self, cluster: &ClusterName, member: &PublishedMember<'_>) -> Member<Set> {
        let selects = |entry: &Entry| entry.source.placement().is_some_and(|it| member.selected_by.contains(&it));
        let selecting = self.entries.iter().enumerate().filter(|(_, entry)| selects(entry));
        let acknowledged = self.rollout.acknowledged.as_ref().map(|acknowledged| acknowledged.clusters.as_slice());
        let nothing = BTreeMap::new();
        let annotations = member.on_cluster.map_or(&nothing, |addon| addon.annotations());
        Member {
            selections: selecting.map(|(placement, _)| Selection { placement, group: Group::default() }).collect(),
            addon: member.on_cluster.map(presence),
            is_online: member.is_online,
            steering: self.steering.of_cluster(cluster, annotations, acknowledged.unwrap_or_default()),
        }
    }

    /// What keeps the clusters of each entry waiting.
    fn blockers(&self, progress: &[RolloutProgress], sets: &Sets<Set>) -> Vec<PlacementBlockers> {
        let sources: Vec<_> = self.entries.iter().map(|entry| &entry.source).collect();
        let notes = notes::read(self.rollout.message.as_deref().unwrap_or_default(), &sources);
        let entries = self.entries.iter().zip(progress).zip(notes);
        entries.map(|((entry, progress), note)| blockers(entry, progress, note, sets)).collect()
    }
}

/// The add-on on a cluster, as its conditions describe it.
fn presence(on_cluster: &ManagedClusterAddOn) -> Presence<Set> {
    let conditions = conditions_of(Some(on_cluster));
    let (given, proof) = (Given::read(conditions), Proof::read(conditions));
    let runs = |given: &Given| proof.as_ref().map_or(&given.set, |proof| &proof.set).clone();
    Presence {
        runs: given.as_ref().map(runs),
        is_at_odds: asks_for_something(on_cluster) && words::tells_hindrance(conditions),
        is_hand_made: !on_cluster.annotations().contains_key(INSTALLED_ANNOTATION),
        given,
        proof,
        ..Presence::default()
    }
}

fn blockers(entry: &Entry, progress: &RolloutProgress, note: Option<&str>, sets: &Sets<Set>) -> PlacementBlockers {
    let is_gated = entry.strategy.as_ref().is_ok_and(|strategy| strategy.canary.is_some());
    let rolling_out = if is_gated { &progress.last_known_good } else { &progress.wanted };
    let rolling_out = rolling_out.as_ref().filter(|set| sets.get(set).is_some());
    let current = current_blocker(progress, note);
    let problem = || note.filter(|_| current.is_none()).map(invalid_target);
    let next = || current.clone().or_else(problem).or_else(|| closed_gate(progress, progress.wanted.as_ref()?));
    let next = if rolling_out == progress.wanted.as_ref() { None } else { next() };
    PlacementBlockers { is_rolling_out: rolling_out.is_some(), next, current }
}

/// What holds a placement rollout up.
fn current_blocker(progress: &RolloutProgress, note: Option<&str>) -> Option<Blocker> {
    let text = note.unwrap_or_default();
    match progress.state? {
        RolloutState::Complete | RolloutState::RollingOut => None,
        RolloutState::Blocked => Some(invalid_target(text)),
        RolloutState::Paused => {
            let object = Some(BlockingObject::Annotation(PAUSE_ANNOTATION));
            Some(Blocker::new(BlockerKind::Paused, object, text.to_owned()))
        }
        RolloutState::WaitingForCanary => {
            let canary = progress.gates.first().map(|gate| BlockingObject::Placement(gate.canary.clone()));
            let kind = kind_of_wait(text);
            Some(Blocker::new(kind, canary.filter(|_| kind == BlockerKind::Gate), text.to_owned()))
        }
        RolloutState::Halted => {
            let halt = progress.halt.as_ref()?;
            let blocker = Blocker::new(kind_of_halt(&halt.message), None, halt.message.clone());
            Some(Blocker { since: Some(halt.since.0), ..blocker })
        }
    }
}

fn invalid_target(problem: &str) -> Blocker {
    Blocker::new(BlockerKind::InvalidTarget, None, problem.to_owned())
}

/// The gate that is closed for a revision.
fn closed_gate(progress: &RolloutProgress, revision: &SetFingerprint) -> Option<Blocker> {
    let gate = progress.gates.iter().find(|gate| gate.set == *revision && gate.state == GateState::Shut)?;
    let object = Some(BlockingObject::Placement(gate.canary.clone()));
    Some(Blocker::new(BlockerKind::Gate, object, gate.message.clone().unwrap_or_default()))
}
