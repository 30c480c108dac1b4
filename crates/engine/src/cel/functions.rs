//! The functions that expressions can call: CEL's, Kubernetes', and those about clusters and objects.

use std::sync::{Arc, LazyLock};

use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, FunctionContext, IdedExpr, ResolveResult, Value,
        common::ast::{CallExpr, Expr},
        extractors::This,
        objects::Key,
    },
};

use super::{Scope, meter::Scale};

/// The hidden variable with the cluster's scores, and the function that looks into it. An author can not write this name.
pub(super) const SCORES: &str = "@scores";
/// The longest list that `lists.range` makes: the interpreter's own would take all memory there is.
const MAX_RANGE: i64 = 1000;
/// The function that OCM has for rules about objects, and for nothing else.
const HAS_CONDITIONS: &str = "hasConditions";

/// Every function, registered once.
pub(super) static ALL: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default().with_all();
    context.add_function(SCORES, scores);
    context.add_function("parseJSON", parse_json);
    context.add_function(HAS_CONDITIONS, has_conditions);
    context.add_function("lists.range", range);
    for scale in Scale::ALL {
        context.add_function(scale.function(), move |value: Value| -> ResolveResult {
            scale.weigh(&value)?;
            Ok(value)
        });
    }
    context
});

/// Whether there is a function of this name for what an expression is about. The interpreter has no way to ask but to call it, which is harmless:
/// without arguments they all fail.
pub(super) fn exists(name: &str, scope: Scope) -> bool {
    if name == HAS_CONDITIONS && scope == Scope::Cluster {
        return false;
    }
    let call = Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args: Vec::new() });
    let answer = Value::resolve(&IdedExpr { id: 0, expr: call }, &ALL);
    !matches!(answer, Err(ExecutionError::UndeclaredReference(missing)) if *missing == name)
}

/// The scores of one AddOnPlacementScore; none where there is no such object, or it is out of date.
fn scores(context: &FunctionContext, resource: Arc<String>) -> ResolveResult {
    let all = context.ptx.get_variable(SCORES).ok_or_else(|| context.error("there is no cluster"))?;
    let all = Value::try_from(all.as_ref())?;
    Scale::Linear.weigh(&all)?;
    match all {
        Value::Map(all) => {
            Ok(all.map.get(&Key::from(resource)).cloned().unwrap_or_else(|| Value::List(Arc::default())))
        }
        _ => Err(context.error("there are no scores")),
    }
}

/// `'{"a": 1}'.parseJSON()`.
fn parse_json(context: &FunctionContext, This(text): This<Arc<String>>) -> ResolveResult {
    serde_json::from_str(&text).map(super::value::from_json).map_err(|error| context.error(error))
}

/// `hasConditions(object.status)`: whether it has a list of conditions that is not empty, whatever it is.
fn has_conditions(status: Value) -> bool {
    let Value::Map(status) = status else { return false };
    matches!(status.map.get(&Key::from("conditions".to_owned())), Some(Value::List(conditions)) if !conditions.is_empty())
}

fn range(context: &FunctionContext, length: i64) -> ResolveResult {
    match length {
        0..=MAX_RANGE => Ok(Value::List(Arc::new((0..length).map(Value::Int).collect()))),
        _ => Err(context.error(format!("a range has from 0 to {MAX_RANGE} elements"))),
    }
}
