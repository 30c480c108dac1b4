//! Whether a cluster is there, by the lease that its agent renews.
//!
//! The agent says whether its cluster is available. The hub says that nobody knows when the lease has not been renewed for
//! five times its duration. How long that is, is measured by the hub's clock from when the hub saw the renewal: the time that the
//! agent wrote is the agent's, and tells how far apart the clocks are.

use std::time::Duration;

use drover_api::{
    cluster::ManagedCluster,
    names::{CLUSTER_AVAILABLE, CLUSTER_CLOCK_SYNCED, SKIP_CLOCK_SYNC_ANNOTATION},
};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::Condition,
    jiff::{SignedDuration, Timestamp},
};
use kube::ResourceExt;

use super::conditions;
use crate::condition::{self, Holds, Says};

/// How many times the duration of its lease a cluster may be silent.
const GRACE: u32 = 5;
/// The duration of a lease where the cluster names none that makes sense.
const DURATION: Duration = Duration::from_mins(1);

/// A renewal of a cluster's lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// When it was, by the agent's clock.
    pub renewed: Timestamp,
    /// When the hub learnt of it, by the hub's clock.
    pub noticed: Timestamp,
    /// How the hub learnt of it.
    pub sight: Sight,
}

/// How the hub learnt of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// It was looking when the renewal came.
    Live,
    /// It found the renewal when it began to look.
    Found,
}

impl Heartbeat {
    /// When the renewal was, by the hub's clock. Of one that it found, the hub takes the agent's word for it, unless it knows
    /// the agent's clock to be wrong.
    fn seen(self, cluster: &ManagedCluster) -> Timestamp {
        let is_wrong = || condition::holds(conditions(cluster), CLUSTER_CLOCK_SYNCED) == Some(Holds::No);
        match self.sight {
            Sight::Found if !is_wrong() => self.renewed.min(self.noticed),
            _ => self.noticed,
        }
    }
}

/// What the lease says of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The cluster's conditions.
    pub conditions: Vec<Condition>,
    /// When the cluster will have been silent for too long.
    pub look_again: Option<Timestamp>,
}

/// What the hub says of a cluster, given the latest renewal of its lease, if there is a lease.
#[must_use]
pub fn judge(cluster: &ManagedCluster, heartbeat: Option<Heartbeat>, now: Timestamp) -> Judgement {
    let there = conditions(cluster).to_vec();
    let Some(heartbeat) = heartbeat else {
        let conditions = match cluster.metadata.deletion_timestamp {
            Some(_) => silent(there, "the cluster is being deleted, and its lease is gone", now),
            None => there,
        };
        return Judgement { conditions, look_again: None };
    };
    let grace = grace(cluster);
    let seen = heartbeat.seen(cluster);
    let conditions = compare_clocks(there, cluster, heartbeat.renewed.duration_since(seen), grace, now);
    let end = seen.checked_add(grace).unwrap_or(Timestamp::MAX);
    if now < end {
        return Judgement { conditions, look_again: Some(end) };
    }
    let message = format!("the agent has not renewed its lease since {seen:.0}");
    Judgement { conditions: silent(conditions, &message, now), look_again: None }
}

/// How long a cluster may be silent.
fn grace(cluster: &ManagedCluster) -> Duration {
    let seconds = u64::try_from(cluster.spec.lease_duration_seconds).unwrap_or_default();
    let duration = if seconds == 0 { DURATION } else { Duration::from_secs(seconds) };
    duration * GRACE
}

fn silent(there: Vec<Condition>, message: &str, now: Timestamp) -> Vec<Condition> {
    // Since when it is silent does not change while it is, whatever a hub that was started since takes it for.
    if condition::holds(&there, CLUSTER_AVAILABLE) == Some(Holds::Unknown) {
        return there;
    }
    let reason = "ManagedClusterLeaseUpdateStopped";
    let says = Says { type_: CLUSTER_AVAILABLE, holds: Holds::Unknown, reason, message, generation: None };
    condition::with(there, says, now)
}

fn compare_clocks(
    there: Vec<Condition>,
    cluster: &ManagedCluster,
    apart: SignedDuration,
    grace: Duration,
    now: Timestamp,
) -> Vec<Condition> {
    if cluster.annotations().get(SKIP_CLOCK_SYNC_ANNOTATION).is_some_and(|value| value == "true") {
        return there;
    }
    let holds = apart.unsigned_abs() < grace;
    // How far it is out changes with every renewal; that it is, does not.
    if !holds && condition::holds(&there, CLUSTER_CLOCK_SYNCED) == Some(Holds::No) {
        return there;
    }
    let message = if holds { "the clocks of the cluster and of the hub agree".to_owned() } else { out_of_sync(apart) };
    let says = Says {
        type_: CLUSTER_CLOCK_SYNCED,
        holds: holds.into(),
        reason: if holds { "ManagedClusterClockSynced" } else { "ManagedClusterClockOutOfSync" },
        message: &message,
        generation: None,
    };
    condition::with(there, says, now)
}

