//! Finds the values of an object that cannot be parsed, and parses the object without them.
//!
//! Only metadata and a status lose values. A spec without some of its values would ask for
//! something else.

use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;
use serde::{
    Deserialize,
    de::{DeserializeOwned, Error as _},
};
use serde_json::{Map, Value, value::RawValue};
use serde_path_to_error::Segment;

use super::{Defect, Fields, date_time};

/// How many values are left out one by one, each at the price of one more parse of everything. After
/// that, each list or map with an invalid value is filtered: each of its entries is parsed alone.
const MAX_REPAIRS: usize = 16;
/// How many lists in one entry of a list or a map are filtered. After that, the entry is left out.
const MAX_FILTERS: usize = 16;

/// One step from a value to a value inside.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Item(usize),
}

/// Why a value cannot be parsed, and where in it the cause is.
struct Failure {
    path: Vec<Step>,
    error: serde_json::Error,
}

/// What is parsed of an object for its metadata.
#[derive(Deserialize)]
struct WithMetadata {
    metadata: ObjectMeta,
}

/// Metadata without the values that cannot be parsed.
pub(super) struct Metadata {
    pub(super) parsed: ObjectMeta,
    /// The same as JSON.
    pub(super) value: Value,
    /// The first value that is left out.
    pub(super) defect: Option<Defect>,
}

/// The object without the values of its status that cannot be parsed, and the first of these.
/// There is no object if a value outside of its status cannot be parsed.
pub(super) fn repair<K: DeserializeOwned>(fields: &Fields) -> (Option<K>, Option<Defect>) {
    match parse_fields(fields) {
        Ok((mut object, mut defect)) => (repair_field(&mut object, "status", &mut defect), defect),
        Err(defect) => (None, Some(defect)),
    }
}

/// The metadata of an object. This fails only where the object has no name that can be parsed.
pub(super) fn repair_metadata(text: Option<&RawValue>) -> Result<Metadata, serde_json::Error> {
    let text = text.ok_or_else(|| serde_json::Error::custom("the object has no metadata"))?;
    let parts: Fields = serde_json::from_str(text.get())?;
    for name in ["name", "namespace"] {
        parts.get(name).map(|text| serde_json::from_str::<Option<String>>(text.get())).transpose()?;
    }
    let mut defect = None;
    let mut object =
        Value::Object(Map::from_iter([("metadata".to_owned(), parse_parts("metadata", parts, &mut defect))]));
    let repaired: Option<WithMetadata> = repair_field(&mut object, "metadata", &mut defect);
    let parsed = repaired.ok_or_else(|| serde_json::Error::custom("the metadata cannot be parsed"))?.metadata;
    Ok(Metadata { parsed, value: object["metadata"].take(), defect })
}

/// Parses an object, and leaves out what cannot be parsed of one of its fields. The first value that
/// is left out is the defect, unless there is one already.
fn repair_field<K: DeserializeOwned>(object: &mut Value, field: &str, defect: &mut Option<Defect>) -> Option<K> {
    let mut repairs = 0;
    loop {
        let failure = match parse(object) {
            Ok(object) => return Some(object),
            Err(failure) => failure,
        };
        if respell_times(object, &failure.path) {
            continue;
        }
        let Failure { path, error } = failure;
        defect.get_or_insert_with(|| Defect { path: display(&path), message: error.to_string() });
        if !matches!(path.first(), Some(Step::Field(first)) if first == field) {
            return None;
        }
        let part = &path[..path.len().min(2)];
        let is_removed = if repairs < MAX_REPAIRS {
            repairs += 1;
            remove(object, innermost_item(&path))
        } else {
            filter::<K>(object, part)
        };
        if !is_removed && !remove(object, part) {
            return None;
        }
    }
}

/// Leaves out the entries of a list or a map that cannot be parsed. The price is that of parsing
/// each entry a few times, however many are left out. False if none is.
fn filter<K: DeserializeOwned>(object: &mut Value, path: &[Step]) -> bool {
    let mut is_changed = false;
    let mut keep = |step: Step, entry: &mut Value| {
        let path = [path, &[step]].concat();
        let is_kept = repair_entry::<K>(entry, &path, &mut is_changed);
        is_changed |= !is_kept;
        is_kept
    };
    match find(object, path) {
        Some(Value::Array(items)) => items.retain_mut(|item| keep(Step::Item(0), item)),
        Some(Value::Object(fields)) => fields.retain(|name, field| keep(Step::Field(name.clone()), field)),
        _ => {}
    }
    is_changed
}

