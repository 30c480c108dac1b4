//! Schemas have to be structural: what objects are made of is said in one place, and all else only narrows it.

use serde_json::{Map, Value};

use crate::{
    field::{ErrorKind, FieldError, Path},
    schema::pattern,
};

/// Where in an object a schema applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What keeps a schema from being structural, in the order of the texts.
pub(super) fn check(schema: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Errors(Vec::new());
    errors.spine(schema, Level::Root, path);
    errors.complete_branches(schema, Some(schema), path, path);
    errors.0.sort_by_cached_key(ToString::to_string);
    errors.0
}

/// The first field that no CustomResourceDefinition may use, if a schema has one.
pub(super) fn unsupported(schema: &Value) -> Option<&'static str> {
    const NEVER: [(&str, &str); 7] = [
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"),
        ("additionalItems", "additionalItems"),
        ("definitions", "definitions"),
    ];
    let here = NEVER.into_iter().find(|(field, _)| is_set(schema, field)).map(|(_, name)| name);
    here.or_else(|| inner(schema).into_iter().find_map(unsupported))
}

/// The schemas directly inside of one.
pub(super) fn inner(schema: &Value) -> Vec<&Value> {
    let lists = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|name| list(schema, name));
    let singles = ["items", "not", "additionalProperties"].into_iter().filter_map(|name| schema.get(name));
    lists
        .chain(singles.filter(|schema| schema.is_object()))
        .chain(properties(schema).map(|(_, schema)| schema))
        .collect()
}

pub(super) fn text<'a>(schema: &'a Value, name: &str) -> &'a str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or(false)
}

pub(super) fn list<'a>(schema: &'a Value, name: &str) -> &'a [Value] {
    schema.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Whether a field says anything.
pub(super) fn is_set(schema: &Value, name: &str) -> bool {
    match schema.get(name) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty() || name == "additionalItems",
        Some(_) => true,
    }
}

struct Errors(Vec<FieldError>);

impl Errors {
    fn required(&mut self, path: &Path<'_>, detail: &str) {
        self.0.push(FieldError::bare(ErrorKind::Required, path, detail));
    }

    fn forbidden(&mut self, path: &Path<'_>, detail: &str) {
        self.0.push(FieldError::bare(ErrorKind::Forbidden, path, detail));
    }

    fn invalid(&mut self, path: &Path<'_>, value: impl Into<Value>, detail: impl Into<String>) {
        self.0.push(FieldError::new(ErrorKind::Invalid, path, value, detail));
    }

    /// Checks what says what objects are made of.
    fn spine(&mut self, schema: &Value, level: Level, path: &Path<'_>) {
        match schema.get("items").filter(|items| items.is_object()) {
            Some(items) => self.spine(items, Level::Item, &path.field("items")),
            None if text(schema, "type") == "array" => self.required(&path.field("items"), "must be specified"),
            None => {}
        }
        let of_properties = path.field("properties");
        for (name, schema) in properties(schema) {
            self.spine(schema, Level::Field, &of_properties.key(name));
        }
        self.entries(schema, level, path);
        self.extensions(schema, path);
        self.branches(schema, is_int_or_string(schema), path);
        self.type_(schema, level, path);
        if level == Level::Root || flag(schema, "x-kubernetes-embedded-resource") {
            self.resource(schema, level, path);
        }
    }

    fn entries(&mut self, schema: &Value, level: Level, path: &Path<'_>) {
        let Some(entries) = schema.get("additionalProperties").filter(|entries| !entries.is_null()) else { return };
        let path = path.field("additionalProperties");
        if level == Level::Root {
            self.forbidden(&path, "must not be used at the root");
        }
        if entries.is_object() {
            self.spine(entries, Level::Field, &path);
        }
        if flag(schema, "x-kubernetes-embedded-resource") {
            self.forbidden(&path, "must not be used if x-kubernetes-embedded-resource is set");
        }
    }

