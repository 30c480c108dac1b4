//! What takes dirty keys, has somebody decide on each, and writes what was decided.

use std::{fmt, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use crate::{
    clock::Clock,
    fleet::Shared,
    gate::Gate,
    metrics::{Metrics, Outcome},
    queue::{Done, Queue},
    write::Write,
};

/// How many keys of one controller are attended to at one time.
const CONCURRENCY: usize = 16;

/// Somebody who decides what is to be done about one key.
pub trait Reconciler<F>: Send + Sync + 'static {
    /// What is decided on: usually an object.
    type Key: Ord + Clone + fmt::Display + Send + Sync + 'static;

    /// Who it is: in logs and metrics, and as the owner of the fields that it writes.
    const NAME: &'static str;

    /// Decides, with the fleet in view. It must not wait for anything.
    fn plan(&self, fleet: &F, key: &Self::Key, now: Timestamp) -> Plan<F>;
}

/// What is to be done about one key.
#[derive(Debug)]
pub struct Plan<F> {
    /// What is written, in this order; if one fails the rest is decided on anew.
    pub writes: Vec<Write<F>>,
    /// When the key wants attention again although nothing has changed.
    pub wake: Option<Timestamp>,
}

impl<F> Default for Plan<F> {
    fn default() -> Self {
        Self { writes: Vec::new(), wake: None }
    }
}

impl<F> FromIterator<Write<F>> for Plan<F> {
    fn from_iter<I: IntoIterator<Item = Write<F>>>(writes: I) -> Self {
        Self { writes: writes.into_iter().collect(), wake: None }
    }
}

/// What all controllers of a process work with.
#[derive(Debug)]
pub struct Tools<F> {
    /// The fleet that is decided on.
    pub fleet: Shared<F>,
    /// Whether it may be written.
    pub gate: Gate,
    /// What tells the time.
    pub clock: Clock,
    /// What counts.
    pub metrics: Metrics,
}

impl<F> Clone for Tools<F> {
    fn clone(&self) -> Self {
        Self {
            fleet: self.fleet.clone(),
            gate: self.gate.clone(),
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
        }
    }
}

/// A reconciler at work.
pub struct Controller<F, R: Reconciler<F>> {
    reconciler: R,
    queue: Arc<Queue<R::Key>>,
    client: Client,
    tools: Tools<F>,
}

/// Why a key was not attended to.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("this process may not write any more")]
    GateShut,
    #[error("{write}: {source}")]
    Refused { write: String, source: Box<kube::Error> },
    #[error("the controller panicked")]
    Panicked,
}

