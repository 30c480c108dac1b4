//! Whether the fields of an object are of the types that a built-in kind has.

use serde_json::Value;

use super::{base64, json_type};
use crate::schema::{Additional, Schema, Type};

/// Where a value is: the record that has the field, and all fields on the way to it.
#[derive(Clone, Copy)]
struct Place<'a> {
    record: &'a str,
    fields: &'a [&'a str],
}

/// How reading ended.
enum Problem {
    /// A value is of another type. Reading goes on, and the first of these is told.
    Type(String),
    /// What a value holds can not be read. Reading goes on, and the first of these is told as it is.
    Content(String),
    /// A value is of another type than what reads such values wants. Reading ends there.
    Wanted(String, &'static str),
    /// A value can not be read by what reads such values. Reading ends there.
    Value(String),
}

/// Whether an object can be read as a kind.
pub(super) fn check(object: &Value, kind: &str, schema: &Schema) -> Result<(), String> {
    let mut first = None;
    match walk(object, schema, kind, Place { record: "", fields: &[] }, &mut first) {
        Err(problem) => Err(problem),
        Ok(()) => first.map_or(Ok(()), Err),
    }
}

fn walk(
    value: &Value,
    schema: &Schema,
    record: &str,
    place: Place<'_>,
    first: &mut Option<String>,
) -> Result<(), String> {
    match (value, schema.type_) {
        (Value::Null, _) => return Ok(()),
        (Value::Object(members), _) if is_record(schema) => {
            let record = if schema.definition.is_empty() { record } else { short(&schema.definition) };
            for (name, member) in members {
                let Some(inner) = schema.properties.get(name) else { continue };
                let fields = [place.fields, &[name.as_str()]].concat();
                walk(member, inner, "", Place { record, fields: &fields }, first)?;
            }
        }
        (Value::Object(members), Some(Type::Object)) => {
            if let Some(Additional::Schema(inner)) = &schema.additional_properties {
                // The entries of a map stand at the place of the map.
                members.values().try_for_each(|member| walk(member, inner, "", place, first))?;
            }
        }
        (Value::Array(items), Some(Type::Array)) => {
            let Some(inner) = &schema.items else { return Ok(()) };
            items.iter().try_for_each(|item| walk(item, inner, "", place, first))?;
        }
        _ => match mismatch(value, schema) {
            Some(Problem::Value(problem)) => return Err(problem),
            Some(Problem::Wanted(problem, wanted)) => return Err(told(&problem, wanted, record, place)),
            Some(Problem::Type(problem)) => {
                first.get_or_insert_with(|| told(&problem, &go_type(schema), record, place));
            }
            Some(Problem::Content(problem)) => {
                first.get_or_insert(problem);
            }
            None => {}
        },
    }
    Ok(())
}

fn is_record(schema: &Schema) -> bool {
    !schema.properties.is_empty()
}

fn told(found: &str, wanted: &str, record: &str, place: Place<'_>) -> String {
    if place.fields.is_empty() {
        return format!("json: cannot unmarshal {found} into Go value of type v1.{record}");
    }
    let (record, path) = (place.record, place.fields.join("."));
    format!("json: cannot unmarshal {found} into Go struct field {record}.{path} of type {wanted}")
}

fn mismatch(value: &Value, schema: &Schema) -> Option<Problem> {
    let format = schema.limits.format.as_deref().unwrap_or_default();
    if schema.int_or_string {
        return int_or_string(value);
    }
    if schema.definition.ends_with(".resource.Quantity") {
        return quantity(value);
    }
    match (schema.type_?, value) {
        (Type::String, Value::String(text)) if format == "date-time" => time(text),
        (Type::String, Value::String(text)) if format == "byte" => {
            let at = base64::broken_at(text)?;
            Some(Problem::Content(format!("illegal base64 data at input byte {at}")))
        }
        (Type::String, other) if format == "date-time" => Some(Problem::Wanted(json_type(other).to_owned(), "string")),
        (Type::String, Value::String(_))
        | (Type::Boolean, Value::Bool(_))
        | (Type::Number, Value::Number(_))
        | (Type::Array, Value::Array(_))
        | (Type::Object, Value::Object(_)) => None,
        (Type::Integer, Value::Number(number)) => {
            let fits = |number: i64| format != "int32" || i32::try_from(number).is_ok();
            let whole = number.as_i64().is_some_and(fits);
            (!whole).then(|| Problem::Type(format!("number {number}")))
        }
        (_, other) => Some(Problem::Type(json_type(other).to_owned())),
    }
}

fn int_or_string(value: &Value) -> Option<Problem> {
    let found = match value {
        Value::String(_) => return None,
        Value::Number(number) if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) => return None,
        Value::Number(number) => format!("number {number}"),
        other => json_type(other).to_owned(),
    };
    Some(Problem::Wanted(found, "int32"))
}

