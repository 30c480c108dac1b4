//! A schema with its expressions compiled, and the walk along it.

use std::{collections::BTreeMap, sync::Arc};

use regex::Regex;
use serde_json::{Map, Value, json};

use super::{
    number::{self, Number},
    outcome::Outcome,
};
use crate::{
    field::Path,
    schema::{Additional, Schema, Type, format, pattern, ratchet::Before},
};

/// One place in a schema.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) schema: Arc<Schema>,
    pattern: Option<Result<Regex, String>>,
    /// The format, if it is one that means something for the type.
    format: Option<Format>,
    properties: BTreeMap<String, Node>,
    entries: Option<Box<Node>>,
    items: Option<Box<Node>>,
    all_of: Vec<Node>,
    any_of: Vec<Node>,
    one_of: Vec<Node>,
    not: Option<Box<Node>>,
}

/// A format that is known.
#[derive(Debug)]
struct Format {
    name: String,
    /// How texts are checked; numbers are by their range.
    check: Option<format::Check>,
}

impl Node {
    pub(super) fn new(schema: &Schema) -> Self {
        let limits = &schema.limits;
        let all = |schemas: &[Schema]| schemas.iter().map(Self::new).collect();
        Self {
            pattern: limits.pattern.as_deref().filter(|pattern| !pattern.is_empty()).map(pattern::compile),
            format: Format::of(schema),
            properties: schema.properties.iter().map(|(name, schema)| (name.clone(), Self::new(schema))).collect(),
            entries: match &schema.additional_properties {
                Some(Additional::Schema(schema)) => Some(Box::new(Self::new(schema))),
                _ => None,
            },
            items: schema.items.as_ref().map(|schema| Box::new(Self::new(schema))),
            all_of: all(&limits.all_of),
            any_of: all(&limits.any_of),
            one_of: all(&limits.one_of),
            not: limits.not.as_ref().map(|schema| Box::new(Self::new(schema))),
            schema: Arc::new(schema.clone()),
        }
    }

    /// Checks a value; what is wrong does not count if nothing has changed.
    pub(super) fn check_update(&self, value: &Value, before: Option<Before<'_>>, path: &Path<'_>) -> Outcome {
        let mut outcome = self.check(value, before, path);
        if !outcome.is_valid() && before.is_some_and(|before| before.is_unchanged()) {
            outcome.forgive();
        }
        outcome
    }

