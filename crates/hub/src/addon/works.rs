//! The works of add-ons, as far as their progress is read from them.

use drover_api::{
    names::{ADDON_NAME_LABEL, ADDON_NAMESPACE_LABEL},
    reference::ClusterName,
    work::{ManifestWork, ManifestWorkSpec},
};
use drover_engine::{template, tracker::Dirty};
use drover_runtime::{
    cache::Tracks,
    decode::Damaged,
    store::{Change, ObjectKey, Store},
};
use kube::{ResourceExt, runtime::watcher};

use crate::{
    cache::{Cache, Queues},
    manifest_work,
};

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

/// Whether a work is one of those that deploy an add-on, by its name.
fn is_deployed(work: &ManifestWork) -> bool {
    let addon = work.labels().get(ADDON_NAME_LABEL);
    addon.is_some_and(|addon| work.name_any().starts_with(&template::work_prefix(addon)))
}

impl Tracks<ManifestWork> for Cache {
    fn store(&mut self) -> &mut Store<ManifestWork> {
        &mut self.addons.works
    }

    fn salvage(damaged: &Damaged<ManifestWork>) -> Option<ManifestWork> {
        manifest_work::salvage(damaged)
    }

    fn trim(work: &mut ManifestWork) {
        work.managed_fields_mut().clear();
        // What it applies is most of it. If a template has made it, be it by OCM, it is asked what it applies; otherwise nothing is.
        work.spec = if is_deployed(work) { template::abridged(&work.spec) } else { ManifestWorkSpec::default() };
        if let Some(status) = work.status.as_mut().and_then(|status| status.resource_status.as_mut()) {
            template::trim(status);
        }
    }

    fn changed(&mut self, change: &Change<ManifestWork>, queues: &Queues) {
        for addon in self.addons.sort_work(change) {
            // A rollout that is planned before the conditions of the add-on are written sees the report too.
            let member = Dirty::member(&ClusterName::from(&*addon.namespace));
            queues.rollouts.carry(ObjectKey::cluster_wide(&addon.name), member);
            queues.addons.mark(addon);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn trimmed(name: &str) -> ManifestWork {
        let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
        let mut work = ManifestWork::new(name, ManifestWorkSpec::default());
        work.labels_mut().insert(ADDON_NAME_LABEL.to_owned(), "hello".to_owned());
        work.spec.workload.get_or_insert_default().manifests.push(manifest);
        <Cache as Tracks<ManifestWork>>::trim(&mut work);
        work
    }

    #[test]
    fn what_a_work_applies_is_known_though_ocm_has_made_it() {
        let known = template::objects(&trimmed("addon-hello-deploy-0").spec);
        assert_eq!(known.len(), 1, "nothing else would tell that it moves to another work");
        assert!(trimmed("somebody-else-s").spec.workload.is_none());
    }
}
