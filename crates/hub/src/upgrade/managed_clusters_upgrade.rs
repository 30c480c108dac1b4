//! The controller of upgrades: makes a record for each cluster that an upgrade selects, has those begin whose turn it is, and tells how far that is.
//!
//! Watches upgrades, their records and works, placements with their decisions, cluster sets with their bindings, clusters and their namespaces. Its
//! key is an upgrade. It creates, changes and deletes records and works, marks the clusters that it has, and writes the upgrade's status and finalizer.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use drover_engine::plan::{NoAction, Plan, Write, WriteResult};
use drover_runtime::{controller::Reconciler, metrics::Metrics, store::ObjectKey};
use k8s_openapi::jiff::Timestamp;

use super::{
    case::Case,
    removal::{guarded, removal},
};
use crate::{cache::Cache, refusal::refusal};

pub(crate) struct ClusterUpgrades {
    /// What the server did not take of the last plan of each upgrade.
    refusals: Mutex<BTreeMap<ObjectKey, String>>,
    metrics: Metrics,
}

impl ClusterUpgrades {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self { refusals: Mutex::default(), metrics }
    }

    fn refusals(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, String>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reconciler<Cache> for ClusterUpgrades {
    type Key = ObjectKey;
    type Action = NoAction;

    const NAME: &'static str = "drover-upgrade";

    fn plan(&self, cache: &Cache, key: &ObjectKey, now: Timestamp) -> Plan {
        // Everything is tried again, so that what is still refused will be told anew.
        let refusal = self.refusals().remove(key);
        let upgrades = &cache.upgrades;
        let (Some(upgrade), Some(book), Some(blueprint)) =
            (upgrades.objects.get(key), upgrades.books.get(key), upgrades.blueprints.get(key))
        else {
            return Plan::default();
        };
        if upgrade.metadata.deletion_timestamp.is_some() {
            return removal(cache, upgrade, blueprint, now);
        }
        if let Some(guarded) = guarded(upgrade) {
            return Plan::from_iter([guarded]);
        }
        let (plan, looks) = Case::new(cache, key, upgrade, blueprint, refusal, now).follow(&mut book.open());
        self.metrics.stepped(Self::NAME, "look", looks);
        plan
    }

    fn rejected(&self, key: &ObjectKey, write: &Write, result: &WriteResult) {
        if let Some(why) = refusal(write, result) {
            self.refusals().insert(key.clone(), why);
        }
    }
}

#[cfg(test)]
mod tests;
