//! Fuzz targets of the embedded API server. `docs/fuzzing.md` says how to run them for long; `cargo
//! test` runs them for a few seconds.
//!
//! Each target takes any bytes. Whatever is accepted is within the limit of depth, can be written
//! and read back as the same, and can be patched again. Nothing panics, and nothing takes more
//! stack than a request has.

#![expect(clippy::missing_panics_doc, reason = "a target reports by panicking")]

mod operations;

use std::sync::LazyLock;

use drover_apiserver::{
    catalog::Kinds,
    decode, depth,
    kind::Origin,
    ownership::{self, Write},
    patch, protobuf,
};
use serde_json::{Value, json};

/// A target: what it is called, and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 8] = [
    ("json-body", json_body),
    ("yaml-body", yaml_body),
    ("protobuf-body", protobuf_body),
    ("json-patch", json_patch),
    ("json-patch-operations", json_patch_operations),
    ("merge-patch", merge_patch),
    ("strategic-merge-patch", strategic_merge_patch),
    ("apply-patch", apply_patch),
];

/// The kinds that bodies are read as: group, version and plural.
const KINDS: [(&str, &str, &str); 4] = [
    ("", "v1", "configmaps"),
    ("apps", "v1", "deployments"),
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
    ("authorization.k8s.io", "v1", "selfsubjectaccessreviews"),
];

/// The objects that patches are applied to. The last is as deep as an object may be.
static OBJECTS: LazyLock<Vec<(usize, Value)>> = LazyLock::new(|| {
    let nested = (0..depth::MAX_DEPTH - 2).fold(json!(1), |inner, _| json!({ "f": inner }));
    let container = json!({ "name": "a", "image": "b", "env": [{ "name": "c", "value": "d" }], "args": ["e", "f"] });
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object" } } });
    vec![
        (0, json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "b": "c" } })),
        (
            1,
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": { "name": "a", "labels": { "b": "c" }, "finalizers": ["d", "e"] },
                "spec": { "replicas": 1, "template": { "spec": { "containers": [container] } } },
            }),
        ),
        (
            2,
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "a.b" },
                "spec": { "group": "b", "versions": [{ "name": "v1", "schema": { "openAPIV3Schema": schema } }] },
            }),
        ),
        (0, json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "b": nested } })),
    ]
});

/// What has to hold of every object that is accepted.
pub fn accept(object: &Value) {
    assert_eq!(depth::check(object), Ok(()), "what is accepted is within the limit");
    let text = object.to_string();
    let (again, twice) = decode::read_json(text.as_bytes()).expect("what was written can be read");
    assert_eq!((&again, twice), (object, Vec::new()), "what is read is what was written");
    if object.is_object() {
        let operations = json!([{ "op": "test", "path": "", "value": object }]);
        let patched = patch::json(object, operations.to_string().as_bytes()).expect("it can be patched");
        assert_eq!(&patched, object, "a test changes nothing");
        let change = json!({ "metadata": { "labels": { "a": "b" } } });
        let patched = patch::merge(object, &change).expect("it can be patched");
        assert_eq!(depth::check(&patched), Ok(()), "a small patch makes nothing deeper");
    }
}

/// Reads what a body says as each of the kinds.
fn read_as_kinds(body: &[u8], value: &Value) {
    accept(value);
    let kinds = Kinds::new();
    let is_known = |api_version: &str, kind: &str| {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        kinds.by_kind(group, version, kind).is_some()
    };
    for (group, version, plural) in KINDS {
        let (kind, version) = kinds.get(group, version, plural).expect("it is served");
        let mut object = value.clone();
        let read = decode::identify(&mut object, &kind, &version.name, body, &is_known)
            .and_then(|()| decode::check(&object, &kind, version));
        if read.is_ok() {
            decode::trim(&mut object, &version.schema);
            ownership::update(None, &mut object, &version.schema, &write(&kind.api_version(&version.name)));
            accept(&object);
        }
    }
}

fn write(api_version: &str) -> Write<'_> {
    Write {
        manager: "fuzz",
        api_version,
        subresource: "",
        time: "2026-01-01T00:00:00Z",
        origin: Origin::BuiltIn,
        reset: &[],
    }
}

