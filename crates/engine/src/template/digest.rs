//! A digest of what a work applies.

use drover_api::{
    names::WORK_FIELD_MANAGER,
    work::{FeedbackScrapeType, ManifestConfig, ManifestWorkSpec},
};
use serde_json::{Map, Value};

use super::manifest::Object;
use crate::hash::{content, drop_nulls, spec_hash};

/// How many digits a digest has. So many tell any two states of a work apart, and few enough are kept for every work of a fleet.
const DIGITS: usize = 16;

/// What the objects of a work are called, in so few digits that no two of one add-on are called the same.
#[must_use]
pub fn objects(spec: &ManifestWorkSpec) -> Vec<String> {
    let named = spec.manifests().iter().filter_map(|manifest| Object::of(manifest).ok());
    named.map(|object| short(&object)).collect()
}

/// What an object is called, in few digits.
pub(super) fn short(Object { group, kind, namespace, name }: &Object) -> String {
    let mut short = spec_hash(&format!("{group}/{kind}/{namespace}/{name}")).to_string();
    short.truncate(DIGITS);
    short
}

/// What marks a work that holds objects of others besides its own: it follows from what it is to apply in the end, and what it applies now.
pub(super) fn hold_mark(own: &str, now: &str) -> String {
    let mut mark = spec_hash(&format!("{own}/{now}")).to_string();
    mark.truncate(DIGITS);
    mark
}

/// A digest of what a work applies. It is the same for what is sent to an API server, and for what
/// the server makes of it.
#[must_use]
pub fn digest(spec: &ManifestWorkSpec) -> String {
    let mut spec = spec.clone();
    spec.manifest_configs.iter_mut().for_each(fill_in_defaults);
    // A work is made of texts, numbers and lists, all of which can be written.
    let mut value = serde_json::to_value(&spec).unwrap_or_default();
    let manifests = value.pointer_mut("/workload/manifests").and_then(Value::as_array_mut);
    manifests.into_iter().flatten().filter_map(|manifest| manifest.get_mut("metadata")).for_each(drop_empty);
    drop_nulls(&mut value);
    let mut digest = spec_hash(&content(&Value::Object(Map::from_iter([("spec".to_owned(), value)])))).to_string();
    digest.truncate(DIGITS);
    digest
}

/// What a server fills in. Everything else that has a default is always written.
fn fill_in_defaults(config: &mut ManifestConfig) {
    config.feedback_scrape_type.get_or_insert(FeedbackScrapeType::Poll);
    if let Some(apply) = config.update_strategy.as_mut().and_then(|strategy| strategy.server_side_apply.as_mut()) {
        apply.field_manager.get_or_insert_with(|| WORK_FIELD_MANAGER.to_owned());
    }
}

/// Drops labels and the like that there are none of, as a server does with the metadata of manifests, and with nothing else in them.
fn drop_empty(metadata: &mut Value) {
    if let Value::Object(fields) = metadata {
        fields.retain(|_, value| !is_empty(value));
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests;
