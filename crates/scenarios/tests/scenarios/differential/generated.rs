//! Requests that are made from what else is there: for every kind the same mistakes, Drover's rules, and its examples.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Deserialize;
use serde_json::{Value, json};

use super::step::Step;
use crate::{
    case::cases,
    documents::{read, repository},
    examples::example_files,
};

/// A kind that all verbs are tried on.
#[derive(Debug, Deserialize)]
struct Subject {
    /// Where its objects are.
    path: String,
    /// One of them.
    object: Value,
    /// A change of it.
    change: Value,
}

impl Subject {
    fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().expect("an object has a name")
    }

    fn place(&self) -> String {
        format!("{}/{}", self.path, self.name())
    }

    fn altered(&self, pointer: &str, value: impl Into<Value>) -> Value {
        let mut object = self.object.clone();
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
        object.pointer_mut(parent).expect("the parent is there")[key] = value.into();
        object
    }
}

pub(super) fn sequences() -> Vec<(&'static str, Vec<Step>)> {
    vec![("every kind", every_kind()), ("rules", rules()), ("examples", examples())]
}

fn every_kind() -> Vec<Step> {
    let file = repository().join("crates/scenarios/tests/scenarios/differential/kinds.yaml");
    let subjects: Vec<Subject> = read::<Vec<Subject>>(&file).into_iter().flatten().collect();
    let mut steps = vec![namespace("kinds")];
    for subject in &subjects {
        steps.extend(creation(subject));
        steps.extend(looking(subject));
        steps.extend(changes(subject));
        steps.extend(applying(subject));
        steps.extend(deletion(subject));
    }
    steps
}

fn namespace(name: &str) -> Step {
    let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    Step::new("POST /api/v1/namespaces").with(object)
}

fn creation(subject: &Subject) -> Vec<Step> {
    let post = |query: &str| Step::new(format!("POST {}{query}", subject.path));
    vec![
        post("").with("{"),
        post("").with("[]"),
        post("").with("null"),
        post(""),
        post("").with(subject.object.clone()).of_type("text/plain"),
        post("").with(subject.altered("/apiVersion", "drover.example/v9")),
        post("").with(subject.altered("/kind", "Other")),
        post("").with(subject.altered("/kind", Value::Null)),
        post("").with(subject.altered("/metadata/name", "Not Valid")),
        post("").with(subject.altered("/metadata/name", Value::Null)),
        post("").with(subject.altered("/metadata/name", 7)),
        post("").with(subject.altered("/metadata/labels", json!({ "a b": "c d" }))),
        post("").with(subject.altered("/metadata/annotations", json!({ "a/b/c": "" }))),
        post("").with(subject.altered("/metadata/resourceVersion", "5")),
        post("").with(subject.altered("/metadata/namespace", "elsewhere")),
        post("?dryRun=All").with(subject.object.clone()),
        post("?dryRun=Some").with(subject.object.clone()),
        post("?fieldValidation=Loose").with(subject.object.clone()),
        post("?fieldValidation=Strict").with(subject.altered("/unknown", 1)),
        post("?fieldValidation=Warn&dryRun=All").with(subject.altered("/unknown", 1)),
        post("?fieldValidation=Ignore&dryRun=All").with(subject.altered("/unknown", 1)),
        post("?fieldManager=maker").with(subject.object.clone()),
        post("").with(subject.object.clone()),
    ]
}

fn looking(subject: &Subject) -> Vec<Step> {
    let (path, place) = (&subject.path, subject.place());
    let get = |path: String| Step::new(format!("GET {path}"));
    let chosen = format!("{path}?fieldSelector=metadata.name%3D{}", subject.name());
    vec![
        get(place.clone()),
        get(place.clone()).accepting("table"),
        get(place.clone()).accepting("partial"),
        get(place.clone()).accepting("text/html"),
        get(format!("{place}/nothing")),
        get(format!("{path}/missing")),
        get(chosen.clone()),
        get(chosen.clone()).accepting("table"),
        get(chosen.clone()).accepting("partials"),
        get(format!("{chosen}&limit=5&resourceVersion=0")),
        get(format!("{path}?labelSelector=a%20b")),
        get(format!("{path}?fieldSelector=spec.none%3D1")),
        get(format!("{path}?labelSelector=nobody%3Dhas")),
        get(format!("{path}?labelSelector=nobody%3Dhas&resourceVersion=x")),
        get(format!("{path}?labelSelector=nobody%3Dhas&resourceVersionMatch=Exact")),
    ]
}

fn changes(subject: &Subject) -> Vec<Step> {
    let (path, place) = (&subject.path, subject.place());
    let put = || Step::new(format!("PUT {place}"));
    let patch = || Step::new(format!("PATCH {place}"));
    vec![
        put().with(subject.altered("/metadata/resourceVersion", "1")),
        put().with(subject.altered("/metadata/resourceVersion", "old")),
        put().with(subject.altered("/metadata/name", "other")),
        put().with(subject.altered("/metadata/uid", "other")),
        put().with("{"),
        Step::new(format!("PUT {path}/missing")).with(subject.altered("/metadata/name", "missing")),
        Step::new(format!("PUT {path}")).with(subject.object.clone()),
        patch().with(subject.change.clone()),
        patch().with(subject.change.clone()),
        patch().with("{"),
        patch().with("[]"),
        patch().with(subject.change.clone()).of_type("json"),
        patch().with(json!({ "metadata": { "name": "other" } })),
        patch().with(json!({ "metadata": { "labels": { "a": "b" } } })).of_type("strategic"),
        patch().with(json!([{ "op": "test", "path": "/metadata/name", "value": "no" }])).of_type("operations"),
        patch().with(json!([{ "op": "remove", "path": "/nothing" }])).of_type("operations"),
        patch().with(json!([{ "op": "bend", "path": "/nothing" }])).of_type("operations"),
        patch().with(json!([{ "op": "add", "path": "/metadata/labels/c", "value": "d" }])).of_type("operations"),
        Step::new(format!("PATCH {path}/missing")).with(subject.change.clone()),
    ]
}

