//! The works of a set, counted. A cluster counts for the placement that decides for it.

use std::ops::{AddAssign, SubAssign};

use drover_api::work::ReplicaSetSummary;

use super::member::{Held, Placed};
use crate::{condition::Holds, revision::markers::Verdict};

/// Works, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many there are.
    pub total: i64,
    /// How many there are to be.
    pub desired: i64,
    /// How many say what the template says.
    pub updated: i64,
    /// How many of those are applied.
    pub applied: i64,
    /// How many of those are available.
    pub available: i64,
    /// How many of those are on their way.
    pub progressing: i64,
    /// How many of those are degraded.
    pub degraded: i64,
}

impl Tally {
    /// What one cluster counts for. `is_desired` says whether a placement selects it.
    #[must_use]
    pub fn of(work: Option<&Placed>, is_desired: bool, held: &Held) -> Self {
        let mut tally = Self { desired: i64::from(is_desired), total: i64::from(work.is_some()), ..Self::default() };
        let Some(work) = work.filter(|work| work.set == *held.goal) else { return tally };
        let holds =
            |said: Option<crate::workreport::Said>| i64::from(said.is_some_and(|said| said.holds == Holds::Yes));
        tally.updated = 1;
        tally.applied = holds(work.report.applied);
        tally.available = holds(work.report.available);
        tally.degraded = holds(work.report.degraded);
        let is_coming = work.verdict() == Verdict::Moving;
        tally.progressing = holds(work.report.progressing).max(i64::from(is_coming));
        tally
    }

    /// What is told of it.
    #[must_use]
    pub fn summary(&self) -> ReplicaSetSummary {
        ReplicaSetSummary {
            total: Some(self.total),
            desired_total: Some(self.desired),
            updated: Some(self.updated),
            applied: Some(self.applied),
            available: Some(self.available),
            progressing: Some(self.progressing),
            degraded: Some(self.degraded),
        }
    }

    fn with(&mut self, other: &Self, change: fn(&mut i64, i64)) {
        change(&mut self.total, other.total);
        change(&mut self.desired, other.desired);
        change(&mut self.updated, other.updated);
        change(&mut self.applied, other.applied);
        change(&mut self.available, other.available);
        change(&mut self.progressing, other.progressing);
        change(&mut self.degraded, other.degraded);
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.with(&other, |one, other| *one += other);
    }
}

impl SubAssign for Tally {
    fn sub_assign(&mut self, other: Self) {
        self.with(&other, |one, other| *one -= other);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use crate::workreport::{Report, Said, template::Rules};

    fn placed(set: &str, report: Report) -> Placed {
        let set = set.repeat(16).parse().expect("a fingerprint");
        Placed { set, rules: Rules::default(), given: Timestamp::UNIX_EPOCH, report, recorded: None }
    }

    fn report(applied: Holds, available: Holds) -> Report {
        let said = |holds| Some(Said { holds, since: Timestamp::UNIX_EPOCH });
        Report { applied: said(applied), available: said(available), ..Report::default() }
    }

    fn tally(work: Option<&Placed>, is_desired: bool) -> Tally {
        let goal = "b".repeat(16).parse().expect("a fingerprint");
        let held = Held { goal: &goal, soaks: false, is_gradual: false, settled: None, now: Timestamp::UNIX_EPOCH };
        Tally::of(work, is_desired, &held)
    }

    #[test]
    fn what_says_something_else_than_the_template_is_there_and_no_more() {
        let old = placed("a", report(Holds::Yes, Holds::Yes));
        assert_eq!(tally(Some(&old), true), Tally { total: 1, desired: 1, ..Tally::default() });
        assert_eq!(tally(Some(&old), false), Tally { total: 1, ..Tally::default() });
        assert_eq!(tally(None, true), Tally { desired: 1, ..Tally::default() });
    }

    #[test]
    fn a_work_counts_by_what_is_said_of_it() {
        let there = Tally { total: 1, desired: 1, updated: 1, ..Tally::default() };
        let new = placed("b", Report::default());
        assert_eq!(tally(Some(&new), true), Tally { progressing: 1, ..there });
        let well = placed("b", report(Holds::Yes, Holds::Yes));
        assert_eq!(tally(Some(&well), true), Tally { applied: 1, available: 1, ..there });
        let failed = placed("b", report(Holds::No, Holds::Yes));
        assert_eq!(tally(Some(&failed), true), Tally { available: 1, ..there });
    }

    proptest! {
        #[test]
        fn what_is_added_and_taken_away_leaves_nothing(counts in prop::collection::vec((0..9_i64, 0..9_i64, 0..9_i64), 0..9)) {
            let tallies: Vec<_> =
                counts.iter().map(|(total, desired, applied)| Tally { total: *total, desired: *desired, applied: *applied, ..Tally::default() }).collect();
            let mut sum = Tally::default();
            for tally in &tallies {
                sum += *tally;
            }
            prop_assert_eq!(sum.total, counts.iter().map(|(total, ..)| total).sum::<i64>());
            for tally in tallies.iter().rev() {
                sum -= *tally;
            }
            prop_assert_eq!(sum, Tally::default());
        }
    }
}
