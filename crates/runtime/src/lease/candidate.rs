//! What a candidate knows, and what it does next. No I/O; every time is handed in.
//!
//! Waiting is measured in ticks, which nobody can set. Times of the wall clock go into the record, and count only against the
//! candidate's own renewal.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::api::ObjectMeta;

use super::{DURATION, Leadership};
use crate::clock::{Moment, Tick};

/// How long after a renewal the next one is due.
const RENEW: Duration = Duration::from_secs(3);

/// How often a candidate that does not lead looks at the lease.
const POLL: Duration = Duration::from_secs(1);

/// How long after something went wrong it is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// What is to be done about a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nobody holds it: take it.
    Acquire,
    /// We hold it, and it is time to say so again.
    Renew,
    /// Nothing before that tick.
    Wait { until: Tick },
}

/// What a candidate knows about itself.
#[derive(Clone, Debug)]
pub(super) struct Me {
    identity: String,
    /// When we last claimed the lease, and its `acquireTime` if that succeeded, even if we were not told.
    claimed: Option<Timestamp>,
    /// Whether we were ever told that a claim succeeded.
    has_led: bool,
    /// When the latest renewal was sent that we know to have succeeded. None when we do not lead.
    renewed: Option<Moment>,
}

/// Who holds a lease, seen from one candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Nobody,
    /// This process.
    Me,
    /// A process of our name, before this one started.
    EarlierMe,
    Other,
}

impl Me {
    fn new(identity: &str) -> Self {
        Self { identity: identity.to_owned(), claimed: None, has_led: false, renewed: None }
    }

    fn holder(&self, spec: &LeaseSpec) -> Holder {
        match spec.holder_identity.as_deref() {
            None | Some("") => Holder::Nobody,
            Some(identity) if identity != self.identity => Holder::Other,
            Some(_) if self.claimed.is_some() && spec.acquire_time.as_ref().map(|time| time.0) == self.claimed => {
                Holder::Me
            }
            // Who has led knows its own terms: this one is of another process that was given the same name by mistake.
            Some(_) if self.has_led => Holder::Other,
            Some(_) => Holder::EarlierMe,
        }
    }
}

/// What `me` does about the lease that it observed, `observed_at` being when it first saw it as it is.
pub(super) fn next(observed: Option<&Lease>, observed_at: Tick, me: &Me, now: Moment) -> Step {
    let Some(spec) = observed.and_then(|lease| lease.spec.as_ref()) else { return Step::Acquire };
    match me.holder(spec) {
        Holder::Nobody | Holder::EarlierMe => Step::Acquire,
        Holder::Me => match me.renewed {
            Some(renewed) if now.is_within(RENEW, renewed) => Step::Wait { until: renewed.tick.after(RENEW) },
            _ => Step::Renew,
        },
        Holder::Other => {
            let until = observed_at.after(duration(spec));
            if until <= now.tick { Step::Acquire } else { Step::Wait { until } }
        }
    }
}

/// How long the holder was promised to be left alone.
fn duration(spec: &LeaseSpec) -> Duration {
    let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    seconds.filter(|seconds| *seconds > 0).map_or(DURATION, Duration::from_secs)
}

/// What a candidate asks to be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Turn {
    /// Read the lease, and say what was [seen](Candidate::saw).
    Look,
    /// Write the lease: replace the version that it carries, or create it if it carries none.
    Write(Box<Lease>),
    /// Nothing before that tick.
    Rest { until: Tick },
}

/// A candidate for the lease: asks for one thing after the other, and is told what became of it.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    me: Me,
    /// The lease as last seen; without a resourceVersion if it was deleted under its holder.
    seen: Option<Lease>,
    /// When it was first seen as it is.
    seen_at: Tick,
    /// Whether what was seen is good enough to act on.
    knows: bool,
    /// Whether the last write was refused, and the lease was not looked at since.
    was_refused: bool,
    /// Nothing is asked for before that tick.
    rest: Option<Tick>,
}

impl Candidate {
    pub(super) fn new(identity: &str, now: Tick) -> Self {
        Self { me: Me::new(identity), seen: None, seen_at: now, knows: false, was_refused: false, rest: None }
    }

