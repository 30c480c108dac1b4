//! What becomes of what a work has left on a cluster once the work is not there any more: not deleted, but gone, or on a hub that the agent has left.

use std::time::Duration;

use drover_api::work::AppliedManifestWork;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

/// A grace of so long means never.
const NEVER: Duration = Duration::from_hours(100 * 365 * 24);

/// An agent, as far as it matters for what it evicts.
#[derive(Clone, Copy, Debug)]
pub struct Agent<'a> {
    /// The hash of its hub.
    pub hub_hash: &'a str,
    /// By which it tells what it has applied from what other agents have.
    pub agent_id: &'a str,
    /// How long a work may be missing.
    pub grace: Duration,
}

/// What is to be done about an AppliedManifestWork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// Nothing.
    Stay,
    /// Its work has begun to be missing: evictionStartTime is set.
    Stamp(Timestamp),
    /// Its work is back: evictionStartTime is removed.
    Clear,
    /// Its work is missing, and may be until then.
    Wait(Timestamp),
    /// Its work has been missing for too long: it is deleted, with its objects.
    Evict,
}

/// Whether this agent has made an AppliedManifestWork, and not another on the same cluster. Those that say nothing are from a time when the hash of their hub was what
/// they would have said.
#[must_use]
pub fn is_of_agent(applied: &AppliedManifestWork, agent_id: &str) -> bool {
    applied.spec.agent_id.as_deref().unwrap_or(&applied.spec.hub_hash) == agent_id
}

/// What is to be done about an AppliedManifestWork whose work is there or not.
#[must_use]
pub fn eviction(applied: &AppliedManifestWork, work_is_there: bool, agent: &Agent<'_>, now: Timestamp) -> Eviction {
    if !is_of_agent(applied, agent.agent_id) || applied.metadata.deletion_timestamp.is_some() {
        return Eviction::Stay;
    }
    let stamp = applied.status.as_ref().and_then(|status| status.eviction_start_time.as_ref()).map(|time| time.0);
    let is_of_hub = applied.name_any().strip_prefix(agent.hub_hash).is_some_and(|rest| rest.starts_with('-'));
    match stamp {
        Some(_) if work_is_there && is_of_hub => Eviction::Clear,
        _ if (work_is_there && is_of_hub) || agent.grace >= NEVER => Eviction::Stay,
        None => Eviction::Stamp(now),
        Some(since) => match end_of(since, agent.grace) {
            Some(end) if end <= now => Eviction::Evict,
            Some(end) => Eviction::Wait(end),
            None => Eviction::Stay,
        },
    }
}

/// When a grace is over; nothing if that is beyond all times.
fn end_of(since: Timestamp, grace: Duration) -> Option<Timestamp> {
    since.checked_add(SignedDuration::try_from(grace).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use drover_api::work::{AppliedManifestWorkSpec, AppliedManifestWorkStatus};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn applied(name: &str, agent_id: Option<&str>, stamp: Option<i64>) -> AppliedManifestWork {
        let spec = AppliedManifestWorkSpec {
            hub_hash: "hub".into(),
            agent_id: agent_id.map(Into::into),
            manifest_work_name: "work".into(),
        };
        let mut applied = AppliedManifestWork::new(name, spec);
        let eviction_start_time = stamp.map(|second| Time(at(second)));
        applied.status = Some(AppliedManifestWorkStatus { eviction_start_time, ..Default::default() });
        applied
    }

    fn asked(applied: &AppliedManifestWork, work_is_there: bool, grace: Duration, now: i64) -> Eviction {
        eviction(applied, work_is_there, &Agent { hub_hash: "hub", agent_id: "me", grace }, at(now))
    }

    #[test]
    fn a_missing_work_is_stamped_and_evicted_when_the_grace_is_over() {
        let mine = |stamp| applied("hub-work", Some("me"), stamp);
        assert_eq!(asked(&mine(None), true, HOUR, 5), Eviction::Stay);
        assert_eq!(asked(&mine(None), false, HOUR, 5), Eviction::Stamp(at(5)));
        assert_eq!(asked(&mine(Some(5)), false, HOUR, 3604), Eviction::Wait(at(3605)));
        assert_eq!(asked(&mine(Some(5)), false, HOUR, 3605), Eviction::Evict);
        assert_eq!(asked(&mine(Some(5)), true, HOUR, 4000), Eviction::Clear);
    }

    #[test]
    fn a_work_of_another_hub_is_missing_here_whatever_is_called_the_same() {
        assert_eq!(asked(&applied("other-work", Some("me"), None), true, HOUR, 5), Eviction::Stamp(at(5)));
        assert_eq!(asked(&applied("hubby-work", Some("me"), None), true, HOUR, 5), Eviction::Stamp(at(5)));
    }

    #[test]
    fn what_other_agents_have_applied_is_theirs() {
        assert_eq!(asked(&applied("hub-work", Some("you"), Some(0)), false, HOUR, 9999), Eviction::Stay);
        assert_eq!(asked(&applied("hub-work", None, Some(0)), false, HOUR, 9999), Eviction::Stay);
        let agent = Agent { hub_hash: "hub", agent_id: "hub", grace: HOUR };
        assert_eq!(eviction(&applied("hub-work", None, Some(0)), false, &agent, at(9999)), Eviction::Evict);
    }

    #[test]
    fn a_grace_of_a_hundred_years_is_for_ever() {
        let years = |years: u64| Duration::from_hours(years * 365 * 24);
        let mine = applied("hub-work", Some("me"), Some(0));
        assert_eq!(asked(&mine, false, years(100), i64::from(u32::MAX)), Eviction::Stay);
        assert!(matches!(asked(&mine, false, years(99), 5), Eviction::Wait(_)));
        assert_eq!(asked(&applied("hub-work", Some("me"), None), false, Duration::MAX, 5), Eviction::Stay);
    }

    #[test]
    fn what_is_on_its_way_out_is_let_go() {
        let mut going = applied("hub-work", Some("me"), Some(0));
        going.metadata.deletion_timestamp = Some(Time(at(1)));
        assert_eq!(asked(&going, false, HOUR, 9999), Eviction::Stay);
    }
}