/// Leaves out what cannot be parsed of one entry of a list or a map. It is parsed in an object that
/// has nothing else: what fails outside of the entry is no fault of it. False if nothing can be left
/// of it.
fn repair_entry<K: DeserializeOwned>(entry: &mut Value, path: &[Step], is_changed: &mut bool) -> bool {
    let path: Vec<_> = path.iter().map(Step::in_alone).collect();
    let mut object = path.iter().rev().fold(entry.take(), |value, step| match step {
        Step::Field(name) => Value::Object(Map::from_iter([(name.clone(), value)])),
        Step::Item(_) => Value::Array(vec![value]),
    });
    let mut is_kept = true;
    for attempt in 0.. {
        let failure = match parse::<K>(&object) {
            Err(failure) if failure.path.starts_with(&path) => failure,
            _ => break,
        };
        if respell_times(&mut object, &failure.path) {
            *is_changed = true;
            continue;
        }
        let innermost = innermost_item(&failure.path);
        let is_removed = if innermost.len() <= path.len() || attempt >= MAX_REPAIRS + MAX_FILTERS {
            false
        } else if attempt < MAX_REPAIRS {
            remove(&mut object, innermost)
        } else {
            list_in(&failure.path, path.len()).is_some_and(|list| filter::<K>(&mut object, list))
        };
        is_kept = is_removed;
        if !is_kept {
            break;
        }
        *is_changed = true;
    }
    *entry = find(&mut object, &path).map(Value::take).unwrap_or_default();
    is_kept
}

/// The object as a value. A field of its status that is nested too deeply is left out.
fn parse_fields(fields: &Fields) -> Result<(Value, Option<Defect>), Defect> {
    let (mut object, mut defect) = (Map::new(), None);
    for (name, text) in fields {
        let value = match serde_json::from_str(text.get()) {
            Ok(value) => value,
            Err(_) if name == "status" => {
                parse_parts(name, serde_json::from_str(text.get()).unwrap_or_default(), &mut defect)
            }
            Err(error) => return Err(Defect { path: name.clone(), message: error.to_string() }),
        };
        object.insert(name.clone(), value);
    }
    Ok((Value::Object(object), defect))
}

/// The parts of a field that are not nested too deeply, and the first that is.
fn parse_parts(field: &str, parts: Fields, defect: &mut Option<Defect>) -> Value {
    let parsed = parts.into_iter().filter_map(|(name, text)| match serde_json::from_str(text.get()) {
        Ok(value) => Some((name, value)),
        Err(error) => {
            defect.get_or_insert_with(|| Defect { path: format!("{field}.{name}"), message: error.to_string() });
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

impl Step {
    /// The step in an object that has nothing beside the value that the step leads to.
    fn in_alone(&self) -> Self {
        match self {
            Self::Field(name) => Self::Field(name.clone()),
            Self::Item(_) => Self::Item(0),
        }
    }
}

/// The path to the innermost list item on a path, or the whole path where there is none: an item
/// without one of its fields, such as a condition without its time, would say something else.
fn innermost_item(path: &[Step]) -> &[Step] {
    let last = path.iter().rposition(|step| matches!(step, Step::Item(_)));
    last.map_or(path, |last| &path[..=last])
}

/// The path to the outermost list on a path, after so many steps.
fn list_in(path: &[Step], after: usize) -> Option<&[Step]> {
    let first = path.iter().skip(after).position(|step| matches!(step, Step::Item(_)))?;
    Some(&path[..after + first])
}

/// Spells the time at a path in the way that the parser knows, and all times in fields of that name
/// in the same field of the object: there may be thousands. False if there is no time.
fn respell_times(object: &mut Value, path: &[Step]) -> bool {
    if !find(object, path).is_some_and(respell_time) {
        return false;
    }
    let name = path.iter().rev().find_map(|step| match step {
        Step::Field(name) => Some(name),
        Step::Item(_) => None,
    });
    if let Some((field, name)) = path.get(..1).and_then(|first| find(object, first)).zip(name) {
        respell_fields(field, name);
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
