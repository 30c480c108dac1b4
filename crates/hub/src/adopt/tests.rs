//! Creation of works where one of the name may exist.

use std::sync::Arc;

use axum::{
    Router,
    http::StatusCode,
    routing::{get, post},
};
use drover_api::{
    names::{ADDON_NAME_LABEL, ADDON_NAMESPACE_LABEL, GIVEN_ANNOTATION, SET_ANNOTATION},
    work::{ManifestWork, ManifestWorkSpec},
};
use drover_engine::plan::WriteResult;
use drover_runtime::{cache::SharedCache, clock::ManualClock};
use k8s_openapi::jiff::Timestamp;
use kube::{Client, ResourceExt, core::Status};
use serde_json::{Value, json};

use super::*;
use crate::cache::Queues;

/// A server on which the work exists. It answers a patch with the work and the labels of the patch.
fn occupied(annotations: &Value) -> Client {
    let found = json!({ "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": { "name": "a", "namespace": "one", "uid": "u", "resourceVersion": "7",
            "labels": { "team": "a" }, "annotations": annotations },
        "spec": {} });
    let exists = json!(Status::failure("\"a\" already exists", "AlreadyExists").with_code(409));
    let works = "/apis/work.open-cluster-management.io/v1/namespaces/one/manifestworks";
    let before = found.clone();
    let patched = async move |patch: String| {
        let patch: Value = serde_json::from_str(&patch).expect("a patch");
        let mut work = before;
        let labels = work["metadata"]["labels"].as_object_mut().expect("labels");
        labels.extend(patch["metadata"]["labels"].as_object().expect("labels").clone());
        work["metadata"]["resourceVersion"] = json!("8");
        work["metadata"]["annotations"] = patch["metadata"]["annotations"].clone();
        work.to_string()
    };
    let routes = Router::new()
        .route(works, post(async move || (StatusCode::CONFLICT, exists.to_string())))
        .route(&format!("{works}/a"), get(async move || found.to_string()).patch(patched));
    Client::new(routes, "one")
}

fn wanted() -> ManifestWork {
    let mut work = ManifestWork::new("a", ManifestWorkSpec::default());
    work.metadata.namespace = Some("one".to_owned());
    work.labels_mut().insert(ADDON_NAME_LABEL.to_owned(), "hello".to_owned());
    work.annotations_mut().insert(SET_ANNOTATION.to_owned(), "0123456789abcdef".to_owned());
    work
}

/// Runs the action, and returns the result and the work that is cached then.
async fn run(annotations: &Value) -> (Result<(), ActionError>, Option<Arc<CachedWork>>) {
    let clock = ManualClock::at(Timestamp::UNIX_EPOCH).clock();
    let cache = SharedCache::new(Cache::new(clock.clone()), Queues::new(&clock));
    let writer = Writer::new(occupied(annotations), cache.clone(), clock, "test");
    let result = CreateOrAdopt::new(wanted().into(), WorkOwner::AddOn).execute(writer).await;
    let cached = cache.read().works.get(&ObjectKey::namespaced("one", "a")).cloned();
    (result, cached)
}

#[tokio::test]
async fn work_of_the_hub_is_adopted_in_the_state_in_which_it_was_found() {
    let (result, cached) = run(&json!({ SET_ANNOTATION: "fedcba9876543210" })).await;
    result.expect("it is adopted");
    let cached = cached.expect("it is cached");
    assert_eq!(cached.resource_version().as_deref(), Some("8"));
    let addon = cached.addon.as_ref().expect("it is the add-on's again");
    assert_eq!((addon.addon(), addon.revision()), (&ObjectKey::namespaced("one", "hello"), Some("0123456789abcdef")));
}

#[tokio::test]
async fn work_of_another_client_is_left_alone() {
    let (result, cached) = run(&json!({})).await;
    let error = result.expect_err("the name is taken");
    assert_eq!(error.result(), WriteResult::Exists("\"a\" already exists".to_owned()));
    assert!(cached.is_none());
}

/// The labels and annotations of a work after its adoption; `None` if it is left alone.
fn after_adoption(owner: WorkOwner, labels: &Value, annotations: &Value) -> Option<(Vec<String>, Vec<String>)> {
    let there = json!({ "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": { "name": "a", "namespace": "one", "labels": labels, "annotations": annotations }, "spec": {} });
    let there = serde_json::from_value(there).expect("a work");
    let adopted = CreateOrAdopt::new(wanted().into(), owner).adopted(&there)?;
    Some((adopted.labels().keys().cloned().collect(), adopted.annotations().keys().cloned().collect()))
}

#[test]
fn labels_and_annotations_of_others_stay_on_an_adopted_work() {
    for (owner, mark) in [(WorkOwner::AddOn, SET_ANNOTATION), (WorkOwner::ReplicaSet, GIVEN_ANNOTATION)] {
        let found = after_adoption(owner, &json!({ "team": "a" }), &json!({ "note": "b", mark: "x" }));
        let (labels, annotations) = found.expect("it is adopted");
        assert_eq!(labels, [ADDON_NAME_LABEL, "team"], "{owner:?}");
        assert!(annotations.contains(&"note".to_owned()) && annotations.contains(&SET_ANNOTATION.to_owned()));
    }
}

#[test]
fn work_of_an_add_on_on_another_cluster_is_left_alone() {
    let adopts = |labels: &Value| after_adoption(WorkOwner::AddOn, labels, &json!({})).is_some();
    assert!(adopts(&json!({ ADDON_NAME_LABEL: "hello" })), "its label is enough");
    assert!(!adopts(&json!({ ADDON_NAME_LABEL: "hello", ADDON_NAMESPACE_LABEL: "two" })));
    assert!(!adopts(&json!({ ADDON_NAME_LABEL: "other" })));
}
