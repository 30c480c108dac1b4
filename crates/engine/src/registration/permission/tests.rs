//! Which bindings there are, and whose they are.

use std::collections::BTreeSet;

use drover_api::addon::{ManagedClusterAddOnSpec, ManagedClusterAddOnStatus};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::{cluster::access, condition};

fn on(cluster: &str) -> ManagedClusterAddOn {
    let mut addon = ManagedClusterAddOn::new("hello", ManagedClusterAddOnSpec::default());
    addon.metadata.namespace = Some(cluster.to_owned());
    addon.metadata.uid = Some("uid".to_owned());
    addon
}

fn registration(permissions: &Value) -> Vec<RegistrationSpec> {
    let spec = json!([{ "type": "KubeClient", "kubeClient": { "hubPermissions": permissions } }]);
    serde_json::from_value(spec).expect("a registration")
}

fn role(kind: &str, name: &str) -> Value {
    json!({ "apiGroup": RBAC, "kind": kind, "name": name })
}

/// What the specification's example asks for, in one spelling and in the other.
fn spellings() -> [Value; 2] {
    let single = json!({ "namespace": "shared" });
    [
        json!([
            { "type": "CurrentCluster", "currentCluster": { "clusterRoleName": "cm-admin" } },
            { "type": "SingleNamespace", "singleNamespace": { "namespace": "shared", "roleRef": role("Role", "cm-reader") } },
        ]),
        json!([
            { "type": "CurrentCluster", "roleRef": role("ClusterRole", "cm-admin") },
            { "type": "SingleNamespace", "roleRef": role("Role", "cm-reader"), "singleNamespace": single },
        ]),
    ]
}

#[test]
fn each_permission_is_a_binding_in_either_spelling() {
    for spelling in spellings() {
        let [own, shared] = &bindings(&on("one"), &registration(&spelling))[..] else { panic!("two bindings") };
        assert_eq!(own.name_any(), "open-cluster-management:hello:one:clusterrole:cm-admin");
        assert_eq!((own.namespace().as_deref(), &*own.role_ref.kind), (Some("one"), "ClusterRole"));
        assert_eq!(own.metadata.owner_references.as_ref().expect("it is owned")[0].uid, "uid");
        assert_eq!(shared.name_any(), "open-cluster-management:hello:one:role:cm-reader");
        assert_eq!((shared.namespace().as_deref(), &*shared.role_ref.kind), (Some("shared"), "Role"));
        assert_eq!(shared.metadata.owner_references, None, "its owner would be in another namespace");
        for binding in [own, shared] {
            let labels = json!({ ADDON_NAME_LABEL: "hello", CLUSTER_NAME_LABEL: "one", TEMPLATE_BINDING_LABEL: "" });
            assert_eq!(json!(binding.metadata.labels), labels);
            let group = json!([{ "apiGroup": RBAC, "kind": "Group", "name": "system:open-cluster-management:cluster:one:addon:hello" }]);
            assert_eq!(json!(binding.subjects), group);
        }
    }
}

#[test]
fn no_two_clusters_share_a_binding_and_what_is_named_twice_is_one() {
    let specs =
        registration(&Value::Array(spellings().iter().filter_map(|list| list.as_array().cloned()).flatten().collect()));
    let all: Vec<_> = ["one", "two"].iter().flat_map(|cluster| bindings(&on(cluster), &specs)).collect();
    let places: BTreeSet<_> = all.iter().map(|binding| (binding.namespace(), binding.name_any())).collect();
    assert_eq!((all.len(), places.len()), (4, 4));
}

#[test]
fn two_roles_in_one_namespace_are_two_bindings() {
    let permission = |kind, name| json!({ "type": "CurrentCluster", "roleRef": role(kind, name) });
    let specs =
        registration(&json!([permission("ClusterRole", "a"), permission("ClusterRole", "b"), permission("Role", "a")]));
    assert_eq!(bindings(&on("one"), &specs).len(), 3);
}

