//! What an add-on on a cluster has from its ClusterManagementAddOn and from its cluster: an owner, and annotations.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{
    addon::{ClusterManagementAddOn, InstallStrategyType, ManagedClusterAddOn},
    cluster::ManagedCluster,
    names::{ADDON_ANNOTATION_PREFIX, COPIED_ANNOTATIONS_ANNOTATION, LIFECYCLE_ANNOTATION},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};

use crate::owner::own;

/// The value of the annotation that says that the hub manages an add-on.
const MANAGED: &str = "addon-manager";

/// Whether the hub manages an add-on, as it does unless somebody else says that he does.
#[must_use]
pub fn is_managed(addon: &ClusterManagementAddOn) -> bool {
    addon.annotations().get(LIFECYCLE_ANNOTATION).is_none_or(|manager| manager == MANAGED)
}

/// How the clusters of an add-on are chosen.
#[must_use]
pub fn strategy(addon: &ClusterManagementAddOn) -> InstallStrategyType {
    addon.spec.install_strategy.as_ref().map(|strategy| strategy.kind).unwrap_or_default()
}

/// The reference by which an add-on on a cluster goes when its ClusterManagementAddOn does.
#[must_use]
pub fn owner(addon: &ClusterManagementAddOn) -> Option<OwnerReference> {
    let owner = addon.controller_owner_ref(&())?;
    Some(OwnerReference { block_owner_deletion: Some(true), ..owner })
}

/// An add-on on a cluster with everything that it has from its ClusterManagementAddOn and its cluster, if that is known.
#[must_use]
pub fn inherited(
    on_cluster: &ManagedClusterAddOn,
    addon: &ClusterManagementAddOn,
    cluster: Option<&ManagedCluster>,
) -> ManagedClusterAddOn {
    let mut wanted = on_cluster.clone();
    if let Some(owner) = owner(addon) {
        own(wanted.owner_references_mut(), &owner);
    }
    if let Some(cluster) = cluster.filter(|_| strategy(addon) != InstallStrategyType::Manual) {
        copy_annotations(wanted.annotations_mut(), cluster.annotations());
    }
    wanted
}

/// Brings the annotations that are copied from a cluster up to date. What a user has set himself stays as it is.
pub(super) fn copy_annotations(annotations: &mut BTreeMap<String, String>, cluster: &BTreeMap<String, String>) {
    let listed = annotations.get(COPIED_ANNOTATIONS_ANNOTATION).cloned().unwrap_or_default();
    let before: BTreeSet<_> = listed.split(',').filter(|key| is_copied(key)).collect();
    annotations.retain(|key, _| !before.contains(key.as_str()));
    let mut copied = Vec::new();
    for (key, value) in cluster.iter().filter(|(key, _)| is_copied(key)) {
        if !annotations.contains_key(key) {
            annotations.insert(key.clone(), value.clone());
            copied.push(key.as_str());
        }
    }
    if copied.is_empty() {
        annotations.remove(COPIED_ANNOTATIONS_ANNOTATION);
    } else {
        annotations.insert(COPIED_ANNOTATIONS_ANNOTATION.to_owned(), copied.join(","));
    }
}

fn is_copied(key: &str) -> bool {
    key.starts_with(ADDON_ANNOTATION_PREFIX)
}

