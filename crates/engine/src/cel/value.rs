//! Values of the API as values of the interpreter.

use std::{collections::HashMap, sync::Arc};

use drover_api::cluster::Score;
use kube_cel::cel::Value;
use serde_json::Number;

/// A JSON value. The interpreter's own conversion makes unsigned numbers of all that are not negative, which are then
/// equal to no literal, so this one makes signed numbers of them, as an API server does. Null is left out of objects.
pub(super) fn from_json(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(truth) => Value::Bool(truth),
        serde_json::Value::Number(number) => from_number(&number),
        serde_json::Value::String(text) => Value::String(Arc::new(text)),
        serde_json::Value::Array(items) => Value::List(Arc::new(items.into_iter().map(from_json).collect())),
        serde_json::Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            fields.map(|(name, value)| (name, from_json(value))).collect::<HashMap<_, _>>().into()
        }
    }
}

fn from_number(number: &Number) -> Value {
    match number.as_i64() {
        Some(whole) => Value::Int(whole),
        None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// Scores by the name of their AddOnPlacementScore: lists of `{name, value}`.
pub(super) fn from_scores<'a>(scores: impl IntoIterator<Item = (&'a str, &'a [Score])>) -> Value {
    let of_resource = |scores: &[Score]| Value::List(Arc::new(scores.iter().map(from_score).collect()));
    scores.into_iter().map(|(name, scores)| (name, of_resource(scores))).collect::<HashMap<_, _>>().into()
}

fn from_score(score: &Score) -> Value {
    HashMap::from([("name", Value::from(score.name.as_str())), ("value", Value::from(score.value))]).into()
}
