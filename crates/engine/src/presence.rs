//! Which clusters are in: which a placement selects, which are reachable, and when one that nothing
//! selects is left out.
//!
//! A cluster loses what it has only if that is certain. A placement that is missing or undecided, a
//! slice of a decision that is being rewritten, and an unreachable cluster are no reasons.

mod fleet_facts;

use std::time::Duration;

use drover_api::{
    cluster::{ManagedCluster, Placement},
    names::{CLUSTER_AVAILABLE, UNAVAILABLE_TAINT, UNREACHABLE_TAINT},
    reference::PlacementRef,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};

pub use self::fleet_facts::FleetFacts;
use crate::{
    cluster::conditions,
    condition::{self, Holds},
};

/// For how long a cluster has to be in no slice to be believed to be selected no more, where nothing else confirms it.
const CONFIRMATION: Duration = Duration::from_secs(10);

/// An object that may not be there, or be there and not be readable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known<T> {
    /// It is this.
    There(T),
    /// It exists, and cannot be parsed.
    Unreadable,
    /// It is not there.
    Missing,
}

impl<T> Known<T> {
    /// What it is, if it can be parsed.
    pub fn into_option(self) -> Option<T> {
        match self {
            Self::There(object) => Some(object),
            Self::Unreadable | Self::Missing => None,
        }
    }
}

/// Who selects clusters for an add-on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A placement in the add-on's list.
    Listed(PlacementRef),
    /// A placement that is only named as the canaries of another. It assigns nothing.
    Canaries(PlacementRef),
    /// No placement: the add-on is on the cluster all the same.
    Nobody,
}

impl Source {
    /// The placement, if one does.
    #[must_use]
    pub fn placement(&self) -> Option<&PlacementRef> {
        match self {
            Self::Listed(placement) | Self::Canaries(placement) => Some(placement),
            Self::Nobody => None,
        }
    }
}

/// What is known of a cluster that an add-on is on and that nothing selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// It has been selected by nothing since then.
    Since(Timestamp),
    /// It does not answer, which may be all there is to it.
    Unreachable,
    /// It answers again since then. Who selects clusters needs a moment to notice.
    Back(Timestamp),
}

impl Absence {
    /// What is known now, given what was known before.
    #[must_use]
    pub fn next(before: Option<Self>, answers: bool, now: Timestamp) -> Self {
        match before {
            _ if !answers => Self::Unreachable,
            None => Self::Since(now),
            Some(Self::Unreachable) => Self::Back(now),
            Some(known) => known,
        }
    }

    /// When the cluster is believed to be selected no more; nothing while nobody can tell. `is_confirmed` says whether the placements
    /// agree on whom they select.
    #[must_use]
    pub fn settled(self, is_confirmed: bool) -> Option<Timestamp> {
        let confirmed = |time: Timestamp| time.checked_add(CONFIRMATION).unwrap_or(Timestamp::MAX);
        match self {
            Self::Since(time) if is_confirmed => Some(time),
            Self::Since(time) | Self::Back(time) => Some(confirmed(time)),
            Self::Unreachable => None,
        }
    }
}

/// Why it is not known which clusters a placement selects. The messages go on after its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    /// It does not exist.
    #[error("does not exist: create it, or take it off the list")]
    Missing,
    /// It is being deleted.
    #[error("is being deleted: take it off the list")]
    Leaving,
    /// It selects nothing yet.
    #[error("has not been decided on yet")]
    Undecided,
    /// It cannot be parsed.
    #[error("can not be read: correct or delete it")]
    Unreadable,
    /// A decision in its namespace cannot be parsed, and may be its own.
    #[error("may have a PlacementDecision that can not be read: correct or delete it")]
    UnreadableDecision,
}

/// What a placement says of its decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// How many clusters it selects.
    pub clusters: usize,
    /// In how many groups.
    pub groups: usize,
}

