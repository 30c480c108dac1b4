//! Pods in manifests: which kinds have some, and where.

use serde_json::{Map, Value};

use super::manifest::Object;

const OF_TEMPLATE: &str = "/spec/template/spec";

/// Where a manifest of the object's kind describes its pods.
fn path(object: &Object) -> Option<&'static str> {
    match (object.group.as_str(), object.kind.as_str()) {
        ("", "Pod") => Some("/spec"),
        ("apps", "Deployment" | "DaemonSet" | "StatefulSet" | "ReplicaSet")
        | ("", "ReplicationController")
        | ("batch", "Job") => Some(OF_TEMPLATE),
        ("batch", "CronJob") => Some("/spec/jobTemplate/spec/template/spec"),
        _ => None,
    }
}

/// Whether objects of this kind have pods.
pub(super) fn has_pods(object: &Object) -> bool {
    path(object).is_some()
}

/// The description of the object's pods. Where there is none, the cluster's API server will say so.
pub(super) fn pod_of<'a>(object: &Object, manifest: &'a mut Value) -> Option<&'a mut Map<String, Value>> {
    manifest.pointer_mut(path(object)?)?.as_object_mut()
}
