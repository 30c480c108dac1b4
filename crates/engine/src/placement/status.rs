//! What a placement says of itself: whether it has what it asked for, and if not, why.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use drover_api::cluster::{DecisionGroupStatus, PlacementStatus};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};

use super::{Group, LeftOut, Misconfigured, Slice, sets::Reach};
use crate::condition::{self, Says};

/// The condition that says whether as many clusters as wanted are selected.
pub const SATISFIED: &str = "PlacementSatisfied";
/// The condition that says whether the placement makes sense.
pub const MISCONFIGURED: &str = "PlacementMisconfigured";
/// How many reasons a message lists.
const MAX_REASONS: usize = 8;

/// Why a placement is satisfied, or is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The namespace is bound to no set.
    NoManagedClusterSetBindings,
    /// The namespace is bound to none of the sets that the placement names.
    NoIntersection,
    /// The sets in reach have no clusters.
    AllManagedClusterSetsEmpty,
    /// No cluster in reach may be selected.
    NoManagedClusterMatched,
    /// All that was asked for is selected.
    AllDecisionsScheduled,
    /// Less than was asked for is selected.
    NotAllDecisionsScheduled,
}

impl Reason {
    /// The reason, as it stands in the condition.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoManagedClusterSetBindings => "NoManagedClusterSetBindings",
            Self::NoIntersection => "NoIntersection",
            Self::AllManagedClusterSetsEmpty => "AllManagedClusterSetsEmpty",
            Self::NoManagedClusterMatched => "NoManagedClusterMatched",
            Self::AllDecisionsScheduled => "AllDecisionsScheduled",
            Self::NotAllDecisionsScheduled => "NotAllDecisionsScheduled",
        }
    }
}

/// What a status is written on: the one that is there, and the edit of the placement that it is about.
#[derive(Clone, Copy, Debug)]
pub struct Before<'a> {
    /// The status that is there.
    pub status: Option<&'a PlacementStatus>,
    /// The placement's generation.
    pub generation: Option<i64>,
    /// The time.
    pub now: Timestamp,
}

/// What a decision came to.
pub(super) struct Outcome<'a> {
    pub(super) reach: &'a Reach,
    /// How many clusters are in reach.
    pub(super) clusters: usize,
    /// How many of them may be selected.
    pub(super) candidates: usize,
    pub(super) selected: usize,
    pub(super) wanted: Option<usize>,
    pub(super) left_out: &'a BTreeMap<LeftOut, usize>,
}

/// The status of a placement that could be followed.
pub(super) fn decided(outcome: &Outcome, slices: &[Slice], before: &Before) -> PlacementStatus {
    let reason = outcome.reason();
    let satisfied = reason == Reason::AllDecisionsScheduled;
    PlacementStatus {
        conditions: before.conditions([
            (MISCONFIGURED, false, "Succeedconfigured", "the placement can be followed".to_owned()),
            (SATISFIED, satisfied, reason.as_str(), outcome.message(reason)),
        ]),
        number_of_selected_clusters: small(outcome.selected),
        decision_groups: groups(slices),
        last_score_update_time: before.status.and_then(|status| status.last_score_update_time.clone()),
    }
}

/// The status of a placement that makes no sense: its last decisions stay, and it says so.
#[must_use]
pub fn misconfigured(error: &Misconfigured, before: &Before) -> PlacementStatus {
    let mut status = before.status.cloned().unwrap_or_default();
    let kept = match status.number_of_selected_clusters {
        0 => "nothing is selected until that is corrected".to_owned(),
        kept => format!("the last decision, with {kept} clusters, stays until that is corrected"),
    };
    status.conditions = before.conditions([
        (MISCONFIGURED, true, "Misconfigured", error.to_string()),
        (SATISFIED, false, Reason::NotAllDecisionsScheduled.as_str(), kept),
    ]);
    status
}

impl Outcome<'_> {
    fn reason(&self) -> Reason {
        match self.reach {
            Reach::Unbound => Reason::NoManagedClusterSetBindings,
            Reach::NoIntersection { .. } => Reason::NoIntersection,
            Reach::Sets(_) if self.clusters == 0 => Reason::AllManagedClusterSetsEmpty,
            Reach::Sets(_) if self.candidates == 0 => Reason::NoManagedClusterMatched,
            Reach::Sets(_) if self.selected < self.wanted.unwrap_or_default() => Reason::NotAllDecisionsScheduled,
            Reach::Sets(_) => Reason::AllDecisionsScheduled,
        }
    }

    fn message(&self, reason: Reason) -> String {
        match (reason, self.reach) {
            (Reason::AllManagedClusterSetsEmpty, Reach::Sets(sets)) => {
                format!("no cluster belongs to the sets in reach: {}", listed(sets))
            }
            (Reason::NoIntersection, Reach::NoIntersection { named }) => {
                format!(
                    "the placement names sets to which the namespace is not bound, or which do not exist: {}",
                    listed(named)
                )
            }
            (Reason::NoManagedClusterSetBindings, _) => {
                "the namespace is bound to no cluster set that exists: create a ManagedClusterSetBinding".to_owned()
            }
            _ => self.counts(),
        }
    }

    /// `3 of 10 clusters selected, 2 more wanted; left out: 4 matching no predicate, …`.
    fn counts(&self) -> String {
        let mut message = format!("{} of {} clusters selected", self.selected, self.clusters);
        let missing = self.wanted.unwrap_or_default().saturating_sub(self.selected);
        if missing > 0 {
            let _ = write!(message, ", {missing} more wanted");
        }
        for (index, (reason, count)) in self.left_out.iter().take(MAX_REASONS).enumerate() {
            let _ = write!(message, "{} {count} {reason}", if index == 0 { "; left out:" } else { "," });
        }
        let rest: usize = self.left_out.values().skip(MAX_REASONS).sum();
        if rest > 0 {
            let _ = write!(message, ", {rest} for other reasons");
        }
        message
    }
}

fn listed(sets: &BTreeSet<String>) -> String {
    sets.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The groups of a decision, with the slices and clusters of each.
fn groups(slices: &[Slice]) -> Vec<DecisionGroupStatus> {
    let mut groups: BTreeMap<&Group, (Vec<String>, usize)> = BTreeMap::new();
    for slice in slices {
        let (names, clusters) = groups.entry(&slice.group).or_default();
        names.push(slice.name.clone());
        *clusters += slice.decisions.len();
    }
    let status = |(group, (decisions, clusters)): (&Group, (Vec<String>, usize))| DecisionGroupStatus {
        decision_group_index: small(group.index),
        decision_group_name: Some(group.name.clone()).filter(|name| !name.is_empty()),
        decisions,
        cluster_count: small(clusters),
    };
    groups.into_iter().map(status).collect()
}

fn small(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

impl Before<'_> {
    /// The conditions that are there, with these brought up to date.
    fn conditions<const N: usize>(&self, new: [(&str, bool, &str, String); N]) -> Vec<Condition> {
        let there = self.status.map(|status| status.conditions.clone()).unwrap_or_default();
        new.into_iter().fold(there, |conditions, (type_, holds, reason, message)| {
            let says = Says { type_, holds: holds.into(), reason, message: &message, generation: self.generation };
            condition::with(conditions, says, self.now)
        })
    }
}
