//! Puts in what a schema says is meant where nothing is said.

use serde_json::Value;

use super::{Additional, Schema};

/// Fills in the defaults. A field without a value gets its default only where the object around it is there.
pub fn fill_in_defaults(object: &mut Value, schema: &Schema) {
    match object {
        Value::Object(fields) => {
            for (name, schema) in &schema.properties {
                let Some(default) = &schema.default else { continue };
                if fields.get(name).is_none_or(|value| is_missing(value, schema)) {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                match (schema.properties.get(name), &schema.additional_properties) {
                    (Some(schema), _) => fill_in_defaults(value, schema),
                    (None, Some(Additional::Schema(schema))) => fill_in_entry(value, schema),
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for item in items {
                fill_in_entry(item, schema);
            }
        }
        _ => {}
    }
}

fn fill_in_entry(value: &mut Value, schema: &Schema) {
    if is_missing(value, schema) {
        *value = schema.default.clone().unwrap_or_default();
    }
    fill_in_defaults(value, schema);
}

fn is_missing(value: &Value, schema: &Schema) -> bool {
    value.is_null() && !schema.nullable
}

#[cfg(test)]
mod tests;
