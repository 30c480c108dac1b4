//! Works that have done what they were for: nothing of them is applied any more, and after a while they are removed.
//!
//! A work may say how long it is to stay after it is complete. What is complete, its agent says. Works of a ManifestWorkReplicaSet are left
//! alone: the set would make them again.

use std::time::Duration;

use drover_api::{
    names::{REPLICA_SET_LABEL, UPGRADE_LABEL, WORK_COMPLETE},
    work::ManifestWork,
};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::Condition,
    jiff::{SignedDuration, Timestamp},
};
use kube::ResourceExt;

use crate::condition::{Holds, holds};

/// Whether a work has done what it was for. Nothing of it is applied any more, even if it is changed.
#[must_use]
pub fn is_complete(work: &ManifestWork) -> bool {
    let conditions = work.status.as_ref().map_or(&[][..], |status| &status.conditions);
    holds(conditions, WORK_COMPLETE) == Some(Holds::Yes)
}

/// What becomes of a work that says how long it is to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It stays: it is not complete.
    Stays,
    /// It goes at that time.
    GoesAt(Timestamp),
    /// Its time has come.
    Goes,
}

/// How long a work is to stay after it is complete, as it says itself, and since when it is
/// complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeToLive {
    seconds: i64,
    complete: Option<Timestamp>,
}

impl TimeToLive {
    /// That of a work; `None` if it has none, or its owner would create it again.
    #[must_use]
    pub fn of(work: &ManifestWork) -> Option<Self> {
        let is_owned = [REPLICA_SET_LABEL, UPGRADE_LABEL].iter().any(|label| work.labels().contains_key(*label));
        let seconds = work.spec.delete_option.as_ref()?.ttl_seconds_after_finished.filter(|_| !is_owned)?;
        let conditions = work.status.as_ref().map_or(&[][..], |status| &status.conditions);
        Some(Self { seconds, complete: complete_since(conditions) })
    }

    /// What becomes of the work.
    #[must_use]
    pub fn fate(self, now: Timestamp) -> Fate {
        decide(self.seconds, self.complete, now)
    }
}

fn complete_since(conditions: &[Condition]) -> Option<Timestamp> {
    let is_complete = |condition: &&Condition| condition.type_ == WORK_COMPLETE && condition.status == "True";
    conditions.iter().find(is_complete).map(|complete| complete.last_transition_time.0)
}

/// Decides on a work that is to stay for so many seconds after it is complete.
fn decide(seconds: i64, complete: Option<Timestamp>, now: Timestamp) -> Fate {
    let Some(complete) = complete else { return Fate::Stays };
    // Less than nothing is nothing, as with the Jobs of Kubernetes.
    let stay = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    let stay = SignedDuration::try_from(stay).unwrap_or(SignedDuration::MAX);
    let end = complete.checked_add(stay).unwrap_or(Timestamp::MAX);
    if end <= now { Fate::Goes } else { Fate::GoesAt(end) }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a valid time")
    }

    fn complete(status: &str, since: i64) -> Vec<Condition> {
        let condition = |type_: &str| Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: String::new(),
            message: String::new(),
            last_transition_time: Time(at(since)),
            observed_generation: None,
        };
        vec![condition("Applied"), condition("Complete")]
    }

    #[test]
    fn a_work_is_complete_if_its_condition_says_so() {
        let work = |conditions| {
            let status = drover_api::work::ManifestWorkStatus { conditions, ..Default::default() };
            ManifestWork { status: Some(status), ..ManifestWork::default() }
        };
        assert!(is_complete(&work(complete("True", 0))));
        assert!(!is_complete(&work(complete("False", 0))));
        assert!(!is_complete(&ManifestWork::default()));
    }

    #[test]
    fn a_work_stays_as_long_as_it_says_after_it_is_complete() {
        assert_eq!(decide(60, complete_since(&complete("True", 100)), at(159)), Fate::GoesAt(at(160)));
        assert_eq!(decide(60, complete_since(&complete("True", 100)), at(160)), Fate::Goes);
        assert_eq!(decide(0, complete_since(&complete("True", 100)), at(100)), Fate::Goes);
    }

    #[test]
    fn a_work_that_is_not_complete_stays() {
        assert_eq!(decide(0, None, at(100)), Fate::Stays);
        for status in ["False", "Unknown"] {
            assert_eq!(decide(0, complete_since(&complete(status, 0)), at(100)), Fate::Stays, "{status}");
        }
    }

    #[test]
    fn less_than_nothing_is_nothing() {
        assert_eq!(decide(-5, complete_since(&complete("True", 100)), at(100)), Fate::Goes);
    }

    proptest! {
        #[test]
        fn whoever_waits_until_then_sees_it_go(seconds: i64, since in 0..4_000_000_000_i64, now in 0..4_000_000_000_i64) {
            match decide(seconds, complete_since(&complete("True", since)), at(now)) {
                Fate::Stays => prop_assert!(false, "it is complete"),
                Fate::Goes => prop_assert!(since + seconds.max(0) <= now),
                Fate::GoesAt(end) => {
                    prop_assert!(at(now) < end);
                    prop_assert_eq!(decide(seconds, complete_since(&complete("True", since)), end), Fate::Goes);
                }
            }
        }
    }
}
