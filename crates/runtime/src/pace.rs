//! How fast a process writes: as fast as the server can bear.
//!
//! There is no fixed rate. All controllers of a process share one [`Pace`], which bounds how many writes are in flight. A
//! server that refuses because it is busy (429, 503, 504), or does not answer, halves the bound and is left alone for as long
//! as it asks; answers bring the bound back.

mod throttle;

use std::{error::Error, fmt, io, sync::Arc, time::Duration};

use axum::http::Request;
use drover_engine::plan::WriteResult;
use kube::{Client, client::Body};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tower::service_fn;
use tracing::{info, warn};

use self::throttle::{Entry, Pass, Throttle};
use crate::{clock::Clock, execute::ActionError, metrics::Metrics};

/// For how many seconds an answer is waited for.
const PATIENCE: u64 = 30;

/// The pace of a process. Clones keep the same.
#[derive(Clone)]
pub struct Pace(Arc<Inner>);

struct Inner {
    throttle: Mutex<Throttle>,
    /// Held by who is next, so that all others come in the order in which they asked.
    next: tokio::sync::Mutex<()>,
    /// Told when a write has ended.
    ended: Notify,
    clock: Clock,
    metrics: Metrics,
}

/// A write that was not accepted.
#[derive(Debug, thiserror::Error)]
#[error("{}{source}", if *result == WriteResult::Busy { "the server is busy: " } else { "" })]
pub struct Failure {
    /// What it came to.
    pub result: WriteResult,
    source: Box<ActionError>,
}

impl Pace {
    /// Full speed, until the server says otherwise.
    #[must_use]
    pub fn new(clock: Clock, metrics: Metrics) -> Self {
        let throttle = Throttle::new();
        metrics.may_write(throttle.limit());
        let (throttle, next, ended) = (Mutex::new(throttle), tokio::sync::Mutex::new(()), Notify::new());
        Self(Arc::new(Inner { throttle, next, ended, clock, metrics }))
    }

    /// A place among those who write, if one is free and nobody waits for it.
    #[must_use]
    pub fn try_begin(&self) -> Option<Place> {
        let _next = self.0.next.try_lock().ok()?;
        match self.enter() {
            Entry::Granted(pass) => Some(self.place(pass)),
            Entry::Full | Entry::Resting { .. } => None,
        }
    }

    /// Waits for a place among those who write.
    pub async fn begin(&self) -> Place {
        let _next = self.0.next.lock().await;
        loop {
            match self.enter() {
                Entry::Granted(pass) => return self.place(pass),
                Entry::Full => self.0.ended.notified().await,
                Entry::Resting { until } => self.0.clock.wait_for(until).await,
            }
        }
    }

    /// A client for who sends several requests in one place: each is answered in time, or fails.
    #[must_use]
    pub fn bounded(&self, client: Client) -> Client {
        let (clock, namespace) = (self.0.clock.clone(), client.default_namespace().to_owned());
        let send = move |request: Request<Body>| {
            let (client, clock) = (client.clone(), clock.clone());
            async move { answered(&clock, client.send(request)).await }
        };
        Client::new(service_fn(send), namespace)
    }

    fn enter(&self) -> Entry {
        self.throttle().begin(self.0.clock.tick())
    }

    fn place(&self, pass: Pass) -> Place {
        Place { pace: self.clone(), pass }
    }

    /// Takes note of how a write went.
    fn learn(&self, pass: &Pass, verdict: &Verdict<'_>) {
        let change = self.adjust(pass, verdict);
        let limit = self.throttle().limit();
        self.0.metrics.may_write(limit);
        match (change, verdict) {
            (Some(SpeedChange::Slower), Verdict::TooMuch { failure, .. }) => {
                warn!(%failure, limit, "writing more slowly");
            }
            (Some(SpeedChange::FullSpeed), _) => info!("writing at full speed again"),
            _ => {}
        }
    }

    /// Adjusts the throttle. Returns what is logged, once for each time that the server is too
    /// busy.
    fn adjust(&self, pass: &Pass, verdict: &Verdict<'_>) -> Option<SpeedChange> {
        let now = self.0.clock.tick();
        let mut throttle = self.throttle();
        let was_slow = throttle.is_slow();
        match verdict {
            Verdict::Fine => throttle.answered(pass, now),
            Verdict::TooMuch { pause, .. } => throttle.refused(pass, *pause, now),
        }
        match (was_slow, throttle.is_slow()) {
            (false, true) => Some(SpeedChange::Slower),
            (true, false) => Some(SpeedChange::FullSpeed),
            (false, false) | (true, true) => None,
        }
    }

