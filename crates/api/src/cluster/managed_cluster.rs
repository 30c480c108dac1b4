//! A cluster of the fleet, as the hub knows it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{grammar::Quantity, reference::ClusterName, schema, spec::may_be_missing};

/// What the hub wants of a cluster.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1",
    kind = "ManagedCluster",
    doc = "A Kubernetes cluster that asked to be managed by this hub. Its agent creates this object; an administrator accepts it.",
    status = "ManagedClusterStatus",
    shortname = "mcl",
    shortname = "mcls",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Accepted", type_ = "boolean", json_path = ".spec.hubAcceptsClient"),
    printcolumn(
        name = "Joined",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="ManagedClusterJoined")].status"#
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="ManagedClusterConditionAvailable")].status"#
    ),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version.kubernetes"),
    printcolumn(
        name = "Set",
        type_ = "string",
        json_path = r".metadata.labels.cluster\.open-cluster-management\.io/clusterset"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "URLs",
        type_ = "string",
        json_path = ".spec.managedClusterClientConfigs[*].url",
        priority = "1"
    )
)]
#[serde(remote = "Self")]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSpec {
    /// Whether this hub accepts the cluster. While false, the cluster's agent may read this object and nothing else.
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub hub_accepts_client: bool,
    /// How often the cluster's agent renews its lease, in seconds. A cluster that was silent for five times as
    /// long is unreachable.
    #[serde(default = "default_lease_duration_seconds")]
    pub lease_duration_seconds: i32,
    /// Where the cluster's own API server can be reached, for people and programs that need it. The hub itself never calls it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_cluster_client_configs: Vec<ClientConfig>,
    /// Marks that keep placements from selecting the cluster, unless they tolerate them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

may_be_missing!(ManagedClusterSpec);

fn default_lease_duration_seconds() -> i32 {
    60
}

impl Default for ManagedClusterSpec {
    fn default() -> Self {
        Self {
            hub_accepts_client: false,
            lease_duration_seconds: default_lease_duration_seconds(),
            managed_cluster_client_configs: Vec::new(),
            taints: Vec::new(),
        }
    }
}

/// An address of a cluster's API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientConfig {
    /// The address, such as `https://api.example.com:6443`.
    pub url: String,
    /// The certificates that the address is checked against, in PEM.
    // Base64, and not decoded: an agent writes it, the hub does not use it, and Kubernetes accepts
    // spellings that a strict decoder refuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::bytes")]
    pub ca_bundle: Option<String>,
}

/// A mark on a cluster that placements have to tolerate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// What the taint is called.
    #[schemars(length(max = 316), pattern(schema::QUALIFIED_NAME))]
    pub key: String,
    /// A value that tolerations may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub value: Option<String>,
    /// What the taint does to placements that do not tolerate it.
    pub effect: TaintEffect,
    /// When the taint was added; the hub fills it in. `tolerationSeconds` count from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub time_added: Option<Time>,
}

/// What a taint does to placements that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// The cluster is not selected, and no longer selected where it was.
    NoSelect,
    /// The cluster is selected only if nothing better is there.
    PreferNoSelect,
    /// The cluster is not newly selected, and stays where it was.
    NoSelectIfNew,
}

/// What is known of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterStatus {
    /// Whether the cluster is accepted, has joined, and is available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// What the cluster's nodes have in total, by resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub capacity: BTreeMap<String, Quantity>,
    /// What of it can be used by workloads, by resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub allocatable: BTreeMap<String, Quantity>,
    /// The versions of what the cluster runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<ClusterVersions>,
    /// What the cluster says of itself, such as its platform or region. Placements can select by it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_claims: Vec<ClaimedValue>,
    /// The namespaces that the cluster's sets ask for on the cluster, and whether they are there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["clusterSet", "name"]))]
    pub managed_namespaces: Vec<ManagedNamespaceStatus>,
}

/// The versions of what a cluster runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterVersions {
    /// The cluster's Kubernetes version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
}

/// One thing that a cluster says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimedValue {
    /// The name of the claim.
    #[serde(default)]
    #[schemars(length(min = 1, max = 253), extend("default" = null))]
    pub name: String,
    /// What the cluster claims.
    #[serde(default)]
    #[schemars(length(min = 1, max = 1024), extend("default" = null))]
    pub value: String,
}

/// A namespace that a cluster set asks for, on one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedNamespaceStatus {
    /// The name of the namespace.
    #[schemars(length(max = 63), pattern(schema::NAMESPACE_NAME))]
    pub name: String,
    /// The set that asks for it.
    pub cluster_set: String,
    /// Whether the namespace is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

impl ManagedCluster {
    /// The cluster's name.
    #[must_use]
    pub fn cluster_name(&self) -> ClusterName {
        self.metadata.name.as_deref().unwrap_or_default().into()
    }
}
