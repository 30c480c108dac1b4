//! In which order a decision is written, so that no cluster is missing on the way.
//!
//! Slices are separate objects, and a reader sees each write on its own. A cluster that moves from one slice to another is
//! therefore written to the new one before it is taken out of the old one. Where slices exchange clusters, one of them
//! lists its old and its new clusters for a moment, and is then longer than slices are.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use drover_api::cluster::ClusterDecision;

use super::Slice;
use crate::words::enumerate;

/// One write of a decision.
#[derive(Clone, Debug, PartialEq)]
pub enum SliceChange {
    /// Make this slice.
    Create(Slice),
    /// Make the slice of this name so.
    Update(Slice),
    /// Remove the slice of this name.
    Delete(String),
}

/// What leads from the current slices to the wanted ones, in the order in which it has to be written.
#[must_use]
pub fn changes(current: &[Slice], wanted: &[Slice]) -> Vec<SliceChange> {
    let mut state = State::new(current, wanted);
    let mut writes = Vec::new();
    while !state.open.is_empty() {
        let ready = state.open.iter().position(|name| state.loses_nobody(name));
        let write = match ready {
            Some(index) => {
                let name = state.open.remove(index);
                state.finish(name)
            }
            // Of slices that all wait, one has not all its clusters yet, or none of them would wait.
            None => state.widen(),
        };
        match write {
            Some(write) => writes.push(write),
            None => break,
        }
    }
    writes
}

/// Who comes and who leaves, in one sentence; nothing if nobody does.
#[must_use]
pub fn summary(current: &[Slice], wanted: &[Slice]) -> Option<String> {
    let clusters = |slices: &'_ [Slice]| -> BTreeSet<String> {
        slices.iter().flat_map(Slice::clusters).map(str::to_owned).collect()
    };
    let (before, after) = (clusters(current), clusters(wanted));
    let came: Vec<_> = after.difference(&before).map(String::as_str).collect();
    let left: Vec<_> = before.difference(&after).map(String::as_str).collect();
    if came.is_empty() && left.is_empty() {
        return None;
    }
    let total = after.len();
    let said: Vec<_> = [("came", came), ("left", left)]
        .into_iter()
        .filter(|(_, who)| !who.is_empty())
        .map(|(what, who)| format!("{} {what} ({})", who.len(), enumerate(&who)))
        .collect();
    Some(format!("{}; {total} selected now", said.join(", ")))
}

struct State<'a> {
    /// What is stored after the writes so far.
    stored: BTreeMap<&'a str, Slice>,
    wanted: BTreeMap<&'a str, &'a Slice>,
    /// In which slice a cluster is to be.
    home: HashMap<&'a str, &'a str>,
    /// The slices that are not yet as they are wanted, those that lose nobody first.
    open: Vec<&'a str>,
}

impl<'a> State<'a> {
    fn new(current: &'a [Slice], wanted: &'a [Slice]) -> Self {
        let stored: BTreeMap<_, _> = current.iter().map(|slice| (slice.name.as_str(), slice.clone())).collect();
        let home = wanted.iter().flat_map(|slice| slice.clusters().map(|cluster| (cluster, slice.name.as_str())));
        let home = home.collect();
        let wanted: BTreeMap<_, _> = wanted.iter().map(|slice| (slice.name.as_str(), slice)).collect();
        let names: Vec<_> =
            stored.keys().chain(wanted.keys().filter(|name| !stored.contains_key(*name))).copied().collect();
        let mut state = Self { stored, wanted, home, open: Vec::new() };
        state.open =
            names.into_iter().filter(|name| state.stored.get(name) != state.wanted.get(name).copied()).collect();
        let mut open = std::mem::take(&mut state.open);
        open.sort_by_cached_key(|name| state.lost(name).next().is_some());
        Self { open, ..state }
    }

    /// The clusters that a slice lists and is to list no longer.
    fn lost<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s str> {
        let kept: HashSet<&str> = self.wanted.get(name).into_iter().flat_map(|slice| slice.clusters()).collect();
        let stored = self.stored.get(name).into_iter().flat_map(Slice::clusters);
        stored.filter(move |cluster| !kept.contains(cluster))
    }

    /// Whether every cluster that moves away from a slice has arrived.
    fn loses_nobody(&self, name: &str) -> bool {
        self.lost(name).all(|cluster| match self.home.get(cluster) {
            Some(home) => self.stored.get(home).is_some_and(|slice| slice.clusters().any(|there| there == cluster)),
            None => true,
        })
    }

    /// Makes a slice as it is wanted.
    fn finish(&mut self, name: &'a str) -> Option<SliceChange> {
        match self.wanted.get(name) {
            Some(wanted) => match self.stored.insert(name, (*wanted).clone()) {
                Some(_) => Some(SliceChange::Update((*wanted).clone())),
                None => Some(SliceChange::Create((*wanted).clone())),
            },
            None => self.stored.remove(name).map(|slice| SliceChange::Delete(slice.name)),
        }
    }

    /// Lets the first slice that others wait for list its new clusters beside the old, so that they can go on.
    fn widen(&mut self) -> Option<SliceChange> {
        let waited_for = self.open.iter().filter_map(|name| Some((*name, self.missing(name)?)));
        let (name, missing) = waited_for.into_iter().find(|(_, missing)| !missing.is_empty())?;
        let stored = self.stored.get_mut(name)?;
        stored.decisions.extend(missing);
        Some(SliceChange::Update(stored.clone()))
    }

    /// The decisions that a slice is to list and does not yet.
    fn missing(&self, name: &str) -> Option<Vec<ClusterDecision>> {
        let there: HashSet<&str> = self.stored.get(name)?.clusters().collect();
        let wanted = self.wanted.get(name)?.decisions.iter();
        Some(wanted.filter(|decision| !there.contains(decision.cluster_name.as_str())).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Group, *};

    fn slice(clusters: &[&str]) -> Slice {
        let decisions = clusters.iter().map(|cluster| ClusterDecision {
            cluster_name: (*cluster).into(),
            reason: String::new(),
            score: None,
        });
        Slice { name: "slice".to_owned(), group: Group::default(), decisions: decisions.collect() }
    }

    #[test]
    fn a_summary_tells_who_comes_and_who_leaves() {
        let (before, after) = ([slice(&["a", "b"])], [slice(&["b", "c", "d", "e", "f"])]);
        assert_eq!(summary(&before, &before), None);
        assert_eq!(summary(&before, &after).as_deref(), Some("4 came (c, d, e, …), 1 left (a); 5 selected now"));
        assert_eq!(summary(&before, &[]).as_deref(), Some("2 left (a, b); 0 selected now"));
    }
}
