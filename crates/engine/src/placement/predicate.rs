//! What a cluster has to be like: one of the predicates, all of it.

use drover_api::cluster::{ClusterPredicate, ClusterSelector};
use k8s_openapi::jiff::Timestamp;

use super::{
    Problem,
    scores::Scores,
    selector::{ClusterFilter, Subject},
};
use crate::cel::{Expression, Scope, Seen};

/// The predicates of a placement. Where there are none, every cluster will do.
#[derive(Debug, Default)]
pub(super) struct Predicates(Vec<Predicate>);

#[derive(Debug, Default)]
struct Predicate {
    filter: ClusterFilter,
    expressions: Vec<Expression>,
}

impl Predicates {
    pub(super) fn compile(predicates: &[ClusterPredicate]) -> Result<Self, Problem> {
        let compiled = predicates.iter().enumerate().map(|(index, predicate)| {
            let place = format!("predicates[{index}].requiredClusterSelector");
            match &predicate.required_cluster_selector {
                Some(selector) => Predicate::compile(selector, &place),
                None => Ok(Predicate::default()),
            }
        });
        compiled.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn hold(&self, subject: &Subject, scores: &Scores, now: Timestamp) -> bool {
        // What expressions see of a cluster is costly to make, so it is made for the first that is asked.
        let mut seen = None;
        let mut holds = |expression: &Expression| {
            expression.holds(seen.get_or_insert_with(|| Seen::cluster(subject.cluster, scores.valid(now))))
        };
        let mut holds_all =
            |predicate: &Predicate| predicate.filter.matches(subject) && predicate.expressions.iter().all(&mut holds);
        self.0.is_empty() || self.0.iter().any(&mut holds_all)
    }

    /// Whether the AddOnPlacementScores with this name are looked at.
    pub(super) fn read_score(&self, resource: &str) -> bool {
        let mut expressions = self.0.iter().flat_map(|predicate| &predicate.expressions);
        expressions.any(|expression| expression.scores().contains(resource))
    }
}

impl Predicate {
    fn compile(selector: &ClusterSelector, place: &str) -> Result<Self, Problem> {
        let filter = ClusterFilter::compile(selector.label_selector.as_ref(), selector.claim_selector.as_ref(), place)?;
        let expressions = selector.cel_selector.iter().flat_map(|selector| &selector.cel_expressions);
        let compiled = expressions.enumerate().map(|(index, expression)| {
            Expression::compile(expression, Scope::Cluster).map_err(|invalid| Problem::Expression {
                place: format!("{place}.celSelector.celExpressions[{index}]"),
                expression: expression.clone(),
                invalid,
            })
        });
        Ok(Self { filter, expressions: compiled.collect::<Result<_, _>>()? })
    }
}
