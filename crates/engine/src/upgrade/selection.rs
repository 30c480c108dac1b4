//! Which clusters an upgrade is for: those of its placements, and those that its selector takes from the sets that its namespace is bound to.

use std::{collections::BTreeMap, time::Duration};

use drover_api::{
    cluster::{ManagedCluster, UpgradeClusterSelector},
    drover::ClusterUpgrade,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::LabelSelector, jiff::Timestamp};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};

use super::member::{Reach, after};
use crate::{
    placement::{Problem, by_labels},
    presence::{Absence, Leave, Unselected, leave},
};

/// How long a cluster that can not be reached has to be unselected to count as left out, if it was not begun.
const OFFLINE_GRACE: Duration = Duration::from_mins(5);

/// The label that stands for a cluster's own name where it has none.
const NAME: &str = "name";

/// A selection of clusters by their labels and sets.
#[derive(Clone, Debug)]
pub struct ClusterSelector {
    sets: Vec<String>,
    labels: Selector,
}

impl ClusterSelector {
    /// What is written there.
    pub fn of(written: &UpgradeClusterSelector, place: &str) -> Result<Self, Problem> {
        let labels = LabelSelector {
            match_labels: Some(written.match_labels.clone()),
            match_expressions: Some(written.match_expressions.clone()),
        };
        Ok(Self { sets: written.cluster_sets.clone(), labels: by_labels(&labels, place)? })
    }

    /// The sets that it names.
    #[must_use]
    pub fn sets(&self) -> &[String] {
        &self.sets
    }

    /// Whether it selects a cluster, by its labels alone. What is said of `name` is said of the cluster's own name if it has no such label.
    #[must_use]
    pub fn matches(&self, cluster: &ManagedCluster) -> bool {
        if cluster.labels().contains_key(NAME) {
            return self.labels.matches(cluster.labels());
        }
        let named = [(NAME.to_owned(), cluster.name_any())];
        let labels: BTreeMap<_, _> = cluster.labels().clone().into_iter().chain(named).collect();
        self.labels.matches(&labels)
    }
}

/// What becomes of a cluster that nothing selects any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It is left out.
    Sure,
    /// Nobody can tell yet.
    Unsure {
        /// What is known, to be told when this is decided on again.
        known: Absence,
        /// When that is, though nothing has changed.
        again: Option<Timestamp>,
    },
}

/// Whether a cluster is left out that nothing selects, and that has a record. One that can not be reached may be unselected for that reason alone.
#[must_use]
pub fn departure(unselected: &Unselected, reach: Option<Reach>, record: &ClusterUpgrade, now: Timestamp) -> Departure {
    let (known, again) = match leave(unselected, now) {
        Leave::Now | Leave::WithCluster => return Departure::Sure,
        Leave::Later { known, again } => (known, again),
    };
    // Whom its upgrade has cut off must not vanish from the count, nor a canary from the gate.
    let is_begun = record.status.as_ref().is_some_and(|status| status.started.is_some());
    let may_vanish = !is_begun && record.spec.canary != Some(true);
    let over = match reach {
        Some(Reach::Offline { since }) if may_vanish => since.map(|since| after(since, OFFLINE_GRACE)),
        _ => None,
    };
    match over {
        Some(over) if over <= now => Departure::Sure,
        over => Departure::Unsure { known, again: again.into_iter().chain(over).min() },
    }
}

#[cfg(test)]
mod tests {
    use drover_api::{cluster::ManagedClusterSpec, drover::ClusterUpgradeStatus};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;
    use crate::presence::Known;

    #[test]
    fn who_can_not_be_reached_is_left_out_only_if_nothing_was_begun() {
        let at = |seconds: i64| Timestamp::from_second(1_800_000_000 + seconds).expect("a time");
        let unknown = json!({ "type": "ManagedClusterConditionAvailable", "status": "Unknown", "reason": "", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let mut cluster = ManagedCluster::new("dev1", ManagedClusterSpec::default());
        cluster.status = serde_json::from_value(json!({ "conditions": [unknown] })).expect("a status");
        let unselected =
            Unselected { cluster: Known::There(&cluster), before: None, is_confirmed: true, keeps_clusters: true };
        let away = Some(Reach::Offline { since: Some(at(0)) });
        let record = |is_canary: bool, is_begun: bool| {
            let mut record = ClusterUpgrade::default();
            record.spec.canary = is_canary.then_some(true);
            let started = is_begun.then(|| Time(at(-60)));
            record.status = Some(ClusterUpgradeStatus { started, ..ClusterUpgradeStatus::default() });
            record
        };
        let is_sure =
            |record: &ClusterUpgrade, seconds| departure(&unselected, away, record, at(seconds)) == Departure::Sure;
        let waits = record(false, false);
        assert_eq!([is_sure(&waits, 299), is_sure(&waits, 300)], [false, true]);
        let Departure::Unsure { again, .. } = departure(&unselected, away, &waits, at(10)) else { panic!("too early") };
        assert_eq!(again, Some(at(300)));
        for stays in [record(true, false), record(false, true), record(true, true)] {
            assert!(!is_sure(&stays, 1_000_000), "{stays:?}");
        }
    }

    fn selector(names: &[&str]) -> ClusterSelector {
        let expression = json!({ "key": "name", "operator": "In", "values": names });
        let written = serde_json::from_value(json!({ "matchExpressions": [expression] })).expect("a selector");
        ClusterSelector::of(&written, "clusterSelector").expect("it makes sense")
    }

    #[test]
    fn a_name_is_the_label_of_that_name_or_else_the_clusters_own() {
        let mut cluster = ManagedCluster::new("dev1", ManagedClusterSpec::default());
        assert!(selector(&["dev1", "dev2"]).matches(&cluster));
        cluster.labels_mut().insert("name".to_owned(), "blue".to_owned());
        assert!(!selector(&["dev1"]).matches(&cluster) && selector(&["blue"]).matches(&cluster));
    }

    #[test]
    fn a_selector_that_makes_no_sense_says_where() {
        let expression = json!({ "key": "name", "operator": "Is", "values": ["a"] });
        let written = serde_json::from_value(json!({ "matchExpressions": [expression] })).expect("a selector");
        let problem = ClusterSelector::of(&written, "spec.clusterSelector").expect_err("there is no such operator");
        assert!(problem.to_string().contains("spec.clusterSelector"), "{problem}");
    }
}
