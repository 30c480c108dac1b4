//! What objects of a kind are made of: one tree for built-in kinds and for those that CustomResourceDefinitions bring.
//!
//! It is read from OpenAPI as Kubernetes writes it, with its extensions. Everything else in here walks objects beside it.

pub mod fill;
pub(crate) mod format;
pub(crate) mod pattern;
pub mod prune;
mod ratchet;
pub mod rules;
pub mod validate;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

/// What a value may be.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an extension of OpenAPI, and any may go with any other")]
pub struct Schema {
    /// The type; none where any is allowed.
    pub type_: Option<Type>,
    /// Whether null is allowed.
    pub nullable: bool,
    /// Whether it is a number or a text.
    pub int_or_string: bool,
    /// Whether fields that nothing is said about are kept.
    pub preserve_unknown_fields: bool,
    /// Whether it is an object with apiVersion, kind and metadata of its own.
    pub embedded_resource: bool,
    /// The fields that have a name.
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// What all other fields are, if there may be any.
    pub additional_properties: Option<Additional>,
    /// What the items of a list are.
    pub items: Option<Arc<Schema>>,
    /// How the items of a list are told apart.
    pub list: ListKind,
    /// Whether a map is owned and replaced as a whole.
    pub atomic_map: bool,
    /// What a strategic patch merges the items of a list by; the empty text where the items themselves are compared.
    pub patch_merge_key: Option<String>,
    /// Whether a strategic patch drops the fields that it does not name.
    pub patch_retain_keys: bool,
    /// What it is where nothing is said.
    pub default: Option<Value>,
    /// What has to hold of it.
    pub limits: Limits,
    /// The rules in CEL, as they are written.
    pub rules: Vec<Value>,
    /// What it means, for people.
    pub description: String,
    /// The name that others refer to it by, such as `io.k8s.api.apps.v1.DeploymentSpec`; empty if it has none.
    pub definition: String,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// True or false.
    Boolean,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A text.
    String,
    /// A list.
    Array,
    /// An object, with fields or as a map.
    Object,
}

impl Type {
    /// The type's name in OpenAPI.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    fn read(text: &str) -> Option<Self> {
        [Self::Boolean, Self::Integer, Self::Number, Self::String, Self::Array, Self::Object]
            .into_iter()
            .find(|type_| type_.as_str() == text)
    }
}

/// What fields without a name in the schema are.
#[derive(Clone, Debug, PartialEq)]
pub enum Additional {
    /// Anything.
    Any,
    /// All of them this.
    Schema(Arc<Schema>),
}

/// How the items of a list are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListKind {
    /// Not at all: the list is one thing.
    #[default]
    Atomic,
    /// By what they are.
    Set,
    /// By some of their fields.
    Map(Vec<String>),
}

/// What has to hold of a value beside its type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// The fields that have to be there.
    pub required: Vec<String>,
    /// The only values that it may have.
    pub allowed: Option<Vec<Value>>,
    /// The format of a text or number.
    pub format: Option<String>,
    /// A regular expression that a text has to match.
    pub pattern: Option<String>,
    /// The smallest number, and whether it is excluded itself.
    pub minimum: Option<(f64, bool)>,
    /// The largest number, and whether it is excluded itself.
    pub maximum: Option<(f64, bool)>,
    /// What a number has to be a multiple of.
    pub multiple_of: Option<f64>,
    /// The fewest characters.
    pub min_length: Option<u64>,
    /// The most characters.
    pub max_length: Option<u64>,
    /// The fewest items.
    pub min_items: Option<u64>,
    /// The most items.
    pub max_items: Option<u64>,
    /// Whether no two items may be the same.
    pub unique_items: bool,
    /// The fewest fields.
    pub min_properties: Option<u64>,
    /// The most fields.
    pub max_properties: Option<u64>,
    /// All of these have to hold.
    pub all_of: Vec<Schema>,
    /// One of these at least has to hold.
    pub any_of: Vec<Schema>,
    /// Exactly one of these has to hold.
    pub one_of: Vec<Schema>,
    /// This must not hold.
    pub not: Option<Box<Schema>>,
}

/// Where the schemas are that others refer to, by the last part of the reference.
pub type Definitions<'a> = &'a dyn Fn(&str) -> Option<Arc<Schema>>;

