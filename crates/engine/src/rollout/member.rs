//! One cluster, as a rollout sees it.

use std::sync::Arc;

use drover_api::grammar::SetFingerprint;

use super::revision::Revision;
use crate::{
    revision::markers::{Given, Proof},
    steering::MemberSteering,
};

/// A decision group of a placement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Its number.
    pub index: u32,
    /// Its name, if it has one.
    pub name: Option<Arc<str>>,
}

/// A placement that selects a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Which of the add-on's placements, by its place in the list.
    pub placement: usize,
    /// The group that it is in.
    pub group: Group,
}

/// A cluster, as a rollout sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Member<R: Revision> {
    /// Who selects it.
    pub selections: Vec<Selection>,
    /// The add-on on it; nothing if it is not there (yet).
    pub addon: Option<Presence<R>>,
    /// Whether the cluster can be reached.
    pub is_online: bool,
    /// What people have asked for.
    pub steering: MemberSteering,
}

/// An add-on that is on a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Presence<R: Revision> {
    /// What it was given.
    pub given: Option<Given>,
    /// The set that it is to run: what it was given, with what a user has asked for instead. Nothing if that is not known.
    pub runs: Option<SetFingerprint>,
    /// What it has proven.
    pub proof: Option<Proof>,
    /// What a user has asked for instead of what its placement gives.
    pub overrides: Option<Arc<R::Overrides>>,
    /// Whether a user has asked for something that can not be had, such as an unknown version: it keeps what it has.
    pub is_at_odds: bool,
    /// Whether it says that it is available.
    pub is_available: bool,
    /// Whether it was made by hand, or else by the hub for a placement.
    pub is_hand_made: bool,
}

impl<R: Revision> Default for Member<R> {
    fn default() -> Self {
        Self { selections: Vec::new(), addon: None, is_online: false, steering: MemberSteering::default() }
    }
}

impl<R: Revision> Default for Presence<R> {
    fn default() -> Self {
        Self {
            given: None,
            runs: None,
            proof: None,
            overrides: None,
            is_at_odds: false,
            is_available: false,
            is_hand_made: false,
        }
    }
}

/// Where a cluster stands among others, the same on every hub: neighbours in name are not neighbours here.
#[must_use]
pub fn scatter(name: &str) -> u64 {
    // FNV-1a, followed by a mixing step: names that differ in their last digit alone would stay close together.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ (mixed >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_scattered() {
        let mut names: Vec<_> = (0..1000).map(|number| format!("cluster-{number:04}")).collect();
        names.sort_by_key(|name| scatter(name));
        let first: Vec<u32> = names[..100].iter().filter_map(|name| name["cluster-".len()..].parse().ok()).collect();
        let tenths = |number: &u32| number / 100;
        for tenth in 0..10 {
            let hit = first.iter().map(tenths).filter(|of| *of == tenth).count();
            assert!((2..=20).contains(&hit), "{hit} of the first hundred are in tenth {tenth}");
        }
    }

    #[test]
    fn the_order_is_the_same_for_ever() {
        assert_eq!(scatter("cluster1"), scatter("cluster1"));
        assert_eq!(scatter(""), ALWAYS);
    }

    /// A hub of another release goes on where the last one stopped.
    const ALWAYS: u64 = 17_058_014_651_485_797_458;
}
