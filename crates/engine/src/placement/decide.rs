//! The decision: of all that may be selected, who is, and where it is written.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use drover_api::{
    cluster::{PlacementStatus, SortBy},
    reference::ClusterName,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::{
    Candidate, Column, Group, LeftOut, Outcome, Program, Slice, Verdict,
    arrange::Chosen,
    prioritize::{self, Contender},
    sets::Reach,
    spread,
    status::{self, Before},
};

/// What a decision goes by, besides the verdicts.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The sets that the verdicts' clusters were taken from.
    pub reach: &'a Reach,
    /// The placement's slices as they are stored, in any order.
    pub current: &'a [Slice],
    /// How many other placements have selected a cluster.
    pub elsewhere: &'a dyn Fn(&ClusterName) -> usize,
    /// The status that the new one takes the place of.
    pub before: Before<'a>,
}

/// What a placement selects, and what is said of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The slices to be written. There is always one.
    pub slices: Vec<Slice>,
    /// The placement's status.
    pub status: PlacementStatus,
    /// How many clusters were left out, by reason.
    pub left_out: BTreeMap<LeftOut, usize>,
    /// When the decision may be another one though nothing but time has passed.
    pub wake_up: Option<Timestamp>,
    /// Until when new scores are held back, if they are.
    pub held_back_until: Option<Timestamp>,
}

/// A candidate in the comparison.
struct Entry<'a> {
    name: &'a ClusterName,
    candidate: &'a Candidate,
    score: i64,
}

