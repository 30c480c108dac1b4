//! How selected clusters are spread over regions, zones or the like.
//!
//! Clusters are picked one by one, the best that may be picked first. A constraint that must hold (DoNotSchedule) bars a
//! cluster whose value would then exceed the emptiest by more than the skew; one that should hold (ScheduleAnyway) makes
//! it come after those that keep it. The values are those of all candidates, also of those that run out of clusters. A
//! cluster that has no value is barred by the first kind, and comes last with the second.

use std::collections::{BTreeMap, HashMap, VecDeque};

use drover_api::cluster::{SpreadConstraint, SpreadPolicy, TopologyKeyType, UnsatisfiableAction};

use super::{Candidate, Problem, selector::Subject};

/// One thing that clusters are spread over.
#[derive(Debug)]
pub(super) struct Constraint {
    key: String,
    kind: TopologyKeyType,
    max_skew: usize,
    must_hold: bool,
}

/// The constraints of a placement, most important first.
pub(super) fn compile(policy: Option<&SpreadPolicy>) -> Result<Vec<Constraint>, Problem> {
    let constraints = policy.iter().flat_map(|policy| &policy.spread_constraints);
    constraints.enumerate().map(|(index, constraint)| Constraint::compile(constraint, index)).collect()
}

/// The values that a cluster is counted under.
pub(super) fn topology(constraints: &[Constraint], subject: &Subject) -> Box<[Option<Box<str>>]> {
    constraints.iter().map(|constraint| constraint.value(subject).map(Into::into)).collect()
}

/// Whether some clusters may have to be left out.
pub(super) fn may_leave_out(constraints: &[Constraint]) -> bool {
    constraints.iter().any(|constraint| constraint.must_hold)
}

impl Constraint {
    fn compile(constraint: &SpreadConstraint, index: usize) -> Result<Self, Problem> {
        let skew = constraint.max_skew;
        let max_skew = usize::try_from(skew).ok().filter(|skew| *skew > 0).ok_or(Problem::Skew { index, skew })?;
        Ok(Self {
            key: constraint.topology_key.clone(),
            kind: constraint.topology_key_type,
            max_skew,
            must_hold: constraint.when_unsatisfiable == UnsatisfiableAction::DoNotSchedule,
        })
    }

    fn value<'a>(&self, subject: &'a Subject) -> Option<&'a str> {
        let values = match self.kind {
            TopologyKeyType::Label => subject.labels(),
            TopologyKeyType::Claim => subject.claims(),
        };
        values.get(&self.key).map(String::as_str)
    }
}

/// Clusters that count alike, best first, by their place in the ranking.
struct Kind<'a> {
    /// For each constraint, the number of the value that the clusters are counted under.
    values: Vec<Option<usize>>,
    clusters: VecDeque<(usize, &'a Candidate)>,
}

/// Picks up to `wanted` of the candidates, which come best first, and answers with their places in the ranking.
pub(super) fn pick(constraints: &[Constraint], ranked: &[&Candidate], wanted: usize) -> Vec<usize> {
    let mut counts: Vec<Vec<usize>> = Vec::new();
    let mut kinds = kinds(constraints, ranked, &mut counts);
    let mut picked = Vec::new();
    while picked.len() < wanted {
        let emptiest: Vec<_> = counts.iter().map(|counts| counts.iter().copied().min().unwrap_or_default()).collect();
        let best = kinds.iter_mut().filter_map(|kind| Some((kind.rank(constraints, &counts, &emptiest)?, kind)));
        let Some((_, kind)) = best.min_by(|(one, _), (other, _)| one.cmp(other)) else { break };
        let Some((place, _)) = kind.clusters.pop_front() else { break };
        for (counts, value) in counts.iter_mut().zip(&kind.values) {
            if let Some(value) = *value {
                counts[value] += 1;
            }
        }
        picked.push(place);
    }
    picked.sort_unstable();
    picked
}

/// Sorts candidates by kind, and makes a count for each value of each constraint.
fn kinds<'a>(constraints: &[Constraint], ranked: &[&'a Candidate], counts: &mut Vec<Vec<usize>>) -> Vec<Kind<'a>> {
    let mut numbers: Vec<HashMap<&str, usize>> = vec![HashMap::new(); constraints.len()];
    let mut kinds: BTreeMap<Vec<Option<usize>>, VecDeque<(usize, &Candidate)>> = BTreeMap::new();
    for (place, candidate) in ranked.iter().enumerate() {
        let number = |(value, numbers): (&'a Option<Box<str>>, &mut HashMap<&'a str, usize>)| {
            let next = numbers.len();
            value.as_deref().map(|value| *numbers.entry(value).or_insert(next))
        };
        let values = candidate.topology.iter().zip(&mut numbers).map(number).collect();
        kinds.entry(values).or_default().push_back((place, candidate));
    }
    *counts = numbers.iter().map(|numbers| vec![0; numbers.len()]).collect();
    kinds.into_iter().map(|(values, clusters)| Kind { values, clusters }).collect()
}

impl Kind<'_> {
    /// Where the kind's best cluster stands among those that could be picked next; none where it can not.
    fn rank(
        &self,
        constraints: &[Constraint],
        counts: &[Vec<usize>],
        emptiest: &[usize],
    ) -> Option<(bool, Vec<bool>, usize)> {
        let (place, candidate) = self.clusters.front()?;
        let mut broken = Vec::with_capacity(constraints.len());
        for (index, constraint) in constraints.iter().enumerate() {
            let breaks =
                self.values[index].is_none_or(|value| counts[index][value] + 1 - emptiest[index] > constraint.max_skew);
            if breaks && constraint.must_hold {
                return None;
            }
            broken.push(breaks);
        }
        Some((candidate.avoided, broken, *place))
    }
}
