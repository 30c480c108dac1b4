//! What is carried over from an object that is replaced: what a server or a controller has filled in, and nobody may lose.

use serde_json::{Map, Value};

use super::{content_of, fields};
use crate::work::manifest::Target;

/// The labels by which a Job finds its pods.
const JOB_LABELS: [&str; 4] =
    ["batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"];

/// A content with what is carried over from an object.
pub(super) fn over(target: &Target, content: Map<String, Value>, live: &Value) -> Map<String, Value> {
    let mut content = Value::Object(content);
    let had = Value::Object(content_of(fields(live)));
    match (target.manifest.group.as_str(), target.manifest.kind.as_str()) {
        ("", "Service") => service(&mut content, &had),
        ("", "PersistentVolumeClaim") => fill(&mut content, &had, "spec", &["storageClassName", "volumeName"]),
        ("", "PersistentVolume") => fill(&mut content, &had, "spec", &["claimRef", "nodeAffinity"]),
        ("", "Namespace") => fill(&mut content, &had, "spec", &["finalizers"]),
        // Who leaves the number of pods open leaves it to somebody else, and the server would make it one.
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") | ("", "ReplicationController") => {
            fill(&mut content, &had, "spec", &["replicas"]);
        }
        ("batch", "Job") => job(&mut content, &had),
        ("rbac.authorization.k8s.io", "ClusterRole") if content.get("aggregationRule").is_some() => {
            fill_in(&mut content, &had, &["rules"]);
        }
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => {
            for_each_same(&mut content, &had, "/webhooks", has_same_name, |webhook, had| {
                authority(webhook, had, "/clientConfig");
            });
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            authority(&mut content, &had, "/spec/conversion/webhook/clientConfig");
        }
        ("apiregistration.k8s.io", "APIService") => authority(&mut content, &had, "/spec"),
        _ => {}
    }
    fields(&content).clone()
}

fn service(content: &mut Value, had: &Value) {
    let text = |of: &Value, field: &str| of.pointer(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let type_ = text(content, "/spec/type");
    if type_ == "ExternalName" {
        return;
    }
    if content.pointer("/spec/clusterIP").is_none_or(Value::is_null) {
        fill(content, had, "spec", &["clusterIP", "clusterIPs"]);
    }
    fill(content, had, "spec", &["ipFamilies", "ipFamilyPolicy"]);
    if type_ == "LoadBalancer" {
        fill(content, had, "spec", &["loadBalancerClass"]);
    }
    if type_ == "LoadBalancer" && text(content, "/spec/externalTrafficPolicy") == "Local" {
        fill(content, had, "spec", &["healthCheckNodePort"]);
    }
    if type_ == "LoadBalancer" || type_ == "NodePort" {
        for_each_same(content, had, "/spec/ports", is_same_port, |port, had| {
            fill_in(port, had, &["nodePort"]);
        });
    }
}

fn job(content: &mut Value, had: &Value) {
    fill(content, had, "spec", &["selector"]);
    if let Some(had) = had.pointer("/spec/template/metadata/labels") {
        fill_at(content, &["spec", "template", "metadata", "labels"], had, &JOB_LABELS);
    }
}

/// The authority behind a webhook, unless nobody is to check it.
fn authority(content: &mut Value, had: &Value, pointer: &str) {
    let Some(had) = had.pointer(pointer) else { return };
    if let Some(config) = content.pointer_mut(pointer)
        && config.get("insecureSkipTLSVerify") != Some(&Value::Bool(true))
    {
        fill_in(config, had, &["caBundle"]);
    }
}

/// Fills fields of a field in that the manifest leaves open.
fn fill(content: &mut Value, had: &Value, of: &str, open: &[&str]) {
    if let Some(had) = had.get(of) {
        fill_at(content, &[of], had, open);
    }
}

/// Fills fields in at a place that may not be there yet.
fn fill_at(content: &mut Value, place: &[&str], had: &Value, open: &[&str]) {
    let Some((field, rest)) = place.split_first() else { return fill_in(content, had, open) };
    let Value::Object(fields) = content else { return };
    let inside = fields.entry(*field).or_insert(Value::Null);
    if inside.is_null() {
        *inside = Value::Object(Map::new());
    }
    fill_at(inside, rest, had, open);
}

fn fill_in(content: &mut Value, had: &Value, open: &[&str]) {
    let Value::Object(fields) = content else { return };
    for field in open {
        if let Some(value) = had.get(field)
            && fields.get(*field).is_none_or(Value::is_null)
        {
            fields.insert((*field).to_owned(), value.clone());
        }
    }
}

fn has_same_name(webhook: &Value, had: &Value) -> bool {
    webhook.get("name") == had.get("name")
}

fn is_same_port(port: &Value, had: &Value) -> bool {
    let protocol = |port: &Value| port.get("protocol").and_then(Value::as_str).unwrap_or("TCP").to_owned();
    port.get("port") == had.get("port") && protocol(port) == protocol(had)
}

/// Does something with each item of a list and the same one that was there before.
fn for_each_same(
    content: &mut Value,
    had: &Value,
    list: &str,
    is_same: fn(&Value, &Value) -> bool,
    act: impl Fn(&mut Value, &Value),
) {
    let had = had.pointer(list).and_then(Value::as_array);
    for item in content.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(had) = had.into_iter().flatten().find(|had| is_same(item, had)) {
            act(item, had);
        }
    }
}
