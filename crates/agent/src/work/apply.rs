//! Who applies works to the cluster.

use std::{borrow::Cow, sync::Arc};

use drover_api::{
    names::WORK_FINALIZER,
    work::{AppliedManifestWork, ManifestWork},
};
use drover_engine::{
    plan::{Plan, PlanStep, Verb, Write},
    work::{applied_work, is_of_agent},
};
use drover_runtime::{
    controller::Reconciler,
    execute::{ActionError, Execute},
    store::ObjectKey,
    write::Writer,
};
use k8s_openapi::jiff::Timestamp;
use kube::{Resource as _, ResourceExt as _};

use super::{attend::Attendance, site::Site};

/// Who applies works.
pub(crate) struct Applying;

impl Reconciler<Site> for Applying {
    type Key = ObjectKey;
    type State = ();
    type Action = ApplyPass;
    const NAME: &'static str = "work-agent";

    fn plan(&self, site: &Site, key: &ObjectKey, (): &mut (), now: Timestamp) -> Plan<ApplyPass> {
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
            Some(applied) => Self::attend(site, key, work, applied, now),
        }
    }
}

impl Applying {
    fn attend(
        site: &Site,
        key: &ObjectKey,
        work: &Arc<ManifestWork>,
        applied: &Arc<AppliedManifestWork>,
        now: Timestamp,
    ) -> Plan<ApplyPass> {
        let Some(course) = site.course(&key.name) else { return Plan::default() };
        if !course.is_due(now) {
            return Plan { wake: course.wake(), ..Plan::default() };
        }
        Plan::act(ApplyPass { key: key.clone(), work: Arc::clone(work), applied: Arc::clone(applied) })
    }
}

/// One pass over the manifests of a work that are due. It applies the work in the state that it was
/// planned for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApplyPass {
    key: ObjectKey,
    work: Arc<ManifestWork>,
    applied: Arc<AppliedManifestWork>,
}

impl ApplyPass {
    /// Whether nothing has changed while the pass waited for its turn. What has changed has enqueued
    /// the work again.
    fn is_current(&self, site: &Site) -> bool {
        let is_same_work = site.works.get(&self.key).is_some_and(|work| Arc::ptr_eq(work, &self.work));
        let applied = site.applied.get(&site.applied_key(&self.key.name));
        is_same_work && applied.is_some_and(|applied| Arc::ptr_eq(applied, &self.applied))
    }
}

impl PlanStep for ApplyPass {
    fn verb(&self) -> Verb {
        Verb::Update
    }

    fn kind_name(&self) -> Cow<'_, str> {
        ManifestWork::kind(&())
    }

    fn key(&self) -> ObjectKey {
        self.key.clone()
    }
}

impl Execute<Site> for ApplyPass {
    async fn execute(&self, writer: Writer<Site>) -> Result<(), ActionError> {
        let Self { key, work, applied } = self.clone();
        if !self.is_current(&writer.cache.read()) {
            return Ok(());
        }
        let Writer { client: managed, cache: site, clock, .. } = writer;
        Attendance { managed, site: site.clone(), clock, work, applied }.attend().await?;
        // Whether there is more to do, and when, is decided anew.
        site.queues().applying.mark(key);
        Ok(())
    }
}
