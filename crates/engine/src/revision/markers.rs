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
    /// The cluster ran it, and then a work could not be applied. The published reason is `Failing`.
    NoLongerApplied,
    /// It ran it, and then turned unhealthy.
    Unhealthy,
    /// It ran it, and then something was done to its works that it has not reported on yet. It does not begin anew, and does not prove
    /// anything either.
    Unsettled,
}

impl Verdict {
    const ALL: [Self; 6] =
        [Self::Moving, Self::Proven, Self::Failing, Self::NoLongerApplied, Self::Unhealthy, Self::Unsettled];

    /// Whether a cluster that stands so has come to run the set.
    #[must_use]
    pub fn has_run(self) -> bool {
        match self {
            Self::Proven | Self::NoLongerApplied | Self::Unhealthy | Self::Unsettled => true,
            Self::Moving | Self::Failing => false,
        }
    }

    /// The next verdict on the same revision, given what the reports show now. A cluster that ran
    /// the revision is never in flight to it again. If it fails after that, it stays failed until
    /// it is proven again.
    fn then(self, found: Self) -> Self {
        match (self, found) {
            (Self::Unhealthy | Self::NoLongerApplied, Self::Moving | Self::Failing) => self,
            (Self::Proven | Self::Unsettled, Self::Moving) => Self::Unsettled,
            (Self::Proven | Self::Unsettled, Self::Failing) => Self::NoLongerApplied,
            (_, found) => found,
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Moving => "Moving",
            Self::Proven => "Proven",
            Self::Failing | Self::NoLongerApplied => "Failing",
            Self::Unhealthy => "Unhealthy",
            Self::Unsettled => "Unsettled",
        }
    }

    /// The status of the condition. `Failing` is `Unknown` where the revision ran before, and
    /// `False` where it never ran.
    fn holds(self) -> Holds {
        match self {
            Self::Proven => Holds::Yes,
            Self::NoLongerApplied => Holds::Unknown,
            Self::Moving | Self::Failing | Self::Unhealthy | Self::Unsettled => Holds::No,
        }
    }
}

impl Proof {
    /// What the conditions of an add-on say that it has proven.
    #[must_use]
    pub fn read(conditions: &[Condition]) -> Option<Self> {
        let condition = find(conditions, PROVEN)?;
        let mut said = Verdict::ALL.into_iter().filter(|verdict| verdict.reason() == condition.reason);
        let is_exact =
            |verdict: &Verdict| condition::holds(std::slice::from_ref(condition), PROVEN) == Some(verdict.holds());
        let verdict = said.clone().find(is_exact).or_else(|| said.next())?;
        Some(Self { set: condition.message.parse().ok()?, verdict, since: condition.last_transition_time.0 })
    }

    /// The conditions, saying so. Its time is that of the proof, whatever was said before.
    #[must_use]
    pub fn write(&self, mut conditions: Vec<Condition>) -> Vec<Condition> {
        conditions.retain(|condition| {
            condition.type_ != PROVEN || Self::read(std::slice::from_ref(condition)) == Some(self.clone())
        });
        let (holds, reason) = (self.verdict.holds(), self.verdict.reason());
        let says = Says { type_: PROVEN, holds, reason, message: self.set.as_str(), generation: None };
        condition::with(conditions, says, self.since)
    }

