//! Selections by labels and claims, which both go by the operators of label selectors.

use std::{cell::OnceCell, collections::BTreeMap};

use drover_api::cluster::{ClaimSelector, ManagedCluster};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::{
    ResourceExt,
    core::{Expression, Selector, SelectorExt},
};

use super::Problem;

/// A cluster under judgement. Its claims are a list on the wire; they become a map when somebody asks for one.
pub(super) struct Subject<'a> {
    pub(super) cluster: &'a ManagedCluster,
    claims: OnceCell<BTreeMap<String, String>>,
}

impl<'a> Subject<'a> {
    pub(super) fn new(cluster: &'a ManagedCluster) -> Self {
        Self { cluster, claims: OnceCell::new() }
    }

    pub(super) fn labels(&self) -> &'a BTreeMap<String, String> {
        self.cluster.labels()
    }

    pub(super) fn claims(&self) -> &BTreeMap<String, String> {
        let claims = self.cluster.status.iter().flat_map(|status| &status.cluster_claims);
        self.claims.get_or_init(|| claims.map(|claim| (claim.name.clone(), claim.value.clone())).collect())
    }
}

/// Requirements on labels and on claims, all of which have to hold.
#[derive(Debug, Default)]
pub(super) struct ClusterFilter {
    labels: Selector,
    claims: Selector,
}

impl ClusterFilter {
    /// `place` is where the two selectors stand in the placement.
    pub(super) fn compile(
        labels: Option<&LabelSelector>,
        claims: Option<&ClaimSelector>,
        place: &str,
    ) -> Result<Self, Problem> {
        let labels = labels.map(|selector| by_labels(selector, &format!("{place}.labelSelector"))).transpose()?;
        let claims = claims.map_or(&[][..], |selector| &selector.match_expressions);
        let claims = requirements(claims, &format!("{place}.claimSelector"))?;
        Ok(Self { labels: labels.unwrap_or_default(), claims })
    }

    pub(super) fn matches(&self, subject: &Subject) -> bool {
        self.labels.matches(subject.labels()) && (self.claims.selects_all() || self.claims.matches(subject.claims()))
    }
}

/// A label selector; an empty one selects everything.
pub(crate) fn by_labels(selector: &LabelSelector, place: &str) -> Result<Selector, Problem> {
    let equal = selector.match_labels.iter().flatten();
    let mut compiled: Selector = equal.map(|(key, value)| Expression::Equal(key.clone(), value.clone())).collect();
    compiled.extend(requirements(selector.match_expressions.as_deref().unwrap_or_default(), place)?);
    Ok(compiled)
}

fn requirements(requirements: &[LabelSelectorRequirement], place: &str) -> Result<Selector, Problem> {
    requirements.iter().map(|requirement| expression(requirement, place)).collect()
}

fn expression(requirement: &LabelSelectorRequirement, place: &str) -> Result<Expression, Problem> {
    let LabelSelectorRequirement { key, operator, values } = requirement;
    let (place, key, operator) = (place.to_owned(), key.clone(), operator.clone());
    if !can_be_a_name(&key) {
        return Err(Problem::Key { place, key });
    }
    let values = values.as_deref().unwrap_or_default();
    let some = || values.iter().cloned().collect();
    match (operator.as_str(), values.is_empty()) {
        ("In", false) => Ok(Expression::In(key, some())),
        ("NotIn", false) => Ok(Expression::NotIn(key, some())),
        ("Exists", true) => Ok(Expression::Exists(key)),
        ("DoesNotExist", true) => Ok(Expression::DoesNotExist(key)),
        ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => Err(Problem::Values { place, key, operator }),
        _ => Err(Problem::Operator { place, key, operator }),
    }
}

/// A label's name, or a claim's, which is looser. What can not be one would silently select nothing.
fn can_be_a_name(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
}
