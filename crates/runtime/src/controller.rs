//! Takes keys from a queue, has a reconciler plan for each, and carries the plans out.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, OnceLock},
};

use drover_engine::plan::{Event, Plan, PlanPart, PlanStep, Write, WriteResult};
pub use drover_engine::tracker::KeyState;
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use crate::{
    cache::{Enqueue, SharedCache},
    clock::Clock,
    events::Recorder,
    execute::Execute,
    gate::Gate,
    kinds::{CachedKinds, Caches},
    metrics::{Metrics, Outcome},
    pace::{Failure, Pace, Place},
    queue::{Done, Queue},
    write::Writer,
};

/// How often in a row somebody else may be faster before that is told: there may be something that is not seen.
const SUSPICIOUS: u32 = 8;

/// How many keys of one controller are attended to at one time.
const CONCURRENCY: usize = 16;

/// Plans what is to be done about one key.
pub trait Reconciler<F: Caches>: Send + Sync + 'static {
    /// What is planned for: usually an object.
    type Key: Ord + Clone + fmt::Display + Send + Sync + 'static;

    /// What is kept of a key from one plan to the next; `()` if nothing is.
    type State: KeyState;

    /// What it does that takes more than one request; [`NoAction`](drover_engine::plan::NoAction) if nothing does.
    type Action: Execute<F>;

    /// Its name: in logs and metrics, and as the owner of the fields that it writes.
    const NAME: &'static str;

    /// Plans, with the cache in view. It must not wait for anything. A plan may be dropped and made
    /// again, because it waited for the write limiter: planning twice is harmless.
    fn plan(&self, cache: &F, key: &Self::Key, state: &mut Self::State, now: Timestamp) -> Plan<Self::Action>;

    /// What enters the cache after each plan, for other controllers to read.
    fn publish(&self, _key: &Self::Key, _state: &Self::State) -> Option<Publication<F>> {
        None
    }

    /// Records what a part of the last plan came to. The parts of a plan are recorded in its order, when all have been
    /// answered; those that were not sent are not recorded.
    fn sent(
        &self,
        _key: &Self::Key,
        _state: &mut Self::State,
        _part: PlanPart<'_, Self::Action>,
        _result: &WriteResult,
        _now: Timestamp,
    ) {
    }
}

/// Enters what a plan publishes into the cache.
pub type Publication<F> = Box<dyn FnOnce(&mut F)>;

/// The queue of a reconciler.
pub type QueueOf<F, R> = Queue<<R as Reconciler<F>>::Key, <<R as Reconciler<F>>::State as KeyState>::Payload>;

/// What all controllers of a process work with.
#[derive(Debug)]
pub struct Tools<F: Caches> {
    /// The cache that is planned from.
    pub cache: SharedCache<F>,
    /// Whether it may be written.
    pub gate: Gate,
    /// How fast it may be written.
    pub pace: Pace,
    /// What tells the time.
    pub clock: Clock,
    /// What counts.
    pub metrics: Metrics,
    /// Who this process is, in its events.
    pub identity: Option<String>,
    /// How answers to writes enter the cache.
    pub kinds: Arc<CachedKinds<F>>,
}

impl<F: Caches> Tools<F> {
    /// Tools of a process without a name that writes at full speed.
    #[must_use]
    pub fn new(cache: SharedCache<F>, gate: Gate, clock: Clock, metrics: Metrics) -> Self {
        let pace = Pace::new(clock.clone(), metrics.clone());
        Self { cache, gate, pace, clock, metrics, identity: None, kinds: Arc::new(F::kinds()) }
    }
}

impl<F: Caches> Clone for Tools<F> {
    fn clone(&self) -> Self {
        Self {
            cache: self.cache.clone(),
            gate: self.gate.clone(),
            pace: self.pace.clone(),
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
            identity: self.identity.clone(),
            kinds: Arc::clone(&self.kinds),
        }
    }
}

/// A reconciler at work.
pub struct Controller<F: Caches, R: Reconciler<F>> {
    reconciler: R,
    queue: Arc<QueueOf<F, R>>,
    /// What is kept of keys that nothing is planned for at the moment.
    states: Mutex<BTreeMap<R::Key, R::State>>,
    writer: Writer<F>,
    /// The writer of actions, once there is one.
    bounded: OnceLock<Writer<F>>,
    recorder: Recorder,
    tools: Tools<F>,
}

