//! What the hub marks a cluster with: its set, its taints, that it has joined, and a finalizer before it gets anything.

use drover_api::{
    cluster::ManagedCluster,
    names::{CLUSTER_FINALIZER, CLUSTER_JOINED, CLUSTER_SET_LABEL, JOINED_ANNOTATION, RESOURCE_CLEANUP_FINALIZER},
};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::{acceptance::Acceptance, conditions, taints};
use crate::{
    cluster_set::DEFAULT_SET,
    condition::{self, Holds},
};

/// The cluster with its marks, given whether it is let in and whether it answers.
#[must_use]
pub fn marked(cluster: &ManagedCluster, acceptance: &Acceptance, available: Holds, now: Timestamp) -> ManagedCluster {
    let mut marked = cluster.clone();
    marked.spec.taints = taints::wanted(&cluster.spec.taints, available, now);
    let set = marked.labels_mut().entry(CLUSTER_SET_LABEL.to_owned()).or_default();
    if set.is_empty() {
        DEFAULT_SET.clone_into(set);
    }
    if condition::holds(conditions(cluster), CLUSTER_JOINED) == Some(Holds::Yes) {
        marked.annotations_mut().entry(JOINED_ANNOTATION.to_owned()).or_insert_with(|| "true".to_owned());
    }
    if *acceptance == Acceptance::Accepted && !has_finalizer(cluster) {
        marked.finalizers_mut().push(CLUSTER_FINALIZER.to_owned());
    }
    marked
}

/// Whether the cluster waits for the hub before it goes.
#[must_use]
pub fn has_finalizer(cluster: &ManagedCluster) -> bool {
    cluster.finalizers().iter().any(|finalizer| finalizer == CLUSTER_FINALIZER)
}

/// The cluster without the finalizers by which it waits for a hub; nothing if there are none.
#[must_use]
pub fn released(cluster: &ManagedCluster) -> Option<ManagedCluster> {
    let is_ours = |finalizer: &String| [CLUSTER_FINALIZER, RESOURCE_CLEANUP_FINALIZER].contains(&&**finalizer);
    let mut released = cluster.clone();
    released.finalizers_mut().retain(|finalizer| !is_ours(finalizer));
    cluster.finalizers().iter().any(is_ours).then_some(released)
}

#[cfg(test)]
mod tests {
    use drover_api::cluster::ManagedClusterSpec;

    use super::*;

    fn cluster() -> ManagedCluster {
        ManagedCluster::new("one", ManagedClusterSpec::default())
    }

    fn mark(cluster: &ManagedCluster, acceptance: &Acceptance) -> ManagedCluster {
        marked(cluster, acceptance, Holds::Yes, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_cluster_is_in_the_default_set_unless_it_is_in_another() {
        let mut one = cluster();
        assert_eq!(mark(&one, &Acceptance::Awaited).labels()[CLUSTER_SET_LABEL], DEFAULT_SET);
        one.labels_mut().insert(CLUSTER_SET_LABEL.to_owned(), "other".to_owned());
        assert_eq!(mark(&one, &Acceptance::Awaited).labels()[CLUSTER_SET_LABEL], "other");
    }

    #[test]
    fn only_who_is_let_in_waits_for_the_hub_and_is_released_by_it() {
        let awaited = mark(&cluster(), &Acceptance::Awaited);
        assert!(!has_finalizer(&awaited) && released(&awaited).is_none());
        let mut accepted = mark(&cluster(), &Acceptance::Accepted);
        accepted.finalizers_mut().push("example.com/other".to_owned());
        assert!(has_finalizer(&accepted));
        assert_eq!(released(&accepted).expect("it was held").finalizers(), ["example.com/other"]);
    }
}