    fn check(&self, value: &Value, before: Option<Before<'_>>, path: &Path<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        if self.says_type() {
            self.check_type(value, path, &mut outcome);
        }
        if value.is_null() {
            self.check_allowed(value, path, &mut outcome);
            return outcome;
        }
        self.check_branches(value, path, &mut outcome);
        match value {
            Value::String(text) => self.check_text(text, path, &mut outcome),
            Value::Number(number) => self.check_number(Number::of(number), path, &mut outcome),
            Value::Array(items) => self.check_items(items, before, path, &mut outcome),
            _ => {}
        }
        self.check_allowed(value, path, &mut outcome);
        if let Value::Object(fields) = value {
            self.check_fields(fields, before, path, &mut outcome);
        }
        outcome.looked_at += self.share_of(value);
        outcome
    }

    /// How many checks apply to a value: one of it as a whole, of its branches and of what is allowed, and those of its type.
    fn share_of(&self, value: &Value) -> usize {
        let of_type = match value {
            Value::String(_) => 1 + usize::from(self.format.as_ref().is_some_and(|format| format.check.is_some())),
            Value::Number(_) | Value::Array(_) => 2,
            Value::Object(_) => 1,
            _ => 0,
        };
        4 + usize::from(self.says_type()) + of_type
    }

    fn says_type(&self) -> bool {
        self.schema.type_.is_some() || self.schema.int_or_string || self.format.is_some()
    }

    fn check_type(&self, value: &Value, path: &Path<'_>, outcome: &mut Outcome) {
        let (found, detail) = described(value);
        let type_ = self.type_text();
        if value.is_null() {
            if !type_.is_empty() && !self.schema.nullable {
                outcome.type_invalid(path, type_, "null");
            } else {
                outcome.looked_at += 1;
            }
            return;
        }
        let fits = self.fits(value, found);
        let is_text_or_list = value.is_string() || value.is_array();
        match &self.format {
            Some(format) if !is_text_or_list && !fits && format.name != detail => {
                outcome.type_invalid(path, &format.name, detail);
            }
            // A text that has a format is looked at later, and so, curiously, is a list never.
            Some(_) if is_text_or_list && !self.is_numeric() => outcome.looked_at += 1,
            _ if fits => outcome.looked_at += 1,
            _ => outcome.type_invalid(path, type_, found),
        }
    }

    fn type_text(&self) -> &'static str {
        if self.schema.int_or_string { "integer,string" } else { self.schema.type_.map_or("", Type::as_str) }
    }

    fn is_numeric(&self) -> bool {
        self.schema.int_or_string || matches!(self.schema.type_, Some(Type::Integer | Type::Number))
    }

    /// Whether a value is of the type. Whole numbers are integers however they are written, and integers are numbers.
    fn fits(&self, value: &Value, found: &str) -> bool {
        let is_whole = || value.as_f64().is_some_and(number::is_whole);
        if self.schema.int_or_string {
            return value.is_string() || found == "integer" || (found == "number" && is_whole());
        }
        match self.schema.type_ {
            Some(Type::Integer) => found == "integer" || (found == "number" && is_whole()),
            Some(Type::Number) => value.is_number(),
            Some(type_) => type_.as_str() == found,
            None => false,
        }
    }

    fn check_text(&self, text: &str, path: &Path<'_>, outcome: &mut Outcome) {
        let limits = &self.schema.limits;
        let length = || text.chars().count() as u64;
        if let Some(most) = limits.max_length.filter(|most| length() > *most) {
            outcome.too_long(path, most);
        } else if let Some(least) = limits.min_length.filter(|least| length() < *least) {
            outcome.invalid(path, text, &format!("should be at least {least} chars long"));
        } else {
            self.check_pattern(text, path, outcome);
        }
        if let Some(Format { name, check: Some(check) }) = &self.format
            && !check(text)
        {
            outcome.type_invalid(path, name, text);
        }
    }

    fn check_pattern(&self, text: &str, path: &Path<'_>, outcome: &mut Outcome) {
        let pattern = self.schema.limits.pattern.as_deref().unwrap_or_default();
        match &self.pattern {
            Some(Ok(expression)) if !expression.is_match(text) => {
                outcome.invalid(path, text, &format!("should match '{pattern}'"));
            }
            Some(Err(error)) => {
                outcome.invalid(path, text, &format!("should match '{pattern}, but pattern is invalid: {error}'"));
            }
            _ => {}
        }
    }

    fn check_number(&self, number: Number, path: &Path<'_>, outcome: &mut Outcome) {
        let range = number::Range::of(&self.schema, self.format.as_ref().map(|format| format.name.as_str()));
        number::check(number, &self.schema.limits, range, path, outcome);
    }

    fn check_items(&self, items: &[Value], before: Option<Before<'_>>, path: &Path<'_>, outcome: &mut Outcome) {
        let limits = &self.schema.limits;
        if let Some(node) = &self.items {
            for (index, item) in items.iter().enumerate() {
                let before = before.and_then(|before| before.item(index));
                outcome.merge(node.check_update(item, before, &path.index(index)));
            }
        }
        if let Some(least) = limits.min_items.filter(|least| (items.len() as u64) < *least) {
            outcome.invalid(path, items.len(), &format!("should have at least {least} items"));
        }
        if let Some(most) = limits.max_items.filter(|most| items.len() as u64 > *most) {
            outcome.too_many(path, items.len(), most, "items");
        }
        let is_twice = |(index, item): (usize, &Value)| items[..index].contains(item);
        if limits.unique_items && items.iter().enumerate().any(is_twice) {
            outcome.invalid(path, "", "shouldn't contain duplicates");
        }
    }

    fn check_allowed(&self, value: &Value, path: &Path<'_>, outcome: &mut Outcome) {
        let Some(allowed) = self.schema.limits.allowed.as_deref().filter(|allowed| !allowed.is_empty()) else { return };
        if !allowed.iter().any(|allowed| is_same(value, allowed)) {
            outcome.not_allowed(path, value, allowed);
        }
    }

    fn check_fields(
        &self,
        fields: &Map<String, Value>,
        before: Option<Before<'_>>,
        path: &Path<'_>,
        outcome: &mut Outcome,
    ) {
        let limits = &self.schema.limits;
        if let Some(least) = limits.min_properties.filter(|least| (fields.len() as u64) < *least) {
            outcome.invalid(path, fields.len(), &format!("should have at least {least} properties"));
        }
        if let Some(most) = limits.max_properties.filter(|most| fields.len() as u64 > *most) {
            outcome.too_many(path, fields.len(), most, "properties");
        }
        let mut check = |node: &Self, name: &str, value: &Value| {
            // The versions of an object before and after are told apart elsewhere.
            let is_type = matches!(path, Path::Root) && matches!(name, "apiVersion" | "kind");
            let before = before.filter(|_| !is_type).and_then(|before| before.field(name));
            outcome.merge(node.check_update(value, before, &path.field(name)));
        };
        if let Some(node) = &self.entries {
            for (name, value) in fields.iter().filter(|(name, _)| !self.properties.contains_key(*name)) {
                check(node, name, value);
            }
        }
        for (name, node) in &self.properties {
            if let Some(value) = fields.get(name) {
                check(node, name, value);
            }
        }
        for name in limits.required.iter().filter(|name| !fields.contains_key(*name)) {
            outcome.required(&path.field(name));
        }
    }

    /// Checks the schemas of which any, one, all or none have to hold. What was before does not count in there.
    fn check_branches(&self, value: &Value, path: &Path<'_>, outcome: &mut Outcome) {
        let quoted = || json!(path.to_string()).to_string();
        self.check_any_of(value, path, outcome);
        self.check_one_of(value, path, outcome);
        let mut holding = 0;
        for node in &self.all_of {
            let branch = node.check(value, None, path);
            holding += usize::from(branch.is_valid());
            outcome.merge(branch);
        }
        if holding != self.all_of.len() {
            let none = if holding == 0 { ". None validated" } else { "" };
            outcome.complaint(format!("{} must validate all the schemas (allOf){none}", quoted()));
        }
        if self.not.as_ref().is_some_and(|node| node.check(value, None, path).is_valid()) {
            outcome.complaint(format!("{} must not validate the schema (not)", quoted()));
        }
    }

    fn check_any_of(&self, value: &Value, path: &Path<'_>, outcome: &mut Outcome) {
        let mut best: Option<Outcome> = None;
        for node in &self.any_of {
            let branch = node.check(value, None, path);
            if branch.is_valid() {
                outcome.merge(branch);
                return;
            }
            best = Some(better(best, branch));
        }
        if let Some(best) = best {
            outcome.complaint(format!("{} must validate at least one schema (anyOf)", json!(path.to_string())));
            outcome.merge(best);
        }
    }

    fn check_one_of(&self, value: &Value, path: &Path<'_>, outcome: &mut Outcome) {
        if self.one_of.is_empty() {
            return;
        }
        let mut holding = Vec::new();
        let mut best: Option<Outcome> = None;
        for node in &self.one_of {
            let branch = node.check(value, None, path);
            if branch.is_valid() {
                holding.push(branch);
            } else {
                best = Some(better(best, branch));
            }
        }
        if holding.len() == 1 {
            for branch in holding {
                outcome.merge(branch);
            }
            return;
        }
        let found = match holding.len() {
            0 => "Found none valid".to_owned(),
            several => format!("Found {several} valid alternatives"),
        };
        let quoted = json!(path.to_string());
        outcome.complaint(format!("{quoted} must validate one and only one schema (oneOf). {found}"));
        if let Some(best) = best.filter(|_| holding.is_empty()) {
            outcome.merge(best);
        }
    }
}

