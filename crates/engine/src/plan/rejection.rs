//! What people are told of a part of a plan that the server did not accept.

use super::{PlanPart, PlanStep, Verb, WriteResult};

/// Why a step was not accepted, for people; `None` if it was, or if the cache was out of date, which
/// is no failure.
#[must_use]
pub fn rejection(step: &impl PlanStep, result: &WriteResult) -> Option<String> {
    let why = match result {
        WriteResult::Unreachable(why) => why,
        WriteResult::Gone(_) if step.verb() != Verb::Create => return None,
        result => result.objection()?,
    };
    Some(could_not(step, why))
}

/// That a step was not carried out, and why.
#[must_use]
pub fn could_not(step: &impl PlanStep, why: &str) -> String {
    format!("could not {}: {why}", step.words())
}

impl<A: PlanStep> PlanPart<'_, A> {
    /// Why the part was not accepted, for people. Nothing depends on an event, so that its rejection
    /// is of no interest.
    #[must_use]
    pub fn rejection(&self, result: &WriteResult) -> Option<String> {
        match self {
            Self::Write(write) => rejection(*write, result),
            Self::Action(action) => rejection(*action, result),
            Self::Event(_) => None,
        }
    }

    /// The object that the part changes.
    #[must_use]
    pub fn object(&self) -> Option<super::ObjectKey> {
        match self {
            Self::Write(write) => Some(write.key().clone()),
            Self::Action(action) => Some(action.key()),
            Self::Event(_) => None,
        }
    }
}
