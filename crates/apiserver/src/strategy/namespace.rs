//! Namespaces.

use serde_json::{Value, json};

use super::look::{copy, list, object, put, text, texts};
use crate::{
    field::{ErrorKind, FieldError, Path},
    metadata::{self, names},
    user::Part,
};

/// What keeps a namespace until it is empty.
const FINALIZER: &str = "kubernetes";

/// Namespaces can be selected by name.
pub(super) fn defaults(namespace: &mut Value) {
    let name = metadata::text(namespace, "name").to_owned();
    let metadata = object(namespace, "metadata").filter(|_| !name.is_empty());
    if let Some(labels) = metadata.and_then(|metadata| object(metadata, "labels")) {
        put(labels, "kubernetes.io/metadata.name", Some(json!(name)));
    }
}

/// A new namespace is active, and goes only when it is empty.
pub(super) fn prepare_create(namespace: &mut Value) {
    put(namespace, "status", Some(json!({ "phase": "Active" })));
    let mut finalizers: Vec<Value> = list(namespace, "/spec/finalizers").to_vec();
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(json!(FINALIZER));
    }
    if let Some(spec) = object(namespace, "spec") {
        put(spec, "finalizers", Some(Value::Array(finalizers)));
    }
}

/// Only whoever empties namespaces takes finalizers away, at an address of its own.
pub(super) fn keep_finalizers(new: &mut Value, old: &Value) {
    copy(old, new, "spec");
}

/// What is wrong with a namespace.
pub(super) fn rules(namespace: &Value) -> Vec<FieldError> {
    let spec = Path::Root.field("spec");
    let path = spec.field("finalizers");
    texts(namespace, "/spec/finalizers").into_iter().flat_map(|name| finalizer_rules(name, &path)).collect()
}

fn finalizer_rules(name: &str, path: &Path<'_>) -> Vec<FieldError> {
    let invalid = |problem: String| FieldError::new(ErrorKind::Invalid, path, name, problem);
    names::qualified(name).into_iter().map(invalid).chain(qualified_finalizer(name, path)).collect()
}

/// Finalizers say whose they are, but for a few that everybody knows.
fn qualified_finalizer(name: &str, path: &Path<'_>) -> Option<FieldError> {
    if name.contains('/') || ["kubernetes", "orphan", "foregroundDeletion"].contains(&name) {
        return None;
    }
    let detail = "name is neither a standard finalizer name nor is it fully qualified";
    Some(FieldError::new(ErrorKind::Invalid, path, name, detail))
}

/// What is wrong with the finalizers in the metadata of an object that have no domain.
pub(super) fn qualified_finalizers(object: &Value) -> Vec<FieldError> {
    let metadata = Path::Root.field("metadata");
    let path = metadata.field("finalizers");
    let names = texts(object, "/metadata/finalizers").into_iter().enumerate();
    names.filter_map(|(index, name)| qualified_finalizer(name, &path.index(index))).collect()
}

/// What is wrong with a part of a namespace.
pub(super) fn part_rules(part: Part, new: &Value) -> Vec<FieldError> {
    if part == Part::Finalize {
        let spec = Path::Root.field("spec");
        let path = spec.field("finalizers");
        let names = texts(new, "/spec/finalizers").into_iter().enumerate();
        return names.flat_map(|(index, name)| finalizer_rules(name, &path.index(index))).collect();
    }
    let going = metadata::field(new, "deletionTimestamp").is_some();
    let (wanted, is) = if going { ("Terminating", "is not empty") } else { ("Active", "is empty") };
    let phase = text(new, "/status/phase");
    if phase == wanted {
        return Vec::new();
    }
    let status = Path::Root.field("status");
    let detail = format!("may only be '{wanted}' if `deletionTimestamp` {is}");
    vec![FieldError::new(ErrorKind::Invalid, &status.field("Phase"), phase, detail)]
}