impl Program {
    /// Selects from the clusters in reach, of each of which there is one verdict.
    #[must_use]
    pub fn decide<'a>(&self, verdicts: impl IntoIterator<Item = &'a Verdict>, facts: &Facts) -> Decision {
        let mut left_out = BTreeMap::new();
        let mut wake_up = None;
        let mut candidates = Vec::new();
        let mut clusters = 0;
        for verdict in verdicts {
            clusters += 1;
            wake_up = earliest(wake_up, verdict.may_change);
            match &verdict.outcome {
                Outcome::Candidate(candidate) => {
                    candidates.push(Entry { name: &verdict.cluster, candidate, score: 0 });
                }
                // Looked up before it is entered: a taint's key need not be copied for each cluster that has it.
                Outcome::LeftOut(reason) => match left_out.get_mut(reason) {
                    Some(count) => *count += 1,
                    None => _ = left_out.insert(reason.clone(), 1),
                },
            }
        }
        let found = candidates.len();
        let selected = self.select(candidates, facts, &mut left_out);
        let outcome = status::Outcome {
            reach: facts.reach,
            clusters,
            candidates: found,
            selected: selected.len(),
            wanted: self.wanted,
            left_out: &left_out,
        };
        let chosen = selected.into_iter().map(|entry| self.chosen(&entry)).collect();
        let mut slices = self.groups.arrange(&self.placement, chosen, self.order, facts.current);
        let updated = self.hold_back(&mut slices, facts);
        let mut status = status::decided(&outcome, &slices, &facts.before);
        let held_back_until = match updated {
            ScoreUpdate::None => None,
            ScoreUpdate::Now => {
                status.last_score_update_time = Some(Time(facts.before.now));
                None
            }
            ScoreUpdate::At(time) => Some(time),
        };
        let wake_up = earliest(wake_up, held_back_until);
        Decision { slices, status, left_out, wake_up, held_back_until }
    }

    /// What each prioritizer says of each candidate, for those who want to know why.
    #[must_use]
    pub fn scores<'a>(&self, verdicts: impl IntoIterator<Item = &'a Verdict>, facts: &Facts) -> Vec<Column> {
        let candidates = verdicts.into_iter().filter_map(|verdict| Some((&verdict.cluster, verdict.candidate()?)));
        let mut candidates: Vec<_> = candidates.map(|(name, candidate)| Entry { name, candidate, score: 0 }).collect();
        candidates.sort_unstable_by_key(|entry| entry.name);
        prioritize::columns(&self.prioritizers, &contenders(&candidates, facts), facts.elsewhere)
    }

    /// The candidates that are selected, in the order of the decision. Nobody is scored where the scores would not matter.
    fn select<'a>(
        &self,
        mut candidates: Vec<Entry<'a>>,
        facts: &Facts,
        left_out: &mut BTreeMap<LeftOut, usize>,
    ) -> Vec<Entry<'a>> {
        candidates.sort_unstable_by_key(|entry| entry.name);
        let wanted = self.wanted.unwrap_or(usize::MAX);
        let choice = wanted < candidates.len() || spread::may_leave_out(&self.spread);
        if choice || self.order == SortBy::Score {
            self.rank(&mut candidates, facts);
        }
        if choice {
            let found = candidates.len();
            self.pick(&mut candidates, wanted);
            // With as many as wanted, the others were not needed, whatever else kept them back.
            let reason = if candidates.len() < wanted { LeftOut::SpreadTooFar } else { LeftOut::NotNeeded };
            if candidates.len() < found {
                left_out.insert(reason, found - candidates.len());
            }
        }
        if self.order == SortBy::ClusterName {
            candidates.sort_unstable_by_key(|entry| entry.name);
        }
        candidates
    }

    /// Best first: those that are avoided last, then by score, then by name.
    fn rank(&self, candidates: &mut [Entry], facts: &Facts) {
        let totals = prioritize::totals(&self.prioritizers, &contenders(candidates, facts), facts.elsewhere);
        candidates.iter_mut().zip(totals).for_each(|(entry, total)| entry.score = total);
        // By name already, and the sort is stable.
        candidates.sort_by_key(|entry| (entry.candidate.avoided, std::cmp::Reverse(entry.score)));
    }

    fn pick(&self, ranked: &mut Vec<Entry>, wanted: usize) {
        if self.spread.is_empty() {
            return ranked.truncate(wanted);
        }
        let candidates: Vec<_> = ranked.iter().map(|entry| entry.candidate).collect();
        let picked: BTreeSet<_> = spread::pick(&self.spread, &candidates, wanted).into_iter().collect();
        let mut place = 0..;
        ranked.retain(|_| place.next().is_some_and(|place| picked.contains(&place)));
    }

    fn chosen<'a>(&self, entry: &Entry<'a>) -> Chosen<'a> {
        let score = (self.order == SortBy::Score).then_some(entry.score);
        Chosen { name: entry.name, group: entry.candidate.group, score }
    }

    /// Where clusters are sorted by score and only scores have changed, the slices stay as they are until the
    /// time that `scoreRateLimit` asks for has passed.
    fn hold_back(&self, slices: &mut Vec<Slice>, facts: &Facts) -> ScoreUpdate {
        if self.order != SortBy::Score || by_name(slices) == by_name(facts.current) {
            return ScoreUpdate::None;
        }
        let last = facts.before.status.and_then(|status| status.last_score_update_time.as_ref());
        match last.and_then(|last| last.0.checked_add(self.score_rate_limit).ok()) {
            Some(next) if facts.before.now < next && shape(slices) == shape(facts.current) => {
                *slices = facts.current.to_vec();
                slices.sort_by(|one, other| (&one.group, &one.name).cmp(&(&other.group, &other.name)));
                ScoreUpdate::At(next)
            }
            _ => ScoreUpdate::Now,
        }
    }
}

/// Whether scores change the decisions.
enum ScoreUpdate {
    /// There is no change.
    None,
    /// They do.
    Now,
    /// They will.
    At(Timestamp),
}

fn by_name(slices: &[Slice]) -> BTreeMap<&str, &Slice> {
    slices.iter().map(|slice| (slice.name.as_str(), slice)).collect()
}

/// All but the order: who is selected in a group of which name, and how large each group is.
fn shape(slices: &[Slice]) -> (BTreeSet<(&str, &str)>, BTreeMap<&Group, usize>) {
    let mut sizes = BTreeMap::new();
    let mut members = BTreeSet::new();
    for slice in slices {
        *sizes.entry(&slice.group).or_default() += slice.decisions.len();
        members.extend(slice.clusters().map(|cluster| (slice.group.name.as_str(), cluster)));
    }
    (members, sizes)
}

fn contenders<'a>(candidates: &[Entry<'a>], facts: &Facts) -> Vec<Contender<'a>> {
    let selected: HashSet<&str> = facts.current.iter().flat_map(Slice::clusters).collect();
    let contender = |entry: &Entry<'a>| Contender {
        name: entry.name,
        measures: &entry.candidate.measures,
        selected: selected.contains(entry.name.as_str()),
    };
    candidates.iter().map(contender).collect()
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
