//! What is sent, and what becomes of the cached object.

use std::sync::Mutex;

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{Method, StatusCode, Uri},
    response::IntoResponse,
};
use drover_engine::plan::ObjectKey;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    jiff::Timestamp,
};
use kube::core::Status;
use serde_json::{Value, json};

use super::*;
use crate::{
    cache::Tracks,
    caches,
    clock::ManualClock,
    store::{Change, Store},
};

/// A fleet of namespaces.
#[derive(Default)]
struct Shelf(Store<Namespace>);

caches!(Shelf => (); Namespace);

impl Tracks<Namespace> for Shelf {
    fn store(&mut self) -> &mut Store<Namespace> {
        &mut self.0
    }

    fn changed(&mut self, _: &Change<Namespace>, (): &()) {}
}

/// A server that gives one answer to everything, and keeps what it was asked.
#[derive(Clone)]
struct Server {
    answer: (StatusCode, Value),
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

async fn answer(State(server): State<Server>, method: Method, uri: Uri, body: Bytes) -> impl IntoResponse {
    let body = serde_json::from_slice(&body).expect("bodies are JSON");
    server.asked.lock().expect("no panic").push((format!("{method} {uri}"), body));
    (server.answer.0, server.answer.1.to_string())
}

/// Sends a write to a server that answers this. Returns what was asked, the result, and the phase
/// of the cached namespace if it is cached.
async fn send(write: &Write, code: u16, answered: Value) -> ((String, Value), Result<(), kube::Error>, Option<String>) {
    let code = StatusCode::from_u16(code).expect("a code");
    let server = Server { answer: (code, answered), asked: Arc::default() };
    let cache = SharedCache::new(Shelf::default(), ());
    cache.apply(stored());
    let client = Client::new(Router::new().fallback(answer).with_state(server.clone()), "default");
    let clock = ManualClock::at(Timestamp::UNIX_EPOCH).clock();
    let sent = Writer::new(client, cache.clone(), clock, "test").send(write).await;
    let cached = cache.read().0.get(&ObjectKey::cluster_wide("a")).map(|it| phase_of(it));
    let asked = server.asked.lock().expect("no panic").pop().unwrap_or_default();
    (asked, sent, cached)
}

fn namespace(version: &str, phase: &str, finalizers: &[&str]) -> Value {
    json!({ "kind": "Namespace",
        "metadata": { "name": "a", "uid": "u", "resourceVersion": version, "finalizers": finalizers },
        "status": { "phase": phase } })
}

fn stored() -> Namespace {
    serde_json::from_value(namespace("7", "Active", &[])).expect("a namespace")
}

fn phase_of(namespace: &Namespace) -> String {
    namespace.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default()
}

fn leaving() -> Write {
    let mut wanted = stored();
    wanted.status.get_or_insert_default().phase = Some("Terminating".to_owned());
    Write::status(&stored(), &wanted).expect("they differ")
}

fn failure(code: u16, reason: &str) -> Value {
    json!(Status::failure("played", reason).with_code(code))
}

#[tokio::test]
async fn answer_is_cached_before_the_write_returns() {
    let (asked, sent, cached) = send(&leaving(), 200, namespace("8", "Terminating", &[])).await;
    sent.expect("it is accepted");
    let patch = json!({ "metadata": { "uid": "u", "resourceVersion": "7" }, "status": { "phase": "Terminating" } });
    assert_eq!(asked, ("PATCH /api/v1/namespaces/a/status?&fieldManager=test".to_owned(), patch));
    assert_eq!(cached.as_deref(), Some("Terminating"));
}

#[tokio::test]
async fn object_that_is_not_found_leaves_the_cache_and_a_conflict_does_not_remove_it() {
    let (_, sent, cached) = send(&leaving(), 404, failure(404, "NotFound")).await;
    assert!(sent.is_err());
    assert_eq!(cached, None);
    let (_, sent, cached) = send(&leaving(), 409, failure(409, "Conflict")).await;
    assert!(sent.is_err());
    assert_eq!(cached.as_deref(), Some("Active"));
}

#[tokio::test]
async fn creation_that_finds_no_namespace_removes_nothing() {
    let (asked, sent, cached) = send(&Write::create(stored()), 404, failure(404, "NotFound")).await;
    assert!(sent.is_err());
    assert_eq!(asked.0, "POST /api/v1/namespaces?&fieldManager=test");
    assert_eq!(cached.as_deref(), Some("Active"));
}

#[tokio::test]
async fn deleted_object_stays_while_it_has_finalizers() {
    let status = json!({ "kind": "Status", "status": "Success" });
    for (answer, cached) in [
        (status, None),
        (namespace("8", "Terminating", &[]), None),
        (namespace("8", "Terminating", &["kept"]), Some("Terminating")),
    ] {
        let (asked, sent, left) = send(&Write::delete(&stored()), 200, answer).await;
        sent.expect("it is accepted");
        let only = json!({ "preconditions": { "uid": "u", "resourceVersion": "7" } });
        assert_eq!(asked, ("DELETE /api/v1/namespaces/a?".to_owned(), only));
        assert_eq!(left.as_deref(), cached);
    }
}

#[tokio::test]
async fn write_of_a_kind_that_is_not_cached_is_not_sent() {
    let mut config = ConfigMap::default();
    config.metadata.name = Some("a".to_owned());
    let (asked, sent, _) = send(&Write::create(config), 201, json!({})).await;
    assert_eq!(asked, Default::default());
    let error = sent.expect_err("its answer would be lost").to_string();
    assert!(error.contains("ConfigMap"), "{error}");
}
