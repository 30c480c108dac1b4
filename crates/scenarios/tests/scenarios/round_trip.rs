//! The types hold everything that users write: an object that passes through them comes out as it went in.

use drover_api::{addon, cluster, drover, work};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    documents::{Document, read, repository},
    examples::example_files,
};

/// What types add to objects that do not say it, as the API server does.
const ADDED: [&str; 3] = [".spec.leaseDurationSeconds", ".spec.clusterSelector", ".spec.cascadeDeletionPolicy"];

#[test]
fn objects_pass_through_the_types_unchanged() {
    let tests = repository().join("crates/scenarios/tests");
    let others = ["both-versions.yaml", "full-status.yaml", "one-of-each-kind.yaml"].map(|name| tests.join(name));
    let mut changes = Vec::new();
    let mut passed = 0;
    for file in example_files().into_iter().chain(others) {
        for object in read::<Value>(&file) {
            let Some(returned) = through_its_type(&object) else { continue };
            let changed = changes_between(&object, returned).into_iter();
            changes.extend(changed.map(|change| format!("{}: {change}", file.display())));
            passed += 1;
        }
    }
    assert!(changes.is_empty(), "{}", changes.join("\n"));
    assert!(passed > 100, "only {passed} objects are of a kind of ours");
}

fn changes_between(object: &Value, returned: Value) -> Vec<String> {
    let mut changes = Document::new(object.clone()).lost_in(&returned);
    let additions = Document::new(returned).lost_in(object).into_iter();
    changes.extend(additions.filter(|addition| !ADDED.iter().any(|added| addition.contains(added))));
    // A type of the add-on group stands for both versions and is written as the one that is stored.
    changes.retain(|change| !change.starts_with(".apiVersion"));
    changes
}

/// The object, read into the type of its kind and written again; nothing for kinds that are not ours.
fn through_its_type(object: &Value) -> Option<Value> {
    let returned = match object["kind"].as_str()? {
        "ManagedCluster" => through::<cluster::ManagedCluster>(object),
        "ManagedClusterSet" => through::<cluster::ManagedClusterSet>(object),
        "ManagedClusterSetBinding" => through::<cluster::ManagedClusterSetBinding>(object),
        "Placement" => through::<cluster::Placement>(object),
        "PlacementDecision" => through::<cluster::PlacementDecision>(object),
        "ManagedClustersUpgrade" => through::<cluster::ManagedClustersUpgrade>(object),
        "ClusterClaim" => through::<cluster::ClusterClaim>(object),
        "AddOnPlacementScore" => through::<cluster::AddOnPlacementScore>(object),
        "ManifestWork" => through::<work::ManifestWork>(object),
        "AppliedManifestWork" => through::<work::AppliedManifestWork>(object),
        "ManifestWorkReplicaSet" => through::<work::ManifestWorkReplicaSet>(object),
        "ClusterManagementAddOn" => through::<addon::ClusterManagementAddOn>(object),
        "ManagedClusterAddOn" => through::<addon::ManagedClusterAddOn>(object),
        "AddOnDeploymentConfig" => through::<addon::AddOnDeploymentConfig>(object),
        "AddOnTemplate" => through::<addon::AddOnTemplate>(object),
        "AddOnHubConfig" => through::<addon::AddOnHubConfig>(object),
        "ConfigRevision" => through::<drover::ConfigRevision>(object),
        "AddOnRollout" => through::<drover::AddOnRollout>(object),
        "ClusterUpgrade" => through::<drover::ClusterUpgrade>(object),
        _ => return None,
    };
    Some(returned)
}

fn through<K: DeserializeOwned + Serialize>(object: &Value) -> Value {
    let typed: K = serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{error}: {object:#}"));
    serde_json::to_value(typed).expect("an object is JSON")
}
