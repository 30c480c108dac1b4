//! Merge patches: the difference between two states of an object.

#[cfg(test)]
mod tests;

use kube::core::ObjectMeta;
use serde_json::{Map, Value, json};

use super::Writable;

/// The merge patch that turns one state of an object into another, in the fields that `is_meant`
/// accepts; `None` if they are equal. It holds for the state that was compared and no later one.
pub(super) fn difference_of<K: Writable>(stored: &K, wanted: &K, is_meant: impl Fn(&str) -> bool) -> Option<Value> {
    let part = |object: &K| fields_of(object).into_iter().filter(|(field, _)| is_meant(field)).collect();
    Some(for_this_state(stored, difference(&part(stored), &part(wanted))?))
}

/// The merge patch that adds to an object what it lacks of another; `None` if it lacks nothing.
pub(super) fn lack_of<K: Writable>(stored: &K, wanted: &K) -> Option<Value> {
    Some(for_this_state(stored, lack(&fields_of(stored), &fields_of(wanted))?))
}

/// The fields of an object, or of a part of it.
type Fields = Map<String, Value>;

fn fields_of<K: Writable>(object: &K) -> Fields {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(object) else { return Fields::new() };
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        // Empty labels, finalizers or owners are equal to absent ones.
        metadata.retain(|_, value| *value != json!({}) && *value != json!([]));
    }
    fields
}

/// The patch, for the state of an object that it was made for and no other.
fn for_this_state<K: Writable>(stored: &K, mut patch: Fields) -> Value {
    let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
    if let Value::Object(metadata) = metadata {
        let ObjectMeta { uid, resource_version, .. } = stored.meta().clone();
        metadata.extend([("uid".to_owned(), json!(uid)), ("resourceVersion".to_owned(), json!(resource_version))]);
    }
    Value::Object(patch)
}

fn difference(stored: &Fields, wanted: &Fields) -> Option<Fields> {
    let removed = stored.keys().filter(|field| !wanted.contains_key(*field)).map(|field| (field.clone(), Value::Null));
    let changed = changed(stored, wanted, difference);
    let patch: Map<_, _> = removed.chain(changed).collect();
    (!patch.is_empty()).then_some(patch)
}

fn lack(stored: &Fields, wanted: &Fields) -> Option<Fields> {
    let patch: Map<_, _> = changed(stored, wanted, lack).collect();
    (!patch.is_empty()).then_some(patch)
}

/// The fields of `wanted` that differ in `stored`; objects inside are compared by `inside`.
fn changed<'a>(
    stored: &'a Fields,
    wanted: &'a Fields,
    inside: fn(&Fields, &Fields) -> Option<Fields>,
) -> impl Iterator<Item = (String, Value)> + 'a {
    wanted.iter().filter_map(move |(field, wanted)| {
        let change = match (stored.get(field), wanted) {
            (Some(stored), wanted) if stored == wanted => return None,
            (Some(Value::Object(stored)), Value::Object(wanted)) => Value::Object(inside(stored, wanted)?),
            (_, wanted) => wanted.clone(),
        };
        Some((field.clone(), change))
    })
}
