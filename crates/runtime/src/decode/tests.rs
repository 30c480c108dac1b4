//! Objects as a server sends them, with values that cannot be parsed.

use k8s_openapi::{
    api::{certificates::v1::CertificateSigningRequest, coordination::v1::Lease},
    apimachinery::pkg::apis::meta::v1::Condition,
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
fn field_of_a_status_with_too_many_defects_is_left_out_as_a_whole() {
    let counts: Vec<_> = (0..10_000).map(|_| json!("many")).collect();
    let conditions = [condition("A", "2026-01-01T00:00:00Z")];
    let damaged = damaged(&thing(&json!({}), &json!({ "conditions": conditions, "counts": counts })));
    let left = damaged.without_defects().expect("its spec can be parsed");
    assert_eq!(types(&left), ["A"], "the other fields stay");
    assert!(left.status.is_some_and(|status| status.counts.is_empty()));
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
    for text in ["", "1", "[]", "{}", r#"{ "metadata": 1 }"#, r#"{ "metadata": { "name": 1 } }"#] {
        assert!(Decoded::<Thing>::parse(text).is_err(), "{text}");
    }
}
