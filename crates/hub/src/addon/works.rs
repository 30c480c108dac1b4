//! The works of add-ons, and the add-ons that a change of them concerns.

use std::collections::BTreeSet;

use drover_api::{addon::ManagedClusterAddOn, names::HOSTING_CLUSTER_ANNOTATION, reference::ClusterName};
use drover_engine::{template::AddOnWork, tracker::Dirty};
use drover_runtime::store::{Change, ObjectKey};
use kube::ResourceExt;

use crate::{
    cache::{Cache, Queues, remove_from},
    manifest_work::CachedWork,
};

impl Cache {
    /// The works of an add-on on one cluster: those on its own, and those on the cluster that hosts
    /// its agent.
    pub(crate) fn addon_works(&self, on_cluster: &ManagedClusterAddOn) -> Vec<&AddOnWork> {
        let key = ObjectKey::of(on_cluster);
        let host = on_cluster.annotations().get(HOSTING_CLUSTER_ANNOTATION).map(String::as_str);
        let is_here = |work: &&ObjectKey| work.namespace == key.namespace || host == Some(&*work.namespace);
        let works = self.addons.works_of.get(&key).into_iter().flatten().filter(is_here);
        works.filter_map(|work| self.works.get(work)?.addon.as_deref()).collect()
    }

    /// Takes note of whose a work is now, and enqueues the add-ons that it was and is of.
    pub(crate) fn addon_work_changed(&mut self, change: &Change<CachedWork>, queues: &Queues) {
        let [old, new] = [&change.old, &change.new]
            .map(|work| work.as_ref().and_then(|work| work.addon.as_ref()).map(|work| work.addon().clone()));
        if let Some(old) = &old {
            remove_from(&mut self.addons.works_of, old, &change.key);
        }
        if let Some(new) = &new {
            self.addons.works_of.entry(new.clone()).or_default().insert(change.key.clone());
        }
        for addon in old.into_iter().chain(new).collect::<BTreeSet<_>>() {
            // A rollout that is planned before the conditions of the add-on are written sees the report too.
            let member = Dirty::member(&ClusterName::from(&*addon.namespace));
            queues.rollouts.carry(ObjectKey::cluster_wide(&addon.name), member);
            queues.addons.mark(addon);
        }
    }
}
