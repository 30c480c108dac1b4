//! What is written, and what becomes of it.

use axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::IntoResponse,
    routing::{get, post},
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::core::Status;

use super::*;
use crate::{
    fleet::ReportsDefects,
    store::{Change, Store},
};

fn namespace(value: Value) -> Namespace {
    serde_json::from_value(value).expect("a valid namespace")
}

#[test]
fn what_is_equal_is_not_written() {
    let stored =
        namespace(json!({ "metadata": { "name": "a", "labels": { "x": "1" } }, "status": { "phase": "Active" } }));
    assert_eq!(difference_of(&stored, &stored.clone(), |_| true), None);
    let mut touched = stored.clone();
    touched.metadata.finalizers = Some(Vec::new());
    assert_eq!(difference_of(&stored, &touched, |_| true), None);
}

#[test]
fn a_patch_holds_what_differs_and_for_which_state() {
    let stored = json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "7", "labels": { "kept": "1", "gone": "2", "new": "3" } } });
    let mut wanted = stored.clone();
    wanted["metadata"]["labels"] = json!({ "kept": "1", "new": "4" });
    let patch = difference_of(&namespace(stored), &namespace(wanted), |field| field != "status").expect("they differ");
    assert_eq!(
        patch,
        json!({ "metadata": { "uid": "u", "resourceVersion": "7", "labels": { "gone": null, "new": "4" } } })
    );
}

#[test]
fn what_is_not_said_of_an_object_stays() {
    let stored =
        namespace(json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "7", "labels": { "x": "1" } } }));
    let wanted = |value| namespace(json!({ "metadata": { "name": "a", "labels": { "y": value } } }));
    let patch = lack_of(&stored, &wanted("2")).expect("the label is not there");
    assert_eq!(patch, json!({ "metadata": { "uid": "u", "resourceVersion": "7", "labels": { "y": "2" } } }));
    let both = namespace(json!({ "metadata": { "name": "a", "labels": { "x": "1", "y": "2" } } }));
    assert_eq!(lack_of(&both, &wanted("2")), None);
}

#[test]
fn the_status_is_written_on_its_own() {
    let stored =
        namespace(json!({ "metadata": { "name": "a", "labels": { "x": "1" } }, "status": { "phase": "Active" } }));
    let wanted = namespace(json!({ "metadata": { "name": "a" }, "status": { "phase": "Terminating" } }));
    let patch = difference_of(&stored, &wanted, |field| field == "status").expect("they differ");
    assert_eq!(patch["status"], json!({ "phase": "Terminating" }));
    assert!(patch["metadata"].get("labels").is_none());
}

/// A fleet of namespaces.
#[derive(Default)]
struct Shelf(Store<Namespace>);

impl ReportsDefects for Shelf {}

impl Tracks<Namespace> for Shelf {
    fn store(&mut self) -> &mut Store<Namespace> {
        &mut self.0
    }

    fn changed(&mut self, _: &Change<Namespace>) {}
}

/// What an API server answers to who reads the source, and to who patches the stored object.
#[derive(Clone)]
struct Answers {
    source: (StatusCode, Value),
    patch: (StatusCode, Value),
}

impl Answers {
    fn of(source: (StatusCode, Value), patch: (StatusCode, Value)) -> Client {
        let source_path = "/api/v1/namespaces/home/configmaps/source";
        let routes = Router::new()
            .route(
                source_path,
                get(async |State(it): State<Self>| (it.source.0, it.source.1.to_string()).into_response()),
            )
            .route(
                "/api/v1/namespaces/a/status",
                axum::routing::patch(async |State(it): State<Self>, body: String| {
                    let mut answer = it.patch.1;
                    if it.patch.0 == StatusCode::OK {
                        let patch: Value = serde_json::from_str(&body).expect("patches are JSON");
                        answer["status"] = patch["status"].clone();
                    }
                    (it.patch.0, answer.to_string()).into_response()
                }),
            )
            .with_state(Self { source, patch });
        Client::new(routes, "home")
    }
}

fn failure(code: u16, message: &str) -> (StatusCode, Value) {
    let reason = if code == 404 { "NotFound" } else { "Played" };
    (StatusCode::from_u16(code).expect("a code"), json!(Status::failure(message, reason).with_code(code)))
}

fn there() -> (StatusCode, Value) {
    (
        StatusCode::OK,
        json!({ "metadata": { "name": "source", "namespace": "home" }, "data": { "phase": "Terminating" } }),
    )
}

fn stored() -> Namespace {
    namespace(
        json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "7" }, "status": { "phase": "Active" } }),
    )
}

