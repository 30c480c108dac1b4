//! JSON patches that are made by a program of bytes. Its operations name what is there, so that
//! most of them can be done.

use drover_apiserver::patch;
use serde_json::{Value, json};

/// How many operations are made at most.
const MAX_OPERATIONS: usize = 32;
/// How many containers an object has at most that operations are made for. Copies double an object.
const MAX_CONTAINERS: usize = 512;

/// The operations that a program makes for an object.
pub(crate) fn made_by(program: &[u8], object: &Value) -> Value {
    let mut made = Vec::new();
    let mut object = object.clone();
    for instruction in program.chunks_exact(4).take(MAX_OPERATIONS) {
        let [op, from, to, value] = *instruction else { continue };
        let pointers = pointers(&object);
        if pointers.len() == MAX_CONTAINERS {
            break;
        }
        let named = |at: u8| pointers[usize::from(at) * pointers.len() / 256].as_str();
        let value = nested(value);
        let operation = match op % 6 {
            0 => json!({ "op": "add", "path": format!("{}/f", named(to)), "value": value }),
            1 => json!({ "op": "add", "path": format!("{}/-", named(to)), "value": value }),
            2 => json!({ "op": "replace", "path": named(to), "value": value }),
            3 => json!({ "op": "move", "from": named(from), "path": format!("{}/f", named(to)) }),
            4 => json!({ "op": "copy", "from": named(from), "path": format!("{}/f", named(to)) }),
            _ => json!({ "op": "remove", "path": named(to) }),
        };
        // What can not be done is left out, or nothing after it would be done.
        if let Ok(patched) = patch::json(&object, json!([operation]).to_string().as_bytes()) {
            object = patched;
            made.push(operation);
        } else if op > 127 {
            made.push(operation);
        }
    }
    Value::Array(made)
}

/// A value of some levels.
fn nested(levels: u8) -> Value {
    (0..levels % 128)
        .fold(json!({}), |inner, level| if level % 2 == 0 { json!({ "f": inner }) } else { json!([inner]) })
}

/// The pointers to all containers of an object, up to a number.
fn pointers(object: &Value) -> Vec<String> {
    let mut found = vec![(String::new(), object)];
    let mut at = 0;
    while let Some((pointer, value)) = found.get(at).cloned() {
        let inner: Vec<_> = match value {
            Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
            Value::Array(items) => items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
            _ => Vec::new(),
        };
        let room = MAX_CONTAINERS.saturating_sub(found.len());
        let inner = inner.into_iter().filter(|(_, value)| value.is_object() || value.is_array()).take(room);
        found.extend(inner.map(|(name, value)| (format!("{pointer}/{name}"), value)));
        at += 1;
    }
    found.into_iter().map(|(pointer, _)| pointer).collect()
}