fn applying(subject: &Subject) -> Vec<Step> {
    let (path, place) = (&subject.path, subject.place());
    let apply = |place: &str, query: &str| Step::new(format!("PATCH {place}?{query}")).of_type("apply");
    let named = |name: &str, labels: Value| {
        json!({
            "apiVersion": subject.object["apiVersion"], "kind": subject.object["kind"],
            "metadata": { "name": name, "labels": labels },
        })
    };
    let mine = named(subject.name(), json!({ "a": "mine" }));
    vec![
        apply(&place, "").with(mine.clone()),
        apply(&place, "fieldManager=one").with(mine.clone()),
        apply(&place, "fieldManager=one&force=true").with(mine.clone()),
        apply(&place, "fieldManager=two").with(mine),
        apply(&place, "fieldManager=two").with(named(subject.name(), json!({ "a": "yours" }))),
        apply(&place, "fieldManager=two&force=true").with(named(subject.name(), json!({ "a": "yours" }))),
        apply(&place, "fieldManager=one").with(named(subject.name(), json!({}))),
        apply(&place, "fieldManager=one").with(named("other", json!({}))),
        apply(&place, "fieldManager=one").with("a: ["),
        apply(&format!("{path}/applied"), "fieldManager=one&dryRun=All")
            .with(subject.altered("/metadata/name", "applied")),
    ]
}

fn deletion(subject: &Subject) -> Vec<Step> {
    let (path, place) = (&subject.path, subject.place());
    let delete = |query: &str| Step::new(format!("DELETE {place}{query}"));
    vec![
        Step::new(format!("POST {place}")).with(subject.object.clone()),
        delete("").with(json!({ "preconditions": { "uid": "other" } })),
        delete("").with(json!({ "preconditions": { "resourceVersion": "1" } })),
        delete("").with(json!({ "propagationPolicy": "Sideways" })),
        delete("?propagationPolicy=Background&orphanDependents=true"),
        delete("").with("{"),
        delete("?dryRun=All"),
        Step::new(format!("PATCH {place}")).with(json!({ "metadata": { "finalizers": ["drover.example/hold"] } })),
        Step::new(format!("DELETE {path}?labelSelector=c%3Dd")),
        Step::new(format!("PATCH {place}")).with(json!({ "metadata": { "finalizers": ["drover.example/two"] } })),
        Step::new(format!("PATCH {place}")).with(json!({ "metadata": { "finalizers": null } })),
        delete(""),
    ]
}

/// Every object of the rules, refused or accepted.
fn rules() -> Vec<Step> {
    let mut steps = vec![namespace("rules")];
    for (index, case) in cases().into_iter().enumerate() {
        let [before, refused, accepted] = [case.before, case.refused, Some(case.accepted)].map(|object| {
            let mut object = object?;
            if !case.keep_name {
                object["metadata"]["name"] = format!("case-{index}").into();
            }
            Some(object)
        });
        let changes = before.is_some();
        steps.extend(before.iter().flat_map(|object| storing(object, "rules")));
        for object in refused.iter().chain(&accepted) {
            if changes { steps.push(changing(object, "rules")) } else { steps.extend(storing(object, "rules")) }
        }
        steps.extend(accepted.iter().map(|object| Step::new(format!("DELETE {}", place(object, "rules")))));
    }
    steps
}

fn examples() -> Vec<Step> {
    let objects = example_files().into_iter().flat_map(|file| read::<Value>(&file));
    let mut steps = vec![namespace("examples")];
    steps.extend(objects.flat_map(|object| storing(&object, "examples")));
    steps
}

/// The object is created, and its status is written.
fn storing(object: &Value, namespace: &str) -> Vec<Step> {
    let mut object = object.clone();
    let status = object.as_object_mut().and_then(|object| object.remove("status"));
    if object["metadata"].get("namespace").is_some() {
        object["metadata"]["namespace"] = namespace.into();
    }
    let place = place(&object, namespace);
    let collection = place.rsplit_once('/').map(|(collection, _)| collection.to_owned()).unwrap_or_default();
    let mut steps = vec![Step::new(format!("POST {collection}?fieldValidation=Strict")).with(object)];
    let status = status.map(|status| Step::new(format!("PATCH {place}/status")).with(json!({ "status": status })));
    steps.extend(status);
    steps
}

fn changing(object: &Value, namespace: &str) -> Step {
    Step::new(format!("PATCH {}", place(object, namespace))).with(object.clone())
}

/// Where an object is, if it is of a kind of Drover's or of the few built-in ones that the examples have.
fn place(object: &Value, namespace: &str) -> String {
    static CRDS: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(drover_api::crds);
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    let (group, _) = api_version.split_once('/').unwrap_or(("", api_version));
    let crd = CRDS.iter().find(|crd| crd.spec.group == group && crd.spec.names.kind == kind);
    let (plural, is_namespaced) = if let Some(crd) = crd {
        (crd.spec.names.plural.clone(), crd.spec.scope == "Namespaced")
    } else {
        let is_of_all = kind.starts_with("Cluster") || ["Namespace", "CustomResourceDefinition"].contains(&kind);
        (format!("{}s", kind.to_lowercase()), !is_of_all)
    };
    let root = if group.is_empty() { "/api" } else { "/apis" };
    let inside = if is_namespaced { format!("/namespaces/{namespace}") } else { String::new() };
    format!("{root}/{api_version}{inside}/{plural}/{name}")
}
