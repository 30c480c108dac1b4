//! One work for each cluster of a placement.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ManifestWorkSpec;
use crate::{cluster::RolloutStrategy, schema, spec::may_be_missing};

/// What work is made for which clusters.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "work.open-cluster-management.io",
    version = "v1alpha1",
    kind = "ManifestWorkReplicaSet",
    doc = "Makes one ManifestWork for each cluster that its placements select, and brings changes to them by a rollout strategy.",
    namespaced,
    status = "ManifestWorkReplicaSetStatus",
    shortname = "mwrs",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "Placement",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="PlacementVerified")].reason"#
    ),
    printcolumn(
        name = "Rolled out",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="PlacementRolledOut")].reason"#
    ),
    printcolumn(
        name = "Applied",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="ManifestworkApplied")].status"#
    ),
    printcolumn(name = "Available", type_ = "integer", json_path = ".status.summary.available"),
    printcolumn(name = "Total", type_ = "integer", json_path = ".status.summary.desiredTotal"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(remote = "Self")]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkReplicaSetSpec {
    /// The spec of the works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_work_template: Option<ManifestWorkSpec>,
    /// The placements, in this namespace, whose clusters get the work.
    #[schemars(length(min = 1, max = schema::MAX_PLACEMENTS))]
    pub placement_refs: Vec<PlacementRollout>,
    /// Whether this object goes at once when it is deleted (Background) or when its works are gone (Foreground).
    #[serde(default)]
    #[schemars(extend("default" = "Background"))]
    pub cascade_deletion_policy: CascadeDeletionPolicy,
}

may_be_missing!(ManifestWorkReplicaSetSpec);

/// When a deleted set is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CascadeDeletionPolicy {
    /// At once; its works follow.
    #[default]
    Background,
    /// When its works are gone.
    Foreground,
}

/// A placement, and how changes reach its clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementRollout {
    /// The name of the placement.
    #[schemars(length(min = 1))]
    pub name: String,
    /// How changes reach its clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = { "type": "All", "all": { "progressDeadline": "None" } }))]
    pub rollout_strategy: Option<RolloutStrategy>,
}

/// What became of the works.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkReplicaSetStatus {
    /// Whether the placements are there, everything is rolled out, and applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The works of all placements, counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ReplicaSetSummary>,
    /// The works of each placement, counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement_summary: Vec<PlacementSummary>,
}

/// The works of one placement, counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSummary {
    /// The name of the placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many decision groups there are, and how many of the placement's clusters have the template applied, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_decision_groups: Option<String>,
    /// The placement's works, counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ReplicaSetSummary>,
}

/// Works, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaSetSummary {
    /// How many works there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
    /// How many works there will be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_total: Option<i64>,
    /// How many works are as the template has them now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<i64>,
    /// How many works are applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<i64>,
    /// How many works are available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<i64>,
    /// How many works are on their way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progressing: Option<i64>,
    /// How many works are degraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<i64>,
}
