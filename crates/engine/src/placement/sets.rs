//! Which clusters are in reach of a placement: those of the sets that its namespace is bound to.

use std::collections::BTreeSet;

use drover_api::{
    cluster::{ClusterSetSelectorType, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding},
    names::CLUSTER_SET_LABEL,
};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};

use super::{Misconfigured, Plugin, selector};

/// The sets that a placement takes clusters from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// None: the namespace is bound to no set that exists.
    Unbound,
    /// None: the namespace is bound to none of the sets that the placement names.
    NoIntersection {
        /// The sets that it names.
        named: BTreeSet<String>,
    },
    /// These.
    Sets(BTreeSet<String>),
}

/// Who belongs to a set.
#[derive(Clone, Debug, PartialEq)]
pub enum Membership {
    /// Clusters whose label names the set.
    Label {
        /// The set.
        set: String,
    },
    /// Clusters that a selector matches.
    Selector(Selector),
    /// Nobody: the set is to have a selector, and has none.
    Nobody,
}

/// The sets in reach of a placement that names these sets (or none, for all), in a namespace with these bindings.
#[must_use]
pub fn reach<'a>(
    named: &[String],
    bindings: impl IntoIterator<Item = &'a ManagedClusterSetBinding>,
    exists: impl Fn(&str) -> bool,
) -> Reach {
    let bound = bindings.into_iter().map(|binding| &binding.spec.cluster_set).filter(|set| exists(set));
    let bound: BTreeSet<String> = bound.cloned().collect();
    let named: BTreeSet<String> = named.iter().cloned().collect();
    match () {
        () if bound.is_empty() => Reach::Unbound,
        () if named.is_empty() => Reach::Sets(bound),
        () if named.is_disjoint(&bound) => Reach::NoIntersection { named },
        () => Reach::Sets(&named & &bound),
    }
}

impl Reach {
    /// Whether clusters of this set are in reach.
    #[must_use]
    pub fn contains(&self, set: &str) -> bool {
        matches!(self, Self::Sets(sets) if sets.contains(set))
    }
}

impl Membership {
    /// Who belongs to this set.
    pub fn of(set: &ManagedClusterSet) -> Result<Self, Misconfigured> {
        let selector = &set.spec.cluster_selector;
        match (selector.selector_type, &selector.label_selector) {
            (ClusterSetSelectorType::ExclusiveClusterSetLabel, _) => Ok(Self::Label { set: set.name_any() }),
            (ClusterSetSelectorType::LabelSelector, Some(labels)) => {
                let place = format!("the set {} clusterSelector.labelSelector", set.name_any());
                selector::by_labels(labels, &place)
                    .map(Self::Selector)
                    .map_err(|problem| problem.of(Plugin::ClusterSet))
            }
            (ClusterSetSelectorType::LabelSelector, None) => Ok(Self::Nobody),
        }
    }

    /// Whether a cluster belongs to the set.
    #[must_use]
    pub fn contains(&self, cluster: &ManagedCluster) -> bool {
        match self {
            Self::Label { set } => cluster.labels().get(CLUSTER_SET_LABEL) == Some(set),
            Self::Selector(selector) => selector.matches(cluster.labels()),
            Self::Nobody => false,
        }
    }
}