    fn throttle(&self) -> MutexGuard<'_, Throttle> {
        self.0.throttle.lock()
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pace").field(&*self.throttle()).finish()
    }
}

/// How the limit of writes in flight changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpeedChange {
    /// From no limit but the fixed one to a lower one.
    Slower,
    /// Back to the fixed one.
    FullSpeed,
}

/// What one write tells about the server.
enum Verdict<'a> {
    Fine,
    TooMuch { pause: Option<Duration>, failure: &'a Failure },
}

/// A place among those who write: for one write. It is free again when it is dropped.
#[derive(Debug)]
pub struct Place {
    pace: Pace,
    pass: Pass,
}

impl Place {
    /// Waits for the answer to a write, but not for ever, and learns from it how fast the server can bear more.
    pub async fn send<T>(self, write: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
        let result = answered(&self.pace.0.clock, write).await;
        self.learn(result.map_err(Failure::from))
    }

    /// Waits for the end of several requests by a client that is [bounded](Pace::bounded), however many there are, and learns the same.
    pub async fn send_several<T>(self, requests: impl Future<Output = Result<T, ActionError>>) -> Result<T, Failure> {
        let result = requests.await.map_err(Failure::from);
        self.learn(result)
    }

    fn learn<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        match &result {
            Ok(_) => self.pace.learn(&self.pass, &Verdict::Fine),
            Err(failure) => {
                if let Some(verdict) = failure.verdict() {
                    self.pace.learn(&self.pass, &verdict);
                }
            }
        }
        result
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.pace.throttle().end();
        self.pace.0.ended.notify_one();
    }
}

/// Waits for the answer to a request that goes by no pace, but not for ever.
pub async fn answered<T>(clock: &Clock, request: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    tokio::select! {
        biased;
        answer = request => answer,
        () = silence(clock) => Err(silent()),
    }
}

/// Waits until nobody can say that there was no time to answer. A leap of the clock counts as a second: it was not the server
/// that was slow.
async fn silence(clock: &Clock) {
    for _ in 0..PATIENCE {
        clock.sleep(Duration::from_secs(1)).await;
    }
}

/// What a request comes to that was not answered.
fn silent() -> kube::Error {
    let error = io::Error::new(io::ErrorKind::TimedOut, format!("the server did not answer within {PATIENCE} s"));
    kube::Error::Service(error.into())
}

impl From<ActionError> for Failure {
    fn from(error: ActionError) -> Self {
        Self { result: error.result(), source: Box::new(error) }
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        ActionError::from(error).into()
    }
}

impl Failure {
    /// What it tells about the server; nothing if that was not reached.
    fn verdict(&self) -> Option<Verdict<'_>> {
        match (&self.result, &*self.source) {
            (WriteResult::Busy | WriteResult::TimedOut, source) => {
                Some(Verdict::TooMuch { pause: asked_pause(source), failure: self })
            }
            (_, source) => matches!(source, ActionError::Request(kube::Error::Api(_))).then_some(Verdict::Fine),
        }
    }
}

/// What a request came to that has failed.
#[must_use]
pub fn result_of(error: &kube::Error) -> WriteResult {
    match error {
        kube::Error::Api(status) => WriteResult::of(status),
        error if timed_out(error) => WriteResult::TimedOut,
        error => WriteResult::Unreachable(error.to_string()),
    }
}

