//! A placement that was read and found to make sense, and its verdict on one cluster.

use std::time::Duration;

use drover_api::cluster::{ManagedCluster, Placement, SortBy};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::{
    Candidate, LeftOut, Misconfigured, Outcome, Plugin, Problem, Scores, Verdict,
    arrange::Groups,
    predicate::Predicates,
    prioritize::{self, Weighted},
    selector::Subject,
    spread::{self, Constraint},
    toleration::Tolerations,
};

/// The annotation of a placement whose decisions somebody else writes.
pub const SCHEDULING_DISABLED_ANNOTATION: &str = "cluster.open-cluster-management.io/experimental-scheduling-disable";

/// Whether a placement's decisions are somebody else's to make.
#[must_use]
pub fn is_disabled(placement: &Placement) -> bool {
    placement.annotations().get(SCHEDULING_DISABLED_ANNOTATION).is_some_and(|value| value == "true")
}

/// A placement, ready to judge clusters.
#[derive(Debug)]
pub struct Program {
    pub(super) placement: String,
    predicates: Predicates,
    tolerations: Tolerations,
    pub(super) prioritizers: Vec<Weighted>,
    pub(super) spread: Vec<Constraint>,
    pub(super) groups: Groups,
    pub(super) order: SortBy,
    /// How many clusters are wanted; all where there is no number.
    pub(super) wanted: Option<usize>,
    pub(super) score_rate_limit: Duration,
}

impl Program {
    /// Reads a placement, and says what is wrong with it where something is.
    pub fn compile(placement: &Placement) -> Result<Self, Misconfigured> {
        let spec = &placement.spec;
        let of = |plugin| move |problem: Problem| problem.of(plugin);
        Ok(Self {
            placement: placement.name_any(),
            predicates: Predicates::compile(&spec.predicates).map_err(of(Plugin::Predicate))?,
            tolerations: Tolerations::compile(&spec.tolerations).map_err(of(Plugin::TaintToleration))?,
            prioritizers: prioritize::compile(spec.prioritizer_policy.as_ref()).map_err(of(Plugin::Prioritizer))?,
            spread: spread::compile(spec.spread_policy.as_ref()).map_err(of(Plugin::Spread))?,
            groups: Groups::compile(spec.decision_strategy.as_ref()).map_err(of(Plugin::DecisionStrategy))?,
            order: spec.sort_by.unwrap_or(SortBy::ClusterName),
            wanted: spec.number_of_clusters.map(wanted).transpose().map_err(of(Plugin::NumberOfClusters))?,
            score_rate_limit: rate_limit(spec.score_rate_limit.as_deref()).map_err(of(Plugin::ScoreRateLimit))?,
        })
    }

    /// The verdict on one cluster in reach, which `already_selected` says is in the placement's decisions.
    #[must_use]
    pub fn judge(&self, cluster: &ManagedCluster, scores: &Scores, already_selected: bool, now: Timestamp) -> Verdict {
        let mut verdict = Verdict {
            cluster: cluster.cluster_name(),
            outcome: Outcome::LeftOut(LeftOut::Terminating),
            may_change: None,
            hinges_on_selection: false,
        };
        if cluster.metadata.deletion_timestamp.is_some() {
            return verdict;
        }
        let subject = Subject::new(cluster);
        verdict.may_change = scores.first_expiry(now, |resource| self.reads_score(resource));
        if !self.predicates.hold(&subject, scores, now) {
            verdict.outcome = Outcome::LeftOut(LeftOut::NoPredicateMet);
            return verdict;
        }
        let tainted = self.tolerations.judge(&cluster.spec.taints, already_selected, now);
        verdict.may_change = [verdict.may_change, tainted.may_change].into_iter().flatten().min();
        verdict.hinges_on_selection = tainted.hinges_on_selection;
        verdict.outcome = match tainted.out {
            Some(taint) => Outcome::LeftOut(LeftOut::Tainted { key: taint.key.clone() }),
            None => Outcome::Candidate(Candidate {
                avoided: tainted.avoided,
                group: self.groups.of(&subject),
                topology: spread::topology(&self.spread, &subject),
                measures: prioritize::measure(&self.prioritizers, cluster, scores, now),
            }),
        };
        verdict
    }

    /// Whether a change of the AddOnPlacementScores with this name calls for a new verdict on their cluster.
    #[must_use]
    pub fn reads_score(&self, resource: &str) -> bool {
        self.predicates.read_score(resource)
            || prioritize::score_resources(&self.prioritizers).any(|read| read == resource)
    }
}

fn wanted(number: i32) -> Result<usize, Problem> {
    usize::try_from(number).map_err(|_| Problem::Number { number })
}

/// A number with one unit; a minute if nothing is said.
fn rate_limit(text: Option<&str>) -> Result<Duration, Problem> {
    let text = text.filter(|text| !text.is_empty()).unwrap_or("1m");
    let read = |(digits, unit): (&str, &str)| {
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return None,
        };
        digits.parse::<u64>().ok()?.checked_mul(seconds).map(Duration::from_secs)
    };
    let unit = text.len() - text.chars().next_back().map_or(0, char::len_utf8);
    read(text.split_at(unit)).ok_or_else(|| Problem::RateLimit { text: text.to_owned() })
}
