//! What may be written in a schema, beside that it has to be structural.

use serde_json::{Value, json};

use super::structural::{flag, is_set, list, properties, text};
use crate::{
    field::{ErrorKind, FieldError, Path},
    schema::{
        Schema,
        rules::field_path::{self, Brackets},
    },
};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// What is wrong with a schema and all that is in it.
pub(super) fn check(schema: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Errors(Vec::new());
    errors.check(schema, path, Inside { is_root: true, ..Inside::default() });
    errors.0
}

/// What a schema is inside of.
#[derive(Clone, Copy, Default)]
struct Inside<'a> {
    is_root: bool,
    is_metadata: bool,
    /// Where defaults can not be, because of this.
    no_defaults: Option<&'a str>,
}

struct Errors(Vec<FieldError>);

impl Errors {
    fn required(&mut self, path: &Path<'_>, detail: &str) {
        self.0.push(FieldError::bare(ErrorKind::Required, path, detail));
    }

    fn forbidden(&mut self, path: &Path<'_>, detail: &str) {
        self.0.push(FieldError::bare(ErrorKind::Forbidden, path, detail));
    }

    fn invalid(&mut self, path: &Path<'_>, value: impl Into<Value>, detail: &str) {
        self.0.push(FieldError::new(ErrorKind::Invalid, path, value, detail));
    }

    fn unsupported(&mut self, path: &Path<'_>, value: &str, supported: &[&str]) {
        self.0.push(super::not_supported(path, value, supported));
    }

