//! Objects as a server sends them, with values that cannot be parsed.

use k8s_openapi::{
    api::{certificates::v1::CertificateSigningRequest, coordination::v1::Lease},
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use kube::{
    api::{DynamicObject, PartialObjectMeta},
    core::{ObjectList, WatchEvent},
};
use serde_json::json;

use super::*;

/// An object whose spec and status have both something that can be invalid.
#[derive(Clone, Debug, Deserialize)]
struct Thing {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Spec {
    #[serde(default)]
    accepted: bool,
    #[serde(default)]
    size: i32,
    #[serde(default)]
    taints: Vec<Taint>,
}

#[derive(Clone, Debug, Deserialize)]
struct Taint {
    #[serde(default, rename = "timeAdded")]
    time_added: Option<Time>,
}

#[derive(Clone, Debug, Deserialize)]
struct Group {
    name: String,
    counts: Vec<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Status {
    #[serde(default)]
    conditions: Vec<Condition>,
    #[serde(default)]
    observed: Option<i64>,
    #[serde(default)]
    counts: Vec<i64>,
    #[serde(default)]
    groups: Vec<Group>,
    #[serde(default)]
    texts: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    free: Value,
}

fn condition(type_: &str, time: &str) -> Value {
    json!({ "type": type_, "status": "True", "reason": "R", "message": "", "lastTransitionTime": time })
}

fn thing(spec: &Value, status: &Value) -> String {
    let metadata = json!({ "namespace": "ns", "name": "one", "resourceVersion": "7", "labels": { "a": "b" } });
    json!({ "metadata": metadata, "spec": spec, "status": status }).to_string()
}

fn nested(depth: usize) -> String {
    format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth))
}

fn parse(text: &str) -> Result<Thing, Box<Damaged<Thing>>> {
    Decoded::parse(text).expect("it has metadata").0
}

fn damaged(text: &str) -> Box<Damaged<Thing>> {
    parse(text).expect_err("it is damaged")
}

fn types(thing: &Thing) -> Vec<&str> {
    let conditions = thing.status.iter().flat_map(|status| &status.conditions);
    conditions.map(|condition| condition.type_.as_str()).collect()
}

#[test]
fn time_that_kubernetes_accepts_is_no_defect() {
    let text = thing(&json!({}), &json!({ "conditions": [condition("A", "2026-01-01T00:00:00.1234567890Z")] }));
    let thing = parse(&text).expect("nothing is wrong with it");
    let time = &thing.status.expect("a status").conditions[0].last_transition_time;
    assert_eq!(time.0.to_string(), "2026-01-01T00:00:00.123456789Z");
}

#[test]
fn list_item_that_cannot_be_parsed_is_left_out_of_the_status() {
    let conditions = [condition("A", "2026-01-01T00:00:00Z"), condition("B", "yesterday"), condition("C", "now")];
    let damaged = damaged(&thing(&json!({ "accepted": true }), &json!({ "conditions": conditions, "observed": "x" })));
    assert_eq!(damaged.defect.path, "status.conditions[1].lastTransitionTime");
    assert!(damaged.defect.is_in_status());
    let left = damaged.without_defects().expect("its spec can be parsed");
    assert_eq!(types(&left), ["A"]);
    assert!(left.spec.accepted && left.status.is_some_and(|status| status.observed.is_none()));
}

#[test]
fn many_unusual_times_are_no_defects() {
    let conditions: Vec<_> = (0..10_000).map(|_| condition("A", "2026-01-01T00:00:00.1234567890Z")).collect();
    let thing = parse(&thing(&json!({}), &json!({ "conditions": conditions }))).expect("nothing is wrong with it");
    assert_eq!(types(&thing).len(), 10_000);
}

#[test]
fn valid_items_stay_however_many_are_invalid() {
    let invalid = (0..1000).map(|_| condition("invalid", "never"));
    let valid = |type_| condition(type_, "2026-01-01T00:00:00.1234567890Z");
    let conditions: Vec<_> = [valid("A")].into_iter().chain(invalid).chain([valid("B")]).collect();
    let counts: Vec<_> = (0..10_000).map(|number| if number == 5000 { json!(7) } else { json!("many") }).collect();
    let damaged = damaged(&thing(&json!({}), &json!({ "conditions": conditions, "counts": counts })));
    assert_eq!(damaged.defect.path, "status.conditions[1].lastTransitionTime");
    let left = damaged.without_defects().expect("its spec can be parsed");
    assert_eq!(types(&left), ["A", "B"]);
    assert_eq!(left.status.expect("a status").counts, [7]);
}

#[test]
fn valid_items_of_inner_lists_stay_however_many_are_invalid() {
    let inner = |number: usize| {
        let counts = (0..40).map(|at| if at == 20 { json!(number) } else { json!(null) });
        json!({ "name": "group", "counts": counts.collect::<Vec<_>>() })
    };
    let groups: Vec<_> = (0..100).map(inner).chain([json!({ "counts": [1] }), json!("none")]).collect();
    let by_name: serde_json::Map<_, _> = (0..40).map(|at| (at.to_string(), json!(["x", at]))).collect();
    let left = damaged(&thing(&json!({}), &json!({ "groups": groups, "texts": by_name }))).without_defects();
    let status = left.and_then(|left| left.status).expect("a status");
    assert_eq!(status.groups.len(), 100);
    for (at, group) in status.groups.iter().enumerate() {
        assert_eq!((group.name.as_str(), &*group.counts), ("group", &[i64::try_from(at).expect("small")][..]));
    }
    assert_eq!(status.texts.len(), 40);
    assert!(status.texts.values().all(|texts| *texts == ["x"]), "{:?}", status.texts);
}

#[test]
fn many_unusual_times_in_a_spec_are_parsed_at_once() {
    let times = vec!["2026-01-01T00:00:00.1234567890Z"; 10_000];
    let taints: Vec<_> = times.iter().map(|time| json!({ "timeAdded": time })).collect();
    let thing = parse(&thing(&json!({ "taints": taints }), &json!({}))).expect("nothing is wrong with it");
    assert_eq!(thing.spec.taints.len(), 10_000);
    assert!(thing.spec.taints.iter().all(|taint| taint.time_added.is_some()));
}

#[test]
fn invalid_metadata_is_left_out() {
    let object = |metadata: &str| {
        format!(
            r#"{{ "metadata": {{ "name": "one", {metadata} }}, "spec": {{ "size": 3 }}, "status": {{ "observed": 5 }} }}"#
        )
    };
    let deep = nested(10_000);
    for (metadata, path) in [
        (r#""annotations": { "a": "b", "x": null }"#, "metadata.annotations.x"),
        (r#""annotations": { "a": "b" }, "labels": { "a": null }"#, "metadata.labels.a"),
        (r#""annotations": { "a": "b" }, "labels": 5"#, "metadata.labels"),
        (r#""annotations": { "a": "b" }, "finalizers": [null]"#, "metadata.finalizers[0]"),
        (r#""annotations": { "a": "b" }, "ownerReferences": [{ "name": 1 }]"#, "metadata.ownerReferences[0].name"),
        (r#""annotations": { "a": "b" }, "deletionTimestamp": "soon""#, "metadata.deletionTimestamp"),
        (r#""annotations": { "a": "b" }, "generation": "one""#, "metadata.generation"),
        (&format!(r#""annotations": {{ "a": "b" }}, "labels": {deep}"#), "metadata.labels"),
    ] {
        let damaged = damaged(&object(metadata));
        assert_eq!(damaged.defect.path, path);
        assert!(damaged.defect.is_in_metadata());
        let annotation = damaged.metadata.annotations.as_ref().and_then(|annotations| annotations.get("a"));
        assert_eq!(annotation.map(String::as_str), Some("b"), "{path}");
        let whole = damaged.without_defects().expect("its spec can be parsed");
        assert_eq!((whole.metadata, whole.spec.size), (damaged.metadata, 3));
        assert_eq!(whole.status.expect("a status").observed, Some(5));
    }
}

#[test]
fn metadata_keeps_what_is_valid_however_much_is_not() {
    let mut labels: serde_json::Map<_, _> = (0..10_000).map(|at| (format!("l{at}"), Value::Null)).collect();
    labels.insert("m".to_owned(), "valid".into());
    let mut finalizers = vec![Value::Null; 1000];
    finalizers.push("drover.dev/finalizer".into());
    let metadata = json!({ "name": "one", "labels": labels, "finalizers": finalizers });
    let damaged = damaged(&json!({ "metadata": metadata }).to_string());
    assert_eq!(damaged.defect.path, "metadata.finalizers[0]");
    assert_eq!(damaged.metadata.finalizers.as_deref(), Some(&["drover.dev/finalizer".to_owned()][..]));
    let labels: Vec<_> = damaged.metadata.labels.into_iter().flatten().collect();
    assert_eq!(labels, [("m".to_owned(), "valid".to_owned())]);
}

#[test]
fn defect_of_a_spec_or_a_status_comes_before_one_of_the_metadata() {
    let object = |rest: &str| format!(r#"{{ "metadata": {{ "name": "one", "labels": {{ "a": null }} }}, {rest} }}"#);
    let in_spec = damaged(&object(r#""spec": { "size": "big" }"#));
    assert_eq!((in_spec.defect.path.as_str(), in_spec.without_defects().is_none()), ("spec.size", true));
    let in_status = damaged(&object(r#""status": { "observed": "x" }"#));
    assert!(in_status.defect.is_in_status() && in_status.without_defects().is_some());
}

#[test]
fn spec_loses_no_value() {
    let damaged = damaged(&thing(&json!({ "accepted": true, "size": 1_i64 << 40 }), &json!({})));
    assert_eq!(damaged.defect.path, "spec.size");
    assert!(!damaged.defect.is_in_status());
    assert!(damaged.without_defects().is_none() && damaged.with_status(&json!({})).is_none());
    assert_eq!(damaged.spec_field::<bool>("accepted"), Some(true));
    assert_eq!(damaged.spec_field::<i32>("size"), None);
    assert_eq!(damaged.metadata.name.as_deref(), Some("one"));
}

#[test]
fn another_status_takes_the_place_of_an_invalid_one() {
    let damaged = damaged(&thing(&json!({ "size": 3 }), &json!({ "conditions": [condition("A", "never")] })));
    let status = json!({ "conditions": [condition("B", "2026-01-01T00:00:00Z")] });
    let thing = damaged.with_status(&status).expect("its spec can be parsed");
    assert_eq!((types(&thing), thing.spec.size), (vec!["B"], 3));
}

#[test]
fn object_of_any_depth_has_metadata_and_a_spec() {
    for depth in [200, 10_000, 200_000] {
        let deep = nested(depth);
        let metadata = format!(r#"{{ "name": "one", "managedFields": [{{ "fieldsV1": {deep} }}] }}"#);
        let status = format!(r#"{{ "free": {deep}, "observed": 5 }}"#);
        let text = format!(r#"{{ "metadata": {metadata}, "spec": {{ "size": 3 }}, "status": {status} }}"#);
        let in_status = damaged(&text);
        assert_eq!(in_status.defect.path, "status.free");
        let left = in_status.without_defects().expect("its spec can be parsed");
        assert_eq!((left.metadata.name.as_deref(), left.spec.size), (Some("one"), 3));
        assert!(left.status.is_some_and(|status| status.free.is_null() && status.observed == Some(5)));
        let unknown = format!(r#"{{ "metadata": {metadata}, "spec": {{ "size": 3, "other": {deep} }} }}"#);
        assert!(damaged(&unknown).metadata.name.is_some());
        let only_managed = format!(r#"{{ "metadata": {metadata}, "spec": {{ "size": 3 }} }}"#);
        assert_eq!(parse(&only_managed).expect("nothing is missing").spec.size, 3);
    }
}

#[test]
fn damaged_object_spoils_neither_its_list_nor_its_watch() {
    let deep = nested(10_000);
    let one = format!(r#"{{ "metadata": {{ "name": "one" }}, "spec": {deep} }}"#);
    let two = r#"{ "metadata": { "name": "two" }, "spec": { "size": 2 } }"#;
    let list = format!(
        r#"{{ "kind": "ThingList", "apiVersion": "v1", "metadata": {{ "resourceVersion": "7" }}, "items": [{one}, {two}] }}"#
    );
    let list: ObjectList<Decoded<DynamicObject>> = serde_json::from_str(&list).expect("a list");
    let is_whole: Vec<_> = list.items.iter().map(|item| item.0.is_ok()).collect();
    assert_eq!(is_whole, [false, true]);
    let invalid = r#"{ "type": "ADDED", "object": { "metadata": { "name": "one", "finalizers": [null] } } }"#;
    let event: WatchEvent<Decoded<DynamicObject>> = serde_json::from_str(invalid).expect("an event");
    assert!(matches!(event, WatchEvent::Added(Decoded(Err(damaged))) if damaged.defect.is_in_metadata()));
    let event = format!(r#"{{ "type": "MODIFIED", "object": {one} }}"#);
    let event: WatchEvent<Decoded<DynamicObject>> = serde_json::from_str(&event).expect("an event");
    assert!(
        matches!(event, WatchEvent::Modified(Decoded(Err(damaged))) if damaged.metadata.name.as_deref() == Some("one"))
    );
    let metadata = format!(r#"{{ "metadata": {{ "name": "one", "managedFields": [{{ "fieldsV1": {deep} }}] }} }}"#);
    let metadata: Decoded<PartialObjectMeta<DynamicObject>> = Decoded::parse(&metadata).expect("it has metadata");
    assert!(metadata.0.is_ok(), "nothing reads managed fields");
}

#[test]
fn times_of_built_in_kinds_are_clamped() {
    let lease = r#"{ "metadata": { "name": "a" }, "spec": { "renewTime": "9999-12-31T23:59:59.999999Z" } }"#;
    let lease: Decoded<Lease> = Decoded::parse(lease).expect("it has metadata");
    let renewed = lease.0.expect("nothing is wrong with it").spec.and_then(|spec| spec.renew_time).expect("a time");
    assert_eq!(renewed.0, k8s_openapi::jiff::Timestamp::MAX);
    let request = r#"{ "metadata": { "name": "a", "creationTimestamp": "9999-12-31T23:59:59Z" },
        "spec": { "request": "", "signerName": "x" }, "status": { "conditions": [{ "type": "Denied", "status": 1 }] } }"#;
    let request: Decoded<CertificateSigningRequest> = Decoded::parse(request).expect("it has metadata");
    assert_eq!(request.0.expect_err("its status is invalid").defect.path, "status.conditions[0].status");
}

#[test]
fn what_has_no_metadata_is_no_object() {
    let invalid_namespace = r#"{ "metadata": { "name": "one", "namespace": [] } }"#;
    for text in ["", "1", "[]", "{}", r#"{ "metadata": 1 }"#, r#"{ "metadata": { "name": 1 } }"#, invalid_namespace] {
        assert!(Decoded::<Thing>::parse(text).is_err(), "{text}");
    }
}