impl<F: Send + Sync + 'static, R: Reconciler<F>> Controller<F, R> {
    /// A controller that attends to the keys of a queue.
    pub fn new(reconciler: R, queue: Arc<Queue<R::Key>>, client: Client, tools: Tools<F>) -> Self {
        Self { reconciler, queue, client, tools }
    }

    /// Attends to keys until `shutdown`, then finishes what is being written.
    pub async fn run(self, shutdown: CancellationToken) {
        let this = Arc::new(self);
        let places = Arc::new(Semaphore::new(CONCURRENCY));
        let mut tasks = JoinSet::new();
        while let Some(Ok(place)) = shutdown.run_until_cancelled(Arc::clone(&places).acquire_owned()).await {
            let Some(key) = shutdown.run_until_cancelled(this.next()).await else { break };
            let this = Arc::clone(&this);
            tasks.spawn(async move {
                this.attend(key).await;
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

    async fn attend(&self, key: R::Key) {
        let begun = Instant::now();
        let result = AssertUnwindSafe(self.reconcile(&key)).catch_unwind().await.unwrap_or(Err(Trouble::Panicked));
        let (outcome, done) = match result {
            Ok(wake) => (Outcome::Ok, Done::Well(wake)),
            Err(trouble) => match Self::report(&key, &trouble) {
                Outcome::Conflict => (Outcome::Conflict, Done::Overtaken),
                outcome => (outcome, Done::Failed),
            },
        };
        self.tools.metrics.reconciled(R::NAME, outcome, begun.elapsed());
        self.queue.done(&key, done);
    }

    async fn reconcile(&self, key: &R::Key) -> Result<Option<Timestamp>, Trouble> {
        let plan = self.reconciler.plan(&self.tools.fleet.read(), key, self.tools.clock.now());
        for write in &plan.writes {
            if !self.tools.gate.is_open(self.tools.clock.moment()) {
                return Err(Trouble::GateShut);
            }
            debug!(controller = R::NAME, %key, ?write, "writing");
            let sent = write.send(self.client.clone(), self.tools.fleet.clone(), R::NAME, &self.tools.metrics).await;
            sent.map_err(|error| Trouble::Refused { write: format!("{write:?}"), source: Box::new(error) })?;
        }
        Ok(plan.wake)
    }

    /// Says what went wrong. That somebody else was faster is nothing wrong: the key is decided on again.
    fn report(key: &R::Key, trouble: &Trouble) -> Outcome {
        match trouble {
            Trouble::GateShut => {
                debug!(controller = R::NAME, %key, %trouble, "left for later");
                Outcome::Conflict
            }
            Trouble::Refused { source, .. } if somebody_was_faster(source) => {
                debug!(controller = R::NAME, %key, %trouble, "somebody else was faster");
                Outcome::Conflict
            }
            Trouble::Refused { .. } => {
                warn!(controller = R::NAME, %key, %trouble, "could not write, and will try again");
                Outcome::Error
            }
            Trouble::Panicked => {
                error!(controller = R::NAME, %key, "this is a bug: the controller panicked, and will try again");
                Outcome::Panic
            }
        }
    }
}

fn somebody_was_faster(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_conflict() || status.is_already_exists() || status.is_not_found())
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        time::Duration,
    };

    use tokio::sync::watch;

    use super::*;
    use crate::{clock::ManualClock, informer::Freshness, lease::Leadership};

    /// Panics the first time, and says when it is asked.
    struct Clumsy {
        asked: watch::Sender<u32>,
        times: AtomicU32,
    }

    impl Reconciler<()> for Clumsy {
        type Key = &'static str;

        const NAME: &'static str = "clumsy";

        fn plan(&self, (): &(), _: &&'static str, _: Timestamp) -> Plan<()> {
            let time = self.times.fetch_add(1, Ordering::Relaxed) + 1;
            self.asked.send_replace(time);
            assert!(time > 1, "the first time goes wrong");
            Plan::default()
        }
    }

    /// A client of a server that has nothing.
    fn client() -> Client {
        Client::new(axum::Router::new(), "default")
    }

    #[tokio::test]
    async fn a_panic_is_counted_and_the_key_comes_again_after_a_rest() {
        let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
        let (_alone, leadership) = watch::channel(Leadership::Alone);
        let (gate, keep_fresh) = Gate::new(leadership, Freshness::default());
        tokio::spawn(keep_fresh);
        let tools = Tools { fleet: Shared::new(()), gate, clock: manual.clock(), metrics: Metrics::new() };
        let queue = Arc::new(Queue::new(manual.clock()));
        let (asked, mut times) = watch::channel(0);
        let clumsy = Clumsy { asked, times: AtomicU32::new(0) };
        let end = CancellationToken::new();
        let controller = Controller::new(clumsy, Arc::clone(&queue), client(), tools.clone());
        let running = tokio::spawn(controller.run(end.clone()));

        queue.mark("key");
        times.wait_for(|times| *times == 1).await.expect("the controller is there");
        while !tools.metrics.encode().contains(r#"drover_reconciles_total{controller="clumsy",result="panic"} 1"#) {
            tokio::task::yield_now().await;
        }
        manual.advance(Duration::from_mins(1));
        times.wait_for(|times| *times == 2).await.expect("the controller is there");

        end.cancel();
        running.await.expect("the controller ends by itself");
    }
}
