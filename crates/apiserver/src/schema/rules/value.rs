//! Values of objects as rules see them: what the schema does not know is not there.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{
    self,
    objects::{Key, Map},
};
use serde_json::Value;

use super::functions::made_of;
use crate::schema::{Additional, Schema, Type};

/// The words that can not be names of fields.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// A value as its schema describes it. Of resources, rules see what they are and what they are called.
pub(super) fn from_json(value: &Value, schema: &Schema, is_resource: bool) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(truth) => cel::Value::Bool(*truth),
        Value::Number(number) => from_number(number, schema),
        Value::String(text) => from_text(text, schema),
        Value::Array(items) => {
            let from_item = |item| match &schema.items {
                Some(schema) => from_json(item, schema, schema.embedded_resource),
                None => cel::Value::Null,
            };
            cel::Value::List(Arc::new(items.iter().map(from_item).collect()))
        }
        Value::Object(fields) => from_fields(fields, schema, is_resource),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "only whole numbers get there")]
fn from_number(number: &serde_json::Number, schema: &Schema) -> cel::Value {
    let float = || number.as_f64().unwrap_or(f64::NAN);
    match (schema.type_, number.as_i64()) {
        (Some(Type::Number), _) => cel::Value::Float(float()),
        (_, Some(whole)) => cel::Value::Int(whole),
        (Some(Type::Integer), None) if float().fract() == 0.0 => cel::Value::Int(float() as i64),
        _ => cel::Value::Float(float()),
    }
}

fn from_text(text: &str, schema: &Schema) -> cel::Value {
    match schema.limits.format.as_deref().filter(|_| !schema.int_or_string) {
        Some("date-time") => made_of(text, "timestamp"),
        Some("date") => match made_of(&format!("{text}T00:00:00Z"), "timestamp") {
            cel::Value::String(_) => cel::Value::from(text),
            time => time,
        },
        Some("duration") => made_of(text, "duration"),
        Some("byte") => made_of(text, "base64.decode"),
        _ => cel::Value::from(text),
    }
}

fn from_fields(fields: &serde_json::Map<String, Value>, schema: &Schema, is_resource: bool) -> cel::Value {
    let mut map = HashMap::with_capacity(fields.len());
    if let Some(Additional::Schema(entry)) = &schema.additional_properties {
        let seen = fields.iter().filter(|(_, value)| !value.is_null() || entry.nullable);
        let from_entry = |(key, value): (&String, &Value)| {
            (Key::from(key.clone()), from_json(value, entry, entry.embedded_resource))
        };
        map.extend(seen.map(from_entry));
    } else {
        for (name, value) in fields {
            if is_resource && name == "metadata" {
                map.insert(Key::from(name.clone()), from_metadata(value));
            } else if is_resource && matches!(name.as_str(), "apiVersion" | "kind") {
                map.insert(Key::from(name.clone()), cel::Value::from(value.as_str().unwrap_or_default()));
            } else if let Some((name, seen)) = from_field(name, value, schema) {
                map.insert(Key::from(name), seen);
            }
        }
    }
    cel::Value::Map(Map { map: Arc::new(map) })
}

/// A field with its name in rules; nothing where rules can not see it.
fn from_field(name: &str, value: &Value, schema: &Schema) -> Option<(String, cel::Value)> {
    let field = schema.properties.get(name)?;
    let is_typed = field.type_.is_some() || field.int_or_string;
    let is_seen = is_typed && (!value.is_null() || field.nullable);
    is_seen.then(|| Some((escaped(name)?, from_json(value, field, field.embedded_resource))))?
}

/// The only metadata that rules can ask about.
fn from_metadata(metadata: &Value) -> cel::Value {
    let names = ["name", "generateName"].into_iter();
    let seen = names.filter_map(|name| Some((name, cel::Value::from(metadata.get(name)?.as_str()?))));
    seen.collect::<HashMap<_, _>>().into()
}

/// The name of a field in rules; nothing for names that can not be written in one.
fn escaped(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let is_writable = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    name.chars().all(is_writable).then(|| {
        name.replace("__", "__underscores__").replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
    })
}