/// Whether two states of a cluster have the same to pass on to their add-ons.
#[must_use]
pub fn passes_on_the_same(one: &ManagedCluster, other: &ManagedCluster) -> bool {
    let copied = |cluster: &ManagedCluster| -> Vec<_> {
        let annotations = cluster.annotations().iter().filter(|(key, _)| is_copied(key));
        annotations.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    copied(one) == copied(other)
}

#[cfg(test)]
mod tests {
    use drover_api::{
        addon::{ClusterManagementAddOnSpec, InstallStrategy, ManagedClusterAddOnSpec},
        cluster::ManagedClusterSpec,
    };

    use super::*;

    fn addon(kind: InstallStrategyType) -> ClusterManagementAddOn {
        let install_strategy = Some(InstallStrategy { kind, ..InstallStrategy::default() });
        let spec = ClusterManagementAddOnSpec { install_strategy, ..ClusterManagementAddOnSpec::default() };
        let mut addon = ClusterManagementAddOn::new("hello", spec);
        addon.metadata.uid = Some("uid".to_owned());
        addon
    }

    fn cluster(annotations: &[(&str, &str)]) -> ManagedCluster {
        let mut cluster = ManagedCluster::new("one", ManagedClusterSpec::default());
        cluster.metadata.annotations = Some(texts(annotations));
        cluster
    }

    fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn on_cluster(annotations: &[(&str, &str)]) -> ManagedClusterAddOn {
        let mut on_cluster = ManagedClusterAddOn::new("hello", ManagedClusterAddOnSpec::default());
        on_cluster.metadata.annotations = Some(texts(annotations));
        on_cluster
    }

    /// The annotations of an add-on, brought up to date with those of its cluster.
    fn copied(addon: &[(&str, &str)], of_cluster: &[(&str, &str)]) -> BTreeMap<String, String> {
        let placed = self::addon(InstallStrategyType::Placements);
        inherited(&on_cluster(addon), &placed, Some(&cluster(of_cluster))).annotations().clone()
    }

    const A: &str = "addon.open-cluster-management.io/a";
    const B: &str = "addon.open-cluster-management.io/b";
    const COPIED: &str = COPIED_ANNOTATIONS_ANNOTATION;

    #[test]
    fn annotations_follow_the_cluster() {
        let first = copied(&[("own", "1")], &[(A, "1"), (B, "2"), ("other", "3")]);
        let both = format!("{A},{B}");
        assert_eq!(first, texts(&[("own", "1"), (A, "1"), (B, "2"), (COPIED, &both)]));
        let then = copied(&[("own", "1"), (A, "1"), (B, "2"), (COPIED, &both)], &[(A, "9")]);
        assert_eq!(then, texts(&[("own", "1"), (A, "9"), (COPIED, A)]));
        assert_eq!(copied(&[("own", "1"), (A, "9"), (COPIED, A)], &[]), texts(&[("own", "1")]));
    }

    #[test]
    fn what_a_user_has_set_stays() {
        let own = [(A, "mine")];
        assert_eq!(copied(&own, &[(A, "1")]), texts(&own), "it is not overwritten");
        assert_eq!(copied(&own, &[]), texts(&own), "it is not removed");
        assert_eq!(copied(&[(A, "mine"), (B, "1"), (COPIED, B)], &[(A, "1")]), texts(&own));
        // Nothing but copies is ever listed, so that nothing else is lost.
        assert_eq!(copied(&[("own", "1"), (COPIED, "own")], &[]), texts(&[("own", "1")]));
    }

    #[test]
    fn an_add_on_that_is_installed_by_hand_keeps_its_annotations() {
        let by_hand = addon(InstallStrategyType::Manual);
        let before = on_cluster(&[(A, "1"), (COPIED, A)]);
        let after = inherited(&before, &by_hand, Some(&cluster(&[(A, "2")])));
        assert_eq!(after.annotations(), before.annotations());
    }

    #[test]
    fn annotations_stay_while_the_cluster_is_not_known() {
        let before = on_cluster(&[(A, "1"), (COPIED, A)]);
        let after = inherited(&before, &addon(InstallStrategyType::Placements), None);
        assert_eq!(after.annotations(), before.annotations());
    }

    fn owners(of: Vec<OwnerReference>) -> Vec<OwnerReference> {
        let mut before = on_cluster(&[]);
        before.metadata.owner_references = Some(of);
        inherited(&before, &addon(InstallStrategyType::Manual), None).owner_references().to_vec()
    }

    fn reference(version: &str, uid: &str) -> OwnerReference {
        OwnerReference {
            api_version: format!("addon.open-cluster-management.io/{version}"),
            kind: "ClusterManagementAddOn".to_owned(),
            name: "hello".to_owned(),
            uid: uid.to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    #[test]
    fn an_add_on_is_owned_once_and_by_the_one_that_is_there() {
        let right = vec![reference("v1alpha1", "uid")];
        assert_eq!(owners(Vec::new()), right);
        assert_eq!(owners(right.clone()), right);
        assert_eq!(owners(vec![reference("v1alpha1", "former")]), right);
        let by_others = vec![reference("v1beta1", "uid")];
        assert_eq!(owners(by_others.clone()), by_others, "the version is of no consequence");
        let not_controlled = OwnerReference { controller: None, ..reference("v1beta1", "uid") };
        assert_eq!(owners(vec![not_controlled]), right);
    }

    #[test]
    fn somebody_elses_object_is_owned_and_not_controlled() {
        let theirs = OwnerReference { kind: "Theirs".to_owned(), ..reference("v1alpha1", "their-uid") };
        let ours = OwnerReference { controller: None, ..reference("v1alpha1", "uid") };
        let both = vec![theirs.clone(), ours];
        assert_eq!(owners(vec![theirs]), both);
        assert_eq!(owners(both.clone()), both);
    }

    #[test]
    fn an_add_on_is_managed_unless_somebody_else_says_that_he_does() {
        let with = |manager: Option<&str>| {
            let mut addon = addon(InstallStrategyType::Manual);
            addon.metadata.annotations = manager.map(|manager| texts(&[(LIFECYCLE_ANNOTATION, manager)]));
            is_managed(&addon)
        };
        assert_eq!([None, Some(MANAGED), Some("self"), Some("")].map(with), [true, true, false, false]);
    }
}