/// What a placement says of its decision, if it does and that can be read.
pub fn decided(placement: Known<&Placement>, has_unreadable_slices: bool) -> Result<Decided, Unclear> {
    let placement = match placement {
        Known::Missing => return Err(Unclear::Missing),
        Known::Unreadable => return Err(Unclear::Unreadable),
        Known::There(placement) => placement,
    };
    if placement.metadata.deletion_timestamp.is_some() {
        return Err(Unclear::Leaving);
    }
    let status = placement.status.as_ref().ok_or(Unclear::Undecided)?;
    if has_unreadable_slices {
        return Err(Unclear::UnreadableDecision);
    }
    let clusters = usize::try_from(status.number_of_selected_clusters).unwrap_or_default();
    Ok(Decided { clusters, groups: status.decision_groups.len() })
}

/// What becomes of the work of a cluster that nothing selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It is removed.
    Now,
    /// It stays for now.
    Later {
        /// What is known, to be told when this is decided on again.
        known: Absence,
        /// When that is, though nothing has changed.
        again: Option<Timestamp>,
    },
    /// It goes with the cluster, which others see to.
    WithCluster,
}

/// What is known when the work of a cluster that nothing selects is decided on.
#[derive(Clone, Copy, Debug)]
pub struct Unselected<'a> {
    /// The cluster.
    pub cluster: Known<&'a ManagedCluster>,
    /// What was known before.
    pub before: Option<Absence>,
    /// Whether all placements agree with their decisions on how many they select.
    pub is_confirmed: bool,
    /// Whether this hub sees clusters out.
    pub keeps_clusters: bool,
}

/// Decides on the work of a cluster that nothing selects.
#[must_use]
pub fn leave(unselected: &Unselected, now: Timestamp) -> Leave {
    let Unselected { cluster, before, is_confirmed, keeps_clusters } = unselected;
    if matches!(cluster, Known::There(cluster) if cluster.metadata.deletion_timestamp.is_some()) {
        return if *keeps_clusters { Leave::WithCluster } else { Leave::Now };
    }
    let known = Absence::next(*before, answers(cluster), now);
    match known.settled(*is_confirmed) {
        Some(settled) if settled <= now => Leave::Now,
        again => Leave::Later { known, again },
    }
}

/// Whether nothing says that a cluster does not answer. One that is gone has nothing to answer.
#[must_use]
pub fn answers(cluster: &Known<&ManagedCluster>) -> bool {
    match cluster {
        Known::Missing => true,
        Known::Unreadable => false,
        Known::There(cluster) => match condition::holds(conditions(cluster), CLUSTER_AVAILABLE) {
            None => true,
            Some(Holds::Yes) => !cluster.spec.taints.iter().any(|taint| is_about_to_go(&taint.key)),
            Some(Holds::No | Holds::Unknown) => false,
        },
    }
}

/// Whether a taint of a cluster that answers is there only because nobody has taken it off yet.
fn is_about_to_go(taint: &str) -> bool {
    [UNREACHABLE_TAINT, UNAVAILABLE_TAINT].contains(&taint)
}

/// Whether a cluster's change from one state to another can make a difference to an add-on that is on it.
#[must_use]
pub fn answers_the_same(one: &ManagedCluster, other: &ManagedCluster) -> bool {
    answers(&Known::There(one)) == answers(&Known::There(other))
}

/// Whether a cluster is as reachable in one state as in another, so that its add-ons have nothing else to say.
#[must_use]
pub fn is_as_reachable(one: &ManagedCluster, other: &ManagedCluster) -> bool {
    let said = |cluster| availability(cluster).map(|said| (&said.status, &said.message));
    said(one) == said(other)
}

/// What is said of a cluster that has not been heard of for a while.
pub(crate) fn silence(cluster: &ManagedCluster) -> Option<&Condition> {
    availability(cluster).filter(|said| said.status == "Unknown")
}