fn out_of_sync(apart: SignedDuration) -> String {
    let direction = if apart.is_positive() { "ahead of" } else { "behind" };
    let minutes = apart.as_secs().unsigned_abs() / 60;
    format!("the cluster's clock is {minutes} minutes {direction} the hub's: set it right")
}

#[cfg(test)]
mod tests {
    use drover_api::cluster::{ManagedClusterSpec, ManagedClusterStatus};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a valid time")
    }

    fn cluster() -> ManagedCluster {
        ManagedCluster::new("one", ManagedClusterSpec { lease_duration_seconds: 60, ..ManagedClusterSpec::default() })
    }

    fn live(renewed: Timestamp, noticed: Timestamp) -> Heartbeat {
        Heartbeat { renewed, noticed, sight: Sight::Live }
    }

    fn found(renewed: Timestamp, noticed: Timestamp) -> Heartbeat {
        Heartbeat { renewed, noticed, sight: Sight::Found }
    }

    fn says<'a>(judgement: &'a Judgement, type_: &str) -> Option<(&'a str, &'a str)> {
        let condition = judgement.conditions.iter().find(|condition| condition.type_ == type_)?;
        Some((&condition.status, &condition.reason))
    }

    #[test]
    fn a_cluster_is_silent_after_five_times_its_lease_and_not_before() {
        let heartbeat = Some(live(at(1000), at(1000)));
        let judgement = judge(&cluster(), heartbeat, at(1299));
        assert_eq!((says(&judgement, CLUSTER_AVAILABLE), judgement.look_again), (None, Some(at(1300))));
        let judgement = judge(&cluster(), heartbeat, at(1300));
        assert_eq!(says(&judgement, CLUSTER_AVAILABLE), Some(("Unknown", "ManagedClusterLeaseUpdateStopped")));
        assert_eq!(judgement.look_again, None);
    }

    #[test]
    fn a_lease_from_the_future_does_not_keep_a_cluster_alive() {
        let heartbeat = Some(live(at(10_000), at(1000)));
        let judgement = judge(&cluster(), heartbeat, at(1000));
        assert_eq!(says(&judgement, CLUSTER_CLOCK_SYNCED), Some(("False", "ManagedClusterClockOutOfSync")));
        let judgement = judge(&cluster(), heartbeat, at(1300));
        assert_eq!(says(&judgement, CLUSTER_AVAILABLE), Some(("Unknown", "ManagedClusterLeaseUpdateStopped")));
    }

    #[test]
    fn a_restarted_hub_does_not_take_a_slow_clock_for_silence() {
        let mut slow = cluster();
        let conditions = judge(&slow, Some(live(at(1000), at(2000))), at(2000)).conditions;
        slow.status = Some(ManagedClusterStatus { conditions, ..ManagedClusterStatus::default() });
        let found = found(at(1060), at(2060));
        let judgement = judge(&slow, Some(found), at(2060));
        assert_eq!(says(&judgement, CLUSTER_AVAILABLE), None);
        assert_eq!(says(&judgement, CLUSTER_CLOCK_SYNCED), Some(("False", "ManagedClusterClockOutOfSync")));
    }

    #[test]
    fn a_restarted_hub_knows_how_long_a_cluster_has_been_silent() {
        let found = found(at(1000), at(1200));
        assert_eq!(judge(&cluster(), Some(found), at(1200)).look_again, Some(at(1300)));
        let judgement = judge(&cluster(), Some(found), at(1300));
        assert_eq!(says(&judgement, CLUSTER_AVAILABLE), Some(("Unknown", "ManagedClusterLeaseUpdateStopped")));
        assert_eq!(says(&judgement, CLUSTER_CLOCK_SYNCED), Some(("True", "ManagedClusterClockSynced")));
    }

    #[test]
    fn a_cluster_that_goes_without_its_lease_is_unknown_at_once() {
        let mut going = cluster();
        assert_eq!(judge(&going, None, at(0)).conditions, []);
        going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(0)));
        let judgement = judge(&going, None, at(0));
        assert_eq!(says(&judgement, CLUSTER_AVAILABLE), Some(("Unknown", "ManagedClusterLeaseUpdateStopped")));
    }

    #[test]
    fn a_clock_that_is_not_to_be_compared_is_not() {
        let mut skipped = cluster();
        skipped.annotations_mut().insert(SKIP_CLOCK_SYNC_ANNOTATION.to_owned(), "true".to_owned());
        let judgement = judge(&skipped, Some(live(at(10_000), at(0))), at(0));
        assert_eq!(says(&judgement, CLUSTER_CLOCK_SYNCED), None);
    }

    #[test]
    fn what_is_said_of_a_silent_cluster_stays_the_same() {
        let mut silent = cluster();
        let conditions = judge(&silent, Some(live(at(1000), at(1003))), at(2000)).conditions;
        silent.status = Some(ManagedClusterStatus { conditions: conditions.clone(), ..Default::default() });
        let found = found(at(1000), at(90_000));
        assert_eq!(judge(&silent, Some(found), at(90_000)).conditions, conditions);
    }
}
