//! The metadata of objects of custom kinds, which is a record in all of them.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::{
    trim::{self, Found},
    typed,
};
use crate::{field::Path, schema::Schema};

/// What metadata is made of.
static METADATA: LazyLock<Schema> = LazyLock::new(|| {
    let text = json!({ "type": "string" });
    let time = json!({ "type": "string", "format": "date-time" });
    let count = json!({ "type": "integer", "format": "int64" });
    let flag = json!({ "type": "boolean" });
    let texts = json!({ "type": "object", "additionalProperties": text });
    let owner = json!({ "type": "object", "properties": {
        "apiVersion": text, "kind": text, "name": text, "uid": text, "controller": flag, "blockOwnerDeletion": flag,
    }});
    let manager = json!({ "type": "object", "properties": {
        "manager": text, "operation": text, "apiVersion": text, "time": time, "fieldsType": text,
        "fieldsV1": { "type": "object", "x-kubernetes-preserve-unknown-fields": true }, "subresource": text,
    }});
    let definition = |name: &str, schema: &Value| {
        let mut schema = Schema::read(schema, &|_| None);
        schema.definition = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}");
        Arc::new(schema)
    };
    let metadata = json!({ "type": "object", "properties": {
        "name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text,
        "resourceVersion": text, "generation": count, "creationTimestamp": time, "deletionTimestamp": time,
        "deletionGracePeriodSeconds": count, "labels": texts, "annotations": texts,
        "ownerReferences": { "type": "array", "items": { "$ref": "OwnerReference" } },
        "finalizers": { "type": "array", "items": text },
        "managedFields": { "type": "array", "items": { "$ref": "ManagedFieldsEntry" } },
    }});
    let definitions = |name: &str| match name {
        "OwnerReference" => Some(definition(name, &owner)),
        "ManagedFieldsEntry" => Some(definition(name, &manager)),
        _ => None,
    };
    Schema::read(&metadata, &definitions)
});

/// Whether the metadata of an object can be read.
pub(super) fn check_metadata(object: &Value) -> Result<(), String> {
    let Some(metadata) = object.get("metadata") else { return Ok(()) };
    typed::check(metadata, "ObjectMeta", &METADATA)
}

/// Drops the fields that metadata does not have, and returns their paths. Nulls in maps and lists of
/// strings become empty strings.
pub(super) fn tidy(object: &mut Value) -> Vec<String> {
    let Some(metadata) = object.get_mut("metadata") else { return Vec::new() };
    let mut found = Found::default();
    trim::drop_unknown(metadata, &METADATA, &Path::Root.field("metadata"), &mut found);
    trim::fill_texts(metadata, &METADATA);
    found.paths
}
