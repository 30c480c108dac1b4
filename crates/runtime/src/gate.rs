//! Whether this process may write at the moment.

use k8s_openapi::jiff::Timestamp;
use tokio::sync::watch;

use crate::{clock::Moment, informer::Freshness, lease::Leadership};

/// Open while this process leads and what it knows is fresh: it has listed everything since it began to lead, so that it
/// knows what the former leader did.
#[derive(Clone, Debug)]
pub struct Gate {
    leadership: watch::Receiver<Leadership>,
    /// The beginning of the term for which everything was listed.
    fresh: watch::Receiver<Option<Timestamp>>,
}

impl Gate {
    /// A gate, and the work that has to be done for it to open: it ends with the election.
    pub fn new(leadership: watch::Receiver<Leadership>, freshness: Freshness) -> (Self, impl Future<Output = ()>) {
        let (listed, fresh) = watch::channel(None);
        let gate = Self { leadership: leadership.clone(), fresh };
        (gate, keep_fresh(leadership, freshness, listed))
    }

    /// Whether a write may be sent now. Ask right before each: the answer changes with the time.
    #[must_use]
    pub fn is_open(&self, now: Moment) -> bool {
        let leadership = *self.leadership.borrow();
        leadership.may_act(now) && *self.fresh.borrow() == Some(term(leadership))
    }

    /// Waits until it may be open.
    pub async fn opened(&mut self) {
        // Once the election is over nothing opens any more.
        if self.fresh.wait_for(Option::is_some).await.is_err()
            || self.leadership.wait_for(|l| *l != Leadership::Standby).await.is_err()
        {
            std::future::pending::<()>().await;
        }
    }
}

/// When a term began; for a process that is alone, at the beginning of time.
fn term(leadership: Leadership) -> Timestamp {
    match leadership {
        Leadership::Leader { since, .. } => since,
        Leadership::Standby | Leadership::Alone => Timestamp::MIN,
    }
}

async fn keep_fresh(
    mut leadership: watch::Receiver<Leadership>,
    freshness: Freshness,
    listed: watch::Sender<Option<Timestamp>>,
) {
    loop {
        let now = *leadership.borrow_and_update();
        match now {
            Leadership::Standby => listed.send_replace(None),
            _ if *listed.borrow() == Some(term(now)) => None,
            // Whoever is alone has no predecessor: the first list is fresh.
            Leadership::Alone => {
                freshness.complete().await;
                listed.send_replace(Some(term(now)))
            }
            Leadership::Leader { .. } => {
                freshness.renew().await;
                listed.send_replace(Some(term(now)))
            }
        };
        if leadership.changed().await.is_err() {
            return;
        }
    }
}
