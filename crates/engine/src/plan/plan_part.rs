//! One part of a plan that is sent by itself.

use super::{Event, Write};

/// A part of a plan that is sent by itself, and has a result of its own.
#[derive(Debug)]
pub enum PlanPart<'a, A> {
    /// An ordered or a parallel write.
    Write(&'a Write),
    /// An action.
    Action(&'a A),
    /// An event.
    Event(&'a Event),
}

impl<A> Clone for PlanPart<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for PlanPart<'_, A> {}
