//! Scores of a cluster that somebody outside computes, for placements to sort by.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// Scores are reported, not asked for: there is nothing to specify.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1alpha1",
    kind = "AddOnPlacementScore",
    doc = "Scores of one cluster, in that cluster's namespace. Placements can sort and filter by them.",
    namespaced,
    no_spec,
    status = "AddOnPlacementScoreStatus",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Valid until", type_ = "string", json_path = ".status.validUntil"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct AddOnPlacementScoreSpec {}

/// The scores of one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnPlacementScoreStatus {
    /// Whether the scores could be computed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The scores by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub scores: Vec<Score>,
    /// When the scores stop to count; without it they count for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub valid_until: Option<Time>,
}

/// One score of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// The name of the score.
    pub name: String,
    /// How well the cluster does, from -100 to 100.
    #[schemars(range(min = -100, max = 100))]
    pub value: i32,
}
