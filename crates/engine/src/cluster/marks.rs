//! What the hub marks a cluster with: its set, its taints, that it has joined, how its add-ons are, and a finalizer before it gets anything.

use drover_api::{
    addon::ManagedClusterAddOn,
    cluster::ManagedCluster,
    names::{
        AVAILABLE, CLUSTER_FINALIZER, CLUSTER_JOINED, CLUSTER_SET_LABEL, FEATURE_LABEL_PREFIX, JOINED_ANNOTATION,
        NO_PROBE_RESULT, RESOURCE_CLEANUP_FINALIZER,
    },
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};
use kube::ResourceExt;

use super::{acceptance::Acceptance, conditions, taints};
use crate::{
    cluster_set::DEFAULT_SET,
    condition::{self, Holds},
};

/// The longest name that a label may have after its prefix.
const LONGEST: usize = 63;

/// How an add-on is on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// It is well.
    Available,
    /// It is not.
    Unhealthy,
    /// Nobody knows.
    Unreachable,
}

impl Feature {
    /// How an add-on says that it is on its cluster; nothing as long as it has never said anything.
    #[must_use]
    pub fn of(addon: &ManagedClusterAddOn) -> Option<Self> {
        let conditions = &addon.status.as_ref()?.conditions;
        let is_silent = |said: &Condition| said.type_ == AVAILABLE && said.reason == NO_PROBE_RESULT;
        match condition::holds(conditions, AVAILABLE)? {
            Holds::Yes => Some(Self::Available),
            Holds::No => Some(Self::Unhealthy),
            Holds::Unknown if conditions.iter().any(is_silent) => None,
            Holds::Unknown => Some(Self::Unreachable),
        }
    }

    fn value(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Unhealthy => "unhealthy",
            Self::Unreachable => "unreachable",
        }
    }
}

/// The cluster with labels that say how each of its add-ons is, so that placements can go by them. They are OCM's.
#[must_use]
pub fn labelled<'a>(
    mut cluster: ManagedCluster,
    addons: impl IntoIterator<Item = (&'a str, Feature)>,
) -> ManagedCluster {
    let name = |addon: &str| format!("{FEATURE_LABEL_PREFIX}{addon}");
    // A label's name has a limit that an add-on's has not, and a cluster with one that is too long could not be written at all.
    let fits = |label: &String| label.rsplit('/').next().is_some_and(|name| name.len() <= LONGEST);
    let wanted: Vec<_> = addons.into_iter().map(|(addon, feature)| (name(addon), feature)).collect();
    let labels = cluster.labels_mut();
    labels.retain(|label, _| !label.starts_with(FEATURE_LABEL_PREFIX));
    let wanted = wanted.into_iter().filter(|(label, _)| fits(label));
    labels.extend(wanted.map(|(label, feature)| (label, feature.value().to_owned())));
    cluster
}

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
    fn labels_say_how_add_ons_are_and_go_with_them() {
        let mut one = cluster();
        one.labels_mut().insert("other".to_owned(), "stays".to_owned());
        one.labels_mut().insert(format!("{FEATURE_LABEL_PREFIX}gone"), "available".to_owned());
        let long = "x".repeat(58);
        let addons = [("well", Feature::Available), ("ill", Feature::Unhealthy), (&*long, Feature::Available)];
        let labelled = labelled(one, addons);
        let labels: Vec<_> = labelled.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
        let prefix = FEATURE_LABEL_PREFIX;
        assert_eq!(
            labels,
            [format!("{prefix}ill=unhealthy"), format!("{prefix}well=available"), "other=stays".to_owned()]
        );
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
