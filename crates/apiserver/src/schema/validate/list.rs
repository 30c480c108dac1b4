//! Lists whose items are told apart: no two may be the same.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{
    field::{ErrorKind, FieldError, Path},
    schema::{Additional, ListKind, Schema},
};

/// Finds items that are in a list twice.
pub(super) fn check(value: &Value, schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => check_fields(fields, schema, path, errors),
        Value::Array(items) => {
            check_items(items, schema, path, errors);
            let Some(schema) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                check(item, schema, &path.index(index), errors);
            }
        }
        _ => {}
    }
}

fn check_fields(fields: &Map<String, Value>, schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(Additional::Schema(schema)) = &schema.additional_properties {
        for (key, value) in fields {
            check(value, schema, &path.key(key), errors);
        }
    }
    for (name, value) in fields {
        if let Some(schema) = schema.properties.get(name) {
            check(value, schema, &path.field(name), errors);
        }
    }
}

fn check_items(items: &[Value], schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let keys: Vec<Value> = match &schema.list {
        ListKind::Atomic => return,
        ListKind::Set => items.to_vec(),
        ListKind::Map(names) => {
            if let Some((index, item)) = items.iter().enumerate().find(|(_, item)| !item.is_null() && !item.is_object())
            {
                let detail = "must be an object for an array of list-type map";
                errors.push(FieldError::new(ErrorKind::Invalid, &path.index(index), item.clone(), detail));
                return;
            }
            items.iter().map(|item| keys_of(names, item)).collect()
        }
    };
    let mut times: HashMap<String, usize> = HashMap::with_capacity(keys.len());
    for (index, key) in keys.into_iter().enumerate() {
        let seen = times.entry(key.to_string()).or_default();
        *seen += 1;
        // A value that is there three times is one error, not two.
        if *seen == 2 {
            errors.push(FieldError::new(ErrorKind::Duplicate, &path.index(index), key, ""));
        }
    }
}

fn keys_of(names: &[String], item: &Value) -> Value {
    names.iter().filter_map(|name| Some((name.clone(), item.get(name)?.clone()))).collect::<Map<_, _>>().into()
}
