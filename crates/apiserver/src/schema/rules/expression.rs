//! An expression in CEL, and what is found wrong with it before it is ever evaluated.
//!
//! There is no type checker: an expression that names a field that there is not is only found out when it is evaluated.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

use kube_cel::cel::{
    Context, ExecutionError, IdedExpr, ResolveResult, Value,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, ListExpr, LiteralValue, operators},
    parser::Parser,
};

use super::{functions, source::without_double_negations};

/// The longest expression.
const MAX_LENGTH: usize = 10_000;
/// The stack that is taken for each character of an expression while it is parsed, and for each level while it is evaluated:
/// the generated parser takes up to a hundred kilobytes for one operator. What is not used costs nothing.
const STACK: usize = 64 << 10;
/// How deep an expression can be for the stack that a thread has anyway: the interpreter takes a piece of it for each level.
const USUAL_DEPTH: usize = 24;
/// How deep an expression may be at all.
const MAX_DEPTH: usize = 250;
/// The types, which are names too.
const TYPES: [&str; 11] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "optional_type", "string", "type", "uint"];

/// An expression that was found to be sound, as far as that can be told.
#[derive(Debug)]
pub(super) struct Expression {
    tree: IdedExpr,
    depth: usize,
    /// Whether it asks what was before.
    pub(super) is_about_change: bool,
}

/// What an expression is to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// True or false.
    Truth,
    /// A text.
    Text,
}

/// What is wrong with an expression.
#[derive(Debug)]
pub(super) enum Fault {
    /// It can not be compiled.
    Compilation(String),
    /// It makes something else than it should.
    Sort(Sort),
}

impl Fault {
    /// What is said about it, where this step has failed.
    pub(super) fn of(&self, step: &str) -> String {
        match self {
            Self::Compilation(why) => format!("{step} failed: ERROR: <input>:1:1: {why}"),
            Self::Sort(Sort::Truth) => "cel expression must evaluate to a bool".to_owned(),
            Self::Sort(Sort::Text) => "messageExpression must evaluate to a string".to_owned(),
        }
    }
}

impl Expression {
    pub(super) fn compile(source: &str, sort: Sort) -> Result<Self, Fault> {
        if source.len() > MAX_LENGTH {
            return Err(Fault::Compilation(format!("expression code point size exceeds limit: {MAX_LENGTH}")));
        }
        if bracket_depth(source) > MAX_DEPTH {
            return Err(Fault::Compilation(too_deep()));
        }
        let read = || {
            let parser = Parser::new().max_recursion_depth(u16::MAX).enable_optional_syntax(true);
            let mut tree = parser.parse(&without_double_negations(source)).map_err(|errors| {
                let text = errors.to_string();
                Fault::Compilation(format!("Syntax error: {}", text.split_whitespace().collect::<Vec<_>>().join(" ")))
            })?;
            if never_makes(sort, &tree.expr) {
                return Err(Fault::Sort(sort));
            }
            let mut checker = Checker { names: Vec::new(), depth: 0, deepest: 0, is_about_change: false };
            checker.visit(&mut tree).map_err(Fault::Compilation)?;
            Ok(Self { tree, depth: checker.deepest, is_about_change: checker.is_about_change })
        };
        on_a_stack_for(source.len().max(MAX_DEPTH), read)
            .unwrap_or_else(|| Err(Fault::Compilation("Syntax error: the parser gave up".into())))
    }

    /// Evaluates it. What the interpreter panics over is an error as any other.
    pub(super) fn evaluate(&self, context: &Context<'_>) -> ResolveResult {
        let evaluate = || catch_unwind(AssertUnwindSafe(|| Value::resolve(&self.tree, context))).ok();
        let answer =
            if self.depth > USUAL_DEPTH { on_a_stack_for(4 * self.depth, evaluate).flatten() } else { evaluate() };
        answer.unwrap_or_else(|| Err(ExecutionError::function_error("rule", "the interpreter gave up")))
    }
}

/// How many brackets stand around each other. Those in texts count too: it is a bound, not a measure.
fn bracket_depth(source: &str) -> usize {
    let depth = source.chars().scan(0_usize, |depth, c| {
        match c {
            '(' | '[' | '{' => *depth += 1,
            ')' | ']' | '}' => *depth = depth.saturating_sub(1),
            _ => {}
        }
        Some(*depth)
    });
    depth.max().unwrap_or_default()
}

fn too_deep() -> String {
    format!("expression recursion limit exceeded: {MAX_DEPTH}")
}

/// Does something on a thread of its own, for its stack, and because the parser has places where it panics.
fn on_a_stack_for<T: Send>(levels: usize, work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(levels * STACK).spawn_scoped(scope, work);
        thread.ok()?.join().ok()
    })
}

/// What is plainly something else is seen without a type checker.
fn never_makes(sort: Sort, expr: &Expr) -> bool {
    let is_arithmetic = |name: &str| {
        [operators::SUBSTRACT, operators::MULTIPLY, operators::DIVIDE, operators::MODULO, operators::NEGATE]
            .contains(&name)
    };
    match (sort, expr) {
        (_, Expr::List(_) | Expr::Map(_)) => true,
        (Sort::Truth, Expr::Literal(literal)) => !matches!(literal, LiteralValue::Boolean(_)),
        (Sort::Text, Expr::Literal(literal)) => !matches!(literal, LiteralValue::String(_)),
        (Sort::Truth, Expr::Call(call)) => is_arithmetic(&call.func_name) || call.func_name == operators::ADD,
        (Sort::Text, Expr::Call(call)) => is_arithmetic(&call.func_name),
        _ => false,
    }
}

