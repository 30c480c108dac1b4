//! Who tells the hub how works are.

use std::time::Duration;

use drover_api::{names::WORK_FINALIZER, work::ManifestWork};
use drover_engine::{
    plan::{NoAction, Plan, Write},
    work::{Moment, deleting, work_status},
};
use drover_runtime::{clock::after, controller::Reconciler, store::ObjectKey};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;

use super::site::Site;

/// So many reports on one work are made at once; more of them, one after each such time.
const FREE_REPORTS: u32 = 10;
const REST: Duration = Duration::from_secs(1);

/// Writes the status of works.
pub(crate) struct Reporting;

/// How often the hub was told of a work lately. An object of it may change all the time, and the hub need not hear of each change.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// When it is forgotten that something was told at all.
    forgotten: Option<Timestamp>,
}

impl Told {
    /// Takes note of one more report; or says when it can be made, if there were too many.
    fn once_more(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        let since = self.forgotten.filter(|forgotten| now < *forgotten).unwrap_or(now);
        let forgotten = after(since, REST);
        if forgotten > after(now, REST * FREE_REPORTS) {
            // As much has to be forgotten as one more report adds.
            return Err(now
                .checked_add(forgotten.duration_since(after(now, REST * FREE_REPORTS)))
                .unwrap_or(forgotten));
        }
        self.forgotten = Some(forgotten);
        Ok(())
    }
}

impl Reconciler<Site> for Reporting {
    type Key = ObjectKey;
    type State = Option<Told>;
    type Action = NoAction;
    const NAME: &'static str = "work-agent";

    fn plan(&self, site: &Site, key: &ObjectKey, told: &mut Option<Told>, now: Timestamp) -> Plan {
        let Some(work) = site.works.get(key) else {
            *told = None;
            return Plan::default();
        };
        let has_finalizer = work.finalizers().iter().any(|finalizer| finalizer == WORK_FINALIZER);
        let is_left = site.applied.has(&site.applied_key(&key.name));
        let write = match (work.metadata.deletion_timestamp.is_some(), has_finalizer) {
            (true, true) if is_left => with_status(work, |status, generation| deleting(status, generation, now)),
            (true, true) => finalized(work, false),
            (true, false) => None,
            (false, false) => finalized(work, true),
            (false, true) => return paced(told, report(site, work, now), now),
        };
        write.into_iter().collect()
    }
}

/// A report, or when it is to be made.
fn paced(told: &mut Option<Told>, report: Option<Write>, now: Timestamp) -> Plan {
    let Some(report) = report else { return Plan::default() };
    match told.get_or_insert_default().once_more(now) {
        Ok(()) => Plan::from_iter([report]),
        Err(later) => Plan { wake: Some(later), ..Plan::default() },
    }
}

/// The status of a work, once every manifest was tried in its present form.
fn report(site: &Site, work: &ManifestWork, now: Timestamp) -> Option<Write> {
    let generation = work.metadata.generation.unwrap_or_default();
    let course =
        site.course(&work.name_any()).filter(|course| course.generation == generation && course.is_settled())?;
    let entries: Vec<_> = course.pieces.iter().filter_map(|piece| piece.entry.clone()).collect();
    let moment = Moment { generation, now, raw_json: site.settings.raw_json };
    with_status(work, |status, _| work_status(status, entries, &moment))
}

fn with_status(
    work: &ManifestWork,
    status: impl FnOnce(Option<&drover_api::work::ManifestWorkStatus>, i64) -> drover_api::work::ManifestWorkStatus,
) -> Option<Write> {
    let mut wanted = work.clone();
    wanted.status = Some(status(work.status.as_ref(), work.metadata.generation.unwrap_or_default()));
    Write::status(work, &wanted)
}

/// Has the hub keep a work until what it has left is cleared away, or not any more.
fn finalized(work: &ManifestWork, is_kept: bool) -> Option<Write> {
    let mut wanted = work.clone();
    let finalizers = wanted.finalizers_mut();
    finalizers.retain(|finalizer| finalizer != WORK_FINALIZER);
    if is_kept {
        finalizers.push(WORK_FINALIZER.to_owned());
    }
    Write::update(work, &wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_much_to_tell_tells_it_once_a_second() {
        let (start, mut told) = (Timestamp::UNIX_EPOCH, Told::default());
        for _ in 0..FREE_REPORTS {
            assert_eq!(told.once_more(start), Ok(()));
        }
        let second = after(start, REST);
        assert_eq!(told.once_more(start), Err(second));
        assert_eq!(told.once_more(second), Ok(()));
        assert_eq!(told.once_more(second), Err(after(second, REST)));
        let later = after(start, REST * FREE_REPORTS * 3);
        for _ in 0..FREE_REPORTS {
            assert_eq!(told.once_more(later), Ok(()), "after a while all is forgotten");
        }
        assert!(told.once_more(later).is_err());
    }
}
