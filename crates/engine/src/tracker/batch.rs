//! Members that are dealt with a batch at a time, each in its turn.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use drover_api::reference::ClusterName;

/// How many members are written in one plan. What comes of it is known before the next.
pub const BATCH: usize = 256;

/// Members about which something is left to do, and the one at which the last batch has ended: a
/// member that fails again and again does not hold up the others.
#[derive(Clone, Debug, Default)]
pub struct Batches {
    members: BTreeSet<ClusterName>,
    cursor: Option<ClusterName>,
}

impl Batches {
    /// Adds a member.
    pub fn insert(&mut self, cluster: ClusterName) {
        self.members.insert(cluster);
    }

    /// Removes a member about which nothing is left to do.
    pub fn remove(&mut self, cluster: &ClusterName) {
        self.members.remove(cluster);
    }

    /// All members.
    pub fn iter(&self) -> impl Iterator<Item = &ClusterName> {
        self.members.iter()
    }

    /// Whether there are more members than one plan deals with.
    #[must_use]
    pub fn is_more(&self) -> bool {
        self.members.len() > BATCH
    }

    /// The members whose turn it is.
    #[must_use]
    pub fn next_batch(&self) -> BTreeSet<ClusterName> {
        in_turn(&self.members, self.cursor.as_ref()).collect()
    }

    /// The steps whose turn it is. The next batch begins after them, if there are more.
    pub fn take<S>(&mut self, mut steps: BTreeMap<ClusterName, S>) -> Vec<(ClusterName, S)> {
        let names = steps.keys().cloned().collect();
        let turn: Vec<_> = in_turn(&names, self.cursor.as_ref()).collect();
        if steps.len() > BATCH {
            self.cursor = turn.last().cloned();
        }
        turn.into_iter().filter_map(|name| steps.remove_entry(&name)).collect()
    }
}

/// As many of these as one plan deals with, from where the last batch has ended.
fn in_turn(members: &BTreeSet<ClusterName>, cursor: Option<&ClusterName>) -> impl Iterator<Item = ClusterName> {
    let from = cursor.map_or(Bound::Unbounded, Bound::Excluded);
    let after = members.range::<ClusterName, _>((from, Bound::Unbounded));
    let before = cursor.map(|cursor| members.range::<ClusterName, _>((Bound::Unbounded, Bound::Included(cursor))));
    after.chain(before.into_iter().flatten()).take(BATCH).cloned()
}
