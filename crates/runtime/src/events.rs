//! Events: what the process has to say about objects, for people who look at them.

mod memory;

use drover_engine::plan::Event;
use k8s_openapi::{
    api::events::v1::{Event as ApiEvent, EventSeries},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;

use self::memory::{Memory, Said};
use crate::clock::{Clock, Moment};

/// How many bytes of a note the server takes.
const NOTE: usize = 1024;

/// How many bytes of a reporter's name the server takes.
const INSTANCE: usize = 128;

/// Where events about objects without a namespace are kept.
const CLUSTER_WIDE: &str = "default";

/// Sends events in the name of one controller. The same said again is counted, not sent anew.
///
/// kube has one too, but that leaves out the note when it compares, so that of two notes under one reason only the first is ever
/// seen; and it takes the time from the machine.
pub(crate) struct Recorder {
    client: Client,
    controller: &'static str,
    instance: String,
    clock: Clock,
    memory: Mutex<Memory>,
}

impl Recorder {
    /// A recorder for a controller, in a process of that name.
    pub(crate) fn new(client: Client, controller: &'static str, process: Option<&str>, clock: Clock) -> Self {
        let instance = cut(process.unwrap_or(controller), INSTANCE).to_owned();
        Self { client, controller, instance, clock, memory: Mutex::default() }
    }

    /// Says it, or counts that it was said once more.
    pub(crate) async fn send(&self, event: &Event) -> kube::Result<()> {
        let now = self.clock.moment();
        let events = Api::namespaced(self.client.clone(), namespace_of(event));
        let lately = self.memory().recall(event, now.tick);
        let said = match lately {
            None => self.say(&events, event, now).await?,
            Some(said) => match repeat(&events, &said, now).await {
                // The server has forgotten it, or somebody has removed it.
                Err(kube::Error::Api(status)) if status.is_not_found() => self.say(&events, event, now).await?,
                repeated => repeated?,
            },
        };
        self.memory().keep(event, said);
        Ok(())
    }

    async fn say(&self, events: &Api<ApiEvent>, event: &Event, now: Moment) -> kube::Result<Said> {
        let metadata = ObjectMeta {
            namespace: Some(namespace_of(event).to_owned()),
            generate_name: Some(stem(event.about.name.as_deref().unwrap_or(self.controller))),
            ..ObjectMeta::default()
        };
        let made = ApiEvent {
            metadata,
            // The server wants one, and shows it nowhere.
            action: Some(event.reason.to_owned()),
            event_time: Some(MicroTime(now.time)),
            note: Some(cut(&event.note, NOTE).to_owned()),
            reason: Some(event.reason.to_owned()),
            regarding: Some(event.about.clone()),
            reporting_controller: Some(self.controller.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(event.severity.as_str().to_owned()),
            ..ApiEvent::default()
        };
        let made = events.create(&PostParams::default(), &made).await?;
        Ok(Said { name: made.name_any(), times: 1, last: now.tick })
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock()
    }
}

async fn repeat(events: &Api<ApiEvent>, said: &Said, now: Moment) -> kube::Result<Said> {
    let times = said.times.saturating_add(1);
    let series = EventSeries { count: times, last_observed_time: MicroTime(now.time) };
    let patch = Patch::Merge(json!({ "series": series }));
    events.patch(&said.name, &PatchParams::default(), &patch).await?;
    Ok(Said { name: said.name.clone(), times, last: now.tick })
}

/// The namespace that an event is recorded in.
fn namespace_of(event: &Event) -> &str {
    event.about.namespace.as_deref().unwrap_or(CLUSTER_WIDE)
}

/// What the name of an event begins with; the server appends something that is unique. It takes 58 characters at most.
fn stem(about: &str) -> String {
    // What is cut within a name must not leave a mark of punctuation before the dash.
    format!("{}-", cut(about, 57).trim_end_matches(['-', '.']))
}

/// As much of a text as fits.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use axum::{
        Router,
        body::Bytes,
        extract::{Path, State},
        http::StatusCode,
        routing::{patch, post},
    };
    use k8s_openapi::{
        api::core::v1::{ConfigMap, Namespace},
        jiff::Timestamp,
    };
    use serde_json::Value;

    use super::{memory::SERIES, *};
    use crate::clock::{ManualClock, after};

    const START: Timestamp = Timestamp::constant(1_800_000_000, 0);

    /// An API server that keeps what it is told, and gives each event a number for a name.
    #[derive(Clone, Default)]
    struct Book(Arc<Mutex<Pages>>);

    #[derive(Default)]
    struct Pages {
        made: Vec<Value>,
        repeated: Vec<(String, Value)>,
        /// Whether an event that was made is gone.
        forgets: bool,
    }

    impl Book {
        fn client(&self) -> Client {
            let events = "/apis/events.k8s.io/v1/namespaces/{namespace}/events";
            let routes = Router::new()
                .route(events, post(make))
                .route(&format!("{events}/{{name}}"), patch(count))
                .with_state(self.clone());
            Client::new(routes, "default")
        }

        fn pages(&self) -> MutexGuard<'_, Pages> {
            self.0.lock()
        }
    }

    async fn make(State(book): State<Book>, Path(namespace): Path<String>, body: Bytes) -> String {
        let mut event: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(event["metadata"]["namespace"], json!(namespace));
        let made = &mut book.pages().made;
        event["metadata"]["name"] = json!(made.len().to_string());
        made.push(event.clone());
        event.to_string()
    }

    async fn count(
        State(book): State<Book>,
        Path((_, name)): Path<(String, String)>,
        body: Bytes,
    ) -> Result<String, (StatusCode, String)> {
        let pages = &mut book.pages();
        if pages.forgets {
            let status = kube::core::Status::failure("played", "NotFound").with_code(404);
            return Err((StatusCode::NOT_FOUND, serde_json::to_string(&status).unwrap()));
        }
        let event = pages.made[name.parse::<usize>().unwrap()].to_string();
        pages.repeated.push((name, serde_json::from_slice(&body).unwrap()));
        Ok(event)
    }

    fn recorder(book: &Book) -> (ManualClock, Recorder) {
        let clock = ManualClock::at(START);
        let recorder = Recorder::new(book.client(), "drover-tests", Some("hub-1"), clock.clock());
        (clock, recorder)
    }

    fn config() -> ConfigMap {
        let mut config = ConfigMap::default();
        config.metadata.namespace = Some("home".to_owned());
        config.metadata.name = Some("config".to_owned());
        config.metadata.uid = Some("u-1".to_owned());
        config
    }

    #[tokio::test]
    async fn an_event_says_who_says_what_about_whom_and_when() {
        let book = Book::default();
        let (_, recorder) = recorder(&book);
        recorder.send(&Event::warning(&config(), "Odd", "It looks odd.")).await.unwrap();
        let event = book.pages().made[0].clone();
        let regarding =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "namespace": "home", "name": "config", "uid": "u-1" });
        assert_eq!(event["regarding"], regarding);
        assert_eq!(event["metadata"]["generateName"], "config-");
        assert_eq!((&event["type"], &event["reason"]), (&json!("Warning"), &json!("Odd")));
        assert_eq!(event["note"], "It looks odd.");
        assert_eq!(event["reportingController"], "drover-tests");
        assert_eq!(event["reportingInstance"], "hub-1");
        assert_eq!(event["eventTime"], serde_json::to_value(MicroTime(START)).unwrap());
    }

    #[tokio::test]
    async fn what_is_said_again_is_counted_and_another_note_is_another_event() {
        let book = Book::default();
        let (clock, recorder) = recorder(&book);
        for (note, minute) in [("One.", 0), ("One.", 1), ("Two.", 2), ("One.", 3)] {
            clock.set(after(START, Duration::from_mins(minute)));
            recorder.send(&Event::normal(&config(), "Counted", note)).await.unwrap();
        }
        let notes: Vec<_> = book.pages().made.iter().map(|event| event["note"].clone()).collect();
        assert_eq!(notes, ["One.", "Two."]);
        let series = |count, minute| {
            let time = MicroTime(after(START, Duration::from_mins(minute)));
            ("0".to_owned(), json!({ "series": { "count": count, "lastObservedTime": time } }))
        };
        assert_eq!(book.pages().repeated, [series(2, 1), series(3, 3)]);
    }

    #[tokio::test]
    async fn what_was_said_long_ago_or_is_gone_is_said_anew() {
        let book = Book::default();
        let (clock, recorder) = recorder(&book);
        let event = Event::normal(&config(), "Said", "Said.");
        recorder.send(&event).await.unwrap();
        clock.advance(SERIES);
        recorder.send(&event).await.unwrap();
        assert_eq!(book.pages().made.len(), 2);
        assert!(book.pages().repeated.is_empty());
        book.pages().forgets = true;
        recorder.send(&event).await.unwrap();
        assert_eq!(book.pages().made.len(), 3);
    }

    #[tokio::test]
    async fn objects_without_a_namespace_and_long_notes_are_no_trouble() {
        let book = Book::default();
        let (_, recorder) = recorder(&book);
        recorder.send(&Event::normal(&Namespace::default(), "Long", "ä".repeat(600))).await.unwrap();
        let event = book.pages().made[0].clone();
        assert_eq!(event["metadata"]["namespace"], "default");
        assert_eq!(event["note"], "ä".repeat(512));
        assert_eq!(cut("aää", 2), "a");
        assert_eq!(stem(&format!("{}-.b", "a".repeat(55))), format!("{}-", "a".repeat(55)));
    }
}
