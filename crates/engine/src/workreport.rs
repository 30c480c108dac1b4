//! What an agent reports on the work of a set, and what follows from it.
//!
//! Only what is said of the work as it is now counts: what was said of a former generation was said of something else.

pub mod template;

use drover_api::{
    grammar::SetFingerprint,
    names::{WORK_APPLIED, WORK_AVAILABLE, WORK_DEGRADED, WORK_PROGRESSING},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};

use crate::{condition::Holds, revision::markers::Verdict, workreport::template::Rules};

/// Something that is said of a work as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// Whether it holds.
    pub holds: Holds,
    /// Since when, by the agent's clock.
    pub since: Timestamp,
}

/// What is said of a work as it is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Whether everything in it is applied.
    pub applied: Option<Said>,
    /// Whether everything in it is there.
    pub available: Option<Said>,
    /// Whether something is still coming up.
    pub progressing: Option<Said>,
    /// Whether something is not well.
    pub degraded: Option<Said>,
}

impl Report {
    /// What the conditions of a work say of this generation.
    #[must_use]
    pub fn read(generation: Option<i64>, conditions: &[Condition]) -> Self {
        let said = |type_: &str| Self::said(type_, generation, conditions);
        Self {
            applied: said(WORK_APPLIED),
            available: said(WORK_AVAILABLE),
            progressing: said(WORK_PROGRESSING),
            degraded: said(WORK_DEGRADED),
        }
    }

    /// What a condition of that type says of this generation.
    #[must_use]
    pub fn said(type_: &str, generation: Option<i64>, conditions: &[Condition]) -> Option<Said> {
        let current = |condition: &&Condition| {
            condition.type_ == type_
                && condition.observed_generation.is_some()
                && condition.observed_generation == generation
        };
        let condition = conditions.iter().find(current)?;
        let holds = match condition.status.as_str() {
            "True" => Holds::Yes,
            "False" => Holds::No,
            _ => Holds::Unknown,
        };
        Some(Said { holds, since: condition.last_transition_time.0 })
    }

    /// How the cluster stands to what its work says, and since when as far as the agent tells.
    ///
    /// Where the template has no rule that makes a condition, the work is well without it: an agent says of itself only whether everything
    /// is applied and there. Where it has one, that is waited for.
    #[must_use]
    pub fn verdict(&self, rules: Rules) -> (Verdict, Option<Timestamp>) {
        let is = |said: Option<Said>, holds: Holds| said.is_some_and(|said| said.holds == holds);
        let since = |said: Option<Said>| said.map(|said| said.since);
        if is(self.applied, Holds::No) {
            return (Verdict::Failing, since(self.applied));
        }
        if is(self.applied, Holds::Yes) && is(self.degraded, Holds::Yes) {
            return (Verdict::Unhealthy, since(self.degraded));
        }
        let is_through = |said: Option<Said>, is_told: bool| match said {
            Some(said) => said.holds == Holds::No,
            None => !is_told,
        };
        let is_well = is(self.applied, Holds::Yes)
            && is(self.available, Holds::Yes)
            && is_through(self.progressing, rules.tell_progressing)
            && is_through(self.degraded, rules.tell_degraded);
        (if is_well { Verdict::Proven } else { Verdict::Moving }, None)
    }
}

/// What the hub notes down on a work: the name of what it says, and a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What the work says.
    pub set: SetFingerprint,
    /// Since when.
    pub since: Timestamp,
}

impl Note {
    /// The note that the value of an annotation is.
    #[must_use]
    pub fn read(value: &str) -> Option<Self> {
        let (set, since) = value.split_once(' ')?;
        Some(Self { set: set.parse().ok()?, since: since.parse().ok()? })
    }

    /// The note as the value of an annotation.
    #[must_use]
    pub fn write(&self) -> String {
        let since = Timestamp::from_second(self.since.as_second()).unwrap_or(self.since);
        format!("{} {since}", self.set.as_str())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use proptest::prelude::*;

    use super::*;

    const PLAIN: Rules = Rules { tell_progressing: false, tell_degraded: false };
    const TELLING: Rules = Rules { tell_progressing: true, tell_degraded: true };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a valid time")
    }

