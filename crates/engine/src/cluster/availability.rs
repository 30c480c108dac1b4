//! Whether a cluster is there, by the lease that its agent renews.
//!
//! The agent says whether its cluster is available. The hub says that nobody knows when nothing was heard of the agent for five times the
//! duration of its lease. How long that is, is measured by the hub's clock from when the hub saw the renewal: the time that the agent wrote is
//! the agent's, and tells how far apart the clocks are. If the hub itself could not see for a while, agents get the time to be heard again.

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

/// The reason of a cluster's availability that nobody knows, because it is not heard of; and of that of its add-ons. It is OCM's.
pub const UNREACHABLE: &str = "ManagedClusterLeaseUpdateStopped";

/// How many times the duration of its lease a cluster may be silent.
const GRACE: u32 = 5;
/// How many times the duration of its lease a cluster has, after the hub could not see, to be heard of again: one renewal with room to spare.
const RETURN: u32 = 2;
/// How long it has at least.
const SHORTEST_RETURN: Duration = Duration::from_mins(1);
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

/// What the hub has heard of a cluster's agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// The latest renewal of its lease, if there is a lease.
    pub heartbeat: Option<Heartbeat>,
    /// When it last said whether the cluster is available, while the hub was looking.
    pub report: Option<Timestamp>,
    /// Until when the hub may not have seen what it did.
    pub blind_until: Option<Timestamp>,
}

/// What the lease says of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The cluster's conditions.
    pub conditions: Vec<Condition>,
    /// When the cluster will have been silent for too long.
    pub look_again: Option<Timestamp>,
}

/// What the hub says of a cluster, given what it has heard of its agent.
#[must_use]
pub fn judge(cluster: &ManagedCluster, signs: Signs, now: Timestamp) -> Judgement {
    let there = conditions(cluster).to_vec();
    // A cluster that has no lease, and never said that it is there, has nothing to fall silent of.
    if signs.heartbeat.is_none() && condition::holds(&there, CLUSTER_AVAILABLE).is_none() {
        return Judgement { conditions: there, look_again: None };
    }
    let conditions = signs.heartbeat.map_or(there.clone(), |heartbeat| compare_clocks(there, cluster, heartbeat, now));
    let end = end_of_grace(cluster, signs);
    if now < end {
        return Judgement { conditions, look_again: Some(end) };
    }
    let message = match signs.heartbeat {
        _ if !cluster.spec.hub_accepts_client => {
            "the cluster is not accepted, so its agent can not renew its lease".to_owned()
        }
        Some(heartbeat) => format!("the agent has not renewed its lease since {:.0}", heartbeat.seen(cluster)),
        None => "the cluster has no lease that its agent could renew".to_owned(),
    };
    Judgement { conditions: silent(conditions, &message, now), look_again: None }
}

/// Until when a cluster may be silent.
fn end_of_grace(cluster: &ManagedCluster, signs: Signs) -> Timestamp {
    let after = |time: Timestamp, duration: Duration| time.checked_add(duration).unwrap_or(Timestamp::MAX);
    let renewal = signs.heartbeat.map(|heartbeat| heartbeat.seen(cluster));
    // A lease can be older than the cluster, if one of the same name was there before.
    let made = cluster.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let heard = [renewal, signs.report, made].into_iter().flatten().max();
    let duration = duration(cluster);
    let ends = [
        heard.map(|time| after(time, duration * GRACE)),
        signs.blind_until.map(|time| after(time, (duration * RETURN).max(SHORTEST_RETURN))),
    ];
    ends.into_iter().flatten().max().unwrap_or(Timestamp::MIN)
}

/// How often a cluster renews its lease.
fn duration(cluster: &ManagedCluster) -> Duration {
    let seconds = u64::try_from(cluster.spec.lease_duration_seconds).unwrap_or_default();
    if seconds == 0 { DURATION } else { Duration::from_secs(seconds) }
}

fn silent(there: Vec<Condition>, message: &str, now: Timestamp) -> Vec<Condition> {
    // Since when it is silent does not change while it is, whatever a hub that was started since takes it for.
    if condition::holds(&there, CLUSTER_AVAILABLE) == Some(Holds::Unknown) {
        return there;
    }
    let reason = UNREACHABLE;
    let says = Says { type_: CLUSTER_AVAILABLE, holds: Holds::Unknown, reason, message, generation: None };
    condition::with(there, says, now)
}

