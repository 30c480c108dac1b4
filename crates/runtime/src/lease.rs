//! Which of several hubs acts: leader election by a `coordination.k8s.io/v1` Lease.
//!
//! Candidates agree through one Lease. Its holder renews it every few seconds; when nobody has for its duration, another
//! takes it. Each write carries the resourceVersion of what it was decided on, so that of two candidates only one succeeds.
//!
//! Clocks of different machines are never compared, and times in the record are for people to read. A candidate measures how long
//! a record has stood unchanged from when it first saw that record itself, and a leader measures its own lease from when it
//! **sent** the renewal, which is before anybody else can have seen it. A leader acts for two thirds of the duration only
//! ([`Leadership::may_act`]); the last third is for clocks that go wrong and for requests that are on their way. So a leader
//! that was frozen or cut off finds that it may not act any more before it knows why.
//!
//! A candidate waits by the clock that nobody can set: it stands still while the machine is suspended, which makes the wait
//! longer and is safe. A leader's lease is young only while **both** clocks say so ([`Moment::is_within`]): the wall clock knows of a
//! suspended machine, the other of a wall clock that was set back. What neither of them sees (a machine that is suspended and
//! wakes with an earlier time, a virtual one that was stopped from outside) is left to the resourceVersions that writes carry.
//!
//! What to do next is decided in `candidate`, which does no I/O; here it is carried out. Identities have to be unique:
//! a process that finds its own name in the Lease when it starts takes that for its earlier life, and goes on at once.

mod candidate;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::time::Duration;

use k8s_openapi::{api::coordination::v1::Lease, jiff::Timestamp};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::candidate::{Candidate, Turn};
use crate::clock::{Clock, Moment};

/// How long a lease holds after it was renewed.
const DURATION: Duration = Duration::from_secs(10);

/// How long after a renewal its leader may act.
const ACTING: Duration = DURATION.saturating_mul(2).checked_div(3).expect("three is not zero");

/// How long a request may take. Two lost ones in a row leave time for a third before the leader has to stop.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often an attempt to release the lease is repeated because somebody wrote it meanwhile.
const RELEASES: usize = 3;

/// Who writes the Lease, for its managed fields.
const FIELD_MANAGER: &str = "drover-lease";

/// Whether this process leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leadership {
    /// Somebody else leads, or nobody yet.
    #[default]
    Standby,
    /// This process holds the lease. The value changes with every renewal.
    Leader {
        /// When the term began. As long as this stays the same, nobody else has led in between.
        since: Timestamp,
        /// When the latest renewal that succeeded was sent.
        renewed: Moment,
    },
    /// There is no election: this process is the only one.
    Alone,
}

impl Leadership {
    /// Whether a cluster may be given something now. Ask right before each write: the answer changes with the time.
    #[must_use]
    pub fn may_act(&self, now: Moment) -> bool {
        match *self {
            Self::Standby => false,
            Self::Leader { renewed, .. } => now.is_within(ACTING, renewed),
            Self::Alone => true,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Standby => "standby",
            Self::Leader { .. } => "leader",
            Self::Alone => "alone",
        }
    }
}

/// A candidate needs an identity.
#[derive(Debug, thiserror::Error)]
#[error("the identity of a candidate for the lease is empty; give every hub one of its own")]
pub struct NoIdentity;

/// Takes part in the election.
#[derive(Debug)]
pub struct Elector {
    leases: Api<Lease>,
    name: String,
    candidate: Candidate,
    clock: Clock,
    leadership: watch::Sender<Leadership>,
    failing: bool,
}

impl Elector {
    /// A candidate for the Lease of that namespace and name, and where it says whether it leads. It does nothing before it is [run](Self::run).
    pub fn new(
        client: Client,
        namespace: &str,
        name: &str,
        identity: &str,
        clock: Clock,
    ) -> Result<(Self, watch::Receiver<Leadership>), NoIdentity> {
        if identity.is_empty() {
            return Err(NoIdentity);
        }
        let (leadership, receiver) = watch::channel(Leadership::Standby);
        let candidate = Candidate::new(identity, clock.tick());
        let leases = Api::namespaced(client, namespace);
        Ok((Self { leases, name: name.to_owned(), candidate, clock, leadership, failing: false }, receiver))
    }

