//! What objects of built-in kinds always say, because the real server keeps them as records in which some fields can not be left out.

use serde_json::{Value, json};

use super::look::{fill, object};
use crate::kind::Kind;

/// Writes the fields that objects of a kind can not leave out.
pub(super) fn zeros(kind: &Kind, value: &mut Value) {
    let filled: &[(&str, Value)] = match (kind.group.as_str(), kind.plural.as_str()) {
        ("apps", "deployments")
        | ("batch", "jobs" | "cronjobs")
        | ("certificates.k8s.io", _)
        | ("admissionregistration.k8s.io", "validatingadmissionpolicies") => &[],
        ("apps", "statefulsets") => &[("replicas", json!(0)), ("availableReplicas", json!(0))],
        ("apps", "replicasets") => &[("replicas", json!(0))],
        ("apps", "daemonsets") => &[
            ("currentNumberScheduled", json!(0)),
            ("desiredNumberScheduled", json!(0)),
            ("numberMisscheduled", json!(0)),
            ("numberReady", json!(0)),
        ],
        ("", "services") => &[("loadBalancer", json!({}))],
        _ => return,
    };
    let Some(status) = object(value, "status") else { return };
    for (name, zero) in filled {
        fill(status, name, zero.clone());
    }
    let times: &[&str] = match kind.plural.as_str() {
        "deployments" => &["lastTransitionTime", "lastUpdateTime"],
        "daemonsets" | "replicasets" | "statefulsets" => &["lastTransitionTime"],
        "jobs" => &["lastProbeTime", "lastTransitionTime"],
        _ => &[],
    };
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten();
    for condition in conditions {
        for time in times {
            fill(condition, time, Value::Null);
        }
    }
}