/// How far a plan was carried out.
enum Written {
    All,
    /// There was no place for a write.
    UntilBusy,
}

/// Why a key was not attended to.
#[derive(Debug, thiserror::Error)]
enum Trouble<A: PlanStep> {
    #[error("this process may not write any more")]
    GateShut,
    #[error("this process ends")]
    Ending,
    #[error(transparent)]
    Failed(Box<Failed<A>>),
    #[error("the controller panicked")]
    Panicked,
}

/// A part of a plan that has failed.
#[derive(Debug, thiserror::Error)]
enum Failed<A: PlanStep> {
    #[error("{0}: {1}")]
    Write(Write, Failure),
    #[error("{words}: {1}", words = .0.words())]
    Action(A, Failure),
    #[error("{0:?}: {1}")]
    Event(Event, Failure),
}

impl<A: PlanStep> Failed<A> {
    fn of_part(part: PlanPart<'_, A>, failure: Failure) -> Box<Self> {
        Box::new(match part {
            PlanPart::Write(write) => Self::Write(Write::clone(write), failure),
            PlanPart::Action(action) => Self::Action(A::clone(action), failure),
            PlanPart::Event(event) => Self::Event(Event::clone(event), failure),
        })
    }

    fn result(&self) -> &WriteResult {
        let (Self::Write(_, failure) | Self::Action(_, failure) | Self::Event(_, failure)) = self;
        &failure.result
    }
}

impl<A: PlanStep> Trouble<A> {
    /// How the work on a key ends that had this trouble.
    fn outcome(&self) -> Outcome {
        match self {
            Self::GateShut | Self::Ending => Outcome::Conflict,
            Self::Failed(failed) if failed.result().is_slow() => Outcome::Throttled,
            Self::Failed(failed) if failed.result().is_outdated() => Outcome::Conflict,
            Self::Failed(_) => Outcome::Error,
            Self::Panicked => Outcome::Panic,
        }
    }
}

impl<F: Caches, R: Reconciler<F>> Controller<F, R> {
    /// A controller that attends to the keys of a queue.
    pub fn new(reconciler: R, queue: Arc<QueueOf<F, R>>, client: Client, tools: Tools<F>) -> Self {
        let recorder = Recorder::new(client.clone(), R::NAME, tools.identity.as_deref(), tools.clock.clone());
        let writer = Writer {
            client,
            cache: tools.cache.clone(),
            clock: tools.clock.clone(),
            kinds: Arc::clone(&tools.kinds),
            manager: R::NAME,
        };
        Self { reconciler, queue, states: Mutex::default(), writer, bounded: OnceLock::new(), recorder, tools }
    }

    /// Attends to keys until `shutdown`, then finishes what is being written.
    pub async fn run(self, shutdown: CancellationToken) {
        let this = Arc::new(self);
        let places = Arc::new(Semaphore::new(CONCURRENCY));
        let mut tasks = JoinSet::new();
        while let Some(Ok(place)) = shutdown.run_until_cancelled(Arc::clone(&places).acquire_owned()).await {
            let Some(key) = shutdown.run_until_cancelled(this.next()).await else { break };
            let (this, shutdown) = (Arc::clone(&this), shutdown.clone());
            tasks.spawn(async move {
                this.attend(key, &shutdown).await;
                drop(place);
            });
            while tasks.try_join_next().is_some() {}
        }
        while tasks.join_next().await.is_some() {}
    }

    /// The next key, once the gate is open.
    async fn next(&self) -> R::Key {
        self.tools.gate.clone().opened().await;
        let key = self.queue.take().await;
        self.tools.metrics.queued(R::NAME, self.queue.depth());
        key
    }

