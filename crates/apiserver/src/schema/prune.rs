//! Drops what a schema says nothing about, as an API server does before it looks at an object at all.

use serde_json::{Map, Value};

use super::{Additional, Schema};
use crate::field::Path;

/// The fields that every resource has, whatever its schema says.
const OF_RESOURCES: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The fields of the metadata of a resource.
const OF_METADATA: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Drops the fields of an object that its schema does not know, and nulls where null means nothing. Says what was
/// dropped, in the form of `spec.items[0].field`. What is in the object's own metadata is not looked at.
pub fn prune(object: &mut Value, schema: &Schema) -> Vec<String> {
    let mut dropped = Vec::new();
    Place { schema: Some(schema), keeps_unknown: schema.preserve_unknown_fields, is_resource: true }.prune(
        object,
        &Path::Root,
        &mut dropped,
    );
    drop_nulls(object, Some(schema));
    dropped.sort();
    // The metadata of resources inside of the object is read in a second pass, which reports after the first.
    let mut of_metadata = Vec::new();
    tidy_embedded(object, schema, &Path::Root, &mut of_metadata);
    of_metadata.sort();
    dropped.extend(of_metadata);
    dropped
}

/// Does the same with a part of an object, and leaves nulls and the metadata of resources alone.
pub(crate) fn prune_part(value: &mut Value, schema: &Schema) -> Vec<String> {
    let mut dropped = Vec::new();
    Place::of(Some(schema)).prune(value, &Path::Root, &mut dropped);
    dropped
}

/// What is known about the place of a value.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// Nothing where the schema only says that there may be anything; that means values, not fields.
    schema: Option<&'a Schema>,
    keeps_unknown: bool,
    is_resource: bool,
}

impl<'a> Place<'a> {
    fn of(schema: Option<&'a Schema>) -> Self {
        Self {
            schema,
            keeps_unknown: schema.is_some_and(|schema| schema.preserve_unknown_fields),
            is_resource: schema.is_some_and(|schema| schema.embedded_resource),
        }
    }

    fn prune(self, value: &mut Value, path: &Path<'_>, dropped: &mut Vec<String>) {
        match value {
            Value::Object(fields) => self.prune_fields(fields, path, dropped),
            Value::Array(items) => {
                let place = self.of_items();
                for (index, item) in items.iter_mut().enumerate() {
                    place.prune(item, &path.index(index), dropped);
                }
            }
            _ => {}
        }
    }

    fn prune_fields(self, fields: &mut Map<String, Value>, path: &Path<'_>, dropped: &mut Vec<String>) {
        fields.retain(|name, value| {
            if self.is_resource && OF_RESOURCES.contains(&name.as_str()) {
                return true;
            }
            if let Some(place) = self.of_field(name) {
                place.prune(value, &path.field(name), dropped);
                return true;
            }
            if !self.keeps_unknown {
                dropped.push(path.field(name).to_string());
            }
            self.keeps_unknown
        });
    }

    fn of_field(self, name: &str) -> Option<Self> {
        let schema = self.schema?;
        match (schema.properties.get(name), &schema.additional_properties) {
            (Some(field), _) | (None, Some(Additional::Schema(field))) => Some(Self::of(Some(field))),
            (None, Some(Additional::Any)) => Some(Self::of(None)),
            (None, None) => None,
        }
    }

    /// Items of a list that keeps what it does not know keep it too.
    fn of_items(self) -> Self {
        let items = self.schema.and_then(|schema| schema.items.as_deref());
        let of_schema = Self::of(items);
        Self { keeps_unknown: of_schema.keeps_unknown || self.keeps_unknown, ..of_schema }
    }
}

/// Drops nulls where null is no value and nothing takes their place.
fn drop_nulls(value: &mut Value, schema: Option<&Schema>) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let schema = schema.and_then(|schema| schema.field(name)).map(AsRef::as_ref);
            let means_nothing = schema.is_some_and(|schema| !schema.nullable && schema.default.is_none());
            let stays = !(value.is_null() && means_nothing);
            drop_nulls(value, schema);
            stays
        }),
        Value::Array(items) => {
            let schema = schema.and_then(|schema| schema.items.as_deref());
            for item in items {
                drop_nulls(item, schema);
            }
        }
        _ => {}
    }
}

/// Drops from the metadata of resources inside of an object what is no metadata, and what says nothing.
fn tidy_embedded(value: &mut Value, schema: &Schema, path: &Path<'_>, dropped: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if schema.embedded_resource && name == "metadata" {
                    tidy_metadata(value, &path.field(name), dropped);
                }
                if let Some(field) = schema.field(name) {
                    tidy_embedded(value, field, &path.field(name), dropped);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for (index, item) in items.iter_mut().enumerate() {
                tidy_embedded(item, schema, &path.index(index), dropped);
            }
        }
        _ => {}
    }
}

fn tidy_metadata(metadata: &mut Value, path: &Path<'_>, dropped: &mut Vec<String>) {
    let Value::Object(fields) = metadata else { return };
    fields.retain(|name, value| {
        let is_known = OF_METADATA.contains(&name.as_str());
        if !is_known {
            dropped.push(path.field(name).to_string());
        }
        is_known && !says_nothing(value)
    });
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
