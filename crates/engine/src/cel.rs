//! Expressions that users write, about a cluster or about an object on one, in CEL.
//!
//! The interpreter is kube-cel's and stays behind this module. What it leaves open is settled here: whole numbers are
//! signed, a name that nothing declares is refused when the expression is compiled and not when something is judged,
//! what the interpreter would panic over is refused or caught, and the size of an expression and the cost of an
//! evaluation are bounded.

mod check;
mod functions;
mod meter;
pub mod syntax;
mod value;

use std::{
    collections::BTreeSet,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use drover_api::cluster::{ManagedCluster, Score};
use kube_cel::cel::{Context, ExecutionError, IdedExpr, Value};

use crate::words::excerpt;

/// The variable that holds the cluster.
const CLUSTER: &str = "managedCluster";
/// The variable that holds the object.
const OBJECT: &str = "object";
/// The variable that says what the rule has come to.
const RESULT: &str = "result";
/// The longest expression.
pub const MAX_LENGTH: usize = 2048;
/// How deep an expression may be, in operators, calls and brackets around each other: the interpreter takes a piece of
/// the stack for each.
pub const MAX_DEPTH: usize = 24;
/// How many list macros may stand inside each other: each multiplies the cost by the length of a list.
pub const MAX_NESTING: usize = 2;

/// What an expression is about: which variables it may use, and what it has to come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Whether a cluster is selected.
    Cluster,
    /// Whether a rule holds of an object.
    Object,
    /// What is said of an object once the rule has been asked.
    Message,
}

impl Scope {
    fn variables(self) -> &'static [&'static str] {
        match self {
            Self::Cluster => &[CLUSTER],
            Self::Object => &[OBJECT],
            Self::Message => &[OBJECT, RESULT],
        }
    }

    fn is_condition(self) -> bool {
        self != Self::Message
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cluster => "the cluster is `managedCluster`",
            Self::Object => "the object is `object`",
            Self::Message => "the object is `object`, and what the rule has come to is `result`",
        })
    }
}

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
    #[error("uses {0:?}, which there is not: {1}")]
    Undeclared(String, Scope),
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
    pub fn compile(source: &str, scope: Scope) -> Result<Self, Invalid> {
        if source.len() > MAX_LENGTH {
            return Err(Invalid::TooLong);
        }
        if syntax::bracket_depth(source) > MAX_DEPTH {
            return Err(Invalid::TooDeep);
        }
        let read = |mut tree| {
            let scores = check::check(&mut tree, scope)?;
            Ok(Self { tree, scores })
        };
        syntax::parse(source, read).map_err(Invalid::Syntax)?
    }

    /// Which scores it reads: when one of them changes, so may the expression's value.
    #[must_use]
    pub fn scores(&self) -> &ScoresRead {
        &self.scores
    }

    /// Whether it holds of what is seen. What can not be evaluated, such as a field that a cluster does not have, does
    /// not hold; nor does what costs more than an evaluation may.
    #[must_use]
    pub fn holds(&self, seen: &Seen) -> bool {
        self.truth(seen) == Ok(true)
    }

    /// Whether it holds of what is seen, or why nobody can tell.
    pub fn truth(&self, seen: &Seen) -> Result<bool, Failure> {
        match self.evaluate(seen)? {
            Value::Bool(truth) => Ok(truth),
            other => Err(Failure::NotBoolean(other.type_of().to_string())),
        }
    }

    /// The text that it comes to.
    pub fn text(&self, seen: &Seen) -> Result<String, Failure> {
        match self.evaluate(seen)? {
            Value::String(text) => Ok(text.as_ref().clone()),
            other => Err(Failure::NotText(other.type_of().to_string())),
        }
    }

    fn evaluate(&self, seen: &Seen) -> Result<Value, Failure> {
        // The interpreter panics on a few values that only show when it runs.
        let evaluate = || catch_unwind(AssertUnwindSafe(|| Value::resolve(&self.tree, &seen.0)));
        let evaluated = meter::within_allowance(evaluate).ok_or(Failure::TooCostly)?;
        evaluated.map_err(|_| Failure::GaveUp)?.map_err(|error| {
            Failure::Error(match error {
                ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
                other => excerpt(&other.to_string()),
            })
        })
    }
}

/// Why an evaluation has come to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Something in it is not there, or can not be done.
    #[error("{0}")]
    Error(String),
    /// It is neither true nor false.
    #[error("expected bool result, got {0}: compare it with something")]
    NotBoolean(String),
    /// It is no text.
    #[error("expected string result, got {0}: wrap it in string(...)")]
    NotText(String),
    /// It costs more than an evaluation may.
    #[error("costs more than is allowed: divide it into several expressions, or look at less of the object")]
    TooCostly,
    /// The interpreter could not cope with it.
    #[error("the interpreter could not evaluate it: write it in another way")]
    GaveUp,
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

/// What expressions see. Making this costs more than evaluating most expressions, so it is made once for all.
pub struct Seen(Context<'static>);

impl Seen {
    /// An object of any kind.
    #[must_use]
    pub fn object(object: &serde_json::Value) -> Self {
        let mut context = functions::ALL.new_inner_scope();
        context.add_variable_from_value(OBJECT, value::from_json(object.clone()));
        Self(context)
    }

    /// Besides that, what the rule has come to, for the message about it.
    #[must_use]
    pub fn with_result(mut self, result: bool) -> Self {
        self.0.add_variable_from_value(RESULT, result);
        self
    }

    /// A cluster with its scores, by the name of their AddOnPlacementScore.
    #[must_use]
    pub fn cluster<'a>(cluster: &ManagedCluster, scores: impl IntoIterator<Item = (&'a str, &'a [Score])>) -> Self {
        let mut context = functions::ALL.new_inner_scope();
        let json = serde_json::to_value(cluster).unwrap_or_default();
        context.add_variable_from_value(CLUSTER, value::from_json(json));
        context.add_variable_from_value(functions::SCORES, value::from_scores(scores));
        Self(context)
    }
}

#[cfg(test)]
mod tests;
