//! The gate: what canaries have to show before a set comes to the clusters behind them.

use std::{collections::BTreeSet, fmt};

use drover_api::{
    grammar::SetFingerprint,
    reference::{ClusterName, PlacementRef},
};
use k8s_openapi::jiff::Timestamp;

use super::{
    member::Member,
    revision::Revision,
    standing::{APPLY_GRACE_PERIOD, Goal},
    strategy::Strategy,
};
use crate::{revision::markers::Verdict, time::after};

/// Why a gate is shut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shut {
    /// There is no such placement.
    NoPlacement(PlacementRef),
    /// Canaries that wait for each other.
    Cycle(Vec<PlacementRef>),
    /// Nobody can tell how canaries are rolled out to, and how long they have to stay well.
    Unreadable(PlacementRef),
    /// The canary placement selects nobody.
    NoCanaries(PlacementRef),
    /// Everybody that the canary placement selects is left out.
    AllSkipped(PlacementRef),
    /// The canary placement is configured to something else.
    ConfiguredOtherwise(PlacementRef),
    /// A user has configured a canary to something else.
    Overridden(ClusterName),
    /// Canaries do not run the set, or are not well.
    Unproven {
        /// One of them.
        first: ClusterName,
        /// How many there are.
        count: usize,
        /// Out of how many.
        total: usize,
    },
    /// Canaries run the set, and have to stay well for a while.
    Soaking {
        /// Until when.
        until: Timestamp,
    },
    /// The canaries are well; the set that they were well with before is still rolling out.
    Finishing {
        /// Which one.
        set: SetFingerprint,
        /// Until when that is waited for, if nobody can be begun any more.
        until: Option<Timestamp>,
    },
}

impl Shut {
    /// What a cluster says of it that waits behind the gate, without what changes while nothing much does.
    pub(super) fn in_short(&self) -> String {
        match self {
            Self::Unproven { .. } => "the canaries are not done".to_owned(),
            Self::Soaking { .. } => "the canaries have to stay well for a while".to_owned(),
            other => other.to_string(),
        }
    }

    /// When the gate may open although nothing happens.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Soaking { until } => Some(*until),
            Self::Finishing { until, .. } => *until,
            _ => None,
        }
    }
}

impl fmt::Display for Shut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlacement(placement) => {
                write!(f, "there is no Placement {placement}: create it, or name another canary placement")
            }
            Self::Cycle(placements) => {
                let names: Vec<_> = placements.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "these placements wait for each other: {}; give one of them another strategy",
                    names.join(", ")
                )
            }
            Self::Unreadable(placement) => {
                write!(f, "the rolloutStrategy of the Placement {placement} can not be read: correct it")
            }
            Self::NoCanaries(placement) => write!(f, "the Placement {placement} selects no cluster"),
            Self::AllSkipped(placement) => write!(f, "all clusters of the Placement {placement} are skipped"),
            Self::ConfiguredOtherwise(placement) => write!(
                f,
                "the clusters of the Placement {placement} are configured to something else: give both placements the same configs and version"
            ),
            Self::Overridden(cluster) => {
                write!(f, "the canary {cluster} has configs or a version of its own: remove them, or skip the cluster")
            }
            Self::Unproven { first, count: 1, total } => write!(f, "1 of {total} canaries is not done: {first}"),
            Self::Unproven { first, count, total } => {
                write!(f, "{count} of {total} canaries are not done, {first} among them")
            }
            Self::Soaking { until } => write!(f, "the canaries have to stay well until {until}"),
            Self::Finishing { set, .. } => {
                write!(f, "the canaries are well, and the rollout of {set} comes to its end first")
            }
        }
    }
}

/// What a gate is judged by.
pub(super) struct Canaries<'a, R> {
    /// The placement of the canaries.
    pub(super) placement: &'a PlacementRef,
    /// How that placement rolls out: its canaries have to stay well for as long as it says.
    pub(super) strategy: &'a Strategy,
    /// The clusters that it selects.
    pub(super) selected: &'a BTreeSet<ClusterName>,
    /// Those that were given the set as canaries, and may not be selected any more.
    pub(super) watched: Vec<&'a ClusterName>,
    /// The set that the gate is about.
    pub(super) goal: &'a Goal<R>,
    /// What that placement gives its clusters, if it gives them anything.
    pub(super) configured: Option<&'a SetFingerprint>,
}

