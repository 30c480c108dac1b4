//! Rules that CustomResourceDefinitions write in CEL, as an API server judges by them.
//!
//! The interpreter is kube-cel's and stays behind this module. Its own validator compares items of lists by position,
//! and converts an object once for each level; the walk here follows the API server instead.

mod expression;
pub(crate) mod field_path;
mod functions;
mod rule;
mod source;
mod value;

use std::collections::BTreeMap;

use serde_json::Value;

use self::rule::Rule;
use super::{
    Additional, Schema,
    ratchet::{Before, old_item},
};
use crate::field::{ErrorKind, FieldError, Path};

/// The rules of one version of a kind, compiled.
#[derive(Debug)]
pub struct Rules {
    schema: Schema,
    root: Option<Node>,
    /// Whether they are about a whole resource, and not about a part of one.
    is_resource: bool,
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
        let schema = Schema::read(openapi, &|_| None);
        let mut errors = Vec::new();
        let root = Node::compile(&schema, path, None, &mut errors);
        if errors.is_empty() { Ok(Self { schema, root, is_resource: true }) } else { Err(errors) }
    }

    /// Compiles the rules of the schema of a part of a resource.
    pub(crate) fn compile_part(openapi: &Value) -> Result<Self, Vec<FieldError>> {
        let is_resource = openapi.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
        Ok(Self { is_resource, ..Self::compile(openapi)? })
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
        let before = old.map(|old| Before { new: object, old, schema: &self.schema });
        let mut errors = Vec::new();
        let place = Place { schema: &self.schema, is_resource: self.is_resource, ratchet: Ratchet::at(before) };
        root.check(object, old, place, &Path::Root, &mut errors);
        errors
    }
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
        path: &Path<'_>,
        uncorrelated: Option<&str>,
        errors: &mut Vec<FieldError>,
    ) -> Option<Self> {
        let mut node = Self::default();
        if let Some(Additional::Schema(entry)) = &schema.additional_properties {
            node.entries =
                Self::compile(entry, &path.field("additionalProperties"), uncorrelated, errors).map(Box::new);
        }
        let properties = path.field("properties");
        for (name, schema) in &schema.properties {
            if let Some(property) = Self::compile(schema, &properties.key(name), uncorrelated, errors) {
                node.properties.insert(name.clone(), property);
            }
        }
        if let Some(items) = &schema.items {
            let has_keys = matches!(schema.list, super::ListKind::Map(_));
            let here = path.to_string();
            let uncorrelated = uncorrelated.or((!has_keys).then_some(here.as_str()));
            node.items = Self::compile(items, &path.field("items"), uncorrelated, errors).map(Box::new);
        }
        node.rules = rule::compile_all(schema, &path.field("x-kubernetes-validations"), uncorrelated, errors);
        let is_empty =
            node.rules.is_empty() && node.properties.is_empty() && node.entries.is_none() && node.items.is_none();
        (!is_empty).then_some(node)
    }

    fn check(
        &self,
        value: &Value,
        old: Option<&Value>,
        place: Place<'_>,
        path: &Path<'_>,
        errors: &mut Vec<FieldError>,
    ) {
        if value.is_null() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        rule::check_all(&self.rules, value, old, place, path, errors);
        match value {
            Value::Array(items) => self.check_items(items, old, place, path, errors),
            Value::Object(_) => self.check_fields(value, old, place, path, errors),
            _ => {}
        }
    }

    fn check_items(
        &self,
        items: &[Value],
        old: Option<&Value>,
        place: Place<'_>,
        path: &Path<'_>,
        errors: &mut Vec<FieldError>,
    ) {
        let (Some(node), Some(schema)) = (&self.items, &place.schema.items) else { return };
        let old = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (index, item) in items.iter().enumerate() {
            let inner = Place { schema, is_resource: schema.embedded_resource, ratchet: place.ratchet.item(index) };
            node.check(item, old_item(place.schema, item, old), inner, &path.index(index), errors);
        }
    }

    fn check_fields(
        &self,
        object: &Value,
        old: Option<&Value>,
        place: Place<'_>,
        path: &Path<'_>,
        errors: &mut Vec<FieldError>,
    ) {
        let fields = || object.as_object().into_iter().flatten();
        let old = |name: &str| old.and_then(|old| old.get(name));
        let mut check = |node: &Self, schema: &Schema, name: &str, value: &Value, path: &Path<'_>| {
            let place = Place { schema, is_resource: schema.embedded_resource, ratchet: place.ratchet.field(name) };
            node.check(value, old(name), place, path, errors);
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