/// Walks an expression with the names that are known where it is, and puts right what the interpreter has wrong.
struct Checker {
    names: Vec<String>,
    depth: usize,
    deepest: usize,
    is_about_change: bool,
}

impl Checker {
    fn visit(&mut self, tree: &mut IdedExpr) -> Result<(), String> {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        if self.depth > MAX_DEPTH {
            return Err(too_deep());
        }
        self.visit_inside(tree)?;
        self.depth -= 1;
        Ok(())
    }

    fn visit_inside(&mut self, tree: &mut IdedExpr) -> Result<(), String> {
        if let Some(bound) = as_bind(tree) {
            tree.expr = bound;
        }
        match &mut tree.expr {
            Expr::Ident(name) => self.visit_name(name),
            Expr::Literal(_) => Ok(()),
            Expr::Select(select) => self.visit(&mut select.operand),
            Expr::List(list) => list.elements.iter_mut().try_for_each(|element| self.visit(element)),
            Expr::Map(map) => map.entries.iter_mut().try_for_each(|entry| self.visit_entry(entry)),
            Expr::Call(call) => self.visit_call(call),
            Expr::Comprehension(comprehension) => self.visit_comprehension(comprehension),
            Expr::Struct(message) => Err(undeclared(&message.type_name)),
            Expr::Unspecified => Err("Syntax error: a part of it is missing".to_owned()),
        }
    }

    fn visit_name(&mut self, name: &str) -> Result<(), String> {
        if self.names.iter().any(|known| known == name) || name == "self" || TYPES.contains(&name) {
            return Ok(());
        }
        if name == "oldSelf" {
            self.is_about_change = true;
            return Ok(());
        }
        Err(undeclared(name))
    }

    fn visit_entry(&mut self, entry: &mut IdedEntryExpr) -> Result<(), String> {
        match &mut entry.expr {
            EntryExpr::MapEntry(entry) => {
                self.visit(&mut entry.key)?;
                self.visit(&mut entry.value)
            }
            EntryExpr::StructField(field) => Err(undeclared(&field.field)),
        }
    }

    fn visit_call(&mut self, call: &mut CallExpr) -> Result<(), String> {
        // `a.?b` fails in the interpreter where there is no b; `a[?'b']`, which means the same, does not.
        if call.func_name == operators::OPT_SELECT {
            operators::OPT_INDEX.clone_into(&mut call.func_name);
        }
        call.args.iter_mut().try_for_each(|argument| self.visit(argument))?;
        if !call.func_name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return Ok(());
        }
        let library = call.target.as_deref().and_then(|target| library_of(target, &self.names));
        let name = match (library, call.target.as_deref_mut()) {
            // Not a value, but the first half of a function's name.
            (Some(library), _) => format!("{library}.{}", call.func_name),
            (None, Some(target)) => {
                self.visit(target)?;
                call.func_name.clone()
            }
            (None, None) => call.func_name.clone(),
        };
        if functions::exists(&name) { Ok(()) } else { Err(undeclared(&name)) }
    }

    fn visit_comprehension(&mut self, comprehension: &mut ComprehensionExpr) -> Result<(), String> {
        self.visit(&mut comprehension.iter_range)?;
        self.visit(&mut comprehension.accu_init)?;
        let outside = self.names.len();
        self.names.push(comprehension.accu_var.clone());
        self.names.push(comprehension.iter_var.clone());
        self.names.extend(comprehension.iter_var2.clone());
        self.visit(&mut comprehension.loop_cond)?;
        self.visit(&mut comprehension.loop_step)?;
        self.visit(&mut comprehension.result)?;
        self.names.truncate(outside);
        Ok(())
    }
}

fn undeclared(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}

fn library_of(target: &IdedExpr, names: &[String]) -> Option<String> {
    match &target.expr {
        Expr::Ident(name) if !names.contains(name) && name != "self" && name != "oldSelf" => Some(name.clone()),
        _ => None,
    }
}

/// `cel.bind(name, value, expression)`, which the parser does not know, as the loop without rounds that it stands for.
fn as_bind(tree: &mut IdedExpr) -> Option<Expr> {
    let Expr::Call(call) = &mut tree.expr else { return None };
    let of_library = call.target.as_ref().is_some_and(|target| target.expr == Expr::Ident("cel".to_owned()));
    let [IdedExpr { expr: Expr::Ident(name), .. }, value, result] = call.args.as_mut_slice() else { return None };
    if call.func_name != "bind" || !of_library {
        return None;
    }
    let tree = |expr: Expr| IdedExpr { id: 0, expr };
    Some(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: tree(Expr::List(ListExpr::new(Vec::new()))),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: name.clone(),
        accu_init: mem::take(value),
        loop_cond: tree(Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: tree(Expr::Ident(name.clone())),
        result: mem::take(result),
    })))
}
