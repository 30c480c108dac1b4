//! Which placement decides for a cluster that several of an add-on's placements select.
//!
//! The last in the list does. But a cluster that a listed canary placement selects takes everything from that placement, whatever
//! the order: otherwise a canary could follow the very placement that waits for it. Of several canary placements it is the last of those
//! that wait for none of the others, because who waits for a cluster can not be who moves it.

use drover_api::addon::{AddOnRolloutType, PlacementStrategy};

/// For each entry of a list of placements, the entry whose clusters it waits for, if it does.
#[must_use]
pub fn canaries(placements: &[PlacementStrategy]) -> Vec<Option<usize>> {
    let canary = |entry: &PlacementStrategy| {
        let strategy = entry.rollout_strategy.as_ref()?;
        let gated = strategy.rolling_update_with_canary.as_ref()?;
        let is_gated = strategy.kind == AddOnRolloutType::RollingUpdateWithCanary && gated.placement != entry.placement;
        placements.iter().position(|canary| is_gated && canary.placement == gated.placement)
    };
    placements.iter().map(canary).collect()
}

/// The entry that decides for a cluster, of those entries that select it. `canaries` says for each entry whom it waits for.
#[must_use]
pub fn deciding(canaries: &[Option<usize>], selecting: impl IntoIterator<Item = usize>) -> Option<usize> {
    let is_canary = |entry: &usize| canaries.contains(&Some(*entry));
    let (among, others): (Vec<_>, Vec<_>) = selecting.into_iter().partition(is_canary);
    let waits_for_none = |entry: &&usize| !ahead_of(canaries, **entry).any(|ahead| among.contains(&ahead));
    among.iter().filter(waits_for_none).max().or(among.iter().max()).or(others.iter().max()).copied()
}

/// Whom an entry waits for, whom they wait for, and so on.
pub fn ahead_of(canaries: &[Option<usize>], entry: usize) -> impl Iterator<Item = usize> {
    // No chain is longer than the list, unless it is a circle.
    std::iter::successors(canaries.get(entry).copied().flatten(), |next| canaries[*next]).take(canaries.len())
}

#[cfg(test)]
mod tests {
    use drover_api::{
        addon::{AddOnRolloutStrategy, RollingUpdateWithCanary},
        reference::PlacementRef,
    };

    use super::*;

    fn placement(name: &str) -> PlacementRef {
        PlacementRef { namespace: "default".to_owned(), name: name.to_owned() }
    }

    fn entry(name: &str) -> PlacementStrategy {
        PlacementStrategy { placement: placement(name), ..PlacementStrategy::default() }
    }

    fn behind(canary: &str, name: &str) -> PlacementStrategy {
        let gated = RollingUpdateWithCanary { placement: placement(canary), ..RollingUpdateWithCanary::default() };
        let strategy = AddOnRolloutStrategy {
            kind: AddOnRolloutType::RollingUpdateWithCanary,
            rolling_update_with_canary: Some(gated),
            ..AddOnRolloutStrategy::default()
        };
        PlacementStrategy { rollout_strategy: Some(strategy), ..entry(name) }
    }

    fn decides(list: &[PlacementStrategy], selecting: impl IntoIterator<Item = usize>) -> Option<usize> {
        deciding(&canaries(list), selecting)
    }

    #[test]
    fn the_last_that_selects_a_cluster_decides() {
        let list = [entry("a"), entry("b"), entry("c")];
        assert_eq!(decides(&list, [0, 1]), Some(1));
        assert_eq!(decides(&list, [2, 0]), Some(2), "in whatever order they are named");
        assert_eq!(decides(&list, []), None);
    }

    #[test]
    fn a_listed_canary_placement_goes_before_all_others() {
        for list in [[entry("canary"), behind("canary", "rest")], [behind("canary", "rest"), entry("canary")]] {
            let canary = list.iter().position(|entry| entry.placement.name == "canary");
            assert_eq!(decides(&list, [0, 1]), canary);
            assert_eq!(decides(&list, [1]), Some(1), "who is no canary follows its own");
        }
    }

    #[test]
    fn of_several_canary_placements_the_last_decides() {
        let list = [entry("early"), entry("late"), behind("early", "x"), behind("late", "y"), entry("z")];
        assert_eq!(decides(&list, 0..5), Some(1));
    }

    #[test]
    fn a_canary_of_canaries_is_moved_by_who_waits_for_nobody() {
        let list = [entry("first"), behind("first", "second"), behind("second", "third")];
        assert_eq!(decides(&list, 0..3), Some(0));
        assert_eq!(decides(&list, [0, 2]), Some(0));
        assert_eq!(decides(&list, [1, 2]), Some(1));
    }

    #[test]
    fn who_wait_for_each_other_are_moved_by_the_last() {
        let list = [behind("b", "a"), behind("a", "b"), entry("c")];
        assert_eq!(decides(&list, 0..3), Some(1));
    }

    #[test]
    fn a_canary_placement_that_is_not_listed_decides_for_nobody() {
        let list = [entry("a"), behind("elsewhere", "b")];
        assert_eq!(decides(&list, [0, 1]), Some(1));
        assert_eq!(decides(&list, [0]), Some(0));
    }

    #[test]
    fn settings_of_another_strategy_make_no_canaries() {
        let mut gated = behind("a", "b");
        gated.rollout_strategy.as_mut().expect("it has one").kind = AddOnRolloutType::All;
        assert_eq!(decides(&[entry("a"), gated], [0, 1]), Some(1));
    }
}