    fn check(&mut self, schema: &Value, path: &Path<'_>, inside: Inside<'_>) {
        self.standard(schema, path, inside);
        if flag(schema, "uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbidden(&path.field("uniqueItems"), detail);
        }
        self.inner(schema, path, Inside { is_root: false, ..inside }, inside.is_root);
        if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let path = path.field("x-kubernetes-preserve-unknown-fields");
            self.invalid(&path, false, "must be true or undefined");
        }
        self.map_type(schema, path);
        self.list_type(schema, path);
        self.rules(schema, path);
    }

    /// What OpenAPI has and CustomResourceDefinitions have not.
    fn standard(&mut self, schema: &Value, path: &Path<'_>, inside: Inside<'_>) {
        let type_ = text(schema, "type");
        if !type_.is_empty() && !TYPES.contains(&type_) {
            self.unsupported(&path.field("type"), type_, &TYPES);
        }
        if let Some(reason) = inside.no_defaults.filter(|_| schema.get("default").is_some_and(|it| !it.is_null())) {
            self.forbidden(&path.field("default"), &format!("must not be set {reason}"));
        }
        for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
            if is_set(schema, name) {
                self.forbidden(&path.field(name), &format!("{name} is not supported"));
            }
        }
        if type_ == "null" {
            self.forbidden(&path.field("type"), "type cannot be set to null, use nullable as an alternative");
        }
        if schema.get("items").is_some_and(Value::is_array) {
            self.forbidden(&path.field("items"), "items must be a schema object and not an array");
        }
        if inside.is_metadata && flag(schema, "x-kubernetes-embedded-resource") {
            let path = path.field("x-kubernetes-embedded-resource");
            self.forbidden(&path, "must not be used inside of resource meta");
        }
    }

    fn inner(&mut self, schema: &Value, path: &Path<'_>, inside: Inside<'_>, is_root: bool) {
        if let Some(entries) = schema.get("additionalProperties").filter(|entries| !entries.is_null()) {
            let path = path.field("additionalProperties");
            if *entries != Value::Bool(true) && properties(schema).next().is_some() {
                self.forbidden(&path, "additionalProperties and properties are mutual exclusive");
            }
            let reason = "inside additionalProperties applying to object metadata";
            let no_defaults = if inside.is_metadata { Some(reason) } else { inside.no_defaults };
            if entries.is_object() {
                self.check(entries, &path, Inside { no_defaults, ..inside });
            }
        }
        let of_properties = path.field("properties");
        for (name, property) in properties(schema) {
            let is_meta = matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
            let is_of_resource = is_meta && (is_root || flag(schema, "x-kubernetes-embedded-resource"));
            let reason = format!("in top-level {name}");
            let no_defaults = if is_of_resource && is_root { Some(reason.as_str()) } else { inside.no_defaults };
            let is_metadata = inside.is_metadata || is_of_resource;
            self.check(property, &of_properties.key(name), Inside { is_metadata, no_defaults, ..inside });
        }
        if let Some(not) = schema.get("not").filter(|not| not.is_object()) {
            self.check(not, &path.field("not"), inside);
        }
        for name in ["allOf", "oneOf", "anyOf"] {
            for (index, nested) in list(schema, name).iter().enumerate() {
                self.check(nested, &path.field(name).index(index), inside);
            }
        }
        if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
            self.check(items, &path.field("items"), inside);
        }
    }

    /// Checks that an extension stands beside the type that it is about.
    fn type_of(&mut self, schema: &Value, path: &Path<'_>, wanted: &str, extension: &str) -> bool {
        let type_ = text(schema, "type");
        if type_ == wanted {
            return true;
        }
        let detail = format!("must be {wanted} if {extension} is specified");
        let path = path.field("type");
        if type_.is_empty() {
            self.required(&path, &detail);
        } else {
            self.invalid(&path, type_, &detail);
        }
        false
    }

    fn map_type(&mut self, schema: &Value, path: &Path<'_>) {
        let Some(map_type) = schema.get("x-kubernetes-map-type").and_then(Value::as_str) else { return };
        self.type_of(schema, path, "object", "x-kubernetes-map-type");
        if !["atomic", "granular"].contains(&map_type) {
            self.unsupported(&path.field("x-kubernetes-map-type"), map_type, &["atomic", "granular"]);
        }
    }

    fn list_type(&mut self, schema: &Value, path: &Path<'_>) {
        let list_type = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
        let keys = list(schema, "x-kubernetes-list-map-keys");
        let items = schema.get("items").filter(|items| items.is_object());
        if let Some(list_type) = list_type {
            if self.type_of(schema, path, "array", "x-kubernetes-list-type") && list_type == "set" {
                self.set_items(items, &path.field("items"));
            }
            if !["atomic", "set", "map"].contains(&list_type) {
                self.unsupported(&path.field("x-kubernetes-list-type"), list_type, &["atomic", "set", "map"]);
            }
        }
        if !keys.is_empty() && list_type != Some("map") {
            let path = path.field("x-kubernetes-list-type");
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            match list_type {
                None => self.required(&path, detail),
                Some(list_type) => self.invalid(&path, list_type, detail),
            }
        }
        if list_type == Some("map") {
            self.map_items(keys, items, path);
        }
        if let (Some(list_type @ ("set" | "map")), Some(items)) = (list_type, items) {
            self.correlated_items(list_type, keys, items, &path.field("items"));
        }
    }

    /// Items of a set are compared as a whole.
    fn set_items(&mut self, items: Option<&Value>, path: &Path<'_>) {
        let Some(items) = items else { return };
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let list_type = items.get("x-kubernetes-list-type").and_then(Value::as_str);
        match text(items, "type") {
            "array" if list_type.is_some_and(|list_type| list_type != "atomic") => {
                self.invalid(&path.field("x-kubernetes-list-type"), json!(list_type), detail);
            }
            "object" if text(items, "x-kubernetes-map-type") != "atomic" => {
                self.invalid(&path.field("x-kubernetes-map-type"), json!(list_type), detail);
            }
            _ => {}
        }
    }

    /// Items of a map have their keys among their fields.
    fn map_items(&mut self, keys: &[Value], items: Option<&Value>, path: &Path<'_>) {
        let of_keys = path.field("x-kubernetes-list-map-keys");
        if keys.is_empty() {
            self.required(&of_keys, "must not be empty if x-kubernetes-list-type is map");
        }
        let of_items = path.field("items");
        let Some(items) = items else {
            self.required(&of_items, "must have a schema if x-kubernetes-list-type is map");
            return;
        };
        let type_ = text(items, "type");
        if type_ != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            self.invalid(&of_items.field("type"), type_, detail);
            return;
        }
        let of_properties = of_items.field("properties");
        for (index, key) in keys.iter().enumerate() {
            let name = key.as_str().unwrap_or_default();
            match properties(items).find(|(property, _)| *property == name) {
                Some((_, property)) if ["array", "object"].contains(&text(property, "type")) => {
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    self.invalid(&of_properties.key(name).field("type"), type_, detail);
                }
                Some(_) => {}
                None => self.invalid(&of_keys, keys, "entries must all be names of item properties"),
            }
            if keys[..index].contains(key) {
                self.invalid(&of_keys, keys, "must not contain duplicate entries");
            }
        }
    }

    fn correlated_items(&mut self, list_type: &str, keys: &[Value], items: &Value, path: &Path<'_>) {
        if flag(items, "nullable") {
            let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            self.forbidden(&path.field("nullable"), &detail);
        }
        let of_properties = path.field("properties");
        for key in keys.iter().filter(|_| list_type == "map") {
            let name = key.as_str().unwrap_or_default();
            let Some((_, property)) = properties(items).find(|(property, _)| *property == name) else { continue };
            let path = of_properties.key(name);
            let has_default = property.get("default").is_some_and(|default| !default.is_null());
            if !has_default && !list(items, "required").contains(key) {
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                self.required(&path.field("default"), detail);
            }
            if flag(property, "nullable") {
                let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.forbidden(&path.field("nullable"), detail);
            }
        }
    }

    fn rules(&mut self, schema: &Value, path: &Path<'_>) {
        let of_rules = path.field("x-kubernetes-validations");
        for (index, rule) in list(schema, "x-kubernetes-validations").iter().enumerate() {
            self.rule(rule, schema, &of_rules.index(index));
        }
    }

    fn rule(&mut self, rule: &Value, schema: &Value, path: &Path<'_>) {
        let has_breaks = |text: &str| text.contains(['\n', '\r']);
        let (source, message) = (text(rule, "rule").trim(), text(rule, "message"));
        let of_message = path.field("message");
        if source.is_empty() {
            self.required(&path.field("rule"), "rule is not specified");
        } else if !message.is_empty() && message.trim().is_empty() {
            self.invalid(&of_message, message, "must be non-empty if specified");
        } else if has_breaks(message.trim()) {
            self.invalid(&of_message, message, "must not contain line breaks");
        } else if has_breaks(source) && message.trim().is_empty() {
            self.required(&of_message, "message must be specified if rule contains line breaks");
        }
        let made = text(rule, "messageExpression");
        if !made.is_empty() && made.trim().is_empty() {
            self.required(&path.field("messageExpression"), "messageExpression must be non-empty if specified");
        }
        if let Some(reason) = rule.get("reason").and_then(Value::as_str).filter(|reason| !REASONS.contains(reason)) {
            self.unsupported(&path.field("reason"), reason, &REASONS);
        }
        let field_path = text(rule, "fieldPath");
        let of_field = path.field("fieldPath");
        if !field_path.is_empty() && field_path.trim().is_empty() {
            self.invalid(&of_field, field_path, "must be non-empty if specified");
        }
        if has_breaks(field_path) {
            self.invalid(&of_field, field_path, "must not contain line breaks");
        }
        let schema = || Schema::read(schema, &|_| None);
        if !field_path.is_empty() && field_path::resolve(field_path, &schema(), Brackets::Allowed).is_err() {
            self.invalid(&of_field, field_path, "must be a valid path");
        }
    }
}
