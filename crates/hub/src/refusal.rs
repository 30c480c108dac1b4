//! What it means for people that the server did not accept a write.

use drover_engine::plan::{PlanStep, Verb, WriteResult};

/// What a write that was not accepted means for people; `None` if the hub's cache was out of date,
/// which is no failure.
pub(crate) fn refusal(step: &impl PlanStep, result: &WriteResult) -> Option<String> {
    let why = match result {
        WriteResult::Unreachable(why) => why,
        WriteResult::Gone(_) if step.verb() != Verb::Create => return None,
        result => result.objection()?,
    };
    Some(could_not(step, why))
}

/// That something was not written, and why.
pub(crate) fn could_not(step: &impl PlanStep, why: &str) -> String {
    format!("could not {}: {why}", step.words())
}
