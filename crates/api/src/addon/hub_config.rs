//! Settings of an add-on that are the same for a whole placement: its version.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{grammar::Version, schema::MAX_VERSIONS};

/// What version of an add-on is wanted.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "addon.open-cluster-management.io",
    version = "v1alpha1",
    kind = "AddOnHubConfig",
    doc = "A configuration that asks for a version of an add-on. A placement that refers to it gets that version, by the placement's rollout strategy.",
    status = "AddOnHubConfigStatus",
    shortname = "ahc",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.desiredVersion"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct AddOnHubConfigSpec {
    /// The version of the add-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_version: Option<Version>,
}

/// What versions there are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnHubConfigStatus {
    /// The versions that may be asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_VERSIONS))]
    pub supported_versions: Vec<Version>,
}
