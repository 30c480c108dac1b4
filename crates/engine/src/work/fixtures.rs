//! Objects that the tests of works share.

use serde_json::{Value, json};

use super::{Located, Manifest, Owner, Target};

/// A manifest whose kind was found under a resource; in namespaces if the manifest is.
pub(super) fn target(resource: &str, object: &Value) -> Target {
    let namespaced = !object["metadata"]["namespace"].is_null();
    let located = Located { resource: resource.to_owned(), namespaced };
    Manifest::read(0, object).unwrap().locate(&located).unwrap()
}

/// The AppliedManifestWork of the tests.
pub(super) fn owner() -> Owner {
    Owner { name: "hub-work".to_owned(), uid: "ours".to_owned() }
}

/// A reference to that AppliedManifestWork, as it stands in objects.
pub(super) fn owner_reference() -> Value {
    json!({ "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork", "name": "hub-work", "uid": "ours" })
}