/// Sends a write of the phase that the source names, and says what has become of the stored object.
async fn send(client: Client) -> (Result<(), kube::Error>, Option<String>) {
    let fleet = Shared::new(Shelf::default());
    fleet.apply(stored());
    let write =
        Write::<Shelf>::status_from(&stored(), ObjectKey::namespaced("home", "source"), |source: &ConfigMap| {
            let phase = source.data.as_ref().and_then(|data| data.get("phase")).ok_or("it names no phase")?;
            let mut wanted = stored();
            wanted.status.get_or_insert_default().phase = Some(phase.clone());
            Ok(wanted)
        });
    let sent = write.send(client, fleet.clone(), "test", &Metrics::new()).await;
    let phase = fleet.read().0.get(&ObjectKey::cluster_wide("a")).map(|it| it.status.clone()?.phase);
    (sent, phase.flatten())
}

#[tokio::test]
async fn a_status_is_made_of_an_object_that_is_read_for_it() {
    let patched = json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "8" } });
    let (sent, phase) = send(Answers::of(there(), (StatusCode::OK, patched.clone()))).await;
    sent.expect("it is written");
    assert_eq!(phase.as_deref(), Some("Terminating"));
    // Nothing is sent where there is no difference.
    let same = (StatusCode::OK, json!({ "metadata": {}, "data": { "phase": "Active" } }));
    let (sent, phase) = send(Answers::of(same, failure(500, "no"))).await;
    sent.expect("there is nothing to write");
    assert_eq!(phase.as_deref(), Some("Active"));
}

#[tokio::test]
async fn a_source_that_is_of_no_use_takes_nothing_away() {
    let no_phase = (StatusCode::OK, json!({ "metadata": {} }));
    for (answer, why) in [
        (failure(404, "configmaps \"source\" not found"), "configmaps \"source\" not found"),
        (failure(403, "you may not"), "you may not"),
        (failure(500, "no idea"), "no idea"),
        (no_phase, "it names no phase"),
    ] {
        let (sent, phase) = send(Answers::of(answer, failure(500, "nobody should ask"))).await;
        let error = sent.expect_err("nothing could be made of it");
        let useless = Useless::in_error(&error).expect("it is said why");
        assert_eq!(useless.to_string(), format!("the ConfigMap home/source is of no use: {why}"));
        assert_eq!(phase.as_deref(), Some("Active"));
    }
}

#[tokio::test]
async fn a_server_that_is_busy_is_still_busy_when_it_is_read() {
    let (sent, _) = send(Answers::of(failure(429, "later"), failure(500, "nobody should ask"))).await;
    assert!(matches!(&sent, Err(kube::Error::Api(status)) if is_busy(status)), "{sent:?}");
}

#[tokio::test]
async fn a_stored_object_that_is_gone_is_gone() {
    let (sent, phase) = send(Answers::of(there(), failure(404, "not found"))).await;
    assert!(sent.is_err());
    assert_eq!(phase, None);
}

/// A server on which the namespace is there already, with a label that keeps it out of sight. It answers to who replaces it with what it was sent.
fn occupied() -> Client {
    let there = json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "7", "labels": { "hidden": "1" } } });
    let exists = json!(Status::failure("namespaces \"a\" already exists", "AlreadyExists").with_code(409));
    let routes = Router::new()
        .route("/api/v1/namespaces", post(async move || (StatusCode::CONFLICT, exists.to_string())))
        .route("/api/v1/namespaces/a", get(async move || there.to_string()).put(async |body: String| body));
    Client::new(routes, "home")
}

#[tokio::test]
async fn what_is_there_and_was_not_seen_is_taken_over_as_it_was_found() {
    let made = || namespace(json!({ "metadata": { "name": "a" } }));
    let seen = |there: &Namespace| {
        let mut wanted = there.clone();
        wanted.labels_mut().insert("seen".to_owned(), "1".to_owned());
        Some(wanted)
    };
    let fleet = Shared::new(Shelf::default());
    let write = Write::<Shelf>::take(made(), seen);
    write.send(occupied(), fleet.clone(), "test", &Metrics::new()).await.expect("it is taken over");
    let stored = fleet.read().0.get(&ObjectKey::cluster_wide("a")).expect("it is known now").clone();
    assert_eq!(stored.metadata.resource_version.as_deref(), Some("7"), "for this state and no other");
    let labels: Vec<_> = stored.labels().keys().collect();
    assert_eq!(labels, ["hidden", "seen"]);

    let fleet = Shared::new(Shelf::default());
    let write = Write::<Shelf>::take(made(), |_| None);
    let error = write.send(occupied(), fleet.clone(), "test", &Metrics::new()).await.expect_err("it is left alone");
    assert!(error.to_string().contains("already exists"), "{error}");
    assert!(fleet.read().0.get(&ObjectKey::cluster_wide("a")).is_none());
}
