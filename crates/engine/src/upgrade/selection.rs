//! Which clusters an upgrade is for: those of its placements, and those that its selector takes from the sets that its namespace is bound to.

use std::collections::BTreeMap;

use drover_api::cluster::{ManagedCluster, UpgradeClusterSelector};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};

use crate::placement::{Problem, by_labels};

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

#[cfg(test)]
mod tests {
    use drover_api::cluster::ManagedClusterSpec;
    use serde_json::json;

    use super::*;

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
