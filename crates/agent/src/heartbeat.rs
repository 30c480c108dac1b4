//! The sign of life that the hub waits for: the agent renews its cluster's Lease, as often as the hub wants it.

use std::time::Duration;

use drover_api::names::CLUSTER_LEASE;
use drover_runtime::{cache::SharedCache, clock::Clock};
use k8s_openapi::{api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::MicroTime};
use kube::{Api, Client, api::PostParams};
use tracing::{debug, warn};

use crate::cluster::Domain;

/// How long the hub may take to answer, and after how long it is tried again when it refused, at most.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who renews a Lease.
pub(crate) struct Heartbeat {
    pub(crate) hub: Client,
    pub(crate) namespace: String,
    pub(crate) domain: SharedCache<Domain>,
    pub(crate) clock: Clock,
}

impl Heartbeat {
    /// Renews the Lease for ever, as long as the hub accepts the cluster.
    pub(crate) async fn run(self) {
        let leases = Api::<Lease>::namespaced(self.hub.clone(), &self.namespace);
        let mut accepted = self.domain.read().accepted();
        let mut known = None;
        loop {
            // The sender is the domain's, which this holds.
            let _ = accepted.wait_for(Option::is_some).await;
            let Some(interval) = *accepted.borrow() else { continue };
            let renewed = tokio::select! {
                renewed = self.renew(&leases, known.take()) => renewed,
                // Somebody between us and the hub may swallow what is sent; the next attempt goes over another connection.
                () = self.clock.sleep(PATIENCE) => continue,
            };
            let rest = match renewed {
                Ok(renewed) => {
                    known = Some(renewed);
                    interval
                }
                Err(kube::Error::Api(status)) if status.is_conflict() => continue,
                Err(error) => {
                    warn!(cluster = self.namespace, %error, "the lease could not be renewed, and will be tried again");
                    interval.min(PATIENCE)
                }
            };
            tokio::select! {
                () = self.clock.sleep(rest) => {}
                changed = accepted.changed() => debug!(?changed, "the hub wants the lease renewed otherwise"),
            }
        }
    }

    /// Renews the Lease as it was last known; as it is read, where it was not.
    async fn renew(&self, leases: &Api<Lease>, known: Option<Lease>) -> Result<Lease, kube::Error> {
        let mut lease = match known {
            Some(lease) => lease,
            None => leases.get(CLUSTER_LEASE).await?,
        };
        lease.spec.get_or_insert_default().renew_time = Some(MicroTime(self.clock.now()));
        leases.replace(CLUSTER_LEASE, &PostParams::default(), &lease).await
    }
}
