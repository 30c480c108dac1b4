//! The limit of depth of the embedded server: requests that exceed it are refused in every format
//! and for every identity, and the server stays up.
//!
//! The real server reads a hundred times as many levels, so these are about the embedded one alone.

use std::{io::BufRead as _, path::Path};

use drover_api::{cluster::ManagedCluster, work::ManifestWork};
use drover_testkit::{World, play::Agent, wait};
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::{
    Api, Client,
    api::{ListParams, ObjectMeta, PostParams},
};
use redb::{ReadableDatabase as _, ReadableTable as _, TableDefinition};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    embedded::{Process, client, folder},
    running::{as_hub, create, start},
};

/// The depths that are tried. The object itself is one level, and 100 are allowed.
const DEPTHS: [usize; 5] = [99, 101, 200, 8000, 1_000_000];
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";
const WORKS: &str = "/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks";

/// The code and the text of an answer.
async fn send(client: &Client, method: &str, path: &str, media_type: &str, body: Vec<u8>) -> (u16, String) {
    let request = Request::builder().method(method).uri(path).header("content-type", media_type);
    match client.request_text(request.body(body).expect("a valid request")).await {
        Ok(text) => (200, text),
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        Err(other) => panic!("{method} {path} is not answered: {other}"),
    }
}

