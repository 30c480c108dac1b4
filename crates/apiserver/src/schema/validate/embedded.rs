//! Resources inside of objects: they say what they are.

use serde_json::{Map, Value};

use crate::{
    field::{ErrorKind, FieldError, Path},
    schema::{Additional, Schema},
};

/// Checks the resources inside of an object, itself left out.
pub(super) fn check(value: &Value, schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource {
                check_resource(fields, path, errors);
            }
            for (name, value) in fields {
                if let Some(schema) = schema.properties.get(name) {
                    check(value, schema, &path.field(name), errors);
                } else if let Some(Additional::Schema(schema)) = &schema.additional_properties {
                    check(value, schema, &path.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                check(item, schema, &path.index(index), errors);
            }
        }
        _ => {}
    }
}

fn check_resource(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        if !fields.contains_key(name) {
            errors.push(FieldError::bare(ErrorKind::Required, &path.field(name), ""));
        }
    }
    let mut check = |name: &str, fault: fn(&str) -> Option<String>| {
        let detail = match fields.get(name) {
            None => return,
            Some(Value::String(text)) if text.is_empty() => Some("must not be empty".to_owned()),
            Some(Value::String(text)) => fault(text),
            Some(_) => Some("must be a string".to_owned()),
        };
        if let Some(detail) = detail {
            errors.push(FieldError::new(ErrorKind::Invalid, &path.field(name), fields[name].clone(), detail));
        }
    };
    check("apiVersion", |text| {
        (text.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {text}"))
    });
    check("kind", |text| {
        let faults = crate::definition::name::label_faults(&text.to_lowercase());
        let words = "may have mixed case, but should otherwise match: ";
        (!faults.is_empty()).then(|| format!("{words}{}", faults.join(",")))
    });
    if fields.get("metadata").is_some_and(|metadata| !metadata.is_object() && !metadata.is_null()) {
        let path = path.field("metadata");
        errors.push(FieldError::new(ErrorKind::Invalid, &path, fields["metadata"].clone(), "must be an object"));
    }
}
