//! Values of expressions. Those of objects stay where they are: nothing is copied to be looked at.

use std::{borrow::Cow, collections::BTreeMap, rc::Rc, sync::Arc};

use kube_cel::cel::{self, objects::OptionalValue};
use serde_json::{Map as JsonMap, Number, Value as Json};

use super::{Check, Result, no_such_overload};
use crate::access::Decision;

/// A value.
#[derive(Clone, Debug)]
pub(in crate::policy) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Text(Cow<'a, str>),
    List(Rc<Vec<Value<'a>>>),
    Map(Rc<BTreeMap<Key, Value<'a>>>),
    /// A list of an object.
    Array(&'a [Json]),
    /// An object, or a map of one.
    Object(&'a JsonMap<String, Json>),
    /// Something that may not be there.
    Optional(Option<Rc<Value<'a>>>),
    /// Whoever is asked what somebody may do.
    Check(Rc<Check<'a>>),
    /// The answer.
    Decision(Rc<Decision>),
    /// The name of a type.
    Type(&'static str),
    /// What the libraries know of: times, quantities and the like.
    Other(cel::Value),
}

/// A key of a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::policy) enum Key {
    Bool(bool),
    Int(i64),
    UInt(u64),
    Text(String),
}

impl<'a> From<&'a Json> for Value<'a> {
    fn from(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(truth) => Self::Bool(*truth),
            Json::Number(number) => Self::from(number),
            Json::String(text) => Self::Text(Cow::Borrowed(text)),
            Json::Array(items) => Self::Array(items),
            Json::Object(fields) => Self::Object(fields),
        }
    }
}

impl From<&Number> for Value<'_> {
    fn from(number: &Number) -> Self {
        number.as_i64().map_or_else(|| Self::Double(number.as_f64().unwrap_or(f64::NAN)), Self::Int)
    }
}

impl<'a> Value<'a> {
    pub(in crate::policy) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn some(value: Self) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    /// The items, if it is a list.
    pub(super) fn items(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(items) => Some(items.as_ref().clone()),
            Self::Array(items) => Some(items.iter().map(Self::from).collect()),
            _ => None,
        }
    }

    /// The entries, if it is a map.
    pub(super) fn entries(&self) -> Option<Vec<(Key, Self)>> {
        match self {
            Self::Map(map) => Some(map.iter().map(|(key, value)| (key.clone(), value.clone())).collect()),
            Self::Object(map) => Some(map.iter().map(|(key, value)| (Key::Text(key.clone()), value.into())).collect()),
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
            Self::Object(map) => Some(map.len()),
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
            (Self::Object(map), Key::Text(key)) => map.get(key).map(Self::from),
            _ => None,
        }
    }

    /// The field of a map.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        match self {
            Self::Object(map) => map.get(name).map(Self::from),
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
            Self::Check(_) => "kubernetes.authorization.Authorizer",
            Self::Decision(_) => "kubernetes.authorization.Decision",
            Self::Type(_) => "type",
            Self::Other(cel::Value::Bytes(_)) => "bytes",
            Self::Other(cel::Value::Timestamp(_)) => "google.protobuf.Timestamp",
            Self::Other(cel::Value::Duration(_)) => "google.protobuf.Duration",
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
            Self::Optional(_) | Self::Check(_) | Self::Decision(_) | Self::Type(_) => return no_such_overload(),
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