/// Of two that refuse, the one that looked at more; the first of equals.
fn better(best: Option<Outcome>, other: Outcome) -> Outcome {
    match best {
        Some(best) if best.looked_at >= other.looked_at => best,
        _ => other,
    }
}

/// The type and the format that a value has by itself.
fn described(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Whether a value is one that is allowed. Numbers are compared in the way of the one that is allowed; nothing is null.
#[expect(clippy::cast_possible_truncation, reason = "that is how fractions are compared with whole numbers")]
fn is_same(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) => false,
        (Value::Number(value), Value::Number(allowed)) => match allowed.as_i64() {
            Some(allowed) => value.as_i64().or_else(|| Some(value.as_f64()? as i64)) == Some(allowed),
            None => value.as_f64() == allowed.as_f64(),
        },
        _ => value == allowed,
    }
}

impl Format {
    fn of(schema: &Schema) -> Option<Self> {
        let name = schema.limits.format.as_deref()?;
        let check = match schema.type_.filter(|_| !schema.int_or_string) {
            None | Some(Type::String) => Some(format::check_of(name)?),
            Some(Type::Integer) if matches!(name, "int32" | "int64") => None,
            Some(Type::Number) if matches!(name, "float" | "double") => None,
            Some(_) => return None,
        };
        Some(Self { name: name.to_owned(), check })
    }
}
