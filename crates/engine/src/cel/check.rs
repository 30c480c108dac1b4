//! What is checked, and put right, in an expression before it is ever evaluated.

use std::{collections::BTreeSet, mem};

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, operators,
};

use super::{CLUSTER, Invalid, MAX_DEPTH, MAX_NESTING, ScoresRead, functions};

/// Checks an expression and says which scores it reads.
pub(super) fn check(tree: &mut IdedExpr) -> Result<ScoresRead, Invalid> {
    if never_boolean(&tree.expr) {
        return Err(Invalid::NotBoolean);
    }
    let mut checker =
        Checker { names: vec![CLUSTER.to_owned()], depth: 0, nesting: 0, scores: ScoresRead::Named(BTreeSet::new()) };
    checker.visit(tree)?;
    Ok(checker.scores)
}

/// There is no type checker, but what is plainly a value is seen.
fn never_boolean(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(literal) => !matches!(literal, LiteralValue::Boolean(_)),
        Expr::List(_) | Expr::Map(_) => true,
        Expr::Ident(name) => name == CLUSTER,
        Expr::Call(call) => {
            let arithmetic = [
                operators::ADD,
                operators::SUBSTRACT,
                operators::MULTIPLY,
                operators::DIVIDE,
                operators::MODULO,
                operators::NEGATE,
            ];
            arithmetic.contains(&call.func_name.as_str())
        }
        _ => false,
    }
}

/// Walks an expression with the names that are known where it is.
struct Checker {
    names: Vec<String>,
    depth: usize,
    nesting: usize,
    scores: ScoresRead,
}

impl Checker {
    fn visit(&mut self, tree: &mut IdedExpr) -> Result<(), Invalid> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Invalid::TooDeep);
        }
        self.visit_inside(tree)?;
        self.depth -= 1;
        Ok(())
    }

    fn visit_inside(&mut self, tree: &mut IdedExpr) -> Result<(), Invalid> {
        match &mut tree.expr {
            Expr::Ident(name) if self.knows(name) => Ok(()),
            Expr::Ident(name) => Err(Invalid::Undeclared(mem::take(name))),
            Expr::Literal(_) => Ok(()),
            Expr::Select(select) => self.visit(&mut select.operand),
            Expr::List(list) => list.elements.iter_mut().try_for_each(|element| self.visit(element)),
            Expr::Map(map) => map.entries.iter_mut().try_for_each(|entry| self.visit_entry(entry)),
            Expr::Call(call) => self.visit_call(call),
            Expr::Comprehension(comprehension) => self.visit_comprehension(comprehension),
            Expr::Struct(message) => Err(Invalid::Message(mem::take(&mut message.type_name))),
            Expr::Unspecified => Err(Invalid::Syntax("a part of it is missing".into())),
        }
    }

    fn knows(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    fn visit_entry(&mut self, entry: &mut IdedEntryExpr) -> Result<(), Invalid> {
        match &mut entry.expr {
            EntryExpr::MapEntry(entry) => {
                self.visit(&mut entry.key)?;
                self.visit(&mut entry.value)
            }
            EntryExpr::StructField(field) => Err(Invalid::Message(mem::take(&mut field.field))),
        }
    }

    fn visit_call(&mut self, call: &mut CallExpr) -> Result<(), Invalid> {
        // `a.?b` fails in the interpreter where there is no b; `a[?'b']`, which means the same, does not.
        if call.func_name == operators::OPT_SELECT {
            operators::OPT_INDEX.clone_into(&mut call.func_name);
        }
        call.args.iter_mut().try_for_each(|argument| self.visit(argument))?;
        if call.func_name == "scores" {
            return self.take_scores(call);
        }
        if is_operator(&call.func_name) {
            return Ok(());
        }
        let name = match call.target.as_deref_mut() {
            // Not a value, but the first half of a function's name.
            Some(IdedExpr { expr: Expr::Ident(library), .. }) if !self.knows(library) => {
                let name = format!("{library}.{}", call.func_name);
                return if functions::exists(&name) { Ok(()) } else { Err(Invalid::Undeclared(mem::take(library))) };
            }
            Some(target) => {
                self.visit(target)?;
                &call.func_name
            }
            None => &call.func_name,
        };
        if functions::exists(name) { Ok(()) } else { Err(Invalid::UnknownFunction(name.clone())) }
    }

    /// Turns `managedCluster.scores(name)` into a call that needs no copy of the cluster, and notes the name.
    fn take_scores(&mut self, call: &mut CallExpr) -> Result<(), Invalid> {
        let of_cluster = call.target.as_ref().is_some_and(|target| target.expr == Expr::Ident(CLUSTER.to_owned()));
        let [name] = call.args.as_slice() else { return Err(Invalid::ScoresOfWhat) };
        if !of_cluster {
            return Err(Invalid::ScoresOfWhat);
        }
        match (&name.expr, &mut self.scores) {
            (Expr::Literal(LiteralValue::String(name)), ScoresRead::Named(names)) => {
                names.insert(name.inner().to_owned());
            }
            (Expr::Literal(LiteralValue::String(_)), ScoresRead::Any) => {}
            _ => self.scores = ScoresRead::Any,
        }
        call.target = None;
        functions::SCORES.clone_into(&mut call.func_name);
        Ok(())
    }

    fn visit_comprehension(&mut self, comprehension: &mut ComprehensionExpr) -> Result<(), Invalid> {
        self.visit(&mut comprehension.iter_range)?;
        self.visit(&mut comprehension.accu_init)?;
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(Invalid::TooManyLoops);
        }
        let outside = self.names.len();
        self.names.push(comprehension.accu_var.clone());
        self.names.push(comprehension.iter_var.clone());
        self.names.extend(comprehension.iter_var2.clone());
        self.visit(&mut comprehension.loop_cond)?;
        self.visit(&mut comprehension.loop_step)?;
        self.visit(&mut comprehension.result)?;
        self.names.truncate(outside);
        self.nesting -= 1;
        Ok(())
    }
}

/// Operators are calls of names that are no identifiers.
fn is_operator(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_alphabetic())
}
