//! Macros that the parser does not know: loops over two names, and sorting by what is made of each item.

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, operators as op,
};

/// What a loop gathers, by the name that the parser uses too.
const GATHERED: &str = "@result";
const SORTED: &str = "@sorted";
/// Puts an entry, or all of a map, into what a loop gathers. Nobody but a macro can call it.
pub(super) const INSERT: &str = "cel.@mapInsert";

/// Replaces all macros in a tree by what they stand for. What is wrong is told with the number of the part that is.
pub(super) fn expand(tree: &mut IdedExpr) -> Result<(), (u64, String)> {
    for part in parts(&mut tree.expr) {
        expand(part)?;
    }
    let Expr::Call(call) = &mut tree.expr else { return Ok(()) };
    if call.target.is_some() {
        let expanded = match (call.func_name.as_str(), call.args.len()) {
            ("all" | "exists" | "exists_one" | "existsOne", 3)
            | ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => two_names(tree.id, call)?,
            ("sortBy", 2) => sort_by(tree.id, call)?,
            _ => return Ok(()),
        };
        tree.expr = expanded;
    }
    Ok(())
}

fn parts(expr: &mut Expr) -> Vec<&mut IdedExpr> {
    match expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Call(call) => call.target.as_deref_mut().into_iter().chain(&mut call.args).collect(),
        Expr::Comprehension(it) => {
            vec![&mut it.iter_range, &mut it.accu_init, &mut it.loop_cond, &mut it.loop_step, &mut it.result]
        }
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Map(map) => map.entries.iter_mut().flat_map(|entry| entry_parts(&mut entry.expr)).collect(),
        Expr::Select(select) => vec![&mut select.operand],
        Expr::Struct(message) => message.entries.iter_mut().flat_map(|entry| entry_parts(&mut entry.expr)).collect(),
    }
}

fn entry_parts(entry: &mut EntryExpr) -> Vec<&mut IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&mut field.value],
        EntryExpr::MapEntry(entry) => vec![&mut entry.key, &mut entry.value],
    }
}

/// A loop with a name for the key or index and one for the value.
fn two_names(id: u64, call: &mut CallExpr) -> Result<Expr, (u64, String)> {
    let make = Maker(id);
    let mut args = std::mem::take(&mut call.args).into_iter();
    let mut next = || args.next().unwrap_or_default();
    let (first, second) = (next(), next());
    let (key, value) = (simple_name(&first)?, simple_name(&second)?);
    if key == value {
        return Err((second.id, format!("duplicate variable name: {key}")));
    }
    let body = next();
    let made = args.next();
    let (filter, body) = match made {
        Some(made) => (Some(body), made),
        None => (None, body),
    };
    let gathered = || make.name(GATHERED);
    let (init, condition, step, result) = match call.func_name.as_str() {
        "all" => (
            make.truth(true),
            make.call(op::NOT_STRICTLY_FALSE, vec![gathered()]),
            make.call(op::LOGICAL_AND, vec![gathered(), body]),
            gathered(),
        ),
        "exists" => (
            make.truth(false),
            make.call(op::NOT_STRICTLY_FALSE, vec![make.call(op::LOGICAL_NOT, vec![gathered()])]),
            make.call(op::LOGICAL_OR, vec![gathered(), body]),
            gathered(),
        ),
        "exists_one" | "existsOne" => (
            make.number(0),
            make.truth(true),
            make.call(op::CONDITIONAL, vec![body, make.call(op::ADD, vec![gathered(), make.number(1)]), gathered()]),
            make.call(op::EQUALS, vec![gathered(), make.number(1)]),
        ),
        "transformList" => {
            let step = make.call(op::ADD, vec![gathered(), make.list(vec![body])]);
            (make.list(Vec::new()), make.truth(true), make.filtered(filter, step), gathered())
        }
        function => {
            let mut args = vec![gathered()];
            args.extend((function == "transformMap").then(|| make.name(&key)));
            args.push(body);
            let step = make.filtered(filter, make.call(INSERT, args));
            (make.expr(Expr::Map(MapExpr::default())), make.truth(true), step, gathered())
        }
    };
    Ok(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: call.target.take().map(|target| *target).unwrap_or_default(),
        iter_var: key,
        iter_var2: Some(value),
        accu_var: GATHERED.to_owned(),
        accu_init: init,
        loop_cond: condition,
        loop_step: step,
        result,
    })))
}

/// A list, by what is made of each item. The list has a name meanwhile, which is a loop without rounds.
fn sort_by(id: u64, call: &mut CallExpr) -> Result<Expr, (u64, String)> {
    let make = Maker(id);
    if let Some(target) = call.target.as_deref().filter(|target| matches!(target.expr, Expr::Literal(_) | Expr::Map(_)))
    {
        let sorts = "a list, identifier, comprehension, call or select expression";
        return Err((target.id, format!("sortBy can only be applied to {sorts}")));
    }
    let mut args = std::mem::take(&mut call.args).into_iter();
    let name = simple_name(&args.next().unwrap_or_default())?;
    let keys = Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: make.name(SORTED),
        iter_var: name,
        iter_var2: None,
        accu_var: GATHERED.to_owned(),
        accu_init: make.list(Vec::new()),
        loop_cond: make.truth(true),
        loop_step: make.call(op::ADD, vec![make.name(GATHERED), make.list(args.collect())]),
        result: make.name(GATHERED),
    }));
    Ok(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: make.list(Vec::new()),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: SORTED.to_owned(),
        accu_init: call.target.take().map(|target| *target).unwrap_or_default(),
        loop_cond: make.truth(false),
        loop_step: make.name(SORTED),
        result: make.expr(Expr::Call(CallExpr {
            func_name: "@sortByAssociatedKeys".to_owned(),
            target: Some(Box::new(make.name(SORTED))),
            args: vec![make.expr(keys)],
        })),
    })))
}

fn simple_name(tree: &IdedExpr) -> Result<String, (u64, String)> {
    match &tree.expr {
        Expr::Ident(name) => Ok(name.clone()),
        _ => Err((tree.id, "argument must be a simple name".to_owned())),
    }
}

/// Makes parts of a tree, which are all where the macro is.
struct Maker(u64);

impl Maker {
    fn expr(&self, expr: Expr) -> IdedExpr {
        IdedExpr { id: self.0, expr }
    }

    fn name(&self, name: &str) -> IdedExpr {
        self.expr(Expr::Ident(name.to_owned()))
    }

    fn truth(&self, truth: bool) -> IdedExpr {
        self.expr(Expr::Literal(LiteralValue::Boolean(truth.into())))
    }

    fn number(&self, number: i64) -> IdedExpr {
        self.expr(Expr::Literal(LiteralValue::Int(number.into())))
    }

    fn list(&self, elements: Vec<IdedExpr>) -> IdedExpr {
        self.expr(Expr::List(ListExpr::new(elements)))
    }

    fn call(&self, function: &str, args: Vec<IdedExpr>) -> IdedExpr {
        self.expr(Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args }))
    }

    /// A step that is only done for some.
    fn filtered(&self, filter: Option<IdedExpr>, step: IdedExpr) -> IdedExpr {
        match filter {
            Some(filter) => self.call(op::CONDITIONAL, vec![filter, step, self.name(GATHERED)]),
            None => step,
        }
    }
}
