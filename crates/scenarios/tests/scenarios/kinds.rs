//! The built-in kinds of Drover's own API, beside those of a real server. What is generated from the latter is written here:
//! with `DROVER_BLESS=1`, as for every file that a test compares with.

mod discovery;
mod openapi;
mod protobuf;

use drover_apiserver::{catalog, kind::Kind};
use drover_testkit::World;
use http::Request;
use serde_json::Value;

use self::{
    discovery::the_catalog_has_what_a_server_lists, openapi::a_server_has_the_same_openapi,
    protobuf::protobuf_is_read_as_the_server_writes_json,
};

drover_testkit::scenarios! { on kube
    Bare {
        the_catalog_has_what_a_server_lists,
        a_server_has_the_same_openapi,
        protobuf_is_read_as_the_server_writes_json,
    }
}

/// What is sent and answered beside the objects of kinds, as apiVersion and kind.
const OTHERS: [(&str, &str); 4] = [
    ("authentication.k8s.io/v1", "TokenRequest"),
    ("autoscaling/v1", "Scale"),
    ("v1", "DeleteOptions"),
    ("v1", "Status"),
];

/// The only version that built-in kinds have.
const VERSION: &str = "v1";

fn kinds() -> Vec<Kind> {
    catalog::built_in()
}

/// Where a group is served.
fn group_path(group: &str) -> String {
    if group.is_empty() { format!("api/{VERSION}") } else { format!("apis/{group}/{VERSION}") }
}

async fn get(world: &World, path: &str, accept: &str) -> Value {
    let request = Request::get(path).header("Accept", accept).body(Vec::new()).expect("a request");
    world.client().request(request).await.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// An object of JSON with every entry on a line of its own.
fn lines(entries: impl IntoIterator<Item = (String, Value)>) -> String {
    let lines = entries.into_iter().map(|(name, value)| format!("{}:{value}", Value::String(name)));
    format!("{{\n{}\n}}", lines.collect::<Vec<_>>().join(",\n"))
}
