//! Finds the values of an object that cannot be parsed, and parses the object without them.
//!
//! Only a status loses values. A spec without some of its values would ask for something else.

use kube::api::ObjectMeta;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Map, Value, value::RawValue};
use serde_path_to_error::Segment;

use super::{Defect, Fields, date_time};

/// How many values of one object are repaired, each at the price of one more parse. An object with
/// more of them loses its status.
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
    for _ in 0..MAX_REPAIRS {
        let failure = match parse(&object) {
            Ok(object) => return (Some(object), defect),
            Err(failure) => failure,
        };
        if respell_time(&mut object, &failure.path) {
            continue;
        }
        let path = innermost_item(&failure.path);
        defect.get_or_insert_with(|| Defect { path: display(&failure.path), message: failure.error.to_string() });
        if !is_in_status(path) {
            return (None, defect);
        }
        remove(&mut object, path);
    }
    remove(&mut object, &[status()]);
    (parse(&object).ok(), Some(defect.unwrap_or_else(too_many_defects)))
}

/// The metadata of an object.
pub(super) fn repair_metadata(text: Option<&RawValue>) -> Result<ObjectMeta, serde_json::Error> {
    let text = text.ok_or_else(|| serde_json::Error::custom("the object has no metadata"))?;
    let mut metadata: Value = serde_json::from_str(text.get())?;
    loop {
        match parse(&metadata) {
            Ok(metadata) => return Ok(metadata),
            Err(failure) if respell_time(&mut metadata, &failure.path) => {}
            Err(failure) => return Err(failure.error),
        }
    }
}

/// The object as a value. A status that is nested too deeply is left out.
fn parse_fields(fields: &Fields) -> Result<(Value, Option<Defect>), Defect> {
    let (mut object, mut defect) = (Map::new(), None);
    for (name, text) in fields {
        match serde_json::from_str(text.get()) {
            Ok(value) => drop(object.insert(name.clone(), value)),
            Err(error) => {
                let found = Defect { path: name.clone(), message: error.to_string() };
                if name != "status" {
                    return Err(found);
                }
                defect = Some(found);
            }
        }
    }
    Ok((Value::Object(object), defect))
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

fn status() -> Step {
    Step::Field("status".to_owned())
}

fn is_in_status(path: &[Step]) -> bool {
    matches!(path.first(), Some(Step::Field(field)) if field == "status")
}

fn too_many_defects() -> Defect {
    Defect { path: "status".to_owned(), message: format!("it has more than {MAX_REPAIRS} invalid values") }
}

/// The path to the innermost list item on a path, or the whole path where there is none: an item
/// without one of its fields, such as a condition without its time, would say something else.
fn innermost_item(path: &[Step]) -> &[Step] {
    let last = path.iter().rposition(|step| matches!(step, Step::Item(_)));
    last.map_or(path, |last| &path[..=last])
}

/// Spells the time at a path in the way that the parser knows. False if there is no time.
fn respell_time(object: &mut Value, path: &[Step]) -> bool {
    let Some(value) = find(object, path) else { return false };
    let known = value.as_str().filter(|text| text.parse::<k8s_openapi::jiff::Timestamp>().is_err());
    let Some(time) = known.and_then(date_time::parse) else { return false };
    *value = Value::String(time.to_string());
    true
}

fn find<'a>(object: &'a mut Value, path: &[Step]) -> Option<&'a mut Value> {
    path.iter().try_fold(object, |value, step| match step {
        Step::Field(name) => value.get_mut(name),
        Step::Item(index) => value.get_mut(index),
    })
}

fn remove(object: &mut Value, path: &[Step]) {
    let Some((last, parent)) = path.split_last() else { return };
    match (find(object, parent), last) {
        (Some(Value::Object(fields)), Step::Field(name)) => drop(fields.remove(name)),
        (Some(Value::Array(items)), Step::Item(index)) if *index < items.len() => drop(items.remove(*index)),
        _ => {}
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
