//! Which fields a value has: what its applier owns of an object, or could remove from it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    set::{Element, FieldSet, Path},
    shape::{Form, Shape},
};
use crate::schema::ListKind;

/// All fields that an object has, as far as they can be owned one by one.
pub(crate) fn fields_of(value: &Value, shape: Shape<'_>) -> FieldSet {
    let mut walk = Walk { path: Vec::new(), set: FieldSet::default() };
    walk.visit(value, shape);
    walk.set
}

struct Walk {
    path: Path,
    set: FieldSet,
}

impl Walk {
    fn visit(&mut self, value: &Value, shape: Shape<'_>) {
        match shape.form(Some(value)) {
            Form::Scalar => self.set.insert(&self.path),
            Form::Map if shape.is_atomic_map() => self.set.insert(&self.path),
            Form::Map => {
                if let Value::Object(fields) = value {
                    self.visit_fields(fields, shape);
                }
            }
            Form::List if *shape.list() == ListKind::Atomic => self.set.insert(&self.path),
            Form::List => {
                if let Value::Array(items) = value {
                    self.visit_items(items, shape);
                }
            }
        }
    }

    fn visit_fields(&mut self, fields: &Map<String, Value>, shape: Shape<'_>) {
        for (name, value) in fields {
            self.path.push(Element::field(name));
            self.visit(value, shape.field(name).unwrap_or(Shape::Deduced));
            // A structure is owned by its fields; an entry of a map, or what has no fields, is owned itself.
            let is_bare = value.is_null() || value.as_object().is_some_and(Map::is_empty);
            if is_bare || shape.named(name).is_none() {
                self.set.insert(&self.path);
            }
            self.path.pop();
        }
    }

    fn visit_items(&mut self, items: &[Value], shape: Shape<'_>) {
        let steps: Vec<Option<Element>> = items.iter().map(|item| shape.step(item).ok()).collect();
        let (mut seen, mut several) = (BTreeSet::new(), BTreeSet::new());
        for step in steps.iter().flatten() {
            if !seen.insert(step) {
                several.insert(step);
            }
        }
        for (item, step) in items.iter().zip(&steps) {
            let Some(step) = step else { continue };
            self.path.push(step.clone());
            // Items that can not be told apart are owned together, without their fields.
            if !several.contains(step) {
                self.visit(item, shape.item());
            }
            self.set.insert(&self.path);
            self.path.pop();
        }
    }
}

/// The set with every structure in it that it has fields of.
pub(crate) fn with_structures(set: &FieldSet, shape: Option<Shape<'_>>) -> FieldSet {
    let below = |element: &Element, set: &FieldSet| {
        let shape = match element {
            Element::Field(name) => shape.and_then(|shape| shape.field(name)),
            Element::Key(_) => shape.map(Shape::item),
            Element::Value(_) | Element::Index(_) => None,
        };
        with_structures(set, shape)
    };
    set.map_children(below).with_members(|element| match element {
        Element::Field(name) => shape.is_some_and(|shape| shape.named(name).is_some()),
        _ => false,
    })
}
