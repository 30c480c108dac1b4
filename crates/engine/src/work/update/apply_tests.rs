//! Server-side apply.

use drover_api::work::IgnoreField;
use serde_json::json;

use super::*;
use crate::work::fixtures::{owner, owner_reference, target};

fn deployment() -> Target {
    target(
        "deployments",
        &json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "web", "namespace": "shop", "uid": "x", "creationTimestamp": null, "labels": { "app": "web", "old-": "", "none": null } },
            "spec": { "replicas": 2, "template": { "metadata": { "creationTimestamp": null, "labels": { "a": "b" } } } },
        }),
    )
}

fn applied() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "shop", "labels": { "app": "web" } },
        "spec": { "replicas": 2, "template": { "metadata": { "labels": { "a": "b" } } } },
    })
}

fn answered(mut object: Value) -> Value {
    object["metadata"]["uid"] = json!("1");
    object["metadata"]["resourceVersion"] = json!("7");
    object["spec"]["paused"] = json!(false);
    object
}

fn owned(mut object: Value) -> Value {
    object["metadata"]["ownerReferences"] = json!([owner_reference()]);
    object
}

fn step(ignored: &[IgnoreField], live: Option<&Value>, known: &Known) -> Step {
    try_step(ignored, live, known).unwrap()
}

fn try_step(ignored: &[IgnoreField], live: Option<&Value>, known: &Known) -> Result<Step, IgnoreFieldsError> {
    let strategy = Strategy::Apply(Apply { force: true, field_manager: "work-agent-x", ignored });
    Wanted { target: &deployment(), strategy: &strategy, owner: &owner(), fate: Fate::Removed }.step(live, known)
}

fn applies(object: Value) -> Step {
    Step::Apply { object, field_manager: "work-agent-x".into(), force: true }
}

fn owners() -> Step {
    let metadata = json!({ "uid": "1", "resourceVersion": "7", "ownerReferences": [owner_reference()] });
    Step::Owners(json!({ "metadata": metadata }))
}

fn ignoring(value: &Value) -> [IgnoreField; 1] {
    [serde_json::from_value(value.clone()).unwrap()]
}

/// The object that is applied.
fn object_of(step: Step) -> Value {
    match step {
        Step::Apply { object, .. } => object,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_manifest_is_applied_without_what_only_a_server_says_and_then_gets_its_owner() {
    assert_eq!(step(&[], None, &Known::New), applies(applied()));
    let answer = answered(applied());
    assert_eq!(step(&[], Some(&answer), &Known::New), applies(applied()));
    let known = Known::Written { settled: Some(digest(&answer)) };
    assert_eq!(step(&[], Some(&answer), &known), owners());
    let target = deployment();
    let wanted = Wanted { target: &target, strategy: &Strategy::Update, owner: &owner(), fate: Fate::Removed };
    assert_eq!(wanted.owners(&answer), owners());
    assert_eq!(step(&[], Some(&owned(answer)), &known), Step::Nothing);
}

#[test]
fn what_was_applied_is_applied_again_only_where_it_has_changed() {
    let known = Known::Written { settled: None };
    let mut live = owned(answered(applied()));
    live["metadata"]["labels"]["theirs"] = json!("x");
    assert_eq!(step(&[], Some(&live), &known), Step::Nothing);
    let mut changed = live.clone();
    changed["spec"]["replicas"] = json!(3);
    assert_eq!(step(&[], Some(&changed), &known), applies(applied()));
    live["metadata"]["labels"]["app"] = json!("other");
    assert_eq!(step(&[], Some(&live), &known), applies(applied()));
}

#[test]
fn an_object_that_is_missing_gets_the_ignored_fields_too() {
    let ignored = ignoring(&json!({ "jsonPaths": [".spec.replicas"] }));
    let object = object_of(step(&ignored, None, &Known::New));
    assert_eq!(object["spec"]["replicas"], json!(2));
    assert!(object["metadata"]["annotations"][CONFIG_SPEC_HASH_ANNOTATION].is_string());
}

#[test]
fn an_object_is_left_alone_until_what_counts_of_the_manifest_changes() {
    let ignored = ignoring(&json!({ "condition": "OnSpokePresent", "jqPathExpressions": [".spec.replicas"] }));
    let mut live = owned(answered(object_of(step(&ignored, None, &Known::New))));
    live["spec"]["replicas"] = json!(9);
    live["spec"]["template"]["metadata"]["labels"]["a"] = json!("edited");
    for known in [Known::New, Known::Written { settled: None }] {
        assert_eq!(step(&ignored, Some(&live), &known), Step::Nothing);
    }
    live["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(step(&ignored, Some(&live), &Known::New), owners());
    live["metadata"]["annotations"][CONFIG_SPEC_HASH_ANNOTATION] = json!("another");
    let object = object_of(step(&ignored, Some(&live), &Known::New));
    assert_eq!(object["spec"].get("replicas"), None);
    assert_eq!(object["spec"]["template"]["metadata"]["labels"]["a"], json!("b"));
}

#[test]
fn what_is_ignored_until_the_manifest_changes_counts_in_the_hash() {
    let hash = |ignored: &Value| {
        let object = object_of(step(&ignoring(ignored), None, &Known::New));
        object["metadata"]["annotations"][CONFIG_SPEC_HASH_ANNOTATION].clone()
    };
    let present = hash(&json!({ "condition": "OnSpokePresent", "jsonPointers": ["/spec/replicas"] }));
    let change = hash(&json!({ "condition": "OnSpokeChange", "jsonPointers": ["/spec/replicas"] }));
    assert_ne!(present, change);
    let live = json!({ "metadata": { "annotations": { CONFIG_SPEC_HASH_ANNOTATION: "old" } } });
    let ignored = ignoring(&json!({ "condition": "OnSpokeChange", "jsonPointers": ["/spec/replicas"] }));
    assert_eq!(object_of(step(&ignored, Some(&live), &Known::New))["spec"]["replicas"], json!(2));
}

#[test]
fn fields_that_nobody_can_find_are_told() {
    let ignored = ignoring(&json!({ "jqPathExpressions": ["until(false; .)"] }));
    assert!(matches!(try_step(&ignored, None, &Known::New), Err(IgnoreFieldsError::Jq { .. })));
}
