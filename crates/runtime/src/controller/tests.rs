//! Controllers, on an API server that is played and a clock that the test moves.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use drover_engine::plan::NoAction;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::{Status, response::StatusDetails};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinHandle};

use super::*;
use crate::{
    cache::Tracks,
    caches,
    clock::{ManualClock, Tick},
    informer::Freshness,
    lease::Leadership,
    store::{Change, ObjectKey, Store},
};

/// A fleet of objects that are there or not.
#[derive(Default)]
struct Shelf(Store<ConfigMap>);

caches!(Shelf => (); ConfigMap);

caches!(() => (); );

impl Tracks<ConfigMap> for Shelf {
    fn store(&mut self) -> &mut Store<ConfigMap> {
        &mut self.0
    }

    fn changed(&mut self, _: &Change<ConfigMap>, (): &()) {}
}

fn object(name: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.namespace = Some("home".to_owned());
    object.metadata.name = Some(name.to_owned());
    object
}

/// Makes what is missing, and says so.
struct Maker;

impl Reconciler<Shelf> for Maker {
    type Key = String;
    type State = ();
    type Action = NoAction;

    const NAME: &'static str = "maker";

    fn plan(&self, shelf: &Shelf, key: &String, (): &mut (), _: Timestamp) -> Plan {
        let object = object(key);
        if shelf.0.get(&ObjectKey::of(&object)).is_some() {
            return Plan::default();
        }
        let made = Event::normal(&object, "Made", "It was missing.");
        Plan::from_iter([Write::create(object)]).with_events([made])
    }
}

/// The name of an object that the server does not want.
const REFUSED: &str = "refused";
/// The name of an object that somebody else has made.
const TAKEN: &str = "taken";

/// An API server on which objects are made.
#[derive(Clone)]
struct Played {
    seen: Arc<watch::Sender<Seen>>,
    mood: Arc<watch::Sender<Mood>>,
    clock: Clock,
}

#[derive(Default)]
struct Seen {
    /// When requests came.
    arrivals: Vec<Tick>,
    in_flight: usize,
    made: Vec<String>,
    events: Vec<Value>,
}

/// How it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Kind,
    /// Not at all for now.
    Silent,
    /// With a refusal and a pause in seconds.
    Busy {
        pause: u32,
    },
    /// It takes objects, but no events.
    Deaf,
}

impl Played {
    fn new(clock: &ManualClock, mood: Mood) -> Self {
        let (seen, mood) = (watch::Sender::new(Seen::default()), watch::Sender::new(mood));
        Self { seen: Arc::new(seen), mood: Arc::new(mood), clock: clock.clock() }
    }

    fn client(&self) -> Client {
        let routes = Router::new()
            .route("/api/v1/namespaces/home/configmaps", post(make))
            .route("/apis/events.k8s.io/v1/namespaces/home/events", post(listen))
            .with_state(self.clone());
        Client::new(routes, "home")
    }

    fn seen(&self) -> watch::Ref<'_, Seen> {
        self.seen.borrow()
    }

    /// Waits until it has seen enough.
    async fn until(&self, enough: impl FnMut(&Seen) -> bool) {
        self.seen.subscribe().wait_for(enough).await.expect("the server is there");
    }

    /// Waits until it is not silent, and says how it is then.
    async fn mood(&self) -> Mood {
        *self.mood.subscribe().wait_for(|mood| *mood != Mood::Silent).await.expect("the server is there")
    }
}

/// A request on its way through the server, until it is answered or given up.
struct Visit<'a>(&'a Played);

impl<'a> Visit<'a> {
    fn begin(played: &'a Played) -> Self {
        played.seen.send_modify(|seen| {
            seen.arrivals.push(played.clock.tick());
            seen.in_flight += 1;
        });
        Self(played)
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.seen.send_modify(|seen| seen.in_flight -= 1);
    }
}

