//! One cluster's part of an upgrade.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Acknowledged;
use crate::{
    cluster::{OperatorUpgrades, TargetVersion},
    grammar::SetFingerprint,
    schema::{self, MAX_NAME, rules},
};

/// What one cluster is upgraded to, pinned when its turn came.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "drover.dev",
    version = "v1alpha1",
    kind = "ClusterUpgrade",
    doc = "The part of a ManagedClustersUpgrade that concerns the cluster in whose namespace this stands. Written by the hub; an edit of the ManagedClustersUpgrade does not change the target of a cluster that is under way.",
    namespaced,
    status = "ClusterUpgradeStatus",
    shortname = "cu",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Upgrade", type_ = "string", json_path = ".spec.upgrade.name"),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.target.version"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.reason"),
    printcolumn(name = "Since", type_ = "date", json_path = ".status.phaseStarted"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[schemars(extend("x-kubernetes-validations" = rules([
    ("self.upgrade == oldSelf.upgrade", "a part of one upgrade never becomes a part of another: make another one"),
])))]
#[serde(rename_all = "camelCase")]
pub struct ClusterUpgradeSpec {
    /// The ManagedClustersUpgrade that this is a part of.
    pub upgrade: UpgradeRef,
    /// What the cluster is upgraded to.
    pub target: TargetVersion,
    /// Which operators are upgraded once the platform is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operators: Option<OperatorUpgrades>,
    /// The UID of the ManagedCluster: another cluster of that name starts afresh.
    #[serde(default, rename = "clusterUID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub cluster_uid: Option<String>,
    /// Whether the cluster is one of the canaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<bool>,
}

/// A ManagedClustersUpgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpgradeRef {
    /// Its namespace.
    #[schemars(length(min = 1, max = MAX_NAME))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = MAX_NAME))]
    pub name: String,
    /// Its UID: another upgrade of that name is another upgrade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub uid: Option<String>,
}

/// How far a cluster's upgrade is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterUpgradeStatus {
    /// What is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<ClusterUpgradePhase>,
    /// When that began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub phase_started: Option<Time>,
    /// What was being done when it failed, and is gone on with if it succeeds after all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_phase: Option<ClusterUpgradePhase>,
    /// One word for what the cluster waits for, or what failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the cluster waits for, or what failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation of this object that the status was found for. What was said of another target is said of nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The version that the cluster ran when its upgrade began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_version: Option<String>,
    /// The version that the cluster reports now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_version: Option<String>,
    /// When the upgrade of the cluster began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub started: Option<Time>,
    /// When the cluster's agent had applied what upgrades it. The time limit counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub delivered: Option<Time>,
    /// The action before the upgrade, once it has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_action: Option<ActionDone>,
    /// The action after the upgrade, once it has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_action: Option<ActionDone>,
    /// The requests, made by annotations, that the hub has taken up for this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledged>,
    /// When the cluster's platform was upgraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub platform_completed: Option<Time>,
    /// When the cluster's operators were upgraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub operators_completed: Option<Time>,
    /// Where the cluster's operators were when something was last heard of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operators: Option<String>,
    /// When the upgrade of the cluster ended, well or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub finished: Option<Time>,
}

/// An action that has succeeded. It stays done when what it left on the cluster is cleaned up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionDone {
    /// The fingerprint of the action: another action has not been done yet.
    pub action: SetFingerprint,
    /// When it succeeded.
    #[schemars(schema_with = "schema::time")]
    pub time: Time,
}

/// What is being done to a cluster. It is in exactly one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClusterUpgradePhase {
    /// It waits for its turn.
    Waiting,
    /// The action before the upgrade runs.
    PreAction,
    /// The platform is being upgraded.
    Upgrading,
    /// The operators are being upgraded.
    Operators,
    /// The action after the upgrade runs.
    PostAction,
    /// It is done.
    Complete,
    /// It has failed.
    Failed,
}
