//! Short ways to look into objects and to write into them.

use serde_json::{Map, Value};

/// A member that says something.
pub(super) fn member<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.get(name).filter(|member| !member.is_null())
}

/// The names of all members.
pub(super) fn members(value: &Value) -> impl Iterator<Item = &str> {
    value.as_object().into_iter().flat_map(Map::keys).map(String::as_str)
}

/// What is at a place, where something is.
pub(super) fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    value.pointer(pointer).filter(|found| !found.is_null())
}

/// The text at a place; empty where there is none.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a place, where there is one.
pub(super) fn number(value: &Value, pointer: &str) -> Option<i64> {
    value.pointer(pointer).and_then(Value::as_i64)
}

/// The items of the list at a place; none where there is no list.
pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The texts of the list at a place.
pub(super) fn texts<'a>(value: &'a Value, pointer: &str) -> Vec<&'a str> {
    list(value, pointer).iter().filter_map(Value::as_str).collect()
}

/// The items of the list at a place, to be written.
pub(super) fn list_mut<'a>(value: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Value> {
    value.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten()
}

/// A member that is an object, made where there is nothing.
pub(super) fn object<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    let member = value.as_object_mut()?.entry(name).or_insert(Value::Null);
    if member.is_null() {
        *member = Value::Object(Map::new());
    }
    Some(member).filter(|member| member.is_object())
}

/// Says something where nothing is said; the empty text is nothing.
pub(super) fn fill(value: &mut Value, name: &str, default: impl Into<Value>) {
    let says = member(value, name).is_some_and(|member| member.as_str() != Some(""));
    if let Some(members) = value.as_object_mut().filter(|_| !says) {
        members.insert(name.to_owned(), default.into());
    }
}

/// Takes a member away.
pub(super) fn remove(value: &mut Value, name: &str) {
    if let Some(members) = value.as_object_mut() {
        members.remove(name);
    }
}

/// Writes a member, or takes it away.
pub(super) fn put(value: &mut Value, name: &str, member: Option<Value>) {
    match (value.as_object_mut(), member) {
        (Some(members), Some(member)) => {
            members.insert(name.to_owned(), member);
        }
        (Some(members), None) => {
            members.remove(name);
        }
        _ => {}
    }
}

/// Makes a member the same as in another object.
pub(super) fn copy(from: &Value, to: &mut Value, name: &str) {
    put(to, name, from.get(name).cloned());
}

/// Whether two values mean the same: nothing, an empty list and an empty object do.
pub(super) fn alike(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            // Each member is looked at once: what is nested deeply would take for ever otherwise.
            one.iter().all(|(name, member)| alike(Some(member), other.get(name)))
                && other.iter().all(|(name, member)| one.contains_key(name) || is_nothing(member))
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| alike(Some(one), Some(other)))
        }
        (Some(one), Some(other)) if !is_nothing(one) && !is_nothing(other) => one == other,
        (one, other) => one.is_none_or(is_nothing) && other.is_none_or(is_nothing),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        // What only has members that say nothing says nothing.
        Value::Object(members) => members.values().all(is_nothing),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_says_nothing_is_like_nothing() {
        let full = json!({ "a": { "b": 1 }, "c": [], "d": {}, "e": null });
        assert!(alike(Some(&full), Some(&json!({ "a": { "b": 1 } }))));
        assert!(alike(Some(&json!({ "a": { "b": 1 } })), Some(&full)));
        assert!(!alike(Some(&full), Some(&json!({ "a": { "b": 1 }, "f": 2 }))));
        assert!(!alike(Some(&json!({ "a": { "b": 1 }, "f": 2 })), Some(&full)));
        assert!(alike(None, Some(&json!({ "a": [] }))) && !alike(None, Some(&json!([0]))));
    }

    #[test]
    fn what_is_nested_deeply_is_compared_in_no_time() {
        let deep = (0..100).fold(json!(1), |inner, _| json!({ "in": inner }));
        assert!(alike(Some(&deep), Some(&deep.clone())));
    }
}
