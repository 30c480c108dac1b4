//! The rollout controller: assigns revisions to clusters, and reports on rollouts.
//!
//! Watches add-ons, on the hub and on clusters, what they are configured by, placements and clusters.
//! Its key is an add-on. It writes ConfigRevisions, the AddOnRollout, what clusters are assigned, and
//! the add-on's status, in this order: assignments are recorded before they are made.

use drover_api::drover::AddOnRollout;
use drover_engine::{
    addon::rollout::{self, AddOnRolloutState, recorded_revisions},
    plan::{NoAction, Plan, PlanPart, WriteResult},
};
use drover_runtime::{
    controller::{Publication, Reconciler},
    store::{Change, ObjectKey},
};
use k8s_openapi::jiff::Timestamp;

use crate::cache::{Cache, Queues};

pub(crate) struct Rollouts;

impl Reconciler<Cache> for Rollouts {
    type Key = ObjectKey;
    type State = AddOnRolloutState;
    type Action = NoAction;

    const NAME: &'static str = "drover-addon-rollout";

    fn plan(&self, cache: &Cache, key: &ObjectKey, state: &mut AddOnRolloutState, now: Timestamp) -> Plan {
        rollout::plan(cache, key, state, now)
    }

    fn publish(&self, key: &ObjectKey, state: &AddOnRolloutState) -> Option<Publication<Cache>> {
        let (key, snapshot) = (key.clone(), state.snapshot());
        Some(Box::new(move |cache| cache.addons.publish(key, snapshot)))
    }

    fn sent(
        &self,
        _: &ObjectKey,
        state: &mut AddOnRolloutState,
        part: PlanPart<'_, NoAction>,
        result: &WriteResult,
        now: Timestamp,
    ) {
        state.sent(part, result, now);
    }
}

impl Cache {
    /// Enqueues the readers of the record of an add-on's rollouts, because other revisions are recorded.
    pub(crate) fn mark_readers_of(&self, change: &Change<AddOnRollout>, queues: &Queues) {
        let (new, old) = (change.new.as_deref(), change.old.as_deref());
        let Some(new) = new.and_then(|record| record.status.as_ref()) else { return };
        let Some(old) = old.and_then(|record| record.status.as_ref()) else {
            // Where nothing was recorded before, that may be any add-on on a cluster.
            return self.addons.on_clusters(&change.key.name).for_each(|key| queues.addons.mark(key.clone()));
        };
        if recorded_revisions(new) != recorded_revisions(old) {
            queues.rollouts.mark(change.key.clone());
        }
    }
}

#[cfg(test)]
mod tests;
