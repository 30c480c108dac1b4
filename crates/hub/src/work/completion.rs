//! The completion controller: removes works that have done what they were for, when they have stayed as long as they say.
//!
//! Watches all works, of which it reads three fields, and keeps those that say how long they are to stay. Its key is a work. It deletes works.

use drover_api::names::{REPLICA_SET_LABEL, UPGRADE_LABEL};
use drover_engine::{
    plan::{NoAction, Plan, Write},
    work::completion::{Fate, decide},
};
use drover_runtime::{
    cache::Tracks,
    controller::Reconciler,
    decode::Damaged,
    store::{Change, ObjectKey, Store},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::{Deserialize, Serialize};

use crate::{
    cache::{Cache, Queues},
    manifest_work,
};

/// A work, as far as it says when it is to go. What it applies is not even read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FinishingWork {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    delete_option: Option<DeleteOption>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeleteOption {
    #[serde(default)]
    ttl_seconds_after_finished: Option<i64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Status {
    #[serde(default)]
    conditions: Vec<Condition>,
}

impl FinishingWork {
    /// For how many seconds it is to stay after it is complete, if it says so and nobody would make it again.
    fn stays(&self) -> Option<i64> {
        let is_of_others = [REPLICA_SET_LABEL, UPGRADE_LABEL].iter().any(|label| self.labels().contains_key(*label));
        self.spec.delete_option.as_ref()?.ttl_seconds_after_finished.filter(|_| !is_of_others)
    }

    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
    }
}

is_a_manifest_work!(FinishingWork);

impl Tracks<FinishingWork> for Cache {
    fn store(&mut self) -> &mut Store<FinishingWork> {
        &mut self.work_sets.finishing
    }

    fn salvage(damaged: &Damaged<FinishingWork>) -> Option<FinishingWork> {
        manifest_work::salvage(damaged)
    }

    fn trim(work: &mut FinishingWork) {
        work.annotations_mut().clear();
        work.managed_fields_mut().clear();
    }

    fn changed(&mut self, change: &Change<FinishingWork>, queues: &Queues) {
        match &change.new {
            // Most works stay until somebody removes them.
            Some(work) if work.stays().is_none() => {
                self.work_sets.finishing.delete(work.meta());
                queues.completions.forget(&change.key);
            }
            Some(_) => queues.completions.mark(change.key.clone()),
            None => queues.completions.forget(&change.key),
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
        let Some(work) = cache.work_sets.finishing.get(key).filter(|work| work.metadata.deletion_timestamp.is_none())
        else {
            return Plan::default();
        };
        let Some(seconds) = work.stays() else { return Plan::default() };
        match decide(seconds, work.conditions(), now) {
            Fate::Stays => Plan::default(),
            Fate::GoesAt(time) => Plan { wake: Some(time), ..Plan::default() },
            Fate::Goes => Plan::from_iter([Write::delete(&**work)]),
        }
    }
}
