//! The types hold everything that users write: an object that passes through them comes out as it went in.

use drover_api::{addon, cluster, drover, work};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    documents::{Document, read, repository},
    examples::example_files,
};

#[test]
fn the_types_lose_nothing_that_is_written() {
    let tests = repository().join("crates/cli/tests");
    let files =
        example_files().into_iter().chain([tests.join("both-versions.yaml"), tests.join("one-of-each-kind.yaml")]);
    let mut passed = 0;
    for file in files {
        for object in read::<Value>(&file) {
            let Some(returned) = through_its_type(&object) else { continue };
            let mut lost = Document::new(object).lost_in(&returned);
            // A type of the add-on group stands for both versions and is written as the one that is stored.
            lost.retain(|loss| !loss.starts_with(".apiVersion"));
            assert!(lost.is_empty(), "{}: {}", file.display(), lost.join("; "));
            passed += 1;
        }
    }
    assert!(passed > 100, "only {passed} objects are of a kind of ours");
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
