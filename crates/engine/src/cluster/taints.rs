//! The taints that say whether a cluster is there, and since when a taint is there.

use std::borrow::Cow;

use drover_api::{
    cluster::{ManagedCluster, Taint, TaintEffect},
    names::{UNAVAILABLE_TAINT, UNREACHABLE_TAINT},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::available;
use crate::condition::Holds;

/// The taints of a cluster as they are to be: those of other people stay, and each has the time when it was first seen.
#[must_use]
pub fn wanted(taints: &[Taint], available: Holds, now: Timestamp) -> Vec<Taint> {
    let ours = match available {
        Holds::Yes => None,
        Holds::No => Some(UNAVAILABLE_TAINT),
        Holds::Unknown => Some(UNREACHABLE_TAINT),
    };
    let is_outdated =
        |taint: &Taint| [UNAVAILABLE_TAINT, UNREACHABLE_TAINT].contains(&&*taint.key) && Some(&*taint.key) != ours;
    let mut wanted: Vec<_> = taints.iter().filter(|taint| !is_outdated(taint)).cloned().collect();
    if let Some(key) = ours
        && !wanted.iter().any(|taint| taint.key == key && taint.effect == TaintEffect::NoSelect)
    {
        wanted.push(Taint { key: key.to_owned(), value: None, effect: TaintEffect::NoSelect, time_added: None });
    }
    for taint in &mut wanted {
        // Whole seconds: OCM's agents round to them when they write the cluster back, and may not change a taint.
        taint.time_added.get_or_insert(Time(Timestamp::from_second(now.as_second()).unwrap_or(now)));
    }
    wanted
}

/// The cluster with the taints that it is about to have, so that a placement does not select it for a moment only because nobody
/// has marked it yet.
#[must_use]
pub fn foreseen(cluster: &ManagedCluster, now: Timestamp) -> Cow<'_, ManagedCluster> {
    let taints = wanted(&cluster.spec.taints, available(cluster), now);
    if taints == cluster.spec.taints {
        return Cow::Borrowed(cluster);
    }
    let mut foreseen = cluster.clone();
    foreseen.spec.taints = taints;
    Cow::Owned(foreseen)
}

#[cfg(test)]
mod tests {
    use drover_api::cluster::ManagedClusterSpec;

    use super::*;

    fn taint(key: &str, second: Option<i64>) -> Taint {
        let time_added = second.map(|second| Time(Timestamp::from_second(second).expect("a valid time")));
        Taint { key: key.to_owned(), value: None, effect: TaintEffect::NoSelect, time_added }
    }

    fn at(taints: &[Taint], available: Holds, second: i64) -> Vec<Taint> {
        wanted(taints, available, Timestamp::from_second(second).expect("a valid time"))
    }

    #[test]
    fn a_cluster_has_the_taint_of_its_state_and_keeps_the_time() {
        let silent = at(&[], Holds::Unknown, 1);
        assert_eq!(silent, [taint(UNREACHABLE_TAINT, Some(1))]);
        assert_eq!(at(&silent, Holds::Unknown, 2), silent);
        assert_eq!(at(&silent, Holds::No, 3), [taint(UNAVAILABLE_TAINT, Some(3))]);
        assert_eq!(at(&silent, Holds::Yes, 4), []);
    }

    #[test]
    fn a_cluster_that_nobody_has_marked_yet_is_seen_as_it_will_be() {
        let mut cluster = ManagedCluster::new("one", ManagedClusterSpec::default());
        let now = Timestamp::from_second(7).expect("a valid time");
        assert_eq!(foreseen(&cluster, now).spec.taints, [taint(UNREACHABLE_TAINT, Some(7))]);
        cluster.spec.taints = vec![taint(UNREACHABLE_TAINT, Some(1))];
        assert!(matches!(foreseen(&cluster, now), Cow::Borrowed(_)));
    }

    #[test]
    fn the_taints_of_others_stay_and_get_a_time() {
        let theirs = [taint("example.com/a", None), taint("example.com/b", Some(1))];
        let wanted = at(&theirs, Holds::Yes, 5);
        assert_eq!(wanted, [taint("example.com/a", Some(5)), taint("example.com/b", Some(1))]);
    }
}
