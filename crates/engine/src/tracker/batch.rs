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
#[derive(Clone, Debug)]
pub struct Batches {
    size: usize,
    members: BTreeSet<ClusterName>,
    cursor: Option<ClusterName>,
    /// Where the batch ends that was taken last, until it is sent.
    taken: Option<ClusterName>,
}

impl Default for Batches {
    fn default() -> Self {
        Self::of_size(BATCH)
    }
}

impl Batches {
    /// Batches of at most this many members.
    #[must_use]
    pub fn of_size(size: usize) -> Self {
        Self { size, members: BTreeSet::new(), cursor: None, taken: None }
    }

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

    /// The members whose turn it is.
    #[must_use]
    pub fn next_batch(&self) -> BTreeSet<ClusterName> {
        self.in_turn(&self.members).collect()
    }

    /// The steps whose turn it is, and whether there are more, or members of which that is not
    /// known because it was not their turn to be observed. They are the same until they are
    /// [sent](Self::sent).
    pub fn take<S>(&mut self, mut steps: BTreeMap<ClusterName, S>) -> (Vec<(ClusterName, S)>, bool) {
        let names = steps.keys().cloned().collect();
        let turn: Vec<_> = self.in_turn(&names).collect();
        let pending = turn.iter().filter(|name| self.members.contains(*name)).count();
        let is_more = steps.len() > turn.len() || self.members.len() > pending;
        self.taken = turn.last().cloned().filter(|_| is_more);
        (turn.into_iter().filter_map(|name| steps.remove_entry(&name)).collect(), is_more)
    }

    /// Records that the steps were sent that were taken last. The next batch begins after them,
    /// whatever has come of them.
    pub fn sent(&mut self) {
        if let Some(last) = self.taken.take() {
            self.cursor = Some(last);
        }
    }

    /// As many of these as one plan deals with, from where the last batch has ended.
    fn in_turn(&self, members: &BTreeSet<ClusterName>) -> impl Iterator<Item = ClusterName> {
        let cursor = self.cursor.as_ref();
        let from = cursor.map_or(Bound::Unbounded, Bound::Excluded);
        let after = members.range::<ClusterName, _>((from, Bound::Unbounded));
        let before = cursor.map(|cursor| members.range::<ClusterName, _>((Bound::Unbounded, Bound::Included(cursor))));
        after.chain(before.into_iter().flatten()).take(self.size).cloned()
    }
}
