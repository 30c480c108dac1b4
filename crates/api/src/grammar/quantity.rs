//! Amounts of a resource, as Kubernetes writes them: `500m`, `2Gi`, `4`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount of a resource. On the wire it is an integer or a text, and which of them the author wrote is kept: the
/// hash of a configuration tells them apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Quantity {
    /// A whole number.
    Integer(i64),
    /// A number with a suffix, or one that is not whole.
    Text(Box<str>),
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}
