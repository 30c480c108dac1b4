//! Which placement decides for a cluster that several of an add-on's placements select.
//!
//! The last in the list does. But a cluster that a listed canary placement selects takes everything from that placement, whatever
//! the order: otherwise a canary could follow the very placement that waits for it.

use drover_api::addon::{AddOnRolloutType, PlacementStrategy};

/// The placements that an add-on lists, by who goes before whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deciding {
    /// For each entry of the list, whether another entry waits for its clusters.
    is_canary: Vec<bool>,
}

impl Deciding {
    /// Reads the list of an add-on.
    #[must_use]
    pub fn among(placements: &[PlacementStrategy]) -> Self {
        let waits_for = |entry: &PlacementStrategy, canary: &PlacementStrategy| {
            entry.placement != canary.placement
                && entry.rollout_strategy.as_ref().is_some_and(|strategy| {
                    strategy.kind == AddOnRolloutType::RollingUpdateWithCanary
                        && strategy
                            .rolling_update_with_canary
                            .as_ref()
                            .is_some_and(|gated| gated.placement == canary.placement)
                })
        };
        let is_canary = placements.iter().map(|canary| placements.iter().any(|entry| waits_for(entry, canary)));
        Self { is_canary: is_canary.collect() }
    }

    /// The entry that decides for a cluster, of those entries that select it.
    #[must_use]
    pub fn entry(&self, selecting: impl IntoIterator<Item = usize>) -> Option<usize> {
        selecting.into_iter().max_by_key(|entry| (self.is_canary.get(*entry) == Some(&true), *entry))
    }
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

    #[test]
    fn the_last_that_selects_a_cluster_decides() {
        let deciding = Deciding::among(&[entry("a"), entry("b"), entry("c")]);
        assert_eq!(deciding.entry([0, 1]), Some(1));
        assert_eq!(deciding.entry([2, 0]), Some(2), "in whatever order they are named");
        assert_eq!(deciding.entry([]), None);
    }

    #[test]
    fn a_listed_canary_placement_goes_before_all_others() {
        for list in [[entry("canary"), behind("canary", "rest")], [behind("canary", "rest"), entry("canary")]] {
            let canary = list.iter().position(|entry| entry.placement.name == "canary");
            let deciding = Deciding::among(&list);
            assert_eq!(deciding.entry([0, 1]), canary);
            assert_eq!(deciding.entry([1]), Some(1), "who is no canary follows its own");
        }
    }

    #[test]
    fn of_several_canary_placements_the_last_decides() {
        let list = [entry("early"), entry("late"), behind("early", "x"), behind("late", "y"), entry("z")];
        assert_eq!(Deciding::among(&list).entry(0..5), Some(1));
    }

    #[test]
    fn a_canary_placement_that_is_not_listed_decides_for_nobody() {
        let deciding = Deciding::among(&[entry("a"), behind("elsewhere", "b")]);
        assert_eq!(deciding.entry([0, 1]), Some(1));
        assert_eq!(deciding.entry([0]), Some(0));
    }

    #[test]
    fn settings_of_another_strategy_make_no_canaries() {
        let mut gated = behind("a", "b");
        gated.rollout_strategy.as_mut().expect("it has one").kind = AddOnRolloutType::All;
        assert_eq!(Deciding::among(&[entry("a"), gated]).entry([0, 1]), Some(1));
    }
}
