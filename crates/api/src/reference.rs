//! Names of objects that other objects point at.

use std::{borrow::Borrow, fmt, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::MAX_NAME;

/// The name of a managed cluster, which is also the name of its namespace on the hub.
///
/// Cheap to clone: a fleet's plans carry the same names around many times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct ClusterName(Arc<str>);

impl ClusterName {
    /// The name's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ClusterName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl From<String> for ClusterName {
    fn from(name: String) -> Self {
        Self(name.into())
    }
}

impl From<ClusterName> for String {
    fn from(name: ClusterName) -> Self {
        name.as_str().to_owned()
    }
}

impl Borrow<str> for ClusterName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for ClusterName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ClusterName".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        crate::schema::string()
    }
}

/// A placement, by namespace and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct PlacementRef {
    /// The namespace of the placement.
    #[schemars(length(min = 1, max = MAX_NAME))]
    pub namespace: String,
    /// The name of the placement.
    #[schemars(length(min = 1, max = MAX_NAME))]
    pub name: String,
}

impl fmt::Display for PlacementRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
