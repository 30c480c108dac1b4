//! The content that a manifest wants its object to have, where kinds differ in what they make of a manifest.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use super::{content_of, fields};
use crate::work::manifest::Target;

/// The content of an object that is created.
pub(super) fn of_new(target: &Target) -> Map<String, Value> {
    let mut content = content_of(fields(&target.manifest.object));
    if target.is("", "Secret") {
        encode_texts(&mut content);
    }
    content
}

/// The content that the manifest wants of an object that is there. What others write into a field of the manifest, by design, is not wanted otherwise.
pub(super) fn beside(target: &Target, live: &Value) -> Map<String, Value> {
    let mut content = of_new(target);
    if target.is("", "Pod") {
        keep_pod(&mut content, live);
    } else if target.is("", "ServiceAccount") {
        for field in ["secrets", "imagePullSecrets"] {
            add_references(&mut content, field, live);
        }
    } else if target.is("rbac.authorization.k8s.io", "ClusterRole") && content.contains_key("aggregationRule") {
        // A controller puts these together from other roles.
        content.remove("rules");
    }
    if has_authorities(target) {
        content.values_mut().for_each(drop_empty_authorities);
    }
    content
}

/// Secrets can be written as plain texts, which a server turns into data.
fn encode_texts(content: &mut Map<String, Value>) {
    let Some(texts) = content.remove("stringData") else { return };
    let mut data = content.get("data").map_or_else(Map::new, |data| fields(data).clone());
    for (key, text) in fields(&texts) {
        let encoded = |text: &str| Value::String(STANDARD.encode(text));
        data.insert(key.clone(), text.as_str().map_or_else(|| text.clone(), encoded));
    }
    if !data.is_empty() {
        content.insert("data".to_owned(), Value::Object(data));
    }
}

/// A pod stays what it was created as, but for its images.
fn keep_pod(content: &mut Map<String, Value>, live: &Value) {
    let Some(mut spec) = live.get("spec").cloned() else { return };
    for list in ["containers", "initContainers"] {
        let wanted = content.get("spec").and_then(|spec| spec.get(list)).and_then(Value::as_array);
        let had = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in had.into_iter().flatten() {
            let same = wanted.into_iter().flatten().find(|wanted| wanted.get("name") == container.get("name"));
            if let (Some(image), Some(container)) = (same.and_then(|same| same.get("image")), container.as_object_mut())
            {
                container.insert("image".to_owned(), image.clone());
            }
        }
    }
    content.insert("spec".to_owned(), spec);
}

/// Clusters add references to the secrets of an account, so these are never taken away.
fn add_references(content: &mut Map<String, Value>, field: &str, live: &Value) {
    let had = live.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let wanted = content.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let is_new = |reference: &Value| !had.iter().any(|had| had.get("name") == reference.get("name"));
    let new: Vec<_> = wanted.into_iter().filter(is_new).collect();
    let all: Vec<_> = had.iter().cloned().chain(new).collect();
    if !all.is_empty() {
        content.insert(field.to_owned(), Value::Array(all));
    }
}

/// Whether objects of the kind name the authority behind a webhook, which is often filled in by somebody else.
fn has_authorities(target: &Target) -> bool {
    [
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
    ]
    .iter()
    .any(|(group, kind)| target.is(group, kind))
}

fn drop_empty_authorities(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_empty_authorities),
        Value::Object(fields) => {
            fields.retain(|field, value| field != "caBundle" || value.as_str().is_none_or(|bundle| !bundle.is_empty()));
            fields.values_mut().for_each(drop_empty_authorities);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
