//! References to configurations: which type, which object, which state of it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{grammar::SpecHash, names::NO_DEFAULT_CONFIG, schema::MAX_NAME};

/// A type of configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ConfigGroupResource {
    /// The configuration's API group; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = MAX_NAME))]
    pub group: String,
    /// The configuration's resource, in lower case and plural, such as addondeploymentconfigs.
    #[schemars(length(min = 1, max = MAX_NAME))]
    pub resource: String,
}

impl fmt::Display for ConfigGroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// The object of a configuration, whatever its type.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ConfigReferent {
    /// The configuration's namespace; empty if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_NAME))]
    pub namespace: Option<String>,
    /// The configuration's name.
    #[schemars(length(min = 1, max = MAX_NAME))]
    pub name: String,
}

/// A configuration: its type and its object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct AddOnConfig {
    /// The configuration's type.
    #[serde(flatten)]
    pub group_resource: ConfigGroupResource,
    /// The configuration's object.
    #[serde(flatten)]
    pub referent: ConfigReferent,
}

impl AddOnConfig {
    /// Whether this stands for no configuration: the type is supported, and there is no default for it.
    #[must_use]
    pub fn is_placeholder(&self) -> bool {
        self.referent.name == NO_DEFAULT_CONFIG
    }
}

/// One state of a configuration's object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigSpecHash {
    /// The configuration's object.
    #[serde(flatten)]
    pub referent: ConfigReferent,
    /// The hash of the content that is meant; empty if there is no such object.
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub spec_hash: SpecHash,
}

/// A default configuration, as it was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultConfigReference {
    /// The configuration's type.
    #[serde(flatten)]
    pub group_resource: ConfigGroupResource,
    /// The state of it that clusters get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_config: Option<ConfigSpecHash>,
}