    /// What to do now.
    pub(super) fn turn(&mut self, now: Moment) -> Turn {
        if let Some(until) = self.rest.filter(|until| now.tick < *until) {
            return Turn::Rest { until };
        }
        self.rest = None;
        if !self.knows {
            return Turn::Look;
        }
        match next(self.seen.as_ref(), self.seen_at, &self.me, now) {
            Step::Acquire => Turn::Write(Box::new(self.claim(now.time))),
            Step::Renew => Turn::Write(Box::new(self.renewal(now.time))),
            Step::Wait { until } if self.me.renewed.is_some() => Turn::Rest { until },
            Step::Wait { until } => {
                self.knows = false;
                self.rest_until(until.min(now.tick.after(POLL)))
            }
        }
    }

    /// The lease was read.
    pub(super) fn saw(&mut self, found: Option<Lease>, now: Tick) {
        self.knows = true;
        match found {
            Some(lease) => {
                if self.seen.as_ref().is_none_or(|seen| seen.spec != lease.spec) {
                    self.seen_at = now;
                }
                self.seen = Some(lease);
            }
            None => self.forget(),
        }
        if self.holder() != Holder::Me {
            self.me.renewed = None;
        }
        if self.was_refused {
            self.was_refused = false;
            self.rest_until(now.after(RETRY));
        }
    }

    /// The write that was sent then succeeded, and this is the lease now.
    pub(super) fn confirmed(&mut self, lease: Lease, sent: Moment, now: Tick) {
        self.seen = Some(lease);
        self.seen_at = now;
        self.knows = true;
        self.me.has_led = true;
        self.me.renewed = Some(sent);
    }

    /// The write was refused because the lease is not what we took it for. That is looked into at once.
    pub(super) fn refused(&mut self) {
        self.knows = false;
        self.was_refused = true;
    }

    /// The request failed, or nobody knows what became of it.
    pub(super) fn failed(&mut self, now: Tick) {
        self.knows = false;
        self.rest_until(now.after(RETRY));
    }

    /// Whether we lead. A lease that ran out is not led by anybody, but if it turns out to be still ours, the term goes on.
    pub(super) fn leadership(&self, now: Moment) -> Leadership {
        match (self.me.claimed, self.me.renewed) {
            (Some(since), Some(renewed)) if now.is_within(DURATION, renewed) => Leadership::Leader { since, renewed },
            _ => Leadership::Standby,
        }
    }

    /// Whether the lease can be ours.
    pub(super) fn has_claimed(&self) -> bool {
        self.me.claimed.is_some()
    }

    /// The lease that was found, given back. None if it is not ours.
    pub(super) fn released(&self, found: Lease, now: Timestamp) -> Option<Lease> {
        let spec = found.spec.filter(|spec| self.me.holder(spec) == Holder::Me)?;
        let spec = LeaseSpec { holder_identity: None, renew_time: Some(MicroTime(now)), ..spec };
        Some(Lease { spec: Some(spec), ..found })
    }

    fn holder(&self) -> Holder {
        self.seen.as_ref().and_then(|lease| lease.spec.as_ref()).map_or(Holder::Nobody, |spec| self.me.holder(spec))
    }

    fn rest_until(&mut self, until: Tick) -> Turn {
        self.rest = Some(until);
        Turn::Rest { until }
    }

    /// The lease is gone. Whoever held it may not know yet, and is waited for as if it were still there.
    fn forget(&mut self) {
        if self.holder() != Holder::Other {
            self.seen = None;
        } else if let Some(lease) = &mut self.seen {
            lease.metadata = ObjectMeta::default();
        }
    }

    /// The lease as ours. `acquireTime` tells this term from any other, also of an earlier process of our name.
    fn claim(&mut self, now: Timestamp) -> Lease {
        let mut lease = self.seen.clone().unwrap_or_default();
        let before = lease.spec.take();
        let changes_hands = before.as_ref().is_some_and(|spec| self.me.holder(spec) != Holder::EarlierMe);
        let before = before.unwrap_or_default();
        let transitions = before.lease_transitions.unwrap_or_default();
        let now = micros(now);
        self.me.claimed = Some(now);
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(self.me.identity.clone()),
            lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
            acquire_time: Some(MicroTime(now)),
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(transitions.saturating_add(i32::from(changes_hands))),
            ..before
        });
        lease
    }

    /// The lease that we hold, renewed.
    fn renewal(&self, now: Timestamp) -> Lease {
        let mut lease = self.seen.clone().unwrap_or_default();
        if let Some(spec) = &mut lease.spec {
            spec.renew_time = Some(MicroTime(now));
            spec.lease_duration_seconds = i32::try_from(DURATION.as_secs()).ok();
        }
        lease
    }
}

