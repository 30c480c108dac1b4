//! Selected clusters into decision groups, and those into slices.
//!
//! Each cluster belongs to the first named group that it matches, or to the rest; a group that is larger than
//! `clustersPerDecisionGroup` is divided, and what is divided is written in slices. Where clusters are sorted by name, a cluster
//! stays in the group and the slice that it is in for as long as there is room, and a slice keeps its name: readers
//! follow names, and a rollout goes group by group. Where they are sorted by score, the order decides and clusters move.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use drover_api::{
    cluster::{ClusterDecision, DecisionStrategy, SortBy},
    grammar::WindowSize,
    reference::ClusterName,
};

use super::{
    Problem,
    pack::pack,
    selector::{ClusterFilter, Subject},
    slices::{self, Group, MAX_SLICE, Slice},
};

/// How a placement divides what it selects.
#[derive(Debug)]
pub(super) struct Groups {
    named: Vec<(String, ClusterFilter)>,
    size: Option<WindowSize>,
}

/// A selected cluster, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen<'a> {
    pub(super) name: &'a ClusterName,
    /// The named group that it matches.
    pub(super) group: Option<usize>,
    pub(super) score: Option<i64>,
}

impl Groups {
    pub(super) fn compile(strategy: Option<&DecisionStrategy>) -> Result<Self, Problem> {
        let strategy = strategy.and_then(|strategy| strategy.group_strategy.as_ref());
        let groups = strategy.iter().flat_map(|strategy| &strategy.decision_groups).enumerate();
        let named = groups.map(|(index, group)| {
            let place = format!("decisionStrategy.groupStrategy.decisionGroups[{index}].groupClusterSelector");
            let selector = &group.group_cluster_selector;
            let labels = selector.label_selector.as_ref();
            let filter = ClusterFilter::compile(labels, selector.claim_selector.as_ref(), &place)?;
            Ok((group.group_name.clone(), filter))
        });
        Ok(Self {
            named: named.collect::<Result<_, _>>()?,
            size: strategy.and_then(|strategy| strategy.clusters_per_decision_group.clone()),
        })
    }

    /// The first named group that a cluster matches.
    pub(super) fn of(&self, subject: &Subject) -> Option<usize> {
        self.named.iter().position(|(_, filter)| filter.matches(subject))
    }

    fn name(&self, group: Option<usize>) -> &str {
        group.map_or("", |group| self.named[group].0.as_str())
    }

    /// The largest that a group may be, out of all selected clusters.
    fn size(&self, selected: usize) -> usize {
        self.size.as_ref().map_or(selected.max(1), |size| size.of(selected))
    }

    /// The slices of a decision. `chosen` comes in the order in which clusters stand in the decision.
    pub(super) fn arrange(&self, placement: &str, chosen: Vec<Chosen>, order: SortBy, current: &[Slice]) -> Vec<Slice> {
        let known = match order {
            SortBy::ClusterName => Known::new(placement, current),
            SortBy::Score => Known::default(),
        };
        let size = self.size(chosen.len());
        let mut buckets: BTreeMap<_, Vec<Chosen>> = BTreeMap::new();
        for cluster in chosen {
            // The rest comes behind all named groups.
            buckets.entry(cluster.group.unwrap_or(usize::MAX)).or_default().push(cluster);
        }
        let mut drafts = Vec::new();
        let mut index = 0;
        for clusters in buckets.into_values() {
            let name = clusters.first().map_or("", |cluster| self.name(cluster.group)).to_owned();
            for members in pack(clusters, |cluster| known.group(cluster.name, &name), size) {
                let group = Group { index, name: name.clone() };
                let was = members.origin.map(|index| Group { index, name: name.clone() });
                drafts.extend(known.divide(&group, was.as_ref(), members.items));
                index += 1;
            }
        }
        if drafts.is_empty() {
            drafts.push(Draft { number: known.first(), group: Group::default(), clusters: Vec::new() });
        }
        numbered(placement, drafts)
    }
}

/// A slice that may not have its number yet.
struct Draft<'a> {
    number: Option<usize>,
    group: Group,
    clusters: Vec<Chosen<'a>>,
}

/// Where clusters are now.
#[derive(Default)]
struct Known<'a> {
    by_cluster: HashMap<&'a str, (&'a Group, usize)>,
    numbers: BTreeSet<usize>,
}

impl<'a> Known<'a> {
    fn new(placement: &str, current: &'a [Slice]) -> Self {
        let mut known = Self::default();
        let numbers = current.iter().filter_map(|slice| Some((slices::number(placement, &slice.name)?, slice)));
        // A cluster can be in two slices while it moves; the first counts.
        for (number, slice) in numbers.collect::<BTreeMap<_, _>>() {
            known.numbers.insert(number);
            for cluster in slice.clusters() {
                known.by_cluster.entry(cluster).or_insert((&slice.group, number));
            }
        }
        known
    }

    /// The index of the group of this name that a cluster is in.
    fn group(&self, cluster: &ClusterName, name: &str) -> Option<usize> {
        let (group, _) = self.by_cluster.get(cluster.as_str())?;
        (group.name == name).then_some(group.index)
    }

    /// Divides a group, which `was` another one before, into slices.
    fn divide<'c>(&self, group: &Group, was: Option<&Group>, clusters: Vec<Chosen<'c>>) -> Vec<Draft<'c>> {
        let slice_of = |cluster: &Chosen| {
            let (group, number) = self.by_cluster.get(cluster.name.as_str())?;
            (Some(*group) == was).then_some(*number)
        };
        let bins = pack(clusters, slice_of, MAX_SLICE).into_iter();
        bins.map(|bin| Draft { number: bin.origin, group: group.clone(), clusters: bin.items }).collect()
    }

    fn first(&self) -> Option<usize> {
        self.numbers.first().copied()
    }
}

/// Gives slices that have no number the lowest that is free.
fn numbered(placement: &str, drafts: Vec<Draft>) -> Vec<Slice> {
    let taken: BTreeSet<_> = drafts.iter().filter_map(|draft| draft.number).collect();
    let mut free = (1..).filter(|number| !taken.contains(number));
    let slice = |draft: Draft| Slice {
        name: slices::name(placement, draft.number.or_else(|| free.next()).unwrap_or_default()),
        group: draft.group,
        decisions: draft.clusters.into_iter().map(decision).collect(),
    };
    drafts.into_iter().map(slice).collect()
}

fn decision(cluster: Chosen) -> ClusterDecision {
    // OCM gives no reason either; the field is required.
    ClusterDecision { cluster_name: cluster.name.clone(), reason: String::new(), score: cluster.score }
}
