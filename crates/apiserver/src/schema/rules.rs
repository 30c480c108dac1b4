//! Rules that CustomResourceDefinitions write in CEL, as an API server judges by them.
//!
//! They are compiled with the types that their schema says, and evaluated on objects as these are. The walk follows the API server: items of lists
//! are compared by their keys, and all rules together may cost so much.

mod expression;
pub(crate) mod field_path;
mod rule;

use std::collections::BTreeMap;

use serde_json::Value;

use self::rule::Rule;
use super::{
    Additional, Schema,
    ratchet::{Before, old_item},
};
use crate::{
    cel::{Budget, on_a_stack_for},
    field::{ErrorKind, FieldError, Path},
};

/// What all rules may cost that are evaluated for one object.
const COST_OF_OBJECT: u64 = 10_000_000;

/// The rules of one version of a kind, compiled.
#[derive(Debug)]
pub struct Rules {
    schema: Schema,
    root: Option<Node>,
    /// Whether they are about a whole resource, and not about a part of one.
    is_resource: bool,
    /// How many levels their expressions have.
    depth: usize,
}

/// One place in a schema at which, or below which, there are rules.
#[derive(Debug, Default)]
struct Node {
    rules: Vec<Rule>,
    properties: BTreeMap<String, Node>,
    entries: Option<Box<Node>>,
    items: Option<Box<Node>>,
}

impl Rules {
    /// Compiles the rules of a schema, as it was written. What can not be compiled is told with its place in the schema.
    pub fn compile(openapi: &Value) -> Result<Self, Vec<FieldError>> {
        Self::compile_at(openapi, &Path::Root)
    }

    /// Compiles the rules of a schema that is at a path itself.
    pub(crate) fn compile_at(openapi: &Value, path: &Path<'_>) -> Result<Self, Vec<FieldError>> {
        Self::compile_with(openapi, true, path)
    }

    /// Compiles the rules of the schema of a part of a resource.
    pub(crate) fn compile_part(openapi: &Value) -> Result<Self, Vec<FieldError>> {
        let is_resource = openapi.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
        Self::compile_with(openapi, is_resource, &Path::Root)
    }

    fn compile_with(openapi: &Value, is_resource: bool, path: &Path<'_>) -> Result<Self, Vec<FieldError>> {
        let schema = Schema::read(openapi, &|_| None);
        let mut errors = Vec::new();
        let root = Node::compile(&schema, is_resource, path, None, &mut errors);
        let depth = root.as_ref().map_or(0, Node::depth);
        if errors.is_empty() { Ok(Self { schema, root, is_resource, depth }) } else { Err(errors) }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// What an object breaks. In an update, a part that has not changed breaks only rules about changes.
    #[must_use]
    pub fn check(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let Some(root) = &self.root else { return Vec::new() };
        let work = || {
            let before = old.map(|old| Before { new: object, old, schema: &self.schema });
            let place = Place { schema: &self.schema, is_resource: self.is_resource, ratchet: Ratchet::at(before) };
            let mut run = Run { budget: Budget::new(COST_OF_OBJECT), errors: Vec::new(), is_over: false };
            root.check(object, old, place, &Path::Root, &mut run);
            run.errors
        };
        let detail = "the rules could not be evaluated";
        let failed = || vec![FieldError::bare(ErrorKind::Internal, &Path::Root, detail)];
        on_a_stack_for(self.depth, work).unwrap_or_else(failed)
    }
}

/// One check of an object.
struct Run {
    budget: Budget,
    errors: Vec<FieldError>,
    /// Whether it has cost too much to go on.
    is_over: bool,
}

/// What to say instead of checking rules where an object is not even as its schema says; nothing if rules can be checked.
#[must_use]
pub fn blocked(errors: &[FieldError]) -> Option<FieldError> {
    let blocks = |error: &FieldError| {
        use ErrorKind::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
        matches!(error.kind, NotSupported | Required | TooLong | TooMany | TypeInvalid)
    };
    let detail = "some validation rules were not checked because the object was invalid; \
                  correct the existing errors to complete validation";
    errors.iter().any(blocks).then(|| FieldError::new(ErrorKind::Invalid, &Path::Root, Value::Null, detail))
}

/// What is known about where a value is.
#[derive(Clone, Copy)]
struct Place<'a> {
    schema: &'a Schema,
    is_resource: bool,
    ratchet: Ratchet<'a>,
}

/// Whether what is wrong here was wrong before: by the value itself, or else by the nearest one around it that there was before.
#[derive(Clone, Copy)]
struct Ratchet<'a> {
    here: Option<Before<'a>>,
    around: Option<Before<'a>>,
}

