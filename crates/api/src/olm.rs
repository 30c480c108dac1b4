//! What Drover reads of the Operator Lifecycle Manager's objects on managed clusters, and the one field that it writes there.
//!
//! The kinds are the Operator Lifecycle Manager's own, with far more fields than these; no CustomResourceDefinition is made of them here. Everything may be missing, so
//! that an object is never unreadable for what it lacks.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// What a cluster is to have of an operator.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "operators.coreos.com",
    version = "v1alpha1",
    kind = "Subscription",
    doc = "An operator that a cluster follows the versions of.",
    namespaced,
    status = "SubscriptionStatus",
    schema = "disabled",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionSpec {
    /// Whether new versions wait for somebody who approves them: `Manual`; anything else means that they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install_plan_approval: Option<String>,
}

impl SubscriptionSpec {
    /// Whether new versions wait for somebody who approves them.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        self.install_plan_approval.as_deref() == Some("Manual")
    }
}

/// How far a cluster is with an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionStatus {
    /// The ClusterServiceVersion that the cluster is moving to, or has.
    #[serde(default, rename = "currentCSV", skip_serializing_if = "Option::is_none")]
    pub current_csv: Option<String>,
    /// The ClusterServiceVersion that the cluster has.
    #[serde(default, rename = "installedCSV", skip_serializing_if = "Option::is_none")]
    pub installed_csv: Option<String>,
    /// The install plan that brings the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install_plan_ref: Option<InstallPlanRef>,
}

/// An install plan, by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallPlanRef {
    /// Its namespace; that of the subscription where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What is installed together once somebody approves it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "operators.coreos.com",
    version = "v1alpha1",
    kind = "InstallPlan",
    doc = "Versions of operators that are installed together.",
    namespaced,
    status = "InstallPlanStatus",
    schema = "disabled",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct InstallPlanSpec {
    /// Whether it may be carried out.
    #[serde(default)]
    pub approved: bool,
    /// The ClusterServiceVersions that it brings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_service_version_names: Vec<String>,
}

/// How far an install plan is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallPlanStatus {
    /// `RequiresApproval`, `Installing`, `Complete`, `Failed` and others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// What it has to say of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// One version of an operator.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "operators.coreos.com",
    version = "v1alpha1",
    kind = "ClusterServiceVersion",
    doc = "One version of an operator on a cluster.",
    namespaced,
    status = "ClusterServiceVersionStatus",
    schema = "disabled",
    derive = "PartialEq",
    derive = "Default"
)]
pub struct ClusterServiceVersionSpec {
    /// The version that this one takes the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// Versions that this one may take the place of too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skips: Vec<String>,
}

/// How far a version of an operator is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterServiceVersionStatus {
    /// `Succeeded` once it runs; `Installing`, `Failed` and others before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// What it has to say of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
