//! Pods, and the templates that they are made from.

mod container;
mod fill;
mod volume;

use serde_json::{Value, json};

use self::container::container_rules;
pub(super) use self::fill::template_defaults;
use super::{
    look::{list, member, number, put, text},
    rbac::unsupported,
};
use crate::{
    field::{ErrorKind, FieldError, Path},
    metadata::{self, check_labels, names},
};

/// Fills in what pods say where nothing is said.
pub(super) fn defaults(pod: &mut Value) {
    fill::pod_defaults(pod);
}

/// A new pod waits.
pub(super) fn prepare_create(pod: &mut Value) {
    let quality = quality(pod);
    put(pod, "status", Some(json!({ "phase": "Pending", "qosClass": quality })));
}

/// Whoever reports on a pod does not change whose it is.
pub(super) fn keep_owners(new: &mut Value, old: &Value) {
    metadata::set(new, "ownerReferences", metadata::field(old, "ownerReferences").cloned());
}

/// How well a pod is served when there is little to go round.
fn quality(pod: &Value) -> &'static str {
    let containers = || list(pod, "/spec/containers").iter().chain(list(pod, "/spec/initContainers"));
    let says = |container: &Value, which: &str, name: &str| {
        container.pointer(&format!("/resources/{which}/{name}")).is_some_and(|amount| *amount != json!("0"))
    };
    let resources = ["cpu", "memory"];
    let says_any = |container: &Value| {
        resources.iter().any(|name| says(container, "limits", name) || says(container, "requests", name))
    };
    let is_bound = |container: &Value| {
        let same = |name: &&str| {
            let at = |which: &str| container.pointer(&format!("/resources/{which}/{name}"));
            at("limits").is_some() && at("requests") == at("limits")
        };
        resources.iter().all(same)
    };
    if !containers().any(says_any) {
        "BestEffort"
    } else if containers().all(is_bound) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// What is wrong with a pod.
pub(super) fn rules(pod: &Value) -> Vec<FieldError> {
    let none = json!({});
    spec_rules(member(pod, "spec").unwrap_or(&none), &Path::Root.field("spec"))
}

/// What is wrong with a template of pods.
pub(super) fn template_rules(template: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let none = json!({});
    let mut errors = check_labels(template.pointer("/metadata/labels"), &path.field("labels"));
    let spec = member(template, "spec").unwrap_or(&none);
    errors.extend(spec_rules(spec, &path.field("spec")));
    if !list(spec, "/ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        let spec = path.field("spec");
        errors.push(FieldError::bare(ErrorKind::Forbidden, &spec.field("ephemeralContainers"), detail));
    }
    errors
}

fn spec_rules(spec: &Value, path: &Path<'_>) -> Vec<FieldError> {
    const RESTARTS: &[&str] = &["Always", "OnFailure", "Never"];
    const DNS: &[&str] = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    let (mut errors, volumes) = volume::rules(spec, &path.field("volumes"));
    errors.extend(container_rules(spec, &volumes, path));
    for (name, allowed) in [("restartPolicy", RESTARTS), ("dnsPolicy", DNS)] {
        let said = member(spec, name).and_then(Value::as_str).unwrap_or_default();
        if said.is_empty() {
            errors.push(FieldError::bare(ErrorKind::Required, &path.field(name), ""));
        } else if !allowed.contains(&said) {
            errors.push(unsupported(&path.field(name), said, allowed));
        }
    }
    errors.extend(check_labels(member(spec, "nodeSelector"), &path.field("nodeSelector")));
    for (name, rule) in [
        ("serviceAccountName", names::subdomain as fn(&str) -> Vec<String>),
        ("nodeName", names::subdomain),
        ("hostname", names::label),
        ("subdomain", names::label),
        ("priorityClassName", names::subdomain),
        ("runtimeClassName", names::subdomain),
    ] {
        let said = member(spec, name).and_then(Value::as_str).unwrap_or_default();
        let problems = if said.is_empty() { Vec::new() } else { rule(said) };
        let path = path.field(name);
        errors.extend(problems.into_iter().map(|problem| FieldError::new(ErrorKind::Invalid, &path, said, problem)));
    }
    let in_range = |seconds: &i64| (1..=i64::from(i32::MAX)).contains(seconds);
    if let Some(seconds) = number(spec, "/activeDeadlineSeconds").filter(|seconds| !in_range(seconds)) {
        let detail = format!("must be between 1 and {}, inclusive", i32::MAX);
        errors.push(FieldError::new(ErrorKind::Invalid, &path.field("activeDeadlineSeconds"), seconds, detail));
    }
    errors
}

/// How the pods of a template are restarted.
pub(super) fn restart_policy(template: &Value) -> &str {
    text(template, "/spec/restartPolicy")
}
