//! Strategic merge patches: merge patches that know which lists are merged, and by what.

use serde_json::{Map, Value};

use super::order;
use crate::{
    failure::Failure,
    ownership::{
        unforeseen,
        values::{plain, type_name},
    },
    schema::Schema,
};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

type Fields = Map<String, Value>;

/// Merges a patch into a map.
pub(super) fn merge_maps(mut original: Fields, mut patch: Fields, schema: Option<&Schema>) -> Result<Fields, Failure> {
    match patch.get(DIRECTIVE) {
        None => {}
        Some(directive) if directive == "replace" => {
            patch.remove(DIRECTIVE);
            return Ok(patch);
        }
        Some(directive) if directive == "delete" => return Ok(Fields::new()),
        Some(directive) => return Err(unknown_directive(directive, &patch)),
    }
    retain_keys(&mut original, &mut patch)?;
    merge_ordered_lists(&mut original, &mut patch, schema)?;
    for (key, change) in patch {
        if let Some(name) = key.strip_prefix(DELETE_FROM) {
            delete_from(&mut original, name, &change)?;
        } else if change.is_null() {
            original.remove(&key);
        } else {
            merge_field(&mut original, key, change, schema)?;
        }
    }
    Ok(original)
}

fn merge_field(original: &mut Fields, key: String, change: Value, schema: Option<&Schema>) -> Result<(), Failure> {
    let field = schema.and_then(|schema| schema.field(&key)).map(AsRef::as_ref);
    let merged = match (original.remove(&key), change) {
        (Some(Value::Object(original)), Value::Object(change)) => {
            Some(Value::Object(merge_maps(original, change, field)?))
        }
        (Some(Value::Array(original)), Value::Array(change)) => {
            Some(Value::Array(merge_lists(original, change, field)?))
        }
        (_, mut change) => {
            discard_nulls(&mut change);
            without_directives(change)
        }
    };
    if let Some(merged) = merged {
        original.insert(key, merged);
    }
    Ok(())
}

/// Drops the fields that the patch does not list, where it lists those to keep.
fn retain_keys(original: &mut Fields, patch: &mut Fields) -> Result<(), Failure> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || Failure::bad_request("invalid patch format of retainKeys");
    let retained = retained.as_array().ok_or_else(malformed)?;
    let is_retained = |key: &str| retained.iter().any(|it| it == key);
    let says_more = patch.iter().any(|(key, value)| {
        !value.is_null() && !key.starts_with(DELETE_FROM) && !key.starts_with(SET_ORDER) && !is_retained(key)
    });
    if says_more {
        return Err(malformed());
    }
    original.retain(|key, _| is_retained(key));
    Ok(())
}

fn delete_from(original: &mut Fields, name: &str, deleted: &Value) -> Result<(), Failure> {
    let Some(name) = name.strip_prefix('/') else {
        return Err(Failure::bad_request("invalid patch format of primitive list"));
    };
    match (original.get_mut(name), deleted) {
        (_, Value::Null) => {
            original.remove(name);
        }
        (Some(Value::Array(items)), Value::Array(deleted)) => items.retain(|item| !deleted.contains(item)),
        _ => {}
    }
    Ok(())
}

/// Merges the lists that the patch says an order of, and takes them out of the patch.
fn merge_ordered_lists(original: &mut Fields, patch: &mut Fields, schema: Option<&Schema>) -> Result<(), Failure> {
    let directives: Vec<String> = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else { continue };
        let order = items(&order)?;
        let name = directive.strip_prefix(SET_ORDER).and_then(|name| name.strip_prefix('/'));
        let name = name.ok_or_else(|| Failure::bad_request("invalid patch format of setElementOrder list"))?;
        let field = schema.and_then(|schema| schema.field(name)).map(AsRef::as_ref);
        let key = field.and_then(|field| field.patch_merge_key.clone()).unwrap_or_default();
        if let Some(place) = order.iter().position(|item| !key.is_empty() && !item.is_object()) {
            return Err(unforeseen(format!("value for key {place} is not a map")));
        }
        let live = original.get(name).map(items).transpose()?;
        let change = patch.get(name).map(items).transpose()?;
        order::check(change.as_deref().unwrap_or_default(), &order, &key)?;
        let merged = match (&live, change) {
            (None, None) => continue,
            (Some(live), None) => live.clone(),
            (None, Some(change)) => kept(change),
            (Some(live), Some(change)) => merge_lists(live.clone(), change, field)?,
        };
        let live = live.unwrap_or_default();
        let change = patch.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        order::check_types(&live, change)?;
        let live = order::refilled(live, change, &key);
        original.insert(name.to_owned(), Value::Array(order::ordered(merged, &order, &live, &key)?));
        patch.remove(name);
    }
    Ok(())
}

fn items(value: &Value) -> Result<Vec<Value>, Failure> {
    let wrong = || unforeseen(format!("expected a []interface {{}}, but received a {}", type_name(value)));
    value.as_array().cloned().ok_or_else(wrong)
}

fn merge_lists(original: Vec<Value>, patch: Vec<Value>, schema: Option<&Schema>) -> Result<Vec<Value>, Failure> {
    let Some(key) = schema.and_then(|schema| schema.patch_merge_key.as_deref()) else { return Ok(patch) };
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    order::check_types(&original, &patch)?;
    if !original.iter().chain(&patch).any(Value::is_object) {
        let merged = order::unique(original.iter().chain(&patch));
        return order::ordered(merged, &patch, &original, "");
    }
    let item_schema = schema.and_then(|schema| schema.items.as_deref());
    merge_keyed_lists(original, patch, key, item_schema)
}

fn merge_keyed_lists(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
    schema: Option<&Schema>,
) -> Result<Vec<Value>, Failure> {
    let (mut changes, mut replaces) = (Vec::new(), false);
    for change in patch {
        match change.get(DIRECTIVE) {
            None => changes.push(change),
            Some(directive) if directive == "delete" => {
                let value = order::key_of(&change, key)?;
                original.retain(|item| item.get(key) != Some(value));
            }
            Some(directive) if directive == "replace" => replaces = true,
            Some(directive) if directive == "merge" => {
                return Err(unforeseen("merging lists cannot yet be specified in the patch".to_owned()));
            }
            Some(directive) => return Err(unknown_directive(directive, change.as_object().unwrap_or(&Fields::new()))),
        }
    }
    if replaces {
        (original, changes) = (changes, Vec::new());
    }
    let mut merged = original.clone();
    for change in &changes {
        let value = order::key_of(change, key)?;
        let known = merged.iter_mut().find(|item| item.get(key) == Some(value));
        match (known, change) {
            (Some(Value::Object(item)), Value::Object(change)) => {
                *item = merge_maps(std::mem::take(item), change.clone(), schema)?;
            }
            _ => merged.push(change.clone()),
        }
    }
    order::ordered(merged, &changes, &original, key)
}

fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// A value that is new, without what the patch says of how to merge it; nothing if it is only that.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            if fields.contains_key(DIRECTIVE) {
                return None;
            }
            let kept = fields.into_iter().filter_map(|(name, value)| Some((name, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(kept(items))),
        other => Some(other),
    }
}

fn kept(items: Vec<Value>) -> Vec<Value> {
    items.into_iter().filter_map(without_directives).collect()
}

fn unknown_directive(directive: &Value, patch: &Fields) -> Failure {
    let (directive, patch) = (plain(directive), plain(&Value::Object(patch.clone())));
    unforeseen(format!("unknown patch type: {directive} in map: {patch}"))
}
