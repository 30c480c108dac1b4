//! Values of expressions. Those of objects stay where they are: nothing is copied to be looked at.

use std::{borrow::Cow, collections::BTreeMap, fmt, rc::Rc, sync::Arc};

use kube_cel::cel::{self, objects::OptionalValue};
use serde_json::{Number, Value as Json};

use super::{
    Budget, Result, no_such_overload,
    view::{Array, Object},
};

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Text(Cow<'a, str>),
    List(Rc<Vec<Value<'a>>>),
    Map(Rc<BTreeMap<Key, Value<'a>>>),
    /// A list of an object.
    Array(Array<'a>),
    /// An object, or a map of one.
    Object(Object<'a>),
    /// Something that may not be there.
    Optional(Option<Rc<Value<'a>>>),
    /// What only those know of who evaluate an expression.
    Foreign(Rc<dyn Foreign<'a> + 'a>),
    /// The name of a type.
    Type(&'static str),
    /// What the libraries know of: times, quantities and the like.
    Other(cel::Value),
}

/// A value that the language does not know of.
pub(crate) trait Foreign<'a>: fmt::Debug {
    /// The name of its type.
    fn type_name(&self) -> &'static str;
    /// The value of one of its fields.
    fn field(&self, name: &str) -> Option<Result<Value<'a>>>;
    /// What one of its functions makes.
    fn call(&self, name: &str, args: &[Value<'a>], budget: &Budget) -> Result<Value<'a>>;
}

/// A key of a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Bool(bool),
    Int(i64),
    UInt(u64),
    Text(String),
}

impl Key {
    /// The key, for people.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Int(number) => number.to_string(),
            Self::UInt(number) => number.to_string(),
            Self::Bool(truth) => truth.to_string(),
        }
    }
}

impl<'a> From<&'a Json> for Value<'a> {
    fn from(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(truth) => Self::Bool(*truth),
            Json::Number(number) => Self::from(number),
            Json::String(text) => Self::Text(Cow::Borrowed(text)),
            Json::Array(items) => Self::Array(Array::new(items, None)),
            Json::Object(fields) => Self::Object(Object::new(fields, None)),
        }
    }
}

impl From<&Number> for Value<'_> {
    fn from(number: &Number) -> Self {
        number.as_i64().map_or_else(|| Self::Double(number.as_f64().unwrap_or(f64::NAN)), Self::Int)
    }
}

impl<'a> Value<'a> {
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// Something that may be there.
    pub(crate) fn optional(value: Option<Self>) -> Self {
        Self::Optional(value.map(Rc::new))
    }

    pub(super) fn some(value: Self) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    /// The items, if it is a list.
    pub(super) fn items(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(items) => Some(items.as_ref().clone()),
            Self::Array(items) => Some(items.iter().collect()),
            _ => None,
        }
    }

    /// The entries, if it is a map.
    pub(super) fn entries(&self) -> Option<Vec<(Key, Self)>> {
        match self {
            Self::Map(map) => Some(map.iter().map(|(key, value)| (key.clone(), value.clone())).collect()),
            Self::Object(object) => Some(object.entries()),
            _ => None,
        }
    }

    /// How many there are in it.
    pub(super) fn size(&self) -> Option<usize> {
        match self {
            Self::Text(text) => Some(text.chars().count()),
            Self::List(items) => Some(items.len()),
            Self::Array(items) => Some(items.len()),
            Self::Map(map) => Some(map.len()),
            Self::Object(object) => Some(object.len()),
            Self::Other(cel::Value::Bytes(bytes)) => Some(bytes.len()),
            _ => None,
        }
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self, Self::List(_) | Self::Array(_))
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self, Self::Map(_) | Self::Object(_))
    }

    /// What a map has for a key.
    pub(super) fn entry(&self, key: &Key) -> Option<Self> {
        match (self, key) {
            (Self::Map(map), key) => map.get(key).cloned(),
            (Self::Object(object), Key::Text(key)) => object.entry(key),
            _ => None,
        }
    }

    /// The field of a map.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        match self {
            Self::Object(object) => object.entry(name),
            Self::Map(map) => map.get(&Key::Text(name.to_owned())).cloned(),
            _ => None,
        }
    }

    /// It as a key of maps. Whole numbers are the same key, whatever their type.
    pub(super) fn as_key(&self) -> Option<Key> {
        match self {
            Self::Bool(truth) => Some(Key::Bool(*truth)),
            Self::Int(number) => Some(Key::Int(*number)),
            Self::UInt(number) => Some(i64::try_from(*number).map_or(Key::UInt(*number), Key::Int)),
            Self::Double(number) => whole(*number).map(Key::Int),
            Self::Text(text) => Some(Key::Text(text.to_string())),
            _ => None,
        }
    }

    /// The name of its type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::UInt(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::List(_) | Self::Array(_) => "list",
            Self::Map(_) | Self::Object(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Foreign(foreign) => foreign.type_name(),
            Self::Type(_) => "type",
            Self::Other(cel::Value::Bytes(_)) => "bytes",
            Self::Other(cel::Value::Timestamp(_)) => "google.protobuf.Timestamp",
            Self::Other(cel::Value::Duration(_)) => "google.protobuf.Duration",
            Self::Other(cel::Value::Opaque(opaque)) => match opaque.runtime_type_name() {
                "net.IP" => "net.IP",
                "net.CIDR" => "net.CIDR",
                _ => "object",
            },
            Self::Other(_) => "object",
        }
    }

    /// It as a value of the libraries.
    pub(super) fn to_library(&self) -> Result<cel::Value> {
        Ok(match self {
            Self::Null => cel::Value::Null,
            Self::Bool(truth) => cel::Value::Bool(*truth),
            Self::Int(number) => cel::Value::Int(*number),
            Self::UInt(number) => cel::Value::UInt(*number),
            Self::Double(number) => cel::Value::Float(*number),
            Self::Text(text) => cel::Value::String(Arc::new(text.to_string())),
            Self::Other(other) => other.clone(),
            Self::List(_) | Self::Array(_) => {
                let items = self.items().unwrap_or_default();
                cel::Value::List(Arc::new(items.iter().map(Self::to_library).collect::<Result<_>>()?))
            }
            Self::Map(_) | Self::Object(_) => {
                let entries = self.entries().unwrap_or_default().into_iter();
                let entries = entries.map(|(key, value)| Ok((cel::objects::Key::from(key), value.to_library()?)));
                cel::Value::Map(cel::objects::Map { map: Arc::new(entries.collect::<Result<_>>()?) })
            }
            Self::Optional(_) | Self::Foreign(_) | Self::Type(_) => return no_such_overload(),
        })
    }

    /// A value of the libraries.
    pub(super) fn from_library(value: cel::Value) -> Self {
        match value {
            cel::Value::Null => Self::Null,
            cel::Value::Bool(truth) => Self::Bool(truth),
            cel::Value::Int(number) => Self::Int(number),
            cel::Value::UInt(number) => Self::UInt(number),
            cel::Value::Float(number) => Self::Double(number),
            cel::Value::String(text) => Self::Text(Cow::Owned(text.as_ref().clone())),
            cel::Value::List(items) => Self::List(Rc::new(items.iter().cloned().map(Self::from_library).collect())),
            cel::Value::Map(map) => {
                let entries = map.map.iter().map(|(key, value)| (key.into(), Self::from_library(value.clone())));
                Self::Map(Rc::new(entries.collect()))
            }
            other => match <&OptionalValue>::try_from(&other) {
                Ok(optional) => {
                    Self::Optional(optional.value().map(|value| Rc::new(Self::from_library(value.clone()))))
                }
                Err(_) => Self::Other(other),
            },
        }
    }
}

