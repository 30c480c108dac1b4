//! An add-on defined by what it deploys and how it registers, with no manager of its own.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HealthCheckMode, Subject, managed_cluster_addon::SIGNER_NAME};
use crate::{
    grammar::Version,
    schema::{MAX_NAME, rules},
    work::ManifestWorkSpec,
};

/// What an add-on deploys to clusters, and how its agent registers with the hub.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "addon.open-cluster-management.io",
    version = "v1alpha1",
    kind = "AddOnTemplate",
    doc = "An add-on as a template: what is deployed to each cluster, and how the agent there registers with the hub. A ClusterManagementAddOn refers to it as a configuration.",
    shortname = "aot",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Add-on", type_ = "string", json_path = ".spec.addonName"),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct AddOnTemplateSpec {
    /// The name of the add-on that the template belongs to.
    pub addon_name: String,
    /// The version of the add-on that the template deploys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// What is deployed, in the shape of a ManifestWork's spec. Texts in the manifests may hold variables as `{{NAME}}`.
    pub agent_spec: ManifestWorkSpec,
    /// How the add-on's agent registers with the hub.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registration: Vec<RegistrationSpec>,
    /// How the add-on's health is found out. Without it, by the state of the workloads that are deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<TemplateHealthCheck>,
}

/// How the health of an add-on that is made from a template is found out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateHealthCheck {
    /// By which means: Customized for the state of its workloads, Lease for the lease that its agent renews on its cluster.
    pub mode: HealthCheckMode,
}

/// One way in which an add-on's agent registers with the hub.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "self.type != 'CustomSigner' || has(self.customSigner)",
        "type CustomSigner needs customSigner with signerName and signingCA: set it, or use type KubeClient"
    ),
    (
        "!has(self.customSigner) || self.customSigner.signingCA.name != ''",
        "the signer needs its CA: set customSigner.signingCA.name to the name of a Secret"
    ),
])))]
pub struct RegistrationSpec {
    /// Whether the agent talks to the hub's API server or to something else.
    #[serde(rename = "type")]
    pub kind: RegistrationType,
    /// What the agent may do on the hub, for the type KubeClient.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_client: Option<KubeClientRegistrationSpec>,
    /// Who signs the agent's certificate, for the type CustomSigner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_signer: Option<CustomSignerRegistrationSpec>,
}

/// What an add-on's agent registers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RegistrationType {
    /// The hub's API server.
    KubeClient,
    /// Something else, with certificates from a signer of its own.
    CustomSigner,
}

/// What an agent may do on the hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeClientRegistrationSpec {
    /// The roles that the agent is bound to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hub_permissions: Vec<HubPermission>,
}

/// One role that an agent is bound to: in its cluster's namespace, or in one that is named.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "self.type != 'CurrentCluster' || (has(self.currentCluster) && self.currentCluster.clusterRoleName != '') || (has(self.roleRef) && self.roleRef.name != '')",
        "type CurrentCluster needs a role: set currentCluster.clusterRoleName or roleRef"
    ),
    (
        "self.type != 'SingleNamespace' || (has(self.singleNamespace) && self.singleNamespace.__namespace__ != '')",
        "type SingleNamespace needs a namespace: set singleNamespace.namespace"
    ),
    (
        "self.type != 'SingleNamespace' || !has(self.singleNamespace) || (has(self.singleNamespace.roleRef) && self.singleNamespace.roleRef.name != '') || (has(self.roleRef) && self.roleRef.name != '')",
        "type SingleNamespace needs a role: set singleNamespace.roleRef or roleRef"
    ),
    (
        "self.type == 'CurrentCluster' ? !has(self.singleNamespace) : !has(self.currentCluster)",
        "currentCluster belongs to type CurrentCluster and singleNamespace to type SingleNamespace: change the type, or remove the other"
    ),
    (
        "!has(self.roleRef) || self.roleRef.kind in ['Role', 'ClusterRole']",
        "a role is of the kind Role or ClusterRole: change roleRef.kind"
    ),
    (
        "!has(self.roleRef) || !(has(self.currentCluster) || (has(self.singleNamespace) && has(self.singleNamespace.roleRef)))",
        "the role is named twice: keep either roleRef or the one in currentCluster or singleNamespace"
    ),
])))]
pub struct HubPermission {
    /// Where the agent has the permission.
    #[serde(rename = "type")]
    pub kind: HubPermissionType,
    /// The role. It may instead be named by currentCluster.clusterRoleName or singleNamespace.roleRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_ref: Option<RoleRef>,
    /// The role in the cluster's namespace, for the type CurrentCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_cluster: Option<CurrentClusterBinding>,
    /// The namespace and the role in it, for the type SingleNamespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_namespace: Option<SingleNamespaceBinding>,
}

/// Where an agent has a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HubPermissionType {
    /// In its cluster's namespace on the hub.
    CurrentCluster,
    /// In one namespace that is the same for all clusters.
    SingleNamespace,
}

/// A role that already exists on the hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct RoleRef {
    /// The role's API group: rbac.authorization.k8s.io.
    pub api_group: String,
    /// Role or ClusterRole.
    pub kind: String,
    /// The role's name.
    pub name: String,
}

/// A role in a cluster's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CurrentClusterBinding {
    /// The name of the ClusterRole.
    pub cluster_role_name: String,
}

/// A role in one namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SingleNamespaceBinding {
    /// The namespace.
    pub namespace: String,
    /// The role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_ref: Option<RoleRef>,
}

/// Who signs an agent's certificate for something other than the hub's API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomSignerRegistrationSpec {
    /// The signer's name, such as example.com/signer.
    #[schemars(length(min = 5, max = 571), pattern(SIGNER_NAME))]
    pub signer_name: String,
    /// Whom the certificate is for. Without it, the subject is the same as for the hub's API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// The Secret on the hub that holds the signer's certificate and key, as `tls.crt` and `tls.key` or as `ca.crt` and `ca.key`.
    #[serde(rename = "signingCA")]
    pub signing_ca: SigningCaRef,
}

/// A Secret that holds a CA.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SigningCaRef {
    /// The secret's namespace; the hub's own where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_NAME))]
    pub namespace: Option<String>,
    /// The secret's name.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
}
