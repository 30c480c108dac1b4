//! The value of an expression.

use std::{borrow::Cow, cell::Cell, rc::Rc, sync::Arc};

use kube_cel::cel::{
    self,
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr,
        operators as op,
    },
};

use super::{Error, Result, error, functions, no_such_overload, operators, value::Value};

/// What names mean that an expression does not give a meaning itself.
pub(in crate::policy) trait Names<'a> {
    /// The value of a name.
    fn value(&self, name: &str) -> Option<Value<'a>>;
    /// The value of a variable of the policy.
    fn variable(&self, name: &str) -> Result<Value<'a>>;
}

/// What evaluations may still cost, roughly in the units that Kubernetes counts in.
#[derive(Debug)]
pub(in crate::policy) struct Budget {
    /// What is left for this expression.
    left: Cell<u64>,
    /// What is left for all.
    left_for_all: Cell<u64>,
}

impl Budget {
    pub(in crate::policy) fn new(cost: u64) -> Self {
        Self { left: Cell::new(0), left_for_all: Cell::new(cost) }
    }

    /// Evaluates an expression with a limit of its own, also in the middle of another.
    pub(super) fn within<T>(&self, limit: u64, evaluate: impl FnOnce() -> Result<T>) -> Result<T> {
        let outer = self.left.replace(limit);
        let value = evaluate();
        self.left.set(outer);
        value
    }

    /// Takes a cost from what is left.
    pub(super) fn spend(&self, cost: u64) -> Result<()> {
        let take = |left: &Cell<u64>| left.get().checked_sub(cost).inspect(|less| left.set(*less));
        if take(&self.left).is_none() {
            return error("operation cancelled: actual cost limit exceeded");
        }
        if take(&self.left_for_all).is_none() {
            return error(
                "validation failed due to running out of cost budget, no further validation rules will be run",
            );
        }
        Ok(())
    }
}

/// One evaluation.
pub(super) struct Evaluation<'a, 'e> {
    names: &'e dyn Names<'a>,
    budget: &'e Budget,
    /// The names that macros have given a meaning to, the innermost last.
    locals: Vec<(&'a str, Value<'a>)>,
}

impl<'a, 'e> Evaluation<'a, 'e> {
    pub(super) fn new(names: &'e dyn Names<'a>, budget: &'e Budget) -> Self {
        Self { names, budget, locals: Vec::new() }
    }

