//! Defaults have to be values of their schema themselves.

use serde_json::Value;

use super::structural::{flag, properties};
use crate::{
    field::{ErrorKind, FieldError, Path},
    schema::{Schema, prune, rules::Rules, validate},
};

/// What is wrong with the defaults in a schema.
pub(super) fn check(schema: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_inside(schema, path, false, &mut errors);
    errors
}

/// Defaults in maps are not looked at, and of metadata not pruned.
fn check_inside(schema: &Value, path: &Path<'_>, is_metadata: bool, errors: &mut Vec<FieldError>) {
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        check_default(default, schema, &path.field("default"), is_metadata, errors);
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        check_inside(items, &path.field("items"), is_metadata, errors);
    }
    let of_properties = path.field("properties");
    let is_resource = flag(schema, "x-kubernetes-embedded-resource");
    for (name, property) in properties(schema) {
        let is_metadata = is_metadata || (is_resource && matches!(name.as_str(), "metadata" | "apiVersion" | "kind"));
        check_inside(property, &of_properties.key(name), is_metadata, errors);
    }
}

fn check_default(default: &Value, openapi: &Value, path: &Path<'_>, is_metadata: bool, errors: &mut Vec<FieldError>) {
    let schema = Schema::read(openapi, &|_| None);
    if !is_metadata && !prune::prune_part(&mut default.clone(), &schema).is_empty() {
        errors.push(FieldError::new(ErrorKind::Invalid, path, default.clone(), "must not have unknown fields"));
    }
    let mut found = validate::validate(default, None, &schema);
    if found.is_empty()
        && let Ok(rules) = Rules::compile_part(openapi)
    {
        found = rules.check(default, Some(default));
        if found.is_empty() {
            found = rules.check(default, None);
        }
    }
    for mut error in found {
        let separator = if error.field.is_empty() { "" } else { "." };
        error.field = format!("{path}{separator}{}", error.field);
        errors.push(error);
    }
}
