//! What OCM accepts can be read, and what has two names means the same under both.

use drover_api::{
    addon::{AddOnConfig, ManagedClusterAddOnSpec, Subject},
    cluster::{ClusterClaim, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, ManagedClusterSpec},
    names::NO_DEFAULT_CONFIG,
    work::{AppliedManifestWork, ManifestWork, ManifestWorkReplicaSet},
};
use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

#[test]
fn an_object_without_a_spec_means_one_with_the_default() {
    fn check<K: Resource<DynamicType = ()> + DeserializeOwned + Serialize + Default + PartialEq + std::fmt::Debug>() {
        let object = json!({ "apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": {} });
        let read: K = serde_json::from_value(object).unwrap_or_else(|error| panic!("{}: {error}", K::kind(&())));
        assert_eq!(read, K::default());
        let written = serde_json::to_value(&read).expect("an object is JSON");
        assert_eq!(serde_json::from_value::<K>(written).expect("what was written can be read"), read);
    }
    check::<ManagedCluster>();
    check::<ManagedClusterSet>();
    check::<ManagedClusterSetBinding>();
    check::<ClusterClaim>();
    check::<ManifestWork>();
    check::<AppliedManifestWork>();
    check::<ManifestWorkReplicaSet>();
}

#[test]
fn a_spec_that_is_there_is_checked() {
    let wrong = json!({ "metadata": {}, "spec": { "hubAcceptsClient": "maybe" } });
    assert!(serde_json::from_value::<ManagedCluster>(wrong).is_err());
}

#[test]
fn the_default_of_a_spec_is_what_an_empty_one_means() {
    let empty: ManagedClusterSpec = serde_json::from_value(json!({})).expect("an empty spec can be read");
    assert_eq!(empty, ManagedClusterSpec::default());
    assert_eq!(empty.lease_duration_seconds, 60);
}

#[test]
fn the_users_version_goes_before_the_one_that_the_hub_wrote() {
    let version = |spec| {
        let spec: ManagedClusterAddOnSpec = serde_json::from_value(spec).expect("a valid spec");
        spec.version().map(ToString::to_string)
    };
    assert_eq!(version(json!({})), None);
    assert_eq!(version(json!({ "installVersion": "v1" })).as_deref(), Some("v1"));
    assert_eq!(version(json!({ "desiredVersion": "v2" })).as_deref(), Some("v2"));
    assert_eq!(version(json!({ "installVersion": "v1", "desiredVersion": "v2" })).as_deref(), Some("v2"));
}

#[test]
fn organisational_units_are_read_under_both_names() {
    for name in ["organizationUnit", "organizationUnits"] {
        let subject: Subject = serde_json::from_value(json!({ name: ["unit"] })).expect("a valid subject");
        assert_eq!(subject.units(), ["unit"], "{name}");
    }
}

#[test]
fn a_v1beta1_default_without_an_object_is_a_placeholder() {
    let config = |name| json!({ "group": "example.com", "resource": "settings", "name": name });
    let read = |name| serde_json::from_value::<AddOnConfig>(config(name)).expect("a valid reference");
    assert!(read(NO_DEFAULT_CONFIG).is_placeholder());
    assert!(!read("real").is_placeholder());
}
