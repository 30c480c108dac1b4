//! CustomResourceDefinitions, beside the schemas in them.

use serde_json::{Value, json};

use super::look::{fill, list, object, put, text};

/// Fills in the names that follow from the kind, and that nothing is converted.
pub(super) fn defaults(definition: &mut Value) {
    let kind = text(definition, "/spec/names/kind").to_owned();
    let Some(spec) = object(definition, "spec") else { return };
    if let Some(names) = object(spec, "names") {
        fill(names, "singular", kind.to_lowercase());
        if !kind.is_empty() {
            fill(names, "listKind", format!("{kind}List"));
        }
    }
    fill(spec, "conversion", json!({ "strategy": "None" }));
}

/// Notes the version that objects are kept in from now on: there may be objects in it as long as it is noted.
pub(super) fn note_stored(definition: &mut Value) {
    let is_stored = |version: &&Value| version.get("storage").and_then(Value::as_bool) == Some(true);
    let Some(stored) = list(definition, "/spec/versions").iter().find(is_stored) else { return };
    let stored = text(stored, "/name").to_owned();
    let mut noted: Vec<Value> = list(definition, "/status/storedVersions").to_vec();
    if !noted.iter().any(|name| *name == stored) {
        noted.push(json!(stored));
    }
    if let Some(status) = object(definition, "status") {
        put(status, "storedVersions", Some(Value::Array(noted)));
        fill(status, "acceptedNames", json!({ "kind": "", "plural": "" }));
        if status.get("conditions").is_none() {
            put(status, "conditions", Some(Value::Null));
        }
    }
}
