//! Whether two values are equal.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    Budget, Result, cost,
    lists::{ItemKey, key_of},
    operators::numbers,
    value::{Key, Value},
};
use crate::schema::ListKind;

/// Whether two values are equal. Those of different types are not, but for numbers.
pub(super) fn equal<'a>(left: &Value<'a>, right: &Value<'a>, budget: &Budget) -> Result<bool> {
    let mut steps = 0;
    let is_equal = same(left, right, &mut steps);
    budget.spend(cost::tenth(steps))?;
    Ok(is_equal)
}

/// The same, and how many values and characters were looked at.
fn same<'a>(left: &Value<'a>, right: &Value<'a>, steps: &mut u64) -> bool {
    *steps += 1;
    match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Text(left), Value::Text(right)) => {
            *steps += left.len().min(right.len()) as u64;
            left == right
        }
        (Value::Array(left), Value::Array(right)) if left.is_same(*right) => true,
        (Value::List(_) | Value::Array(_), Value::List(_) | Value::Array(_)) => same_lists(left, right, steps),
        (Value::Object(left), Value::Object(right)) if left.is_same(*right) => true,
        (Value::Map(_) | Value::Object(_), Value::Map(_) | Value::Object(_)) => same_maps(left, right, steps),
        (Value::Optional(left), Value::Optional(right)) => match (left, right) {
            (None, None) => true,
            (Some(left), Some(right)) => same(left, right, steps),
            _ => false,
        },
        (Value::Type(left), Value::Type(right)) => left == right,
        (Value::Other(left), Value::Other(right)) => left == right,
        _ => numbers(left, right) == Some(Ordering::Equal),
    }
}

fn same_maps<'a>(left: &Value<'a>, right: &Value<'a>, steps: &mut u64) -> bool {
    if left.size() != right.size() {
        return false;
    }
    if let (Value::Object(left), Value::Object(right)) = (left, right)
        && !left.has_equal_rest(*right)
    {
        return false;
    }
    let mut has_equal = |key: &Key, value: &Value<'a>| right.entry(key).is_some_and(|other| same(value, &other, steps));
    left.entries().unwrap_or_default().iter().all(|(key, value)| has_equal(key, value))
}

fn same_lists<'a>(left: &Value<'a>, right: &Value<'a>, steps: &mut u64) -> bool {
    if left.size() != right.size() {
        return false;
    }
    let (own, other) = (left.items().unwrap_or_default(), right.items().unwrap_or_default());
    let kind = if let Value::Array(left) = left { left.kind() } else { &ListKind::Atomic };
    *steps += own.len() as u64;
    let in_any_order = match kind {
        ListKind::Atomic => None,
        ListKind::Set => same_sets(&own, &other),
        ListKind::Map(keys) => same_by_keys(&own, &other, keys, steps),
    };
    in_any_order.unwrap_or_else(|| own.iter().zip(&other).all(|(left, right)| same(left, right, steps)))
}

/// Whether two sets have the same items, in whatever order; nothing where items can not be told apart so.
fn same_sets(left: &[Value<'_>], right: &[Value<'_>]) -> Option<bool> {
    let keys = left.iter().map(Value::as_key).collect::<Option<BTreeSet<_>>>()?;
    let others = right.iter().map(Value::as_key).collect::<Option<Vec<_>>>()?;
    Some(others.iter().all(|key| keys.contains(key)))
}

/// The same of lists whose items have keys.
fn same_by_keys<'a>(left: &[Value<'a>], right: &[Value<'a>], keys: &[String], steps: &mut u64) -> Option<bool> {
    let keyed = |item: &Value<'a>| key_of(item, keys);
    let own: BTreeMap<ItemKey, &Value<'a>> =
        left.iter().map(|item| Some((keyed(item)?, item))).collect::<Option<_>>()?;
    let others = right.iter().map(|item| Some((keyed(item)?, item))).collect::<Option<Vec<_>>>()?;
    Some(others.iter().all(|(key, item)| own.get(key).is_some_and(|own| same(own, item, steps))))
}
