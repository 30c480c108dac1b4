//! The rollout controller: decides what each cluster is given, and tells how far that is.
//!
//! Watches add-ons, on the hub and on clusters, what they are configured by, placements and clusters. Its key is an add-on. It writes
//! ConfigRevisions, the AddOnRollout, what clusters are given, and the add-on's status, in this order: what clusters are given is remembered
//! before it is given.

mod case;
mod record;
mod refusal;

use drover_api::{
    addon::ClusterManagementAddOn,
    drover::{AddOnRollout, AddOnRolloutSpec},
};
use drover_engine::{
    addon::inheritance::is_managed,
    owner::own,
    plan::{Event, NoAction, Plan, PlanPart, Write, WriteResult},
};
use drover_runtime::{
    controller::{Publication, Reconciler},
    store::{Change, ObjectKey},
};
use k8s_openapi::jiff::Timestamp;
use kube::{Resource, ResourceExt};

pub(super) use self::refusal::Refusal;
use self::{
    case::{Case, recorded},
    refusal::Matter,
};
use super::book::Pages;
use crate::cache::{Cache, Queues};

/// The reason of the event that says that the server rejects what has to be recorded first.
pub(super) const BLOCKED: &str = "RolloutBlocked";

pub(crate) struct Rollouts;

impl Reconciler<Cache> for Rollouts {
    type Key = ObjectKey;
    type State = Pages;
    type Action = NoAction;

    const NAME: &'static str = "drover-addon-rollout";

    fn plan(&self, cache: &Cache, key: &ObjectKey, pages: &mut Pages, now: Timestamp) -> Plan {
        let addon = cache.addons.cmas.get(key).filter(|addon| addon.metadata.deletion_timestamp.is_none());
        let Some(addon) = addon.filter(|addon| is_managed(addon)) else {
            *pages = Pages::default();
            return Plan::default();
        };
        let refusal = pages.refusal.clone().filter(|refusal| refusal.holds(now));
        // What can not be written down can still be said of the add-on.
        let is_refused = refusal.as_ref().is_some_and(|refusal| refusal.matter == Matter::Record);
        let stored = cache.configs.rollout(key);
        if let Some(write) = kept(stored, addon).filter(|_| !is_refused) {
            return Plan::from_iter([write]);
        }
        let record = stored.cloned().unwrap_or_else(|| record_of(addon));
        let case = Case { cache, key, addon, record: &record, refusal: refusal.as_ref(), now };
        let plan = case.follow(pages);
        match refusal {
            Some(refusal) => held_up(addon, &refusal, plan),
            None => plan,
        }
    }

    fn publish(&self, key: &ObjectKey, pages: &Pages) -> Option<Publication<Cache>> {
        let (key, snapshot) = (key.clone(), pages.snapshot());
        Some(Box::new(move |cache| cache.addons.publish(key, snapshot)))
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

/// The plan, which is made again when what was rejected is sent again. When all else is written, an event says so.
fn held_up(addon: &ClusterManagementAddOn, refusal: &Refusal, plan: Plan) -> Plan {
    let wake = plan.wake.into_iter().chain([refusal.again]).min();
    let is_quiet = plan.ordered.is_empty() && plan.parallel.is_empty();
    let news = (is_quiet && !refusal.is_announced)
        .then(|| Event::warning(addon, BLOCKED, format!("nobody new is given anything: {}", refusal.why)));
    Plan { wake, ..plan }.with_events(news)
}

/// Has what remembers the rollouts be there, and go with the add-on; nothing if it does.
fn kept(stored: Option<&AddOnRollout>, addon: &ClusterManagementAddOn) -> Option<Write> {
    match stored {
        None => Some(Write::create(record_of(addon))),
        // One that an add-on of this name has left behind would go with that.
        Some(record) => Write::update(record, &owned(record, addon)),
    }
}

/// What remembers the rollouts of an add-on; it goes with it.
fn record_of(addon: &ClusterManagementAddOn) -> AddOnRollout {
    owned(&AddOnRollout::new(&addon.name_any(), AddOnRolloutSpec {}), addon)
}

/// The record, as one that goes with the add-on.
fn owned(record: &AddOnRollout, addon: &ClusterManagementAddOn) -> AddOnRollout {
    let mut wanted = record.clone();
    if let Some(owner) = addon.controller_owner_ref(&()) {
        own(wanted.owner_references_mut(), &owner);
    }
    wanted
}

impl Cache {
    /// Enqueues who reads the record of an add-on's rollouts, because other revisions are recorded.
    pub(crate) fn mark_readers_of(&self, change: &Change<AddOnRollout>, queues: &Queues) {
        let (new, old) = (change.new.as_deref(), change.old.as_deref());
        let Some(new) = new.and_then(|record| record.status.as_ref()) else { return };
        let Some(old) = old.and_then(|record| record.status.as_ref()) else {
            // Where nothing was recorded before, that may be any add-on on a cluster.
            return self.addons.on_clusters(&change.key.name).for_each(|key| queues.addons.mark(key.clone()));
        };
        if recorded(new) != recorded(old) {
            queues.rollouts.mark(change.key.clone());
        }
    }
}

#[cfg(test)]
mod tests;
