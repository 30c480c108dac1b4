//! What evaluations cost, in the units that Kubernetes counts in, and how much they may.

use std::cell::Cell;

use kube_cel::cel::common::ast::operators as op;

use super::{Error, Result, value::Value};

/// What one evaluation may cost.
const COST_OF_ONE: u64 = 1_000_000;
/// What is said where one evaluation has cost too much.
pub(crate) const TOO_EXPENSIVE: &str = "operation cancelled: actual cost limit exceeded";
/// What is said where all together have.
pub(crate) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// What evaluations may still cost.
#[derive(Debug)]
pub(crate) struct Budget {
    /// What is left for this expression.
    left: Cell<u64>,
    /// What is left for all.
    left_for_all: Cell<u64>,
    /// What an expression has run into, which then has no value, whatever it makes of parts without one.
    exceeded: Cell<Option<&'static str>>,
}

impl Budget {
    pub(crate) fn new(cost: u64) -> Self {
        Self { left: Cell::new(0), left_for_all: Cell::new(cost), exceeded: Cell::new(None) }
    }

    /// Evaluates an expression with a limit of its own, also in the middle of another.
    pub(super) fn within_limit<T>(&self, evaluate: impl FnOnce() -> Result<T>) -> Result<T> {
        let outer = self.left.replace(COST_OF_ONE);
        let value = evaluate();
        self.left.set(outer);
        match self.exceeded.get() {
            Some(limit) => {
                self.exceeded.set(Some(limit).filter(|limit| *limit == OUT_OF_BUDGET));
                Err(Error(limit.to_owned()))
            }
            None => value,
        }
    }

    /// Takes a cost from what is left.
    pub(crate) fn spend(&self, cost: u64) -> Result<()> {
        let take = |left: &Cell<u64>| left.get().checked_sub(cost).inspect(|less| left.set(*less));
        if self.exceeded.get().is_none() {
            if take(&self.left).is_none() {
                self.exceeded.set(Some(TOO_EXPENSIVE));
            } else if take(&self.left_for_all).is_none() {
                self.exceeded.set(Some(OUT_OF_BUDGET));
            }
        }
        self.exceeded.get().map_or(Ok(()), |limit| Err(Error(limit.to_owned())))
    }
}

/// What a function or an operator costs that is applied to these values.
pub(super) fn of_call(name: &str, args: &[&Value<'_>]) -> u64 {
    let size = |at: usize| args.get(at).map_or(0, |arg| size(arg));
    match name {
        "startsWith" | "endsWith" | "bytes" | "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr"
        | "isCIDR" | "ip" | "isIP" | "quantity" | "isQuantity" | "semver" | "isSemver" | "strings.quote" => {
            tenth(size(0))
        }
        "split" | "ip.isCanonical" => tenth(2 * size(0)),
        // What is made can be far longer than what it is made of.
        "replace" => tenth(2 * size(0)) + tenth(replaced_length(args)),
        "join" => tenth(2 * (text_length(args) + size(0) * args.get(1).map_or(0, |by| self::size(by)))),
        "format" => tenth(size(0) + text_length(args.get(1..).unwrap_or_default())),
        "matches" | "find" | "findAll" => tenth(1 + size(0)) * size(1).div_ceil(4),
        "contains" => tenth(size(0)) * tenth(size(1)),
        op::IN if args.get(1).is_some_and(|container| container.is_list()) => size(1),
        "sets.contains" | "sets.intersects" | "sets.equivalent" => size(0).max(1) * size(1).max(1),
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => size(0),
        op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS => tenth(size(0).min(size(1))),
        op::ADD => match args {
            [Value::Text(_) | Value::Other(_), _] => tenth(size(0) + size(1)),
            // Both are copied.
            _ => 1 + (size(0) + size(1)) / 4,
        },
        _ => 1,
    }
}

/// What handing a value over costs, which copies all of it.
pub(super) fn of_copy(value: &Value<'_>) -> u64 {
    let inside: u64 = match value {
        Value::List(_) | Value::Array(_) => value.items().into_iter().flatten().map(|item| of_copy(&item)).sum(),
        Value::Map(_) | Value::Object(_) => value.entries().into_iter().flatten().map(|(_, item)| of_copy(&item)).sum(),
        _ => return 0,
    };
    1 + inside
}

/// How long the texts in the first of these values are, if it is a list.
fn text_length(args: &[&Value<'_>]) -> u64 {
    args.first().and_then(|list| list.items()).into_iter().flatten().map(|item| size(&item)).sum()
}

/// How long a text becomes in which another is replaced.
fn replaced_length(args: &[&Value<'_>]) -> u64 {
    match args {
        [Value::Text(text), Value::Text(from), Value::Text(to), ..] => {
            text.matches(from.as_ref()).count() as u64 * to.len() as u64
        }
        _ => 0,
    }
}

fn size(value: &Value<'_>) -> u64 {
    match value {
        Value::Optional(Some(inner)) => size(inner),
        _ => value.size().map_or(1, |size| size as u64),
    }
}

/// What going through so many characters costs.
pub(super) fn tenth(size: u64) -> u64 {
    size.div_ceil(10)
}
