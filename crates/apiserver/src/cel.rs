//! Expressions in CEL, of policies and of the rules of CustomResourceDefinitions.
//!
//! The parser and the libraries of functions are kube-cel's. The evaluation is done here: the crate's own forgets of a copied optional that it is
//! one, finds no two of them equal, copies whole objects, takes a field of what has none for false, and counts no cost.

mod check;
mod cost;
mod equality;
mod eval;
mod fields;
mod functions;
mod lists;
mod loops;
mod macros;
mod operators;
mod texts;
pub(crate) mod types;
mod value;
mod view;

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

use drover_engine::cel::syntax::{self, Mistake, Places};
use kube_cel::cel::IdedExpr;

use self::types::Type;
pub(crate) use self::{
    check::MAX_DEPTH,
    cost::{Budget, OUT_OF_BUDGET, TOO_EXPENSIVE},
    eval::Names,
    value::{Foreign, Value},
};

/// An expression that can be evaluated.
#[derive(Debug)]
pub(crate) struct Expression {
    /// As it was written.
    pub(crate) source: String,
    /// How many levels it has: each takes a piece of the stack when it is evaluated.
    pub(crate) depth: usize,
    /// The variables of its policy that it names.
    pub(crate) variables: BTreeSet<String>,
    tree: IdedExpr,
}

/// An expression whose type is known.
#[derive(Debug)]
pub(crate) struct Typed<'s> {
    pub(crate) expression: Expression,
    pub(crate) type_: Type<'s>,
    /// The variables that it names.
    pub(crate) uses: BTreeSet<String>,
}

/// The longest expression.
const MAX_LENGTH: usize = 10_000;
/// How many brackets may stand around each other.
const MAX_BRACKETS: usize = 250;

/// Why an expression is not given to the parser, which takes stack for every operator and every
/// bracket.
pub(crate) fn unparsable(source: &str) -> Option<String> {
    if source.len() > MAX_LENGTH {
        let (size, limit) = (source.len(), MAX_LENGTH);
        return Some(format!("expression code point size exceeds limit: size: {size}, limit {limit}"));
    }
    let is_nested = syntax::bracket_depth(source) > MAX_BRACKETS;
    is_nested.then(|| format!("expression recursion limit exceeded: {MAX_BRACKETS}"))
}

/// How many levels expressions can have for the stack that a thread has anyway, and what each takes
/// otherwise.
const USUAL_DEPTH: usize = 60;
const STACK: usize = 64 << 10;

/// Evaluates expressions of so many levels where the stack is large enough for them; nothing comes
/// back where there is none.
pub(crate) fn on_a_stack_for<T: Send>(levels: usize, work: impl FnOnce() -> T + Send) -> Option<T> {
    if levels <= USUAL_DEPTH {
        return Some(work());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(levels * STACK).spawn_scoped(scope, work);
        thread.ok()?.join().ok()
    })
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Error(pub(crate) String);

pub(crate) type Result<T> = std::result::Result<T, Error>;

pub(crate) fn error<T>(text: impl Into<String>) -> Result<T> {
    Err(Error(text.into()))
}

pub(crate) fn no_such_overload<T>() -> Result<T> {
    error("no such overload")
}

impl Expression {
    /// Reads an expression in which these variables may be named besides those that every expression has. Types are seen when it is evaluated.
    pub(crate) fn compile(source: &str, variables: &[&str]) -> Result<Self> {
        if let Some(problem) = unparsable(source) {
            return error(format!("compilation failed: {problem}"));
        }
        let read = |mut tree: IdedExpr| {
            macros::expand(&mut tree).map_err(|(_, why)| Error(format!("compilation failed: {why}")))?;
            let check::Findings { depth, variables } = check::check(&tree, variables)?;
            Ok(Self { source: source.to_owned(), depth, variables, tree })
        };
        syntax::parse(source, read).map_err(|why| Error(format!("compilation failed: {why}")))?
    }

    /// Reads an expression in which variables are of these types, and finds its own. What is wrong is told in the order of its places.
    pub(crate) fn compile_typed<'s>(
        source: &str,
        variables: &[(&str, Type<'s>)],
    ) -> std::result::Result<Typed<'s>, Vec<Mistake>> {
        let read = |mut tree: IdedExpr, places: &dyn Fn() -> Places| {
            let at_places = |wrong: Vec<(u64, String)>| {
                let places = places();
                let mut mistakes: Vec<_> = wrong.into_iter().map(|(id, text)| places.mistake(id, text)).collect();
                mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
                mistakes
            };
            macros::expand(&mut tree).map_err(|wrong| at_places(vec![wrong]))?;
            let found = types::check(&tree, variables);
            if !found.mistakes.is_empty() {
                return Err(at_places(found.mistakes));
            }
            let (source, depth) = (source.to_owned(), found.depth);
            let expression = Self { source, depth, variables: BTreeSet::new(), tree };
            Ok(Typed { expression, type_: found.type_, uses: found.uses })
        };
        syntax::parse_with_places(source, read)?
    }

    /// Its value where names mean this, and what that costs is taken from the budget.
    pub(crate) fn evaluate<'a>(&'a self, names: &dyn Names<'a>, budget: &Budget) -> Result<Value<'a>> {
        // The libraries panic on a few values that only show when they run.
        let evaluate = || budget.within_limit(|| eval::Evaluation::new(names, budget).value(&self.tree));
        catch_unwind(AssertUnwindSafe(evaluate)).unwrap_or_else(|_| error("internal error"))
    }
}

#[cfg(test)]
mod tests;
