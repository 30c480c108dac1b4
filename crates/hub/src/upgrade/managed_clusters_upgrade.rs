//! The controller of upgrades: makes a record for each cluster that an upgrade selects, has those begin
//! whose turn it is, and reports how far that is.
//!
//! Watches upgrades, their records and works, placements with their decisions, cluster sets with their
//! bindings, clusters and their namespaces. Its key is an upgrade. It creates, changes and deletes
//! records and works, marks the clusters that it owns, and writes the upgrade's status and finalizer.

use drover_engine::{
    plan::{NoAction, Plan, PlanPart, WriteResult},
    upgrade::{self, UpgradeState},
};
use drover_runtime::{controller::Reconciler, metrics::Metrics, store::ObjectKey};
use k8s_openapi::jiff::Timestamp;

use crate::cache::Cache;

pub(crate) struct ClusterUpgrades {
    metrics: Metrics,
}

impl ClusterUpgrades {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self { metrics }
    }
}

impl Reconciler<Cache> for ClusterUpgrades {
    type Key = ObjectKey;
    type State = UpgradeState;
    type Action = NoAction;

    const NAME: &'static str = "drover-upgrade";

    fn plan(&self, cache: &Cache, key: &ObjectKey, state: &mut UpgradeState, now: Timestamp) -> Plan {
        let (plan, looks) = upgrade::plan(cache, key, state, now);
        self.metrics.stepped(Self::NAME, "look", looks);
        plan
    }

    fn sent(
        &self,
        _: &ObjectKey,
        state: &mut UpgradeState,
        part: PlanPart<'_, NoAction>,
        result: &WriteResult,
        now: Timestamp,
    ) {
        state.sent(part, result, now);
    }
}

#[cfg(test)]
mod tests;
