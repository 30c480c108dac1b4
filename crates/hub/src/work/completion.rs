//! The completion controller: removes works that have done what they were for, when they have stayed as long as they say.
//!
//! Watches all works. Its key is a work. It deletes works.

use drover_engine::{
    plan::{NoAction, Plan, Write},
    work::completion::Fate,
};
use drover_runtime::{
    controller::Reconciler,
    store::{Change, ObjectKey},
};
use k8s_openapi::jiff::Timestamp;
use kube::Resource;

use crate::{
    cache::{Cache, Queues},
    manifest_work::CachedWork,
};

impl Queues {
    /// Enqueues a work that says how long it is to stay. Most works stay until a client removes
    /// them.
    pub(crate) fn mark_completion(&self, change: &Change<CachedWork>) {
        let has_ttl = |work: &CachedWork| work.time_to_live.is_some();
        if change.new.as_deref().is_some_and(has_ttl) {
            self.completions.mark(change.key.clone());
        } else if change.old.as_deref().is_some_and(has_ttl) {
            self.completions.forget(&change.key);
        }
    }
}

pub(crate) struct Completions;

impl Reconciler<Cache> for Completions {
    type Key = ObjectKey;
    type State = ();
    type Action = NoAction;

    const NAME: &'static str = "drover-work-completion";

    fn plan(&self, cache: &Cache, key: &ObjectKey, (): &mut (), now: Timestamp) -> Plan {
        let Some(work) = cache.works.get(key).filter(|work| work.meta().deletion_timestamp.is_none()) else {
            return Plan::default();
        };
        match work.time_to_live.map_or(Fate::Stays, |time_to_live| time_to_live.fate(now)) {
            Fate::Stays => Plan::default(),
            Fate::GoesAt(time) => Plan { wake: Some(time), ..Plan::default() },
            Fate::Goes => Plan::from_iter([Write::delete(&**work)]),
        }
    }
}