    /// The proof in the value of an annotation. Only a cluster that ran the set has one there.
    #[must_use]
    pub fn from_annotation(value: &str) -> Option<Self> {
        let mut parts = value.split(' ');
        let (set, reason, since) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?.parse().ok()?);
        let verdict = Verdict::ALL.into_iter().find(|verdict| verdict.has_run() && verdict.reason() == reason)?;
        parts.next().is_none().then_some(Self { set, verdict, since })
    }

    /// The value of an annotation that says so.
    #[must_use]
    pub fn to_annotation(&self) -> String {
        let since = Timestamp::from_second(self.since.as_second()).unwrap_or(self.since);
        format!("{} {} {since}", self.set.as_str(), self.verdict.reason())
    }

    /// The proof that follows on this one when a cluster is found to stand so to a set: the same one, or a new one as of now.
    #[must_use]
    pub fn follow(former: Option<&Self>, set: SetFingerprint, found: Verdict, now: Timestamp) -> Self {
        let former = former.filter(|former| former.set == set);
        let verdict = former.map_or(found, |former| former.verdict.then(found));
        match former {
            Some(former) if former.verdict == verdict => former.clone(),
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
    fn an_annotation_holds_a_proof_of_a_set_that_ran() {
        for verdict in Verdict::ALL {
            let proof = Proof { set: set("0123456789abcdef"), verdict, since: at(1_800_000_000) };
            let read = Proof::from_annotation(&proof.to_annotation());
            assert_eq!(read.is_some_and(|read| read == proof), verdict.has_run(), "{verdict:?}");
        }
        let proof = Proof { set: set("0123456789abcdef"), verdict: Verdict::Proven, since: at(1_800_000_000) };
        assert_eq!(proof.to_annotation(), "0123456789abcdef Proven 2027-01-15T08:00:00Z");
        let foreign = ["", "0123456789abcdef", "0123456789abcdef Proven", "x Proven 2027-01-15T08:00:00Z"];
        let more = ["0123456789abcdef Proven noon", "0123456789abcdef Proven 2027-01-15T08:00:00Z and more"];
        assert!(foreign.iter().chain(&more).all(|value| Proof::from_annotation(value).is_none()));
    }

    #[test]
    fn a_proof_keeps_its_time_as_long_as_nothing_changes() {
        let proof = Proof::follow(None, set("0123456789abcdef"), Verdict::Proven, at(1));
        let later = Proof::follow(Some(&proof), set("0123456789abcdef"), Verdict::Proven, at(2));
        assert_eq!(later.since, at(1));
        let other = Proof::follow(Some(&proof), set("ffffffffffffffff"), Verdict::Proven, at(2));
        assert_eq!(other.since, at(2));
    }

    #[test]
    fn a_report_never_makes_a_cluster_forget_the_revision_that_it_ran() {
        use Verdict::{Failing, Moving, NoLongerApplied, Proven, Unhealthy, Unsettled};
        let rows = [
            (Proven, Moving, Unsettled),
            (Proven, Failing, NoLongerApplied),
            (Unsettled, Moving, Unsettled),
            (Unsettled, Failing, NoLongerApplied),
            (NoLongerApplied, Moving, NoLongerApplied),
            (NoLongerApplied, Failing, NoLongerApplied),
            (NoLongerApplied, Unhealthy, Unhealthy),
            (NoLongerApplied, Proven, Proven),
            (Unhealthy, Moving, Unhealthy),
            (Unhealthy, Failing, Unhealthy),
            (Unhealthy, Proven, Proven),
            (Moving, Failing, Failing),
            (Failing, Moving, Moving),
        ];
        let name = || set("0123456789abcdef");
        for (former, found, expected) in rows {
            let before = Proof { set: name(), verdict: former, since: at(1) };
            let after = Proof::follow(Some(&before), name(), found, at(2));
            assert_eq!(after.verdict, expected, "{former:?} {found:?}");
            assert_eq!(after.since, if former == expected { at(1) } else { at(2) }, "{former:?} {found:?}");
            let other = Proof::follow(Some(&before), set("ffffffffffffffff"), found, at(2));
            assert_eq!(other.verdict, found, "the other revision never ran");
        }
    }

    #[test]
    fn the_published_reasons_stay_five() {
        let reasons: std::collections::BTreeSet<_> = Verdict::ALL.into_iter().map(Verdict::reason).collect();
        assert_eq!(reasons, ["Failing", "Moving", "Proven", "Unhealthy", "Unsettled"].into());
    }
}
