//! An add-on on one cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AddOnConfig, AddOnMeta, ConfigCoordinates, ConfigGroupResource, ConfigSpecHash};
use crate::{
    grammar::{SpecHash, Version},
    schema::{self, MAX_CONFIGS, MAX_NAME, rules},
};

/// What a user wants of an add-on on one cluster.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "addon.open-cluster-management.io",
    version = "v1alpha1",
    kind = "ManagedClusterAddOn",
    doc = "An add-on on the cluster in whose namespace this stands. Where it exists, the add-on is installed; what is set here goes before what the ClusterManagementAddOn of the same name says.",
    namespaced,
    status = "ManagedClusterAddOnStatus",
    shortname = "mca",
    shortname = "mcas",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "Progress",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Progressing")].reason"#
    ),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.currentVersion"),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Progressing")].message"#,
        priority = "1"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterAddOnSpec {
    /// The namespace on the managed cluster that the add-on's agent is installed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 63),
        pattern(schema::NAMESPACE_NAME),
        extend("default" = "open-cluster-management-agent-addon")
    )]
    pub install_namespace: Option<String>,
    /// The version of the add-on. Which there are stands in the ClusterManagementAddOn's status.supportedVersions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install_version: Option<Version>,
    /// Another name of installVersion, which goes before it: the hub itself may have set installVersion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_version: Option<Version>,
    /// The configurations that this cluster gets instead of those of its placement. They apply at once, outside of any rollout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_CONFIGS))]
    pub configs: Vec<AddOnConfig>,
}

impl ManagedClusterAddOnSpec {
    /// The wanted version, under either of its names. The hub writes `installVersion`, so the other one is the user's.
    #[must_use]
    pub fn version(&self) -> Option<&Version> {
        self.desired_version.as_ref().or(self.install_version.as_ref())
    }
}

/// What an add-on has come to on one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterAddOnStatus {
    /// Whether the add-on is available, is being changed, and what it was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The version that runs; unknown while it is being changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_version: Option<Version>,
    /// The version that was wanted before the present one; unknown if that one did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_version: Option<Version>,
    /// The version that is wanted at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_version: Option<Version>,
    /// What the add-on is called and what it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_meta: Option<AddOnMeta>,
    /// Where the add-on's configuration is kept. Use configReferences instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_configuration: Option<ConfigCoordinates>,
    /// The types of configuration that may be set in spec.configs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["group", "resource"]))]
    pub supported_configs: Vec<ConfigGroupResource>,
    /// The configurations that the add-on was given, and which state of them runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_references: Vec<ConfigReference>,
    /// Objects that belong to the add-on and are worth a look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_objects: Vec<ObjectReference>,
    /// The namespace on the managed cluster that the add-on's agent runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// How the add-on's agent registers with the hub.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registrations: Vec<RegistrationConfig>,
    /// How the add-on's agent proves itself to the hub's API server; the same as the driver in registrations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_client_driver: Option<KubeClientDriver>,
    /// How the add-on's health is found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheck>,
}

/// A configuration that an add-on was given, in OCM's shape and with flat hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigReference {
    /// The configuration's type.
    #[serde(flatten)]
    pub group_resource: ConfigGroupResource,
    /// The configuration's namespace; the same as in desiredConfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_NAME))]
    pub namespace: Option<String>,
    /// The configuration's name; the same as in desiredConfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_NAME))]
    pub name: Option<String>,
    /// The generation of the configuration that was last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_observed_generation: Option<i64>,
    /// The state of it that the add-on was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_config: Option<ConfigSpecHash>,
    /// The state of it that last ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_config: Option<ConfigSpecHash>,
    /// The hash of the content that the add-on was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_config_spec_hash: Option<SpecHash>,
    /// The hash of the content that last ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_config_spec_hash: Option<SpecHash>,
}

/// An object that belongs to an add-on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectReference {
    /// The object's API group; empty for the core group.
    pub group: String,
    /// The object's resource, in lower case and plural.
    pub resource: String,
    /// The object's namespace, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object's name.
    pub name: String,
}

/// How an add-on's agent registers with the hub. Version v1alpha1 has signerName and subject, version v1beta1 has
/// type with kubeClient or customSigner; the hub fills in both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "has(self.signerName) || has(self.type)",
        "say how the agent registers: set signerName (v1alpha1) or type (v1beta1)"
    ),
])))]
pub struct RegistrationConfig {
    /// Who signs the agent's certificate. A v1alpha1 client writes the empty text to an entry that a v1beta1 client made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 571))]
    pub signer_name: Option<String>,
    /// Whom the certificate is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// Whether the agent talks to the hub's API server or to something else.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<RegistrationKind>,
    /// How the agent registers with the hub's API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_client: Option<KubeClientRegistration>,
    /// How the agent registers with something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_signer: Option<CustomSignerRegistration>,
}

/// The form of a signer's name: a domain, a slash, and a path.
pub(super) const SIGNER_NAME: &str = r"^([a-z0-9][a-z0-9-]*[a-z0-9]\.)+[a-z]+\/[a-z0-9-\.]+$";

/// What an agent registers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RegistrationKind {
    /// The hub's API server.
    KubeClient,
    /// Something else, with certificates from a signer of its own.
    CustomSigner,
}

/// How an agent registers with the hub's API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KubeClientRegistration {
    /// As whom it acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<KubeClientSubject>,
    /// How it proves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<KubeClientDriver>,
}

/// As whom an agent acts on the hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KubeClientSubject {
    /// The user's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The groups the user is in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

/// How an agent proves who it is to the hub's API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KubeClientDriver {
    /// By a certificate that it asks for with a signing request.
    Csr,
    /// By the token of a service account.
    Token,
}

/// How an agent registers with something other than the hub's API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomSignerRegistration {
    /// Who signs the agent's certificate.
    #[schemars(length(min = 5, max = 571), pattern(SIGNER_NAME))]
    pub signer_name: String,
    /// Whom the certificate is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
}

/// Whom a certificate is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// The user's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The groups the user is in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The units of the organisation that the user belongs to, as v1alpha1 spells it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub organization_unit: Vec<String>,
    /// The units of the organisation that the user belongs to, as v1beta1 spells it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub organization_units: Vec<String>,
}

impl Subject {
    /// The units of the organisation, under either of their names.
    #[must_use]
    pub fn units(&self) -> &[String] {
        if self.organization_units.is_empty() { &self.organization_unit } else { &self.organization_units }
    }
}

/// How an add-on's health is found out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthCheck {
    /// By which means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Lease"))]
    pub mode: Option<HealthCheckMode>,
}

/// By which means an add-on's health is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HealthCheckMode {
    /// By the lease that the add-on's agent renews on its cluster.
    Lease,
    /// By other means, such as the state of what was deployed.
    Customized,
}
