//! The order in which objects are applied, and removed.
//!
//! What others need comes first: namespaces and definitions, roles, accounts, settings, services, workloads, and what judges requests at the end, lest it refuse the
//! rest. OCM applies in this order and removes in none; here the order of removal is the reverse, so that what cleans up after itself has what it needs to do so.

use std::cmp::Reverse;

use drover_api::work::AppliedResource;

use super::manifest::Manifest;

/// The rank of kinds that nothing is known about.
const UNLISTED: usize = 1000;
/// The rank of what is no manifest.
const UNREADABLE: usize = 1001;

/// The kinds of each rank, with their resources.
const RANKS: [&[(&str, &str)]; 7] = [
    &[
        ("PriorityClass", "priorityclasses"),
        ("Namespace", "namespaces"),
        ("CustomResourceDefinition", "customresourcedefinitions"),
        ("StorageClass", "storageclasses"),
        ("PersistentVolume", "persistentvolumes"),
        ("PodSecurityPolicy", "podsecuritypolicies"),
    ],
    &[
        ("ClusterRole", "clusterroles"),
        ("ClusterRoleBinding", "clusterrolebindings"),
        ("Role", "roles"),
        ("RoleBinding", "rolebindings"),
    ],
    &[
        ("NetworkPolicy", "networkpolicies"),
        ("ResourceQuota", "resourcequotas"),
        ("LimitRange", "limitranges"),
        ("PodDisruptionBudget", "poddisruptionbudgets"),
        ("ServiceAccount", "serviceaccounts"),
    ],
    &[("Secret", "secrets"), ("ConfigMap", "configmaps"), ("PersistentVolumeClaim", "persistentvolumeclaims")],
    &[("Service", "services")],
    &[
        ("DaemonSet", "daemonsets"),
        ("Pod", "pods"),
        ("ReplicationController", "replicationcontrollers"),
        ("ReplicaSet", "replicasets"),
        ("Deployment", "deployments"),
        ("HorizontalPodAutoscaler", "horizontalpodautoscalers"),
        ("StatefulSet", "statefulsets"),
        ("Job", "jobs"),
        ("CronJob", "cronjobs"),
    ],
    &[
        ("APIService", "apiservices"),
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    ],
];

/// Brings things into the order in which their manifests are applied. Equals stay as they are; what is no manifest comes last.
pub fn apply_order<T>(items: &mut [T], manifest: impl Fn(&T) -> Option<&Manifest>) {
    items.sort_by_key(|item| manifest(item).map_or(UNREADABLE, |manifest| rank(|(kind, _)| *kind == manifest.kind)));
}

/// Brings what was applied into the order in which it is removed.
pub(super) fn removal_order(resources: &mut [AppliedResource]) {
    resources.sort_by_key(|applied| Reverse(rank(|(_, resource)| *resource == applied.resource)));
}

/// What of what was applied is removed first: all that stands last in the order in which things are applied. The rest follows when these are gone, because they may
/// need it to go.
#[must_use]
pub fn removal_turn(resources: &[AppliedResource]) -> Vec<AppliedResource> {
    let rank_of = |applied: &AppliedResource| rank(|(_, resource)| *resource == applied.resource);
    let last = resources.iter().map(rank_of).max();
    resources.iter().filter(|applied| Some(rank_of(applied)) == last).cloned().collect()
}

fn rank(is_it: impl Fn(&(&str, &str)) -> bool) -> usize {
    RANKS.iter().position(|kinds| kinds.iter().any(&is_it)).unwrap_or(UNLISTED)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kinds_in_order(kinds: &[&str]) -> Vec<String> {
        let read = |(ordinal, kind): (usize, &&str)| {
            let object = json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": "a" } });
            Manifest::read(ordinal, &object).ok()
        };
        let mut manifests: Vec<_> = kinds.iter().enumerate().map(read).collect();
        apply_order(&mut manifests, Option::as_ref);
        manifests.iter().map(|it| it.as_ref().map_or_else(String::new, |it| it.kind.clone())).collect()
    }

    #[test]
    fn what_others_need_is_applied_first_and_what_is_unreadable_last() {
        let kinds =
            ["", "Gadget", "APIService", "Deployment", "Service", "ConfigMap", "ServiceAccount", "Role", "Namespace"];
        let mut expected = kinds;
        expected.reverse();
        // What has no known rank comes after all that has, and what can not be read after that.
        expected[7..].copy_from_slice(&["Gadget", ""]);
        expected[..7].copy_from_slice(&[
            "Namespace",
            "Role",
            "ServiceAccount",
            "ConfigMap",
            "Service",
            "Deployment",
            "APIService",
        ]);
        assert_eq!(kinds_in_order(&kinds), expected);
    }

    #[test]
    fn equals_stay_in_the_order_of_the_work() {
        assert_eq!(kinds_in_order(&["Secret", "ConfigMap", "Secret"]), ["Secret", "ConfigMap", "Secret"]);
    }

    #[test]
    fn what_was_applied_last_goes_before_anything_else_does() {
        let applied = |resource: &str, name: &str| AppliedResource {
            version: "v1".to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            ..AppliedResource::default()
        };
        let definition = applied("customresourcedefinitions", "gadgets");
        let (one, two) = (applied("gadgets", "one"), applied("gadgets", "two"));
        let operator = applied("deployments", "operator");
        let all = [definition.clone(), one.clone(), operator.clone(), two.clone()];
        assert_eq!(removal_turn(&all), [one, two]);
        assert_eq!(removal_turn(&[definition.clone(), operator.clone()]), [operator]);
        assert_eq!(removal_turn(std::slice::from_ref(&definition)), [definition]);
        assert_eq!(removal_turn(&[]), []);
    }

    #[test]
    fn removal_goes_the_other_way() {
        let applied = |resource: &str| AppliedResource { resource: resource.into(), ..Default::default() };
        let mut resources = ["namespaces", "deployments", "gadgets", "secrets"].map(applied);
        removal_order(&mut resources);
        let names: Vec<_> = resources.iter().map(|applied| applied.resource.as_str()).collect();
        assert_eq!(names, ["gadgets", "deployments", "secrets", "namespaces"]);
    }
}
