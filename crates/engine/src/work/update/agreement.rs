//! Whether an object is as a manifest wants it, and how it is brought there.
//!
//! Only what the manifest sets is looked at. Lists have to be of the same length and agree item by item, so that defaults inside of items do not count.

use serde_json::{Map, Value};

use crate::quantity;

/// The fields below which values are amounts of resources.
const AMOUNTS: [&str; 9] =
    ["averageValue", "capacity", "divisor", "hard", "limits", "overhead", "podFixed", "requests", "sizeLimit"];
/// The fields at the top of an object below which values are anybody's texts.
const TEXTS: [&str; 3] = ["binaryData", "data", "stringData"];
/// The fields by which items of lists are told apart, in the kinds of Kubernetes.
const IDENTITIES: [&str; 11] = [
    "containerPort",
    "devicePath",
    "ip",
    "key",
    "mountPath",
    "name",
    "port",
    "topologyKey",
    "type",
    "uid",
    "whenUnsatisfiable",
];

/// How values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// As they are, until a field says that amounts are below.
    Plain,
    /// As amounts, where they are some.
    Amounts,
    /// As they are, whatever fields say.
    Texts,
}

impl Reading {
    fn at_top(field: &str) -> Self {
        if TEXTS.contains(&field) { Self::Texts } else { Self::Plain.below(field) }
    }

    fn below(self, field: &str) -> Self {
        if self == Self::Plain && AMOUNTS.contains(&field) { Self::Amounts } else { self }
    }
}

/// Whether a content has everything that is wanted.
pub(super) fn agrees(wanted: &Map<String, Value>, had: &Map<String, Value>) -> bool {
    wanted.iter().all(|(field, value)| is_met(value, had.get(field), Reading::at_top(field)))
}

/// Whether two contents say the same.
pub(super) fn is_same(left: &Map<String, Value>, right: &Map<String, Value>) -> bool {
    agrees(left, right) && agrees(right, left)
}

/// A content with everything that is wanted. What is there as wanted stays as it is written.
pub(super) fn overlay(wanted: Map<String, Value>, mut had: Map<String, Value>) -> Map<String, Value> {
    for (field, value) in wanted {
        let reading = Reading::at_top(&field);
        if !is_met(&value, had.get(&field), reading) {
            bring(value, had.entry(field).or_insert(Value::Null), reading);
        }
    }
    had
}

fn is_met(wanted: &Value, had: Option<&Value>, reading: Reading) -> bool {
    match (wanted, had.unwrap_or(&Value::Null)) {
        // Whoever writes this leaves the choice to the server.
        (Value::Null, _) => true,
        (Value::Array(wanted), Value::Null) => wanted.is_empty(),
        (Value::Array(wanted), Value::Array(had)) => {
            wanted.len() == had.len() && wanted.iter().zip(had).all(|(wanted, had)| is_met(wanted, Some(had), reading))
        }
        // An empty object may mean a lot, such as a volume that is an empty folder; one that says nothing does not.
        (Value::Object(wanted), Value::Null) => !wanted.is_empty() && wanted.values().all(Value::is_null),
        (Value::Object(wanted), Value::Object(had)) => {
            wanted.iter().all(|(field, value)| is_met(value, had.get(field), reading.below(field)))
        }
        (wanted, had) if reading == Reading::Amounts && quantity::is_same(wanted, had) => true,
        (Value::Number(wanted), Value::Number(had)) => wanted == had || wanted.as_f64() == had.as_f64(),
        (wanted, had) => wanted == had,
    }
}

fn bring(wanted: Value, had: &mut Value, reading: Reading) {
    match (wanted, had) {
        (Value::Null, _) => {}
        (Value::Object(wanted), Value::Object(had)) => {
            for (field, value) in wanted {
                let reading = reading.below(&field);
                if !is_met(&value, had.get(&field), reading) {
                    bring(value, had.entry(field).or_insert(Value::Null), reading);
                }
            }
        }
        (Value::Array(wanted), Value::Array(had)) if wanted.len() == had.len() => {
            for (wanted, had) in wanted.into_iter().zip(had) {
                bring_item(wanted, had, reading);
            }
        }
        (wanted, had) => *had = wanted,
    }
}

/// An item that is another one is not mixed with what is there: nobody wants half of each.
fn bring_item(wanted: Value, had: &mut Value, reading: Reading) {
    if is_met(&wanted, Some(had), reading) {
        return;
    }
    let is_other =
        |field: &&str| matches!((wanted.get(field), had.get(field)), (Some(wanted), Some(had)) if wanted != had);
    if IDENTITIES.iter().any(is_other) {
        *had = wanted;
    } else {
        bring(wanted, had, reading);
    }
}

#[cfg(test)]
mod tests;
