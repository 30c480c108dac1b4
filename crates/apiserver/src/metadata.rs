//! What objects of all kinds say about themselves: the rules for it, and what the server says there.

pub mod names;
mod request;
mod rules;
mod stamp;

pub use request::{check_uid, check_version, dedup_owners, expected_name, expected_namespace};
pub use rules::{check_labels, check_selector, finalizer_warnings, rules, update_rules};
pub use stamp::{begin_deletion, carry_over, generate_name, generated_name_conflict, no_version_yet, stamp_new};

use serde_json::{Map, Value};

/// A text of an object's metadata; empty where there is none.
#[must_use]
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|metadata| metadata.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// A field of an object's metadata, where it says something.
#[must_use]
pub fn field<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(field).filter(|value| !value.is_null())
}

/// How often what is wanted of the object changed.
#[must_use]
pub fn generation(object: &Value) -> i64 {
    field(object, "generation").and_then(Value::as_i64).unwrap_or_default()
}

/// Writes a field of an object's metadata; nothing takes it away.
pub fn set(object: &mut Value, field: &str, value: Option<Value>) {
    let Some(metadata) = metadata_mut(object) else { return };
    match value {
        Some(value) => metadata.insert(field.to_owned(), value),
        None => metadata.remove(field),
    };
}

/// The metadata of an object, to be written.
fn metadata_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let metadata = object.as_object_mut()?.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut()
}

#[cfg(test)]
mod tests;
