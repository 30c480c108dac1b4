//! Looks into objects that may lack anything.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value};

use super::duration;
use crate::selector::Labels;

/// A text in an object; empty where there is none.
pub(super) fn text<'a>(object: &'a Value, place: &str) -> &'a str {
    object.pointer(place).and_then(Value::as_str).unwrap_or_default()
}

/// A text in an object, or what stands for none.
pub(super) fn text_or<'a>(object: &'a Value, place: &str, none: &'a str) -> &'a str {
    Some(text(object, place)).filter(|text| !text.is_empty()).unwrap_or(none)
}

/// A number in an object; zero where there is none.
pub(super) fn number(object: &Value, place: &str) -> i64 {
    object.pointer(place).and_then(Value::as_i64).unwrap_or_default()
}

/// Whether something is said to be so in an object.
pub(super) fn flag(object: &Value, place: &str) -> bool {
    object.pointer(place).and_then(Value::as_bool).unwrap_or_default()
}

/// A list in an object.
pub(super) fn list<'a>(object: &'a Value, place: &str) -> &'a [Value] {
    object.pointer(place).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A map in an object.
pub(super) fn map<'a>(object: &'a Value, place: &str) -> Option<&'a Map<String, Value>> {
    object.pointer(place).and_then(Value::as_object)
}

/// Something in an object that is not null.
pub(super) fn some<'a>(object: &'a Value, place: &str) -> Option<&'a Value> {
    object.pointer(place).filter(|value| !value.is_null())
}

/// A time in an object.
pub(super) fn time(object: &Value, place: &str) -> Option<Timestamp> {
    text(object, place).parse().ok()
}

/// How long ago a time in an object is.
pub(super) fn since(object: &Value, place: &str, now: Timestamp) -> String {
    time(object, place).map_or_else(|| "<unknown>".to_owned(), |time| duration::since(time, now))
}

/// How old an object is.
pub(super) fn age(object: &Value, now: Timestamp) -> String {
    since(object, "/metadata/creationTimestamp", now)
}

/// Whether a condition is true in an object's status; nothing if there is no such condition.
pub(super) fn condition(object: &Value, type_: &str) -> Option<bool> {
    let conditions = list(object, "/status/conditions");
    let condition = conditions.iter().find(|condition| text(condition, "/type") == type_)?;
    Some(text(condition, "/status") == "True")
}

/// The selector in an object, as text.
pub(super) fn selector(object: &Value, place: &str) -> String {
    match Labels::read(object.pointer(place)).map(|selector| selector.to_string()) {
        Err(_) => "<error>".to_owned(),
        Ok(text) if text.is_empty() => "<none>".to_owned(),
        Ok(text) => text,
    }
}

/// A map of labels, as text.
pub(super) fn labels(object: &Value, place: &str) -> String {
    let pairs = map(object, place).into_iter().flatten();
    let pairs: Vec<_> = pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// One field of all items of a list, with commas.
pub(super) fn joined(items: &[Value], place: &str) -> String {
    items.iter().map(|item| text(item, place)).collect::<Vec<_>>().join(",")
}
