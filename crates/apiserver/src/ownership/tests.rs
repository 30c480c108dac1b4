//! What managers own after they wrote, as a Kubernetes API server writes it down.

mod applying;
mod properties;
mod sets;
mod updating;

use serde_json::{Value, json};

use super::{Write, apply, update};
use crate::{failure::Failure, kind::Origin, schema::Schema};

/// A kind like Deployment, with what its schema says of it in Kubernetes.
fn deployment() -> Schema {
    let text = json!({"type": "string"});
    let meta = json!({"type": "object", "properties": {
        "labels": {"type": "object", "additionalProperties": text}, "name": text,
    }});
    let with_default = |mut schema: Value| {
        schema["default"] = json!({});
        schema
    };
    let port = json!({"type": "object", "properties": {
        "containerPort": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": text,
    }});
    let container = json!({"type": "object", "properties": {
        "name": text, "image": text,
        "args": {"type": "array", "x-kubernetes-list-type": "atomic", "items": text},
        "ports": {
            "type": "array", "x-kubernetes-list-type": "map", "items": port,
            "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
        },
        "env": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": text, "value": text}}},
        "resources": with_default(json!({"type": "object", "properties": {
            "limits": {"type": "object", "additionalProperties": {"type": "string", "format": "quantity"}},
        }})),
    }});
    let pod = json!({"type": "object", "properties": {
        "containers": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": container,
        },
        "nodeSelector": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
    }});
    let template = json!({"type": "object", "properties": {"metadata": with_default(meta), "spec": pod}});
    let spec = json!({"type": "object", "properties": {
        "replicas": {"type": "integer"}, "paused": {"type": "boolean"},
        "selector": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
            "matchLabels": {"type": "object", "additionalProperties": text},
        }},
        "strategy": with_default(json!({"type": "object", "properties": {
            "type": text, "rollingUpdate": {"type": "object", "properties": {"maxSurge": {"type": "string", "format": "int-or-string"}}},
        }})),
        "template": with_default(template),
    }});
    let condition = json!({"type": "object", "properties": {"type": text, "status": text}});
    let status = json!({"type": "object", "properties": {
        "readyReplicas": {"type": "integer"},
        "conditions": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": condition,
        },
    }});
    let schema = json!({"type": "object", "properties": {
        "apiVersion": text, "kind": text, "metadata": {"type": "object", "default": {}},
        "spec": with_default(spec), "status": with_default(status),
    }});
    Schema::read(&schema, &|_| None)
}

/// A kind that a CustomResourceDefinition brings.
fn widget() -> Schema {
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer"}, "color": text,
            "parts": {"type": "array", "items": text},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
            "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": text, "one": text, "two": text}}},
            "sizes": {"type": "object", "additionalProperties": {"type": "integer"}},
            "place": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }},
        "status": {"type": "object", "properties": {"phase": text}},
    }});
    Schema::read(&schema, &|_| None)
}

fn write<'a>(manager: &'a str, time: &'a str) -> Write<'a> {
    Write { manager, api_version: "x.io/v1", subresource: "", time, origin: Origin::Custom, reset: &["status"] }
}

fn native<'a>(manager: &'a str, time: &'a str) -> Write<'a> {
    Write { api_version: "apps/v1", origin: Origin::BuiltIn, ..write(manager, time) }
}

const T1: &str = "2024-01-01T00:00:01Z";
const T2: &str = "2024-01-01T00:00:02Z";
const T3: &str = "2024-01-01T00:00:03Z";

fn widget_of(spec: &Value) -> Value {
    json!({"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "n"}, "spec": spec})
}

/// What the server adds when it keeps an object for the first time.
fn kept(mut object: Value) -> Value {
    object["metadata"]["uid"] = json!("1-2-3");
    object
}

fn applied(live: Option<&Value>, patch: &Value, who: &str, time: &str) -> Result<Value, Failure> {
    apply(live, patch, &widget(), &write(who, time), false).map(kept)
}

fn changed(live: &Value, change: impl FnOnce(&mut Value), who: &str, time: &str) -> Value {
    let mut new = live.clone();
    change(&mut new);
    update(Some(live), &mut new, &widget(), &write(who, time));
    new
}

fn entry(manager: &str, operation: &str, time: &str, fields: &Value) -> Value {
    json!({"manager": manager, "operation": operation, "apiVersion": "x.io/v1", "time": time,
        "fieldsType": "FieldsV1", "fieldsV1": fields})
}

fn entries(object: &Value) -> &Value {
    &object["metadata"]["managedFields"]
}
