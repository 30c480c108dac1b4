//! The loop, on an API server that is played and a clock that the test moves.

use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use k8s_openapi::api::coordination::v1::LeaseSpec;
use tokio::task::JoinHandle;

use super::*;
use crate::clock::ManualClock;

const START: Timestamp = Timestamp::constant(1_800_000_000, 0);

/// An API server that knows one Lease.
#[derive(Clone, Default)]
struct Fake(Arc<watch::Sender<Stored>>);

#[derive(Default)]
struct Stored {
    lease: Option<Lease>,
    version: u32,
    /// Whether every request is refused.
    is_down: bool,
}

impl Stored {
    fn store(&mut self, mut lease: Lease) -> Response {
        let current = self.lease.as_ref().and_then(|lease| lease.metadata.resource_version.as_ref());
        if self.is_down {
            return status(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
        }
        if current != lease.metadata.resource_version.as_ref() {
            return status(StatusCode::CONFLICT, "Conflict");
        }
        self.version += 1;
        lease.metadata.resource_version = Some(self.version.to_string());
        json(StatusCode::OK, self.lease.insert(lease))
    }

    fn read(&self) -> Response {
        match &self.lease {
            _ if self.is_down => status(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
            Some(lease) => json(StatusCode::OK, lease),
            None => status(StatusCode::NOT_FOUND, "NotFound"),
        }
    }
}

impl Fake {
    fn client(&self) -> Client {
        let leases = "/apis/coordination.k8s.io/v1/namespaces/hub/leases";
        let routes = Router::new()
            .route(leases, post(write))
            .route(&format!("{leases}/leader"), get(read).put(write))
            .with_state(self.clone());
        Client::new(routes, "hub")
    }

    fn spec(&self) -> LeaseSpec {
        self.0.borrow().lease.clone().unwrap().spec.unwrap()
    }

    fn holder(&self) -> Option<String> {
        self.spec().holder_identity
    }

    /// Somebody else writes the Lease, whatever is in it.
    fn write_as(&self, identity: &str) {
        self.0.send_modify(|stored| {
            let mut lease = stored.lease.clone().unwrap_or_default();
            let spec = lease.spec.get_or_insert_default();
            spec.holder_identity = Some(identity.to_owned());
            spec.lease_duration_seconds = Some(10);
            spec.acquire_time = None;
            stored.store(lease);
        });
    }

    fn set_down(&self, is_down: bool) {
        self.0.send_modify(|stored| stored.is_down = is_down);
    }
}

async fn read(State(fake): State<Fake>) -> Response {
    fake.0.borrow().read()
}

async fn write(State(fake): State<Fake>, body: Bytes) -> Response {
    let lease = serde_json::from_slice(&body).unwrap();
    let mut response = None;
    fake.0.send_modify(|stored| response = Some(stored.store(lease)));
    response.unwrap()
}

fn json(code: StatusCode, body: &impl serde::Serialize) -> Response {
    (code, serde_json::to_string(body).unwrap()).into_response()
}

fn status(code: StatusCode, reason: &str) -> Response {
    json(code, &kube::core::Status::failure("played", reason).with_code(code.as_u16()))
}

/// A candidate that runs.
struct Running {
    clock: ManualClock,
    leadership: watch::Receiver<Leadership>,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    fn start(fake: &Fake, identity: &str, clock: &ManualClock) -> Self {
        let (elector, leadership) =
            Elector::new(fake.client(), "hub", "leader", identity, clock.clock()).expect("it has an identity");
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(elector.run(shutdown.clone()));
        Self { clock: clock.clone(), leadership, shutdown, task }
    }

    /// Moves the clock until it is as wanted, and says how long that took.
    async fn until(&self, wanted: impl Fn(&Leadership) -> bool) -> Duration {
        let start = self.clock.clock().tick();
        let took = || self.clock.clock().tick().since(start);
        // Slowly: an answer of the played server takes a few turns of the runtime, and must not seem to be late.
        while !wanted(&self.leadership.borrow()) {
            self.clock.advance(Duration::from_millis(5));
            tokio::task::yield_now().await;
            assert!(took() < Duration::from_mins(1), "waited in vain: {:?}", self.leadership);
        }
        took()
    }

    fn may_act(&self) -> bool {
        self.leadership.borrow().may_act(self.clock.clock().moment())
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.expect("a candidate never panics");
        assert_eq!(*self.leadership.borrow(), Leadership::Standby);
    }
}

fn leads(leadership: &Leadership) -> bool {
    matches!(leadership, Leadership::Leader { .. })
}

fn is_standby(leadership: &Leadership) -> bool {
    *leadership == Leadership::Standby
}

#[tokio::test]
async fn a_leader_acquires_renews_and_releases() {
    let (fake, clock) = (Fake::default(), ManualClock::at(START));
    let hub = Running::start(&fake, "hub-1", &clock);
    hub.until(leads).await;
    let acquired = *hub.leadership.borrow();
    let Leadership::Leader { since, .. } = acquired else { panic!("it leads") };
    assert_eq!(fake.holder().as_deref(), Some("hub-1"));
    assert_eq!(fake.spec().lease_transitions, Some(0));

    let took = hub.until(|leadership| *leadership != acquired).await;
    assert!((2..4).contains(&took.as_secs()), "renewed after {took:?}");
    assert!(hub.may_act());
    let spec = fake.spec();
    assert_eq!(spec.acquire_time.map(|time| time.0), Some(since));
    assert!(spec.renew_time.unwrap().0 > since);

    hub.stop().await;
    assert_eq!(fake.holder(), None);
    let next = Running::start(&fake, "hub-2", &clock);
    assert!(next.until(leads).await < Duration::from_secs(1), "a released lease is taken at once");
    assert_eq!(fake.spec().lease_transitions, Some(1));
    next.stop().await;
}

#[tokio::test]
async fn a_leader_that_lost_steps_down_and_takes_over_when_the_other_is_silent() {
    let (fake, clock) = (Fake::default(), ManualClock::at(START));
    let hub = Running::start(&fake, "hub-1", &clock);
    hub.until(leads).await;
    fake.write_as("intruder");
    assert!(hub.until(is_standby).await < Duration::from_secs(4));
    assert_eq!(fake.holder().as_deref(), Some("intruder"));
    let took = hub.until(leads).await;
    assert!((10..15).contains(&took.as_secs()), "taken over after {took:?}");
    hub.stop().await;
}

#[tokio::test]
async fn a_standby_takes_over_within_fifteen_seconds_and_a_restarted_process_at_once() {
    let (fake, clock) = (Fake::default(), ManualClock::at(START));
    fake.write_as("hub-1");
    let restarted = Running::start(&fake, "hub-1", &clock);
    assert!(restarted.until(leads).await < Duration::from_secs(1));
    // It is killed: nothing is released.
    restarted.task.abort();
    let standby = Running::start(&fake, "hub-2", &clock);
    let took = standby.until(leads).await;
    assert!((10..15).contains(&took.as_secs()), "taken over after {took:?}");
    standby.stop().await;
}

#[tokio::test]
async fn a_leader_without_an_api_server_stops_to_act_and_goes_on_when_it_is_back() {
    let (fake, clock) = (Fake::default(), ManualClock::at(START));
    let hub = Running::start(&fake, "hub-1", &clock);
    hub.until(leads).await;
    let term = *hub.leadership.borrow();
    fake.set_down(true);
    hub.until(|leadership| !leadership.may_act(clock.clock().moment())).await;
    assert!(leads(&hub.leadership.borrow()), "nobody else leads yet");
    hub.until(is_standby).await;
    fake.set_down(false);
    hub.until(leads).await;
    assert!(hub.may_act());
    let Leadership::Leader { since, .. } = *hub.leadership.borrow() else { panic!("it leads") };
    assert!(matches!(term, Leadership::Leader { since: before, .. } if before == since), "the term goes on");
    hub.stop().await;
}

#[tokio::test]
async fn a_leader_whose_clock_was_set_back_while_it_can_not_renew_does_not_act_for_longer() {
    let (fake, clock) = (Fake::default(), ManualClock::at(START));
    let hub = Running::start(&fake, "hub-1", &clock);
    hub.until(leads).await;
    let Leadership::Leader { renewed, .. } = *hub.leadership.borrow() else { panic!("it leads") };
    fake.set_down(true);
    // Back to when it was renewed, again and again: by the wall clock alone the lease would stay young.
    for _ in 0..DURATION.as_secs() {
        clock.advance(Duration::from_secs(1));
        tokio::task::yield_now().await;
        clock.set(renewed.time);
        let age = clock.clock().tick().since(renewed.tick);
        assert_eq!(hub.may_act(), age < ACTING, "{age:?} after the renewal");
    }
    hub.stop().await;
}

#[tokio::test]
async fn a_standby_that_is_shut_down_leaves_the_lease_alone() {
    let (fake, clock) = (Fake::default(), ManualClock::at(START));
    fake.write_as("other");
    let before = fake.spec();
    Running::start(&fake, "hub-1", &clock).stop().await;
    assert_eq!(fake.spec(), before);
}

#[tokio::test]
async fn a_candidate_without_a_name_is_refused() {
    let clock = ManualClock::at(START).clock();
    assert!(Elector::new(Fake::default().client(), "hub", "leader", "", clock).is_err());
}