impl From<Key> for Value<'_> {
    fn from(key: Key) -> Self {
        match key {
            Key::Bool(truth) => Self::Bool(truth),
            Key::Int(number) => Self::Int(number),
            Key::UInt(number) => Self::UInt(number),
            Key::Text(text) => Self::text(text),
        }
    }
}

impl From<Key> for cel::objects::Key {
    fn from(key: Key) -> Self {
        match key {
            Key::Bool(truth) => Self::Bool(truth),
            Key::Int(number) => Self::Int(number),
            Key::UInt(number) => Self::Uint(number),
            Key::Text(text) => Self::from(text),
        }
    }
}

impl From<&cel::objects::Key> for Key {
    fn from(key: &cel::objects::Key) -> Self {
        match key {
            cel::objects::Key::Bool(truth) => Self::Bool(*truth),
            cel::objects::Key::Int(number) => Self::Int(*number),
            cel::objects::Key::Uint(number) => Self::UInt(*number),
            cel::objects::Key::String(text) => Self::Text(text.as_ref().clone()),
        }
    }
}

/// The number, if it is a whole one.
#[expect(clippy::cast_possible_truncation, reason = "it is compared with what it was")]
fn whole(number: f64) -> Option<i64> {
    let whole = number as i64;
    (as_double(whole).total_cmp(&(number + 0.0)).is_eq()).then_some(whole)
}

#[expect(clippy::cast_precision_loss, reason = "that is how numbers of two types are compared")]
pub(super) fn as_double(number: i64) -> f64 {
    number as f64
}
