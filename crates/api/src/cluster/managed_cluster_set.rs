//! Sets of clusters, and their binding to the namespaces whose users may place work on them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{schema, spec::may_be_missing};

/// Which clusters belong to a set.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta2",
    kind = "ManagedClusterSet",
    doc = "A set of clusters. A namespace that is bound to the set may place work on them.",
    status = "ManagedClusterSetStatus",
    shortname = "mclset",
    shortname = "mclsets",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "Empty",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="ClusterSetEmpty")].status"#
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="ClusterSetEmpty")].message"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(remote = "Self")]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetSpec {
    /// How clusters come to belong to the set.
    #[serde(default)]
    pub cluster_selector: ClusterSetSelector,
    /// Namespaces that every cluster of the set is to have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub managed_namespaces: Vec<ManagedNamespace>,
}

may_be_missing!(ManagedClusterSetSpec);

/// How clusters come to belong to a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSetSelector {
    /// By which means clusters are chosen.
    #[serde(default)]
    #[schemars(extend("default" = "ExclusiveClusterSetLabel"))]
    pub selector_type: ClusterSetSelectorType,
    /// The labels of the set's clusters, where the type is LabelSelector. An empty selector chooses all clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub label_selector: Option<LabelSelector>,
}

/// By which means a set's clusters are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClusterSetSelectorType {
    /// By the label `cluster.open-cluster-management.io/clusterset` on the cluster, so that each is in one such set.
    #[default]
    ExclusiveClusterSetLabel,
    /// By any labels.
    LabelSelector,
}

/// A namespace that every cluster of a set is to have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManagedNamespace {
    /// The name of the namespace.
    #[schemars(length(max = 63), pattern(schema::NAMESPACE_NAME))]
    pub name: String,
}

/// What is known of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManagedClusterSetStatus {
    /// Whether the set has clusters, and how many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::atomic_conditions")]
    pub conditions: Vec<Condition>,
}

/// Which set a namespace is bound to.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta2",
    kind = "ManagedClusterSetBinding",
    doc = "Lets the placements of this namespace select clusters of a set. The object has the name of the set.",
    namespaced,
    status = "ManagedClusterSetBindingStatus",
    shortname = "mclsetbinding",
    shortname = "mclsetbindings",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    validation = Rule::new("self.metadata.name == self.spec.clusterSet")
        .message("name the binding like its set: metadata.name must equal spec.clusterSet")
        .field_path(".spec.clusterSet"),
    printcolumn(name = "Set", type_ = "string", json_path = ".spec.clusterSet"),
    printcolumn(name = "Bound", type_ = "string", json_path = r#".status.conditions[?(@.type=="Bound")].status"#),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(remote = "Self")]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetBindingSpec {
    /// The name of the set.
    #[schemars(length(min = 1))]
    pub cluster_set: String,
}

may_be_missing!(ManagedClusterSetBindingSpec);

/// What is known of a binding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManagedClusterSetBindingStatus {
    /// Whether the set exists and is bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::atomic_conditions")]
    pub conditions: Vec<Condition>,
}
