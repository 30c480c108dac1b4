//! The end of a set of works that is deleted: its works are removed first.

use drover_api::{
    names::REPLICA_SET_FINALIZER,
    work::{CascadeDeletionPolicy, ManifestWorkReplicaSet},
};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::facts::ReplicaSetFacts;
use crate::{
    plan::{ObjectKey, Plan, Write},
    tracker::BATCH,
};

/// Adds the finalizer to a set; `None` if it has it.
pub(super) fn add_finalizer(set: &ManifestWorkReplicaSet) -> Option<Write> {
    let mut wanted = set.clone();
    if !set.finalizers().iter().any(|finalizer| finalizer == REPLICA_SET_FINALIZER) {
        wanted.finalizers_mut().push(REPLICA_SET_FINALIZER.to_owned());
    }
    Write::update(set, &wanted)
}

/// Removes the works of a set that is deleted, and then its finalizer: at once, or when they are gone.
pub(super) fn delete<F: ReplicaSetFacts>(
    facts: &F,
    key: &ObjectKey,
    set: &ManifestWorkReplicaSet,
    now: Timestamp,
) -> Plan<F::Action> {
    let remaining: Vec<_> = facts.works_of(key).filter(|work| !work.is_leaving()).collect();
    if !remaining.is_empty() {
        let parallel = remaining.iter().take(BATCH).map(|work| Write::delete(*work)).collect();
        let wake = (remaining.len() > BATCH).then_some(now);
        return Plan { parallel, wake, ..Plan::default() };
    }
    let waits = set.spec.cascade_deletion_policy == CascadeDeletionPolicy::Foreground;
    if waits && facts.works_of(key).next().is_some() {
        return Plan::default();
    }
    let mut wanted = set.clone();
    wanted.finalizers_mut().retain(|finalizer| finalizer != REPLICA_SET_FINALIZER);
    Write::update(set, &wanted).into_iter().collect()
}
