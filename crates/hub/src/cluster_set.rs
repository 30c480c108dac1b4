//! The controllers of cluster sets and of their bindings.
//!
//! Watch sets, bindings and clusters. Their keys are a set and a binding. They make the sets `default` and `global`, keep
//! their selectors, and write the conditions `ClusterSetEmpty` and `Bound`.

use drover_api::cluster::{
    ClusterSetSelector, ClusterSetSelectorType, ManagedClusterSet, ManagedClusterSetBindingStatus,
    ManagedClusterSetSpec, ManagedClusterSetStatus,
};
use drover_engine::condition::{self, Says};
use drover_runtime::{
    controller::{Plan, Reconciler},
    store::ObjectKey,
    write::Write,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::LabelSelector, jiff::Timestamp};
use kube::ResourceExt;

use crate::fleet::Fleet;

/// The set of all clusters that are in no other exclusive set.
pub(crate) const DEFAULT_SET: &str = "default";
/// The set of all clusters.
pub(crate) const GLOBAL_SET: &str = "global";

/// The annotation with which somebody takes over one of the two sets above.
const AUTOUPDATE_ANNOTATION: &str = "cluster.open-cluster-management.io/autoupdate";

pub(crate) struct ClusterSets;

impl Reconciler<Fleet> for ClusterSets {
    type Key = ObjectKey;

    const NAME: &'static str = "drover-clusterset";

    fn plan(&self, fleet: &Fleet, key: &ObjectKey, now: Timestamp) -> Plan<Fleet> {
        let wanted_selector = selector_of(&key.name);
        let write = match fleet.sets.get(key) {
            None => wanted_selector.map(|selector| Write::create(new_set(&key.name, selector))),
            Some(set) => with_selector(set, wanted_selector).or_else(|| with_members(fleet, key, set, now)),
        };
        write.into_iter().collect()
    }
}

/// How the clusters of the two sets that every hub has are chosen.
fn selector_of(set: &str) -> Option<ClusterSetSelector> {
    match set {
        DEFAULT_SET => Some(ClusterSetSelector::default()),
        GLOBAL_SET => Some(ClusterSetSelector {
            selector_type: ClusterSetSelectorType::LabelSelector,
            label_selector: Some(LabelSelector::default()),
        }),
        _ => None,
    }
}

fn new_set(name: &str, cluster_selector: ClusterSetSelector) -> ManagedClusterSet {
    ManagedClusterSet::new(name, ManagedClusterSetSpec { cluster_selector, managed_namespaces: Vec::new() })
}

/// Puts the selector of one of the two sets back, unless somebody has taken the set over.
fn with_selector(set: &ManagedClusterSet, selector: Option<ClusterSetSelector>) -> Option<Write<Fleet>> {
    let is_taken_over = set.annotations().get(AUTOUPDATE_ANNOTATION).is_some_and(|value| value == "false");
    let mut wanted = set.clone();
    wanted.spec.cluster_selector = selector.filter(|_| !is_taken_over)?;
    Write::update(set, &wanted)
}

fn with_members(fleet: &Fleet, key: &ObjectKey, set: &ManagedClusterSet, now: Timestamp) -> Option<Write<Fleet>> {
    let members = fleet.members.get(&*key.name)?;
    let count = members.clusters.len();
    let (reason, message) = match &members.membership {
        Err(error) => (
            "Misconfigured",
            format!("the set keeps its {count} clusters, because its selector makes no sense: {error}"),
        ),
        Ok(_) if count == 0 => ("NoClusterMatched", "No ManagedCluster selected".to_owned()),
        Ok(_) => ("ClustersSelected", format!("{count} ManagedClusters selected")),
    };
    let says = Says {
        type_: "ClusterSetEmpty",
        holds: (count == 0).into(),
        reason,
        message: &message,
        generation: set.metadata.generation,
    };
    let mut wanted = set.clone();
    let conditions = set.status.clone().unwrap_or_default().conditions;
    wanted.status = Some(ManagedClusterSetStatus { conditions: condition::with(conditions, says, now) });
    Write::status(set, &wanted)
}

pub(crate) struct SetBindings;

impl Reconciler<Fleet> for SetBindings {
    type Key = ObjectKey;

    const NAME: &'static str = "drover-setbinding";

    fn plan(&self, fleet: &Fleet, key: &ObjectKey, now: Timestamp) -> Plan<Fleet> {
        let Some(binding) = fleet.bindings.get(key) else { return Plan::default() };
        let is_bound = fleet.sets.get(&ObjectKey::cluster_wide(&binding.spec.cluster_set)).is_some();
        let message =
            format!("there is no ManagedClusterSet {}: create it, or delete this binding", binding.spec.cluster_set);
        let says = Says {
            type_: "Bound",
            holds: is_bound.into(),
            reason: if is_bound { "ClusterSetBound" } else { "ClusterSetNotFound" },
            message: if is_bound { "" } else { &message },
            generation: binding.metadata.generation,
        };
        let mut wanted = (**binding).clone();
        let conditions = binding.status.clone().unwrap_or_default().conditions;
        wanted.status = Some(ManagedClusterSetBindingStatus { conditions: condition::with(conditions, says, now) });
        Write::status(&**binding, &wanted).into_iter().collect()
    }
}
