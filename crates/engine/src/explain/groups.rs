//! Clusters grouped by state and blocker, and failures grouped by cause.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, btree_map::Entry},
};

use drover_api::reference::ClusterName;

use super::ClusterExplanation;
use crate::member::{Blocker, Cause, MemberState};

/// How many clusters a group names.
const EXAMPLES: usize = 3;

/// Clusters in the same state, with the same blocker.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberGroup {
    /// The name of the state.
    pub state: &'static str,
    /// The blocker, as the first of the clusters has it.
    pub blocker: Option<Blocker>,
    /// How many clusters there are.
    pub count: usize,
    /// The first of them, by name.
    pub examples: Vec<ClusterName>,
}

/// Clusters that have failed of the same cause.
#[derive(Clone, Debug, PartialEq)]
pub struct FailureGroup {
    /// The cause, as the first of the clusters has it.
    pub cause: Cause,
    /// How many clusters there are.
    pub count: usize,
    /// The first of them, by name.
    pub examples: Vec<ClusterName>,
}

/// Groups clusters by state and blocker, the largest group first.
#[must_use]
pub fn group_members<'a>(
    members: impl IntoIterator<Item = (&'a ClusterName, &'a ClusterExplanation)>,
) -> Vec<MemberGroup> {
    let mut groups = BTreeMap::new();
    for (cluster, explanation) in members {
        let (state, blocker) = (explanation.state.name(), explanation.state.blocker());
        let key = (state, blocker.as_ref().map(|blocker| (blocker.kind, blocker.object.clone())));
        let group = match groups.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(MemberGroup { state, blocker, count: 0, examples: Vec::new() }),
        };
        count(&mut group.count, &mut group.examples, cluster);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| Reverse(group.count));
    groups
}

/// Groups failures by cause, the most frequent first.
#[must_use]
pub fn group_failures<'a>(
    members: impl IntoIterator<Item = (&'a ClusterName, &'a ClusterExplanation)>,
) -> Vec<FailureGroup> {
    let mut groups = BTreeMap::new();
    for (cluster, explanation) in members {
        let MemberState::Failed(cause) = &explanation.state else { continue };
        let new = || FailureGroup { cause: cause.clone(), count: 0, examples: Vec::new() };
        let group = groups.entry((cause.failure, &cause.normalised)).or_insert_with(new);
        count(&mut group.count, &mut group.examples, cluster);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| Reverse(group.count));
    groups
}

fn count(count: &mut usize, examples: &mut Vec<ClusterName>, cluster: &ClusterName) {
    *count += 1;
    if examples.len() < EXAMPLES {
        examples.push(cluster.clone());
    }
}
