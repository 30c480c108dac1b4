//! What an object becomes when fields are taken out of it.

use serde_json::{Map, Value};

use super::{
    set::{Element, FieldSet},
    shape::{Form, Shape},
};
use crate::schema::ListKind;

/// The value without some fields; null where nothing is left.
pub(crate) fn without(value: &Value, fields: &FieldSet, shape: Shape<'_>) -> Value {
    match (shape.form(Some(value)), value) {
        (Form::Scalar, scalar) => scalar.clone(),
        (Form::List, Value::Array(items)) if *shape.list() != ListKind::Atomic => items_without(items, fields, shape),
        (Form::Map, Value::Object(entries)) if !shape.is_atomic_map() => fields_without(entries, fields, shape),
        _ => Value::Null,
    }
}

fn fields_without(entries: &Map<String, Value>, fields: &FieldSet, shape: Shape<'_>) -> Value {
    let mut left = Map::new();
    for (name, value) in entries {
        let step = Element::field(name);
        if !fields.has(&step) {
            let field = shape.field(name).unwrap_or(Shape::Deduced);
            left.insert(name.clone(), part_without(value, &step, fields, field));
        }
    }
    if left.is_empty() { Value::Null } else { Value::Object(left) }
}

fn items_without(items: &[Value], fields: &FieldSet, shape: Shape<'_>) -> Value {
    let mut left = Vec::new();
    for item in items {
        match shape.step(item) {
            Ok(step) if fields.has(&step) => {}
            Ok(step) => left.push(part_without(item, &step, fields, shape.item())),
            Err(_) => left.push(item.clone()),
        }
    }
    if left.is_empty() { Value::Null } else { Value::Array(left) }
}

fn part_without(value: &Value, step: &Element, fields: &FieldSet, shape: Shape<'_>) -> Value {
    match fields.child(step).filter(|below| !below.is_empty()) {
        Some(below) => without(value, below, shape),
        None => value.clone(),
    }
}
