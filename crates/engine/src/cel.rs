//! Expressions that users write about a cluster, in CEL.
//!
//! The interpreter is kube-cel's and stays behind this module. What it leaves open is settled here: whole numbers are
//! signed, a name that nothing declares is refused when the expression is compiled and not when a cluster is judged,
//! what the interpreter would panic over is refused or caught, and the size of an expression and the cost of an
//! evaluation are bounded.

mod check;
mod functions;
mod meter;
mod value;

use std::{
    collections::BTreeSet,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use drover_api::cluster::{ManagedCluster, Score};
use kube_cel::cel::{Context, IdedExpr, Value, parser::Parser};

/// The variable that holds the cluster.
const CLUSTER: &str = "managedCluster";
/// The longest expression.
pub const MAX_LENGTH: usize = 2048;
/// How deep an expression may be, in operators, calls and brackets around each other: the interpreter takes a piece of
/// the stack for each.
pub const MAX_DEPTH: usize = 24;
/// The stack that an expression of the greatest length needs while it is parsed, however it is nested: the generated parser
/// takes up to a hundred kilobytes for one operator.
const PARSER_STACK: usize = 128 << 20;
/// How many list macros may stand inside each other: each multiplies the cost by the length of a list.
pub const MAX_NESTING: usize = 2;

/// An expression that was found to be sound.
pub struct Expression {
    tree: IdedExpr,
    scores: ScoresRead,
}

/// Which AddOnPlacementScores an expression reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScoresRead {
    /// Those with these names.
    Named(BTreeSet<String>),
    /// Any: a name is computed.
    Any,
}

/// Why an expression can not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// It is longer than is allowed.
    #[error("is longer than {MAX_LENGTH} characters: shorten it, or divide it into several expressions")]
    TooLong,
    /// It is not CEL.
    #[error("is not a CEL expression: {0}")]
    Syntax(String),
    /// It uses a name that there is not.
    #[error("uses {0:?}, which there is not: the cluster is `managedCluster`")]
    Undeclared(String),
    /// It calls a function that there is not.
    #[error("calls the function {0:?}, which there is not")]
    UnknownFunction(String),
    /// It asks something else than a cluster for scores.
    #[error("asks something else than the cluster for scores: write managedCluster.scores(\"name\")")]
    ScoresOfWhat,
    /// It makes a message, for which Kubernetes has no types.
    #[error("makes a message of type {0:?}, which there is not")]
    Message(String),
    /// It is nested too deeply.
    #[error("has operators, calls or brackets more than {MAX_DEPTH} deep: divide it into several expressions")]
    TooDeep,
    /// Its loops are nested too deeply.
    #[error("has list macros more than {MAX_NESTING} deep: the cost would be out of hand")]
    TooManyLoops,
    /// Its value can not be true or false.
    #[error("is neither true nor false: compare it with something")]
    NotBoolean,
}

impl Expression {
    /// Reads an expression, and refuses what could only fail later.
    pub fn compile(source: &str) -> Result<Self, Invalid> {
        if source.len() > MAX_LENGTH {
            return Err(Invalid::TooLong);
        }
        if bracket_depth(source) > MAX_DEPTH {
            return Err(Invalid::TooDeep);
        }
        on_a_large_stack(|| {
            let parser = Parser::new().max_recursion_depth(u16::MAX).enable_optional_syntax(true);
            let mut tree = parser.parse(source).map_err(|errors| Invalid::Syntax(one_line(&errors.to_string())))?;
            let scores = check::check(&mut tree)?;
            Ok(Self { tree, scores })
        })
    }

    /// Which scores it reads: when one of them changes, so may the expression's value.
    #[must_use]
    pub fn scores(&self) -> &ScoresRead {
        &self.scores
    }

    /// Whether it holds of a cluster. What can not be evaluated, such as a field that the cluster does not have, does
    /// not hold; nor does what costs more than an evaluation may.
    #[must_use]
    pub fn holds(&self, cluster: &Cluster) -> bool {
        // The interpreter panics on a few values that only show when it runs.
        let evaluate = || catch_unwind(AssertUnwindSafe(|| Value::resolve(&self.tree, &cluster.0)));
        matches!(meter::within_allowance(evaluate), Some(Ok(Ok(Value::Bool(true)))))
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expression").field("scores", &self.scores).finish_non_exhaustive()
    }
}

impl ScoresRead {
    /// Whether the AddOnPlacementScores with this name are read.
    #[must_use]
    pub fn contains(&self, resource: &str) -> bool {
        match self {
            Self::Named(names) => names.contains(resource),
            Self::Any => true,
        }
    }
}

/// A cluster as expressions see it. Making one costs more than evaluating most expressions, so it is made once for all.
pub struct Cluster(Context<'static>);

impl Cluster {
    /// The cluster with its scores, by the name of their AddOnPlacementScore.
    #[must_use]
    pub fn new<'a>(cluster: &ManagedCluster, scores: impl IntoIterator<Item = (&'a str, &'a [Score])>) -> Self {
        let mut context = functions::ALL.new_inner_scope();
        let json = serde_json::to_value(cluster).unwrap_or_default();
        context.add_variable_from_value(CLUSTER, value::from_json(json));
        context.add_variable_from_value(functions::SCORES, value::from_scores(scores));
        Self(context)
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

/// Reads an expression on a thread of its own, for its stack, and because the generated parser has places where it
/// panics: an author's typo must not reach further than his placement.
fn on_a_large_stack(read: impl FnOnce() -> Result<Expression, Invalid> + Send) -> Result<Expression, Invalid> {
    let gave_up = || Invalid::Syntax("the parser gave up".into());
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(PARSER_STACK).spawn_scoped(scope, read);
        thread.map_err(|_| gave_up())?.join().map_err(|_| gave_up())?
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
