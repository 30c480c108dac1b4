//! What the fields of messages are called in JSON, and what they are.

use std::{
    collections::{BTreeMap, HashMap},
    sync::OnceLock,
};

use serde::Deserialize;

/// All messages that are understood.
#[derive(Deserialize)]
pub(super) struct Tables {
    kinds: HashMap<String, String>,
    messages: HashMap<String, Message>,
}

/// The fields of a message, by their numbers.
#[derive(Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Message {
    pub(super) fields: BTreeMap<u32, Field>,
}

/// A field of a message.
#[derive(Deserialize)]
pub(super) struct Field {
    /// Its name in JSON; fields that are inlined have none.
    #[serde(default)]
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) type_: Type,
    #[serde(default)]
    pub(super) shape: Shape,
    #[serde(default)]
    pub(super) omit: Omit,
}

/// What a value is.
#[derive(Deserialize)]
#[serde(from = "String")]
pub(super) enum Type {
    Bool,
    Int32,
    Int64,
    Double,
    String,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// JSON within protobuf.
    Raw,
    /// A message that is an object in JSON.
    Message(String),
    /// A message that is in JSON what its last field is that is there.
    Choice(String),
}

impl From<String> for Type {
    fn from(name: String) -> Self {
        match name.as_str() {
            "bool" => Self::Bool,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "float64" => Self::Double,
            "string" => Self::String,
            "bytes" => Self::Bytes,
            "time" => Self::Time,
            "microTime" => Self::MicroTime,
            "quantity" => Self::Quantity,
            "intOrString" => Self::IntOrString,
            "raw" => Self::Raw,
            _ => match name.strip_prefix("choice:") {
                Some(message) => Self::Choice(message.to_owned()),
                None => Self::Message(name),
            },
        }
    }
}

/// What there is of a type.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Shape {
    /// One value.
    #[default]
    Value,
    /// One value, or none, which is not the same as an empty one.
    Pointer,
    List,
    /// A map, with texts as keys.
    Map,
    /// A message, the fields of which are fields of the one around it in JSON.
    Inline,
}

/// When JSON lacks a field.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Omit {
    #[default]
    Never,
    /// Where it is empty, which objects never are.
    Empty,
    /// Where it is what it would be if it had not been set.
    Zero,
}

impl Tables {
    /// The tables that are part of the program; a scenario makes them from the sources of Kubernetes.
    pub(super) fn get() -> &'static Self {
        static TABLES: OnceLock<Tables> = OnceLock::new();
        TABLES.get_or_init(|| {
            serde_json::from_str(include_str!("../../kinds/protobuf.json"))
                .expect("the file has the form of the tables")
        })
    }

    /// The message that objects of a kind are.
    pub(super) fn kind(&self, api_version: &str, kind: &str) -> Option<&Message> {
        // Every group has the options of a deletion among its kinds, and means the same.
        let api_version = if kind == "DeleteOptions" { "v1" } else { api_version };
        self.kinds.get(&format!("{api_version}/{kind}")).map(|name| self.message(name))
    }

    /// A message that another one refers to.
    pub(super) fn message(&self, name: &str) -> &Message {
        static NOTHING: Message = Message { fields: BTreeMap::new() };
        self.messages.get(name).unwrap_or(&NOTHING)
    }
}
