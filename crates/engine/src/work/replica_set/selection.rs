//! The placements that a set lists.

use drover_api::work::{ManifestWorkReplicaSet, PlacementRollout};

/// The placements of a set in the order of the list. One that is listed twice counts where it stands last.
#[must_use]
pub fn listed(set: &ManifestWorkReplicaSet) -> Vec<&PlacementRollout> {
    let all = &set.spec.placement_refs;
    let is_last = |(index, placement): &(usize, &PlacementRollout)| {
        !all[index + 1..].iter().any(|other| other.name == placement.name)
    };
    all.iter().enumerate().filter(is_last).map(|(_, placement)| placement).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_placement_that_is_listed_twice_counts_where_it_stands_last() {
        let refs = ["a", "b", "a"].map(|name| json!({ "name": name }));
        let spec = serde_json::from_value(json!({ "placementRefs": refs })).expect("a set");
        let set = ManifestWorkReplicaSet::new("set", spec);
        assert_eq!(listed(&set).iter().map(|placement| placement.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    }
}
