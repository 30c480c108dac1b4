//! The metadata of what is sent.

use serde_json::{Map, Value};

use super::{Wanted, fields, fields_in};
use crate::work::ownership::owner_references;

/// What only a server may say of an object.
const SERVERS: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];
/// What is merged key by key.
const KEYED: [&str; 2] = ["annotations", "labels"];

/// The metadata of an object.
pub(super) fn of(object: &Value) -> &Map<String, Value> {
    fields_in(fields(object), "metadata")
}

/// The metadata of an object that is created.
pub(super) fn of_new(wanted: &Wanted<'_>) -> Map<String, Value> {
    let mut metadata = cleaned(wanted.manifest());
    set(&mut metadata, "ownerReferences", own(wanted, owner_references(wanted.manifest())));
    metadata
}

/// The metadata of a manifest, without what only a server may say, and without keys that are only there to take others away.
fn cleaned(manifest: &Value) -> Map<String, Value> {
    let mut metadata = of(manifest).clone();
    metadata.retain(|field, _| !SERVERS.contains(&field.as_str()));
    for field in KEYED {
        set(&mut metadata, field, Value::Object(merged_keys(manifest, field, Map::new())));
    }
    metadata
}

/// The metadata of an object that is replaced: its own, with the labels, annotations and owners of the manifest.
pub(super) fn merged(wanted: &Wanted<'_>, live: &Value) -> Map<String, Value> {
    let mut metadata = of(live).clone();
    for field in KEYED {
        let had = fields_in(of(live), field).clone();
        set(&mut metadata, field, Value::Object(merged_keys(wanted.manifest(), field, had)));
    }
    let mut owners = owner_references(live).to_vec();
    let is_new = |reference: &&Value| !owner_references(live).iter().any(|had| had.get("uid") == reference.get("uid"));
    owners.extend(owner_references(wanted.manifest()).iter().filter(is_new).cloned());
    set(&mut metadata, "ownerReferences", own(wanted, &owners));
    metadata
}

fn own(wanted: &Wanted<'_>, present: &[Value]) -> Value {
    Value::Array(wanted.owner.references(wanted.fate, present))
}

/// Sets a field, unless it is empty and was never there.
fn set(metadata: &mut Map<String, Value>, field: &str, value: Value) {
    let is_empty = matches!(&value, Value::Object(fields) if fields.is_empty())
        || matches!(&value, Value::Array(items) if items.is_empty());
    if !is_empty {
        metadata.insert(field.to_owned(), value);
    } else if metadata.get(field).is_some_and(|had| *had != value) {
        metadata.remove(field);
    }
}

/// Labels or annotations with those of the manifest. A key that ends in `-` takes the one before it away; one without a value says nothing.
fn merged_keys(manifest: &Value, field: &str, mut had: Map<String, Value>) -> Map<String, Value> {
    for (key, value) in fields_in(of(manifest), field).iter().filter(|(_, value)| !value.is_null()) {
        match key.strip_suffix('-') {
            Some(removed) => had.remove(removed),
            None => had.insert(key.clone(), value.clone()),
        };
    }
    had
}

/// A manifest as it is applied. The times of creation that tools write, which are null, go everywhere, because they would count
/// as a change each time.
pub(super) fn applicable(manifest: &Value) -> Value {
    let mut object = fields(manifest).clone();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        *metadata = cleaned(manifest);
    }
    let mut object = Value::Object(object);
    drop_null_creations(&mut object);
    object
}

fn drop_null_creations(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_null_creations),
        Value::Object(fields) => {
            fields.retain(|field, value| field != "creationTimestamp" || !value.is_null());
            fields.values_mut().for_each(drop_null_creations);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether an object has the labels and annotations that are applied.
pub(super) fn is_in(applied: &Value, live: &Value) -> bool {
    KEYED.iter().all(|field| {
        let (wanted, had) = (fields_in(of(applied), field), fields_in(of(live), field));
        wanted.iter().all(|(key, value)| had.get(key) == Some(value))
    })
}

/// An annotation of an object.
pub(super) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    of(object).get("annotations")?.get(key)?.as_str()
}

/// An object with an annotation.
pub(super) fn annotated(object: &Value, key: &str, value: &str) -> Value {
    let mut metadata = of(object).clone();
    let mut annotations = fields_in(&metadata, "annotations").clone();
    annotations.insert(key.to_owned(), value.into());
    metadata.insert("annotations".to_owned(), Value::Object(annotations));
    let mut object = fields(object).clone();
    object.insert("metadata".to_owned(), Value::Object(metadata));
    Value::Object(object)
}
