//! The clusters that a placement selected, in slices.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::ClusterName;

/// Decisions are made, not asked for: there is nothing to specify.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta1",
    kind = "PlacementDecision",
    doc = "A slice of at most 100 of the clusters that a placement selected. Labels name the placement and the decision group; all slices of a placement together are its decision.",
    namespaced,
    no_spec,
    status = "PlacementDecisionStatus",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "Placement",
        type_ = "string",
        json_path = r".metadata.labels.cluster\.open-cluster-management\.io/placement"
    ),
    printcolumn(
        name = "Group",
        type_ = "string",
        json_path = r".metadata.labels.cluster\.open-cluster-management\.io/decision-group-index"
    ),
    printcolumn(
        name = "Group name",
        type_ = "string",
        json_path = r".metadata.labels.cluster\.open-cluster-management\.io/decision-group-name"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct PlacementDecisionSpec {}

/// One slice of a decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlacementDecisionStatus {
    /// The selected clusters.
    pub decisions: Vec<ClusterDecision>,
}

/// One selected cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDecision {
    /// The name of the cluster.
    pub cluster_name: ClusterName,
    /// Why it was selected.
    pub reason: String,
    /// The score it was selected with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<i64>,
}
