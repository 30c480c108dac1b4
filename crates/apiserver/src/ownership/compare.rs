//! What is different between two states of an object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    set::{Element, FieldSet, Path},
    shape::{Form, Shape},
    values::same,
};
use crate::schema::ListKind;

/// What is different.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison {
    /// The fields that are not there any more.
    pub(crate) removed: FieldSet,
    /// The fields that say something else.
    pub(crate) modified: FieldSet,
    /// The fields that are new.
    pub(crate) added: FieldSet,
}

impl Comparison {
    /// The difference from one state to another.
    pub(crate) fn between(old: &Value, new: &Value, shape: Shape<'_>) -> Self {
        let mut walk = Walk { path: Vec::new(), found: Self::default() };
        walk.visit(Some(old), Some(new), shape);
        walk.found
    }

    /// The difference without what is in some fields.
    pub(crate) fn without(self, fields: &FieldSet) -> Self {
        Self {
            removed: self.removed.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            added: self.added.recursive_difference(fields),
        }
    }

    /// The fields that say something new.
    pub(crate) fn written(&self) -> FieldSet {
        self.modified.union(&self.added)
    }
}

struct Walk {
    path: Path,
    found: Comparison,
}

/// Whether a value was compared as one thing, or part by part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Whole,
    Parts,
}

impl Walk {
    fn visit(&mut self, old: Option<&Value>, new: Option<&Value>, shape: Shape<'_>) {
        let (old_form, new_form) = (shape.form(old), shape.form(new));
        let depth = match (old, new) {
            (_, None) => self.visit_as(old_form, old, new, shape),
            (Some(_), Some(_)) if old_form != new_form => {
                self.visit_as(old_form, old, new, shape);
                self.visit_as(new_form, old, new, shape)
            }
            _ => self.visit_as(new_form, old, new, shape),
        };
        match (depth, old, new) {
            (Depth::Parts, None, _) => self.found.added.insert(&self.path),
            (Depth::Parts, _, None) => self.found.removed.insert(&self.path),
            _ => {}
        }
    }

    fn visit_as(&mut self, form: Form, old: Option<&Value>, new: Option<&Value>, shape: Shape<'_>) -> Depth {
        match form {
            Form::Scalar => self.visit_whole(old, new),
            Form::Map => {
                let (old_fields, new_fields) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
                let is_empty = |fields: Option<&Map<String, Value>>| fields.is_none_or(Map::is_empty);
                if shape.is_atomic_map() || is_empty(old_fields) && is_empty(new_fields) {
                    return self.visit_whole(old, new);
                }
                self.visit_fields(old_fields, new_fields, shape);
                Depth::Parts
            }
            Form::List => {
                let (old_items, new_items) = (items(old), items(new));
                if *shape.list() == ListKind::Atomic || old_items.is_empty() && new_items.is_empty() {
                    return self.visit_whole(old, new);
                }
                self.visit_items(old_items, new_items, shape);
                Depth::Parts
            }
        }
    }

    fn visit_whole(&mut self, old: Option<&Value>, new: Option<&Value>) -> Depth {
        match (old, new) {
            (None, _) => self.found.added.insert(&self.path),
            (_, None) => self.found.removed.insert(&self.path),
            (Some(old), Some(new)) if !same(old, new) => self.found.modified.insert(&self.path),
            _ => {}
        }
        Depth::Whole
    }

    fn visit_fields(&mut self, old: Option<&Map<String, Value>>, new: Option<&Map<String, Value>>, shape: Shape<'_>) {
        let names: BTreeSet<&String> = old.into_iter().chain(new).flat_map(Map::keys).collect();
        for name in names {
            let (old, new) = (old.and_then(|old| old.get(name)), new.and_then(|new| new.get(name)));
            self.path.push(Element::field(name));
            self.visit(old, new, shape.field(name).unwrap_or(Shape::Deduced));
            self.path.pop();
        }
    }

    fn visit_items(&mut self, old: &[Value], new: &[Value], shape: Shape<'_>) {
        let mut both: BTreeMap<Element, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in old {
            if let Ok(step) = shape.step(item) {
                both.entry(step).or_default().0.push(item);
            }
        }
        for item in new {
            if let Ok(step) = shape.step(item) {
                both.entry(step).or_default().1.push(item);
            }
        }
        for (step, (old, new)) in both {
            self.path.push(step);
            self.visit_item(&old, &new, shape.item());
            self.path.pop();
        }
    }

    /// Items that can not be told apart are compared as one thing.
    fn visit_item(&mut self, old: &[&Value], new: &[&Value], shape: Shape<'_>) {
        match (old, new) {
            ([] | [_], [] | [_]) => self.visit(old.first().copied(), new.first().copied(), shape),
            ([_, _, ..], [_, _, ..]) => {
                let is_same = old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new));
                if !is_same {
                    self.found.modified.insert(&self.path);
                }
            }
            ([_, _, ..], _) => {
                if let Some(new) = new.first() {
                    self.visit(None, Some(new), shape);
                }
                self.found.removed.insert(&self.path);
            }
            _ => {
                if let Some(old) = old.first() {
                    self.visit(Some(old), None, shape);
                }
                self.found.added.insert(&self.path);
            }
        }
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
