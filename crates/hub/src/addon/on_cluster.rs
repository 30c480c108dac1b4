//! The add-on controller: keeps one add-on on one cluster up to date.
//!
//! Watches add-ons and their works, and clusters for their annotations. Its key is a ManagedClusterAddOn. It writes that object's owner, the
//! annotations that are copied from the cluster, the version that its placement gives it, and its status.

use drover_api::{
    addon::{ClusterManagementAddOn, ManagedClusterAddOn, PlacementStrategy},
    grammar::Version,
    reference::ClusterName,
};
use drover_engine::addon::{
    assignment::assigned,
    inheritance::{inherited, is_managed},
    mark::Given,
    rollout::listed,
};
use drover_runtime::{
    controller::{Plan, Reconciler},
    store::ObjectKey,
    write::Write,
};
use k8s_openapi::jiff::Timestamp;

use super::{
    Dialect,
    progress::{self, Subject},
    shelf::Shelf,
};
use crate::fleet::Fleet;

pub(crate) struct AddOns {
    /// In whose words it reports.
    pub(crate) dialect: Dialect,
}

impl Reconciler<Fleet> for AddOns {
    type Key = ObjectKey;

    const NAME: &'static str = "drover-addon";

    fn plan(&self, fleet: &Fleet, key: &ObjectKey, now: Timestamp) -> Plan<Fleet> {
        let Some(on_cluster) = fleet.addons.mcas.get(key) else { return Plan::default() };
        let Some(addon) = fleet.addons.cmas.get(&ObjectKey::cluster_wide(&key.name)) else { return Plan::default() };
        let is_going = addon.metadata.deletion_timestamp.is_some() || on_cluster.metadata.deletion_timestamp.is_some();
        if is_going || !is_managed(addon) {
            return Plan::default();
        }
        // An object can not be written twice in one step: what it is comes before what is said of it.
        let write =
            with_inheritance(fleet, key, on_cluster, addon).or_else(|| self.with_status(fleet, on_cluster, addon, now));
        write.into_iter().collect()
    }
}

impl AddOns {
    /// Tells how far the add-on is on its cluster; nothing if that is told already.
    fn with_status(
        &self,
        fleet: &Fleet,
        on_cluster: &ManagedClusterAddOn,
        addon: &ClusterManagementAddOn,
        now: Timestamp,
    ) -> Option<Write<Fleet>> {
        let key = ObjectKey::cluster_wide(addon.metadata.name.as_deref()?);
        let record = fleet.configs.rollout(&key)?;
        let pages = fleet.addons.books.get(&key)?.open();
        let shelf = Shelf::of(fleet, addon, self.dialect);
        let subject = Subject { fleet, on_cluster, shelf: &shelf, dialect: self.dialect, now };
        progress::told(&subject, record, &pages)
    }
}

/// Gives an add-on what it has from its ClusterManagementAddOn, from its cluster and from its placement; nothing if it has it.
fn with_inheritance(
    fleet: &Fleet,
    key: &ObjectKey,
    on_cluster: &ManagedClusterAddOn,
    addon: &ClusterManagementAddOn,
) -> Option<Write<Fleet>> {
    let cluster = fleet.cluster(&ClusterName::from(&*key.namespace)).map(|cluster| &**cluster);
    let inherited = inherited(on_cluster, addon, cluster);
    let version = assigned_version(fleet, key, on_cluster, addon);
    Write::update(on_cluster, &assigned(&inherited, version.as_ref()))
}

/// The version that a cluster was given, if the template of its placement's add-ons asks for one.
fn assigned_version(
    fleet: &Fleet,
    key: &ObjectKey,
    on_cluster: &ManagedClusterAddOn,
    addon: &ClusterManagementAddOn,
) -> Option<Version> {
    let asks = |entry: &PlacementStrategy| entry.addon_template.as_ref().is_some_and(|it| it.version().is_some());
    if !listed(addon).iter().any(asks) {
        return None;
    }
    let addon_key = ObjectKey::cluster_wide(&key.name);
    let pages = fleet.addons.books.get(&addon_key)?.open();
    let (entry, _) = pages.rollout.standing(&ClusterName::from(&*key.namespace))?;
    let placement = pages.rollout.entries().get(entry)?.source.placement()?;
    listed(addon).iter().find(|entry| entry.placement == *placement).filter(|entry| asks(entry))?;
    let given = Given::read(&on_cluster.status.as_ref()?.conditions)?;
    let sets = fleet.configs.rollout(&addon_key)?.status.iter().flat_map(|status| &status.sets);
    sets.into_iter().find(|set| set.fingerprint == given.set)?.version.clone()
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
        words(&scene.plan(&AddOns { dialect: Dialect::Drover }, &ObjectKey::namespaced("one", "hello"))).len()
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
