//! The controllers of cluster sets and of their bindings.
//!
//! Watch sets, bindings and clusters. Their keys are a set and a binding. They make the sets `default` and `global`, keep
//! their selectors, and write the conditions `ClusterSetEmpty` and `Bound`.

use drover_api::cluster::{
    ClusterSetSelector, ManagedClusterSet, ManagedClusterSetBindingStatus, ManagedClusterSetSpec,
    ManagedClusterSetStatus,
};
use drover_engine::{
    cluster_set::{self, is_taken_over, selector_of},
    plan::{NoAction, Plan, Write},
};
use drover_runtime::{controller::Reconciler, store::ObjectKey};
use k8s_openapi::jiff::Timestamp;

use crate::cache::Cache;

pub(crate) struct ClusterSets;

impl Reconciler<Cache> for ClusterSets {
    type Key = ObjectKey;
    type State = ();
    type Action = NoAction;

    const NAME: &'static str = "drover-clusterset";

    fn plan(&self, cache: &Cache, key: &ObjectKey, (): &mut (), now: Timestamp) -> Plan {
        let wanted_selector = selector_of(&key.name);
        let write = match cache.sets.get(key) {
            // One that can not be read is there all the same.
            None if cache.sets.has(key) => None,
            None => wanted_selector.map(|selector| Write::create(new_set(&key.name, selector))),
            Some(set) => with_selector(set, wanted_selector).or_else(|| with_members(cache, key, set, now)),
        };
        write.into_iter().collect()
    }
}

fn new_set(name: &str, cluster_selector: ClusterSetSelector) -> ManagedClusterSet {
    ManagedClusterSet::new(name, ManagedClusterSetSpec { cluster_selector, managed_namespaces: Vec::new() })
}

/// Puts the selector of one of the two sets back, unless somebody has taken the set over.
fn with_selector(set: &ManagedClusterSet, selector: Option<ClusterSetSelector>) -> Option<Write> {
    let mut wanted = set.clone();
    wanted.spec.cluster_selector = selector.filter(|_| !is_taken_over(set))?;
    Write::update(set, &wanted)
}

fn with_members(cache: &Cache, key: &ObjectKey, set: &ManagedClusterSet, now: Timestamp) -> Option<Write> {
    let members = cache.members.get(&*key.name)?;
    let conditions = cluster_set::conditions(set, members.clusters.len(), members.membership.as_ref().err(), now);
    let wanted = ManagedClusterSet { status: Some(ManagedClusterSetStatus { conditions }), ..set.clone() };
    Write::status(set, &wanted)
}

pub(crate) struct SetBindings;

impl Reconciler<Cache> for SetBindings {
    type Key = ObjectKey;
    type State = ();
    type Action = NoAction;

    const NAME: &'static str = "drover-setbinding";

    fn plan(&self, cache: &Cache, key: &ObjectKey, (): &mut (), now: Timestamp) -> Plan {
        let Some(binding) = cache.bindings.get(key) else { return Plan::default() };
        let is_bound = cache.sets.has(&ObjectKey::cluster_wide(&binding.spec.cluster_set));
        let conditions = cluster_set::binding_conditions(binding, is_bound, now);
        let mut wanted = (**binding).clone();
        wanted.status = Some(ManagedClusterSetBindingStatus { conditions });
        Write::status(&**binding, &wanted).into_iter().collect()
    }
}
