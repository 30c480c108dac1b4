//! Whether a value is of its shape, so that everything else can rely on it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    set::Element,
    shape::{Form, Scalar, Shape},
    values::{plain, source, type_name},
};
use crate::schema::ListKind;

/// What to do with items of a list that can not be told apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duplicates {
    /// Leave them: an object that is there already may have them.
    Allowed,
    /// Refuse them.
    Refused,
}

/// Checks an object; what is wrong is told as Kubernetes tells it.
pub(crate) fn check(value: &Value, shape: Shape<'_>, duplicates: Duplicates) -> Result<(), String> {
    let mut found = Findings { path: String::new(), duplicates, errors: Vec::new() };
    found.visit(value, shape);
    match found.errors.as_slice() {
        [] => Ok(()),
        [only] => Err(only.clone()),
        several => {
            let lines: Vec<String> = several.iter().map(|error| format!("  {error}")).collect();
            Err(format!("errors:\n{}", lines.join("\n")))
        }
    }
}

struct Findings {
    path: String,
    duplicates: Duplicates,
    errors: Vec<String>,
}

impl Findings {
    fn visit(&mut self, value: &Value, shape: Shape<'_>) {
        match (shape.form(Some(value)), value) {
            (Form::Map | Form::Scalar | Form::List, Value::Null) => {}
            (Form::Map, Value::Object(fields)) => self.visit_fields(fields, shape),
            (Form::List, Value::Array(items)) => self.visit_items(items, shape),
            (Form::Map, other) => self.say(&format!("expected map, got &{{{}}}", plain(other))),
            (Form::List, other) => self.say(&format!("expected list, got &{{{}}}", plain(other))),
            (Form::Scalar, scalar) => self.visit_scalar(scalar, shape.scalar()),
        }
    }

    fn visit_fields(&mut self, fields: &Map<String, Value>, shape: Shape<'_>) {
        for (name, value) in fields {
            let step = Element::field(name);
            let Some(field) = shape.field(name) else {
                self.inside(&step, |found| found.say("field not declared in schema"));
                return;
            };
            self.inside(&step, |found| found.visit(value, field));
        }
    }

    fn visit_items(&mut self, items: &[Value], shape: Shape<'_>) {
        let mut seen = BTreeSet::new();
        for (place, item) in items.iter().enumerate() {
            let step = match shape.list() {
                ListKind::Atomic => Element::Index(i64::try_from(place).unwrap_or(i64::MAX)),
                ListKind::Set | ListKind::Map(_) => match shape.step(item) {
                    Ok(step) => step,
                    Err(error) => return self.say(&format!("element {place}: {error}")),
                },
            };
            if seen.contains(&step) && self.duplicates == Duplicates::Refused {
                self.say(&format!("duplicate entries for key {step}"));
            }
            self.inside(&step, |found| found.visit(item, shape.item()));
            seen.insert(step);
        }
    }

    fn visit_scalar(&mut self, value: &Value, scalar: Scalar) {
        match (scalar, value) {
            (Scalar::Number | Scalar::Any, Value::Number(_))
            | (Scalar::Text | Scalar::Any, Value::String(_))
            | (Scalar::Boolean | Scalar::Any, Value::Bool(_)) => {}
            (Scalar::Number, other) => {
                self.say(&format!("expected numeric (int or float), got {}", type_name(other)));
            }
            (Scalar::Text, other) => {
                self.say(&format!("expected string, got &value.valueUnstructured{{Value:{}}}", source(other)));
            }
            (Scalar::Boolean, other) => self.say(&format!("expected boolean, got &{{{}}}", plain(other))),
            (Scalar::Any, other) => self.say(&format!("expected any scalar, got &{{{}}}", plain(other))),
        }
    }

    fn inside(&mut self, step: &Element, look: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(&step.to_string());
        look(self);
        self.path.truncate(length);
    }

    fn say(&mut self, message: &str) {
        let path = &self.path;
        self.errors.push(if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") });
    }
}
