//! Values that OCM's schemas let through although nobody can read them.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value that may be unreadable: OCM's patterns are loose, and an object that was stored under them must not vanish
/// for one bad field. Our own schema refuses what can not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lenient<T> {
    /// The value.
    Read(T),
    /// The text that could not be read.
    Unreadable(Box<str>),
}

impl<T: FromStr> Lenient<T> {
    /// The value, if it can be read.
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Read(value) => Some(value),
            Self::Unreadable(_) => None,
        }
    }

    /// Why the value can not be read, if it can not.
    #[must_use]
    pub fn complaint(&self) -> Option<T::Err> {
        match self {
            Self::Read(_) => None,
            // Reading the text again gives the complaint again, so it need not be kept.
            Self::Unreadable(text) => text.parse::<T>().err(),
        }
    }
}

impl<T: FromStr> From<&str> for Lenient<T> {
    fn from(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Unreadable(text.into()), Self::Read)
    }
}

impl<T: fmt::Display> fmt::Display for Lenient<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(value) => value.fmt(f),
            Self::Unreadable(text) => f.write_str(text),
        }
    }
}

impl<T: fmt::Display> Serialize for Lenient<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, T: FromStr> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Cow::<str>::deserialize(deserializer)?.as_ref().into())
    }
}

impl<T: JsonSchema> JsonSchema for Lenient<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
