//! JSONPath as Kubernetes speaks it: where something is in an object, for columns of tables, for the replicas of a scale, for fields to select by, and for what
//! agents report.
//!
//! It is not the JSONPath of RFC 9535: keys are escaped with backslashes, a missing key is no error, and a list that is too short is one.

mod parse;
#[cfg(test)]
mod tests;

use serde_json::Value;
use thiserror::Error;

/// A path, read once and followed many times.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath(Vec<Node>);

/// Why a path can not be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Unreadable(String);

/// Why a path can not be followed in an object.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Lost(String);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Literal(Value),
    Field(String),
    Wildcard,
    Recursive,
    Slice(Slice),
    Union(Vec<Vec<Node>>),
    Filter(Filter),
    /// A word that means something in templates only.
    Word(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    from: Option<i64>,
    to: To,
    step: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    /// Only the first item of the slice.
    Next,
    /// All that is left.
    End,
    /// Up to an index.
    Index(i64),
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Vec<Node>,
    /// None where it is enough that the left side is there.
    right: Option<(String, Vec<Node>)>,
}

impl JsonPath {
    /// Reads a path such as `.spec.color`.
    pub fn parse(text: &str) -> Result<Self, Unreadable> {
        parse::nodes(text).map(Self)
    }

    /// Everything that the path leads to in an object. What is not there is left out.
    pub fn find<'a>(&'a self, object: &'a Value) -> Result<Vec<&'a Value>, Lost> {
        follow(vec![object], &self.0)
    }

    /// The path to what has the field that this one ends in, and the field.
    #[must_use]
    pub fn split_field(&self) -> Option<(Self, &str)> {
        match self.0.split_last()? {
            (Node::Field(field), before) => Some((Self(before.to_vec()), field)),
            _ => None,
        }
    }

    /// The first thing that the path leads to, if it leads anywhere.
    #[must_use]
    pub fn first<'a>(&'a self, object: &'a Value) -> Option<&'a Value> {
        self.find(object).ok()?.first().copied()
    }
}

/// A value as text: as it is where it is simple, as JSON where it is not.
#[must_use]
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => number.as_f64().map(short_float).unwrap_or_default(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => {
            value.to_string().replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
        }
    }
}

/// A number with as few digits as possible, with an exponent as soon as there are more than six before the point.
fn short_float(number: f64) -> String {
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if (-4..6).contains(&exponent) => number.to_string(),
        Ok(exponent) => format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()),
        Err(_) => scientific,
    }
}

fn follow<'a>(from: Vec<&'a Value>, nodes: &'a [Node]) -> Result<Vec<&'a Value>, Lost> {
    nodes.iter().try_fold(from, step)
}

fn step<'a>(from: Vec<&'a Value>, node: &'a Node) -> Result<Vec<&'a Value>, Lost> {
    Ok(match node {
        Node::Literal(text @ Value::String(_)) => vec![text],
        Node::Literal(literal) => from.iter().map(|_| literal).collect(),
        Node::Field(name) => from.into_iter().filter_map(|value| value.as_object()?.get(name)).collect(),
        Node::Wildcard => from.into_iter().flat_map(children).collect(),
        Node::Recursive => {
            let mut found = Vec::new();
            for value in from {
                descend(value, &mut found);
            }
            found
        }
        Node::Slice(slice) => slice.cut(from)?,
        Node::Union(branches) => {
            let found: Result<Vec<_>, _> = branches.iter().map(|branch| follow(from.clone(), branch)).collect();
            found?.concat()
        }
        Node::Filter(filter) => filter.keep(from)?,
        Node::Word(word) => return Err(Lost(format!("unrecognized identifier {word}"))),
    })
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    }
}

/// All lists and objects in a value that are not empty, itself among them.
fn descend<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    let children = children(value);
    if !children.is_empty() {
        found.push(value);
        for child in children {
            descend(child, found);
        }
    }
}

