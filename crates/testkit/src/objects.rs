//! Objects for scenarios, with everything in place that a scenario does not care about.

use drover_api::{
    addon::{
        ClusterManagementAddOn, ClusterManagementAddOnSpec, InstallStrategy, InstallStrategyType, ManagedClusterAddOn,
        ManagedClusterAddOnSpec, PlacementStrategy,
    },
    cluster::{ManagedCluster, ManagedClusterSpec},
    reference::PlacementRef,
    work::{ManifestWork, ManifestWorkSpec, ManifestsTemplate},
};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

/// A cluster that the hub has accepted.
#[must_use]
pub fn cluster(name: &str) -> ManagedCluster {
    let spec = ManagedClusterSpec { hub_accepts_client: true, ..ManagedClusterSpec::default() };
    ManagedCluster::new(name, spec)
}

/// An add-on that is installed by hand.
#[must_use]
pub fn addon(name: &str) -> ClusterManagementAddOn {
    ClusterManagementAddOn::new(name, ClusterManagementAddOnSpec::default())
}

/// An add-on on one cluster.
#[must_use]
pub fn addon_on(cluster: &str, name: &str) -> ManagedClusterAddOn {
    ManagedClusterAddOn::new(name, ManagedClusterAddOnSpec::default()).in_namespace(cluster)
}

/// A work for one cluster that applies `manifests`.
#[must_use]
pub fn work(cluster: &str, name: &str, manifests: impl IntoIterator<Item = Value>) -> ManifestWork {
    let workload = ManifestsTemplate { manifests: manifests.into_iter().collect() };
    ManifestWork::new(name, ManifestWorkSpec { workload: Some(workload), ..Default::default() }).in_namespace(cluster)
}

/// A ConfigMap, as something small to apply.
#[must_use]
pub fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default" },
        "data": { "made": "by a scenario" },
    })
}

/// What objects of every kind can be told as they are made.
pub trait Described: Resource + Sized {
    /// The object, with that name.
    #[must_use]
    fn named(mut self, name: &str) -> Self {
        self.meta_mut().name = Some(name.to_owned());
        self
    }

    /// The object, in that namespace.
    #[must_use]
    fn in_namespace(mut self, namespace: &str) -> Self {
        self.meta_mut().namespace = Some(namespace.to_owned());
        self
    }

    /// The object, with that label.
    #[must_use]
    fn labelled(mut self, key: &str, value: &str) -> Self {
        self.labels_mut().insert(key.to_owned(), value.to_owned());
        self
    }

    /// The object, with that annotation.
    #[must_use]
    fn annotated(mut self, key: &str, value: &str) -> Self {
        self.annotations_mut().insert(key.to_owned(), value.to_owned());
        self
    }
}

impl<K: Resource> Described for K {}

/// What add-ons can be told as they are made.
pub trait Installed: Sized {
    /// The add-on, installed on the clusters of one more placement.
    #[must_use]
    fn on_placement(self, namespace: &str, name: &str) -> Self;
}

impl Installed for ClusterManagementAddOn {
    fn on_placement(mut self, namespace: &str, name: &str) -> Self {
        let strategy = self.spec.install_strategy.get_or_insert_default();
        *strategy = InstallStrategy { kind: InstallStrategyType::Placements, ..strategy.clone() };
        let placement = PlacementRef { namespace: namespace.to_owned(), name: name.to_owned() };
        strategy.placements.push(PlacementStrategy { placement, ..Default::default() });
        self
    }
}
