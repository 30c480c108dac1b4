//! The controller of sets of works: makes a work for each cluster that a set's placements select, and
//! reports how far that is.
//!
//! Watches sets, their works, placements with their decisions, clusters and their namespaces. Its key
//! is a set. It creates, changes and deletes works, many at a time, and writes the set's status and
//! finalizer.

use drover_engine::{
    plan::{Plan, PlanPart, WriteResult},
    work::replica_set::{self, ReplicaSetState},
};
use drover_runtime::{controller::Reconciler, metrics::Metrics, store::ObjectKey};
use k8s_openapi::jiff::Timestamp;

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
    type State = ReplicaSetState;
    type Action = CreateOrAdopt;

    const NAME: &'static str = "drover-work";

    fn plan(&self, cache: &Cache, key: &ObjectKey, state: &mut Self::State, now: Timestamp) -> Plan<Self::Action> {
        let (plan, looks) = replica_set::plan(cache, key, state, now);
        self.metrics.stepped(Self::NAME, "look", looks);
        plan
    }

    fn sent(
        &self,
        _: &ObjectKey,
        state: &mut Self::State,
        part: PlanPart<'_, Self::Action>,
        result: &WriteResult,
        now: Timestamp,
    ) {
        state.sent(part, result, now);
    }
}

#[cfg(test)]
mod tests;
