//! What a managed cluster says of itself, kept on that cluster.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::may_be_missing;

/// One thing that a cluster says of itself.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1alpha1",
    kind = "ClusterClaim",
    doc = "A fact about the managed cluster that this object is created on, such as its region. The cluster's agent reports it to the hub, where placements can select by it.",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Value", type_ = "string", json_path = ".spec.value"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(remote = "Self")]
pub struct ClusterClaimSpec {
    /// What the cluster claims under this object's name.
    #[serde(default)]
    #[schemars(length(min = 1, max = 1024), extend("default" = null))]
    pub value: String,
}

may_be_missing!(ClusterClaimSpec);
