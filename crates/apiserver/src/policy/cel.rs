//! The expressions that policies are made of, in CEL.
//!
//! The parser and the libraries of functions are kube-cel's. The evaluation is done here: the crate's own forgets of a copied optional that it is
//! one, finds no two of them equal, copies whole objects, takes a field of what has none for false, and counts no cost.

mod authorizer;
mod check;
mod eval;
mod functions;
mod operators;
mod value;

use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::{IdedExpr, parser::Parser};

pub(super) use self::{
    authorizer::Check,
    eval::{Budget, Names},
    value::Value,
};

/// The stack for the parser, which takes up to a hundred kilobytes for one operator.
const PARSER_STACK: usize = 256 << 20;
/// What one evaluation may cost.
const COST_OF_ONE: u64 = 1_000_000;

/// An expression that can be evaluated.
#[derive(Debug)]
pub(super) struct Expression {
    /// As it was written.
    pub(super) source: String,
    tree: IdedExpr,
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Error(pub(super) String);

pub(super) type Result<T> = std::result::Result<T, Error>;

fn error<T>(text: impl Into<String>) -> Result<T> {
    Err(Error(text.into()))
}

fn no_such_overload<T>() -> Result<T> {
    error("no such overload")
}

impl Expression {
    /// Reads an expression in which these variables may be named besides those that every expression has.
    pub(super) fn compile(source: &str, variables: &[&str]) -> Result<Self> {
        let tree = parse(source)?;
        check::check(&tree, variables)?;
        Ok(Self { source: source.to_owned(), tree })
    }

    /// Its value where names mean this, and what that costs is taken from the budget.
    pub(super) fn evaluate<'a>(&'a self, names: &dyn Names<'a>, budget: &Budget) -> Result<Value<'a>> {
        // The libraries panic on a few values that only show when they run.
        let evaluate = || budget.within(COST_OF_ONE, || eval::Evaluation::new(names, budget).value(&self.tree));
        catch_unwind(AssertUnwindSafe(evaluate)).unwrap_or_else(|_| error("internal error"))
    }
}

/// Parses on a thread of its own, for its stack, and because the generated parser has places where it panics.
fn parse(source: &str) -> Result<IdedExpr> {
    let read = || {
        let parser = Parser::new().max_recursion_depth(u16::MAX).enable_optional_syntax(true);
        parser.parse(source).map_err(|errors| Error(format!("compilation failed: {}", one_line(&errors.to_string()))))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(PARSER_STACK).spawn_scoped(scope, read);
        let parsed = thread.ok().and_then(|thread| thread.join().ok());
        parsed.unwrap_or_else(|| error("compilation failed: the parser gave up"))
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