impl Slice {
    fn cut(self, from: Vec<&Value>) -> Result<Vec<&Value>, Lost> {
        let mut found = Vec::new();
        for value in from {
            match value {
                Value::Null => {}
                Value::Array(items) => match self.range(items.len())? {
                    // Whoever asks for nothing gets nothing more.
                    None => return Ok(found),
                    Some((range, step)) => found.extend(items[range].iter().step_by(step)),
                },
                _ => return Err(Lost(format!("{value} is not array or slice"))),
            }
        }
        Ok(found)
    }

    fn range(self, length: usize) -> Result<Option<(std::ops::Range<usize>, usize)>, Lost> {
        let long = i64::try_from(length).unwrap_or(i64::MAX);
        let wrap = |index: i64| if index < 0 { index + long } else { index };
        let from = wrap(self.from.unwrap_or(0));
        let to = match self.to {
            To::End => long,
            To::Index(index) => wrap(index),
            // The one after the last is the end, not the beginning.
            To::Next => match self.from.unwrap_or(0) + 1 {
                next if next <= 0 => next + long,
                next => next,
            },
        };
        if from == to {
            return Ok(None);
        }
        let outside = |index| Lost(format!("array index out of bounds: index {index}, length {length}"));
        let first = usize::try_from(from).ok().filter(|from| *from < length).ok_or_else(|| outside(from))?;
        let end = usize::try_from(to).ok().filter(|to| *to <= length).ok_or_else(|| outside(to - 1))?;
        if first > end {
            return Err(Lost(format!("starting index {from} is greater than ending index {to}")));
        }
        match usize::try_from(self.step.unwrap_or(1)) {
            Ok(step) if step > 0 => Ok(Some((first..end, step))),
            _ => Err(Lost("step must be > 0".to_owned())),
        }
    }
}

impl Filter {
    fn keep<'a>(&'a self, from: Vec<&'a Value>) -> Result<Vec<&'a Value>, Lost> {
        let mut kept = Vec::new();
        for value in from {
            let Value::Array(items) = value else {
                return Err(Lost(format!("{value} is not array or slice and cannot be filtered")));
            };
            for item in items {
                if self.holds(item)? {
                    kept.push(item);
                }
            }
        }
        Ok(kept)
    }

    fn holds<'a>(&'a self, item: &'a Value) -> Result<bool, Lost> {
        let Some((operator, right)) = &self.right else {
            return Ok(follow(vec![item], &self.left).is_ok_and(|found| !found.is_empty()));
        };
        let Some(left) = only(&follow(vec![item], &self.left)?)? else { return Ok(false) };
        let Some(right) = only(&follow(vec![item], right)?)? else { return Ok(false) };
        compare(left, operator, right)
    }
}

fn only<'a>(found: &[&'a Value]) -> Result<Option<&'a Value>, Lost> {
    match found {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(Lost("can only compare one element at a time".to_owned())),
    }
}

fn compare(left: &Value, operator: &str, right: &Value) -> Result<bool, Lost> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = match (left, right) {
        (Value::Bool(left), Value::Bool(right)) if matches!(operator, "==" | "!=") => Some(left.cmp(right)),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) if left.is_f64() == right.is_f64() => {
            match (left.as_i64(), right.as_i64()) {
                (Some(left), Some(right)) => Some(left.cmp(&right)),
                _ => left.as_f64().partial_cmp(&right.as_f64()),
            }
        }
        (
            Value::Bool(_) | Value::String(_) | Value::Number(_),
            Value::Bool(_) | Value::String(_) | Value::Number(_),
        ) => {
            return Err(Lost("incompatible types for comparison".to_owned()));
        }
        _ => return Err(Lost("invalid type for comparison".to_owned())),
    };
    match operator {
        "==" => Ok(order == Some(Equal)),
        "!=" => Ok(order != Some(Equal)),
        "<" => Ok(order == Some(Less)),
        "<=" => Ok(matches!(order, Some(Less | Equal))),
        ">" => Ok(order == Some(Greater)),
        ">=" => Ok(matches!(order, Some(Greater | Equal))),
        other => Err(Lost(format!("unrecognized filter operator {other}"))),
    }
}