    fn extensions(&mut self, schema: &Value, path: &Path<'_>) {
        if !flag(schema, "x-kubernetes-int-or-string") {
            return;
        }
        for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if flag(schema, name) {
                self.invalid(&path.field(name), true, "must be false if x-kubernetes-int-or-string is true");
            }
        }
    }

    fn type_(&mut self, schema: &Value, level: Level, path: &Path<'_>) {
        let type_ = text(schema, "type");
        let path = path.field("type");
        if flag(schema, "x-kubernetes-embedded-resource") && type_ != "object" {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            if type_.is_empty() { self.required(&path, detail) } else { self.invalid(&path, type_, detail) }
        } else if type_.is_empty()
            && !flag(schema, "x-kubernetes-int-or-string")
            && !flag(schema, "x-kubernetes-preserve-unknown-fields")
        {
            let detail = match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            };
            self.required(&path, detail);
        }
        if level == Level::Root && !type_.is_empty() && type_ != "object" {
            self.invalid(&path, type_, "must be object at the root");
        }
    }

    /// Checks what is said about the fields that every resource has.
    fn resource(&mut self, schema: &Value, level: Level, path: &Path<'_>) {
        let of_properties = path.field("properties");
        let all: Map<String, Value> = properties(schema).map(|(name, it)| (name.clone(), it.clone())).collect();
        for name in ["kind", "apiVersion"] {
            if let Some(type_) = all.get(name).map(|property| text(property, "type")).filter(|type_| *type_ != "string")
            {
                self.invalid(&of_properties.key(name).field("type"), type_, "must be string");
            }
        }
        if let Some(metadata) = all.get("metadata") {
            let path = of_properties.key("metadata");
            if text(metadata, "type") != "object" {
                self.invalid(&path.field("type"), text(metadata, "type"), "must be object");
            }
            if level == Level::Root && says_more_than_names(metadata) {
                let detail =
                    "must not specify anything other than name and generateName, but metadata is implicitly specified";
                self.forbidden(&path, detail);
            }
        }
        let is_embedded = flag(schema, "x-kubernetes-embedded-resource");
        if is_embedded && !flag(schema, "x-kubernetes-preserve-unknown-fields") && all.is_empty() {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
            self.required(&of_properties, detail);
        }
    }

    /// Checks what only narrows: it may not say what objects are made of.
    fn branches(&mut self, schema: &Value, exception: Exception, path: &Path<'_>) {
        if exception != Exception::AnyOf {
            self.all_nested(schema, "anyOf", path);
        }
        for (index, nested) in list(schema, "allOf").iter().enumerate() {
            let exception =
                if index == 0 && exception == Exception::AllOf { Exception::AnyOf } else { Exception::None };
            self.nested(nested, exception, &path.field("allOf").index(index));
        }
        self.all_nested(schema, "oneOf", path);
        if let Some(nested) = schema.get("not").filter(|nested| nested.is_object()) {
            self.nested(nested, Exception::None, &path.field("not"));
        }
        let pattern = text(schema, "pattern");
        if let Err(error) = pattern::compile(pattern) {
            let detail = format!("must be a valid regular expression, but isn't: {error}");
            self.invalid(&path.field("pattern"), pattern, detail);
        }
    }

    fn all_nested(&mut self, schema: &Value, name: &str, path: &Path<'_>) {
        for (index, nested) in list(schema, name).iter().enumerate() {
            self.nested(nested, Exception::None, &path.field(name).index(index));
        }
    }

    fn nested(&mut self, schema: &Value, exception: Exception, path: &Path<'_>) {
        const NEVER: [(&str, &str); 12] = [
            ("type", "must be empty to be structural"),
            ("additionalProperties", "must be undefined to be structural"),
            ("default", "must be undefined to be structural"),
            ("title", "must be empty to be structural"),
            ("description", "must be empty to be structural"),
            ("nullable", "must be false to be structural"),
            ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
            ("x-kubernetes-embedded-resource", "must be false to be structural"),
            ("x-kubernetes-int-or-string", "must be false to be structural"),
            ("x-kubernetes-list-map-keys", "must be empty to be structural"),
            ("x-kubernetes-list-type", "must be undefined to be structural"),
            ("x-kubernetes-map-type", "must be undefined to be structural"),
        ];
        self.branches(schema, exception, path);
        if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
            self.nested(items, Exception::None, &path.field("items"));
        }
        let of_properties = path.field("properties");
        for (name, schema) in properties(schema) {
            self.nested(schema, Exception::None, &of_properties.key(name));
        }
        for (name, detail) in NEVER {
            let is_there = match name {
                "default" => schema.get(name).is_some_and(|default| !default.is_null()),
                _ => is_set(schema, name),
            };
            if is_there {
                self.forbidden(&path.field(name), detail);
            }
        }
        if is_set(schema, "x-kubernetes-validations") {
            self.forbidden(&path.field("x-kubernetes-validations"), "must be empty to be structural");
        }
        if properties(schema).any(|(name, _)| name == "metadata") {
            self.forbidden(&of_properties.key("metadata"), "must not be specified in a nested context");
        }
    }

    /// Checks that what narrows at the root is about something that objects are made of.
    fn complete_branches(&mut self, narrowing: &Value, spine: Option<&Value>, at: &Path<'_>, by: &Path<'_>) {
        if let Some(nested) = narrowing.get("not").filter(|nested| nested.is_object()) {
            self.complete(nested, spine, at, &by.field("not"));
        }
        for name in ["allOf", "anyOf", "oneOf"] {
            for (index, nested) in list(narrowing, name).iter().enumerate() {
                self.complete(nested, spine, at, &by.field(name).index(index));
            }
        }
    }

    fn complete(&mut self, narrowing: &Value, spine: Option<&Value>, at: &Path<'_>, by: &Path<'_>) {
        let Some(spine) = spine else {
            self.required(at, &format!("because it is defined in {by}"));
            return;
        };
        self.complete_branches(narrowing, Some(spine), at, by);
        if let Some(items) = narrowing.get("items").filter(|items| items.is_object()) {
            self.complete(items, spine.get("items"), &at.field("items"), &by.field("items"));
        }
        let (at, by) = (at.field("properties"), by.field("properties"));
        for (name, nested) in properties(narrowing) {
            let counterpart = spine.get("properties").and_then(|all| all.get(name));
            self.complete(nested, counterpart, &at.key(name), &by.key(name));
        }
    }
}

/// Where the types of a number or text may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exception {
    None,
    AnyOf,
    AllOf,
}

fn is_int_or_string(schema: &Value) -> Exception {
    let types = serde_json::json!([{ "type": "integer" }, { "type": "string" }]);
    let has_types = |schema: &Value| schema.get("anyOf") == Some(&types);
    match list(schema, "allOf").first() {
        _ if has_types(schema) => Exception::AnyOf,
        Some(first) if has_types(first) => Exception::AllOf,
        _ => Exception::None,
    }
}

fn says_more_than_names(metadata: &Value) -> bool {
    let is_name = |name: &str| matches!(name, "name" | "generateName");
    let has_others = properties(metadata).any(|(name, _)| !is_name(name));
    let fields = metadata.as_object().into_iter().flatten();
    has_others
        || fields
            .filter(|(name, _)| !matches!(name.as_str(), "type" | "properties" | "default"))
            .any(|(name, _)| is_set(metadata, name))
}
