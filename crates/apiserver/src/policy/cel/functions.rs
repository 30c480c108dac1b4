//! The functions that expressions can call.

use std::sync::LazyLock;

use kube_cel::{
    KubeCelExt,
    cel::{
        self, Context, ExecutionError, IdedExpr,
        common::ast::{CallExpr, Expr, operators as op},
    },
};

use super::{Budget, Error, Result, authorizer, error, no_such_overload, value::Value};

/// What the libraries have, registered once.
static LIBRARY: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());
/// The longest list that `lists.range` makes: the library's own would take all memory there is.
const MAX_RANGE: i64 = 1000;
/// The first halves of names of functions.
const LIBRARIES: [&str; 9] = ["optional", "cel", "math", "sets", "lists", "strings", "base64", "url", "format"];
/// The types that can be named.
const TYPES: [&str; 10] = ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"];
/// What is a function only here.
const OWN: [&str; 24] = [
    "size",
    "startsWith",
    "endsWith",
    "contains",
    "type",
    "dyn",
    "hasValue",
    "value",
    "or",
    "orValue",
    "optMap",
    "optFlatMap",
    "optional.of",
    "optional.none",
    "optional.ofNonZeroValue",
    "cel.bind",
    "group",
    "resource",
    "subresource",
    "check",
    "allowed",
    "errored",
    "error",
    "reason",
];
const OF_CHECKS: [&str; 6] = ["path", "namespace", "name", "serviceAccount", "fieldSelector", "labelSelector"];

/// Whether it is an operator between two values, which are calls of names that are no identifiers.
pub(super) fn is_operator(name: &str) -> bool {
    [op::ADD, op::SUBSTRACT, op::MULTIPLY, op::DIVIDE, op::MODULO, op::IN].contains(&name)
        || [op::EQUALS, op::NOT_EQUALS, op::LESS, op::LESS_EQUALS, op::GREATER, op::GREATER_EQUALS].contains(&name)
}

pub(super) fn is_library(name: &str) -> bool {
    LIBRARIES.contains(&name)
}

pub(super) fn type_named(name: &str) -> Option<&'static str> {
    TYPES.iter().find(|known| **known == name).copied()
}

/// Whether there is a function of this name. The library has no way to ask but to call it, which is harmless: without
/// arguments they all fail.
pub(super) fn exists(name: &str) -> bool {
    if OWN.contains(&name) || OF_CHECKS.contains(&name) {
        return true;
    }
    let call = Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args: Vec::new() });
    let answer = cel::Value::resolve(&IdedExpr { id: 0, expr: call }, &LIBRARY);
    !matches!(answer, Err(ExecutionError::UndeclaredReference(missing)) if *missing == name)
}

/// The value of a function, called on a value or not.
pub(super) fn call<'a>(
    name: &str,
    target: Option<&Value<'a>>,
    args: &[Value<'a>],
    budget: &Budget,
) -> Result<Value<'a>> {
    if let Some(Value::Check(_) | Value::Decision(_)) = target {
        return authorizer::call(name, target, args, budget);
    }
    if let Some(Value::Optional(optional)) = target {
        return of_optional(name, optional.as_deref(), args);
    }
    match (name, target, args) {
        ("size", Some(value), []) | ("size", None, [value]) if value.size().is_some() => {
            Ok(Value::Int(i64::try_from(value.size().unwrap_or_default()).unwrap_or(i64::MAX)))
        }
        ("startsWith", Some(Value::Text(text)), [Value::Text(prefix)]) => {
            Ok(Value::Bool(text.starts_with(prefix.as_ref())))
        }
        ("endsWith", Some(Value::Text(text)), [Value::Text(suffix)]) => {
            Ok(Value::Bool(text.ends_with(suffix.as_ref())))
        }
        ("contains", Some(Value::Text(text)), [Value::Text(part)]) => Ok(Value::Bool(text.contains(part.as_ref()))),
        ("type", None, [value]) => Ok(Value::Type(value.type_name())),
        ("dyn", None, [value]) => Ok(value.clone()),
        ("optional.none", None, []) => Ok(Value::Optional(None)),
        ("optional.of", None, [value]) => Ok(Value::some(value.clone())),
        ("optional.ofNonZeroValue", None, [value]) => {
            Ok(if is_zero(value) { Value::Optional(None) } else { Value::some(value.clone()) })
        }
        ("lists.range", None, [Value::Int(length)]) if !(0..=MAX_RANGE).contains(length) => {
            error(format!("a range has from 0 to {MAX_RANGE} elements"))
        }
        _ => library(name, target, args),
    }
}

fn of_optional<'a>(name: &str, optional: Option<&Value<'a>>, args: &[Value<'a>]) -> Result<Value<'a>> {
    match (name, args) {
        ("hasValue", []) => Ok(Value::Bool(optional.is_some())),
        ("value", []) => optional.cloned().map_or_else(|| error("optional.none() dereference"), Ok),
        ("orValue", [other]) => Ok(optional.unwrap_or(other).clone()),
        ("or", [other @ Value::Optional(_)]) => {
            Ok(optional.map_or_else(|| other.clone(), |own| Value::some(own.clone())))
        }
        _ => no_such_overload(),
    }
}

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) | Value::UInt(0) | Value::Optional(None) => true,
        Value::Double(number) => *number == 0.0,
        _ => value.size() == Some(0),
    }
}

/// Calls a function or an operator of the libraries.
pub(super) fn library<'a>(name: &str, target: Option<&Value<'a>>, args: &[Value<'a>]) -> Result<Value<'a>> {
    let mut context = LIBRARY.new_inner_scope();
    let mut hand_over = |name: String, value: &Value<'a>| -> Result<IdedExpr> {
        context.add_variable_from_value(name.clone(), value.to_library()?);
        Ok(IdedExpr { id: 0, expr: Expr::Ident(name) })
    };
    let target = target.map(|target| hand_over("@this".to_owned(), target)).transpose()?.map(Box::new);
    let args = args.iter().enumerate().map(|(at, arg)| hand_over(format!("@{at}"), arg)).collect::<Result<_>>()?;
    let call = Expr::Call(CallExpr { func_name: name.to_owned(), target, args });
    match cel::Value::resolve(&IdedExpr { id: 0, expr: call }, &context) {
        Ok(value) => Ok(Value::from_library(value)),
        Err(ExecutionError::UndeclaredReference(_) | ExecutionError::NoSuchOverload) => no_such_overload(),
        Err(ExecutionError::FunctionError { message, .. }) => error(message),
        Err(other) => Err(Error(other.to_string())),
    }
}
