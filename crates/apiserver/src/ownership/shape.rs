//! How far the parts of a value can be owned one by one: what the schema says, and what is presumed where it says nothing.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{set::Element, values::Literal};
use crate::schema::{Additional, ListKind, Schema, Type};

/// What is known of a value.
#[derive(Clone, Copy)]
pub(crate) enum Shape<'a> {
    /// What a schema says.
    Known {
        /// The schema.
        schema: &'a Schema,
        /// Whether it is an object of Kubernetes, with apiVersion, kind and metadata.
        is_object: bool,
        /// Whether something around it keeps fields that nothing is said about.
        is_open: bool,
    },
    /// Nothing: maps are owned field by field, and lists as a whole.
    Deduced,
    /// Nothing, and it is owned as a whole.
    Opaque,
}

/// How a value is handled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As fields with names.
    Map,
    /// As something that has no parts.
    Scalar,
    /// As items.
    List,
}

/// What a value without parts may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    /// A number.
    Number,
    /// A text.
    Text,
    /// True or false.
    Boolean,
    /// Any of them.
    Any,
}

static METADATA: LazyLock<Schema> = LazyLock::new(|| Schema::read(&metadata_json(), &|_| None));

/// The metadata of all objects, as OpenAPI has it.
fn metadata_json() -> Value {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let time = json!({"type": "string", "format": "date-time"});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let owner = json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
        "apiVersion": text, "kind": text, "name": text, "uid": text,
        "blockOwnerDeletion": {"type": "boolean"}, "controller": {"type": "boolean"},
    }});
    let entry = json!({"type": "object", "properties": {
        "apiVersion": text, "fieldsType": text, "fieldsV1": {"type": "object"}, "manager": text, "operation": text,
        "subresource": text, "time": time,
    }});
    json!({"type": "object", "properties": {
        "annotations": texts, "labels": texts,
        "creationTimestamp": time, "deletionTimestamp": time, "deletionGracePeriodSeconds": number, "generation": number,
        "name": text, "generateName": text, "namespace": text, "resourceVersion": text, "selfLink": text, "uid": text,
        "finalizers": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "managedFields": {"type": "array", "x-kubernetes-list-type": "atomic", "items": entry},
        "ownerReferences": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"], "items": owner,
        },
    }})
}

static TEXT: LazyLock<Schema> = LazyLock::new(|| Schema { type_: Some(Type::String), ..Schema::default() });

impl<'a> Shape<'a> {
    /// The shape of an object of a kind.
    pub(crate) fn root(schema: &'a Schema) -> Self {
        Self::Known { schema, is_object: true, is_open: schema.preserve_unknown_fields }
    }

    fn below(schema: &'a Schema, is_open: bool) -> Self {
        let is_open = is_open || schema.preserve_unknown_fields;
        Self::Known { schema, is_object: schema.embedded_resource, is_open }
    }

    /// How to handle a value: as what it is, if it may be that, or else as what it may be.
    pub(crate) fn form(self, value: Option<&Value>) -> Form {
        let is = match value {
            Some(Value::Object(_)) => Some(Form::Map),
            Some(Value::Array(_)) => Some(Form::List),
            Some(Value::Null) | None => None,
            Some(_) => Some(Form::Scalar),
        };
        match self {
            Self::Known { is_object: true, .. } => Form::Map,
            Self::Known { schema, .. } => match schema.type_ {
                Some(Type::Object) => Form::Map,
                Some(Type::Array) => Form::List,
                Some(_) => Form::Scalar,
                None => is.unwrap_or(Form::Map),
            },
            Self::Deduced | Self::Opaque => is.unwrap_or(Form::Map),
        }
    }

    /// What a value without parts may be.
    pub(crate) fn scalar(self) -> Scalar {
        let Self::Known { schema, .. } = self else { return Scalar::Any };
        if schema.int_or_string || !schema.limits.one_of.is_empty() {
            return Scalar::Any;
        }
        match schema.type_ {
            Some(Type::Integer | Type::Number) => Scalar::Number,
            Some(Type::Boolean) => Scalar::Boolean,
            Some(Type::String) if matches!(schema.limits.format.as_deref(), None | Some("byte")) => Scalar::Text,
            _ => Scalar::Any,
        }
    }

    /// The shape of a field that has a name in the schema.
    pub(crate) fn named(self, name: &str) -> Option<Self> {
        let Self::Known { schema, is_object, is_open } = self else { return None };
        match name {
            "metadata" if is_object => Some(Self::below(&METADATA, false)),
            "apiVersion" | "kind" if is_object => Some(Self::below(&TEXT, false)),
            _ => schema.properties.get(name).map(|schema| Self::below(schema, is_open)),
        }
    }

    /// The shape of a field; nothing where the schema does not allow the field.
    pub(crate) fn field(self, name: &str) -> Option<Self> {
        if let Some(named) = self.named(name) {
            return Some(named);
        }
        match self {
            Self::Deduced => Some(Self::Deduced),
            Self::Opaque => Some(Self::Opaque),
            Self::Known { schema, is_object, is_open } => match &schema.additional_properties {
                Some(Additional::Schema(schema)) => Some(Self::below(schema, is_open)),
                Some(Additional::Any) => Some(Self::Deduced),
                None => (is_open || (schema.properties.is_empty() && !is_object)).then_some(Self::Deduced),
            },
        }
    }

    /// Whether a map is owned as a whole.
    pub(crate) fn is_atomic_map(self) -> bool {
        match self {
            Self::Known { schema, .. } => schema.atomic_map,
            Self::Deduced => false,
            Self::Opaque => true,
        }
    }

    /// Whether nothing is said of the fields of a map.
    pub(crate) fn is_untold_map(self) -> bool {
        match self {
            Self::Known { schema, is_object, .. } => {
                !is_object && schema.properties.is_empty() && matches!(self.field(""), Some(Self::Deduced))
            }
            Self::Deduced => true,
            Self::Opaque => false,
        }
    }

    /// How the items of a list are told apart.
    pub(crate) fn list(self) -> &'a ListKind {
        match self {
            Self::Known { schema, .. } => &schema.list,
            Self::Deduced | Self::Opaque => &ListKind::Atomic,
        }
    }

    /// The shape of the items of a list.
    pub(crate) fn item(self) -> Self {
        match self {
            Self::Known { schema, is_open, .. } => {
                schema.items.as_ref().map_or(Self::Opaque, |schema| Self::below(schema, is_open))
            }
            Self::Deduced | Self::Opaque => Self::Opaque,
        }
    }

    /// The step that leads to an item of a list whose items are told apart.
    pub(crate) fn step(self, item: &Value) -> Result<Element, String> {
        match self.list() {
            ListKind::Map(keys) => self.keyed_step(keys, item),
            ListKind::Set => match item {
                Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
                value => Ok(Element::Value(Literal(value.clone()))),
            },
            ListKind::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        }
    }

    fn keyed_step(self, keys: &[String], item: &Value) -> Result<Element, String> {
        let fields = match item {
            Value::Object(fields) => fields,
            Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        let item = self.item();
        let mut step: Vec<(String, Literal)> = keys
            .iter()
            .filter_map(|key| Some((key.clone(), Literal(fields.get(key).or_else(|| item.default_of(key))?.clone()))))
            .collect();
        if step.is_empty() {
            let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
            let keys = keys.join(" ");
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{keys}] (and doesn't have \
                 default values for any key fields)"
            ));
        }
        step.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(Element::Key(step))
    }

    fn default_of(self, name: &str) -> Option<&'a Value> {
        let Self::Known { schema, .. } = self else { return None };
        schema.properties.get(name)?.default.as_ref()
    }
}
