//! What operators do with values.

use std::{borrow::Cow, cmp::Ordering, rc::Rc};

use kube_cel::cel::common::ast::operators as op;

use super::{
    Budget, Error, Result,
    equality::equal,
    error, functions,
    lists::{contained, sum},
    no_such_overload,
    value::{Key, Value, as_double},
};

/// How two numbers compare, of whatever type; nothing if one is none.
pub(super) fn numbers(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        (Value::UInt(left), Value::UInt(right)) => Some(left.cmp(right)),
        (Value::Int(left), Value::UInt(right)) => {
            Some(u64::try_from(*left).map_or(Ordering::Less, |left| left.cmp(right)))
        }
        (Value::UInt(left), Value::Int(right)) => {
            Some(u64::try_from(*right).map_or(Ordering::Greater, |right| left.cmp(&right)))
        }
        _ => double(left)?.partial_cmp(&double(right)?),
    }
}

fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Int(number) => Some(as_double(*number)),
        #[expect(clippy::cast_precision_loss, reason = "that is how numbers of two types are compared")]
        Value::UInt(number) => Some(*number as f64),
        Value::Double(number) => Some(*number),
        _ => None,
    }
}

/// The value of an operator between two values.
pub(super) fn binary<'a>(name: &str, left: &Value<'a>, right: &Value<'a>, budget: &Budget) -> Result<Value<'a>> {
    match name {
        op::EQUALS => Ok(Value::Bool(equal(left, right, budget)?)),
        op::NOT_EQUALS => Ok(Value::Bool(!equal(left, right, budget)?)),
        op::IN => contained(left, right, budget),
        _ if matches!(left, Value::Other(_)) || matches!(right, Value::Other(_)) => {
            functions::library(name, None, &[left.clone(), right.clone()])
        }
        op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS => {
            let order = compare(left, right)?;
            Ok(Value::Bool(match name {
                op::LESS => order == Some(Ordering::Less),
                op::LESS_EQUALS => matches!(order, Some(Ordering::Less | Ordering::Equal)),
                op::GREATER => order == Some(Ordering::Greater),
                _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            }))
        }
        _ => arithmetic(name, left, right),
    }
}

/// How two values compare; nothing for numbers that are none.
pub(super) fn compare(left: &Value<'_>, right: &Value<'_>) -> Result<Option<Ordering>> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => Ok(Some(left.cmp(right))),
        (Value::Bool(left), Value::Bool(right)) => Ok(Some(left.cmp(right))),
        _ if double(left).is_some() && double(right).is_some() => Ok(numbers(left, right)),
        (Value::Other(left), Value::Other(right)) => match left.partial_cmp(right) {
            Some(order) => Ok(Some(order)),
            None => no_such_overload(),
        },
        _ => no_such_overload(),
    }
}

fn arithmetic<'a>(name: &str, left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => {
            let (left, right) = (*left, *right);
            refuse_zero(name, right == 0)?;
            let value = match name {
                op::ADD => left.checked_add(right),
                op::SUBSTRACT => left.checked_sub(right),
                op::MULTIPLY => left.checked_mul(right),
                op::DIVIDE => left.checked_div(right),
                op::MODULO => left.checked_rem(right),
                _ => return no_such_overload(),
            };
            value.map(Value::Int).ok_or_else(|| Error("integer overflow".to_owned()))
        }
        (Value::UInt(left), Value::UInt(right)) => {
            let (left, right) = (*left, *right);
            refuse_zero(name, right == 0)?;
            let value = match name {
                op::ADD => left.checked_add(right),
                op::SUBSTRACT => left.checked_sub(right),
                op::MULTIPLY => left.checked_mul(right),
                op::DIVIDE => left.checked_div(right),
                op::MODULO => left.checked_rem(right),
                _ => return no_such_overload(),
            };
            value.map(Value::UInt).ok_or_else(|| Error("unsigned integer overflow".to_owned()))
        }
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(match name {
            op::ADD => left + right,
            op::SUBSTRACT => left - right,
            op::MULTIPLY => left * right,
            op::DIVIDE => left / right,
            _ => return no_such_overload(),
        })),
        (Value::Text(left), Value::Text(right)) if name == op::ADD => {
            Ok(Value::Text(Cow::Owned(format!("{left}{right}"))))
        }
        _ if name == op::ADD => sum(left, right),
        _ => no_such_overload(),
    }
}

fn refuse_zero(name: &str, is_zero: bool) -> Result<()> {
    match name {
        op::DIVIDE if is_zero => error("division by zero"),
        op::MODULO if is_zero => error("modulus by zero"),
        _ => Ok(()),
    }
}

/// The value of an operator before a value.
pub(super) fn unary<'a>(name: &str, value: &Value<'a>) -> Result<Value<'a>> {
    match (name, value) {
        (op::LOGICAL_NOT, Value::Bool(truth)) => Ok(Value::Bool(!truth)),
        (op::NEGATE, Value::Int(number)) => {
            number.checked_neg().map(Value::Int).ok_or_else(|| Error("integer overflow".to_owned()))
        }
        (op::NEGATE, Value::Double(number)) => Ok(Value::Double(-number)),
        (op::NEGATE, Value::Other(_)) => functions::library(name, None, std::slice::from_ref(value)),
        _ => no_such_overload(),
    }
}

/// What is at an index of a list, or for a key of a map.
pub(super) fn index<'a>(container: &Value<'a>, index: &Value<'a>) -> Result<Value<'a>> {
    if let Value::Optional(optional) = container {
        let Some(container) = optional else { return Ok(Value::Optional(None)) };
        return self::index(container, index).map(Value::some);
    }
    if container.is_list() {
        let found = find_item(container, index)?;
        return found.map_or_else(|| error(format!("index out of bounds: {}", shown(index))), Ok);
    }
    let Some(key) = index.as_key() else { return no_such_overload() };
    match container.entry(&key) {
        Some(value) => Ok(value),
        None => error(format!("no such key: {}", shown(index))),
    }
}

/// The same, where it may not be there.
pub(super) fn optional_index<'a>(container: &Value<'a>, index: &Value<'a>) -> Result<Value<'a>> {
    if let Value::Optional(optional) = container {
        return optional.as_ref().map_or(Ok(Value::Optional(None)), |container| optional_index(container, index));
    }
    if container.is_list() {
        return Ok(Value::Optional(find_item(container, index)?.map(Rc::new)));
    }
    let found = index.as_key().and_then(|key| container.entry(&key));
    Ok(Value::Optional(found.map(Rc::new)))
}

fn find_item<'a>(list: &Value<'a>, index: &Value<'a>) -> Result<Option<Value<'a>>> {
    let Some(Key::Int(at)) = index.as_key() else { return no_such_overload() };
    let Ok(at) = usize::try_from(at) else { return Ok(None) };
    Ok(match list {
        Value::List(items) => items.get(at).cloned(),
        Value::Array(items) => items.get(at),
        _ => None,
    })
}

fn shown(value: &Value<'_>) -> String {
    value.as_key().map_or_else(|| value.type_name().to_owned(), |key| key.shown())
}