/// Compares the clocks, where there is something to compare: a renewal that was found tells nothing but that it is not from the
/// future, or is.
fn compare_clocks(
    mut there: Vec<Condition>,
    cluster: &ManagedCluster,
    heartbeat: Heartbeat,
    now: Timestamp,
) -> Vec<Condition> {
    if cluster.annotations().get(SKIP_CLOCK_SYNC_ANNOTATION).is_some_and(|value| value == "true") {
        there.retain(|condition| condition.type_ != CLUSTER_CLOCK_SYNCED);
        return there;
    }
    let apart = heartbeat.renewed.duration_since(heartbeat.noticed);
    let holds = apart.unsigned_abs() < duration(cluster) * GRACE;
    let tells_nothing = heartbeat.sight == Sight::Found && (holds || !apart.is_positive());
    // How far a clock is out changes with every renewal; that it is, does not.
    let is_known = !holds && condition::holds(&there, CLUSTER_CLOCK_SYNCED) == Some(Holds::No);
    if tells_nothing || is_known {
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

    fn live(renewed: Timestamp, noticed: Timestamp) -> Signs {
        let heartbeat = Some(Heartbeat { renewed, noticed, sight: Sight::Live });
        Signs { heartbeat, ..Signs::default() }
    }

    fn found(renewed: Timestamp, noticed: Timestamp) -> Signs {
        let heartbeat = Some(Heartbeat { renewed, noticed, sight: Sight::Found });
        Signs { heartbeat, ..Signs::default() }
    }

    fn says<'a>(judgement: &'a Judgement, type_: &str) -> Option<(&'a str, &'a str)> {
        let condition = judgement.conditions.iter().find(|condition| condition.type_ == type_)?;
        Some((&condition.status, &condition.reason))
    }

    #[test]
    fn a_cluster_is_silent_after_five_times_its_lease_and_not_before() {
        let heartbeat = live(at(1000), at(1000));
        let judgement = judge(&cluster(), heartbeat, at(1299));
        assert_eq!((says(&judgement, CLUSTER_AVAILABLE), judgement.look_again), (None, Some(at(1300))));
        let judgement = judge(&cluster(), heartbeat, at(1300));
        assert_eq!(says(&judgement, CLUSTER_AVAILABLE), Some(("Unknown", "ManagedClusterLeaseUpdateStopped")));
        assert_eq!(judgement.look_again, None);
    }

    #[test]
    fn a_lease_from_the_future_does_not_keep_a_cluster_alive() {
        let heartbeat = live(at(10_000), at(1000));
        let judgement = judge(&cluster(), heartbeat, at(1000));
        assert_eq!(says(&judgement, CLUSTER_CLOCK_SYNCED), Some(("False", "ManagedClusterClockOutOfSync")));
        let judgement = judge(&cluster(), heartbeat, at(1300));
        assert_eq!(says(&judgement, CLUSTER_AVAILABLE), Some(("Unknown", "ManagedClusterLeaseUpdateStopped")));
    }

    #[test]
    fn a_restarted_hub_does_not_take_a_slow_clock_for_silence() {
        let mut slow = cluster();
        let conditions = judge(&slow, live(at(1000), at(2000)), at(2000)).conditions;
        slow.status = Some(ManagedClusterStatus { conditions, ..ManagedClusterStatus::default() });
        let found = found(at(1060), at(2060));
        let judgement = judge(&slow, found, at(2060));
        assert_eq!(says(&judgement, CLUSTER_AVAILABLE), None);
        assert_eq!(says(&judgement, CLUSTER_CLOCK_SYNCED), Some(("False", "ManagedClusterClockOutOfSync")));
    }

    #[test]
    fn a_restarted_hub_knows_how_long_a_cluster_has_been_silent() {
        let found = found(at(1000), at(1200));
        assert_eq!(judge(&cluster(), found, at(1200)).look_again, Some(at(1300)));
        let judgement = judge(&cluster(), found, at(1300));
        assert_eq!(says(&judgement, CLUSTER_AVAILABLE), Some(("Unknown", "ManagedClusterLeaseUpdateStopped")));
        assert_eq!(says(&judgement, CLUSTER_CLOCK_SYNCED), None, "nobody has seen the clocks side by side");
    }

    #[test]
    fn an_agent_that_reports_is_heard_of_even_if_its_lease_is_old() {
        let signs = Signs { report: Some(at(1299)), ..live(at(1000), at(1000)) };
        assert_eq!(judge(&cluster(), signs, at(1300)).look_again, Some(at(1599)));
    }

    #[test]
    fn a_hub_that_could_not_see_gives_agents_the_time_to_be_heard_again() {
        let signs = Signs { blind_until: Some(at(9000)), ..live(at(1000), at(1000)) };
        assert_eq!(judge(&cluster(), signs, at(9000)).look_again, Some(at(9120)));
        let silent = judge(&cluster(), signs, at(9120));
        assert_eq!(says(&silent, CLUSTER_AVAILABLE), Some(("Unknown", "ManagedClusterLeaseUpdateStopped")));
    }

    #[test]
    fn a_cluster_does_not_inherit_the_silence_of_its_predecessor() {
        let mut again = cluster();
        again.metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(5000)));
        assert_eq!(judge(&again, found(at(1000), at(5000)), at(5000)).look_again, Some(at(5300)));
    }

    #[test]
    fn a_cluster_without_a_lease_is_unknown_when_its_time_is_up() {
        let mut there = cluster();
        assert_eq!(judge(&there, Signs::default(), at(0)).conditions, [], "it never said that it is there");
        let says_so =
            Says { type_: CLUSTER_AVAILABLE, holds: Holds::Yes, reason: "Test", message: "", generation: None };
        let conditions = condition::with(Vec::new(), says_so, at(0));
        there.status = Some(ManagedClusterStatus { conditions, ..Default::default() });
        let reported = Signs { report: Some(at(1000)), ..Signs::default() };
        assert_eq!(judge(&there, reported, at(1299)).look_again, Some(at(1300)));
        for signs in [reported, Signs::default()] {
            let judgement = judge(&there, signs, at(1300));
            assert_eq!(says(&judgement, CLUSTER_AVAILABLE), Some(("Unknown", "ManagedClusterLeaseUpdateStopped")));
        }
    }

    #[test]
    fn a_clock_that_is_not_to_be_compared_is_not() {
        let mut skipped = cluster();
        skipped.annotations_mut().insert(SKIP_CLOCK_SYNC_ANNOTATION.to_owned(), "true".to_owned());
        let judgement = judge(&skipped, live(at(10_000), at(0)), at(0));
        assert_eq!(says(&judgement, CLUSTER_CLOCK_SYNCED), None);
    }

    #[test]
    fn what_is_said_of_a_silent_cluster_stays_the_same() {
        let mut silent = cluster();
        let conditions = judge(&silent, live(at(1000), at(1003)), at(2000)).conditions;
        silent.status = Some(ManagedClusterStatus { conditions: conditions.clone(), ..Default::default() });
        let found = found(at(1000), at(90_000));
        assert_eq!(judge(&silent, found, at(90_000)).conditions, conditions);
    }
}