    async fn attend(&self, key: R::Key, shutdown: &CancellationToken) {
        let begun = Instant::now();
        let mut state = self.states().remove(&key).unwrap_or_default();
        let work = AssertUnwindSafe(self.reconcile(&key, &mut state, shutdown));
        let result = work.catch_unwind().await.unwrap_or(Err(Trouble::Panicked));
        // A state that planning has panicked over may be half changed: it is rebuilt.
        if !matches!(result, Err(Trouble::Panicked)) && !state.is_empty() {
            self.states().insert(key.clone(), state);
        }
        let (outcome, done) = match result {
            Ok(wake) => (Outcome::Ok, Done::Well(wake)),
            Err(trouble) => {
                self.report(&key, &trouble);
                let done = if trouble.outcome() == Outcome::Conflict { Done::Overtaken } else { Done::Failed };
                (trouble.outcome(), done)
            }
        };
        self.tools.metrics.reconciled(R::NAME, outcome, begun.elapsed());
        self.queue.done(&key, done);
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<R::Key, R::State>> {
        self.states.lock()
    }

    /// Plans, and carries the plan out. After a wait it is planned anew: meanwhile much may have changed.
    async fn reconcile(
        &self,
        key: &R::Key,
        state: &mut R::State,
        shutdown: &CancellationToken,
    ) -> Result<Option<Timestamp>, Trouble<R::Action>> {
        let mut place = None;
        loop {
            let plan = self.plan(key, state);
            match self.write(key, state, &plan.ordered, place).await? {
                Written::All => {
                    let parallel = self.run_parallel(key, state, &plan, shutdown).await;
                    // The ordered writes record what has happened, so that it is not found out again when some of the others have to be
                    // repeated.
                    self.announce(key, state, &plan.events, shutdown).await;
                    return parallel.map(|()| plan.wake);
                }
                Written::UntilBusy => place = Some(self.wait_for_place(shutdown).await?),
            }
        }
    }

    /// Plans with what the key's entries carry, publishes, and enqueues what follows for other controllers.
    fn plan(&self, key: &R::Key, state: &mut R::State) -> Plan<R::Action> {
        let plan = {
            let cache = self.tools.cache.read();
            state.mark(self.queue.payload(key));
            self.reconciler.plan(&cache, key, state, self.tools.clock.now())
        };
        if let Some(publish) = self.reconciler.publish(key, state) {
            self.tools.cache.update(|cache, _| publish(cache));
        }
        for (controller, key) in &plan.enqueue {
            self.tools.cache.queues().enqueue(*controller, key);
        }
        plan
    }

    /// Writes one after the other, as long as there is a place at once.
    async fn write(
        &self,
        key: &R::Key,
        state: &mut R::State,
        writes: &[Write],
        mut place: Option<Place>,
    ) -> Result<Written, Trouble<R::Action>> {
        for write in writes {
            let Some(place) = place.take().or_else(|| self.tools.pace.try_begin()) else {
                return Ok(Written::UntilBusy);
            };
            let part = PlanPart::Write(write);
            let result = self.run_part(key, part, place).await;
            self.record(key, state, part, &result);
            result?;
        }
        Ok(Written::All)
    }

    /// Runs parallel writes and actions, and returns the worst of what went wrong. No more are begun once the process may not
    /// write any more or ends; those that are begun are waited for.
    async fn run_parallel(
        &self,
        key: &R::Key,
        state: &mut R::State,
        plan: &Plan<R::Action>,
        shutdown: &CancellationToken,
    ) -> Result<(), Trouble<R::Action>> {
        let parts = plan.actions.iter().map(PlanPart::Action).chain(plan.parallel.iter().map(PlanPart::Write));
        let (mut under_way, mut results, mut troubles) = (FuturesUnordered::new(), Vec::new(), Vec::new());
        for (index, part) in parts.enumerate() {
            // One asks for a place at a time, so that others get theirs in between.
            let mut place = pin!(self.wait_for_next_place(shutdown));
            let place = loop {
                tokio::select! {
                    place = &mut place => break place,
                    Some(result) = under_way.next() => results.push(result),
                }
            };
            match place {
                Ok(place) => under_way.push(async move { (index, part, self.run_part(key, part, place).await) }),
                Err(trouble) => {
                    troubles.push(trouble);
                    break;
                }
            }
        }
        while let Some(result) = under_way.next().await {
            results.push(result);
        }
        results.sort_by_key(|(index, ..)| *index);
        for (_, part, result) in results {
            self.record(key, state, part, &result);
            troubles.extend(result.err());
        }
        for trouble in &troubles {
            debug!(controller = R::NAME, %key, %trouble, "one of several writes failed");
        }
        // Of several that are equally bad it is always the same, whichever was answered first, so that what is said of it stays.
        let worst = |one: &Trouble<R::Action>, other: &Trouble<R::Action>| {
            one.outcome().cmp(&other.outcome()).then_with(|| other.to_string().cmp(&one.to_string()))
        };
        troubles.into_iter().max_by(worst).map_or(Ok(()), Err)
    }

    /// Has the reconciler record what a part came to, if it was sent.
    fn record(
        &self,
        key: &R::Key,
        state: &mut R::State,
        part: PlanPart<'_, R::Action>,
        result: &Result<(), Trouble<R::Action>>,
    ) {
        let result = match result {
            Ok(()) => &WriteResult::Done,
            Err(Trouble::Failed(failed)) => failed.result(),
            Err(Trouble::GateShut | Trouble::Ending | Trouble::Panicked) => return,
        };
        self.reconciler.sent(key, state, part, result, self.tools.clock.now());
    }

    /// Waits for a place for one more of several writes. A gate that was shut meanwhile ends them all: when it opens again, much
    /// may have changed.
    async fn wait_for_next_place(&self, shutdown: &CancellationToken) -> Result<Place, Trouble<R::Action>> {
        let place = self.wait_for_place(shutdown).await?;
        self.check_gate().map(|()| place)
    }

    async fn run_part(
        &self,
        key: &R::Key,
        part: PlanPart<'_, R::Action>,
        place: Place,
    ) -> Result<(), Trouble<R::Action>> {
        self.check_gate()?;
        let result = match part {
            PlanPart::Write(write) => {
                debug!(controller = R::NAME, %key, %write, "writing");
                place.send(self.writer.send(write)).await.map(|()| self.count(write))
            }
            PlanPart::Action(action) => {
                debug!(controller = R::NAME, %key, action = action.words(), "acting");
                let acting = Box::pin(action.execute(self.bounded().clone()));
                place.send_several(acting).await.map(|()| self.count(action))
            }
            PlanPart::Event(event) => place.send(self.recorder.send(event)).await,
        };
        result.map_err(|failure| Trouble::Failed(Failed::of_part(part, failure)))
    }

    fn count(&self, step: &impl PlanStep) {
        self.tools.metrics.wrote(&step.kind_name(), step.verb());
    }

    /// A writer each of whose requests is answered in time, or fails.
    fn bounded(&self) -> &Writer<F> {
        self.bounded.get_or_init(|| {
            let client = self.tools.pace.bounded(self.writer.client.clone());
            Writer { client, ..self.writer.clone() }
        })
    }

    /// Records events. Nothing depends on them, so that one is lost if it fails.
    async fn announce(&self, key: &R::Key, state: &mut R::State, events: &[Event], shutdown: &CancellationToken) {
        for event in events {
            let part = PlanPart::Event(event);
            let result = match self.wait_for_place(shutdown).await {
                Ok(place) => self.run_part(key, part, place).await,
                Err(trouble) => Err(trouble),
            };
            if let Err(trouble) = &result {
                debug!(controller = R::NAME, %key, %trouble, "an event is lost");
            }
            self.record(key, state, part, &result);
        }
    }

    /// Waits for a place among those who write, but not when the process ends: a busy server can ask for a long pause.
    async fn wait_for_place(&self, shutdown: &CancellationToken) -> Result<Place, Trouble<R::Action>> {
        if let Some(place) = self.tools.pace.try_begin() {
            return Ok(place);
        }
        shutdown.run_until_cancelled(self.tools.pace.begin()).await.ok_or(Trouble::Ending)
    }

    fn check_gate(&self) -> Result<(), Trouble<R::Action>> {
        let is_open = self.tools.gate.is_open(self.tools.clock.moment());
        if is_open { Ok(()) } else { Err(Trouble::GateShut) }
    }

    /// Says what went wrong. That somebody else was faster is nothing wrong: the key is decided on again.
    fn report(&self, key: &R::Key, trouble: &Trouble<R::Action>) {
        match (trouble, trouble.outcome()) {
            (Trouble::GateShut | Trouble::Ending, _) => {
                debug!(controller = R::NAME, %key, %trouble, "left for later");
            }
            (_, Outcome::Conflict) if self.queue.failures(key) == SUSPICIOUS => {
                warn!(controller = R::NAME, %key, %trouble, "somebody else is faster again and again; will go on trying");
            }
            (_, Outcome::Conflict) => debug!(controller = R::NAME, %key, %trouble, "somebody else was faster"),
            (_, Outcome::Throttled) => {
                debug!(controller = R::NAME, %key, %trouble, "the server is busy, and is asked again later");
            }
            (Trouble::Panicked, _) => {
                error!(controller = R::NAME, %key, "this is a bug: the controller panicked, and will try again");
            }
            _ => warn!(controller = R::NAME, %key, %trouble, "could not write, and will try again"),
        }
    }
}