fn json_body(data: &[u8]) {
    if let Ok((value, _)) = decode::read_json(data) {
        read_as_kinds(data, &value);
    }
}

fn yaml_body(data: &[u8]) {
    if let Ok((value, _)) = decode::read_yaml(data) {
        read_as_kinds(data, &value);
    }
}

/// The first byte chooses a kind; the rest is its message. What begins as all such bodies do is
/// read as it is.
fn protobuf_body(data: &[u8]) {
    const NAMES: [(&str, &str); 5] = [
        ("v1", "ConfigMap"),
        ("apps/v1", "ControllerRevision"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("v1", "Event"),
        ("v1", "DeleteOptions"),
    ];
    if let Ok(value) = protobuf::decode(data) {
        accept(&value);
    }
    let Some((first, message)) = data.split_first() else { return };
    let (api_version, kind) = NAMES[usize::from(*first) % NAMES.len()];
    let field = |number: u8, content: &[u8]| {
        let mut bytes = vec![number << 3 | 2];
        let mut length = content.len();
        while length >= 0x80 {
            bytes.push(u8::try_from(length & 0x7f).unwrap_or_default() | 0x80);
            length >>= 7;
        }
        bytes.push(u8::try_from(length).unwrap_or_default());
        bytes.extend_from_slice(content);
        bytes
    };
    let types = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    let body = [b"k8s\0".to_vec(), field(1, &types), field(2, message)].concat();
    if let Ok(value) = protobuf::decode(&body) {
        accept(&value);
    }
}

/// The object that the first byte of an input chooses, the kind that it is of, and the rest of the
/// input.
fn chosen(data: &[u8]) -> Option<(usize, &'static Value, &[u8])> {
    let (first, rest) = data.split_first()?;
    let (kind, object) = &OBJECTS[usize::from(*first) % OBJECTS.len()];
    Some((*kind, object, rest))
}

fn json_patch(data: &[u8]) {
    let Some((_, object, patch)) = chosen(data) else { return };
    if let Ok(patched) = patch::json(object, patch) {
        accept(&patched);
    }
}

/// The input is a program that makes operations, most of which can be done.
fn json_patch_operations(data: &[u8]) {
    let Some((_, object, program)) = chosen(data) else { return };
    let patch = operations::made_by(program, object);
    if let Ok(patched) = patch::json(object, patch.to_string().as_bytes()) {
        accept(&patched);
    }
}

fn merge_patch(data: &[u8]) {
    let Some((_, object, patch)) = chosen(data) else { return };
    let Ok((patch, _)) = decode::read_json(patch) else { return };
    if let Ok(patched) = patch::merge(object, &patch) {
        accept(&patched);
    }
}

fn strategic_merge_patch(data: &[u8]) {
    let Some((kind, object, patch)) = chosen(data) else { return };
    let Ok((patch, _)) = decode::read_json(patch) else { return };
    let (kinds, (group, version, plural)) = (Kinds::new(), KINDS[kind]);
    let (_, version) = kinds.get(group, version, plural).expect("it is served");
    if let Ok(patched) = patch::strategic(object, &patch, &version.schema) {
        accept(&patched);
    }
}

fn apply_patch(data: &[u8]) {
    let Some((kind, object, patch)) = chosen(data) else { return };
    let Ok((mut patch, _)) = decode::read_yaml(patch) else { return };
    let (kinds, (group, version, plural)) = (Kinds::new(), KINDS[kind]);
    let (kind, version) = kinds.get(group, version, plural).expect("it is served");
    let api_version = kind.api_version(&version.name);
    if let Some(fields) = patch.as_object_mut() {
        fields.insert("apiVersion".to_owned(), api_version.as_str().into());
        fields.insert("kind".to_owned(), kind.kind.as_str().into());
    }
    let write = write(&api_version);
    for live in [None, Some(object)] {
        if let Ok(applied) = ownership::apply(live, &patch, &version.schema, &write, true) {
            accept(&applied);
            let again = ownership::apply(Some(&applied), &patch, &version.schema, &write, true);
            accept(&again.expect("what was applied can be applied again"));
        }
    }
}
