//! Fields of a manifest that are left to others on the cluster.

use drover_api::work::{IgnoreField, IgnoreFieldsCondition};
use serde_json::Value;

use super::jq;
use crate::jsonpath::JsonPath;

/// Why nobody can tell which fields are to be left out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreFieldsError {
    /// A JSON path is none.
    #[error("the jsonPath {path:?} can not be read: {problem}")]
    Path {
        /// The path.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A JSON path does not name a field.
    #[error("the jsonPath {0:?} does not end in a field: name one, or write a jqPathExpression for items of lists")]
    NoField(String),
    /// A JSON pointer is none.
    #[error("the jsonPointer {0:?} does not begin with a slash: write it as in /spec/replicas")]
    Pointer(String),
    /// A jq expression is none, or says more than where fields are.
    #[error("the jqPathExpression {expression:?} can not be used: {problem}")]
    Jq {
        /// The expression.
        expression: String,
        /// What is wrong with it.
        problem: jq::Unsupported,
    },
}

/// One step from a value to one in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stride {
    Field(String),
    Item(usize),
}

/// Where something is in an object.
pub(super) type Place = Vec<Stride>;

/// An object without the fields that are left to others as soon as it exists.
pub(super) fn without_present(object: &Value, ignored: &[IgnoreField]) -> Result<Value, IgnoreFieldsError> {
    let mut present = ignored.iter().filter(|ignored| ignored.condition == IgnoreFieldsCondition::OnSpokePresent);
    present.try_fold(object.clone(), |mut object, ignored| {
        for path in &ignored.json_paths {
            remove_all(&mut object, |object| by_path(object, path))?;
        }
        for pointer in &ignored.json_pointers {
            remove_all(&mut object, |object| by_pointer(object, pointer))?;
        }
        for expression in &ignored.jq_path_expressions {
            remove_all(&mut object, |object| by_jq(object, expression))?;
        }
        Ok(object)
    })
}

fn remove_all(
    object: &mut Value,
    find: impl FnOnce(&Value) -> Result<Vec<Place>, IgnoreFieldsError>,
) -> Result<(), IgnoreFieldsError> {
    let mut places = find(object)?;
    // From the back, so that items of lists are still where they were found.
    places.sort_unstable();
    places.dedup();
    for place in places.iter().rev() {
        remove(object, place);
    }
    Ok(())
}

fn remove(object: &mut Value, place: &[Stride]) {
    match (object, place) {
        (Value::Object(fields), [Stride::Field(last)]) => {
            fields.remove(last);
        }
        (Value::Array(items), [Stride::Item(last)]) if *last < items.len() => {
            items.remove(*last);
        }
        (Value::Object(fields), [Stride::Field(field), rest @ ..]) => {
            fields.get_mut(field).into_iter().for_each(|inside| remove(inside, rest));
        }
        (Value::Array(items), [Stride::Item(item), rest @ ..]) => {
            items.get_mut(*item).into_iter().for_each(|inside| remove(inside, rest));
        }
        // What is not there need not be removed.
        _ => {}
    }
}

/// The fields that a path of Kubernetes leads to. Items of lists are never meant: what remains of a list would be applied as all of it.
fn by_path(object: &Value, path: &str) -> Result<Vec<Place>, IgnoreFieldsError> {
    // Some leave out the dot at the beginning, with which it would be a word of templates.
    let from_root = if path.starts_with(|c: char| c.is_alphanumeric() || c == '_') { "." } else { "" };
    let parsed = JsonPath::parse(&format!("{from_root}{path}"));
    let parsed =
        parsed.map_err(|problem| IgnoreFieldsError::Path { path: path.to_owned(), problem: problem.to_string() })?;
    let (parents, field) = parsed.split_field().ok_or_else(|| IgnoreFieldsError::NoField(path.to_owned()))?;
    // A path that leads nowhere, such as to the fifth of three items, names nothing that could be removed.
    let found = parents.find(object).unwrap_or_default();
    let places = found.into_iter().filter_map(|parent| {
        let mut place = Place::new();
        seek(object, parent, &mut place).then_some(())?;
        place.push(Stride::Field(field.to_owned()));
        Some(place)
    });
    Ok(places.collect())
}

/// Finds the way from an object to a value that is in it, and not just equal to one in it.
fn seek(from: &Value, sought: &Value, place: &mut Place) -> bool {
    if std::ptr::eq(from, sought) {
        return true;
    }
    let mut seek_in = |stride, inside| {
        place.push(stride);
        let is_there = seek(inside, sought, place);
        if !is_there {
            place.pop();
        }
        is_there
    };
    match from {
        Value::Object(fields) => fields.iter().any(|(field, inside)| seek_in(Stride::Field(field.clone()), inside)),
        Value::Array(items) => items.iter().enumerate().any(|(item, inside)| seek_in(Stride::Item(item), inside)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The place that a pointer of RFC 6901 names, if there is one.
fn by_pointer(object: &Value, pointer: &str) -> Result<Vec<Place>, IgnoreFieldsError> {
    let tokens = pointer.strip_prefix('/').ok_or_else(|| IgnoreFieldsError::Pointer(pointer.to_owned()))?;
    let mut tokens = tokens.split('/').map(|token| token.replace("~1", "/").replace("~0", "~"));
    let walked = tokens.try_fold((object, Place::new()), |(at, mut place), token| {
        let (inside, stride) = match at {
            Value::Object(fields) => (fields.get(&token)?, Stride::Field(token)),
            Value::Array(items) => {
                let item = token.parse().ok()?;
                (items.get(item)?, Stride::Item(item))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
        place.push(stride);
        Some((inside, place))
    });
    Ok(walked.map(|(_, place)| place).into_iter().collect())
}

fn by_jq(object: &Value, expression: &str) -> Result<Vec<Place>, IgnoreFieldsError> {
    let filter = jq::parse(expression)
        .map_err(|problem| IgnoreFieldsError::Jq { expression: expression.to_owned(), problem })?;
    Ok(filter.places(object))
}

#[cfg(test)]
mod tests;
