//! The types of values that a schema describes.

use std::{fmt, sync::Arc};

use super::{BOOL, INT, TEXT, Type};
use crate::{
    cel::fields::{is_seen, property, unescaped},
    schema::{Additional, Schema, Type as Kind},
};

/// An object with the fields of a schema. These are looked up when they are asked for.
#[derive(Clone, Debug)]
pub(crate) struct Described<'s> {
    schema: &'s Schema,
    /// Whether it is a whole resource, of which everybody sees what it is and what it is called.
    is_resource: bool,
    /// What it is called in complaints.
    name: Arc<str>,
}

impl PartialEq for Described<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.schema, other.schema) && self.is_resource == other.is_resource
    }
}

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl<'s> Described<'s> {
    /// The type of a field; nothing if expressions can see none of this name.
    pub(super) fn field(&self, name: &str) -> Option<Type<'s>> {
        let field = property(self.schema, self.is_resource, &unescaped(name)?)?;
        Type::of(field, field.embedded_resource, &format!("{}.{name}", self.name))
    }
}

impl<'s> Type<'s> {
    /// The type of what a schema describes, which is called so; nothing where expressions can not see it.
    pub(crate) fn of(schema: &'s Schema, is_resource: bool, name: &str) -> Option<Self> {
        if !is_seen(schema) {
            return None;
        }
        if schema.int_or_string {
            return Some(Self::Dyn);
        }
        match schema.type_? {
            Kind::Boolean => Some(BOOL),
            Kind::Integer => Some(INT),
            Kind::Number => Some(Self::Named("double", Vec::new())),
            Kind::String => Some(match schema.limits.format.as_deref() {
                Some("byte") => Self::Named("bytes", Vec::new()),
                Some("duration") => Self::Named("duration", Vec::new()),
                Some("date" | "date-time") => Self::Named("timestamp", Vec::new()),
                _ => TEXT,
            }),
            Kind::Array => {
                let items = schema.items.as_deref()?;
                Self::of(items, items.embedded_resource, &format!("{name}.@idx")).map(Self::list)
            }
            Kind::Object => match &schema.additional_properties {
                Some(Additional::Schema(entry)) => {
                    let value = Self::of(entry, entry.embedded_resource, &format!("{name}.@elem"))?;
                    Some(Self::map(TEXT, value))
                }
                _ => Some(Self::Object(Described { schema, is_resource, name: name.into() })),
            },
        }
    }
}
