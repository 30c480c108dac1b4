//! What an evaluation may cost.
//!
//! The interpreter counts nothing, and copies whatever it touches. So expressions are rewritten when they are compiled: what
//! goes into a call, a list or a round of a loop passes a scale first, which takes the weight from what the
//! evaluation may spend. When nothing is left, every scale fails, loops end, and the expression does not hold. What is on
//! hand at one time was on a scale, or was made of that by one call, so memory is bounded with time.

use std::cell::Cell;

use kube_cel::cel::{ExecutionError, Value, objects::Key};

/// What one evaluation may spend: on an expression over some hundred claims a fraction of it, and some ten milliseconds at most.
const ALLOWANCE: u64 = 500_000;
/// How many bytes of text weigh as much as one value.
const BYTES: usize = 16;
/// How much a character of a regular expression weighs, which is compiled for each use.
const PATTERN_CHARACTER: u64 = 8;

thread_local! {
    /// What the evaluation on this thread may still spend. An evaluation neither waits nor moves to another thread.
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

/// How a value is weighed before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// What is done with it takes a time in proportion to it.
    Linear,
    /// What is done with it compares each of its parts with others, or repeats it.
    Square,
    /// It is a regular expression.
    Pattern,
}

impl Scale {
    pub(super) const ALL: [Self; 3] = [Self::Linear, Self::Square, Self::Pattern];

    /// The function that weighs in this way. An author can not write this name.
    pub(super) fn function(self) -> &'static str {
        match self {
            Self::Linear => "@weigh",
            Self::Square => "@weigh_square",
            Self::Pattern => "@weigh_pattern",
        }
    }

    /// The scale for what goes into a function.
    pub(super) fn of(function: &str) -> Self {
        match function {
            "replace" | "join" | "format" | "distinct" | "sets.contains" | "sets.equivalent" | "sets.intersects" => {
                Self::Square
            }
            _ => Self::Linear,
        }
    }

    /// Takes the weight of a value from what is left.
    pub(super) fn weigh(self, value: &Value) -> Result<(), ExecutionError> {
        let weight = weight(value);
        spend(match (self, value) {
            (Self::Linear, _) => weight,
            (Self::Square, _) => weight.saturating_mul(weight),
            (Self::Pattern, Value::String(pattern)) => pattern_weight(pattern),
            (Self::Pattern, _) => 1,
        })
    }
}

/// Evaluates with a full allowance, and says whether it was enough.
pub(super) fn within_allowance<T>(evaluate: impl FnOnce() -> T) -> Option<T> {
    LEFT.set(ALLOWANCE);
    let value = evaluate();
    (LEFT.get() > 0).then_some(value)
}

/// Takes something from what is left.
pub(super) fn spend(weight: u64) -> Result<(), ExecutionError> {
    let left = LEFT.get().saturating_sub(weight);
    LEFT.set(left);
    match left {
        0 => Err(ExecutionError::function_error("cost", "the expression costs more than is allowed")),
        _ => Ok(()),
    }
}

/// One for each value, and for texts by their length.
fn weight(value: &Value) -> u64 {
    match value {
        Value::String(text) => text_weight(text.len()),
        Value::Bytes(bytes) => text_weight(bytes.len()),
        Value::List(items) => 1 + items.iter().map(weight).sum::<u64>(),
        Value::Map(map) => 1 + map.map.iter().map(|(key, value)| key_weight(key) + weight(value)).sum::<u64>(),
        _ => 1,
    }
}

fn key_weight(key: &Key) -> u64 {
    match key {
        Key::String(text) => text_weight(text.len()),
        _ => 1,
    }
}

fn text_weight(length: usize) -> u64 {
    1 + u64::try_from(length / BYTES).unwrap_or(u64::MAX / 2)
}

/// The characters of a regular expression, times all counts of repetition in it: more than what it is compiled to.
fn pattern_weight(pattern: &str) -> u64 {
    let length = u64::try_from(pattern.len()).unwrap_or(u64::MAX).saturating_add(1).saturating_mul(PATTERN_CHARACTER);
    let counts = pattern.split('{').skip(1).filter_map(|after| after.split_once('}')).map(|(counts, _)| counts);
    let most = counts.filter_map(|counts| counts.split(',').filter_map(|count| count.trim().parse::<u64>().ok()).max());
    most.fold(length, |weight, count| weight.saturating_mul(count.max(1)))
}