    /// Takes part until `shutdown`, then releases the lease, so that the next one need not wait. Whoever acts as the
    /// leader has to be done before that.
    pub async fn run(mut self, shutdown: CancellationToken) {
        while !shutdown.is_cancelled() {
            let now = self.clock.moment();
            match self.candidate.turn(now) {
                Turn::Look => self.look().await,
                Turn::Write(lease) => self.write(&lease).await,
                Turn::Rest { until } => self.rest(until.since(now.tick), &shutdown).await,
            }
            self.publish(self.candidate.leadership(self.clock.moment()));
        }
        self.publish(Leadership::Standby);
        self.release().await;
    }

    async fn rest(&self, duration: Duration, shutdown: &CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.clock.sleep(duration) => {}
        }
    }

    async fn look(&mut self) {
        match self.answer(self.leases.get_opt(&self.name)).await {
            Ok(found) => {
                self.failing = false;
                self.candidate.saw(found, self.clock.tick());
            }
            Err(failure) => self.failed(&failure),
        }
    }

    async fn write(&mut self, lease: &Lease) {
        let sent = self.clock.moment();
        match self.send(lease).await {
            Ok(written) => {
                self.failing = false;
                self.candidate.confirmed(written, sent, self.clock.tick());
            }
            Err(failure) if failure.is_refusal() => {
                tracing::debug!(lease = self.name, %failure, "the lease was not as expected");
                self.candidate.refused();
            }
            Err(failure) => self.failed(&failure),
        }
    }

    /// Gives the lease back if it is ours.
    async fn release(&mut self) {
        if !self.candidate.has_claimed() {
            return;
        }
        for _ in 0..RELEASES {
            // What we know may be outdated, by a write of our own whose answer got lost.
            let Ok(Some(found)) = self.answer(self.leases.get_opt(&self.name)).await else { return };
            let Some(released) = self.candidate.released(found, self.clock.now()) else { return };
            match self.send(&released).await {
                Ok(_) => return tracing::info!(lease = self.name, "released the lease"),
                Err(failure) if failure.is_refusal() => {}
                Err(failure) => return tracing::warn!(lease = self.name, %failure, "could not release the lease"),
            }
        }
    }

    async fn send(&self, lease: &Lease) -> Result<Lease, Failure> {
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        if lease.metadata.resource_version.is_some() {
            return self.answer(self.leases.replace(&self.name, &params, lease)).await;
        }
        let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
        let lease = Lease { metadata, spec: lease.spec.clone() };
        self.answer(self.leases.create(&params, &lease)).await
    }

    /// Waits for an answer, but not for longer than a lease can spare.
    async fn answer<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            answer = request => Ok(answer?),
            () = self.clock.sleep(PATIENCE) => Err(Failure::Silence),
        }
    }

    fn failed(&mut self, failure: &Failure) {
        // Once for each time that it goes wrong; it is tried twice a second.
        if !self.failing {
            tracing::warn!(lease = self.name, %failure, "the lease can not be read or written");
        }
        self.failing = true;
        self.candidate.failed(self.clock.tick());
    }

    fn publish(&self, leadership: Leadership) {
        let before = *self.leadership.borrow();
        if before == leadership {
            return;
        }
        if before.name() != leadership.name() {
            tracing::info!(lease = self.name, role = leadership.name(), "leadership changed");
        }
        self.leadership.send_replace(leadership);
    }
}

/// Why a request did not succeed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the API server did not answer within {} s", PATIENCE.as_secs())]
    Silence,
    #[error(transparent)]
    Api(#[from] kube::Error),
}

impl Failure {
    /// Whether the Lease is not what we took it for: changed, made by somebody else, or gone.
    fn is_refusal(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if [404, 409].contains(&status.code))
    }
}