/// A time as precise as a Lease can say it.
fn micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::ToSpan;

    use super::*;

    const START: Timestamp = Timestamp::constant(1_800_000_000, 0);

    /// The time so long after the start.
    fn time(seconds: i64) -> Timestamp {
        START + seconds.seconds()
    }

    /// The tick so long after the start, at which the clock has run for an hour.
    fn tick(seconds: i64) -> Tick {
        Tick::default().after(Duration::from_secs(u64::try_from(3600 + seconds).unwrap()))
    }

    /// Both.
    fn at(seconds: i64) -> Moment {
        Moment { time: time(seconds), tick: tick(seconds) }
    }

    fn held_by(identity: &str, acquired: Timestamp) -> Lease {
        let spec = LeaseSpec {
            holder_identity: Some(identity.to_owned()),
            lease_duration_seconds: Some(10),
            acquire_time: Some(MicroTime(acquired)),
            renew_time: Some(MicroTime(acquired)),
            lease_transitions: Some(4),
            ..LeaseSpec::default()
        };
        let metadata = ObjectMeta { resource_version: Some("7".to_owned()), ..ObjectMeta::default() };
        Lease { metadata, spec: Some(spec) }
    }

    /// One that has led since `START`, and last renewed then.
    fn leader() -> Me {
        Me { claimed: Some(START), has_led: true, renewed: Some(at(0)), ..Me::new("me") }
    }

    fn written(turn: Turn) -> LeaseSpec {
        match turn {
            Turn::Write(lease) => lease.spec.unwrap(),
            turn => panic!("nothing was written: {turn:?}"),
        }
    }

    /// A candidate that holds the lease since `START`.
    fn leading() -> Candidate {
        let mut candidate = Candidate::new("me", tick(0));
        candidate.saw(None, tick(0));
        let Turn::Write(mut lease) = candidate.turn(at(0)) else { panic!("a lease that nobody holds is taken") };
        lease.metadata.resource_version = Some("1".to_owned());
        candidate.confirmed(*lease, at(0), tick(0));
        candidate
    }

    #[test]
    fn a_lease_that_nobody_holds_is_taken_at_once() {
        let mut released = held_by("", START);
        assert_eq!(next(None, tick(0), &Me::new("me"), at(0)), Step::Acquire);
        assert_eq!(next(Some(&Lease::default()), tick(0), &Me::new("me"), at(0)), Step::Acquire);
        assert_eq!(next(Some(&released), tick(0), &Me::new("me"), at(0)), Step::Acquire);
        released.spec.as_mut().unwrap().holder_identity = None;
        assert_eq!(next(Some(&released), tick(0), &Me::new("me"), at(0)), Step::Acquire);
    }

    #[test]
    fn a_lease_of_another_is_left_alone_for_its_duration_from_when_it_was_first_seen() {
        let mut lease = held_by("other", time(0));
        for acquired in [time(-100_000), time(0), time(100_000)] {
            lease.spec.as_mut().unwrap().renew_time = Some(MicroTime(acquired));
            assert_eq!(next(Some(&lease), tick(5), &Me::new("me"), at(5)), Step::Wait { until: tick(15) });
            assert_eq!(next(Some(&lease), tick(5), &Me::new("me"), at(14)), Step::Wait { until: tick(15) });
            assert_eq!(next(Some(&lease), tick(5), &Me::new("me"), at(15)), Step::Acquire);
        }
    }

    #[test]
    fn the_duration_is_the_one_that_its_holder_was_promised() {
        let mut lease = held_by("other", time(0));
        for (seconds, until) in [(Some(60), 60), (Some(0), 10), (Some(-5), 10), (None, 10)] {
            lease.spec.as_mut().unwrap().lease_duration_seconds = seconds;
            assert_eq!(next(Some(&lease), tick(0), &Me::new("me"), at(9)), Step::Wait { until: tick(until) });
        }
    }

    #[test]
    fn a_wall_clock_that_was_set_neither_shortens_nor_lengthens_the_wait() {
        let lease = held_by("other", time(0));
        for time in [time(-3600), time(3600)] {
            let set = |tick| Moment { time, tick };
            assert_eq!(next(Some(&lease), tick(0), &Me::new("me"), set(tick(9))), Step::Wait { until: tick(10) });
            assert_eq!(next(Some(&lease), tick(0), &Me::new("me"), set(tick(10))), Step::Acquire);
        }
    }

    #[test]
    fn our_own_lease_is_renewed_every_three_seconds_and_at_once_if_the_clock_was_set() {
        let lease = held_by("me", START);
        assert_eq!(next(Some(&lease), tick(0), &leader(), at(2)), Step::Wait { until: tick(3) });
        assert_eq!(next(Some(&lease), tick(0), &leader(), at(3)), Step::Renew);
        assert_eq!(next(Some(&lease), tick(0), &leader(), at(3600)), Step::Renew);
        for time in [time(-1), time(3)] {
            assert_eq!(next(Some(&lease), tick(0), &leader(), Moment { time, tick: tick(1) }), Step::Renew);
        }
    }

    #[test]
    fn a_process_takes_the_lease_of_its_earlier_life_but_not_that_of_a_namesake() {
        let lease = held_by("me", time(-2));
        assert_eq!(next(Some(&lease), tick(0), &Me::new("me"), at(0)), Step::Acquire);
        assert_eq!(next(Some(&lease), tick(0), &leader(), at(0)), Step::Wait { until: tick(10) });
    }

    #[test]
    fn a_claim_whose_answer_was_lost_is_recognised() {
        let mut candidate = Candidate::new("me", tick(0));
        candidate.saw(None, tick(0));
        let Turn::Write(lease) = candidate.turn(at(0)) else { panic!("a lease that nobody holds is taken") };
        candidate.failed(tick(2));
        assert_eq!(candidate.turn(at(2)), Turn::Rest { until: tick(2).after(RETRY) });
        assert_eq!(candidate.turn(at(3)), Turn::Look);
        candidate.saw(Some(*lease.clone()), tick(3));
        assert_eq!(candidate.leadership(at(3)), Leadership::Standby, "nobody knows how old it is");
        let renewal = written(candidate.turn(at(3)));
        assert_eq!(renewal.acquire_time, lease.spec.unwrap().acquire_time);
        assert_eq!(renewal.renew_time, Some(MicroTime(time(3))));
    }

    #[test]
    fn transitions_count_how_often_the_lease_changed_hands() {
        let claim_of = |found: Option<Lease>| {
            let mut candidate = Candidate::new("me", tick(0));
            candidate.saw(found, tick(0));
            written(candidate.turn(at(0)))
        };
        let first = claim_of(None);
        assert_eq!(first.lease_transitions, Some(0));
        assert_eq!(first.lease_duration_seconds, Some(10));
        assert_eq!((first.acquire_time, first.renew_time), (Some(MicroTime(time(0))), Some(MicroTime(time(0)))));
        assert_eq!(claim_of(Some(held_by("", time(-5)))).lease_transitions, Some(5));
        assert_eq!(claim_of(Some(held_by("me", time(-5)))).lease_transitions, Some(4));
    }

    #[test]
    fn what_is_released_keeps_its_count_and_nobody_elses_lease_is_released() {
        let candidate = leading();
        let released = candidate.released(held_by("me", START), time(1)).unwrap();
        assert_eq!(released.metadata.resource_version.as_deref(), Some("7"));
        let spec = released.spec.unwrap();
        assert_eq!((spec.holder_identity, spec.lease_transitions), (None, Some(4)));
        assert_eq!(candidate.released(held_by("other", START), time(1)), None);
        assert_eq!(candidate.released(held_by("me", time(-9)), time(1)), None);
        assert_eq!(candidate.released(Lease::default(), time(1)), None);
    }

    #[test]
    fn a_leader_acts_for_two_thirds_of_its_lease() {
        let leadership = leading().leadership(at(0));
        assert_eq!(leadership, Leadership::Leader { since: time(0), renewed: at(0) });
        assert!(leadership.may_act(at(0)));
        assert!(leadership.may_act(at(6)));
        assert!(!leadership.may_act(at(7)));
        assert!(!leadership.may_act(at(100_000)), "it was frozen");
        assert!(!Leadership::Standby.may_act(at(0)));
        assert!(Leadership::Alone.may_act(at(0)));
    }

    #[test]
    fn a_term_goes_on_if_nobody_led_in_between() {
        let mut candidate = leading();
        assert_eq!(candidate.leadership(at(3600)), Leadership::Standby);
        let Turn::Write(renewal) = candidate.turn(at(3600)) else { panic!("it is renewed") };
        candidate.confirmed(*renewal, at(3600), tick(3600));
        assert_eq!(candidate.leadership(at(3600)), Leadership::Leader { since: time(0), renewed: at(3600) });
    }

    #[test]
    fn a_renewal_counts_from_when_it_was_sent() {
        let mut candidate = leading();
        let Turn::Write(renewal) = candidate.turn(at(3)) else { panic!("it is renewed") };
        // The process is frozen until long after the API server has answered.
        candidate.confirmed(*renewal, at(3), tick(60));
        assert_eq!(candidate.leadership(at(60)), Leadership::Standby);
    }

    #[test]
    fn who_finds_another_in_the_lease_steps_down_at_once() {
        let mut candidate = leading();
        assert!(matches!(candidate.turn(at(3)), Turn::Write(_)));
        candidate.refused();
        assert_eq!(candidate.turn(at(3)), Turn::Look);
        candidate.saw(Some(held_by("other", time(2))), tick(3));
        assert_eq!(candidate.leadership(at(3)), Leadership::Standby);
        assert_eq!(candidate.turn(at(3)), Turn::Rest { until: tick(3).after(RETRY) });
    }

    #[test]
    fn a_leader_acts_only_while_both_clocks_call_its_lease_young() {
        let leadership = leading().leadership(at(0));
        let may_act = |by_time, by_tick| leadership.may_act(Moment { time: time(by_time), tick: tick(by_tick) });
        assert!(may_act(6, 6));
        assert!(!may_act(1, 8), "the clock was set back by less than the age of the lease");
        assert!(!may_act(-1, 1), "the clock was set back, and nobody knows how far");
        assert!(!may_act(8, 1), "the machine was suspended");
    }

    #[test]
    fn a_leader_whose_clock_was_set_renews_before_it_acts() {
        for set in [time(-1), time(3600)] {
            let mut candidate = leading();
            assert_eq!(candidate.turn(at(2)), Turn::Rest { until: tick(3) });
            let now = Moment { time: set, tick: tick(2) };
            assert_eq!(candidate.leadership(now), Leadership::Standby);
            let Turn::Write(renewal) = candidate.turn(now) else { panic!("it is renewed") };
            candidate.confirmed(*renewal, now, tick(2));
            assert_eq!(candidate.leadership(now), Leadership::Leader { since: time(0), renewed: now });
        }
    }

    #[test]
    fn the_holder_of_a_lease_that_was_deleted_is_waited_for() {
        let mut candidate = Candidate::new("me", tick(0));
        candidate.saw(Some(held_by("other", time(0))), tick(0));
        for second in 1..10 {
            assert!(matches!(candidate.turn(at(second - 1)), Turn::Rest { .. }));
            assert_eq!(candidate.turn(at(second)), Turn::Look);
            candidate.saw(None, tick(second));
        }
        assert!(matches!(candidate.turn(at(9)), Turn::Rest { .. }));
        assert_eq!(candidate.turn(at(10)), Turn::Look);
        candidate.saw(None, tick(10));
        let Turn::Write(lease) = candidate.turn(at(10)) else { panic!("it has run out") };
        assert_eq!(lease.metadata.resource_version, None, "it is created");
    }

    #[test]
    fn a_standby_that_stood_still_looks_before_it_takes_over() {
        let mut candidate = Candidate::new("me", tick(0));
        candidate.saw(Some(held_by("other", time(0))), tick(0));
        assert_eq!(candidate.turn(at(0)), Turn::Rest { until: tick(1) });
        assert_eq!(candidate.turn(at(3600)), Turn::Look);
        let mut held_on = candidate.clone();
        held_on.saw(Some(held_by("other", time(3590))), tick(3600));
        assert_eq!(held_on.turn(at(3600)), Turn::Rest { until: tick(3601) });
        candidate.saw(Some(held_by("other", time(0))), tick(3600));
        assert!(matches!(candidate.turn(at(3600)), Turn::Write(_)), "nobody has renewed it for an hour");
    }
}
