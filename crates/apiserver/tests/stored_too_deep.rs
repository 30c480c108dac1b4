//! Objects that exceed the limit of depth, stored by an earlier release: they are listed, changed
//! and deleted like all others.

use std::{path::Path, sync::Arc};

use drover_apiserver::{ApiServer, Options, RandomIds, depth::MAX_DEPTH, pki::Hosts, user::User};
use drover_runtime::clock::Clock;
use futures_util::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _};
use http::Request;
use kube::Client;
use redb::{ReadableDatabase as _, ReadableTable as _, TableDefinition};
use serde_json::{Value, json};
use tempfile::TempDir;

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const MERGE: &str = "application/merge-patch+json";
const OPERATIONS: &str = "application/json-patch+json";

/// A server with its data, and a client of its administrator.
struct World {
    server: ApiServer,
    client: Client,
    data: TempDir,
}

impl World {
    async fn new() -> Self {
        let world = Self::open(tempfile::tempdir().expect("there is room for files")).await;
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let version = json!({ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } });
        let names = json!({ "plural": "widgets", "kind": "Widget" });
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "widgets.example.com" },
            "spec": { "group": "example.com", "scope": "Namespaced", "names": names, "versions": [version] },
        });
        world
            .ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", &crd)
            .await
            .expect("it can be created");
        world
    }

    async fn open(data: TempDir) -> Self {
        let options = Options {
            data: Some(data.path().to_owned()),
            hosts: Hosts::default(),
            clock: Clock::system(),
            ids: Arc::new(RandomIds::default()),
        };
        let server = ApiServer::start(options).await.expect("the server starts");
        let admin = User { name: "admin".to_owned(), groups: vec!["system:masters".to_owned()], ..User::default() };
        Self { client: server.client(admin), server, data }
    }

    /// Stops the server, stores an object as an earlier release has, and starts it again.
    async fn with_stored(self, resource: &str, position: &str, object: &str) -> Self {
        let Self { server, client, data } = self;
        drop(client);
        server.stop().await;
        store(data.path(), resource, position, object);
        Self::open(data).await
    }

    /// The same, with a widget of so many levels, and one that nests normally beside it.
    async fn with_widget(self, name: &str, levels: usize, metadata: &Value) -> Self {
        let normal = json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "normal" } });
        self.ask("POST", WIDGETS, "", &normal).await.expect("it can be created");
        let object = widget(name, levels, metadata);
        self.with_stored("widgets.example.com", &format!("default/{name}"), &object).await
    }

    /// The text of an answer, or the code of a failure.
    async fn ask(&self, method: &str, path: &str, media_type: &str, body: &Value) -> Result<String, u16> {
        let media_type = if media_type.is_empty() { "application/json" } else { media_type };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("content-type", media_type).body(body);
        match self.client.request_text(request.expect("a valid request")).await {
            Ok(text) => Ok(text),
            Err(kube::Error::Api(status)) => Err(status.code),
            Err(other) => panic!("{method} {path}: {other}"),
        }
    }

    async fn get(&self, path: &str) -> Result<String, u16> {
        self.ask("GET", path, "", &Value::Null).await
    }

    async fn delete(&self, path: &str) -> Result<String, u16> {
        self.ask("DELETE", path, "", &Value::Null).await
    }

    /// The names of all widgets, as a client with the usual limit reads them.
    async fn names(&self) -> Vec<String> {
        let list: Value =
            serde_json::from_str(&self.get(WIDGETS).await.expect("they can be listed")).expect("a list can be read");
        let items = list["items"].as_array().expect("a list has items");
        items.iter().map(|item| item["metadata"]["name"].as_str().expect("an object has a name").to_owned()).collect()
    }

    /// Waits until nothing is at a path any more.
    async fn until_gone(&self, list: &str, name: &str) {
        let path = format!("{list}?watch=true&fieldSelector=metadata.name%3D{name}");
        let request = Request::builder().uri(path).body(Vec::new()).expect("a valid request");
        let mut events = self.client.request_stream(request).await.expect("they can be watched").lines();
        while self.get(&format!("{list}/{name}")).await.is_ok() {
            events.try_next().await.expect("the watch goes on").expect("the watch goes on");
        }
    }
}

/// A row of the file: the revision, where the labels are and how long they are, and the object.
type Row<'a> = (u64, u32, u32, &'a [u8]);

