//! How many writes may be in flight: one more after each round that goes well, half when the server has enough. No I/O; every tick
//! is handed in.

use std::time::Duration;

use crate::clock::Tick;

/// How many writes may be in flight when all is well.
pub(super) const FULL: usize = 64;

/// How long nothing is written after a refusal that does not say how long.
const REST: Duration = Duration::from_secs(1);

/// How long nothing is written at most, whatever the server says: a mistake in an answer must not stop everything for hours.
const LONGEST_REST: Duration = Duration::from_mins(1);

/// After so long without a refusal what was learnt from the last one is forgotten.
const CALM: Duration = Duration::from_mins(1);

/// What is known about how much the server can bear.
#[derive(Debug)]
pub(super) struct Throttle {
    limit: usize,
    in_flight: usize,
    /// How many writes were answered since the limit last changed.
    answered: usize,
    /// Nothing is written before that.
    rests_until: Tick,
    /// When the server last had enough; None at full speed.
    slowed: Option<Tick>,
    /// How often the limit was halved.
    slow_downs: u64,
}

/// Who may write, and what was known of the server at that time.
#[derive(Debug)]
pub(super) struct Pass {
    slow_downs: u64,
}

/// Whether somebody may write now.
#[derive(Debug)]
pub(super) enum Entry {
    Granted(Pass),
    /// When somebody else is done.
    Full,
    /// Nobody before that tick.
    Resting {
        until: Tick,
    },
}

impl Throttle {
    pub(super) fn new() -> Self {
        Self { limit: FULL, in_flight: 0, answered: 0, rests_until: Tick::default(), slowed: None, slow_downs: 0 }
    }

    /// How many writes may be in flight.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Whether it is slower than it could be.
    pub(super) fn is_slow(&self) -> bool {
        self.slowed.is_some()
    }

    /// Lets a write begin, if one may. It has to [end](Self::end).
    pub(super) fn begin(&mut self, now: Tick) -> Entry {
        if now < self.rests_until {
            return Entry::Resting { until: self.rests_until };
        }
        if self.in_flight >= self.limit {
            return Entry::Full;
        }
        self.in_flight += 1;
        Entry::Granted(Pass { slow_downs: self.slow_downs })
    }

    /// A write is over, however it went.
    pub(super) fn end(&mut self) {
        self.in_flight -= 1;
    }

    /// The server has answered a write as it should.
    pub(super) fn answered(&mut self, pass: &Pass, now: Tick) {
        let Some(slowed) = self.slowed else { return };
        if self.knows(pass) {
            self.answered += 1;
        }
        if now.since(slowed) >= CALM {
            self.limit = FULL;
        } else if self.answered >= self.limit {
            self.limit += 1;
            self.answered = 0;
        }
        if self.limit == FULL {
            self.slowed = None;
        }
    }

    /// The server had enough, and wants nothing for a while if it says for how long.
    pub(super) fn refused(&mut self, pass: &Pass, pause: Option<Duration>, now: Tick) {
        let rest = pause.unwrap_or(REST).min(LONGEST_REST);
        self.rests_until = self.rests_until.max(now.after(rest));
        self.slowed = Some(now);
        // All that was in flight may be refused at once; that is one reason to slow down and not many.
        if !self.knows(pass) {
            return;
        }
        // What was in flight was too much, not what might have been.
        self.limit = (self.in_flight.min(self.limit) / 2).max(1);
        self.answered = 0;
        self.slow_downs += 1;
    }

