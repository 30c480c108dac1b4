//! OCM's agents and add-ons speak `v1beta1`, older ones `v1alpha1`: whichever wrote an object, the other reads all of it.

use drover_testkit::World;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::Value;

use crate::documents::{Document, read, repository};

drover_testkit::scenarios! {
    Shared { what_is_written_as_one_version_is_read_as_the_other }
}

async fn what_is_written_as_one_version_is_read_as_the_other(world: World) {
    let namespace = world.namespace("versions").await;
    let objects = read::<Value>(&repository().join("crates/scenarios/tests/both-versions.yaml"));
    let kinds = ["ClusterManagementAddOn", "ManagedClusterAddOn", "AddOnDeploymentConfig"];
    for (kind, version) in kinds.iter().flat_map(|kind| [(kind, "v1alpha1"), (kind, "v1beta1")]) {
        let api_version = format!("addon.open-cluster-management.io/{version}");
        let is_there = objects.iter().any(|object| object["kind"] == **kind && object["apiVersion"] == api_version);
        assert!(is_there, "both-versions.yaml has no {kind} of {version}");
    }
    for object in objects {
        let mut document = Document::new(object.clone());
        document.rename(world.unique(document.name()));
        if let Err(refused) = document.store(&world, &namespace).await {
            panic!("{} {}: {}", object["apiVersion"], document.kind(), refused.message);
        }
        let read = read_as_the_other(&world, &namespace, &document, &object).await;
        let mut lost = document.lost_in(&read);
        lost.retain(|loss| !loss.starts_with(".apiVersion"));
        assert!(lost.is_empty(), "{} of {}: {}", document.kind(), object["apiVersion"], lost.join("; "));
    }
}

async fn read_as_the_other(world: &World, namespace: &str, document: &Document, object: &Value) -> Value {
    let other = if object["apiVersion"] == "addon.open-cluster-management.io/v1beta1" { "v1alpha1" } else { "v1beta1" };
    let resource =
        ApiResource::from_gvk(&GroupVersionKind::gvk("addon.open-cluster-management.io", other, document.kind()));
    let api: Api<DynamicObject> = match document.kind() {
        "ClusterManagementAddOn" => Api::all_with(world.client(), &resource),
        _ => Api::namespaced_with(world.client(), namespace, &resource),
    };
    let read = api.get(document.name()).await.expect("the object is served as the other version");
    assert_eq!(
        read.types.as_ref().expect("an object has a type").api_version,
        format!("addon.open-cluster-management.io/{other}")
    );
    serde_json::to_value(read).expect("an object is JSON")
}
