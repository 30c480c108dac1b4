//! Objects as protobuf.

use std::{fs, process::Command};

use drover_apiserver::{
    kind::{Kind, Origin},
    protobuf,
};
use drover_testkit::{Server, World, golden};
use futures_util::AsyncReadExt;
use http::Request;
use serde_json::Value;

use super::{OTHERS, VERSION, get, group_path, kinds, lines};
use crate::documents::repository;

/// More objects than this of a kind tell nothing new.
const ENOUGH: usize = 10;

pub(super) async fn protobuf_is_read_as_the_server_writes_json(world: World) {
    let objects = fs::read(repository().join("crates/scenarios/tests/built-in-kinds.yaml")).expect("the file is there");
    world.kubectl_with_input(["create", "-f", "-"], &objects).await.success();
    for kind in kinds().iter().filter(|kind| kind.origin == Origin::BuiltIn) {
        let paths = paths(&world, kind).await;
        assert!(!paths.is_empty(), "add an object of kind {} to the file", kind.kind);
        for path in paths.into_iter().take(ENOUGH) {
            let json = get(&world, &path, "application/json").await;
            let read = protobuf::decode(&message(&world, &path).await).expect("it is protobuf");
            assert_eq!(read, json, "{path}");
        }
    }
}

/// Where the objects of a kind are.
async fn paths(world: &World, kind: &Kind) -> Vec<String> {
    let group = group_path(&kind.group);
    let list = get(world, &format!("/{group}/{}", kind.plural), "application/json").await;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let path = |item: &Value| {
        let name = item["metadata"]["name"].as_str().expect("an object has a name");
        let namespace = item["metadata"]["namespace"].as_str();
        let folder = namespace.map(|it| format!("namespaces/{it}/")).unwrap_or_default();
        format!("/{group}/{folder}{}/{name}", kind.plural)
    };
    items.iter().map(path).collect()
}

async fn message(world: &World, path: &str) -> Vec<u8> {
    let request = Request::get(path).header("Accept", "application/vnd.kubernetes.protobuf").body(Vec::new());
    let stream = world.client().request_stream(request.expect("a request")).await.expect("the server answers");
    let mut body = Vec::new();
    std::pin::pin!(stream).read_to_end(&mut body).await.expect("the server answers all of it");
    body
}

#[test]
fn the_tables_are_those_of_the_sources() {
    let mut command = Command::new(Server::program());
    let kinds = kinds();
    let names = kinds.iter().map(|kind| (kind.api_version(VERSION), kind.kind.as_str()));
    let others = OTHERS.into_iter().map(|(api_version, kind)| (api_version.to_owned(), kind));
    for (api_version, kind) in names.chain(others) {
        command.arg("--print-protobuf").arg(format!("{api_version}/{kind}"));
    }
    let output = command.output().expect("testenv can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed: Value = serde_json::from_slice(&output.stdout).expect("testenv prints JSON");
    let part = |name: &str| lines(printed[name].as_object().expect("an object").clone());
    let tables = format!("{{\"kinds\":{},\n\"messages\":{}}}\n", part("kinds"), part("messages"));
    golden::assert_matches("crates/apiserver/kinds/protobuf.json", &tables);
}
