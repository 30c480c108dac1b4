//! Who tells the hub how works are.

use drover_api::{names::WORK_FINALIZER, work::ManifestWork};
use drover_engine::work::{Moment, deleting, work_status};
use drover_runtime::{
    controller::{Plan, Reconciler},
    store::ObjectKey,
    write::Write,
};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;

use super::site::Site;

/// Who tells.
pub(crate) struct Reporting;

impl Reconciler<Site> for Reporting {
    type Key = ObjectKey;
    const NAME: &'static str = "work-agent";

    fn plan(&self, site: &Site, key: &ObjectKey, now: Timestamp) -> Plan<Site> {
        let Some(work) = site.works.get(key) else { return Plan::default() };
        let has_finalizer = work.finalizers().iter().any(|finalizer| finalizer == WORK_FINALIZER);
        let is_left = site.applied.has(&site.applied_key(&key.name));
        let write = match (work.metadata.deletion_timestamp.is_some(), has_finalizer) {
            (true, true) if is_left => told(work, |status, generation| deleting(status, generation, now)),
            (true, true) => finalized(work, false),
            (true, false) => None,
            (false, false) => finalized(work, true),
            (false, true) => report(site, work, now),
        };
        write.into_iter().collect()
    }
}

/// The status of a work, once every manifest was tried in its present form.
fn report(site: &Site, work: &ManifestWork, now: Timestamp) -> Option<Write<Site>> {
    let generation = work.metadata.generation.unwrap_or_default();
    let course =
        site.course(&work.name_any()).filter(|course| course.generation == generation && course.is_settled())?;
    let entries: Vec<_> = course.pieces.iter().filter_map(|piece| piece.entry.clone()).collect();
    let moment = Moment { generation, now, raw_json: site.settings.raw_json };
    told(work, |status, _| work_status(status, entries, &moment))
}

fn told(
    work: &ManifestWork,
    status: impl FnOnce(Option<&drover_api::work::ManifestWorkStatus>, i64) -> drover_api::work::ManifestWorkStatus,
) -> Option<Write<Site>> {
    let mut wanted = work.clone();
    wanted.status = Some(status(work.status.as_ref(), work.metadata.generation.unwrap_or_default()));
    Write::status(work, &wanted)
}

/// Has the hub keep a work until what it has left is cleared away, or not any more.
fn finalized(work: &ManifestWork, is_kept: bool) -> Option<Write<Site>> {
    let mut wanted = work.clone();
    let finalizers = wanted.finalizers_mut();
    finalizers.retain(|finalizer| finalizer != WORK_FINALIZER);
    if is_kept {
        finalizers.push(WORK_FINALIZER.to_owned());
    }
    Write::update(work, &wanted)
}