async fn make(State(played): State<Played>, body: Bytes) -> Response {
    let _visit = Visit::begin(&played);
    // So that others come meanwhile.
    tokio::task::yield_now().await;
    if let Mood::Busy { pause } = played.mood().await {
        return busy(pause);
    }
    let mut object: Value = serde_json::from_slice(&body).expect("objects are JSON");
    let name = object["metadata"]["name"].as_str().expect("an object has a name").to_owned();
    match name.as_str() {
        REFUSED => return answer(StatusCode::FORBIDDEN, &Status::failure("played", "Forbidden").with_code(403)),
        TAKEN => return answer(StatusCode::CONFLICT, &Status::failure("played", "AlreadyExists").with_code(409)),
        _ => {}
    }
    object["metadata"]["uid"] = json!(name);
    object["metadata"]["resourceVersion"] = json!("1");
    played.seen.send_modify(|seen| seen.made.push(name));
    object.to_string().into_response()
}

async fn listen(State(played): State<Played>, body: Bytes) -> Response {
    if played.mood().await == Mood::Deaf {
        let status = Status::failure("played", "Forbidden").with_code(403);
        return answer(StatusCode::FORBIDDEN, &status);
    }
    let event: Value = serde_json::from_slice(&body).expect("events are JSON");
    played.seen.send_modify(|seen| seen.events.push(event.clone()));
    event.to_string().into_response()
}

fn busy(pause: u32) -> Response {
    let details = StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: pause,
    };
    let status = Status::failure("played", "TooManyRequests").with_code(429).with_details(details);
    answer(StatusCode::TOO_MANY_REQUESTS, &status)
}

fn answer(code: StatusCode, status: &Status) -> Response {
    (code, serde_json::to_string(status).expect("a status is JSON")).into_response()
}

/// A controller at work.
struct Working<K: Ord> {
    manual: ManualClock,
    queue: Arc<Queue<K>>,
    metrics: Metrics,
    leadership: Arc<watch::Sender<Leadership>>,
    end: CancellationToken,
    task: JoinHandle<()>,
}

