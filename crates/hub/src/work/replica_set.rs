//! The controller of sets of works: makes a work for each cluster that a set's placements select, and tells how far that is.
//!
//! Watches sets, their works, placements with their decisions, clusters and their namespaces. Its key is a set. It creates, changes and deletes
//! works, many at a time, and writes the set's status and finalizer.

use drover_api::{
    names::REPLICA_SET_FINALIZER,
    work::{CascadeDeletionPolicy, ManifestWorkReplicaSet},
};
use drover_engine::{
    plan::{PlanPart, Write, WriteResult},
    tracker::BATCH,
};
use drover_runtime::{controller::Reconciler, metrics::Metrics, store::ObjectKey};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::{
    book::Pages,
    case::{Case, WorkPlan},
    placed::PlacedWork,
};
use crate::{adopt::CreateOrAdopt, cache::Cache};

pub(crate) struct ReplicaSets {
    metrics: Metrics,
}

impl ReplicaSets {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self { metrics }
    }
}

impl Reconciler<Cache> for ReplicaSets {
    type Key = ObjectKey;
    type State = Pages;
    type Action = CreateOrAdopt<PlacedWork>;

    const NAME: &'static str = "drover-work";

    fn plan(&self, cache: &Cache, key: &ObjectKey, pages: &mut Pages, now: Timestamp) -> WorkPlan {
        let work_sets = &cache.work_sets;
        let (Some(set), Some(blueprint)) = (work_sets.sets.get(key), work_sets.blueprints.get(key)) else {
            *pages = Pages::default();
            return WorkPlan::default();
        };
        if set.metadata.deletion_timestamp.is_some() {
            return removal(cache, key, set, now);
        }
        let case = Case::new(cache, key, set, blueprint, now);
        if !case.is_unfit()
            && let Some(guarded) = guarded(set)
        {
            return WorkPlan::from_iter([guarded]);
        }
        let (plan, looks) = case.follow(pages);
        self.metrics.stepped(Self::NAME, "look", looks);
        plan
    }

    fn sent(
        &self,
        _: &ObjectKey,
        pages: &mut Pages,
        part: PlanPart<'_, Self::Action>,
        result: &WriteResult,
        now: Timestamp,
    ) {
        pages.sent(part, result, now);
    }
}

/// Has a set wait for its works when it is deleted; nothing if it does.
fn guarded(set: &ManifestWorkReplicaSet) -> Option<Write> {
    let mut wanted = set.clone();
    if !set.finalizers().iter().any(|finalizer| finalizer == REPLICA_SET_FINALIZER) {
        wanted.finalizers_mut().push(REPLICA_SET_FINALIZER.to_owned());
    }
    Write::update(set, &wanted)
}

/// Removes the works of a set that is deleted, and lets it go: at once or when they are gone.
fn removal(cache: &Cache, key: &ObjectKey, set: &ManifestWorkReplicaSet, now: Timestamp) -> WorkPlan {
    let remaining: Vec<_> = cache.work_sets.works_of(key).filter(|work| !work.is_leaving()).collect();
    if !remaining.is_empty() {
        let parallel = remaining.iter().take(BATCH).map(|work| Write::delete(*work)).collect();
        let wake = (remaining.len() > BATCH).then_some(now);
        return WorkPlan { parallel, wake, ..WorkPlan::default() };
    }
    let waits = set.spec.cascade_deletion_policy == CascadeDeletionPolicy::Foreground;
    if waits && cache.work_sets.works_of(key).next().is_some() {
        return WorkPlan::default();
    }
    let mut wanted = set.clone();
    wanted.finalizers_mut().retain(|finalizer| finalizer != REPLICA_SET_FINALIZER);
    Write::update(set, &wanted).into_iter().collect()
}

#[cfg(test)]
mod tests;
