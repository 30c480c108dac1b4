//! Finds the values of an object that cannot be parsed, and parses the object without them.
//!
//! Only a status loses values. A spec without some of its values would ask for something else.

use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Map, Value, value::RawValue};
use serde_path_to_error::Segment;

use super::{Defect, Fields, date_time};

/// How many values of one object are left out one by one, each at the price of one more parse. After
/// that, each field of the status that still has an invalid value is left out as a whole.
const MAX_REPAIRS: usize = 16;

/// One step from a value to a value inside.
#[derive(Clone, Debug)]
enum Step {
    Field(String),
    Item(usize),
}

/// Why a value cannot be parsed, and where in it the cause is.
struct Failure {
    path: Vec<Step>,
    error: serde_json::Error,
}

/// The object without the values of its status that cannot be parsed, and the first of these.
/// There is no object if a value outside of its status cannot be parsed.
pub(super) fn repair<K: DeserializeOwned>(fields: &Fields) -> (Option<K>, Option<Defect>) {
    let (mut object, mut defect) = match parse_fields(fields) {
        Ok(parsed) => parsed,
        Err(defect) => return (None, Some(defect)),
    };
    let mut repairs = 0;
    loop {
        let failure = match parse(&object) {
            Ok(object) => return (Some(object), defect),
            Err(failure) => failure,
        };
        if respell_times(&mut object, &failure.path) {
            continue;
        }
        defect.get_or_insert_with(|| Defect { path: display(&failure.path), message: failure.error.to_string() });
        let path = if repairs < MAX_REPAIRS { innermost_item(&failure.path) } else { field_of_status(&failure.path) };
        if !is_in_status(path) || !remove(&mut object, path) {
            return (None, defect);
        }
        repairs += 1;
    }
}

/// The metadata of an object.
pub(super) fn repair_metadata(text: Option<&RawValue>) -> Result<ObjectMeta, serde_json::Error> {
    let text = text.ok_or_else(|| serde_json::Error::custom("the object has no metadata"))?;
    let mut metadata: Value = serde_json::from_str(text.get())?;
    loop {
        match parse(&metadata) {
            Ok(metadata) => return Ok(metadata),
            Err(failure) if respell_times(&mut metadata, &failure.path) => {}
            Err(failure) => return Err(failure.error),
        }
    }
}

/// The object as a value. A field of its status that is nested too deeply is left out.
fn parse_fields(fields: &Fields) -> Result<(Value, Option<Defect>), Defect> {
    let (mut object, mut defect) = (Map::new(), None);
    for (name, text) in fields {
        let value = match serde_json::from_str(text.get()) {
            Ok(value) => value,
            Err(_) if name == "status" => parse_status(text, &mut defect),
            Err(error) => return Err(Defect { path: name.clone(), message: error.to_string() }),
        };
        object.insert(name.clone(), value);
    }
    Ok((Value::Object(object), defect))
}

/// The fields of a status that are not nested too deeply, and the first that is.
fn parse_status(text: &RawValue, defect: &mut Option<Defect>) -> Value {
    let fields: Fields = serde_json::from_str(text.get()).unwrap_or_default();
    let parsed = fields.into_iter().filter_map(|(name, text)| match serde_json::from_str(text.get()) {
        Ok(value) => Some((name, value)),
        Err(error) => {
            defect.get_or_insert_with(|| Defect { path: format!("status.{name}"), message: error.to_string() });
            None
        }
    });
    Value::Object(parsed.collect())
}

fn parse<T: DeserializeOwned>(value: &Value) -> Result<T, Failure> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        // Inside an enum the path is not certain.
        let steps = error.path().iter().map_while(|segment| match segment {
            Segment::Map { key } => Some(Step::Field(key.clone())),
            Segment::Seq { index } => Some(Step::Item(*index)),
            Segment::Enum { .. } | Segment::Unknown => None,
        });
        Failure { path: steps.collect(), error: error.into_inner() }
    })
}

fn is_in_status(path: &[Step]) -> bool {
    matches!(path.first(), Some(Step::Field(field)) if field == "status")
}

/// The path to the innermost list item on a path, or the whole path where there is none: an item
/// without one of its fields, such as a condition without its time, would say something else.
fn innermost_item(path: &[Step]) -> &[Step] {
    let last = path.iter().rposition(|step| matches!(step, Step::Item(_)));
    last.map_or(path, |last| &path[..=last])
}

/// The path to the field of the status that a path leads into.
fn field_of_status(path: &[Step]) -> &[Step] {
    &path[..path.len().min(2)]
}

/// Spells the time at a path in the way that the parser knows, and in a status all times in fields
/// of that name: there may be thousands. False if there is no time.
fn respell_times(object: &mut Value, path: &[Step]) -> bool {
    if !find(object, path).is_some_and(respell_time) {
        return false;
    }
    let name = path.iter().rev().find_map(|step| match step {
        Step::Field(name) => Some(name),
        Step::Item(_) => None,
    });
    if let Some((status, name)) = object.get_mut("status").filter(|_| is_in_status(path)).zip(name) {
        respell_fields(status, name);
    }
    true
}

fn respell_fields(value: &mut Value, name: &str) {
    match value {
        Value::Object(fields) => {
            if let Some(field) = fields.get_mut(name) {
                respell_time(field);
            }
            fields.values_mut().for_each(|field| respell_fields(field, name));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| respell_fields(item, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Spells a time in the way that the parser knows. False if it is none, or is spelled so already.
fn respell_time(value: &mut Value) -> bool {
    let unknown = value.as_str().filter(|text| text.parse::<Timestamp>().is_err());
    let Some(time) = unknown.and_then(date_time::parse) else { return false };
    *value = Value::String(time.to_string());
    true
}

fn find<'a>(object: &'a mut Value, path: &[Step]) -> Option<&'a mut Value> {
    path.iter().try_fold(object, |value, step| match step {
        Step::Field(name) => value.get_mut(name),
        Step::Item(index) => value.get_mut(index),
    })
}

/// Removes the value at a path. False if there is none.
fn remove(object: &mut Value, path: &[Step]) -> bool {
    let Some((last, parent)) = path.split_last() else { return false };
    match (find(object, parent), last) {
        (Some(Value::Object(fields)), Step::Field(name)) => fields.remove(name).is_some(),
        (Some(Value::Array(items)), Step::Item(index)) if *index < items.len() => {
            items.remove(*index);
            true
        }
        _ => false,
    }
}

fn display(path: &[Step]) -> String {
    let mut shown = String::new();
    for step in path {
        match step {
            Step::Field(name) if shown.is_empty() => shown.push_str(name),
            Step::Field(name) => shown.extend([".", name]),
            Step::Item(index) => shown.extend(["[", &index.to_string(), "]"]),
        }
    }
    if shown.is_empty() { "the object".to_owned() } else { shown }
}
