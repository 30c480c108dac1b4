//! What a work has left on the managed cluster, kept there so that it can be cleaned up.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{schema, spec::may_be_missing};

/// Which work of which hub it is about.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "work.open-cluster-management.io",
    version = "v1",
    kind = "AppliedManifestWork",
    doc = "What one ManifestWork of the hub has left on this cluster. The objects listed here are removed when the work is gone.",
    status = "AppliedManifestWorkStatus",
    shortname = "amw",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Work", type_ = "string", json_path = ".spec.manifestWorkName"),
    printcolumn(name = "Evicted since", type_ = "date", json_path = ".status.evictionStartTime"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(remote = "Self")]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestWorkSpec {
    /// A hash of the hub's address, by which hubs are told apart.
    pub hub_hash: String,
    /// Which agent applied the work.
    #[serde(default, rename = "agentID", skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The name of the work on the hub.
    pub manifest_work_name: String,
}

may_be_missing!(AppliedManifestWorkSpec);

/// What a work has left on the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestWorkStatus {
    /// The objects that were applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied_resources: Vec<AppliedResource>,
    /// Since when the work has been missing on the hub. Once the grace is over, the objects are removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub eviction_start_time: Option<Time>,
}

/// One object that was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct AppliedResource {
    /// The object's API group; empty for the core group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The version of its API.
    pub version: String,
    /// Its resource, in lower case and plural.
    pub resource: String,
    /// Its name.
    pub name: String,
    /// Its namespace, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its UID: another object of that name is not ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}
