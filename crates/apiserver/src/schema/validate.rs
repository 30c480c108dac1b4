//! Whether an object is as its schema says, in the words of an API server.
//!
//! Clients and people match these texts, so they are the same, and so is what is found wrong where several things are.

mod embedded;
mod list;
mod node;
mod number;
mod outcome;

use serde_json::Value;

use self::{node::Node, outcome::Outcome};
use super::{Schema, ratchet::Before};
use crate::{
    field::{FieldError, Path},
    schema::Additional,
};

/// A schema that objects are held against, made once for all of them.
#[derive(Debug)]
pub struct Validator {
    root: Node,
    status: Option<Node>,
    has_embedded: bool,
    has_lists: bool,
}

/// What is wrong with an object. Whoever has several for one schema makes a [`Validator`].
#[must_use]
pub fn validate(object: &Value, old: Option<&Value>, schema: &Schema) -> Vec<FieldError> {
    Validator::new(schema).check(object, old)
}

impl Validator {
    /// Prepares a schema.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        Self {
            root: Node::new(schema),
            status: schema.properties.get("status").map(|status| Node::new(status)),
            has_embedded: any(schema, &|schema| schema.embedded_resource),
            has_lists: any(schema, &|schema| schema.list != super::ListKind::Atomic),
        }
    }

    /// What is wrong with an object. In an update, what is wrong but was so before does not count.
    #[must_use]
    pub fn check(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let schema = &self.root.schema;
        let before = old.map(|old| Before { new: object, old, schema });
        let mut errors = self.root.check_update(object, before, &Path::Root).into_errors();
        if self.has_embedded {
            embedded::check(object, schema, &Path::Root, &mut errors);
        }
        errors.extend(self.check_lists(object, old));
        errors
    }

    /// What is wrong with an object of which only the status is written.
    #[must_use]
    pub fn check_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let before = Before { new: object, old, schema: &self.root.schema }.field("status");
        let outcome = match (&self.status, object.get("status")) {
            (Some(node), Some(status)) => node.check_update(status, before, &Path::Root),
            _ => Outcome::default(),
        };
        let mut errors = outcome.into_errors();
        for error in &mut errors {
            let separator = if error.field.is_empty() { "" } else { "." };
            error.field = format!("status{separator}{}", error.field);
        }
        errors.extend(self.check_lists(object, Some(old)));
        errors
    }

    /// Items that are in a list twice. If that was so before, nobody minds.
    fn check_lists(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let twice = |object: &Value| {
            let mut errors = Vec::new();
            if self.has_lists {
                list::check(object, &self.root.schema, &Path::Root, &mut errors);
            }
            errors
        };
        let errors = twice(object);
        let was_so_before = !errors.is_empty() && old.is_some_and(|old| !twice(old).is_empty());
        if was_so_before { Vec::new() } else { errors }
    }
}

/// Whether something holds of any part of a schema.
fn any(schema: &Schema, holds: &impl Fn(&Schema) -> bool) -> bool {
    let entry = match &schema.additional_properties {
        Some(Additional::Schema(entry)) => Some(entry),
        _ => None,
    };
    holds(schema) || schema.properties.values().chain(entry).chain(&schema.items).any(|inner| any(inner, holds))
}

#[cfg(test)]
mod tests;
