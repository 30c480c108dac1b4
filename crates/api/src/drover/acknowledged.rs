//! What the hub has taken up of what people ask for by annotations.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{reference::ClusterName, schema};

/// The requests that the hub has taken up. A command that makes a request returns when it stands here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Acknowledged {
    /// What is paused: the annotation `drover.dev/pause` as it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<String>,
    /// Which clusters are left out: the annotation `drover.dev/skip` as it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
    /// The token of the last retry that was done: the annotation `drover.dev/retry` as it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
    /// When that retry was done. What failed before does not count as failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub retried: Option<Time>,
    /// Which placements are held at which sets: the annotation `drover.dev/pin` as it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// The requests that were made for single clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cluster"]))]
    pub clusters: Vec<AcknowledgedCluster>,
}

/// The requests for one cluster that the hub has taken up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcknowledgedCluster {
    /// The cluster.
    pub cluster: ClusterName,
    /// Whether it is paused: the annotation `drover.dev/pause` as it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<String>,
    /// Whether it is left out: the annotation `drover.dev/skip` as it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
    /// The token of the last retry that was done: the annotation `drover.dev/retry` as it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
    /// When that retry was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub retried: Option<Time>,
}
