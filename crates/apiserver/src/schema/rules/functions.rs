//! The functions that rules can call: CEL's and Kubernetes'.

use std::sync::{Arc, LazyLock};

use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, FunctionContext, IdedExpr, ResolveResult, Value,
        common::ast::{CallExpr, Expr, LiteralValue},
    },
};

/// The longest list that `lists.range` makes: the interpreter's own would take all memory there is.
const MAX_RANGE: i64 = 100_000;

/// Every function, registered once.
pub(super) static ALL: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default().with_all();
    context.add_function("lists.range", range);
    context.add_function("dyn", |value: Value| -> ResolveResult { Ok(value) });
    context
});

fn range(context: &FunctionContext, length: i64) -> ResolveResult {
    match length {
        0..=MAX_RANGE => Ok(Value::List(Arc::new((0..length).map(Value::Int).collect()))),
        _ => Err(context.error(format!("a range has from 0 to {MAX_RANGE} elements"))),
    }
}

/// Whether there is a function of this name. The interpreter has no way to ask but to call it, which is harmless:
/// without arguments they all fail.
pub(super) fn exists(name: &str) -> bool {
    let answer = call(name, Vec::new());
    !matches!(answer, Err(ExecutionError::UndeclaredReference(missing)) if *missing == name)
}

/// Makes a value of a text, as a function of the language does; the text itself if it can not.
pub(super) fn made_of(text: &str, function: &str) -> Value {
    let literal = Expr::Literal(LiteralValue::String(text.into()));
    call(function, vec![IdedExpr { id: 0, expr: literal }]).unwrap_or_else(|_| Value::from(text))
}

fn call(name: &str, args: Vec<IdedExpr>) -> ResolveResult {
    let call = Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args });
    Value::resolve(&IdedExpr { id: 0, expr: call }, &ALL)
}
