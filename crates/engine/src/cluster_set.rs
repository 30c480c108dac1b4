//! What cluster sets and their bindings say of themselves, and the two sets that every hub has.

use drover_api::cluster::{ClusterSetSelector, ClusterSetSelectorType, ManagedClusterSet, ManagedClusterSetBinding};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector},
    jiff::Timestamp,
};
use kube::ResourceExt;

use crate::{
    condition::{self, Says},
    placement::Misconfigured,
};

/// The set of all clusters that are in no other exclusive set.
pub const DEFAULT_SET: &str = "default";
/// The set of all clusters.
pub const GLOBAL_SET: &str = "global";

/// The annotation with which somebody takes over one of the two sets above.
const AUTOUPDATE_ANNOTATION: &str = "cluster.open-cluster-management.io/autoupdate";

/// How the clusters of one of the sets that every hub has are chosen; nothing for other sets.
#[must_use]
pub fn selector_of(set: &str) -> Option<ClusterSetSelector> {
    match set {
        DEFAULT_SET => Some(ClusterSetSelector::default()),
        GLOBAL_SET => Some(ClusterSetSelector {
            selector_type: ClusterSetSelectorType::LabelSelector,
            label_selector: Some(LabelSelector::default()),
        }),
        _ => None,
    }
}

/// Whether somebody has taken over one of the sets that every hub has, and chooses its clusters.
#[must_use]
pub fn is_taken_over(set: &ManagedClusterSet) -> bool {
    set.annotations().get(AUTOUPDATE_ANNOTATION).is_some_and(|value| value == "false")
}

/// The conditions of a set that has so many clusters, and whose selector may make no sense.
#[must_use]
pub fn conditions(
    set: &ManagedClusterSet,
    clusters: usize,
    flaw: Option<&Misconfigured>,
    now: Timestamp,
) -> Vec<Condition> {
    let (reason, message) = match flaw {
        Some(flaw) => (
            "Misconfigured",
            format!("the set keeps its {clusters} clusters, because its selector makes no sense: {flaw}"),
        ),
        None if clusters == 0 => ("NoClusterMatched", "No ManagedCluster selected".to_owned()),
        None => ("ClustersSelected", format!("{clusters} ManagedClusters selected")),
    };
    let says = Says {
        type_: "ClusterSetEmpty",
        holds: (clusters == 0).into(),
        reason,
        message: &message,
        generation: set.metadata.generation,
    };
    condition::with(set.status.clone().unwrap_or_default().conditions, says, now)
}

/// The conditions of a binding whose set is there or not.
#[must_use]
pub fn binding_conditions(binding: &ManagedClusterSetBinding, is_bound: bool, now: Timestamp) -> Vec<Condition> {
    let missing =
        format!("there is no ManagedClusterSet {}: create it, or delete this binding", binding.spec.cluster_set);
    let says = Says {
        type_: "Bound",
        holds: is_bound.into(),
        reason: if is_bound { "ClusterSetBound" } else { "ClusterSetNotFound" },
        message: if is_bound { "" } else { &missing },
        generation: binding.metadata.generation,
    };
    condition::with(binding.status.clone().unwrap_or_default().conditions, says, now)
}

#[cfg(test)]
mod tests {
    use drover_api::cluster::{ManagedClusterSetBindingSpec, ManagedClusterSetSpec};

    use super::*;

    fn says(conditions: &[Condition]) -> (&str, &str) {
        (&conditions[0].status, &conditions[0].reason)
    }

    #[test]
    fn a_set_says_whether_it_is_empty() {
        let set = ManagedClusterSet::new("set", ManagedClusterSetSpec::default());
        let with = |clusters| conditions(&set, clusters, None, Timestamp::UNIX_EPOCH);
        assert_eq!(says(&with(0)), ("True", "NoClusterMatched"));
        assert_eq!(says(&with(2)), ("False", "ClustersSelected"));
        assert_eq!(with(2)[0].message, "2 ManagedClusters selected");
    }

    #[test]
    fn a_binding_says_what_is_missing() {
        let spec = ManagedClusterSetBindingSpec { cluster_set: "set".to_owned() };
        let binding = ManagedClusterSetBinding::new("set", spec);
        let bound = |is_bound| binding_conditions(&binding, is_bound, Timestamp::UNIX_EPOCH);
        assert_eq!(says(&bound(true)), ("True", "ClusterSetBound"));
        assert_eq!(says(&bound(false)), ("False", "ClusterSetNotFound"));
        assert!(bound(false)[0].message.contains("there is no ManagedClusterSet set"));
    }

    #[test]
    fn the_sets_of_every_hub_have_their_selectors_and_others_do_not() {
        assert_eq!(selector_of(DEFAULT_SET), Some(ClusterSetSelector::default()));
        assert!(selector_of(GLOBAL_SET).is_some_and(|selector| selector.label_selector.is_some()));
        assert_eq!(selector_of("other"), None);
    }
}
