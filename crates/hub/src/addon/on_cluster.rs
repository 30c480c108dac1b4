//! The add-on controller: keeps one add-on on one cluster up to date.
//!
//! Watches add-ons, and clusters for their annotations. Its key is a ManagedClusterAddOn. It writes that object's owner, and the
//! annotations that are copied from the cluster.

use drover_api::{addon::ManagedClusterAddOn, reference::ClusterName};
use drover_engine::addon::inheritance::{inherited, is_managed};
use drover_runtime::{
    controller::{Plan, Reconciler},
    store::ObjectKey,
    write::Write,
};
use k8s_openapi::jiff::Timestamp;

use crate::fleet::Fleet;

pub(crate) struct AddOns;

impl Reconciler<Fleet> for AddOns {
    type Key = ObjectKey;

    const NAME: &'static str = "drover-addon";

    fn plan(&self, fleet: &Fleet, key: &ObjectKey, _: Timestamp) -> Plan<Fleet> {
        let Some(on_cluster) = fleet.addons.mcas.get(key) else { return Plan::default() };
        // An object can not be written twice in one step: all else comes when this is as it should be.
        with_inheritance(fleet, key, on_cluster).into_iter().collect()
    }
}

/// Gives an add-on what it has from its ClusterManagementAddOn and from its cluster; nothing if it has it.
fn with_inheritance(fleet: &Fleet, key: &ObjectKey, on_cluster: &ManagedClusterAddOn) -> Option<Write<Fleet>> {
    let addon = fleet.addons.cmas.get(&ObjectKey::cluster_wide(&key.name))?;
    let is_going = addon.metadata.deletion_timestamp.is_some() || on_cluster.metadata.deletion_timestamp.is_some();
    if is_going || !is_managed(addon) {
        return None;
    }
    let cluster = fleet.cluster(&ClusterName::from(&*key.namespace)).map(|cluster| &**cluster);
    Write::update(on_cluster, &inherited(on_cluster, addon, cluster))
}

#[cfg(test)]
mod tests {
    use drover_api::{addon::ClusterManagementAddOn, names::LIFECYCLE_ANNOTATION};
    use serde_json::json;

    use super::*;
    use crate::addon::scene::{Scene, named, words};

    /// A fleet with an add-on on a cluster, and how many writes it takes to bring that up to date.
    fn writes(addon: serde_json::Value, on_cluster: &serde_json::Value) -> usize {
        let mut scene = Scene::new();
        scene.cluster("one", &json!({ "annotations": { "addon.open-cluster-management.io/x": "1" } }));
        scene.set::<ClusterManagementAddOn>(None, "hello", addon);
        scene.on_cluster("one", "hello", on_cluster);
        words(&scene.plan(&AddOns, &ObjectKey::namespaced("one", "hello"))).len()
    }

    #[test]
    fn an_add_on_is_brought_up_to_date_unless_it_is_not_ours_or_on_its_way_out() {
        let spec = json!({ "installStrategy": { "type": "Placements", "placements": [named("x")] } });
        let going = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
        assert_eq!(writes(json!({ "spec": spec }), &json!({})), 1);
        let managed_elsewhere = json!({ "annotations": { LIFECYCLE_ANNOTATION: "self" } });
        assert_eq!(writes(json!({ "spec": spec, "metadata": managed_elsewhere }), &json!({})), 0);
        assert_eq!(writes(json!({ "spec": spec, "metadata": going }), &json!({})), 0);
        assert_eq!(writes(json!({ "spec": spec }), &json!({ "metadata": going })), 0);
    }

    #[test]
    fn an_add_on_that_has_all_is_not_written() {
        let spec = json!({ "installStrategy": { "type": "Manual" } });
        let owner = json!({ "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
            "name": "hello", "uid": "hello", "controller": true, "blockOwnerDeletion": true });
        assert_eq!(writes(json!({ "spec": spec }), &json!({ "metadata": { "ownerReferences": [owner] } })), 0);
    }
}
