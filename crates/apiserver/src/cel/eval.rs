//! The value of an expression.

use std::{borrow::Cow, collections::BTreeMap, rc::Rc, sync::Arc};

use kube_cel::cel::{
    self,
    common::ast::{
        CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr,
        operators as op,
    },
};

use super::{
    Budget, Result,
    check::VARIABLES,
    cost, error, functions, no_such_overload, operators,
    value::{Key, Value},
};

/// What names mean that an expression does not give a meaning itself.
pub(crate) trait Names<'a> {
    /// The value of a name.
    fn value(&self, name: &str) -> Option<Value<'a>>;

    /// The value of a variable that others are evaluated with.
    fn variable(&self, name: &str) -> Result<Value<'a>> {
        error(format!("no such key: {name}"))
    }
}

/// One evaluation.
pub(super) struct Evaluation<'a, 'e> {
    names: &'e dyn Names<'a>,
    pub(super) budget: &'e Budget,
    /// The names that macros have given a meaning to, the innermost last.
    pub(super) locals: Vec<(&'a str, Value<'a>)>,
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
        let name = name.trim_start_matches('.');
        if let Some((_, value)) = self.locals.iter().rev().find(|(local, _)| *local == name) {
            return Ok(value.clone());
        }
        let value = self.names.value(name).or_else(|| functions::type_named(name).map(Value::Type));
        value.map_or_else(|| error(format!("no such attribute(s): {name}")), Ok)
    }

    /// The name that names with points between them begin with, if no macro has given it a meaning.
    fn first_name(&self, tree: &'a IdedExpr) -> Option<&'a str> {
        match &tree.expr {
            Expr::Ident(name) => Some(name.as_str()).filter(|name| !self.is_local(name)),
            Expr::Select(select) => self.first_name(&select.operand),
            _ => None,
        }
    }

    fn is_local(&self, name: &str) -> bool {
        self.locals.iter().any(|(local, _)| *local == name)
    }

    fn select(&mut self, select: &'a SelectExpr) -> Result<Value<'a>> {
        // To ask whether something is there costs nothing.
        self.budget.spend(u64::from(!select.test))?;
        if let Some(name) = self.first_name(&select.operand) {
            if name == VARIABLES && matches!(select.operand.expr, Expr::Ident(_)) {
                return self.names.variable(&select.field);
            }
            if let Some(type_) = functions::qualified_type(select).filter(|_| self.names.value(name).is_none()) {
                return Ok(Value::Type(type_));
            }
        }
        let operand = self.value(&select.operand)?;
        if select.test { Ok(Value::Bool(has(&operand, &select.field))) } else { field(&operand, &select.field) }
    }

    fn list(&mut self, list: &'a ListExpr) -> Result<Value<'a>> {
        self.budget.spend(if list.elements.iter().all(is_literal) { 0 } else { 10 })?;
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
        self.budget.spend(if map.entries.iter().all(is_literal_entry) { 0 } else { 30 })?;
        let mut entries = BTreeMap::new();
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { return no_such_overload() };
            let key = self.key(&entry.key)?;
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
        match (call.func_name.as_str(), call.args.as_slice()) {
            (op::LOGICAL_AND, [left, right]) => self.logical(left, right, false),
            (op::LOGICAL_OR, [left, right]) => self.logical(left, right, true),
            (op::CONDITIONAL, [condition, yes, no]) => match self.value(condition)? {
                Value::Bool(true) => self.value(yes),
                Value::Bool(false) => self.value(no),
                _ => no_such_overload(),
            },
            (op::LOGICAL_NOT | op::NEGATE, [value]) => {
                self.budget.spend(1)?;
                operators::unary(&call.func_name, &self.value(value)?)
            }
            (op::INDEX, [container, at]) => {
                self.budget.spend(1)?;
                operators::index(&self.value(container)?, &self.value(at)?)
            }
            (op::OPT_INDEX | op::OPT_SELECT, [container, at]) => {
                self.budget.spend(1)?;
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
        self.budget.spend(cost::of_call(name, &[&left, &right]))?;
        operators::binary(name, &left, &right, self.budget)
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
        // What stands in for an optional that has a value is not looked at.
        match (&target, call.func_name.as_str(), call.args.len()) {
            (Some(Value::Optional(Some(value))), "orValue", 1) => return Ok(value.as_ref().clone()),
            (Some(Value::Optional(Some(_))), "or", 1) => return target.map_or_else(no_such_overload, Ok),
            _ => {}
        }
        let args = call.args.iter().map(|arg| self.value(arg)).collect::<Result<Vec<_>>>()?;
        self.budget.spend(cost::of_call(&call.func_name, &target.iter().chain(&args).collect::<Vec<_>>()))?;
        functions::call(call.func_name.trim_start_matches('.'), target.as_ref(), &args, self.budget)
    }

    fn library_function(&mut self, library: &str, call: &'a CallExpr) -> Result<Value<'a>> {
        if let ("cel", "bind", [name, value, body]) = (library, call.func_name.as_str(), call.args.as_slice()) {
            let value = self.value(value)?;
            return self.with_local(name, value, body);
        }
        let args = call.args.iter().map(|arg| self.value(arg)).collect::<Result<Vec<_>>>()?;
        let name = format!("{library}.{}", call.func_name);
        self.budget.spend(cost::of_call(&name, &args.iter().collect::<Vec<_>>()))?;
        functions::call(&name, None, &args, self.budget)
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

    pub(super) fn key(&mut self, tree: &'a IdedExpr) -> Result<Key> {
        self.value(tree)?.as_key().map_or_else(|| error("unsupported key type"), Ok)
    }
}

fn is_literal(tree: &IdedExpr) -> bool {
    matches!(tree.expr, Expr::Literal(_))
}

fn is_literal_entry(entry: &IdedEntryExpr) -> bool {
    matches!(&entry.expr, EntryExpr::MapEntry(entry) if is_literal(&entry.key) && is_literal(&entry.value))
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
        Value::Foreign(foreign) => foreign.field(name).unwrap_or_else(|| error(format!("no such key: {name}"))),
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
