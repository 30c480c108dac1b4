//! What a hub has cost by now, as the server and the system count it.

use std::time::{Duration, Instant};

use kube::Client;
use tokio::time::sleep;
use tracing::warn;

use crate::{
    hub_counts::Counts, hub_process::Health, own_requests::OwnRequests, process::Process, server_counts::Requests,
};

/// A hub that nobody has heard of for so long is at rest.
const REST: Duration = Duration::from_secs(3);
/// How often it is asked.
const INTERVAL: Duration = Duration::from_millis(500);
/// A hub that writes for longer than this is measured as it is.
const PATIENCE: Duration = Duration::from_mins(2);

/// Counts what a hub costs.
pub(super) struct Meter {
    client: Client,
    own: OwnRequests,
    process: Option<Process>,
    health: Option<Health>,
}

/// What a hub has cost by now, or in some time.
#[derive(Clone, Debug, Default)]
pub(super) struct Cost {
    /// The requests of others than this program. If nothing else is going on, they are the hub's.
    pub(super) hub: Requests,
    /// The requests of this program.
    pub(super) own: Requests,
    pub(super) cpu: Option<Duration>,
    /// The most memory that the hub has had from its start.
    pub(super) peak_megabytes: Option<f64>,
    /// What the hub counts itself.
    pub(super) counts: Option<Counts>,
}

impl Cost {
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            hub: self.hub.since(&before.hub),
            own: self.own.since(&before.own),
            cpu: self.cpu.zip(before.cpu).map(|(now, before)| now.saturating_sub(before)),
            peak_megabytes: self.peak_megabytes,
            counts: self.counts.as_ref().zip(before.counts.as_ref()).map(|(now, before)| now.since(before)),
        }
    }
}

impl Meter {
    /// Counts what somebody else than `own` does, on the server of `client`.
    pub(super) fn new(client: Client, own: OwnRequests, process: Option<Process>) -> Self {
        Self { client, own, process, health: None }
    }

    /// The same, for a hub that can be asked.
    pub(super) fn asking(self, health: Health) -> Self {
        Self { health: Some(health), ..self }
    }

    pub(super) async fn read(&self) -> anyhow::Result<Cost> {
        let all = Requests::count(&self.client).await?;
        let own = self.own.count();
        let counts = match self.health {
            Some(health) => Some(Counts::read(&health.get("/metrics").await?)),
            None => None,
        };
        Ok(Cost {
            counts,
            hub: all.since(&own),
            own,
            cpu: self.process.map(Process::cpu).transpose()?,
            peak_megabytes: self.process.map(Process::peak_memory_megabytes).transpose()?,
        })
    }

    /// Waits until the hub writes nothing any more.
    pub(super) async fn quiet(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let (mut writes, mut last) = (None, Instant::now());
        while last.elapsed() < REST {
            let now = Some(self.read().await?.hub.writes());
            if now != writes {
                (writes, last) = (now, Instant::now());
            }
            if begun.elapsed() > PATIENCE {
                warn!(
                    "the hub does not come to rest: what is counted has a part that has nothing to do with the add-on"
                );
                break;
            }
            sleep(INTERVAL).await;
        }
        Ok(())
    }

    /// Fails if the hub has ended.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.process.map(Process::cpu).transpose().map(drop)
    }

    /// The hub's CPU time, for short times.
    pub(super) fn cpu_finely(&self) -> anyhow::Result<Option<Duration>> {
        self.process.map(Process::cpu_of_threads).transpose()
    }

    /// What the hub has used of the CPU since it was asked.
    pub(super) fn cpu_since(&self, before: Option<Duration>) -> anyhow::Result<Option<Duration>> {
        Ok(self.cpu_finely()?.zip(before).map(|(now, before)| now.saturating_sub(before)))
    }
}
