//! Objects and lists as they are in JSON, seen as their schema describes them. Nothing is copied, and nothing looked at before it is asked for.
//!
//! What the schema does not know is not there, and of a resource only what it is and what it is called. Without a schema, everything is.

use std::borrow::Cow;

use kube_cel::cel;
use serde_json::{Map, Number, Value as Json};

use super::{
    fields::{escaped, is_seen, property, unescaped},
    functions,
    value::{Key, Value},
};
use crate::schema::{Additional, ListKind, Schema, Type};

/// A list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array<'a> {
    items: &'a [Json],
    schema: Option<&'a Schema>,
}

impl<'a> Array<'a> {
    /// A list, as its schema describes it.
    pub(super) fn new(items: &'a [Json], schema: Option<&'a Schema>) -> Self {
        Self { items, schema }
    }

    pub(super) fn len(self) -> usize {
        self.items.len()
    }

    pub(super) fn get(self, at: usize) -> Option<Value<'a>> {
        self.items.get(at).map(|item| self.item(item))
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Value<'a>> {
        self.items.iter().map(move |item| self.item(item))
    }

    fn item(self, item: &'a Json) -> Value<'a> {
        match self.schema.map(|schema| schema.items.as_deref()) {
            None => Value::from(item),
            Some(None) => Value::Null,
            Some(Some(schema)) => Value::described(item, schema, schema.embedded_resource),
        }
    }

    /// How its items are told apart.
    pub(super) fn kind(self) -> &'a ListKind {
        self.schema.map_or(&ListKind::Atomic, |schema| &schema.list)
    }

    pub(super) fn is_same(self, other: Self) -> bool {
        std::ptr::eq(self.items, other.items) && !self.items.is_empty()
    }
}

/// An object, or a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object<'a> {
    fields: &'a Map<String, Json>,
    /// Its schema, and whether it is a whole resource.
    described: Option<(&'a Schema, bool)>,
}

impl<'a> Object<'a> {
    /// An object, as its schema describes it.
    pub(super) fn new(fields: &'a Map<String, Json>, described: Option<(&'a Schema, bool)>) -> Self {
        Self { fields, described }
    }

    /// How many fields it has, seen or not.
    pub(super) fn len(self) -> usize {
        self.fields.len()
    }

    /// What is there for a name or key in an expression.
    pub(super) fn entry(self, key: &str) -> Option<Value<'a>> {
        if self.entry_schema().is_some() || self.described.is_none() {
            return self.field(key);
        }
        self.field(&unescaped(key)?)
    }

    /// What all entries are, if it is a map.
    fn entry_schema(self) -> Option<&'a Schema> {
        match self.described?.0.additional_properties.as_ref()? {
            Additional::Schema(entry) => Some(entry),
            Additional::Any => None,
        }
    }

    /// What is there for a name in JSON, if it can be seen.
    fn field(self, name: &str) -> Option<Value<'a>> {
        let value = self.fields.get(name)?;
        let Some((schema, is_resource)) = self.described else { return Some(Value::from(value)) };
        if let Some(entry) = self.entry_schema() {
            return (!value.is_null() || entry.nullable)
                .then(|| Value::described(value, entry, entry.embedded_resource));
        }
        let field = property(schema, is_resource, name)?;
        // Null is as good as nothing.
        (is_seen(field) && !value.is_null()).then(|| Value::described(value, field, field.embedded_resource))
    }

    /// All that can be seen.
    pub(super) fn entries(self) -> Vec<(Key, Value<'a>)> {
        let is_map = self.described.is_none() || self.entry_schema().is_some();
        let called = |name: &'a str| if is_map { Some(Cow::Borrowed(name)) } else { escaped(name) };
        let entry = |name: &'a String| Some((Key::Text(called(name)?.into_owned()), self.field(name)?));
        self.fields.keys().filter_map(entry).collect()
    }

    /// Whether both are the same object.
    pub(super) fn is_same(self, other: Self) -> bool {
        std::ptr::eq(self.fields, other.fields)
    }

    /// The fields of both that no schema is about, and so are equal if they are so in JSON.
    pub(super) fn has_equal_rest(self, other: Self) -> bool {
        let Some((schema, is_resource)) = self.described.filter(|_| self.entry_schema().is_none()) else { return true };
        let rest =
            self.fields.iter().filter(|(name, _)| property(schema, is_resource, name).is_none_or(|it| !is_seen(it)));
        rest.into_iter().all(|(name, value)| other.fields.get(name).is_none_or(|other| other == value))
    }
}

impl<'a> Value<'a> {
    /// A value as its schema describes it.
    pub(crate) fn described(json: &'a Json, schema: &'a Schema, is_resource: bool) -> Self {
        match json {
            Json::Number(number) => from_number(number, schema),
            Json::String(text) => from_text(text, schema),
            Json::Array(items) if schema.type_.is_some() => Self::Array(Array::new(items, Some(schema))),
            Json::Object(fields) if schema.type_.is_some() => {
                Self::Object(Object::new(fields, Some((schema, is_resource))))
            }
            other => Self::from(other),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "only whole numbers get there")]
fn from_number<'a>(number: &Number, schema: &Schema) -> Value<'a> {
    let double = || number.as_f64().unwrap_or(f64::NAN);
    match (schema.type_, number.as_i64()) {
        (Some(Type::Number), _) => Value::Double(double()),
        (_, Some(whole)) => Value::Int(whole),
        (Some(Type::Integer), None) if double().fract() == 0.0 => Value::Int(double() as i64),
        _ => Value::Double(double()),
    }
}

fn from_text<'a>(text: &'a str, schema: &Schema) -> Value<'a> {
    let plain = Value::Text(Cow::Borrowed(text));
    let made = |function: &str, text: Value<'a>| functions::library(function, None, &[text]).ok();
    let made = match schema.limits.format.as_deref().filter(|_| !schema.int_or_string) {
        Some("date-time") => made("timestamp", plain.clone()),
        Some("date") => made("timestamp", Value::text(format!("{text}T00:00:00Z"))),
        Some("duration") => made("duration", plain.clone()),
        Some("byte") => made("base64.decode", plain.clone()),
        _ => None,
    };
    made.filter(|made| {
        matches!(made, Value::Other(cel::Value::Timestamp(_) | cel::Value::Duration(_) | cel::Value::Bytes(_)))
    })
    .unwrap_or(plain)
}
