//! Settings for an add-on's agents that make sense for most add-ons.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{grammar::Quantity, schema};

/// How an add-on's agents are deployed.
///
/// The hash of a configuration covers what the API server fills in, so a default added here would look like a
/// change to every add-on that uses one: this kind never gains defaults. The hash is taken of the object as the server
/// has it, never of this type, which leaves empty lists out.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "addon.open-cluster-management.io",
    version = "v1alpha1",
    kind = "AddOnDeploymentConfig",
    doc = "How an add-on's agents are deployed: variables for their template, where they run, from which registries, through which proxy, and with which resources.",
    namespaced,
    shortname = "adc",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Install namespace", type_ = "string", json_path = ".spec.agentInstallNamespace"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(description = "How an add-on's agents are deployed.")]
pub struct AddOnDeploymentConfigSpec {
    /// Variables that templates may use as `{{NAME}}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub customized_variables: Vec<CustomizedVariable>,
    /// On which nodes agents run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_placement: Option<NodePlacement>,
    /// From which registries images are taken instead of those that they name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registries: Vec<ImageMirror>,
    /// Through which proxy agents talk to the outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_config: Option<ProxyConfig>,
    /// The namespace on the managed cluster that agents are installed in, instead of that of the template. Set it to the
    /// empty text to keep the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 63),
        pattern(r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"),
        extend("default" = "open-cluster-management-agent-addon")
    )]
    pub agent_install_namespace: Option<String>,
    /// What resources containers ask for and may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["containerID"]))]
    pub resource_requirements: Vec<ContainerResourceRequirements>,
}

/// A variable that templates may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CustomizedVariable {
    /// The variable's name.
    #[schemars(length(max = 255), pattern(r"^[a-zA-Z_][_a-zA-Z0-9]*$"))]
    pub name: String,
    /// The variable's value.
    #[serde(default)]
    #[schemars(length(max = 1024), extend("default" = null))]
    pub value: String,
}

/// On which nodes agents run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePlacement {
    /// Labels that a node has to have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that agents tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<NodeToleration>,
}

/// Which taints of nodes are tolerated, as in a pod's tolerations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeToleration {
    /// The taint's key; empty with the operator Exists for any taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether the value has to be equal (Equal) or may be anything (Exists).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// The taint's value, for Equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The taint's effect: NoSchedule, PreferNoSchedule or NoExecute; empty for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// For how long a taint with the effect NoExecute is tolerated. Without it, for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// A registry, and where its images are taken from instead.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageMirror {
    /// The beginning of the images' names that is replaced; empty for any registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What it is replaced with.
    pub mirror: String,
}

/// Through which proxy agents talk to the outside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxyConfig {
    /// The proxy for HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    /// The proxy for HTTPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    /// Certificates that the proxy is checked against, in PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::bytes")]
    pub ca_bundle: Option<ByteString>,
    /// Hosts that are reached without the proxy, separated by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
}

/// What resources some containers ask for and may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerResourceRequirements {
    /// Which containers, as `<resource>:<name>:<container>`, such as `deployments:agent:main`. A part that is `*` stands for any.
    #[serde(rename = "containerID")]
    #[schemars(pattern(r"^(deployments|daemonsets|statefulsets|replicasets|jobs|cronjobs|pods|\*):.+:.+$"))]
    pub container_id: String,
    /// The resources.
    pub resources: ContainerResources,
}

/// What resources a container asks for and may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContainerResources {
    /// What the container may use at most, by resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub limits: BTreeMap<String, Quantity>,
    /// What the container is sure to get, by resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub requests: BTreeMap<String, Quantity>,
    /// Claims of the pod that the container uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub claims: Vec<ResourceClaim>,
}

/// A claim of a pod that a container uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceClaim {
    /// The claim's name in the pod.
    pub name: String,
    /// Which request of the claim; all where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}
