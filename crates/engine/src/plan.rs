//! Plans: decisions as data.
//!
//! A plan says which objects are written, which events are recorded, which actions run, and when
//! to decide again. It can be compared, printed, tested and simulated; the runtime executes it.

mod body;
mod controller;
mod difference;
mod event;
mod kind;
mod object_key;
mod plan_part;
mod plan_step;
mod rejection;
mod result;
mod write;

use k8s_openapi::jiff::Timestamp;

pub use self::{
    body::Body,
    controller::Controller,
    event::{Event, Severity},
    kind::{Kind, Stored, Writable, WritableScope},
    object_key::ObjectKey,
    plan_part::PlanPart,
    plan_step::{NoAction, PlanStep},
    rejection::{could_not, rejection},
    result::WriteResult,
    write::{Precondition, Subresource, Verb, Write, WriteOperation},
};

/// What is to be done about one key.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<A = NoAction> {
    /// Sent one after the other. If one fails, the key is planned again, and the rest is not sent.
    pub ordered: Vec<Write>,
    /// Sent after the ordered writes, at the same time as far as the write limiter permits. One
    /// that fails does not stop the others. The key is not planned again before all are answered.
    pub parallel: Vec<Write>,
    /// Run at the same time as the parallel writes, under the same rules; they begin first.
    pub actions: Vec<A>,
    /// Recorded after the ordered writes have succeeded, whatever the parallel ones came to. A key
    /// that is planned again records them again, so they should go with writes that are needed once.
    pub events: Vec<Event>,
    /// Enqueued at once, even if the plan is dropped because nothing may be written at the moment:
    /// it is harmless to enqueue a key twice.
    pub enqueue: Vec<(Controller, ObjectKey)>,
    /// When to plan again although nothing has changed.
    pub wake: Option<Timestamp>,
}

impl<A> Default for Plan<A> {
    fn default() -> Self {
        Self {
            ordered: Vec::new(),
            parallel: Vec::new(),
            actions: Vec::new(),
            events: Vec::new(),
            enqueue: Vec::new(),
            wake: None,
        }
    }
}

impl<A> Plan<A> {
    /// A plan that runs one action.
    #[must_use]
    pub fn act(action: A) -> Self {
        Self { actions: vec![action], ..Self::default() }
    }

    /// The same plan, with ordered writes before its own.
    #[must_use]
    pub fn after(mut self, writes: impl IntoIterator<Item = Write>) -> Self {
        self.ordered.splice(..0, writes);
        self
    }

    /// The same plan, with more events.
    #[must_use]
    pub fn with_events(mut self, events: impl IntoIterator<Item = Event>) -> Self {
        self.events.extend(events);
        self
    }
}

impl<A> FromIterator<Write> for Plan<A> {
    /// A plan of ordered writes.
    fn from_iter<I: IntoIterator<Item = Write>>(writes: I) -> Self {
        Self { ordered: writes.into_iter().collect(), ..Self::default() }
    }
}
