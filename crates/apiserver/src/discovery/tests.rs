use std::sync::Arc;

use serde_json::{Value, json};

use super::{Root, aggregated, api_versions, group, group_list, resource_list};
use crate::{
    kind::{Kind, Origin, Scale, Scope, Subresources, Version},
    schema::Schema,
};

fn version(name: &str, subresources: Subresources) -> Version {
    Version {
        name: name.to_owned(),
        is_served: true,
        is_stored: true,
        deprecation: None,
        schema: Arc::new(Schema::default()),
        openapi: Arc::new(Value::Null),
        columns: Vec::new(),
        subresources,
        selectable_fields: Vec::new(),
    }
}

fn kind(group: &str, kind: &str, scope: Scope, origin: Origin, versions: Vec<Version>) -> Kind {
    let singular = kind.to_lowercase();
    Kind {
        group: group.to_owned(),
        plural: format!("{singular}s"),
        singular,
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope,
        versions,
        origin,
    }
}

fn status() -> Subresources {
    Subresources { status: true, ..Subresources::default() }
}

fn kinds() -> Vec<Arc<Kind>> {
    let none = Subresources::default;
    let scale = Scale { spec_replicas: String::new(), status_replicas: String::new(), label_selector: None };
    let mut namespace = kind(
        "",
        "Namespace",
        Scope::Cluster,
        Origin::BuiltIn,
        vec![version("v1", Subresources { others: vec!["finalize"], ..status() })],
    );
    namespace.short_names = vec!["ns".to_owned()];
    let account = Subresources { others: vec!["token"], ..none() };
    let mut thing = kind(
        "example.com",
        "Thing",
        Scope::Namespaced,
        Origin::Custom,
        vec![version("v1beta1", none()), version("v1", Subresources { scale: Some(scale), ..status() })],
    );
    thing.categories = vec!["all".to_owned()];
    let hidden = Version { is_served: false, ..version("v2", none()) };
    [
        namespace,
        kind("", "ServiceAccount", Scope::Namespaced, Origin::BuiltIn, vec![version("v1", account)]),
        kind("", "ConfigMap", Scope::Namespaced, Origin::BuiltIn, vec![version("v1", none())]),
        kind(
            "authorization.k8s.io",
            "SubjectAccessReview",
            Scope::Cluster,
            Origin::Review,
            vec![version("v1", none())],
        ),
        thing,
        kind("hidden.example.com", "Ghost", Scope::Cluster, Origin::Custom, vec![hidden]),
    ]
    .into_iter()
    .map(Arc::new)
    .collect()
}

const ALL: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const CUSTOM: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

#[test]
fn the_core_group_is_found_at_its_address() {
    assert_eq!(
        api_versions("10.0.0.1:6443"),
        json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "10.0.0.1:6443"}],
        })
    );
}

#[test]
fn groups_are_listed_with_their_versions_and_without_the_core_group() {
    let reviews = json!({"groupVersion": "authorization.k8s.io/v1", "version": "v1"});
    let (old, new) = (
        json!({"groupVersion": "example.com/v1beta1", "version": "v1beta1"}),
        json!({"groupVersion": "example.com/v1", "version": "v1"}),
    );
    assert_eq!(
        group_list(&kinds()),
        json!({
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [
                {"name": "authorization.k8s.io", "versions": [reviews], "preferredVersion": reviews},
                {"name": "example.com", "versions": [new, old], "preferredVersion": new},
            ],
        })
    );
    assert_eq!(
        group(&kinds(), "example.com"),
        Some(json!({
            "kind": "APIGroup", "apiVersion": "v1", "name": "example.com", "versions": [new, old], "preferredVersion": new,
        }))
    );
    assert_eq!(group(&kinds(), "hidden.example.com"), None);
    assert_eq!(group(&kinds(), ""), None);
}

#[test]
fn the_core_group_lists_its_kinds_and_their_parts() {
    assert_eq!(
        resource_list(&kinds(), "", "v1"),
        Some(json!({
            "kind": "APIResourceList",
            "groupVersion": "v1",
            "resources": [
                {"name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap", "verbs": ALL,
                 "storageVersionHash": "qFsyl6wFWjQ="},
                {"name": "namespaces", "singularName": "namespace", "namespaced": false, "kind": "Namespace",
                 "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"], "shortNames": ["ns"],
                 "storageVersionHash": "Q3oi5N2YM8M="},
                {"name": "namespaces/finalize", "singularName": "", "namespaced": false, "kind": "Namespace", "verbs": ["update"]},
                {"name": "namespaces/status", "singularName": "", "namespaced": false, "kind": "Namespace",
                 "verbs": ["get", "patch", "update"]},
                {"name": "serviceaccounts", "singularName": "serviceaccount", "namespaced": true, "kind": "ServiceAccount",
                 "verbs": ALL, "storageVersionHash": "pbx9ZvyFpBE="},
                {"name": "serviceaccounts/token", "singularName": "", "namespaced": true, "group": "authentication.k8s.io",
                 "version": "v1", "kind": "TokenRequest", "verbs": ["create"]},
            ],
        }))
    );
}

#[test]
fn other_groups_list_what_is_served_in_a_version() {
    assert_eq!(
        resource_list(&kinds(), "example.com", "v1"),
        Some(json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": "example.com/v1",
            "resources": [
                {"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": CUSTOM,
                 "categories": ["all"], "storageVersionHash": "r7WJZdPX2WA="},
                {"name": "things/status", "singularName": "", "namespaced": true, "kind": "Thing",
                 "verbs": ["get", "patch", "update"]},
                {"name": "things/scale", "singularName": "", "namespaced": true, "group": "autoscaling", "version": "v1",
                 "kind": "Scale", "verbs": ["get", "patch", "update"]},
            ],
        }))
    );
    assert_eq!(resource_list(&kinds(), "example.com", "v2"), None);
    assert_eq!(resource_list(&kinds(), "hidden.example.com", "v2"), None);
}

#[test]
fn everything_is_told_at_once() {
    let list = aggregated(&kinds(), Root::Groups);
    assert_eq!(list["kind"], "APIGroupDiscoveryList");
    assert_eq!(list["apiVersion"], "apidiscovery.k8s.io/v2");
    assert_eq!(
        list["items"][0],
        json!({
            "metadata": {"name": "authorization.k8s.io"},
            "versions": [{"version": "v1", "freshness": "Current", "resources": [{
                "resource": "subjectaccessreviews", "singularResource": "subjectaccessreview", "scope": "Cluster",
                "responseKind": {"group": "", "version": "", "kind": "SubjectAccessReview"}, "verbs": ["create"],
            }]}],
        })
    );
    let own = json!({"group": "example.com", "version": "v1", "kind": "Thing"});
    assert_eq!(
        list["items"][1]["versions"][0]["resources"][0],
        json!({
            "resource": "things", "singularResource": "thing", "scope": "Namespaced", "responseKind": own, "verbs": CUSTOM,
            "categories": ["all"],
            "subresources": [
                {"subresource": "status", "responseKind": own, "verbs": ["get", "patch", "update"]},
                {"subresource": "scale", "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                 "verbs": ["get", "patch", "update"]},
            ],
        })
    );
    assert_eq!(list["items"].as_array().map(Vec::len), Some(2));
    let core = aggregated(&kinds(), Root::Core);
    assert_eq!(core["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(core["items"][0]["metadata"], json!({}));
    assert_eq!(
        core["items"][0]["versions"][0]["resources"][2]["subresources"],
        json!([{
            "subresource": "token", "verbs": ["create"],
            "responseKind": {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"},
        }])
    );
}
