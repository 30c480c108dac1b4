//! What the server has rejected of the plans of a rollout.

use std::collections::BTreeMap;

use crate::plan::{ObjectKey, Plan, PlanPart, PlanStep, Write, WriteResult};

/// The objects whose last write the server has rejected, and why. Only results change it, so that a
/// plan that is dropped forgets nothing.
#[derive(Clone, Debug, Default)]
pub struct Rejections(BTreeMap<ObjectKey, String>);

impl Rejections {
    /// Records what a part of a plan came to.
    pub fn record<A: PlanStep>(&mut self, part: PlanPart<'_, A>, result: &WriteResult) {
        if let Some(object) = part.object() {
            self.record_as(object, part.rejection(result), result);
        }
    }

    /// Records what a write of an object came to, with what people are told of it.
    pub fn record_as(&mut self, object: ObjectKey, rejection: Option<String>, result: &WriteResult) {
        match rejection {
            Some(why) => drop(self.0.insert(object, why)),
            None if *result == WriteResult::Done => drop(self.0.remove(&object)),
            // Nothing is known of the object that was not known before.
            None => {}
        }
    }

    /// Whether nothing was rejected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One of several, always the same.
    #[must_use]
    pub fn first(&self) -> Option<&str> {
        self.0.values().map(String::as_str).min()
    }

    /// Why the server has rejected what a plan sends once more. What is not sent again says nothing
    /// any more.
    #[must_use]
    pub fn of_plan<A: PlanStep>(&self, plan: &Plan<A>) -> Option<&str> {
        if self.0.is_empty() {
            return None;
        }
        let writes = plan.ordered.iter().chain(&plan.parallel).map(Write::key).cloned();
        let objects = plan.actions.iter().map(PlanStep::key).chain(writes);
        objects.filter_map(|object| self.0.get(&object)).map(String::as_str).min()
    }
}
