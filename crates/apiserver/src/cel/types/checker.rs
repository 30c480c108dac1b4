//! Finds the type of an expression, and what is wrong with it.

use std::collections::BTreeSet;

use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, SelectExpr, operators as op};

use super::{BOOL, Type, declarations, joined, literals::Literals, unify::Known};
use crate::cel::fields::is_reserved;

/// How deep an expression may be at all. Each level of brackets is three at most, and there are 250 of those.
const MAX_DEPTH: usize = 750;

/// How many mistakes are told again.
const MAX_REPEATED: usize = 100;

/// What was found about an expression.
pub(crate) struct Findings<'s> {
    pub(crate) type_: Type<'s>,
    /// The variables that it names.
    pub(crate) uses: BTreeSet<String>,
    /// How many levels it has.
    pub(crate) depth: usize,
    /// What is wrong with it, by the number of the part that is.
    pub(crate) mistakes: Vec<(u64, String)>,
}

/// Checks an expression in which variables are of these types.
pub(crate) fn check<'s>(tree: &IdedExpr, variables: &[(&str, Type<'s>)]) -> Findings<'s> {
    let variables = variables.iter().map(|(name, type_)| ((*name).to_owned(), type_.clone())).collect();
    let mut checker = Checker { variables, ..Checker::default() };
    let type_ = checker.visit(tree);
    let type_ = checker.known.settled(&type_);
    let mut mistakes = checker.mistakes;
    if mistakes.is_empty() {
        mistakes = checker.literals.mistakes(&mut checker.known);
    }
    if checker.known.is_lost() {
        mistakes.clear();
    }
    if checker.deepest > MAX_DEPTH {
        mistakes = vec![(tree.id, "expression recursion limit exceeded: 250".to_owned())];
    }
    let type_ = if checker.known.is_lost() { Type::Error } else { type_ };
    Findings { type_, uses: checker.uses, depth: checker.deepest, mistakes }
}

#[derive(Default)]
pub(super) struct Checker<'s> {
    /// The variables that there are here, the innermost last.
    pub(super) variables: Vec<(String, Type<'s>)>,
    pub(super) known: Known<'s>,
    pub(super) literals: Literals<'s>,
    uses: BTreeSet<String>,
    mistakes: Vec<(u64, String)>,
    depth: usize,
    deepest: usize,
}

