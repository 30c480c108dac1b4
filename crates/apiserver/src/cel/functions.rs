//! The functions that expressions can call.

use std::{rc::Rc, sync::LazyLock};

use kube_cel::{
    KubeCelExt,
    cel::{
        self, Context, ExecutionError, IdedExpr,
        common::ast::{CallExpr, Expr, SelectExpr, operators as op},
    },
};

use super::{Budget, Error, Result, cost, error, lists, no_such_overload, texts, value::Value};

/// What the libraries have, registered once.
static LIBRARY: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());
/// The longest list that `lists.range` makes: the library's own would take all memory there is.
const MAX_RANGE: i64 = 100_000;
/// The first halves of names of functions.
const LIBRARIES: [&str; 10] = ["optional", "cel", "math", "sets", "lists", "strings", "base64", "url", "format", "ip"];
/// The types that can be named.
const TYPES: [&str; 11] =
    ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "optional_type"];
/// Those whose names have points.
const QUALIFIED_TYPES: [&str; 4] = ["google.protobuf.Timestamp", "google.protobuf.Duration", "net.IP", "net.CIDR"];
/// What is a function only here.
const OWN: [&str; 27] = [
    "bool",
    "unwrapOpt",
    "optional.unwrap",
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

/// The type that names with points between them are the name of.
pub(super) fn qualified_type(select: &SelectExpr) -> Option<&'static str> {
    let is_called = |name: &&str| {
        name.rsplit_once('.').is_some_and(|(prefix, last)| last == select.field && prefix_is(&select.operand, prefix))
    };
    QUALIFIED_TYPES.into_iter().find(|name| !select.test && is_called(name))
}

fn prefix_is(tree: &IdedExpr, prefix: &str) -> bool {
    match (&tree.expr, prefix.rsplit_once('.')) {
        (Expr::Ident(name), None) => name == prefix,
        (Expr::Select(select), Some((before, last))) => select.field == last && prefix_is(&select.operand, before),
        _ => false,
    }
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
    if let Some(Value::Foreign(foreign)) = target {
        return foreign.call(name, args, budget);
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
        ("optional.unwrap", None, [list]) | ("unwrapOpt", Some(list), []) => lists::unwrapped(list),
        ("bool", None, [Value::Bool(truth)]) => Ok(Value::Bool(*truth)),
        ("bool", None, [Value::Text(text)]) => texts::as_truth(text),
        ("int", None, [Value::Text(text)]) => texts::as_number(text),
        ("charAt", Some(Value::Text(text)), [Value::Int(at)]) => texts::char_at(text, *at),
        ("substring", Some(Value::Text(text)), [Value::Int(start)]) => texts::substring(text, *start, None),
        ("substring", Some(Value::Text(text)), [Value::Int(start), Value::Int(end)]) => {
            texts::substring(text, *start, Some(*end))
        }
        ("split", Some(Value::Text(text)), [Value::Text(by)]) => Ok(texts::split(text, by)),
        ("slice", Some(list), [Value::Int(start), Value::Int(end)]) => lists::slice(list, *start, *end),
        ("@sortByAssociatedKeys", Some(list), [keys]) => lists::sorted_by(list, keys),
        ("lists.range", None, [Value::Int(length)]) => match u64::try_from(*length) {
            Ok(count) if *length <= MAX_RANGE => {
                budget.spend(count)?;
                Ok(Value::List(Rc::new((0..*length).map(Value::Int).collect())))
            }
            _ => error(format!("a range has from 0 to {MAX_RANGE} elements")),
        },
        ("string", None, [value]) => texts::written(value).map_or_else(|| library(name, target, args), Ok),
        _ => {
            budget.spend(target.into_iter().chain(args).map(cost::of_copy).sum())?;
            library(name, target, args)
        }
    }
}

fn of_optional<'a>(name: &str, optional: Option<&Value<'a>>, args: &[Value<'a>]) -> Result<Value<'a>> {
    match (name, args) {
        ("hasValue", []) => Ok(Value::Bool(optional.is_some())),
        ("value", []) => optional.cloned().map_or_else(|| error("optional.none() dereference"), Ok),
        // Those that have a value were asked before the other was looked at.
        ("orValue", [other]) | ("or", [other @ Value::Optional(_)]) => Ok(other.clone()),
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
