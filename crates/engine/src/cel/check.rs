//! What is checked, and put right, in an expression before it is ever evaluated, and where it is put on scales.

use std::{collections::BTreeSet, mem};

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, SelectExpr, operators,
};

use super::{CLUSTER, Invalid, MAX_DEPTH, MAX_NESTING, OBJECT, Scope, ScoresRead, functions, meter::Scale};

/// Checks an expression and says which scores it reads.
pub(super) fn check(tree: &mut IdedExpr, scope: Scope) -> Result<ScoresRead, Invalid> {
    if scope.is_condition() && never_boolean(&tree.expr) {
        return Err(Invalid::NotBoolean);
    }
    let names = scope.variables().iter().map(|name| (*name).to_owned()).collect();
    let mut checker = Checker { scope, names, depth: 0, nesting: 0, scores: ScoresRead::Named(BTreeSet::new()) };
    checker.visit(tree)?;
    Ok(checker.scores)
}

/// There is no type checker, but what is plainly a value is seen.
fn never_boolean(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(literal) => !matches!(literal, LiteralValue::Boolean(_)),
        Expr::List(_) | Expr::Map(_) => true,
        Expr::Ident(name) => name == CLUSTER || name == OBJECT,
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
    scope: Scope,
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
            Expr::Ident(name) => Err(Invalid::Undeclared(mem::take(name), self.scope)),
            Expr::Literal(_) => Ok(()),
            Expr::Select(select) => self.visit_select(select),
            Expr::List(list) => list.elements.iter_mut().try_for_each(|element| self.visit_weighed(element)),
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

    fn visit_weighed(&mut self, tree: &mut IdedExpr) -> Result<(), Invalid> {
        self.visit(tree)?;
        weigh(tree, Scale::Linear);
        Ok(())
    }

    fn visit_select(&mut self, select: &mut SelectExpr) -> Result<(), Invalid> {
        self.visit(&mut select.operand)?;
        // A field is copied out of what it is in; of a variable, which stays, only the field is.
        if self.is_in_loop() && !matches!(select.operand.expr, Expr::Ident(_)) {
            weigh(&mut select.operand, Scale::Linear);
        }
        Ok(())
    }

    /// Whether this is evaluated more often than it was written.
    fn is_in_loop(&self) -> bool {
        self.nesting > 0
    }

    fn visit_entry(&mut self, entry: &mut IdedEntryExpr) -> Result<(), Invalid> {
        match &mut entry.expr {
            EntryExpr::MapEntry(entry) => {
                self.visit_weighed(&mut entry.key)?;
                self.visit_weighed(&mut entry.value)
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
        if call.func_name == "scores" && self.scope == Scope::Cluster {
            return self.take_scores(call);
        }
        if is_operator(&call.func_name) {
            if call.func_name == operators::ADD || (self.is_in_loop() && looks_at_all(&call.func_name)) {
                weigh_all(&mut call.args, Scale::Linear);
            }
            return Ok(());
        }
        let name = match call.target.as_deref_mut() {
            // Not a value, but the first half of a function's name.
            Some(IdedExpr { expr: Expr::Ident(library), .. }) if !self.knows(library) => {
                let name = format!("{library}.{}", call.func_name);
                if !functions::exists(&name, self.scope) {
                    return Err(Invalid::Undeclared(mem::take(library), self.scope));
                }
                name
            }
            Some(target) => {
                self.visit(target)?;
                weigh(target, Scale::of(&call.func_name));
                call.func_name.clone()
            }
            None => call.func_name.clone(),
        };
        if !functions::exists(&name, self.scope) {
            return Err(Invalid::UnknownFunction(name));
        }
        let scale = match name.as_str() {
            "matches" | "find" | "findAll" => Scale::Pattern,
            name => Scale::of(name),
        };
        weigh_all(&mut call.args, scale);
        Ok(())
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
        self.visit_weighed(&mut comprehension.iter_range)?;
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
        // In each round, so that it is rounds that are counted too.
        put_on(Scale::Linear, &mut comprehension.loop_step);
        self.visit(&mut comprehension.result)?;
        self.names.truncate(outside);
        self.nesting -= 1;
        Ok(())
    }
}

/// Whether an operator looks at all of a value. The others pass on what they get.
fn looks_at_all(operator: &str) -> bool {
    let pass_on = [
        operators::LOGICAL_AND,
        operators::LOGICAL_OR,
        operators::LOGICAL_NOT,
        operators::NOT_STRICTLY_FALSE,
        operators::CONDITIONAL,
        operators::INDEX,
        operators::OPT_INDEX,
    ];
    !pass_on.contains(&operator)
}

fn weigh_all(trees: &mut [IdedExpr], scale: Scale) {
    for tree in trees {
        weigh(tree, scale);
    }
}

/// Puts a value on a scale before it is used. What is written in the expression is bounded with it, and what a loop has
/// gathered is weighed once in each round.
fn weigh(tree: &mut IdedExpr, scale: Scale) {
    let is_bounded = match &tree.expr {
        Expr::Literal(_) => scale == Scale::Linear,
        Expr::Ident(name) => name.starts_with('@'),
        // No longer than what was added, which was weighed.
        Expr::Call(call) => call.func_name == operators::ADD && scale == Scale::Linear,
        _ => false,
    };
    if !is_bounded {
        put_on(scale, tree);
    }
}

fn put_on(scale: Scale, tree: &mut IdedExpr) {
    let weighed = mem::take(tree);
    let call = CallExpr { func_name: scale.function().to_owned(), target: None, args: vec![weighed] };
    tree.expr = Expr::Call(call);
}

/// Operators are calls of names that are no identifiers.
fn is_operator(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_alphabetic())
}
