//! Informers, on an API server that is played.

use axum::{
    Router,
    extract::{RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use futures_util::FutureExt;
use kube::{
    api::{ApiResource, DynamicObject, GroupVersionKind},
    core::Status,
};
use serde_json::json;

use super::*;

/// What the server has of the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Things {
    /// One object, in that version.
    One(u64),
    /// One object, and one that is nested too deeply.
    OneAndDamaged,
    /// Nothing but a refusal.
    None(u16),
}

#[derive(Clone)]
struct Played(Arc<watch::Sender<Things>>);

impl Played {
    fn with(things: Things) -> Self {
        Self(Arc::new(watch::Sender::new(things)))
    }

    fn informer(&self, freshness: &Freshness) -> Informer<DynamicObject> {
        self.informer_counting(freshness, &Metrics::new())
    }

    fn informer_counting(&self, freshness: &Freshness, metrics: &Metrics) -> Informer<DynamicObject> {
        let routes = Router::new().route("/apis/example.com/v1/things", get(answer)).with_state(self.clone());
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Thing"));
        let member = Arc::new(freshness.join("Thing"));
        Informer::of(Client::new(routes, "default"), &kind, member, metrics)
    }
}

async fn answer(State(Played(things)): State<Played>, RawQuery(query): RawQuery) -> Response {
    let now = *things.borrow();
    match now {
        Things::None(code) => {
            let status = Status::failure("no", "Refused").with_code(code);
            let status = serde_json::to_vec(&status).expect("a status is JSON");
            (StatusCode::from_u16(code).expect("a valid code"), status).into_response()
        }
        Things::One(_) | Things::OneAndDamaged if query.as_ref().is_some_and(|query| query.contains("watch=true")) => {
            // Nothing happens until it ends, because something else is served.
            let _ = things.subscribe().wait_for(|things| *things != now).await;
            ().into_response()
        }
        Things::OneAndDamaged => {
            let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
            let items = format!(
                r#"{{ "metadata": {{ "name": "deep" }}, "spec": {deep} }}, {{ "metadata": {{ "name": "one" }} }}"#
            );
            format!(r#"{{ "metadata": {{ "resourceVersion": "1" }}, "items": [{items}] }}"#).into_response()
        }
        Things::One(version) => {
            let version = version.to_string();
            let one = json!({ "metadata": { "name": "one", "resourceVersion": version } });
            json!({ "metadata": { "resourceVersion": version }, "items": [one] }).to_string().into_response()
        }
    }
}

/// Writes down what is seen.
#[derive(Default)]
struct Notes(watch::Sender<Vec<String>>);

impl Observer<DynamicObject> for Notes {
    fn observe(&self, sighting: Sighting<DynamicObject>) {
        let note = match sighting.map(|object| object.name_any()) {
            Sighting::Object(name) => name,
            Sighting::Damaged(damaged) => format!("damaged {}", damaged.metadata.name.unwrap_or_default()),
            other => format!("{other:?}"),
        };
        self.0.send_modify(|notes| notes.push(note));
    }
}

impl Notes {
    async fn until(&self, last: &str) {
        let mut notes = self.0.subscribe();
        let _ = notes.wait_for(|notes| notes.last().is_some_and(|note| note == last)).await;
    }

    fn take(&self) -> Vec<String> {
        self.0.send_replace(Vec::new())
    }
}

fn is_complete(freshness: &Freshness) -> bool {
    freshness.complete().now_or_never().is_some()
}

#[test]
fn a_member_is_waited_for_until_it_has_listed_or_left() {
    let freshness = Freshness::default();
    assert!(is_complete(&freshness), "there is nobody to wait for");
    let (first, second) = (freshness.join("First"), freshness.join("Second"));
    first.reached(0);
    assert!(!is_complete(&freshness));
    assert_eq!(freshness.missing(), ["Second"]);
    drop(second);
    assert!(is_complete(&freshness));
    let third = freshness.join("Third");
    assert!(!is_complete(&freshness), "it came later, and counts all the same");
    third.reached(0);
    assert!(is_complete(&freshness));
}

#[test]
fn a_fresh_list_is_waited_for_until_every_member_has_it() {
    let freshness = Freshness::default();
    let (first, second) = (freshness.join("First"), freshness.join("Second"));
    first.reached(0);
    second.reached(0);
    assert!(freshness.renew().now_or_never().is_none());
    let wanted = *first.wanted().borrow();
    first.reached(wanted);
    // A list that was begun before may end later, and is no fresh one.
    first.reached(0);
    assert!(!is_complete(&freshness));
    second.reached(wanted);
    assert!(is_complete(&freshness));
}

#[tokio::test]
async fn a_kind_that_is_refused_is_not_waited_for_and_says_why() {
    for (code, refusal) in [(404, Refusal::NoSuchKind), (403, Refusal::Forbidden), (500, Refusal::Failing)] {
        let (freshness, notes) = (Freshness::default(), Notes::default());
        let informer = Played::with(Things::None(code)).informer(&freshness);
        assert!(!is_complete(&freshness));
        assert_eq!(informer.run_until_refused(&notes).await, refusal);
        assert!(is_complete(&freshness), "{refusal:?}");
        assert_eq!(notes.take(), ["ListBegins".to_owned(), format!("Refused({refusal:?})")]);
    }
}

#[tokio::test]
async fn a_kind_is_watched_until_it_is_refused_and_listed_anew_when_asked() {
    let (freshness, notes) = (Freshness::default(), Notes::default());
    let played = Played::with(Things::One(1));
    let informer = played.informer(&freshness);
    let test = async {
        freshness.complete().await;
        assert_eq!(notes.take(), ["ListBegins", "one", "ListEnds"]);
        freshness.renew().await;
        assert_eq!(notes.take(), ["ListBegins", "one", "ListEnds"]);
        played.0.send_replace(Things::None(404));
        notes.until("Refused(NoSuchKind)").await;
    };
    let (refusal, ()) = tokio::join!(informer.run_until_refused(&notes), test);
    assert_eq!(refusal, Refusal::NoSuchKind);
}

#[tokio::test]
async fn what_was_listed_and_fails_now_stays_as_it_was() {
    let (freshness, notes) = (Freshness::default(), Notes::default());
    let played = Played::with(Things::One(1));
    let informer = played.informer(&freshness);
    let test = async {
        freshness.complete().await;
        played.0.send_replace(Things::None(500));
        notes.until("Broken").await;
    };
    tokio::select! {
        refusal = informer.run_until_refused(&notes) => panic!("{refusal:?}"),
        () = test => {}
    }
    assert_eq!(notes.take(), ["ListBegins", "one", "ListEnds", "Broken"]);
}

#[tokio::test]
async fn damaged_object_is_counted_and_stops_no_watch() {
    let (freshness, notes, metrics) = (Freshness::default(), Notes::default(), Metrics::new());
    let played = Played::with(Things::OneAndDamaged);
    let informer = played.informer_counting(&freshness, &metrics);
    let test = async {
        freshness.complete().await;
        assert_eq!(notes.take(), ["ListBegins", "damaged deep", "one", "ListEnds"]);
        let line = "drover_damaged_objects{kind=\"Thing\"} 1";
        assert!(metrics.encode().contains(line), "{}", metrics.encode());
        played.0.send_replace(Things::One(2));
        freshness.renew().await;
        assert_eq!(notes.take().last().map(String::as_str), Some("ListEnds"));
        assert!(metrics.encode().contains("drover_damaged_objects{kind=\"Thing\"} 0"), "{}", metrics.encode());
    };
    tokio::select! {
        refusal = informer.run_until_refused(&notes) => panic!("{refusal:?}"),
        () = test => {}
    }
}