fn quantity(value: &Value) -> Option<Problem> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(&text);
    let number = unsigned.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let digits = unsigned.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let suffix = &unsigned[digits..];
    let is_suffix = suffix.bytes().all(|byte| b"eEinumkKMGTP+-0123456789".contains(&byte));
    if digits > 0 && is_suffix && !number.is_empty() {
        return None;
    }
    let pattern = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$";
    Some(Problem::Value(format!("quantities must match the regular expression '{pattern}'")))
}

fn time(text: &str) -> Option<Problem> {
    let shape = "2006-01-02T15:04:05Z07:00";
    let bytes = text.as_bytes();
    let parts = [(0, 4, "2006"), (5, 2, "01"), (8, 2, "02"), (11, 2, "15"), (14, 2, "04"), (17, 2, "05")];
    let is_number = |at: usize, length: usize| {
        bytes.get(at..at + length).is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
    };
    let broken = parts.iter().find(|(at, length, _)| !is_number(*at, *length));
    let (at, wanted) = match broken {
        Some((at, _, wanted)) => (*at, *wanted),
        None => (broken_zone(text)?, "Z07:00"),
    };
    let rest = text.get(at..).unwrap_or_default();
    Some(Problem::Value(format!("parsing time {text:?} as {shape:?}: cannot parse {rest:?} as {wanted:?}")))
}

/// Where the zone of a time is broken.
fn broken_zone(text: &str) -> Option<usize> {
    let rest = text.get(19..).unwrap_or_default();
    let zone = rest.trim_start_matches(|letter: char| letter == '.' || letter.is_ascii_digit());
    let fits = zone == "Z" || (zone.len() == 6 && zone.starts_with(['+', '-']));
    (!fits).then(|| text.len() - zone.len())
}

/// The last part of a definition's name.
fn short(definition: &str) -> &str {
    definition.rsplit('.').next().unwrap_or(definition)
}

/// How the real server names the type of a field.
fn go_type(schema: &Schema) -> String {
    let format = schema.limits.format.as_deref().unwrap_or_default();
    if !schema.definition.is_empty() {
        let mut parts = schema.definition.rsplit('.');
        let (name, package) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        return format!("{package}.{name}");
    }
    match schema.type_ {
        Some(Type::Boolean) => "bool".to_owned(),
        Some(Type::Integer) => if format.is_empty() { "int" } else { format }.to_owned(),
        Some(Type::Number) => "float64".to_owned(),
        Some(Type::String) if format == "byte" => "[]uint8".to_owned(),
        Some(Type::String) => "string".to_owned(),
        Some(Type::Array) => {
            let items = schema.items.as_deref().map_or_else(|| "interface {}".to_owned(), go_type);
            format!("[]{items}")
        }
        Some(Type::Object) => match &schema.additional_properties {
            Some(Additional::Schema(inner)) => format!("map[string]{}", go_type(inner)),
            _ => "map[string]interface {}".to_owned(),
        },
        None => "interface {}".to_owned(),
    }
}