impl<'a> Ratchet<'a> {
    fn at(here: Option<Before<'a>>) -> Self {
        Self { here, around: None }
    }

    fn field(self, name: &str) -> Self {
        match self.here {
            None => self,
            Some(_) if self.around.is_none() && matches!(name, "apiVersion" | "kind") => Self::at(None),
            Some(here) => Self { here: here.field(name), around: self.here },
        }
    }

    fn item(self, index: usize) -> Self {
        match self.here {
            None => self,
            Some(here) => Self { here: here.item(index), around: self.here },
        }
    }

    fn is_unchanged(self) -> bool {
        self.here.or(self.around).is_some_and(|before| before.is_unchanged())
    }
}

impl Node {
    /// The rules at and below a place; nothing where there are none. Where values have no counterpart before an update,
    /// rules can not be about changes.
    fn compile(
        schema: &Schema,
        is_resource: bool,
        path: &Path<'_>,
        uncorrelated: Option<&str>,
        errors: &mut Vec<FieldError>,
    ) -> Option<Self> {
        let mut node = Self::default();
        if let Some(Additional::Schema(entry)) = &schema.additional_properties {
            let path = path.field("additionalProperties");
            node.entries = Self::compile(entry, entry.embedded_resource, &path, uncorrelated, errors).map(Box::new);
        }
        let properties = path.field("properties");
        for (name, schema) in &schema.properties {
            let path = properties.key(name);
            let property = Self::compile(schema, schema.embedded_resource, &path, uncorrelated, errors);
            node.properties.extend(property.map(|property| (name.clone(), property)));
        }
        if let Some(items) = &schema.items {
            let has_keys = matches!(schema.list, super::ListKind::Map(_));
            let here = path.to_string();
            let uncorrelated = uncorrelated.or((!has_keys).then_some(here.as_str()));
            let path = path.field("items");
            node.items = Self::compile(items, items.embedded_resource, &path, uncorrelated, errors).map(Box::new);
        }
        let path = path.field("x-kubernetes-validations");
        node.rules = rule::compile_all(schema, is_resource, &path, uncorrelated, errors);
        let is_empty =
            node.rules.is_empty() && node.properties.is_empty() && node.entries.is_none() && node.items.is_none();
        (!is_empty).then_some(node)
    }

    /// How many levels the expressions have here and below.
    fn depth(&self) -> usize {
        let inner = self.properties.values().chain(self.entries.as_deref()).chain(self.items.as_deref());
        self.rules.iter().map(Rule::depth).chain(inner.map(Self::depth)).max().unwrap_or_default()
    }

    fn check(&self, value: &Value, old: Option<&Value>, place: Place<'_>, path: &Path<'_>, run: &mut Run) {
        if value.is_null() || run.is_over {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        rule::check_all(&self.rules, value, old, place, path, run);
        match value {
            Value::Array(items) => self.check_items(items, old, place, path, run),
            Value::Object(_) => self.check_fields(value, old, place, path, run),
            _ => {}
        }
    }

    fn check_items(&self, items: &[Value], old: Option<&Value>, place: Place<'_>, path: &Path<'_>, run: &mut Run) {
        let (Some(node), Some(schema)) = (&self.items, &place.schema.items) else { return };
        let old = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (index, item) in items.iter().enumerate() {
            let inner = Place { schema, is_resource: schema.embedded_resource, ratchet: place.ratchet.item(index) };
            node.check(item, old_item(place.schema, item, old), inner, &path.index(index), run);
        }
    }

    fn check_fields(&self, object: &Value, old: Option<&Value>, place: Place<'_>, path: &Path<'_>, run: &mut Run) {
        let fields = || object.as_object().into_iter().flatten();
        let old = |name: &str| old.and_then(|old| old.get(name));
        let mut check = |node: &Self, schema: &Schema, name: &str, value: &Value, path: &Path<'_>| {
            let place = Place { schema, is_resource: schema.embedded_resource, ratchet: place.ratchet.field(name) };
            node.check(value, old(name), place, path, run);
        };
        if let (Some(node), Some(Additional::Schema(schema))) = (&self.entries, &place.schema.additional_properties) {
            for (name, value) in fields() {
                check(node, schema, name, value, &path.key(name));
            }
        }
        for (name, value) in fields() {
            if let (Some(node), Some(schema)) = (self.properties.get(name), place.schema.properties.get(name)) {
                check(node, schema, name, value, &path.field(name));
            }
        }
    }
}

#[cfg(test)]
mod tests;