/// Writes an object into the file of a store, as a release without a limit has.
fn store(data: &Path, resource: &str, position: &str, object: &str) {
    const OBJECTS: TableDefinition<'_, (&str, &str), Row<'_>> = TableDefinition::new("objects");
    const RESOURCES: TableDefinition<'_, &str, u64> = TableDefinition::new("resources");
    let database = redb::Database::open(data.join("store.redb")).expect("the file of a store");
    let read = database.begin_read().expect("the file of a store");
    let revisions = read.open_table(RESOURCES).expect("the file of a store");
    let revision = revisions
        .iter()
        .expect("the file of a store")
        .map(|entry| entry.expect("the file of a store").1.value())
        .max()
        .expect("the file of a store")
        + 1;
    let object = object.replace("REVISION", &revision.to_string());
    let write = database.begin_write().expect("the file of a store");
    write
        .open_table(OBJECTS)
        .expect("the file of a store")
        .insert((resource, position), (revision, 0, 0, object.as_bytes()))
        .expect("the file of a store");
    write.open_table(RESOURCES).expect("the file of a store").insert(resource, revision).expect("the file of a store");
    write.commit().expect("the file of a store");
}

/// What is stored of a widget of so many levels. It is never a value: dropping that would recurse.
fn widget(name: &str, levels: usize, metadata: &Value) -> String {
    let mut metadata = metadata.clone();
    let fields = [
        ("name", name),
        ("namespace", "default"),
        ("resourceVersion", "REVISION"),
        ("uid", name),
        ("creationTimestamp", "2026-01-01T00:00:00Z"),
    ];
    for (field, value) in fields {
        metadata[field] = value.into();
    }
    format!(r#"{{"metadata":{metadata},"small":{{"a":1}},"spec":{}}}"#, nested(levels - 1))
}

fn nested(levels: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
}

#[tokio::test]
async fn others_are_listed_and_watched_beside_an_object_that_is_too_deep() {
    for levels in [MAX_DEPTH + 1, 200, 8000] {
        let world = World::new().await.with_widget("deep", levels, &json!({})).await;
        assert_eq!(world.names().await, ["deep", "normal"]);
        // By itself it is answered as it is.
        let whole = world.get(&format!("{WIDGETS}/deep")).await.unwrap();
        assert!(whole.contains(&nested(levels - 1)));
        for accept in ["application/json;as=Table;v=v1;g=meta.k8s.io", "application/yaml"] {
            for path in [WIDGETS.to_owned(), format!("{WIDGETS}/deep")] {
                let request = Request::builder().uri(path).header("accept", accept).body(Vec::new()).unwrap();
                assert!(world.client.request_text(request).await.unwrap().contains("deep"));
            }
        }
        let request = Request::builder().uri(format!("{WIDGETS}?watch=true")).body(Vec::new()).unwrap();
        let events = world.client.request_stream(request).await.unwrap().lines().take(2);
        let events: Vec<Value> =
            events.map(|line| serde_json::from_str(&line.unwrap()).expect("an event can be read")).collect().await;
        assert_eq!(events[0]["object"]["metadata"]["name"], "deep");
        assert_eq!(events[1]["object"]["metadata"]["name"], "normal");
        world.delete(&format!("{WIDGETS}/deep")).await.unwrap();
        assert_eq!(world.names().await, ["normal"]);
        world.server.stop().await;
    }
}

#[tokio::test]
async fn changes_elsewhere_keep_what_is_too_deep() {
    let world = World::new().await.with_widget("deep", 200, &json!({})).await;
    let path = format!("{WIDGETS}/deep");
    let labels = json!({ "metadata": { "labels": { "a": "b" } }, "small": { "b": 2 } });
    world.ask("PATCH", &path, MERGE, &labels).await.unwrap();
    let operations = json!([{ "op": "add", "path": "/spec/b", "value": [1] }]);
    world.ask("PATCH", &path, OPERATIONS, &operations).await.unwrap();
    // A client that has read it in a list puts it back.
    let list: Value = serde_json::from_str(&world.get(WIDGETS).await.unwrap()).unwrap();
    let mut listed = list["items"][0].clone();
    listed["small"]["c"] = 3.into();
    world.ask("PUT", &path, "", &listed).await.unwrap();
    let whole = world.get(&path).await.unwrap();
    assert!(
        whole.contains(&format!(r#""small":{{"a":1,"b":2,"c":3}},"spec":{{"a":{},"b":[1]}}"#, nested(198))),
        "{whole}"
    );
    assert!(whole.contains(r#""labels":{"a":"b"}"#));
    let selected = world.get(&format!("{WIDGETS}?labelSelector=a%3Db")).await.unwrap();
    assert!(selected.contains(r#""name":"deep""#));

    // It stays so over a restart, and something else in its place is all that there is.
    let World { server, client, data } = world;
    drop(client);
    server.stop().await;
    let world = World::open(data).await;
    assert_eq!(world.get(&path).await.unwrap(), whole);
    world.ask("PATCH", &path, MERGE, &json!({ "spec": { "a": null } })).await.unwrap();
    let healed: Value = serde_json::from_str(&world.get(&path).await.unwrap()).expect("it can be read");
    assert_eq!(healed["spec"], json!({ "b": [1] }));
    world.server.stop().await;
}

#[tokio::test]
async fn item_that_is_removed_leaves_its_content_to_no_other_item() {
    let data = |value: u32| nested(150).replace('1', &value.to_string());
    let items = format!(r#"[{{"data":{},"name":"a"}},{{"data":{},"name":"b"}}]"#, data(1), data(2));
    let stored = widget("deep", 2, &json!({})).replace(r#""small":{"a":1}"#, &format!(r#""items":{items}"#));
    let world = World::new().await.with_stored("widgets.example.com", "default/deep", &stored).await;
    let path = format!("{WIDGETS}/deep");
    let operations = json!([{ "op": "remove", "path": "/items/0" }]);
    world.ask("PATCH", &path, OPERATIONS, &operations).await.unwrap();
    let whole = world.get(&path).await.unwrap();
    assert!(whole.contains(&format!(r#""items":[{{"data":{},"name":"b"}}]"#, data(2))), "{whole}");
    world.server.stop().await;
}

#[tokio::test]
async fn what_is_too_deep_is_deleted_with_finalizers_and_dependents() {
    let metadata = json!({ "finalizers": ["example.com/one", "example.com/two"] });
    let world = World::new().await.with_widget("deep", 200, &metadata).await;
    let path = format!("{WIDGETS}/deep");
    world.delete(&path).await.unwrap();
    assert!(world.get(&path).await.unwrap().contains("deletionTimestamp"));
    let operations = json!([
        { "op": "test", "path": "/metadata/finalizers/0", "value": "example.com/one" },
        { "op": "remove", "path": "/metadata/finalizers/0" },
    ]);
    world.ask("PATCH", &path, OPERATIONS, &operations).await.unwrap();
    assert!(world.get(&path).await.unwrap().contains(&nested(199)));
    world.ask("PATCH", &path, MERGE, &json!({ "metadata": { "finalizers": null } })).await.unwrap();
    assert_eq!(world.get(&path).await, Err(404));

    for policy in ["Background", "Foreground", "Orphan"] {
        let dependent = json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": { "name": "dependent", "ownerReferences": [
                { "apiVersion": "example.com/v1", "kind": "Widget", "name": "owner", "uid": "owner", "blockOwnerDeletion": true },
            ] },
        });
        let stored = widget("owner", 200, &json!({}));
        let position = "default/owner";
        let world = World::new().await.with_stored("widgets.example.com", position, &stored).await;
        world.ask("POST", WIDGETS, "", &dependent).await.unwrap();
        world.delete(&format!("{WIDGETS}/owner?propagationPolicy={policy}")).await.unwrap();
        world.until_gone(WIDGETS, "owner").await;
        if policy == "Orphan" {
            assert_eq!(world.names().await, ["dependent"]);
        } else {
            world.until_gone(WIDGETS, "dependent").await;
        }
        world.server.stop().await;
    }
}

#[tokio::test]
async fn what_is_too_deep_is_collected_when_its_owner_goes() {
    let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "gone" });
    let world = World::new().await.with_widget("deep", 200, &json!({ "ownerReferences": [owner] })).await;
    // It has no owner since before the server started.
    world.until_gone(WIDGETS, "deep").await;
    assert_eq!(world.names().await, ["normal"]);
    world.server.stop().await;
}

#[tokio::test]
async fn what_is_too_deep_goes_with_the_collection_the_namespace_and_the_kind() {
    let world = World::new().await.with_widget("deep", 200, &json!({})).await;
    world.delete(WIDGETS).await.unwrap();
    assert!(world.names().await.is_empty());

    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "other" } });
    world.ask("POST", "/api/v1/namespaces", "", &namespace).await.unwrap();
    let stored = widget("deep", 8000, &json!({})).replace(r#""namespace":"default""#, r#""namespace":"other""#);
    let world = world.with_stored("widgets.example.com", "other/deep", &stored).await;
    world.delete("/api/v1/namespaces/other").await.unwrap();
    world.until_gone("/api/v1/namespaces", "other").await;

    let world = world.with_widget("deep", 200, &json!({ "finalizers": [] })).await;
    world.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com").await.unwrap();
    world.until_gone("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "widgets.example.com").await;
    world.server.stop().await;
}

/// The server itself reads some kinds when it starts: a role, a policy and a definition that are
/// too deep are still in force.
#[tokio::test]
async fn what_is_too_deep_is_still_in_force() {
    let deep = nested(200);
    let role = format!(
        r#"{{"deep":{deep},"metadata":{{"name":"reader","resourceVersion":"REVISION","uid":"r"}},"rules":[{{"apiGroups":[""],"resources":["configmaps"],"verbs":["list"]}}]}}"#
    );
    let world = World::new().await.with_stored("clusterroles.rbac.authorization.k8s.io", "reader", &role).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "reader" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane" }],
    });
    world.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "", &binding).await.unwrap();
    let jane = world.server.client(User { name: "jane".to_owned(), ..User::default() });
    let request = Request::builder().uri("/api/v1/configmaps").body(Vec::new()).unwrap();
    jane.request_text(request).await.expect("the role is in force");
    world.server.stop().await;
}
