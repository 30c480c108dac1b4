//! What the hub notes down on an add-on of one cluster: what it was given, and what it has proven.
//!
//! Two conditions hold it, because they survive any schema: their message is the name of a set, and their time is the hub's.

use drover_api::{
    grammar::SetFingerprint,
    names::{GIVEN, PROVEN},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};

use crate::condition::{self, Holds, Says};

/// What a cluster was given: the set of its placement, before what a user has asked for instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The set.
    pub set: SetFingerprint,
    /// When.
    pub since: Timestamp,
}

impl Given {
    /// What the conditions of an add-on say that it was given.
    #[must_use]
    pub fn read(conditions: &[Condition]) -> Option<Self> {
        let condition = find(conditions, GIVEN).filter(|condition| condition.status == "True")?;
        Some(Self { set: condition.message.parse().ok()?, since: condition.last_transition_time.0 })
    }

    /// The conditions, saying so.
    #[must_use]
    pub fn write(&self, mut conditions: Vec<Condition>) -> Vec<Condition> {
        // Given anew is given at another time, though the status stays True.
        conditions.retain(|condition| {
            condition.type_ != GIVEN || Self::read(std::slice::from_ref(condition)) == Some(self.clone())
        });
        let says =
            Says { type_: GIVEN, holds: Holds::Yes, reason: "Given", message: self.set.as_str(), generation: None };
        condition::with(conditions, says, self.since)
    }
}

/// What a cluster has proven of the set that it was given together with what a user has asked for instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The set.
    pub set: SetFingerprint,
    /// How it stands.
    pub verdict: Verdict,
    /// Since when.
    pub since: Timestamp,
}

/// How a cluster stands to a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does not run it yet.
    Moving,
    /// It runs it, and is well.
    Proven,
    /// What was sent to it could not be applied there.
    Failing,
    /// It ran it, and then turned unhealthy.
    Unhealthy,
    /// It ran it, and then something was done to its works that it has not reported on yet. It does not begin anew, and does not prove
    /// anything either.
    Unsettled,
}

impl Verdict {
    const ALL: [Self; 5] = [Self::Moving, Self::Proven, Self::Failing, Self::Unhealthy, Self::Unsettled];

    /// Whether a cluster that stands so has come to run the set.
    #[must_use]
    pub fn has_run(self) -> bool {
        matches!(self, Self::Proven | Self::Unhealthy | Self::Unsettled)
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Moving => "Moving",
            Self::Proven => "Proven",
            Self::Failing => "Failing",
            Self::Unhealthy => "Unhealthy",
            Self::Unsettled => "Unsettled",
        }
    }
}

impl Proof {
    /// What the conditions of an add-on say that it has proven.
    #[must_use]
    pub fn read(conditions: &[Condition]) -> Option<Self> {
        let condition = find(conditions, PROVEN)?;
        let verdict = Verdict::ALL.into_iter().find(|verdict| verdict.reason() == condition.reason)?;
        Some(Self { set: condition.message.parse().ok()?, verdict, since: condition.last_transition_time.0 })
    }

    /// The conditions, saying so. Its time is that of the proof, whatever was said before.
    #[must_use]
    pub fn write(&self, mut conditions: Vec<Condition>) -> Vec<Condition> {
        conditions.retain(|condition| {
            condition.type_ != PROVEN || Self::read(std::slice::from_ref(condition)) == Some(self.clone())
        });
        let holds = Holds::from(self.verdict == Verdict::Proven);
        let says =
            Says { type_: PROVEN, holds, reason: self.verdict.reason(), message: self.set.as_str(), generation: None };
        condition::with(conditions, says, self.since)
    }

    /// The proof that follows on this one when a cluster is found to stand so to a set: the same one, or a new one as of now.
    #[must_use]
    pub fn follow(former: Option<&Self>, set: SetFingerprint, verdict: Verdict, now: Timestamp) -> Self {
        match former {
            Some(former) if former.set == set && former.verdict == verdict => former.clone(),
            _ => Self { set, verdict, since: now },
        }
    }
}

fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a valid time")
    }

    fn set(name: &str) -> SetFingerprint {
        name.parse().expect("a fingerprint")
    }

    #[test]
    fn what_was_given_is_read_as_it_was_written() {
        let first = Given { set: set("0123456789abcdef"), since: at(5) };
        let conditions = first.write(Vec::new());
        assert_eq!(Given::read(&conditions), Some(first.clone()));
        assert_eq!(first.write(conditions.clone()), conditions);
        let again = Given { since: at(9), ..first };
        assert_eq!(Given::read(&again.write(conditions)), Some(again));
    }

    #[test]
    fn what_was_proven_is_read_as_it_was_written() {
        let mut conditions = Vec::new();
        for (second, verdict) in Verdict::ALL.into_iter().enumerate() {
            let proof =
                Proof { set: set("0123456789abcdef"), verdict, since: at(i64::try_from(second).expect("small")) };
            conditions = proof.write(conditions);
            assert_eq!(Proof::read(&conditions), Some(proof));
        }
    }

    #[test]
    fn a_proof_keeps_its_time_as_long_as_nothing_changes() {
        let proof = Proof::follow(None, set("0123456789abcdef"), Verdict::Proven, at(1));
        let later = Proof::follow(Some(&proof), set("0123456789abcdef"), Verdict::Proven, at(2));
        assert_eq!(later.since, at(1));
        let other = Proof::follow(Some(&proof), set("ffffffffffffffff"), Verdict::Proven, at(2));
        assert_eq!(other.since, at(2));
    }
}
