//! The controller of upgrades: makes a record for each cluster that an upgrade selects, has those begin whose turn it is, and tells how far that is.
//!
//! Watches upgrades, their records and works, placements with their decisions, cluster sets with their bindings, clusters and their namespaces. Its
//! key is an upgrade. It creates, changes and deletes records and works, marks the clusters that it has, and writes the upgrade's status and finalizer.

use drover_engine::plan::{NoAction, Plan, PlanPart, WriteResult};
use drover_runtime::{controller::Reconciler, metrics::Metrics, store::ObjectKey};
use k8s_openapi::jiff::Timestamp;

use super::{
    book::Pages,
    case::Case,
    removal::{guarded, removal},
};
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
    type State = Pages;
    type Action = NoAction;

    const NAME: &'static str = "drover-upgrade";

    fn plan(&self, cache: &Cache, key: &ObjectKey, pages: &mut Pages, now: Timestamp) -> Plan {
        let upgrades = &cache.upgrades;
        let (Some(upgrade), Some(blueprint)) = (upgrades.objects.get(key), upgrades.blueprints.get(key)) else {
            *pages = Pages::default();
            return Plan::default();
        };
        if upgrade.metadata.deletion_timestamp.is_some() {
            return removal(cache, upgrade, blueprint, now);
        }
        if let Some(guarded) = guarded(upgrade) {
            return Plan::from_iter([guarded]);
        }
        let (plan, looks) = Case::new(cache, key, upgrade, blueprint, now).follow(pages);
        self.metrics.stepped(Self::NAME, "look", looks);
        plan
    }

    fn sent(
        &self,
        _: &ObjectKey,
        pages: &mut Pages,
        part: PlanPart<'_, NoAction>,
        result: &WriteResult,
        now: Timestamp,
    ) {
        pages.sent(part, result, now);
    }
}

#[cfg(test)]
mod tests;