/// A list of so many levels, as JSON.
fn lists(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

/// The same as YAML that is not JSON.
fn yaml_lists(levels: usize) -> String {
    format!("{}1", "- ".repeat(levels))
}

/// What is accepted and what is not, and that the server goes on.
struct Attempts {
    admin: Client,
    /// What is answered to what does not exceed the limit.
    within_limit: u16,
}

impl Attempts {
    async fn try_all(
        &self,
        client: &Client,
        what: &str,
        attempt: impl Fn(usize) -> (String, String, &'static str, Vec<u8>),
    ) {
        self.try_at(client, what, 100, attempt).await;
    }

    async fn try_at(
        &self,
        client: &Client,
        what: &str,
        limit: usize,
        attempt: impl Fn(usize) -> (String, String, &'static str, Vec<u8>),
    ) {
        for depth in DEPTHS {
            let (method, path, media_type, body) = attempt(depth);
            let (code, text) = send(client, &method, &path, media_type, body).await;
            if depth <= limit {
                assert_eq!(code, self.within_limit, "{what} of {depth} levels: {text}");
            } else {
                assert!([400, 422].contains(&code), "{what} of {depth} levels: {code} {text}");
                assert!(text.contains("exceeded max depth: objects nest at most 100 levels"), "{what}: {text}");
            }
            self.is_alive(what).await;
        }
    }

    /// Whether the code is always the same, whatever is sent.
    async fn is_always(
        &self,
        client: &Client,
        expected: u16,
        what: &str,
        attempt: impl Fn(usize) -> (String, String, &'static str, Vec<u8>),
    ) {
        for depth in DEPTHS {
            let (method, path, media_type, body) = attempt(depth);
            let (code, text) = send(client, &method, &path, media_type, body).await;
            assert_eq!(code, expected, "{what} of {depth} levels: {text}");
            self.is_alive(what).await;
        }
    }

    async fn is_alive(&self, after: &str) {
        let works = Api::<ManifestWork>::namespaced(self.admin.clone(), "c1");
        works.list(&ListParams::default()).await.unwrap_or_else(|error| panic!("after {after}: {error}"));
    }
}

fn work(data: &str) -> String {
    format!(
        r#"{{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{{"name":"work","namespace":"c1"}},"spec":{{"workload":{{"manifests":[{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{data}}}]}}}}}}"#
    )
}

/// How many levels are around the data of a manifest.
const AROUND: usize = 5;

fn yaml_work(levels: usize) -> String {
    format!(
        "apiVersion: work.open-cluster-management.io/v1\nkind: ManifestWork\nmetadata:\n  name: work\n  namespace: c1\nspec:\n  workload:\n    manifests:\n    - apiVersion: v1\n      kind: ConfigMap\n      metadata:\n        name: a\n      data:\n      {}\n",
        yaml_lists(levels)
    )
}

/// A field of a protobuf message.
fn field(number: usize, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    [&varint(number << 3 | 2)[..], &varint(content.len()), content].concat()
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).expect("seven bits");
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn protobuf(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let types = field(1, [field(1, api_version), field(2, kind)].concat());
    [b"k8s\0".to_vec(), types, field(2, message)].concat()
}

/// The metadata of a protobuf message, with who manages what in JSON of so many levels in all.
fn deep_metadata(generate_name: &str, levels: usize) -> Vec<u8> {
    let depth = levels.saturating_sub(4);
    // A body has three megabytes at most, which is enough for a million brackets.
    let objects = || format!("{}{{}}{}", r#"{"f:a":"#.repeat(depth - 1), "}".repeat(depth - 1));
    let fields = if depth > 100_000 { lists(depth) } else { objects() };
    let entry =
        [field(1, "manager"), field(2, "Update"), field(3, "v1"), field(6, "FieldsV1"), field(7, field(1, fields))];
    field(1, [field(2, generate_name), field(17, entry.concat())].concat())
}

/// An agent, with the certificate and the roles that the hub has given it.
#[tokio::test]
async fn agent_can_not_nest_deeper_than_the_limit() {
    let world = World::embedded().await;
    let hub_client = as_hub(&world).await;
    let hub = start(hub_client, None).await;
    let agent = Agent::join(&world, "c1").await.client();
    hub.stop().await;
    let admin = world.client();
    let made = send(&admin, "POST", WORKS, JSON, work("{}").into_bytes()).await;
    assert_eq!(made.0, 200, "{}", made.1);
    let path = format!("{WORKS}/work");
    let read = async || -> Value {
        let (code, text) = send(&admin, "GET", &path, JSON, Vec::new()).await;
        assert_eq!(code, 200, "{text}");
        serde_json::from_str(&text).expect("what is stored can be read")
    };

    // A policy keeps agents from changing specs of works; what is too deep is refused before.
    for (client, within_limit) in [(&agent, 403), (&admin, 200)] {
        let attempts = Attempts { admin: admin.clone(), within_limit };
        for (media_type, is_block) in [(JSON, false), (YAML, false), (YAML, true)] {
            let version = read().await["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
            let body = |levels| {
                let text = if is_block { yaml_work(levels) } else { work(&lists(levels)) };
                let (from, to) = if is_block {
                    ("  name: work\n".to_owned(), format!("  name: work\n  resourceVersion: \"{version}\"\n"))
                } else {
                    (r#""name":"work""#.to_owned(), format!(r#""name":"work","resourceVersion":"{version}""#))
                };
                text.replacen(&from, &to, 1)
            };
            attempts
                .try_all(client, media_type, |depth| {
                    let text = body(depth - AROUND);
                    ("PUT".to_owned(), path.clone(), media_type, text.into_bytes())
                })
                .await;
        }
        attempts
            .try_all(client, "a JSON patch", |depth| {
                let value = lists(depth - AROUND);
                let patch = format!(r#"[{{"op":"replace","path":"/spec/workload/manifests/0/data","value":{value}}}]"#);
                ("PATCH".to_owned(), path.clone(), JSON_PATCH, patch.into_bytes())
            })
            .await;
        attempts
            .try_all(client, "a JSON patch of many operations", |depth| {
                let mut patch =
                    vec![json!({ "op": "replace", "path": "/spec/workload/manifests/0/data", "value": [] })];
                // Levels beyond what is refused anyway would only make the patch longer.
                for level in 1..(depth - AROUND).min(500) {
                    let path = format!("/spec/workload/manifests/0/data{}", "/0".repeat(level));
                    patch.push(json!({ "op": "add", "path": path, "value": [] }));
                }
                ("PATCH".to_owned(), path.clone(), JSON_PATCH, json!(patch).to_string().into_bytes())
            })
            .await;
        attempts
            .try_all(client, "a merge patch", |depth| {
                ("PATCH".to_owned(), path.clone(), MERGE_PATCH, work(&lists(depth - AROUND)).into_bytes())
            })
            .await;
        attempts
            .try_all(client, "an apply patch", |depth| {
                let path = format!("{path}?fieldManager=agent&force=true");
                ("PATCH".to_owned(), path, APPLY_PATCH, yaml_work(depth - AROUND).into_bytes())
            })
            .await;
    }
    assert_eq!(read().await["kind"], "ManifestWork");

    let attempts = Attempts { admin: admin.clone(), within_limit: 200 };
    let events = "/api/v1/namespaces/c1/events";
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": "event" },
        "involvedObject": { "namespace": "c1" }, "reason": "Tried", "message": "m", "type": "Normal",
    });
    assert_eq!(send(&agent, "POST", events, JSON, event.to_string().into_bytes()).await.0, 200);
    attempts
        .try_all(&agent, "a strategic merge patch", |depth| {
            let patch = format!(r#"{{"unknown":{}}}"#, lists(depth - 1));
            ("PATCH".to_owned(), format!("{events}/event"), STRATEGIC_PATCH, patch.into_bytes())
        })
        .await;
    // Who manages what nests five levels deeper than what it is about.
    let message = |depth| {
        let involved = field(2, field(2, "c1"));
        [deep_metadata("event-", depth), involved, field(3, "Tried"), field(4, "m"), field(9, "Normal")].concat()
    };
    attempts
        .try_at(&agent, PROTOBUF, 105, |depth| {
            ("POST".to_owned(), events.to_owned(), PROTOBUF, protobuf("v1", "Event", &message(depth)))
        })
        .await;
}

fn account(name: &str) -> ServiceAccount {
    ServiceAccount {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..ServiceAccount::default()
    }
}

/// A service account without roles may ask what it may do, and nothing else.
#[tokio::test]
async fn service_account_without_roles_can_not_nest_deeper_than_the_limit() {
    let world = World::embedded().await;
    world.namespace_named("c1").await;
    let admin = world.client();
    create(&Api::namespaced(admin.clone(), "c1"), account("nothing")).await;
    let client = world.service_account("c1", "nothing").await;
    let attempts = Attempts { admin, within_limit: 200 };
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    for path in [reviews, rules] {
        for media_type in [JSON, YAML] {
            attempts
                .try_all(&client, media_type, |depth| {
                    let body = format!(
                        r#"{{"spec":{{"namespace":"c1","resourceAttributes":{{"verb":"get"}}}},"unknown":{}}}"#,
                        lists(depth - 1)
                    );
                    ("POST".to_owned(), path.to_owned(), media_type, body.into_bytes())
                })
                .await;
        }
        attempts
            .try_all(&client, "YAML in blocks", |depth| {
                let body = format!(
                    "spec: {{namespace: c1, resourceAttributes: {{verb: get}}}}\nunknown:\n{}",
                    yaml_lists(depth - 1)
                );
                ("POST".to_owned(), path.to_owned(), YAML, body.into_bytes())
            })
            .await;
    }
    attempts
        .try_at(&client, PROTOBUF, 105, |depth| {
            let message = [deep_metadata("", depth), field(2, field(1, field(2, "get")))].concat();
            let body = protobuf("authorization.k8s.io/v1", "SelfSubjectAccessReview", &message);
            ("POST".to_owned(), reviews.to_owned(), PROTOBUF, body)
        })
        .await;
    let path = format!("{WORKS}/work");
    for media_type in [JSON_PATCH, MERGE_PATCH, APPLY_PATCH] {
        attempts
            .is_always(&client, 403, media_type, |depth| {
                ("PATCH".to_owned(), path.clone(), media_type, lists(depth).into_bytes())
            })
            .await;
    }
    for method in ["PUT", "DELETE"] {
        attempts
            .is_always(&client, 403, method, |depth| (method.to_owned(), path.clone(), JSON, lists(depth).into_bytes()))
            .await;
    }
    for selector in ["labelSelector", "fieldSelector"] {
        attempts
            .is_always(&client, 403, selector, |depth| {
                let path = format!("{WORKS}?{selector}={}", "(".repeat(depth.min(8000)));
                ("GET".to_owned(), path, JSON, Vec::new())
            })
            .await;
    }
}

/// What only an administrator can send: options, definitions, rules and policies.
#[tokio::test]
async fn options_definitions_and_expressions_can_not_nest_deeper_than_the_limit() {
    let world = World::embedded().await;
    world.namespace_named("c1").await;
    let admin = world.client();
    let attempts = Attempts { admin: admin.clone(), within_limit: 200 };
    let map = ConfigMap {
        metadata: ObjectMeta { name: Some("map".to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    create(&Api::namespaced(admin.clone(), "c1"), map).await;
    create(&Api::namespaced(admin.clone(), "c1"), account("asked")).await;
    for media_type in [JSON, YAML] {
        attempts
            .try_all(&admin, "options of a deletion", |depth| {
                let body = format!(r#"{{"dryRun":["All"],"unknown":{}}}"#, lists(depth - 1));
                ("DELETE".to_owned(), "/api/v1/namespaces/c1/configmaps/map".to_owned(), media_type, body.into_bytes())
            })
            .await;
    }
    attempts
        .try_all(&admin, "a request for a token", |depth| {
            let body = format!(r#"{{"spec":{{"audiences":[]}},"unknown":{}}}"#, lists(depth - 1));
            let path = "/api/v1/namespaces/c1/serviceaccounts/asked/token".to_owned();
            ("POST".to_owned(), path, JSON, body.into_bytes())
        })
        .await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = |schema: &str| {
        format!(
            r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"widgets.example.com"}},"spec":{{"group":"example.com","scope":"Namespaced","names":{{"plural":"widgets","kind":"Widget"}},"versions":[{{"name":"v1","served":true,"storage":true,"subresources":{{"status":{{}}}},"schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#
        )
    };
    // Five levels are around the outermost schema. A schema of a field is two levels further down.
    let nested = |levels: usize| {
        let begin = r#"{"type":"object","properties":{"a":"#.repeat(levels / 2);
        format!(r#"{begin}{{"type":"object"}}{}"#, "}}".repeat(levels / 2))
    };
    attempts
        .try_all(&admin, "a schema", |depth| {
            let path = format!("{definitions}?dryRun=All");
            ("POST".to_owned(), path, JSON, definition(&nested(depth.min(50_000) - 5)).into_bytes())
        })
        .await;
    for kind in ["default", "enum", "example"] {
        attempts
            .is_always_answered(&admin, kind, |depth| {
                let lists = lists(depth - 8);
                let field = format!(r#"{{"x-kubernetes-preserve-unknown-fields":true,"{kind}":{lists}}}"#);
                let schema = format!(r#"{{"type":"object","properties":{{"a":{field}}}}}"#);
                ("POST".to_owned(), format!("{definitions}?dryRun=All"), JSON, definition(&schema).into_bytes())
            })
            .await;
    }

    let shapes: [fn(usize) -> String; 6] = [
        |depth| format!("{}true{}", "(".repeat(depth), ")".repeat(depth)),
        |depth| format!("{} == []", lists(depth)),
        |depth| format!("{}true", "!".repeat(depth)),
        |depth| format!("{}1 == 1", "1 + ".repeat(depth)),
        |depth| format!("object{} == 1", ".a".repeat(depth)),
        |depth| format!("{}true{}", "true ? ".repeat(depth), " : false".repeat(depth)),
    ];
    for shape in shapes {
        attempts
            .is_always_answered(&admin, "a rule", |depth| {
                let rule = json!([{ "rule": shape(depth.min(300_000)) }]);
                let schema = json!({ "type": "object", "x-kubernetes-validations": rule });
                let body = definition(&schema.to_string());
                ("POST".to_owned(), format!("{definitions}?dryRun=All"), JSON, body.into_bytes())
            })
            .await;
        attempts
            .is_always_answered(&admin, "a policy", |depth| {
                let expression = shape(depth.min(300_000));
                let policy = policy(&json!({ "validations": [{ "expression": expression }] }));
                ("POST".to_owned(), format!("{POLICIES}?dryRun=All"), JSON, policy.to_string().into_bytes())
            })
            .await;
    }
}

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

fn policy(spec: &Value) -> Value {
    let mut policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": "deep" },
        "spec": { "failurePolicy": "Fail", "matchConstraints": { "resourceRules": [
            { "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"] },
        ] } },
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        policy["spec"][field] = value.clone();
    }
    policy
}

impl Attempts {
    /// Whether there is an answer at all.
    async fn is_always_answered(
        &self,
        client: &Client,
        what: &str,
        attempt: impl Fn(usize) -> (String, String, &'static str, Vec<u8>),
    ) {
        for depth in DEPTHS {
            let (method, path, media_type, body) = attempt(depth);
            let (code, text) = send(client, &method, &path, media_type, body).await;
            assert!(code < 500, "{what} of {depth} levels: {code} {text}");
            self.is_alive(what).await;
        }
    }
}

/// Each variable of a policy is made of the one before, in values that nest and in expressions that
/// are evaluated within each other.
#[tokio::test]
async fn policy_in_force_never_takes_the_whole_stack() {
    let world = World::embedded().await;
    world.namespace_named("c1").await;
    let admin = world.client();
    let attempts = Attempts { admin: admin.clone(), within_limit: 200 };
    let chain = |length: usize| -> (Vec<Value>, Vec<Value>) {
        let variable = |at: usize| {
            let expression = if at == 0 { "1".to_owned() } else { format!("[variables.v{}]", at - 1) };
            json!({ "name": format!("v{at}"), "expression": expression })
        };
        // The first names the last variable, the others one after another.
        let named = std::iter::once(length - 1).chain(0..length);
        let validation = |at: usize| json!({ "expression": format!("variables.v{at} != null") });
        ((0..length).map(variable).collect(), named.map(validation).collect())
    };
    let (deep, deepest) = (format!("{}true", "true && ".repeat(190)), format!("{}1 == 1", "1 + ".repeat(150)));
    let mut specs: Vec<Value> = [deep, deepest].map(|it| json!({ "validations": [{ "expression": it }] })).into();
    for length in [50, 5000] {
        let (variables, validations) = chain(length);
        specs.push(json!({ "variables": variables, "validations": validations }));
        let reversed: Vec<_> = validations.into_iter().rev().collect();
        specs.push(json!({ "variables": variables, "validations": reversed }));
    }
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": "deep" }, "spec": { "policyName": "deep", "validationActions": ["Deny"] },
    });
    let bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    assert_eq!(send(&admin, "POST", bindings, JSON, binding.to_string().into_bytes()).await.0, 200);
    let mut made = 0;
    for spec in specs {
        let (code, _) = send(&admin, "POST", POLICIES, JSON, policy(&spec).to_string().into_bytes()).await;
        let map = ConfigMap {
            metadata: ObjectMeta { generate_name: Some("map-".to_owned()), ..ObjectMeta::default() },
            ..ConfigMap::default()
        };
        // Whatever the policy says to it.
        let _ = Api::namespaced(admin.clone(), "c1").create(&PostParams::default(), &map).await;
        attempts.is_alive("a policy").await;
        if code == 200 {
            made += 1;
            send(&admin, "DELETE", &format!("{POLICIES}/deep"), JSON, Vec::new()).await;
        }
    }
    assert!(made >= 3, "policies of usual depth are in force");
}

/// Scales are put where a definition says, which may be far down.
#[tokio::test]
async fn scale_path_can_not_nest_an_object_deeper_than_the_limit() {
    let world = World::embedded().await;
    world.namespace_named("c1").await;
    let admin = world.client();
    for (plural, levels, expected) in [("shallows", 20, 200), ("deeps", 300_000, 422)] {
        let path = format!(".spec{}", ".a".repeat(levels));
        let kind = plural.trim_end_matches('s');
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.example.com") },
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": { "plural": plural, "kind": kind },
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
                    "subresources": { "scale": { "specReplicasPath": path, "statusReplicasPath": ".status.a" } },
                }],
            },
        });
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (code, text) = send(&admin, "POST", definitions, JSON, definition.to_string().into_bytes()).await;
        assert_eq!(code, 200, "{text}");
        let objects = format!("/apis/example.com/v1/namespaces/c1/{plural}");
        let object = json!({ "apiVersion": "example.com/v1", "kind": kind, "metadata": { "name": "a" }, "spec": {} });
        let (code, text) = send(&admin, "POST", &objects, JSON, object.to_string().into_bytes()).await;
        assert_eq!(code, 200, "{text}");
        let patch = json!({ "spec": { "replicas": 2 } });
        let path = format!("{objects}/a/scale");
        let (code, text) = send(&admin, "PATCH", &path, MERGE_PATCH, patch.to_string().into_bytes()).await;
        assert_eq!(code, expected, "{text}");
        Attempts { admin: admin.clone(), within_limit: 200 }.is_alive("a scale").await;
    }
}

/// A row of the file: the revision, where the labels are and how long they are, and the object.
type Row<'a> = (u64, u32, u32, &'a [u8]);

/// Writes an object into the file of a store, as a release without a limit has.
fn store(data: &Path, resource: &str, position: &str, object: &str) {
    const OBJECTS: TableDefinition<'_, (&str, &str), Row<'_>> = TableDefinition::new("objects");
    const RESOURCES: TableDefinition<'_, &str, u64> = TableDefinition::new("resources");
    let database = redb::Database::open(data.join("store.redb")).expect("a store");
    let read = database.begin_read().expect("it can be read");
    let revisions = read.open_table(RESOURCES).expect("it has resources");
    let revisions = revisions.iter().expect("they can be listed").map(|entry| entry.expect("a resource").1.value());
    let revision = revisions.max().unwrap_or_default() + 1;
    let object = object.replace("REVISION", &revision.to_string());
    let write = database.begin_write().expect("it can be written");
    let row = (revision, 0, 0, object.as_bytes());
    write.open_table(OBJECTS).expect("it has objects").insert((resource, position), row).expect("there is room");
    write.open_table(RESOURCES).expect("it has resources").insert(resource, revision).expect("there is room");
    write.commit().expect("there is room");
}

#[tokio::test]
async fn hub_becomes_ready_with_stored_objects_that_are_too_deep() {
    let (_folder, data) = folder();
    let hub = Process::start(&data);
    let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(client(&data).await);
    let namespace = json!({ "metadata": { "name": "c1" } });
    let namespace = serde_json::from_value(namespace).expect("a namespace");
    namespaces.create(&PostParams::default(), &namespace).await.expect("it can be made");
    hub.kill();
    let nested = format!("{}1{}", r#"{"a":"#.repeat(195), "}".repeat(195));
    let stored = format!(
        r#"{{"metadata":{{"creationTimestamp":"2026-01-01T00:00:00Z","finalizers":["example.com/a"],"generation":1,"name":"deep","namespace":"c1","resourceVersion":"REVISION","uid":"1"}},"spec":{{"workload":{{"manifests":[{{"apiVersion":"v1","data":{nested},"kind":"ConfigMap","metadata":{{"name":"a"}}}}]}}}}}}"#
    );
    store(&data, "manifestworks.work.open-cluster-management.io", "c1/deep", &stored);

    let mut hub = Process::start(&data);
    let mut line = String::new();
    hub.output.as_mut().expect("it is piped").read_line(&mut line).expect("it has more to say");
    let (_, health) = line.trim().rsplit_once("http://").expect("it says where its health is");
    wait::attempt("the hub is ready", async || ready(health).await).await;
    let client = client(&data).await;
    let works = Api::<ManifestWork>::namespaced(client.clone(), "c1");
    let listed = works.list(&ListParams::default()).await.expect("they can be listed");
    assert_eq!(listed.items.len(), 1);
    let cluster = json!({ "metadata": { "name": "one" }, "spec": { "hubAcceptsClient": true } });
    let cluster = serde_json::from_value(cluster).expect("a cluster");
    let clusters = Api::<ManagedCluster>::all(client.clone());
    clusters.create(&PostParams::default(), &cluster).await.expect("it can be made");
    wait::until(&clusters, "one", "the hub has accepted it", |cluster| {
        let mut conditions = cluster.status.iter().flat_map(|status| &status.conditions);
        conditions.any(|it| it.type_ == "HubAcceptedManagedCluster" && it.status == "True")
    })
    .await;
    let path = format!("{WORKS}/deep");
    let (code, text) = send(&client, "DELETE", &path, JSON, Vec::new()).await;
    assert_eq!(code, 200, "{text}");
    let patch = json!({ "metadata": { "finalizers": null } }).to_string();
    let (code, text) = send(&client, "PATCH", &path, MERGE_PATCH, patch.into_bytes()).await;
    assert_eq!(code, 200, "{text}");
    wait::gone(&works, "deep").await;
}

/// Whether a hub says that it is ready.
async fn ready(health: &str) -> Result<(), String> {
    let mut stream = TcpStream::connect(health).await.map_err(|error| error.to_string())?;
    let request = b"GET /readyz HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.map_err(|error| error.to_string())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.map_err(|error| error.to_string())?;
    if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(answer) }
}
