//! Names, and what can be done with what they stand for.

use drover_apiserver::{
    catalog::{self, Kinds},
    kind::{Kind, Scope},
};
use drover_testkit::World;
use serde_json::{Value, json};

use super::{VERSION, get};

/// Parts of objects that need what Drover does not have: nodes that run pods.
const NOT_SERVED: [&str; 9] =
    ["attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize"];

pub(super) async fn the_catalog_has_what_a_server_lists(world: World) {
    let kinds = Kinds::new();
    let mut groups = Vec::new();
    for path in ["/api", "/apis"] {
        let listed = get(&world, path, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList").await;
        for group in listed["items"].as_array().expect("groups") {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            let (ours, theirs) = (resources(&kinds, name), served(group, &kinds));
            assert_eq!(ours, theirs, "the group {name:?}");
            groups.extend((!ours.is_empty()).then(|| name.to_owned()));
        }
    }
    assert_eq!(kinds.groups().iter().map(|group| group.name).collect::<Vec<_>>(), groups);
}

/// What the server lists of a group and Drover serves, too.
fn served(group: &Value, kinds: &Kinds) -> Vec<Value> {
    let name = group["metadata"]["name"].as_str().unwrap_or_default();
    let version = group["versions"].as_array().expect("versions").iter().find(|it| it["version"] == VERSION);
    let resources = version.and_then(|version| version["resources"].as_array()).into_iter().flatten().cloned();
    let known = |resource: &Value| kinds.get(name, VERSION, resource["resource"].as_str().expect("text")).is_some();
    resources.filter(known).map(without_what_is_not_served).collect()
}

fn without_what_is_not_served(mut resource: Value) -> Value {
    let fields = resource.as_object_mut().expect("a resource is an object");
    if let Some(subresources) = fields.get_mut("subresources").and_then(Value::as_array_mut) {
        subresources.retain(|it| !NOT_SERVED.contains(&it["subresource"].as_str().expect("text")));
        if subresources.is_empty() {
            fields.remove("subresources");
        }
    }
    resource
}

fn resources(kinds: &Kinds, group: &str) -> Vec<Value> {
    kinds.iter().filter(|kind| kind.group == group).map(|kind| resource(kind)).collect()
}

fn resource(kind: &Kind) -> Value {
    let version = kind.version(VERSION).expect("built-in kinds have this version");
    let mut resource = json!({
        "resource": kind.plural,
        "singularResource": kind.singular,
        "responseKind": { "group": "", "version": "", "kind": kind.kind },
        "scope": match kind.scope { Scope::Namespaced => "Namespaced", Scope::Cluster => "Cluster" },
        "verbs": catalog::verbs(kind),
        "shortNames": kind.short_names,
        "categories": kind.categories,
        "subresources": catalog::subresources(kind, version).iter().map(subresource).collect::<Vec<_>>(),
    });
    let fields = resource.as_object_mut().expect("it was just made");
    fields.retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
    resource
}

fn subresource(it: &catalog::Subresource<'_>) -> Value {
    let kind = json!({ "group": it.group, "version": it.version, "kind": it.kind });
    json!({ "subresource": it.name, "responseKind": kind, "verbs": it.verbs })
}