#[test]
fn an_agent_with_tokens_is_known_by_its_account() {
    let mut addon = on("one");
    let status = json!({ "registrations": [{ "type": "kubeClient", "kubeClient": { "driver": "token",
        "subject": { "user": "system:admin", "groups": ["system:masters"] } } }] });
    addon.status = Some(serde_json::from_value::<ManagedClusterAddOnStatus>(status).expect("a status"));
    let [spelling, _] = spellings();
    let subjects = bindings(&addon, &registration(&spelling)).swap_remove(0).subjects.expect("it is bound");
    let names: Vec<_> = subjects.iter().map(|subject| (&*subject.kind, &*subject.name)).collect();
    assert_eq!(names, [("Group", &*identity::group(&"one".into(), "hello")), ("ServiceAccount", "hello-agent")]);
    assert_eq!(subjects[1].namespace.as_deref(), Some("one"));
}

#[test]
fn names_lead_back_to_the_add_on() {
    let permission = json!({ "type": "CurrentCluster", "currentCluster": { "clusterRoleName": "team:a:reader" } });
    for binding in bindings(&on("one"), &registration(&json!([permission]))) {
        assert_eq!(addon_of(&binding.name_any()), Some(("one".into(), "hello".to_owned())));
    }
    for part in access::Part::ALL {
        assert_eq!(addon_of(&access::binding_name(&"one".into(), part)), None);
    }
    for other in [
        "open-cluster-management:hello:clusterrole:agent",
        "open-cluster-management:hello:one:role:",
        "hello-token-role",
    ] {
        assert_eq!(addon_of(other), None, "{other}");
    }
}

#[test]
fn no_template_names_the_roles_of_the_hub_or_of_clusters_agents() {
    for name in [
        "drover-hub",
        "drover-hub-addon-tokens",
        "open-cluster-management:managedcluster:work",
        "open-cluster-management:managedcluster:one",
    ] {
        let [single, current] = ["Role", "ClusterRole"].map(|kind| role(kind, name));
        for permission in [
            json!({ "type": "CurrentCluster", "currentCluster": { "clusterRoleName": name } }),
            json!({ "type": "CurrentCluster", "roleRef": current }),
            json!({ "type": "SingleNamespace", "singleNamespace": { "namespace": "shared", "roleRef": single } }),
        ] {
            let well = json!({ "type": "CurrentCluster", "roleRef": role("ClusterRole", "cm-admin") });
            let specs = registration(&json!([well, permission]));
            assert_eq!(identity::check(&specs), Err(identity::Misconfigured::ReservedRole(name.to_owned())));
            let bound = bindings(&on("one"), &specs);
            assert_eq!(bound.iter().map(|binding| &*binding.role_ref.name).collect::<Vec<_>>(), ["cm-admin"], "{name}");
        }
    }
    for name in ["hub", "drover", "open-cluster-management:managedclusters", "open-cluster-management:cm-admin"] {
        let specs = registration(&json!([{ "type": "CurrentCluster", "roleRef": role("ClusterRole", name) }]));
        assert_eq!((identity::check(&specs), bindings(&on("one"), &specs).len()), (Ok(()), 1), "{name}");
    }
}

#[test]
fn what_needs_no_permission_has_none() {
    assert_eq!(bindings(&on("one"), &[]), []);
    assert_eq!(bindings(&on("one"), &registration(&json!([]))), []);
    let of_custom = json!([{ "type": "CustomSigner", "kubeClient": { "hubPermissions": spellings()[0] } }]);
    assert_eq!(bindings(&on("one"), &serde_json::from_value::<Vec<_>>(of_custom).expect("a registration")), []);
}

#[test]
fn it_is_said_in_ocms_words() {
    let said = |registered: Registered<'_>| {
        let condition = condition::with(Vec::new(), registered.says(), Timestamp::UNIX_EPOCH).swap_remove(0);
        (condition.status, condition.reason, condition.message)
    };
    let words = |status: &str, reason: &str, message: &str| (status.to_owned(), reason.to_owned(), message.to_owned());
    let configured = "Registration of the addon agent is configured";
    assert_eq!(said(Registered::NotNeeded), words("True", "NilRegistration", configured));
    assert_eq!(said(Registered::Applied), words("True", "SetPermissionApplied", configured));
    assert_eq!(said(Registered::Failed("why")), words("False", "SetPermissionFailed", "why"));
    assert_eq!(said(Registered::Pending), words("False", "PermissionConfigPending", "registration subject not ready"));
}
