//! Whether placements say whom they select, and who loses the work of a set because nothing selects it any more.
//!
//! A work is removed only if that is sure: a placement that is not there or not decided on, a slice of a decision that is being
//! rewritten, and a cluster that does not answer are no reasons. It is the same as with add-ons.

use drover_api::{
    cluster::{ManagedCluster, Placement},
    work::{ManifestWorkReplicaSet, PlacementRollout},
};
use k8s_openapi::jiff::Timestamp;

use crate::addon::install::{Absence, Known, answers};

/// Why it is not known whom a placement selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    /// It is not there.
    #[error("it does not exist: create it, or take it off the list; until then all works stay where they are")]
    Missing,
    /// It is on its way out.
    #[error("it is being deleted: take it off the list; until then all works stay where they are")]
    Leaving,
    /// It selects nothing yet.
    #[error("it has not been decided on yet; until then all works stay where they are")]
    Undecided,
    /// It can not be read.
    #[error("it can not be read: correct or delete it; until then all works stay where they are")]
    Unreadable,
    /// A decision in its namespace can not be read, and may be its own.
    #[error(
        "a PlacementDecision in its namespace can not be read: correct or delete it; until then all works stay where they are"
    )]
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

/// The placements of a set in the order of the list. One that is listed twice counts where it stands last.
#[must_use]
pub fn listed(set: &ManifestWorkReplicaSet) -> Vec<&PlacementRollout> {
    let all = &set.spec.placement_refs;
    let is_last = |(index, placement): &(usize, &PlacementRollout)| {
        !all[index + 1..].iter().any(|other| other.name == placement.name)
    };
    all.iter().enumerate().filter(is_last).map(|(_, placement)| placement).collect()
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

    #[test]
    fn a_placement_that_is_listed_twice_counts_where_it_stands_last() {
        let refs = ["a", "b", "a"].map(|name| json!({ "name": name }));
        let spec = serde_json::from_value(json!({ "placementRefs": refs })).expect("a set");
        let set = ManifestWorkReplicaSet::new("set", spec);
        assert_eq!(listed(&set).iter().map(|placement| placement.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
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
}
