//! The works of add-ons, as far as their progress is read from them.

use drover_api::{
    names::{ADDON_NAME_LABEL, ADDON_NAMESPACE_LABEL, SET_ANNOTATION},
    work::{ManifestWork, ManifestWorkSpec},
};
use drover_engine::template;
use drover_runtime::{
    fleet::Tracks,
    store::{Change, ObjectKey, Store},
};
use kube::{ResourceExt, runtime::watcher};

use crate::fleet::Fleet;

/// Which works are add-ons'.
pub(crate) fn works() -> watcher::Config {
    watcher::Config::default().labels(ADDON_NAME_LABEL)
}

/// The add-on that a work belongs to. A work for another cluster's namespace says so.
pub(super) fn addon_of(work: &ManifestWork) -> Option<ObjectKey> {
    let labels = work.labels();
    let namespace = labels.get(ADDON_NAMESPACE_LABEL).cloned().or_else(|| work.namespace())?;
    Some(ObjectKey::namespaced(&namespace, labels.get(ADDON_NAME_LABEL)?))
}

impl Tracks<ManifestWork> for Fleet {
    fn store(&mut self) -> &mut Store<ManifestWork> {
        &mut self.addons.works
    }

    fn trim(work: &mut ManifestWork) {
        work.managed_fields_mut().clear();
        // What it applies is most of it. If a template has made it, it is asked whether it is still the same; otherwise nothing is.
        let is_made = work.annotations().contains_key(SET_ANNOTATION);
        work.spec = if is_made { template::abridged(&work.spec) } else { ManifestWorkSpec::default() };
        if let Some(status) = work.status.as_mut().and_then(|status| status.resource_status.as_mut()) {
            template::trim(status);
        }
    }

    fn changed(&mut self, change: &Change<ManifestWork>) {
        for addon in self.addons.sort_work(change) {
            self.queues.addons.mark(addon);
        }
    }
}
