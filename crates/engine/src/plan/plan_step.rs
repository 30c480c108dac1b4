//! The parts of a plan that change objects: writes, and actions.

use std::{borrow::Cow, fmt};

use super::{ObjectKey, Verb, Write};

/// A part of a plan that changes an object: a write, or an action, which takes more than one
/// request. Actions are values; the executor of an action is named by its type.
pub trait PlanStep: Clone + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// How the object is changed.
    fn verb(&self) -> Verb;

    /// The name of its kind.
    fn kind_name(&self) -> Cow<'_, str>;

    /// The object.
    fn key(&self) -> ObjectKey;

    /// What it does, for people.
    fn words(&self) -> String {
        format!("{:?} {} {}", self.verb(), self.kind_name(), self.key())
    }
}

/// The action of controllers that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAction {}

impl PlanStep for NoAction {
    fn verb(&self) -> Verb {
        match *self {}
    }

    fn kind_name(&self) -> Cow<'_, str> {
        match *self {}
    }

    fn key(&self) -> ObjectKey {
        match *self {}
    }
}

impl PlanStep for Write {
    fn verb(&self) -> Verb {
        self.verb()
    }

    fn kind_name(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.kind().kind)
    }

    fn key(&self) -> ObjectKey {
        self.key().clone()
    }
}
