//! The ways in which clusters get an add-on, as its author has listed them.

use drover_api::{
    addon::{AddOnRolloutType, ClusterManagementAddOn, InstallStrategyType, PlacementStrategy},
    grammar::WindowSize,
    reference::PlacementRef,
};

use crate::{
    dialect::Dialect,
    presence::Source,
    rollout::{
        Entry,
        strategy::{Strategy, Unreadable},
    },
};

/// The placements that an add-on is installed by.
#[must_use]
pub fn listed(addon: &ClusterManagementAddOn) -> &[PlacementStrategy] {
    match &addon.spec.install_strategy {
        Some(strategy) if strategy.kind == InstallStrategyType::Placements => &strategy.placements,
        _ => &[],
    }
}

/// The ways in which clusters get an add-on: by its placements, in the order of the list; then the placements that are only named as
/// canaries; and at last by nobody. `per_group` says how many clusters a placement puts into a decision group.
pub fn entries(
    addon: &ClusterManagementAddOn,
    dialect: Dialect,
    per_group: impl Fn(&PlacementRef) -> Option<WindowSize>,
) -> Vec<Entry> {
    let listed = listed(addon);
    let mut entries: Vec<_> = listed
        .iter()
        .map(|placement| Entry {
            source: Source::Listed(placement.placement.clone()),
            strategy: strategy(placement, dialect, per_group(&placement.placement).as_ref()),
        })
        .collect();
    let canaries = entries.iter().filter_map(|entry| entry.strategy.as_ref().ok()?.canary.clone());
    let mut canaries: Vec<_> = canaries.collect();
    canaries.sort();
    canaries.dedup();
    canaries.retain(|canary| !listed.iter().any(|placement| placement.placement == *canary));
    let plain = |source| Entry { source, strategy: Ok(Strategy::default()) };
    entries.extend(canaries.into_iter().map(|canary| plain(Source::Canaries(canary))));
    entries.push(plain(Source::Nobody));
    entries
}

/// The strategy of a placement. Where OCM's words are spoken there are none of Drover's own.
fn strategy(
    placement: &PlacementStrategy,
    dialect: Dialect,
    per_group: Option<&WindowSize>,
) -> Result<Strategy, Unreadable> {
    let written = placement.rollout_strategy.as_ref();
    match written.map(|written| written.kind) {
        Some(
            kind @ (AddOnRolloutType::UpdateAll
            | AddOnRolloutType::RollingUpdate
            | AddOnRolloutType::RollingUpdateWithCanary),
        ) if dialect == Dialect::Ocm => Err(Unreadable {
            field: "type",
            complaint: format!(
                "{kind:?} is Drover's own, and off where the hub speaks OCM's dialect, which has All, Progressive and ProgressivePerGroup"
            ),
        }),
        _ => Strategy::read(written, per_group),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sources(placements: &Value, kind: &str) -> Vec<Source> {
        let spec = json!({ "installStrategy": { "type": kind, "placements": placements } });
        let spec = serde_json::from_value(spec).expect("a valid add-on");
        entries(&ClusterManagementAddOn::new("helloworld", spec), Dialect::Drover, |_| None)
            .into_iter()
            .map(|entry| entry.source)
            .collect()
    }

    fn placement(name: &str) -> PlacementRef {
        PlacementRef { namespace: "default".to_owned(), name: name.to_owned() }
    }

    fn with_canary(name: &str, canary: &str) -> Value {
        let canary = json!({ "placement": { "namespace": "default", "name": canary } });
        let strategy = json!({ "type": "RollingUpdateWithCanary", "rollingUpdateWithCanary": canary });
        json!({ "namespace": "default", "name": name, "rolloutStrategy": strategy })
    }

    #[test]
    fn placements_come_in_the_order_of_the_list() {
        let list = json!([{ "namespace": "default", "name": "b" }, { "namespace": "default", "name": "a" }]);
        let expected = [Source::Listed(placement("b")), Source::Listed(placement("a")), Source::Nobody];
        assert_eq!(sources(&list, "Placements"), expected);
    }

    #[test]
    fn canaries_that_are_not_listed_follow() {
        let list = json!([with_canary("a", "c"), with_canary("b", "c"), with_canary("d", "a")]);
        let listed = ["a", "b", "d"].map(|name| Source::Listed(placement(name)));
        let expected: Vec<_> = listed.into_iter().chain([Source::Canaries(placement("c")), Source::Nobody]).collect();
        assert_eq!(sources(&list, "Placements"), expected);
    }

    #[test]
    fn placements_count_only_where_clusters_are_chosen_by_them() {
        assert_eq!(sources(&json!([with_canary("a", "c")]), "Manual"), [Source::Nobody]);
    }
    #[test]
    fn strategies_of_drover_s_own_are_refused_where_ocm_s_words_are_spoken() {
        for (kind, is_ocm_s) in [
            ("UpdateAll", false),
            ("RollingUpdate", false),
            ("RollingUpdateWithCanary", false),
            ("All", true),
            ("Progressive", true),
            ("ProgressivePerGroup", true),
        ] {
            let placement = json!({ "namespace": "default", "name": "a", "rolloutStrategy": { "type": kind } });
            let placement: PlacementStrategy = serde_json::from_value(placement).expect("a valid entry");
            assert!(strategy(&placement, Dialect::Drover, None).is_ok(), "{kind}");
            let in_ocm_s = strategy(&placement, Dialect::Ocm, None);
            assert_eq!(in_ocm_s.is_ok(), is_ocm_s, "{kind}");
            let complaint = in_ocm_s.err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(complaint.contains("off where the hub speaks OCM's dialect"), !is_ocm_s, "{complaint}");
        }
    }
}