impl<K: Ord + Clone + fmt::Display + Send + Sync + 'static> Working<K> {
    fn start<F, R>(manual: &ManualClock, cache: F, client: Client, reconciler: impl FnOnce(&Lead) -> R) -> Self
    where
        F: Caches<Queues = ()>,
        R: Reconciler<F, Key = K, State = ()>,
    {
        let leadership = Arc::new(watch::Sender::new(Leadership::Alone));
        let (gate, keep_fresh) = Gate::new(leadership.subscribe(), Freshness::default());
        tokio::spawn(keep_fresh);
        let (metrics, queue) = (Metrics::new(), Arc::new(Queue::new(manual.clock())));
        let tools = Tools {
            identity: Some("hub-1".to_owned()),
            ..Tools::new(SharedCache::new(cache, ()), gate, manual.clock(), metrics.clone())
        };
        let controller = Controller::new(reconciler(&leadership), Arc::clone(&queue), client, tools);
        let end = CancellationToken::new();
        let task = tokio::spawn(controller.run(end.clone()));
        Self { manual: manual.clone(), queue, metrics, leadership, end, task }
    }

    fn says(&self, line: &str) -> bool {
        self.metrics.encode().lines().any(|found| found == line)
    }

    /// Waits until the metrics say so, while the clock stands still.
    async fn told(&self, line: &str) {
        for _ in 0..100_000 {
            if self.says(line) {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("waited in vain for {line:?} in\n{}", self.metrics.encode());
    }

    /// Lets time pass in steps until it is so, and says how long that took.
    async fn pass(&self, step: Duration, is_so: impl Fn() -> bool) -> Duration {
        let start = self.manual.clock().tick();
        let took = || self.manual.clock().tick().since(start);
        while !is_so() {
            assert!(took() < Duration::from_mins(10), "waited in vain with\n{}", self.metrics.encode());
            self.manual.advance(step);
            settle().await;
        }
        took()
    }

    async fn stop(self) {
        self.end.cancel();
        self.task.await.expect("the controller ends by itself");
    }
}

type Lead = Arc<watch::Sender<Leadership>>;

/// Lets everybody do what can be done without time passing.
async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// Panics the first time, and says when it is asked.
struct Clumsy {
    asked: watch::Sender<u32>,
    times: AtomicU32,
}

impl Reconciler<()> for Clumsy {
    type Key = &'static str;
    type State = ();
    type Action = NoAction;

    const NAME: &'static str = "clumsy";

    fn plan(&self, (): &(), _: &&'static str, (): &mut (), _: Timestamp) -> Plan {
        let time = self.times.fetch_add(1, Ordering::Relaxed) + 1;
        self.asked.send_replace(time);
        assert!(time > 1, "the first time goes wrong");
        Plan::default()
    }
}

#[tokio::test]
async fn a_panic_is_counted_and_the_key_comes_again_after_a_rest() {
    let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
    let (asked, mut times) = watch::channel(0);
    let clumsy = Clumsy { asked, times: AtomicU32::new(0) };
    let client = Client::new(Router::new(), "default");
    let working = Working::start(&manual, (), client, |_| clumsy);

    working.queue.mark("key");
    times.wait_for(|times| *times == 1).await.expect("the controller is there");
    working.told(r#"drover_reconciles_total{controller="clumsy",result="panic"} 1"#).await;
    manual.advance(Duration::from_mins(1));
    times.wait_for(|times| *times == 2).await.expect("the controller is there");
    working.stop().await;
}

#[tokio::test]
async fn a_busy_server_is_left_alone_as_long_as_it_asks_and_nothing_is_lost() {
    const KEYS: usize = 2500;
    let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
    let played = Played::new(&manual, Mood::Busy { pause: 7 });
    let working = Working::start(&manual, Shelf::default(), played.client(), |_| Maker);
    let begun = manual.clock().tick();
    for key in 0..KEYS {
        working.queue.mark(key.to_string());
    }

    // All that were in flight are refused, and nobody comes after them.
    working.told(&format!(r#"drover_reconciles_total{{controller="maker",result="throttled"}} {CONCURRENCY}"#)).await;
    settle().await;
    assert_eq!(played.seen().arrivals.len(), CONCURRENCY);
    assert!(working.says("drover_write_limit 8"), "half of what was in flight");
    played.mood.send_replace(Mood::Silent);
    let paused = working.pass(Duration::from_millis(100), || played.seen().in_flight > 0).await;
    assert_eq!(paused, Duration::from_secs(7));

    // No more than the half come, however many wait.
    settle().await;
    assert_eq!(played.seen().in_flight, CONCURRENCY / 2);
    assert!(played.seen().arrivals.iter().all(|at| *at == begun || at.since(begun) == Duration::from_secs(7)));

    played.mood.send_replace(Mood::Kind);
    played.until(|seen| seen.made.len() >= KEYS).await;
    let mut made = played.seen().made.clone();
    made.sort_unstable();
    made.dedup();
    assert_eq!(made.len(), KEYS, "each is made once");
    working.told("drover_write_limit 64").await;
    working.told(&format!(r#"drover_reconciles_total{{controller="maker",result="ok"}} {KEYS}"#)).await;
    assert!(!working.metrics.encode().contains(r#"result="error""#));
    working.stop().await;
}

#[tokio::test]
async fn a_write_without_an_answer_is_given_up_and_decided_on_anew() {
    let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
    let played = Played::new(&manual, Mood::Silent);
    let working = Working::start(&manual, Shelf::default(), played.client(), |_| Maker);
    working.queue.mark("key".to_owned());
    played.until(|seen| seen.in_flight == 1).await;

    let throttled = r#"drover_reconciles_total{controller="maker",result="throttled"} 1"#;
    let waited = working.pass(Duration::from_secs(1), || working.says(throttled)).await;
    assert_eq!(waited, Duration::from_secs(30));
    assert_eq!(played.seen().in_flight, 0);
    played.mood.send_replace(Mood::Kind);
    working.pass(Duration::from_millis(100), || played.seen().made == ["key"]).await;
    working.stop().await;
}

#[tokio::test]
async fn a_clock_that_leaps_does_not_make_a_server_late() {
    let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
    let played = Played::new(&manual, Mood::Silent);
    let working = Working::start(&manual, Shelf::default(), played.client(), |_| Maker);
    working.queue.mark("key".to_owned());
    played.until(|seen| seen.in_flight == 1).await;
    manual.advance(Duration::from_hours(24));
    settle().await;
    played.mood.send_replace(Mood::Kind);
    working.told(r#"drover_reconciles_total{controller="maker",result="ok"} 1"#).await;
    working.stop().await;
}

#[tokio::test]
async fn a_controller_that_waits_for_a_busy_server_ends_at_once() {
    let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
    let played = Played::new(&manual, Mood::Busy { pause: 60 });
    let working = Working::start(&manual, Shelf::default(), played.client(), |_| Maker);
    working.queue.mark("first".to_owned());
    working.told(r#"drover_reconciles_total{controller="maker",result="throttled"} 1"#).await;
    working.queue.mark("second".to_owned());
    while working.queue.depth() > 0 {
        tokio::task::yield_now().await;
    }
    working.stop().await;
    assert_eq!(played.seen().arrivals.len(), 1);
}

#[tokio::test]
async fn what_was_done_is_said_when_it_is_done() {
    let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
    let played = Played::new(&manual, Mood::Busy { pause: 1 });
    let working = Working::start(&manual, Shelf::default(), played.client(), |_| Maker);
    working.queue.mark("key".to_owned());
    working.told(r#"drover_reconciles_total{controller="maker",result="throttled"} 1"#).await;
    assert!(played.seen().events.is_empty(), "nothing was done yet");
    played.mood.send_replace(Mood::Kind);
    working.pass(Duration::from_millis(100), || !played.seen().events.is_empty()).await;
    let event = played.seen().events[0].clone();
    assert_eq!((&event["reason"], &event["regarding"]["name"]), (&json!("Made"), &json!("key")));
    assert_eq!(event["reportingController"], "maker");
    assert_eq!(event["reportingInstance"], "hub-1");
    working.stop().await;
}

#[tokio::test]
async fn an_event_that_nobody_wants_fails_nothing() {
    let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
    let played = Played::new(&manual, Mood::Deaf);
    let working = Working::start(&manual, Shelf::default(), played.client(), |_| Maker);
    working.queue.mark("key".to_owned());
    working.told(r#"drover_reconciles_total{controller="maker",result="ok"} 1"#).await;
    assert_eq!(played.seen().made, ["key"]);
    working.stop().await;
}

/// Has something to say, unless it loses its leadership over that.
struct Talker(Lead);

impl Reconciler<()> for Talker {
    type Key = &'static str;
    type State = ();
    type Action = NoAction;

    const NAME: &'static str = "talker";

    fn plan(&self, (): &(), key: &&'static str, (): &mut (), _: Timestamp) -> Plan {
        if *key == "last" {
            self.0.send_replace(Leadership::Standby);
        }
        Plan::default().with_events([Event::warning(&object(key), "Said", "Something.")])
    }
}

#[tokio::test]
async fn who_may_not_write_says_nothing_either() {
    let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
    let played = Played::new(&manual, Mood::Kind);
    let working = Working::start(&manual, (), played.client(), |leadership| Talker(Arc::clone(leadership)));
    working.queue.mark("first");
    working.told(r#"drover_reconciles_total{controller="talker",result="ok"} 1"#).await;
    working.queue.mark("last");
    working.told(r#"drover_reconciles_total{controller="talker",result="ok"} 2"#).await;
    assert_eq!(*working.leadership.borrow(), Leadership::Standby);
    let said: Vec<_> = played.seen().events.iter().map(|event| event["regarding"]["name"].clone()).collect();
    assert_eq!(said, ["first"]);
    working.stop().await;
}

/// Makes what is missing of several objects, all at the same time, and counts how often it is asked.
struct Heaper {
    objects: Vec<String>,
    asked: Arc<AtomicU32>,
    results: Arc<watch::Sender<Vec<(Write, WriteResult)>>>,
}

impl Heaper {
    fn new<S: ToString>(objects: impl IntoIterator<Item = S>) -> (Self, Arc<AtomicU32>) {
        let asked = Arc::new(AtomicU32::new(0));
        let objects = objects.into_iter().map(|name| name.to_string()).collect();
        (Self { objects, asked: Arc::clone(&asked), results: Arc::default() }, asked)
    }
}

impl Reconciler<Shelf> for Heaper {
    type Key = &'static str;
    type State = ();
    type Action = NoAction;

    const NAME: &'static str = "heaper";

    fn plan(&self, shelf: &Shelf, _: &&'static str, (): &mut (), _: Timestamp) -> Plan {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let missing = self.objects.iter().map(|name| object(name));
        let missing = missing.filter(|object| shelf.0.get(&ObjectKey::of(object)).is_none());
        Plan { parallel: missing.map(Write::create).collect(), ..Plan::default() }
    }

    fn sent(&self, _: &&'static str, (): &mut (), part: PlanPart<'_, NoAction>, result: &WriteResult, _: Timestamp) {
        if let PlanPart::Write(write) = part {
            self.results.send_modify(|results| results.push((write.clone(), result.clone())));
        }
    }
}

#[tokio::test]
async fn what_is_written_together_is_under_way_at_one_time_and_not_decided_on_meanwhile() {
    let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
    let played = Played::new(&manual, Mood::Silent);
    let (heaper, asked) = Heaper::new(0..5);
    let working = Working::start(&manual, Shelf::default(), played.client(), |_| heaper);
    working.queue.mark("key");
    played.until(|seen| seen.in_flight == 5).await;

    working.queue.mark("key");
    settle().await;
    assert_eq!(asked.load(Ordering::Relaxed), 1, "it is not asked before all are answered");
    played.mood.send_replace(Mood::Kind);
    working.told(r#"drover_reconciles_total{controller="heaper",result="ok"} 2"#).await;
    assert_eq!((asked.load(Ordering::Relaxed), played.seen().arrivals.len()), (2, 5), "answers enter the fleet first");
    working.stop().await;
}

#[tokio::test]
async fn of_what_is_written_together_one_that_fails_holds_up_no_other_and_the_worst_counts() {
    for (objects, result) in [([TAKEN, REFUSED, "a", "b"], "error"), ([TAKEN, "a", "b", "c"], "conflict")] {
        let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
        let played = Played::new(&manual, Mood::Kind);
        let (heaper, _) = Heaper::new(objects);
        let results = Arc::clone(&heaper.results);
        let working = Working::start(&manual, Shelf::default(), played.client(), |_| heaper);
        working.queue.mark("key");
        working.told(&format!(r#"drover_reconciles_total{{controller="heaper",result="{result}"}} 1"#)).await;
        let mut made = played.seen().made.clone();
        made.sort_unstable();
        let wanted: Vec<_> = objects.into_iter().filter(|name| name.len() == 1).collect();
        assert_eq!(made, wanted);
        let recorded: Vec<_> =
            results.borrow().iter().map(|(write, result)| (write.key().name.to_string(), result.clone())).collect();
        let expected = objects.map(|name| (name.to_owned(), result_of(name)));
        assert_eq!(recorded, expected, "each result is recorded, in the order of the plan");
        working.stop().await;
    }
}

/// What the server answers to the creation of an object.
fn result_of(name: &str) -> WriteResult {
    match name {
        REFUSED => WriteResult::Forbidden("played".to_owned()),
        TAKEN => WriteResult::Exists("played".to_owned()),
        _ => WriteResult::Done,
    }
}

/// How many writes are under way at one time, at most.
const PLACES: usize = 64;

#[tokio::test]
async fn what_is_written_together_waits_for_places_and_stops_when_nothing_may_be_written() {
    let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
    let played = Played::new(&manual, Mood::Silent);
    let (heaper, _) = Heaper::new(0..2 * PLACES);
    let working = Working::start(&manual, Shelf::default(), played.client(), |_| heaper);
    working.queue.mark("key");
    played.until(|seen| seen.in_flight == PLACES).await;
    settle().await;
    assert_eq!(played.seen().arrivals.len(), PLACES);

    working.leadership.send_replace(Leadership::Standby);
    played.mood.send_replace(Mood::Kind);
    working.told(r#"drover_reconciles_total{controller="heaper",result="conflict"} 1"#).await;
    assert_eq!((played.seen().arrivals.len(), played.seen().made.len()), (PLACES, PLACES));
    working.stop().await;
}

#[tokio::test]
async fn what_is_written_together_is_finished_when_the_process_ends_and_no_more_is_begun() {
    let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
    let played = Played::new(&manual, Mood::Silent);
    let (heaper, _) = Heaper::new(0..2 * PLACES);
    let working = Working::start(&manual, Shelf::default(), played.client(), |_| heaper);
    working.queue.mark("key");
    played.until(|seen| seen.in_flight == PLACES).await;
    working.end.cancel();
    settle().await;
    played.mood.send_replace(Mood::Kind);
    working.stop().await;
    assert_eq!((played.seen().arrivals.len(), played.seen().made.len()), (PLACES, PLACES));
}