impl<R: Revision> Canaries<'_, R> {
    /// Whether all are well with the set.
    pub(super) fn are_well<'m>(
        &self,
        member: impl Fn(&ClusterName) -> Option<&'m Member<R>>,
        now: Timestamp,
    ) -> Result<(), Shut>
    where
        R: 'm,
    {
        let clusters: BTreeSet<_> = self.selected.iter().chain(self.watched.iter().copied()).collect();
        if clusters.is_empty() {
            return Err(Shut::NoCanaries(self.placement.clone()));
        }
        let counted: Vec<_> = clusters.into_iter().filter_map(|name| Some((name, member(name)?))).collect();
        let counted: Vec<_> = counted.into_iter().filter(|(_, member)| !member.steering.is_skipped).collect();
        if counted.is_empty() {
            return Err(Shut::AllSkipped(self.placement.clone()));
        }
        let is_configured_otherwise = self.configured.is_some_and(|configured| *configured != self.goal.fingerprint);
        if is_configured_otherwise && counted.iter().any(|(_, member)| !has_overrides(member)) {
            return Err(Shut::ConfiguredOtherwise(self.placement.clone()));
        }
        let mut unproven = counted.iter().filter(|(_, member)| proven_since(member, &self.goal.fingerprint).is_none());
        if let Some((first, _)) = unproven.clone().next() {
            if let Some((name, _)) = unproven.clone().find(|(_, member)| is_overridden(member, self.goal)) {
                return Err(Shut::Overridden((*name).clone()));
            }
            let count = unproven.by_ref().count();
            return Err(Shut::Unproven { first: (*first).clone(), count, total: counted.len() });
        }
        // Who has left can keep a gate shut, and not open it.
        if !counted.iter().any(|(name, _)| self.selected.contains(*name)) {
            return Err(Shut::NoCanaries(self.placement.clone()));
        }
        let last = counted.iter().filter_map(|(_, member)| proven_since(member, &self.goal.fingerprint)).max();
        match last.map(|last| after(last, self.strategy.soak)) {
            Some(until) if until > now => Err(Shut::Soaking { until }),
            _ => Ok(()),
        }
    }
}

/// Since when a cluster runs exactly that set, and is well.
fn proven_since<R: Revision>(member: &Member<R>, set: &SetFingerprint) -> Option<Timestamp> {
    let proof = member.addon.as_ref()?.proof.as_ref()?;
    (proof.set == *set && proof.verdict == Verdict::Proven).then_some(proof.since)
}

/// Whether a cluster was given that set, by its placement or by a user who has asked for the same.
pub(super) fn has_tried<R: Revision>(member: &Member<R>, set: &SetFingerprint) -> bool {
    let Some(addon) = &member.addon else { return false };
    let is_given = addon.given.as_ref().is_some_and(|given| given.set == *set);
    is_given || addon.proof.as_ref().is_some_and(|proof| proof.set == *set)
}

/// Whether a user has a say in what a cluster runs.
fn has_overrides<R: Revision>(member: &Member<R>) -> bool {
    member.addon.as_ref().is_some_and(|addon| addon.overrides.is_some())
}

/// Whether a user has seen to it that a cluster can not run exactly that set.
fn is_overridden<R: Revision>(member: &Member<R>, goal: &Goal<R>) -> bool {
    let Some(addon) = &member.addon else { return false };
    let differs = |overrides: &R::Overrides| goal.set.with_overrides(overrides) != goal.fingerprint;
    addon.is_at_odds || addon.overrides.as_deref().is_some_and(differs)
}

/// Whether a cluster runs that set, or ran it and is not well any more.
pub(super) fn has_run<R: Revision>(member: &Member<R>, set: &SetFingerprint) -> bool {
    let proof = member.addon.as_ref().and_then(|addon| addon.proof.as_ref());
    proof.is_some_and(|proof| proof.set == *set && proof.verdict.has_run())
}

/// Whether a cluster runs that set, and is well.
pub(super) fn is_well<R: Revision>(member: &Member<R>, set: &SetFingerprint) -> bool {
    proven_since(member, set).is_some()
}

/// When a cluster that ran a revision counts as unhealthy. Nothing if it is healthy or skipped.
/// Works that are not applied any more get the same grace period as works that never were.
pub(super) fn unhealthy_from<R: Revision>(member: &Member<R>, set: &SetFingerprint) -> Option<Timestamp> {
    let proof =
        member.addon.as_ref()?.proof.as_ref().filter(|proof| proof.set == *set && !member.steering.is_skipped)?;
    match proof.verdict {
        Verdict::Unhealthy => Some(Timestamp::MIN),
        Verdict::NoLongerApplied => Some(after(proof.since, APPLY_GRACE_PERIOD)),
        Verdict::Moving | Verdict::Proven | Verdict::Failing | Verdict::Unsettled => None,
    }
}