impl Schema {
    /// Reads a schema. What it refers to is looked up among the definitions; what can not be found there may be anything.
    #[must_use]
    pub fn read(value: &Value, definitions: Definitions<'_>) -> Self {
        if let Some(found) = referred(value, definitions) {
            let mut schema = found.1.as_ref().clone();
            schema.definition = found.0;
            // What stands beside a reference is about this very use of it.
            if let Some(default) = value.get("default") {
                schema.default = Some(default.clone());
            }
            return schema;
        }
        let flag = |name: &str| value.get(name).and_then(Value::as_bool).unwrap_or(false);
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let shared = |value: &Value| Arc::new(Self::read(value, definitions));
        let properties = value.get("properties").and_then(Value::as_object);
        Self {
            type_: text("type").and_then(Type::read),
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string") || text("format") == Some("int-or-string"),
            preserve_unknown_fields: flag("x-kubernetes-preserve-unknown-fields"),
            embedded_resource: flag("x-kubernetes-embedded-resource"),
            properties: properties.into_iter().flatten().map(|(name, it)| (name.clone(), shared(it))).collect(),
            additional_properties: match value.get("additionalProperties") {
                None | Some(Value::Bool(false)) => None,
                Some(Value::Object(schema)) if !schema.is_empty() => {
                    value.get("additionalProperties").map(|schema| Additional::Schema(shared(schema)))
                }
                Some(_) => Some(Additional::Any),
            },
            items: value.get("items").map(shared),
            list: list_kind(value),
            atomic_map: text("x-kubernetes-map-type") == Some("atomic"),
            patch_merge_key: merge_key(value),
            patch_retain_keys: text("x-kubernetes-patch-strategy")
                .is_some_and(|strategy| strategy.split(',').any(|part| part == "retainKeys")),
            default: value.get("default").filter(|default| !default.is_null()).cloned(),
            limits: Limits::read(value, definitions),
            rules: value.get("x-kubernetes-validations").and_then(Value::as_array).cloned().unwrap_or_default(),
            description: text("description").unwrap_or_default().to_owned(),
            definition: String::new(),
        }
    }

    /// What a field of an object is; nothing where nothing is said about it.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Arc<Self>> {
        self.properties.get(name).or(match &self.additional_properties {
            Some(Additional::Schema(schema)) => Some(schema),
            _ => None,
        })
    }

    /// Whether an object may have fields that nothing is said about.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.preserve_unknown_fields || matches!(self.additional_properties, Some(Additional::Any))
    }
}

/// What a schema refers to, and by which name: by itself, or wrapped as `allOf` with one entry, which is how OpenAPI 3 says something beside a
/// reference.
fn referred(value: &Value, definitions: Definitions<'_>) -> Option<(String, Arc<Schema>)> {
    let wrapped = || value.get("allOf").and_then(Value::as_array).filter(|all| all.len() == 1)?.first();
    let reference = value.get("$ref").or_else(|| wrapped()?.get("$ref"))?.as_str()?;
    let name = reference.rsplit('/').next().unwrap_or(reference);
    definitions(name).map(|schema| (name.to_owned(), schema))
}

fn list_kind(value: &Value) -> ListKind {
    match value.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListKind::Set,
        Some("map") => {
            let keys = value.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            ListKind::Map(keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        _ => ListKind::Atomic,
    }
}

fn merge_key(value: &Value) -> Option<String> {
    let strategy = value.get("x-kubernetes-patch-strategy")?.as_str()?;
    let merges = strategy.split(',').any(|part| part == "merge");
    let key = value.get("x-kubernetes-patch-merge-key").and_then(Value::as_str);
    merges.then(|| key.unwrap_or_default().to_owned())
}

impl Limits {
    fn read(value: &Value, definitions: Definitions<'_>) -> Self {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let count = |name: &str| value.get(name).and_then(Value::as_u64);
        let number = |name: &str| value.get(name).and_then(Value::as_f64);
        let flag = |name: &str| value.get(name).and_then(Value::as_bool).unwrap_or(false);
        let list = |name: &str| value.get(name).and_then(Value::as_array);
        let schemas = |name: &str| list(name).into_iter().flatten().map(|it| Schema::read(it, definitions)).collect();
        Self {
            required: list("required").into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
            allowed: list("enum").cloned(),
            format: text("format"),
            pattern: text("pattern"),
            minimum: number("minimum").map(|minimum| (minimum, flag("exclusiveMinimum"))),
            maximum: number("maximum").map(|maximum| (maximum, flag("exclusiveMaximum"))),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            unique_items: flag("uniqueItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            all_of: schemas("allOf"),
            any_of: schemas("anyOf"),
            one_of: schemas("oneOf"),
            not: value.get("not").map(|not| Box::new(Schema::read(not, definitions))),
        }
    }
}
