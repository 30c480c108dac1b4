//! Names, and what can be done with what they stand for.

use drover_apiserver::{
    catalog::Kinds,
    discovery::{Root, aggregated},
};
use drover_testkit::World;
use serde_json::Value;

use super::{VERSION, get};

/// Parts of objects that need what Drover does not have: nodes that run pods.
const NOT_SERVED: [&str; 9] =
    ["attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize"];

pub(super) async fn the_catalog_has_what_a_server_lists(world: World) {
    let kinds = Kinds::new();
    let all: Vec<_> = kinds.iter().cloned().collect();
    for (path, root) in [("/api", Root::Core), ("/apis", Root::Groups)] {
        let listed = get(&world, path, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList").await;
        let theirs = listed["items"].as_array().expect("groups").iter();
        let theirs: Vec<_> = theirs.map(|group| served(group, &kinds)).filter(|group| !group.is_empty()).collect();
        let ours = aggregated(&all, root);
        let ours = ours["items"].as_array().expect("groups").iter().map(|group| served(group, &kinds));
        assert_eq!(ours.collect::<Vec<_>>(), theirs, "{path}");
    }
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