    pub(super) fn value(&mut self, tree: &'a IdedExpr) -> Result<Value<'a>> {
        match &tree.expr {
            Expr::Literal(literal) => Ok(literal_value(literal)),
            Expr::Ident(name) => self.ident(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(_) | Expr::Unspecified => no_such_overload(),
        }
    }

    fn ident(&self, name: &'a str) -> Result<Value<'a>> {
        self.budget.spend(1)?;
        if let Some((_, value)) = self.locals.iter().rev().find(|(local, _)| *local == name) {
            return Ok(value.clone());
        }
        let value = self.names.value(name).or_else(|| functions::type_named(name).map(Value::Type));
        value.map_or_else(|| error(format!("no such attribute(s): {name}")), Ok)
    }

    fn is_local(&self, name: &str) -> bool {
        self.locals.iter().any(|(local, _)| *local == name)
    }

    fn select(&mut self, select: &'a SelectExpr) -> Result<Value<'a>> {
        self.budget.spend(1)?;
        if matches!(&select.operand.expr, Expr::Ident(name) if name == "variables" && !self.is_local(name)) {
            return self.names.variable(&select.field);
        }
        let operand = self.value(&select.operand)?;
        if select.test { Ok(Value::Bool(has(&operand, &select.field))) } else { field(&operand, &select.field) }
    }

    fn list(&mut self, list: &'a ListExpr) -> Result<Value<'a>> {
        self.budget.spend(10)?;
        let mut items = Vec::with_capacity(list.elements.len());
        for (at, element) in list.elements.iter().enumerate() {
            match self.value(element)? {
                Value::Optional(item) if list.optional_indices.contains(&at) => {
                    items.extend(item.map(|item| item.as_ref().clone()));
                }
                item => items.push(item),
            }
        }
        Ok(Value::List(Rc::new(items)))
    }

    fn map(&mut self, map: &'a MapExpr) -> Result<Value<'a>> {
        self.budget.spend(30)?;
        let mut entries = std::collections::BTreeMap::new();
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { return no_such_overload() };
            let Some(key) = self.value(&entry.key)?.as_key() else { return error("unsupported key type") };
            let value = match (self.value(&entry.value)?, entry.optional) {
                (Value::Optional(None), true) => continue,
                (Value::Optional(Some(value)), true) => value.as_ref().clone(),
                (value, _) => value,
            };
            entries.insert(key, value);
        }
        Ok(Value::Map(Rc::new(entries)))
    }

    fn call(&mut self, call: &'a CallExpr) -> Result<Value<'a>> {
        self.budget.spend(1)?;
        match (call.func_name.as_str(), call.args.as_slice()) {
            (op::LOGICAL_AND, [left, right]) => self.logical(left, right, false),
            (op::LOGICAL_OR, [left, right]) => self.logical(left, right, true),
            (op::CONDITIONAL, [condition, yes, no]) => match self.value(condition)? {
                Value::Bool(true) => self.value(yes),
                Value::Bool(false) => self.value(no),
                _ => no_such_overload(),
            },
            (op::NOT_STRICTLY_FALSE, [value]) => Ok(Value::Bool(!matches!(self.value(value), Ok(Value::Bool(false))))),
            (op::LOGICAL_NOT | op::NEGATE, [value]) => operators::unary(&call.func_name, &self.value(value)?),
            (op::INDEX, [container, at]) => operators::index(&self.value(container)?, &self.value(at)?),
            (op::OPT_INDEX | op::OPT_SELECT, [container, at]) => {
                operators::optional_index(&self.value(container)?, &self.value(at)?)
            }
            (name, [left, right]) if call.target.is_none() && functions::is_operator(name) => {
                self.binary(name, left, right)
            }
            _ => self.function(call),
        }
    }

    /// One side that decides is enough, even if the other has no value.
    fn logical(&mut self, left: &'a IdedExpr, right: &'a IdedExpr, decisive: bool) -> Result<Value<'a>> {
        let left = self.value(left);
        if matches!(left, Ok(Value::Bool(truth)) if truth == decisive) {
            return left;
        }
        let right = self.value(right);
        match (left, right) {
            (_, Ok(Value::Bool(truth))) if truth == decisive => Ok(Value::Bool(decisive)),
            (Err(error), _) | (Ok(Value::Bool(_)), Err(error)) => Err(error),
            (Ok(Value::Bool(_)), Ok(Value::Bool(_))) => Ok(Value::Bool(!decisive)),
            _ => no_such_overload(),
        }
    }

    fn binary(&mut self, name: &str, left: &'a IdedExpr, right: &'a IdedExpr) -> Result<Value<'a>> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        self.budget.spend(cost_of(&left).max(cost_of(&right)))?;
        operators::binary(name, &left, &right)
    }

    fn function(&mut self, call: &'a CallExpr) -> Result<Value<'a>> {
        let target = match call.target.as_deref() {
            // Not a value, but the first half of a function's name.
            Some(IdedExpr { expr: Expr::Ident(library), .. })
                if !self.is_local(library) && functions::is_library(library) =>
            {
                return self.library_function(library, call);
            }
            Some(target) => Some(self.value(target)?),
            None => None,
        };
        if let (Some(Value::Optional(optional)), "optMap" | "optFlatMap", [name, body]) =
            (&target, call.func_name.as_str(), call.args.as_slice())
        {
            return self.map_optional(optional.as_deref(), name, body, call.func_name == "optFlatMap");
        }
        let args = call.args.iter().map(|arg| self.value(arg)).collect::<Result<Vec<_>>>()?;
        self.budget.spend(target.iter().chain(&args).map(cost_of).sum())?;
        functions::call(&call.func_name, target.as_ref(), &args, self.budget)
    }

    fn library_function(&mut self, library: &str, call: &'a CallExpr) -> Result<Value<'a>> {
        if let ("cel", "bind", [name, value, body]) = (library, call.func_name.as_str(), call.args.as_slice()) {
            let value = self.value(value)?;
            return self.with_local(name, value, body);
        }
        let args = call.args.iter().map(|arg| self.value(arg)).collect::<Result<Vec<_>>>()?;
        self.budget.spend(args.iter().map(cost_of).sum())?;
        functions::call(&format!("{library}.{}", call.func_name), None, &args, self.budget)
    }

    fn map_optional(
        &mut self,
        optional: Option<&Value<'a>>,
        name: &'a IdedExpr,
        body: &'a IdedExpr,
        is_flat: bool,
    ) -> Result<Value<'a>> {
        let Some(value) = optional else { return Ok(Value::Optional(None)) };
        let value = self.with_local(name, value.clone(), body)?;
        if is_flat { Ok(value) } else { Ok(Value::some(value)) }
    }

    fn with_local(&mut self, name: &'a IdedExpr, value: Value<'a>, body: &'a IdedExpr) -> Result<Value<'a>> {
        let Expr::Ident(name) = &name.expr else { return no_such_overload() };
        self.locals.push((name, value));
        let value = self.value(body);
        self.locals.pop();
        value
    }

    fn comprehension(&mut self, loop_: &'a ComprehensionExpr) -> Result<Value<'a>> {
        let range = self.value(&loop_.iter_range)?;
        let keys = || range.entries().map(|entries| entries.into_iter().map(|(key, _)| key.into()).collect::<Vec<_>>());
        let Some(items) = range.items().or_else(keys) else { return no_such_overload() };
        let start = self.value(&loop_.accu_init);
        let outside = self.locals.len();
        let mut gathered = start;
        for item in items {
            self.budget.spend(1)?;
            gathered = match gathered {
                Ok(value) => self.round(loop_, item, value)?,
                // `exists` and `all` go on where a round has no value: another may decide.
                Err(error) if decides(loop_) => self.round_after_error(loop_, item, error),
                Err(error) => Err(error),
            };
            self.locals.truncate(outside);
            if matches!((&gathered, decides(loop_)), (Ok(Value::Bool(truth)), true) if *truth == decisive(loop_)) {
                break;
            }
        }
        self.locals.push((&loop_.accu_var, gathered?));
        let result = self.value(&loop_.result);
        self.locals.truncate(outside);
        result
    }

    /// One round. The outer result is for what ends the loop.
    fn round(
        &mut self,
        loop_: &'a ComprehensionExpr,
        item: Value<'a>,
        gathered: Value<'a>,
    ) -> Result<Result<Value<'a>>> {
        self.locals.push((&loop_.accu_var, gathered));
        self.locals.push((&loop_.iter_var, item));
        let step = self.value(&loop_.loop_step);
        match step {
            Err(error) if !decides(loop_) => Err(error),
            step => Ok(step),
        }
    }

    fn round_after_error(&mut self, loop_: &'a ComprehensionExpr, item: Value<'a>, error: Error) -> Result<Value<'a>> {
        match self.round(loop_, item, Value::Bool(!decisive(loop_))) {
            Ok(Ok(Value::Bool(truth))) if truth == decisive(loop_) => Ok(Value::Bool(truth)),
            _ => Err(error),
        }
    }
}

/// Whether it is an `exists` or an `all`, which one round can decide.
fn decides(loop_: &ComprehensionExpr) -> bool {
    matches!(&loop_.loop_step.expr, Expr::Call(call) if [op::LOGICAL_AND, op::LOGICAL_OR].contains(&call.func_name.as_str()))
}

/// What decides it.
fn decisive(loop_: &ComprehensionExpr) -> bool {
    matches!(&loop_.loop_step.expr, Expr::Call(call) if call.func_name == op::LOGICAL_OR)
}

fn literal_value(literal: &LiteralValue) -> Value<'_> {
    match literal {
        LiteralValue::Boolean(truth) => Value::Bool(*truth.inner()),
        LiteralValue::Int(number) => Value::Int(*number.inner()),
        LiteralValue::UInt(number) => Value::UInt(*number.inner()),
        LiteralValue::Double(number) => Value::Double(*number.inner()),
        LiteralValue::String(text) => Value::Text(Cow::Borrowed(text.inner())),
        LiteralValue::Bytes(bytes) => Value::Other(cel::Value::Bytes(Arc::new(bytes.inner().to_vec()))),
        LiteralValue::Null => Value::Null,
    }
}

fn field<'a>(operand: &Value<'a>, name: &str) -> Result<Value<'a>> {
    match operand {
        Value::Optional(None) => Ok(Value::Optional(None)),
        Value::Optional(Some(inner)) => field(inner, name).map(Value::some),
        Value::Check(check) if name == "requestResource" => check.of_request(),
        _ => match operand.field(name) {
            Some(value) => Ok(value),
            None => error(format!("no such key: {name}")),
        },
    }
}

fn has(operand: &Value<'_>, name: &str) -> bool {
    match operand {
        Value::Optional(inner) => inner.as_ref().is_some_and(|inner| has(inner, name)),
        _ => operand.field(name).is_some(),
    }
}

/// What looking at a value costs beside the one that everything does.
fn cost_of(value: &Value<'_>) -> u64 {
    match value {
        Value::Text(text) => text.len() as u64 / 10,
        Value::Other(_) => 1,
        Value::Optional(Some(inner)) => cost_of(inner),
        _ => value.size().map_or(0, |size| size as u64),
    }
}
