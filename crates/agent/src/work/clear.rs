//! Who clears away what works have left on the cluster: those that are deleted, and those that have been missing for too long.

use std::{borrow::Cow, sync::Arc, time::Duration};

use drover_api::{
    names::APPLIED_WORK_FINALIZER,
    work::{AppliedManifestWork, DeleteOption},
};
use drover_engine::{
    plan::{Plan, PlanStep, Verb, Write},
    work::{Agent, Eviction, Owner, eviction, is_of_agent},
};
use drover_runtime::{
    cache::SharedCache,
    clock::after,
    controller::Reconciler,
    execute::{ActionError, Execute},
    store::ObjectKey,
    write::Writer,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{Client, Resource as _, ResourceExt as _};

use super::{attend::record, remove::remove_in_turn, site::Site};

/// After how long it is looked again whether objects are gone, where nobody tells.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who clears.
pub(crate) struct Clearing;

impl Reconciler<Site> for Clearing {
    type Key = ObjectKey;
    type State = ();
    type Action = ClearPass;
    const NAME: &'static str = "work-agent-clearing";

    fn plan(&self, site: &Site, key: &ObjectKey, (): &mut (), now: Timestamp) -> Plan<ClearPass> {
        let Some(applied) = site.applied.get(key).filter(|applied| is_of_agent(applied, &site.settings.agent_id))
        else {
            return Plan::default();
        };
        if applied.metadata.deletion_timestamp.is_some() {
            return clear(site, key, applied, now);
        }
        // A work that can not be read is not missing.
        let is_there = site.works.has(&site.work_key(&applied.spec.manifest_work_name));
        let settings = &site.settings;
        let agent = Agent { hub_hash: &settings.hub_hash, agent_id: &settings.agent_id, grace: settings.grace };
        match eviction(applied, is_there, &agent, now) {
            Eviction::Stay => Plan::default(),
            Eviction::Stamp(since) => stamp(applied, Some(since)),
            Eviction::Clear => stamp(applied, None),
            Eviction::Wait(end) => Plan { wake: Some(end), ..Plan::default() },
            Eviction::Evict => Plan::from_iter([Write::delete(&**applied)]),
        }
    }
}

fn stamp(applied: &AppliedManifestWork, since: Option<Timestamp>) -> Plan<ClearPass> {
    let mut wanted = applied.clone();
    wanted.status.get_or_insert_default().eviction_start_time = since.map(Time);
    Write::status(applied, &wanted).into_iter().collect()
}

/// Removes what is left, and when nothing is, the record of it.
fn clear(site: &Site, key: &ObjectKey, applied: &Arc<AppliedManifestWork>, now: Timestamp) -> Plan<ClearPass> {
    if !applied.finalizers().iter().any(|finalizer| finalizer == APPLIED_WORK_FINALIZER) {
        return Plan::default();
    }
    let left = applied.status.as_ref().map(|status| status.applied_resources.as_slice()).unwrap_or_default();
    if left.is_empty() {
        let mut wanted = AppliedManifestWork::clone(applied);
        wanted.finalizers_mut().retain(|finalizer| finalizer != APPLIED_WORK_FINALIZER);
        return Write::update(&**applied, &wanted).into_iter().collect();
    }
    let key_of_work = site.work_key(&applied.spec.manifest_work_name);
    let work = site.works.get(&key_of_work);
    if work.is_none() && site.works.has(&key_of_work) {
        // Nobody can read which of its objects are to stay.
        return Plan { wake: Some(after(now, PATIENCE)), ..Plan::default() };
    }
    let option = delete_option(site, applied);
    let clear = ClearPass { key: key.clone(), applied: Arc::clone(applied), option };
    Plan { wake: Some(after(now, PATIENCE)), ..Plan::act(clear) }
}

/// Removes objects of a work that is gone, as far as that is possible now.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClearPass {
    key: ObjectKey,
    applied: Arc<AppliedManifestWork>,
    /// Which objects stay.
    option: Option<DeleteOption>,
}

impl ClearPass {
    /// Whether nothing has changed while the pass waited for its turn. What has changed has enqueued
    /// its key again.
    fn is_current(&self, site: &Site) -> bool {
        let option = delete_option(site, &self.applied);
        site.applied.get(&self.key).is_some_and(|applied| Arc::ptr_eq(applied, &self.applied)) && option == self.option
    }
}

/// Which objects of a work stay when it is gone, as far as the hub still has the work.
fn delete_option(site: &Site, applied: &AppliedManifestWork) -> Option<DeleteOption> {
    site.works.get(&site.work_key(&applied.spec.manifest_work_name))?.spec.delete_option.clone()
}

impl PlanStep for ClearPass {
    fn verb(&self) -> Verb {
        Verb::Delete
    }

    fn kind_name(&self) -> Cow<'_, str> {
        AppliedManifestWork::kind(&())
    }

    fn key(&self) -> ObjectKey {
        self.key.clone()
    }
}

impl Execute<Site> for ClearPass {
    async fn execute(&self, writer: Writer<Site>) -> Result<(), ActionError> {
        if !self.is_current(&writer.cache.read()) {
            return Ok(());
        }
        Ok(clear_some(&writer.client, &writer.cache, &self.applied, self.option.as_ref()).await?)
    }
}

/// Removes what can be removed, and records what is left.
async fn clear_some(
    managed: &Client,
    site: &SharedCache<Site>,
    applied: &AppliedManifestWork,
    option: Option<&DeleteOption>,
) -> Result<(), kube::Error> {
    let owner = Owner { name: applied.name_any(), uid: applied.uid().unwrap_or_default() };
    let listed = applied.status.as_ref().map(|status| status.applied_resources.clone()).unwrap_or_default();
    let left = remove_in_turn(managed, listed.clone(), &owner, option).await?;
    // What is left is decided on anew: that it has changed marks it.
    if left == listed { Ok(()) } else { record(managed, site, &owner.name, &left).await }
}
