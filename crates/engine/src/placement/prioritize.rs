//! Which clusters are better: scores from -100 to 100, each times its weight, added up.

use drover_api::{
    cluster::{AddOnScore, ManagedCluster, PrioritizerConfig, PrioritizerPolicy, ScoreType},
    reference::ClusterName,
};
use k8s_openapi::jiff::Timestamp;

use super::{Problem, scores::Scores};
use crate::quantity;

/// The best score that a prioritizer gives.
const BEST: i64 = 100;

/// A prioritizer and how much it counts.
#[derive(Debug, PartialEq)]
pub(super) struct Weighted {
    prioritizer: Prioritizer,
    weight: i64,
}

#[derive(Debug, PartialEq)]
enum Prioritizer {
    /// Clusters that are selected already.
    Steady,
    /// Clusters that few other placements have selected.
    Balance,
    /// Clusters with more of a resource to give away.
    Allocatable { resource: &'static str },
    /// Clusters that an add-on calls better.
    AddOn(AddOnScore),
}

/// The scores that one prioritizer gives, for those who want to know why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name of the prioritizer.
    pub prioritizer: String,
    /// What its scores are multiplied by.
    pub weight: i64,
    /// The score of each candidate, by name.
    pub scores: Vec<(ClusterName, i64)>,
}

/// A candidate, as far as prioritizers look at it.
pub(super) struct Contender<'a> {
    pub(super) name: &'a ClusterName,
    pub(super) measures: &'a [Option<i128>],
    pub(super) selected: bool,
}

/// The prioritizers that a policy comes to. What has no weight is left out.
pub(super) fn compile(policy: Option<&PrioritizerPolicy>) -> Result<Vec<Weighted>, Problem> {
    let mut all = match policy.and_then(|policy| policy.mode.as_deref()).unwrap_or_default() {
        "" | "Additive" => vec![Prioritizer::Steady.weighing(1), Prioritizer::Balance.weighing(1)],
        "Exact" => Vec::new(),
        mode => return Err(Problem::Mode { mode: mode.to_owned() }),
    };
    for (index, config) in policy.iter().flat_map(|policy| &policy.configurations).enumerate() {
        let wanted = Prioritizer::compile(config, index)?.weighing(config.weight.into());
        match all.iter_mut().find(|known| known.prioritizer == wanted.prioritizer) {
            Some(known) => *known = wanted,
            None => all.push(wanted),
        }
    }
    all.retain(|weighted| weighted.weight != 0);
    Ok(all)
}

/// What the prioritizers want to know of a cluster, in their order.
pub(super) fn measure(
    all: &[Weighted],
    cluster: &ManagedCluster,
    scores: &Scores,
    now: Timestamp,
) -> Box<[Option<i128>]> {
    all.iter().map(|weighted| weighted.prioritizer.measure(cluster, scores, now)).collect()
}

/// The AddOnPlacementScores that the prioritizers read.
pub(super) fn score_resources(all: &[Weighted]) -> impl Iterator<Item = &str> {
    all.iter().filter_map(|weighted| match &weighted.prioritizer {
        Prioritizer::AddOn(score) => Some(score.resource_name.as_str()),
        _ => None,
    })
}

/// The total score of each contender.
pub(super) fn totals(
    all: &[Weighted],
    contenders: &[Contender],
    elsewhere: &dyn Fn(&ClusterName) -> usize,
) -> Vec<i64> {
    let mut totals = vec![0; contenders.len()];
    for (index, weighted) in all.iter().enumerate() {
        let scores = weighted.scores(index, contenders, elsewhere, keeps_selected(all));
        totals.iter_mut().zip(scores).for_each(|(total, score)| *total += weighted.weight * score);
    }
    totals
}

/// What each prioritizer says of each contender.
pub(super) fn columns(
    all: &[Weighted],
    contenders: &[Contender],
    elsewhere: &dyn Fn(&ClusterName) -> usize,
) -> Vec<Column> {
    let column = |(index, weighted): (usize, &Weighted)| Column {
        prioritizer: weighted.prioritizer.name(),
        weight: weighted.weight,
        scores: {
            let scores = weighted.scores(index, contenders, elsewhere, keeps_selected(all));
            contenders.iter().map(|contender| contender.name.clone()).zip(scores).collect()
        },
    };
    all.iter().enumerate().map(column).collect()
}

/// Whether clusters that are selected already are to stay.
fn keeps_selected(all: &[Weighted]) -> bool {
    all.iter().any(|weighted| weighted.prioritizer == Prioritizer::Steady && weighted.weight > 0)
}