    fn condition(type_: &str, status: &str, generation: i64) -> Condition {
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: String::new(),
            message: String::new(),
            last_transition_time: Time(at(7)),
            observed_generation: Some(generation),
        }
    }

    /// How a cluster stands whose work, of generation 2, says this.
    fn verdict(said: &[(&str, &str, i64)], rules: Rules) -> Verdict {
        let conditions: Vec<_> = said.iter().map(|(type_, status, of)| condition(type_, status, *of)).collect();
        Report::read(Some(2), &conditions).verdict(rules).0
    }

    const APPLIED: (&str, &str, i64) = ("Applied", "True", 2);
    const AVAILABLE: (&str, &str, i64) = ("Available", "True", 2);

    #[test]
    fn where_no_rule_says_more_applied_and_available_is_success() {
        assert_eq!(verdict(&[APPLIED, AVAILABLE], PLAIN), Verdict::Proven);
        assert_eq!(verdict(&[APPLIED], PLAIN), Verdict::Moving);
        assert_eq!(verdict(&[APPLIED, ("Available", "False", 2)], PLAIN), Verdict::Moving);
        assert_eq!(verdict(&[AVAILABLE], PLAIN), Verdict::Moving);
    }

    #[test]
    fn what_was_said_of_another_generation_proves_nothing() {
        assert_eq!(verdict(&[("Applied", "True", 1), ("Available", "True", 1)], PLAIN), Verdict::Moving);
        assert_eq!(verdict(&[APPLIED, ("Available", "True", 1)], PLAIN), Verdict::Moving);
        assert_eq!(verdict(&[APPLIED, AVAILABLE, ("Progressing", "True", 1)], PLAIN), Verdict::Proven);
        assert_eq!(verdict(&[("Applied", "False", 1)], PLAIN), Verdict::Moving);
        let unsaid = Condition { observed_generation: None, ..condition("Applied", "True", 2) };
        assert_eq!(Report::read(None, &[unsaid]), Report::default(), "nobody knows what it was said of");
    }

    #[test]
    fn where_a_rule_says_more_that_is_waited_for() {
        let well = [APPLIED, AVAILABLE, ("Progressing", "False", 2), ("Degraded", "False", 2)];
        assert_eq!(verdict(&well, TELLING), Verdict::Proven);
        assert_eq!(verdict(&well[..3], TELLING), Verdict::Moving, "nobody has said whether it is degraded");
        assert_eq!(verdict(&well[..2], TELLING), Verdict::Moving);
        let stale = [APPLIED, AVAILABLE, ("Progressing", "False", 1), ("Degraded", "False", 2)];
        assert_eq!(verdict(&stale, TELLING), Verdict::Moving);
        let coming = [APPLIED, AVAILABLE, ("Progressing", "True", 2)];
        assert_eq!(verdict(&coming, PLAIN), Verdict::Moving, "it counts whoever says so");
    }

    #[test]
    fn what_is_degraded_or_not_applied_has_failed() {
        assert_eq!(verdict(&[APPLIED, AVAILABLE, ("Degraded", "True", 2)], PLAIN), Verdict::Unhealthy);
        assert_eq!(
            verdict(&[APPLIED, ("Progressing", "True", 2), ("Degraded", "True", 2)], TELLING),
            Verdict::Unhealthy
        );
        assert_eq!(verdict(&[("Applied", "False", 2), AVAILABLE], PLAIN), Verdict::Failing);
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let note = Note { set: "0123456789abcdef".parse().expect("a fingerprint"), since: at(1_800_000_000) };
        assert_eq!(note.write(), "0123456789abcdef 2027-01-15T08:00:00Z");
        assert_eq!(Note::read(&note.write()), Some(note));
        assert_eq!(
            [Note::read(""), Note::read("0123456789abcdef"), Note::read("x 2027-01-15T08:00:00Z")],
            [None, None, None]
        );
    }

    proptest! {
        #[test]
        fn nothing_of_another_generation_makes_a_difference(
            said in prop::collection::vec((0..4_usize, 0..3_usize, 1..4_i64), 0..8),
            tell_progressing: bool, tell_degraded: bool,
        ) {
            let types = ["Applied", "Available", "Progressing", "Degraded"];
            let rules = Rules { tell_progressing, tell_degraded };
            let conditions: Vec<_> =
                said.iter().map(|(type_, status, of)| condition(types[*type_], ["True", "False", "Unknown"][*status], *of)).collect();
            let current: Vec<_> =
                conditions.iter().filter(|condition| condition.observed_generation == Some(2)).cloned().collect();
            prop_assert_eq!(Report::read(Some(2), &conditions), Report::read(Some(2), &current));
            if Report::read(Some(2), &conditions).verdict(rules).0 == Verdict::Proven {
                let is_said = |type_: &str| current.iter().any(|said| said.type_ == type_ && said.status == "True");
                prop_assert!(is_said("Applied") && is_said("Available"));
            }
        }
    }
}