impl<'s> Checker<'s> {
    pub(super) fn visit(&mut self, tree: &IdedExpr) -> Type<'s> {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let type_ = if self.depth > MAX_DEPTH { Type::Error } else { self.visit_inside(tree) };
        self.depth -= 1;
        type_
    }

    fn visit_inside(&mut self, tree: &IdedExpr) -> Type<'s> {
        match &tree.expr {
            Expr::Literal(literal) => Type::Named(literal_type(literal), Vec::new()),
            Expr::Ident(name) => self.ident(tree.id, name),
            Expr::Select(select) => self.select(tree.id, select),
            Expr::Call(call) => self.call(tree.id, call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            // There are those of protocol buffers, and no others.
            Expr::Struct(message) if message.type_name.starts_with("google.protobuf.") => Type::Dyn,
            Expr::Struct(message) => self.undeclared(tree.id, &message.type_name),
            Expr::Unspecified => self.wrong(tree.id, "Syntax error: a part of it is missing".to_owned()),
        }
    }

    /// Notes that something is wrong.
    pub(super) fn wrong(&mut self, id: u64, text: String) -> Type<'s> {
        self.mistakes.push((id, text));
        Type::Error
    }

    pub(super) fn undeclared(&mut self, id: u64, name: &str) -> Type<'s> {
        if is_reserved(name) {
            return self.wrong(id, format!("reserved identifier: {name}"));
        }
        self.wrong(id, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn ident(&mut self, id: u64, name: &str) -> Type<'s> {
        let name = name.trim_start_matches('.');
        if let Some((_, type_)) = self.variables.iter().rev().find(|(own, _)| own == name) {
            self.uses.insert(name.to_owned());
            return type_.clone();
        }
        declarations::type_named(name).unwrap_or_else(|| self.undeclared(id, name))
    }

    fn select(&mut self, id: u64, select: &SelectExpr) -> Type<'s> {
        if let Some(type_) = self.qualified_type(select) {
            return type_;
        }
        let type_ = self.field(id, &select.operand, &select.field, false);
        if select.test { BOOL } else { type_ }
    }

    /// The type that names with points between them are the name of.
    fn qualified_type(&self, select: &SelectExpr) -> Option<Type<'s>> {
        let name = qualified(&select.operand)?;
        let first = name.split('.').next()?;
        if select.test || self.variables.iter().any(|(own, _)| own == first) {
            return None;
        }
        declarations::type_named(&format!("{name}.{}", select.field))
    }

    fn field(&mut self, id: u64, operand: &IdedExpr, name: &str, is_optional: bool) -> Type<'s> {
        let operand = self.visit(operand);
        let operand = self.known.resolved(&operand);
        let inner = operand.unwrapped().unwrap_or(&operand);
        let type_ = match inner {
            Type::Named("map", of) => of.get(1).cloned().unwrap_or(Type::Dyn),
            Type::Object(object) => match object.field(name) {
                Some(type_) => type_,
                None => self.wrong(id, format!("undefined field '{name}'")),
            },
            Type::Var(_) => {
                self.known.goes(&Type::Dyn, inner);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            Type::Named(..) => {
                self.wrong(id, format!("type '{inner}' does not support field selection"));
                Type::Dyn
            }
        };
        if is_optional || operand.unwrapped().is_some() { Type::optional(type_) } else { type_ }
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Type<'s> {
        if let (op::OPT_SELECT, [operand, IdedExpr { expr: Expr::Literal(LiteralValue::String(name)), .. }]) =
            (call.func_name.as_str(), call.args.as_slice())
        {
            return self.field(id, operand, name.inner(), true);
        }
        if let (op::LOGICAL_AND | op::LOGICAL_OR, [_, _]) = (call.func_name.as_str(), call.args.as_slice()) {
            return self.logical(&call.args);
        }
        if let (Some(target), "optMap" | "optFlatMap", [name, body]) =
            (call.target.as_deref(), call.func_name.as_str(), call.args.as_slice())
        {
            return self.map_optional(id, target, name, body, call.func_name == "optFlatMap");
        }
        self.literals.enter(&call.func_name);
        let type_ = self.function(id, call);
        self.literals.leave(&call.func_name);
        type_
    }

    fn function(&mut self, id: u64, call: &CallExpr) -> Type<'s> {
        let args: Vec<_> = call.args.iter().map(|arg| self.visit(arg)).collect();
        let name = call.func_name.trim_start_matches('.');
        self.literals.note_argument(name, call.args.first());
        let Some(target) = call.target.as_deref() else {
            return self.resolve(id, name, None, args);
        };
        if let Some(prefix) = qualified(target) {
            let name = format!("{prefix}.{name}");
            if declarations::function(&name).is_some() {
                return self.resolve(id, &name, None, args);
            }
        }
        let target = self.visit(target);
        self.resolve(id, name, Some(target), args)
    }

    /// The type of what a function makes of values of these types.
    fn resolve(&mut self, id: u64, name: &str, target: Option<Type<'s>>, args: Vec<Type<'s>>) -> Type<'s> {
        let Some(overloads) = declarations::function(name) else { return self.undeclared(id, name) };
        let is_member = target.is_some();
        let given: Vec<_> = target.into_iter().chain(args).collect();
        let mut result: Option<Type<'s>> = None;
        for overload in overloads.iter().filter(|overload| overload.is_member == is_member) {
            let first = self.known.fresh(overload.vars);
            let expected: Vec<_> = overload.args.iter().map(|type_| renumbered(type_, first)).collect();
            if !self.known.all_go(&given, &expected) {
                continue;
            }
            let made = self.known.resolved(&renumbered(&overload.result, first));
            result = match result {
                None => Some(made),
                Some(Type::Dyn) => Some(Type::Dyn),
                Some(result) => Some(if result == made { result } else { Type::Dyn }),
            };
        }
        result.unwrap_or_else(|| self.no_overload(id, name, &given, is_member))
    }

    fn no_overload(&mut self, id: u64, name: &str, given: &[Type<'s>], is_member: bool) -> Type<'s> {
        let given: Vec<_> = given.iter().map(|type_| self.known.settled(type_)).collect();
        let signature = match given.split_first() {
            Some((target, args)) if is_member => format!("{target}.({})", joined(args)),
            _ => format!("({})", joined(&given)),
        };
        self.wrong(id, format!("found no matching overload for '{name}' applied to '{signature}'"))
    }

    /// An optional whose value, if there is one, is given a name to make another of it.
    fn map_optional(
        &mut self,
        id: u64,
        target: &IdedExpr,
        name: &IdedExpr,
        body: &IdedExpr,
        is_flat: bool,
    ) -> Type<'s> {
        let Expr::Ident(name_text) = &name.expr else {
            let function = if is_flat { "optFlatMap" } else { "optMap" };
            return self.wrong(name.id, format!("{function}() variable name must be a simple identifier"));
        };
        let before = self.mistakes.len();
        let target = self.visit(target);
        // The macro has what it is called on twice, and so is all that is wrong with it.
        let again: Vec<_> = self.mistakes.iter().skip(before).take(MAX_REPEATED).cloned().collect();
        self.mistakes.extend(again);
        let has_value = self.resolve(id, "hasValue", Some(target.clone()), Vec::new());
        let value = self.resolve(id, "value", Some(target), Vec::new());
        self.variables.push((name_text.clone(), value));
        let body = self.visit(body);
        self.variables.pop();
        let body = if is_flat { body } else { Type::optional(body) };
        let nothing = self.resolve(id, "optional.none", None, Vec::new());
        self.resolve(id, op::CONDITIONAL, None, vec![has_value, body, nothing])
    }

    /// Both sides of a logical operator are true or false, and each is looked at by itself.
    fn logical(&mut self, args: &[IdedExpr]) -> Type<'s> {
        let types: Vec<_> = args.iter().map(|arg| self.visit(arg)).collect();
        let mut result = BOOL;
        for (arg, type_) in args.iter().zip(&types) {
            if !self.known.goes(type_, &BOOL) {
                result = self.mismatch(arg.id, &BOOL, type_);
            }
        }
        result
    }

    pub(super) fn mismatch(&mut self, id: u64, expected: &Type<'s>, found: &Type<'s>) -> Type<'s> {
        self.wrong(id, format!("expected type '{expected}' but found '{found}'"))
    }
}

/// Names with points between them, as one.
fn qualified(tree: &IdedExpr) -> Option<String> {
    match &tree.expr {
        Expr::Ident(name) => Some(name.trim_start_matches('.').to_owned()),
        Expr::Select(select) if !select.test => Some(format!("{}.{}", qualified(&select.operand)?, select.field)),
        _ => None,
    }
}

/// A declared type, with those in it that may be any counted from here.
fn renumbered<'s>(type_: &Type<'static>, first: usize) -> Type<'s> {
    match type_ {
        Type::Var(number) => Type::Var(first + number),
        Type::Named(name, of) => Type::Named(name, of.iter().map(|part| renumbered(part, first)).collect()),
        Type::Error => Type::Error,
        // No declaration is about an object.
        Type::Dyn | Type::Object(_) => Type::Dyn,
    }
}

fn literal_type(literal: &LiteralValue) -> &'static str {
    match literal {
        LiteralValue::Boolean(_) => "bool",
        LiteralValue::Bytes(_) => "bytes",
        LiteralValue::Double(_) => "double",
        LiteralValue::Int(_) => "int",
        LiteralValue::Null => "null",
        LiteralValue::String(_) => "string",
        LiteralValue::UInt(_) => "uint",
    }
}
