//! The rollout controller: decides what each cluster is given, and tells how far that is.
//!
//! Watches add-ons, on the hub and on clusters, what they are configured by, placements and clusters. Its key is an add-on. It writes
//! ConfigRevisions, the AddOnRollout, what clusters are given, and the add-on's status, in this order: what clusters are given is remembered
//! before it is given.

mod case;
mod record;
mod refusal;

use std::collections::BTreeSet;

use drover_api::{
    addon::ClusterManagementAddOn,
    drover::{AddOnRollout, AddOnRolloutSpec},
    grammar::SetFingerprint,
};
use drover_engine::{
    addon::inheritance::is_managed,
    owner::own,
    plan::{Event, NoAction, Plan, Write, WriteResult},
};
use drover_runtime::{
    controller::Reconciler,
    store::{Change, ObjectKey},
};
use k8s_openapi::jiff::Timestamp;
use kube::{Resource, ResourceExt};

use self::{
    case::Case,
    refusal::{Matter, Refusal, Refusals},
};
use crate::cache::Cache;

#[derive(Default)]
pub(crate) struct Rollouts {
    /// What was not taken, by add-on.
    refusals: Refusals,
}

impl Reconciler<Cache> for Rollouts {
    type Key = ObjectKey;
    type Action = NoAction;

    const NAME: &'static str = "drover-addon-rollout";

    fn plan(&self, cache: &Cache, key: &ObjectKey, now: Timestamp) -> Plan {
        let (Some(addon), Some(book)) = (cache.addons.cmas.get(key), cache.addons.books.get(key)) else {
            self.refusals.forget(key);
            return Plan::default();
        };
        if addon.metadata.deletion_timestamp.is_some() || !is_managed(addon) {
            self.refusals.forget(key);
            return Plan::default();
        }
        let refusal = self.refusals.of(key, now);
        // What can not be written down can still be said of the add-on.
        let is_refused = refusal.as_ref().is_some_and(|refusal| refusal.matter == Matter::Record);
        let stored = cache.configs.rollout(key);
        if let Some(write) = kept(stored, addon).filter(|_| !is_refused) {
            return Plan::from_iter([write]);
        }
        let record = stored.cloned().unwrap_or_else(|| record_of(addon));
        let case = Case { cache, key, addon, record: &record, refusal: refusal.as_ref(), now };
        let plan = case.follow(&mut book.open());
        match refusal {
            Some(refusal) => self.held_up(key, addon, &refusal, plan),
            None => plan,
        }
    }

    fn rejected(&self, key: &ObjectKey, write: &Write, result: &WriteResult) {
        self.refusals.note(key, write, result);
    }
}

impl Rollouts {
    /// The plan, which is made again when what was refused is tried again. When all else is written, people are told.
    fn held_up(&self, key: &ObjectKey, addon: &ClusterManagementAddOn, refusal: &Refusal, plan: Plan) -> Plan {
        let wake = plan.wake.into_iter().chain([refusal.again]).min();
        let is_quiet = plan.ordered.is_empty() && plan.parallel.is_empty();
        let news = (is_quiet && !refusal.is_told).then(|| {
            self.refusals.told(key);
            Event::warning(addon, "RolloutBlocked", format!("nobody new is given anything: {}", refusal.why))
        });
        Plan { wake, ..plan }.with_events(news)
    }
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
    /// Marks the add-ons on clusters that have something else to say now, because a set that they were given is remembered again. Where
    /// nothing was remembered before, that may be any.
    pub(crate) fn mark_who_has_sets_of(&self, change: &Change<AddOnRollout>) {
        let (new, old) = (change.new.as_deref(), change.old.as_deref());
        let Some(new) = new.and_then(|record| record.status.as_ref()) else { return };
        let old = old.and_then(|record| record.status.as_ref());
        let Some(old) = old else {
            return self.addons.on_clusters(&change.key.name).for_each(|key| self.queues.addons.mark(key.clone()));
        };
        let is_known = |set: &SetFingerprint| old.sets.iter().any(|known| known.fingerprint == *set);
        let found: BTreeSet<_> = new.sets.iter().map(|set| &set.fingerprint).filter(|set| !is_known(set)).collect();
        let Some(book) = self.addons.books.get(&change.key).filter(|_| !found.is_empty()) else { return };
        let pages = book.open();
        // Seldom is anybody given a set before it is remembered, so that nobody has to be looked for.
        if !pages.rollout.given().any(|set| found.contains(set)) {
            return;
        }
        for (cluster, member) in pages.rollout.members() {
            let given = member.addon.as_ref().and_then(|addon| addon.given.as_ref());
            if given.is_some_and(|given| found.contains(&given.set)) {
                self.queues.addons.mark(ObjectKey::namespaced(cluster.as_str(), &change.key.name));
            }
        }
    }
}

#[cfg(test)]
mod tests;
