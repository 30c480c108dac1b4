//! What is checked of an expression when it is compiled: that all names in it are known, and that it is not too deep.

use std::collections::BTreeSet;

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr};

use super::{Error, Result, error, functions};

/// How deep an expression may be: each level takes a piece of the stack.
pub(crate) const MAX_DEPTH: usize = 200;

/// What has the variables of a policy.
pub(super) const VARIABLES: &str = "variables";

/// What was found about an expression.
pub(super) struct Findings {
    /// How many levels it has.
    pub(super) depth: usize,
    /// The variables of its policy that it names.
    pub(super) variables: BTreeSet<String>,
}

/// Refuses what could never be evaluated.
pub(super) fn check(tree: &IdedExpr, names: &[&str]) -> Result<Findings> {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let mut checker = Checker { names, depth: 0, found: Findings { depth: 0, variables: BTreeSet::new() } };
    checker.visit(tree)?;
    Ok(checker.found)
}

struct Checker {
    names: Vec<String>,
    depth: usize,
    found: Findings,
}

impl Checker {
    fn visit(&mut self, tree: &IdedExpr) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return error("compilation failed: expression recursion limit exceeded");
        }
        self.found.depth = self.found.depth.max(self.depth);
        self.visit_inside(tree)?;
        self.depth -= 1;
        Ok(())
    }

    fn visit_inside(&mut self, tree: &IdedExpr) -> Result<()> {
        match &tree.expr {
            Expr::Ident(name) if self.knows(name) => Ok(()),
            Expr::Ident(name) => Err(undeclared(name)),
            Expr::Literal(_) => Ok(()),
            Expr::Select(select) => {
                if matches!(&select.operand.expr, Expr::Ident(name) if name == VARIABLES) {
                    self.found.variables.insert(select.field.clone());
                }
                self.visit(&select.operand)
            }
            Expr::List(list) => list.elements.iter().try_for_each(|element| self.visit(element)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => self.visit(&entry.key).and_then(|()| self.visit(&entry.value)),
                EntryExpr::StructField(field) => Err(undeclared(&field.field)),
            }),
            Expr::Call(call) => self.visit_call(call),
            Expr::Comprehension(comprehension) => self.visit_comprehension(comprehension),
            Expr::Struct(message) => Err(undeclared(&message.type_name)),
            Expr::Unspecified => error("compilation failed: a part of the expression is missing"),
        }
    }

    fn knows(&self, name: &str) -> bool {
        name.starts_with('@') || self.names.iter().any(|known| known == name) || functions::type_named(name).is_some()
    }

    fn visit_call(&mut self, call: &CallExpr) -> Result<()> {
        let binds = ["optMap", "optFlatMap", "bind"].contains(&call.func_name.as_str());
        let mut name = call.func_name.clone();
        match call.target.as_deref() {
            Some(IdedExpr { expr: Expr::Ident(library), .. }) if !self.knows(library) => {
                if !functions::is_library(library) {
                    return Err(undeclared(library));
                }
                name = format!("{library}.{name}");
            }
            Some(target) => self.visit(target)?,
            None => {}
        }
        let is_of_macro = name.contains('@');
        if name.starts_with(|first: char| first.is_ascii_alphabetic()) && !is_of_macro && !functions::exists(&name) {
            return Err(undeclared(&name));
        }
        match call.args.split_first() {
            Some((IdedExpr { expr: Expr::Ident(local), .. }, args)) if binds => {
                self.names.push(local.clone());
                args.iter().try_for_each(|arg| self.visit(arg))?;
                self.names.pop();
                Ok(())
            }
            _ => call.args.iter().try_for_each(|arg| self.visit(arg)),
        }
    }

    fn visit_comprehension(&mut self, loop_: &ComprehensionExpr) -> Result<()> {
        self.visit(&loop_.iter_range)?;
        self.visit(&loop_.accu_init)?;
        let outside = self.names.len();
        self.names.push(loop_.iter_var.clone());
        self.names.extend(loop_.iter_var2.clone());
        self.visit(&loop_.loop_cond)?;
        self.visit(&loop_.loop_step)?;
        self.visit(&loop_.result)?;
        self.names.truncate(outside);
        Ok(())
    }
}

fn undeclared(name: &str) -> Error {
    Error(format!("compilation failed: undeclared reference to '{name}' (in container '')"))
}
