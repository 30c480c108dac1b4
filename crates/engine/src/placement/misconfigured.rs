//! What is wrong with a placement, in words that its author can act on.

use std::fmt;

use crate::cel;

/// A placement that can not be followed, because a part of it makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{plugin}: {problem}")]
pub struct Misconfigured {
    /// The part of the scheduler that could not make sense of it.
    pub plugin: Plugin,
    /// What it could not make sense of.
    pub problem: Problem,
}

/// A part of the scheduler that reads a part of the placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugin {
    /// `spec.predicates`.
    Predicate,
    /// `spec.tolerations`.
    TaintToleration,
    /// `spec.prioritizerPolicy`.
    Prioritizer,
    /// `spec.spreadPolicy`.
    Spread,
    /// `spec.decisionStrategy`.
    DecisionStrategy,
    /// `spec.numberOfClusters`.
    NumberOfClusters,
    /// `spec.scoreRateLimit`.
    ScoreRateLimit,
    /// The selector of a ManagedClusterSet.
    ClusterSet,
    /// What the placement is decided by: sets, bindings and clusters.
    Fleet,
}

/// What makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// An object that the decision hinges on is there, and can not be read.
    #[error("the {kind} {name} can not be read: correct or delete it")]
    Unreadable {
        /// Of which kind it is.
        kind: &'static str,
        /// What it is called.
        name: String,
    },
    /// There is no selector where one is needed.
    #[error("{place}: write a selector; an empty one selects everything")]
    NoSelector {
        /// Where the selector should stand.
        place: String,
    },
    /// A selector's operator is unknown.
    #[error("{place}: the operator {operator:?} of {key:?} is none of In, NotIn, Exists and DoesNotExist")]
    Operator {
        /// Where the selector stands.
        place: String,
        /// The key that the requirement is about.
        key: String,
        /// The operator.
        operator: String,
    },
    /// A selector asks for values and names none, or takes none and names some.
    #[error("{place}: {operator} of {key:?} {}", if *.operator == "In" || *.operator == "NotIn" { "needs values" } else { "takes no values" })]
    Values {
        /// Where the selector stands.
        place: String,
        /// The key that the requirement is about.
        key: String,
        /// The operator.
        operator: String,
    },
    /// A selector's key is not the name of a label or claim.
    #[error("{place}: {key:?} can not be the name of a label or a claim")]
    Key {
        /// Where the selector stands.
        place: String,
        /// The key.
        key: String,
    },
    /// An expression can not be used.
    #[error("{place}: the expression {expression:?} {invalid}")]
    Expression {
        /// Where the expression stands.
        place: String,
        /// The expression.
        expression: String,
        /// Why it can not be used.
        invalid: cel::Invalid,
    },
    /// A toleration has no key, and does not say that it means every key.
    #[error("tolerations[{index}]: write a key, or the operator Exists to tolerate every taint")]
    TolerationKey {
        /// Which toleration.
        index: usize,
    },
    /// A toleration asks for any value and for a certain one.
    #[error("tolerations[{index}]: Exists is about any value: remove the value {value:?}, or write the operator Equal")]
    TolerationValue {
        /// Which toleration.
        index: usize,
        /// The value.
        value: String,
    },
    /// A toleration's operator is unknown.
    #[error("tolerations[{index}]: the operator {operator:?} is neither Equal nor Exists")]
    TolerationOperator {
        /// Which toleration.
        index: usize,
        /// The operator.
        operator: String,
    },
    /// The mode of the prioritizers is unknown.
    #[error("prioritizerPolicy: the mode {mode:?} is neither Additive nor Exact")]
    Mode {
        /// The mode.
        mode: String,
    },
    /// A built-in prioritizer that there is not.
    #[error(
        "prioritizerPolicy.configurations[{index}]: there is no built-in {name:?}: \
         write Steady, Balance, ResourceAllocatableCPU or ResourceAllocatableMemory"
    )]
    UnknownPrioritizer {
        /// Which configuration.
        index: usize,
        /// The name.
        name: String,
    },
    /// A prioritizer that does not say which score it means.
    #[error("prioritizerPolicy.configurations[{index}]: write {missing} beside the type")]
    NoScore {
        /// Which configuration.
        index: usize,
        /// The field that is missing.
        missing: &'static str,
    },
    /// A spread over values that may differ by nothing.
    #[error("spreadPolicy.spreadConstraints[{index}]: maxSkew is {skew}: write 1 or more")]
    Skew {
        /// Which constraint.
        index: usize,
        /// The skew.
        skew: i32,
    },
    /// Less than no clusters.
    #[error("numberOfClusters is {number}: write 0 or more, or leave it out to select all that match")]
    Number {
        /// The number.
        number: i32,
    },
    /// A time that can not be read.
    #[error("scoreRateLimit is {text:?}: write a number with h, m or s, such as 1m")]
    RateLimit {
        /// The text.
        text: String,
    },
}

impl Problem {
    /// The problem, as one of this part of the scheduler.
    pub(crate) fn of(self, plugin: Plugin) -> Misconfigured {
        Misconfigured { plugin, problem: self }
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Predicate => "Predicate",
            Self::TaintToleration => "TaintToleration",
            Self::Prioritizer => "Prioritizer",
            Self::Spread => "Spread",
            Self::DecisionStrategy => "DecisionStrategy",
            Self::NumberOfClusters => "NumberOfClusters",
            Self::ScoreRateLimit => "ScoreRateLimit",
            Self::ClusterSet => "ClusterSet",
            Self::Fleet => "Fleet",
        })
    }
}
