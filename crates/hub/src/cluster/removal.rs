//! How a cluster is seen out: its add-ons, its works, its agent's access, and then the cluster.

use drover_api::{
    addon::{ManagedClusterAddOn, ManagedClusterAddOnSpec},
    cluster::ManagedCluster,
    reference::ClusterName,
};
use drover_engine::{
    cluster::{
        acceptance::{self, Acceptance},
        access::Part,
        marks::released,
        removal::{self, Remains, Remnant, Removal, Step},
    },
    plan::{Plan, Stored, Write},
};
use drover_runtime::store::ObjectKey;
use k8s_openapi::jiff::Timestamp;
use kube::{Resource, api::ObjectMeta};
use serde_json::json;

use super::{end_binding, give_access, shut_out, status};
use crate::cache::Cache;

/// What has to be written for a cluster that is being deleted.
pub(super) fn plan(cache: &Cache, name: &ClusterName, cluster: &ManagedCluster, now: Timestamp) -> Plan {
    let Some(released) = released(cluster) else { return Plan::default() };
    let unreadable = unreadable_addons(cache, name);
    let remains = remains_of(cache, name, &unreadable);
    let writes: Vec<_> = match removal::next(cluster, &remains) {
        Step::Remove { what, turn } => {
            let removals = turn.iter().filter_map(|removal| write(cache, name, what, removal));
            removals.chain(adjust_access(cache, name, cluster)).collect()
        }
        Step::EndAccess => end_access(cache, name),
    };
    if remains == Remains::default() && writes.is_empty() {
        return Write::update(cluster, &released).into_iter().collect();
    }
    status::say(cache, name, cluster, removal::conditions_of(cluster, &remains, now), now).plan.after(writes)
}

/// Lets the agent finish its work for as long as the cluster is accepted, and no longer.
fn adjust_access(cache: &Cache, name: &ClusterName, cluster: &ManagedCluster) -> Vec<Write> {
    let namespace = cache.belongings.namespace(name);
    match acceptance::judge(cluster, namespace, cache.belongings.access(name)) {
        Acceptance::Accepted if namespace.is_some() => give_access(cache, name),
        Acceptance::Denied => shut_out(cache, name),
        _ => Vec::new(),
    }
}

/// The add-ons of a cluster of which nothing is known but that they are there.
fn unreadable_addons(cache: &Cache, name: &ClusterName) -> Vec<ManagedClusterAddOn> {
    let unknown = cache.addons.mcas.unknown().filter(|key| &*key.namespace == name.as_str());
    unknown.map(stand_in).collect()
}

/// Something that can be deleted instead of an add-on that can not be read.
fn stand_in(key: &ObjectKey) -> ManagedClusterAddOn {
    let mut addon = ManagedClusterAddOn::new(&key.name, ManagedClusterAddOnSpec::default());
    addon.metadata.namespace = Some(key.namespace.to_string());
    addon
}

fn remains_of<'a>(cache: &'a Cache, name: &'a ClusterName, unreadable: &'a [ManagedClusterAddOn]) -> Remains<'a> {
    let addons = cache.addons.mcas.in_namespace(name.as_str()).map(|(_, addon)| &**addon);
    let works = cache.works.in_namespace(name.as_str());
    Remains {
        addons: addons.chain(unreadable).map(|addon| &addon.metadata).collect(),
        works: works.map(|(_, work)| work.meta()).collect(),
    }
}

fn write(cache: &Cache, name: &ClusterName, what: Remnant, removal: &Removal<'_>) -> Option<Write> {
    let (Removal::Delete(object) | Removal::Release(object) | Removal::Await(object)) = removal;
    let key = ObjectKey::namespaced(name.as_str(), object.name.as_deref().unwrap_or_default());
    match what {
        Remnant::AddOns => match cache.addons.mcas.get(&key) {
            Some(addon) => remove(&**addon, removal),
            None => remove(&stand_in(&key), removal),
        },
        Remnant::Works => remove(&**cache.works.get(&key)?, removal),
    }
}

fn remove<K: Stored>(stored: &K, removal: &Removal<'_>) -> Option<Write> {
    match removal {
        Removal::Delete(_) => Some(Write::delete(stored)),
        Removal::Await(_) => None,
        Removal::Release(_) => {
            let ObjectMeta { uid, resource_version, .. } = stored.meta();
            let metadata = json!({ "uid": uid, "resourceVersion": resource_version, "finalizers": null });
            Some(Write::merge(stored, json!({ "metadata": metadata })))
        }
    }
}

/// Takes from a cluster's agent all that it may do.
pub(super) fn end_access(cache: &Cache, name: &ClusterName) -> Vec<Write> {
    let belongings = &cache.belongings;
    let bindings = Part::ALL.into_iter().filter_map(|part| belongings.binding(name, part));
    let mut writes: Vec<_> = bindings.filter_map(end_binding).collect();
    writes.extend(belongings.role_binding(name).map(Write::delete));
    writes.extend(belongings.role(name).map(Write::delete));
    writes
}

#[cfg(test)]
mod tests {
    use drover_api::names::CLUSTER_FINALIZER;
    use drover_runtime::{clock::ManualClock, decode::Defect};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kube::ResourceExt;

    use super::*;

    fn defect() -> Defect {
        Defect { path: "spec".to_owned(), message: "invalid".to_owned() }
    }

    #[test]
    fn an_add_on_that_can_not_be_read_is_removed_all_the_same() {
        let now = Timestamp::UNIX_EPOCH;
        let clock = ManualClock::at(now).clock();
        let mut cache = Cache::new(clock);
        cache.addons.mcas.keep(&ObjectKey::namespaced("one", "odd"), defect());
        cache.addons.mcas.keep(&ObjectKey::namespaced("two", "other"), defect());
        let mut cluster = ManagedCluster::default();
        cluster.metadata.name = Some("one".to_owned());
        cluster.metadata.deletion_timestamp = Some(Time(now));
        cluster.finalizers_mut().push(CLUSTER_FINALIZER.to_owned());
        let plan = plan(&cache, &ClusterName::from("one"), &cluster, now);
        let writes: Vec<_> = plan.ordered.iter().map(Write::to_string).collect();
        assert_eq!(writes, ["Delete ManagedClusterAddOn one/odd", "Patch ManagedCluster one"]);
    }
}