/// What is said of whether a cluster is available.
fn availability(cluster: &ManagedCluster) -> Option<&Condition> {
    cluster.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == CLUSTER_AVAILABLE)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a valid time")
    }

    fn placement(rest: &Value) -> Placement {
        let mut object = json!({ "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": { "name": "p" }, "spec": {} });
        object.as_object_mut().expect("an object").extend(rest.as_object().cloned().unwrap_or_default());
        serde_json::from_value(object).expect("a placement")
    }

    fn cluster(metadata: &Value, available: &str) -> ManagedCluster {
        let condition = json!({ "type": "ManagedClusterConditionAvailable", "status": available, "reason": "", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        serde_json::from_value(json!({ "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": metadata, "spec": {}, "status": { "conditions": [condition] } }))
        .expect("a cluster")
    }

    #[test]
    fn only_a_placement_that_has_decided_says_whom_it_selects() {
        assert_eq!(decided(Known::Missing, false), Err(Unclear::Missing));
        assert_eq!(decided(Known::Unreadable, false), Err(Unclear::Unreadable));
        assert_eq!(decided(Known::There(&placement(&json!({}))), false), Err(Unclear::Undecided));
        let status = json!({ "numberOfSelectedClusters": 3, "decisionGroups": [
            { "decisionGroupIndex": 0, "decisions": [], "clusterCount": 3 }] });
        let there = placement(&json!({ "status": status }));
        assert_eq!(decided(Known::There(&there), false), Ok(Decided { clusters: 3, groups: 1 }));
        assert_eq!(decided(Known::There(&there), true), Err(Unclear::UnreadableDecision));
        let leaving = placement(
            &json!({ "metadata": { "name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z" }, "status": status }),
        );
        assert_eq!(decided(Known::There(&leaving), false), Err(Unclear::Leaving));
    }

    fn unselected(cluster: Known<&ManagedCluster>, before: Option<Absence>, is_confirmed: bool) -> Unselected<'_> {
        Unselected { cluster, before, is_confirmed, keeps_clusters: true }
    }

    #[test]
    fn a_work_goes_at_once_if_all_agree_and_else_after_a_while() {
        let there = cluster(&json!({ "name": "c" }), "True");
        assert_eq!(leave(&unselected(Known::There(&there), None, true), at(0)), Leave::Now);
        let known = Absence::Since(at(0));
        let later = Leave::Later { known, again: Some(at(10)) };
        assert_eq!(leave(&unselected(Known::There(&there), None, false), at(0)), later);
        assert_eq!(leave(&unselected(Known::There(&there), Some(known), false), at(9)), later);
        assert_eq!(leave(&unselected(Known::There(&there), Some(known), false), at(10)), Leave::Now);
        assert_eq!(leave(&unselected(Known::Missing, None, true), at(0)), Leave::Now);
    }

    #[test]
    fn a_cluster_that_does_not_answer_keeps_its_work() {
        let silent = cluster(&json!({ "name": "c" }), "Unknown");
        let later = Leave::Later { known: Absence::Unreachable, again: None };
        assert_eq!(leave(&unselected(Known::There(&silent), None, true), at(0)), later);
    }

    #[test]
    fn a_cluster_that_leaves_is_seen_out_by_whoever_does_that() {
        let leaving = cluster(&json!({ "name": "c", "deletionTimestamp": "2026-01-01T00:00:00Z" }), "Unknown");
        let case = unselected(Known::There(&leaving), None, true);
        assert_eq!(leave(&case, at(0)), Leave::WithCluster);
        assert_eq!(leave(&Unselected { keeps_clusters: false, ..case }, at(0)), Leave::Now);
    }

    #[test]
    fn only_another_report_on_availability_makes_a_cluster_differ() {
        let [online, lost] = ["True", "Unknown"].map(|available| cluster(&json!({ "name": "c" }), available));
        assert!(!is_as_reachable(&online, &lost));
        assert!(is_as_reachable(&online, &online));
    }
}