    /// Whether a write began after the last slow-down. What came of an earlier one says nothing about it.
    fn knows(&self, pass: &Pass) -> bool {
        pass.slow_downs == self.slow_downs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Tick {
        Tick::default().after(Duration::from_secs(3600 + seconds))
    }

    /// Begins as many as may.
    fn fill(throttle: &mut Throttle, now: Tick) -> Vec<Pass> {
        std::iter::from_fn(|| match throttle.begin(now) {
            Entry::Granted(pass) => Some(pass),
            Entry::Full | Entry::Resting { .. } => None,
        })
        .collect()
    }

    /// A round in which all is answered, as many as may be in flight.
    fn round(throttle: &mut Throttle, now: Tick) -> usize {
        let passes = fill(throttle, now);
        for pass in &passes {
            throttle.answered(pass, now);
            throttle.end();
        }
        passes.len()
    }

    /// A round in which all is refused.
    fn refuse(throttle: &mut Throttle, pause: Option<Duration>, now: Tick) {
        for pass in fill(throttle, now) {
            throttle.refused(&pass, pause, now);
            throttle.end();
        }
    }

    fn resting(throttle: &mut Throttle, now: Tick) -> Option<Tick> {
        match throttle.begin(now) {
            Entry::Resting { until } => Some(until),
            Entry::Full => None,
            Entry::Granted(_) => {
                throttle.end();
                None
            }
        }
    }

    #[test]
    fn at_full_speed_the_limit_holds_and_stays() {
        let mut throttle = Throttle::new();
        for _ in 0..3 {
            assert_eq!(round(&mut throttle, at(0)), FULL);
        }
        assert_eq!(fill(&mut throttle, at(0)).len(), FULL);
        assert!(matches!(throttle.begin(at(0)), Entry::Full));
        throttle.end();
        assert_eq!(fill(&mut throttle, at(0)).len(), 1);
        assert!(!throttle.is_slow());
    }

    #[test]
    fn refusals_halve_the_limit_once_for_all_that_was_in_flight_and_never_below_one() {
        let mut throttle = Throttle::new();
        for (second, limit) in [(0, 32), (1, 16), (2, 8), (3, 4), (4, 2), (5, 1), (6, 1), (7, 1)] {
            refuse(&mut throttle, None, at(second));
            assert_eq!(throttle.limit(), limit, "after {} refusals", second + 1);
        }
        assert_eq!(fill(&mut throttle, at(8)).len(), 1);
    }

    #[test]
    fn what_is_halved_is_what_was_in_flight() {
        let mut throttle = Throttle::new();
        let passes: Vec<_> = (0..6).map(|_| throttle.begin(at(0))).collect();
        let Entry::Granted(pass) = &passes[0] else { panic!("there is room") };
        throttle.refused(pass, None, at(0));
        assert_eq!(throttle.limit(), 3);
    }

    #[test]
    fn nothing_begins_before_the_pause_is_over() {
        let mut throttle = Throttle::new();
        refuse(&mut throttle, Some(Duration::from_secs(7)), at(0));
        assert_eq!(resting(&mut throttle, at(0)), Some(at(7)));
        assert_eq!(resting(&mut throttle, at(6)), Some(at(7)));
        assert_eq!(resting(&mut throttle, at(7)), None);
    }

    #[test]
    fn the_longest_pause_counts_but_none_is_endless() {
        let mut throttle = Throttle::new();
        let passes = fill(&mut throttle, at(0));
        throttle.refused(&passes[0], Some(Duration::from_secs(9)), at(0));
        throttle.refused(&passes[1], None, at(1));
        assert_eq!(resting(&mut throttle, at(1)), Some(at(9)));
        throttle.refused(&passes[2], Some(Duration::from_hours(9)), at(1));
        assert_eq!(resting(&mut throttle, at(9)), Some(at(61)));
    }

    #[test]
    fn each_round_that_goes_well_adds_one_until_it_is_at_full_speed() {
        let mut throttle = Throttle::new();
        refuse(&mut throttle, None, at(0));
        for limit in 32..FULL {
            assert!(throttle.is_slow());
            assert_eq!(round(&mut throttle, at(2)), limit);
        }
        assert!(!throttle.is_slow());
        assert_eq!(round(&mut throttle, at(2)), FULL);
    }

    #[test]
    fn answers_to_what_was_sent_before_do_not_undo_a_slow_down() {
        let mut throttle = Throttle::new();
        let passes = fill(&mut throttle, at(0));
        throttle.refused(&passes[0], None, at(0));
        for pass in &passes[1..] {
            throttle.answered(pass, at(0));
        }
        assert_eq!(throttle.limit(), 32);
    }

    #[test]
    fn after_a_calm_minute_the_first_answer_brings_full_speed_back() {
        let mut throttle = Throttle::new();
        refuse(&mut throttle, None, at(0));
        assert_eq!(throttle.limit(), 32);
        let Entry::Granted(pass) = throttle.begin(at(60)) else { panic!("there is room") };
        throttle.answered(&pass, at(59));
        assert!(throttle.is_slow());
        throttle.answered(&pass, at(60));
        assert_eq!((throttle.limit(), throttle.is_slow()), (FULL, false));
    }
}