impl Weighted {
    fn scores(
        &self,
        index: usize,
        contenders: &[Contender],
        elsewhere: &dyn Fn(&ClusterName) -> usize,
        keeps_selected: bool,
    ) -> Vec<i64> {
        let measured = || contenders.iter().map(|contender| contender.measures[index]);
        match &self.prioritizer {
            Prioritizer::Steady => {
                contenders.iter().map(|contender| if contender.selected { BEST } else { 0 }).collect()
            }
            Prioritizer::Balance => {
                let mut scores = balance(contenders, elsewhere);
                if keeps_selected {
                    // What other placements do must not drive a cluster out that is to stay, so Balance
                    // tells newcomers apart, and has no worse to say of who is there.
                    let kept = contenders.iter().zip(&mut scores).filter(|(contender, _)| contender.selected);
                    kept.for_each(|(_, score)| *score = BEST * self.weight.signum());
                }
                scores
            }
            Prioritizer::Allocatable { .. } => normalised(&measured().collect::<Vec<_>>()),
            Prioritizer::AddOn(_) => measured().map(|score| small(score.unwrap_or_default())).collect(),
        }
    }
}

impl Prioritizer {
    fn compile(config: &PrioritizerConfig, index: usize) -> Result<Self, Problem> {
        let coordinate = &config.score_coordinate;
        match (coordinate.kind, &coordinate.built_in, &coordinate.add_on) {
            (ScoreType::BuiltIn, Some(name), _) => {
                Self::built_in(name).ok_or_else(|| Problem::UnknownPrioritizer { index, name: name.clone() })
            }
            (ScoreType::BuiltIn, None, _) => Err(Problem::NoScore { index, missing: "builtIn" }),
            (ScoreType::AddOn, _, Some(score)) => Ok(Self::AddOn(score.clone())),
            (ScoreType::AddOn, _, None) => Err(Problem::NoScore { index, missing: "addOn" }),
        }
    }

    fn built_in(name: &str) -> Option<Self> {
        match name {
            "Steady" => Some(Self::Steady),
            "Balance" => Some(Self::Balance),
            "ResourceAllocatableCPU" => Some(Self::Allocatable { resource: "cpu" }),
            "ResourceAllocatableMemory" => Some(Self::Allocatable { resource: "memory" }),
            _ => None,
        }
    }

    fn weighing(self, weight: i64) -> Weighted {
        Weighted { prioritizer: self, weight }
    }

    fn name(&self) -> String {
        match self {
            Self::Steady => "Steady".into(),
            Self::Balance => "Balance".into(),
            Self::Allocatable { resource: "cpu" } => "ResourceAllocatableCPU".into(),
            Self::Allocatable { .. } => "ResourceAllocatableMemory".into(),
            Self::AddOn(score) => format!("AddOn/{}/{}", score.resource_name, score.score_name),
        }
    }

    fn measure(&self, cluster: &ManagedCluster, scores: &Scores, now: Timestamp) -> Option<i128> {
        match self {
            Self::Steady | Self::Balance => None,
            Self::Allocatable { resource } => {
                quantity::billionths(cluster.status.as_ref()?.allocatable.get(*resource)?)
            }
            Self::AddOn(wanted) => {
                let mut scores = scores.of(&wanted.resource_name, now).iter();
                scores.find(|score| score.name == wanted.score_name).map(|score| score.value.into())
            }
        }
    }
}

/// 100 for a cluster that nobody else has, -100 for the one that most have.
fn balance(contenders: &[Contender], elsewhere: &dyn Fn(&ClusterName) -> usize) -> Vec<i64> {
    let count = |contender: &Contender| i64::try_from(elsewhere(contender.name)).unwrap_or(i64::MAX / 200);
    let counts: Vec<_> = contenders.iter().map(count).collect();
    let most = counts.iter().copied().max().unwrap_or_default().max(1);
    // Halved and doubled again, so that scores are even, as in OCM.
    counts.into_iter().map(|count| (50 * most - 100 * count) / most * 2).collect()
}

/// -100 for who has least and 100 for who has most; 0 for whom nothing is known of.
fn normalised(amounts: &[Option<i128>]) -> Vec<i64> {
    let known = || amounts.iter().flatten().copied();
    let (least, most) = (known().min().unwrap_or_default(), known().max().unwrap_or_default());
    let score = |amount: i128| match most - least {
        0 => BEST,
        range => small(((amount - least) * 200 - range * 100) / range),
    };
    amounts.iter().map(|amount| amount.map_or(0, score)).collect()
}

/// A score, forced into the range of scores.
fn small(score: i128) -> i64 {
    i64::try_from(score.clamp(-100, 100)).unwrap_or_default()
}
