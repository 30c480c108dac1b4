//! A digest of what a work applies.

use drover_api::{
    names::WORK_FIELD_MANAGER,
    work::{FeedbackScrapeType, ManifestConfig, ManifestWorkSpec, ManifestsTemplate},
};
use serde_json::{Map, Value};

use super::manifest::Object;
use crate::hash::{content, spec_hash};

/// How many digits a digest has. So many tell any two states of a work apart, and few enough are kept for every work of a fleet.
const DIGITS: usize = 16;

/// What is kept of what a work applies: its digest, and what its objects are called, in place of manifests. Nothing else is a work of texts.
#[must_use]
pub fn abridged(spec: &ManifestWorkSpec) -> ManifestWorkSpec {
    let texts = std::iter::once(digest(spec)).chain(objects(spec));
    let workload = ManifestsTemplate { manifests: texts.map(Value::String).collect() };
    ManifestWorkSpec { workload: Some(workload), ..ManifestWorkSpec::default() }
}

/// What the objects of a work are called, in so few digits that no two of one add-on are called the same.
#[must_use]
pub fn objects(spec: &ManifestWorkSpec) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match spec.manifests() {
        [Value::String(_), objects @ ..] => objects.iter().map(text).collect(),
        manifests => manifests.iter().filter_map(|manifest| Object::of(manifest).ok()).map(|it| short(&it)).collect(),
    }
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

/// A digest of what a work applies. It is the same for what is sent to an API server, for what the server makes of it, and for
/// what is [kept](abridged) of that.
#[must_use]
pub fn digest(spec: &ManifestWorkSpec) -> String {
    if let [Value::String(digest), ..] = spec.manifests() {
        return digest.clone();
    }
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

/// Drops fields that say nothing. In a list, even nothing has its place.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
