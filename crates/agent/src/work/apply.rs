//! Who applies works to the cluster.

use std::sync::Arc;

use drover_api::{
    names::WORK_FINALIZER,
    work::{AppliedManifestWork, ManifestWork},
};
use drover_engine::work::{applied_work, is_of_agent};
use drover_runtime::{
    clock::Clock,
    controller::{Plan, Reconciler},
    metrics::Verb,
    store::ObjectKey,
    write::Write,
};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;

use super::{attend::Attendance, site::Site};

/// Who applies works.
pub(crate) struct Applying {
    pub(crate) clock: Clock,
}

impl Reconciler<Site> for Applying {
    type Key = ObjectKey;
    const NAME: &'static str = "work-agent";

    fn plan(&self, site: &Site, key: &ObjectKey, now: Timestamp) -> Plan<Site> {
        // What is left of a work that is gone is cleared away elsewhere.
        let Some(work) = site.works.get(key) else { return Plan::default() };
        let applied = site.applied.get(&site.applied_key(&key.name));
        match applied {
            // One that another agent has made for this hub and work is taken over: nobody else would clear it away.
            Some(applied) if !is_of_agent(applied, &site.settings.agent_id) => {
                let mut adopted = AppliedManifestWork::clone(applied);
                adopted.spec.agent_id = Some(site.settings.agent_id.clone());
                Write::update(&**applied, &adopted).into_iter().collect()
            }
            Some(applied) if applied.metadata.deletion_timestamp.is_some() => Plan::default(),
            applied if work.metadata.deletion_timestamp.is_some() => {
                applied.map(|applied| Write::delete(&**applied)).into_iter().collect()
            }
            // The hub has to know first that there is something to clear away.
            _ if !work.finalizers().iter().any(|finalizer| finalizer == WORK_FINALIZER) => Plan::default(),
            None => {
                let settings = &site.settings;
                Plan::from_iter([Write::create(applied_work(work, &settings.hub_hash, Some(&settings.agent_id)))])
            }
            Some(applied) => self.attend(site, key, work, applied, now),
        }
    }
}

impl Applying {
    fn attend(
        &self,
        site: &Site,
        key: &ObjectKey,
        work: &Arc<ManifestWork>,
        applied: &Arc<AppliedManifestWork>,
        now: Timestamp,
    ) -> Plan<Site> {
        let Some(course) = site.course(&key.name) else { return Plan::default() };
        if !course.is_due(now) {
            return Plan { wake: course.wake(), ..Plan::default() };
        }
        let (work, applied, clock) = (Arc::clone(work), Arc::clone(applied), self.clock.clone());
        let again = key.clone();
        let attend = Write::act("ManifestWork", Verb::Update, key.clone(), move |managed, site, _| {
            let (work, applied, clock, again) = (Arc::clone(&work), Arc::clone(&applied), clock.clone(), again.clone());
            Box::pin(async move {
                Attendance { managed, site: site.clone(), clock, work, applied }.attend().await?;
                // Whether there is more to do, and when, is decided anew.
                site.read().queues.applying.mark(again);
                Ok(())
            })
        });
        Plan::from_iter([attend])
    }
}
