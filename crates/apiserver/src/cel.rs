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
    cost::{Budget, OUT_OF_BUDGET, TOO_EXPENSIVE},
    eval::Names,
    value::{Foreign, Value},
};

/// An expression that can be evaluated.
#[derive(Debug)]
pub(crate) struct Expression {
    /// As it was written.
    pub(crate) source: String,
    tree: IdedExpr,
}

/// An expression whose type is known.
#[derive(Debug)]
pub(crate) struct Typed<'s> {
    pub(crate) expression: Expression,
    pub(crate) type_: Type<'s>,
    /// The variables that it names.
    pub(crate) uses: BTreeSet<String>,
    /// How many levels it has: each takes a piece of the stack when it is evaluated.
    pub(crate) depth: usize,
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
        let read = |mut tree: IdedExpr| {
            macros::expand(&mut tree).map_err(|(_, why)| Error(format!("compilation failed: {why}")))?;
            check::check(&tree, variables)?;
            Ok(Self { source: source.to_owned(), tree })
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
            let expression = Self { source: source.to_owned(), tree };
            Ok(Typed { expression, type_: found.type_, uses: found.uses, depth: found.depth })
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
