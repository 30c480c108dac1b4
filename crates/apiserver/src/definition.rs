//! CustomResourceDefinitions: what has to hold of them, what is filled in, and the kinds that they bring.

mod approval;
mod default;
mod kind;
pub(crate) mod name;
mod openapi;
mod status;
mod structural;
mod validate;

use serde_json::{Map, Value, json};

pub use self::{
    kind::kind,
    status::{Taken, status},
    validate::validate,
};
use crate::field::{ErrorKind, FieldError, Path};

/// Fills in what is meant where a definition says nothing.
pub fn fill_in(crd: &mut Value) {
    let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
        spec.remove("preserveUnknownFields");
    }
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        fill_in_names(names);
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({ "strategy": "None" }));
    }
    let service = spec.get_mut("conversion").and_then(|it| it.pointer_mut("/webhook/clientConfig/service"));
    if let Some(service) = service.and_then(Value::as_object_mut) {
        service.entry("port").or_insert(json!(443));
    }
}

fn fill_in_names(names: &mut Map<String, Value>) {
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_missing =
        |names: &Map<String, Value>, name: &str| names.get(name).and_then(Value::as_str).unwrap_or_default().is_empty();
    if kind.is_empty() {
        return;
    }
    if is_missing(names, "singular") {
        names.insert("singular".to_owned(), kind.to_lowercase().into());
    }
    if is_missing(names, "listKind") {
        names.insert("listKind".to_owned(), format!("{kind}List").into());
    }
}

/// A text in a definition; empty if there is none.
fn text<'a>(crd: &'a Value, pointer: &str) -> &'a str {
    crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The texts of a list in a definition.
fn texts<'a>(crd: &'a Value, pointer: &str) -> Vec<&'a str> {
    list(crd, pointer).iter().filter_map(Value::as_str).collect()
}

fn list<'a>(crd: &'a Value, pointer: &str) -> &'a [Value] {
    crd.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The schema of a version.
fn schema_of(version: &Value) -> Option<&Value> {
    version.pointer("/schema/openAPIV3Schema").filter(|schema| !schema.is_null())
}

/// The version that objects are kept in.
fn storage_version(crd: &Value) -> Option<&str> {
    list(crd, "/spec/versions").iter().find(|version| structural::flag(version, "storage"))?.get("name")?.as_str()
}

/// Whether a condition is there and true.
fn is_true(crd: &Value, type_: &str) -> bool {
    let conditions = list(crd, "/status/conditions");
    conditions.iter().any(|condition| text(condition, "/type") == type_ && text(condition, "/status") == "True")
}

fn not_supported(path: &Path<'_>, value: &str, supported: &[&str]) -> FieldError {
    let quoted: Vec<_> = supported.iter().map(|supported| format!("{supported:?}")).collect();
    FieldError::new(ErrorKind::NotSupported, path, value, format!("supported values: {}", quoted.join(", ")))
}

#[cfg(test)]
mod tests;