fn asked_pause(error: &ActionError) -> Option<Duration> {
    let ActionError::Request(kube::Error::Api(status)) = error else { return None };
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

/// Whether a connection could not be made, or broke, because nobody answered.
fn timed_out(error: &(dyn Error + 'static)) -> bool {
    let is_time_out = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
    error.downcast_ref().is_some_and(is_time_out) || error.source().is_some_and(timed_out)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use k8s_openapi::jiff::Timestamp;
    use kube::core::{Status, response::StatusDetails};
    use tokio::task::JoinSet;

    use super::{throttle::FULL, *};
    use crate::clock::ManualClock;

    fn pace() -> (ManualClock, Pace) {
        let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
        let pace = Pace::new(manual.clock(), Metrics::new());
        (manual, pace)
    }

    fn refusal(code: u16, pause: u32) -> kube::Error {
        let details = StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: pause,
        };
        kube::Error::Api(Status::failure("played", "Played").with_code(code).with_details(details).boxed())
    }

    #[test]
    fn a_connection_that_nobody_answers_is_a_time_out_and_one_that_is_refused_is_not() {
        for (kind, is_time_out) in [(io::ErrorKind::TimedOut, true), (io::ErrorKind::ConnectionRefused, false)] {
            let error = kube::Error::Service(Box::new(io::Error::from(kind)));
            assert_eq!(result_of(&error) == WriteResult::TimedOut, is_time_out, "{kind:?}");
        }
    }

    #[tokio::test]
    async fn several_requests_have_each_their_time() {
        let (manual, pace) = pace();
        // Who answers after twenty seconds, and the third time not at all.
        let asked = Arc::new(AtomicUsize::new(0));
        let (counted, clock) = (Arc::clone(&asked), manual.clock());
        let answer = move |_: Request<Body>| {
            let (count, clock) = (counted.fetch_add(1, Ordering::Relaxed), clock.clone());
            async move {
                clock.sleep(Duration::from_secs(if count < 2 { 20 } else { 2000 })).await;
                Ok::<_, kube::Error>(axum::http::Response::new(Body::empty()))
            }
        };
        let client = pace.bounded(Client::new(service_fn(answer), "default"));
        let place = pace.try_begin().expect("there is room");
        let several = tokio::spawn(place.send_several(async move {
            for _ in 0..3 {
                client.send(Request::new(Body::empty())).await?;
            }
            Ok(())
        }));
        for _ in 0..2 * 20 + PATIENCE {
            assert!(!several.is_finished(), "nobody has run out of time");
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            manual.advance(Duration::from_secs(1));
        }
        let failure = several.await.expect("it ends").expect_err("the third is not answered");
        assert_eq!(failure.result, WriteResult::TimedOut);
        assert!(failure.to_string().contains("30 s"), "{failure}");
        assert_eq!(asked.load(Ordering::Relaxed), 3);
        assert!(pace.throttle().is_slow());
    }

    #[tokio::test]
    async fn an_answer_that_says_no_is_an_answer() {
        let (_, pace) = pace();
        let place = pace.try_begin().expect("there is room");
        let failure = place.send::<()>(async { Err(refusal(409, 0)) }).await;
        assert!(failure.is_err_and(|failure| !failure.result.is_slow()));
        assert!(!pace.throttle().is_slow());
    }

    #[test]
    fn slower_writes_and_their_end_are_reported_once() {
        let (manual, pace) = pace();
        let busy = |code, pause| Failure::from(refusal(code, pause));
        let mut changes = Vec::new();
        let mut adjust = |verdict: &Verdict<'_>| {
            let place = pace.try_begin().expect("there is room");
            changes.extend(pace.adjust(&place.pass, verdict));
        };
        for _ in 0..2 {
            for failure in [busy(429, 3), busy(503, 0)] {
                adjust(&failure.verdict().expect("it is too much"));
                manual.advance(Duration::from_secs(3));
            }
            adjust(&Verdict::Fine);
            manual.advance(Duration::from_mins(1));
            adjust(&Verdict::Fine);
            adjust(&Verdict::Fine);
        }
        let expected = [SpeedChange::Slower, SpeedChange::FullSpeed].repeat(2);
        assert_eq!(changes, expected);
    }

    #[tokio::test]
    async fn a_place_that_is_not_used_is_free_again_and_goes_to_who_waits() {
        let (_, pace) = pace();
        let mut places: Vec<_> = std::iter::from_fn(|| pace.try_begin()).collect();
        assert_eq!(places.len(), FULL);
        let waiting = tokio::spawn({
            let pace = pace.clone();
            async move { pace.begin().await }
        });
        tokio::task::yield_now().await;
        drop(places.pop());
        assert!(pace.try_begin().is_none(), "somebody came before");
        drop(waiting.await.expect("it gets the place"));
        assert!(pace.try_begin().is_some());
    }

    #[tokio::test]
    async fn never_more_than_the_limit_are_in_flight_and_all_get_their_turn() {
        let (manual, pace) = pace();
        let place = pace.try_begin().expect("there is room");
        assert!(place.send::<()>(async { Err(refusal(429, 0)) }).await.is_err());
        manual.advance(Duration::from_secs(1));
        let (in_flight, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut writers = JoinSet::new();
        for _ in 0..100 {
            let (pace, in_flight, most) = (pace.clone(), Arc::clone(&in_flight), Arc::clone(&most));
            writers.spawn(async move {
                let place = pace.begin().await;
                let limit = pace.throttle().limit();
                let write = async {
                    let now = in_flight.fetch_add(1, Ordering::Relaxed) + 1;
                    assert!(now <= limit, "{now} of {limit}");
                    most.fetch_max(now, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    in_flight.fetch_sub(1, Ordering::Relaxed);
                    Ok(())
                };
                place.send(write).await.expect("it is written");
            });
        }
        while let Some(written) = writers.join_next().await {
            written.expect("no writer panics");
        }
        assert!(most.load(Ordering::Relaxed) > 1, "the limit grows from one");
    }
}
