//! The upgrade of a group of clusters, with what is to happen before and after on each of them.

use std::{collections::BTreeMap, fmt, str::FromStr};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelectorRequirement, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    drover::Acknowledged,
    grammar::{SetFingerprint, Timeout},
    reference::PlacementRef,
    schema::{self, rules},
    work::ManifestWorkSpec,
};

/// Which clusters are upgraded to what, and how.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta1",
    kind = "ManagedClustersUpgrade",
    doc = "Upgrades a group of clusters: canaries first, then the rest a few at a time, with actions before and after. What each cluster is doing stands in the ClusterUpgrade in its namespace.",
    namespaced,
    status = "ManagedClustersUpgradeStatus",
    shortname = "mcu",
    shortname = "mcus",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.clusterVersion.version"),
    printcolumn(name = "Done", type_ = "string", json_path = ".status.progress"),
    printcolumn(name = "Failed", type_ = "integer", json_path = ".status.clustersSummery.failed"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "(has(self.placement) && size(self.placement) > 0) || has(self.clusterSelector)",
        "name the clusters to upgrade: set placement, clusterSelector or both"
    ),
])))]
pub struct ManagedClustersUpgradeSpec {
    /// The placements whose clusters are upgraded, as a list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema::MAX_PLACEMENTS), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["namespace", "name"]))]
    pub placement: Vec<PlacementRef>,
    /// Clusters that are upgraded besides those of the placements, from the sets that this namespace is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<UpgradeClusterSelector>,
    /// What the clusters are upgraded to.
    pub cluster_version: TargetVersion,
    /// Which operators are upgraded once a cluster's platform is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ocp_operators: Option<OperatorUpgrades>,
    /// How many clusters are upgraded at a time, which of them first, and how long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade_strategy: Option<UpgradeStrategy>,
    /// What is done on a cluster before it is upgraded. A cluster whose action does not succeed is not upgraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_upgrade_action: Option<UpgradeAction>,
    /// What is done on a cluster after it was upgraded. A cluster whose action does not succeed counts as failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_upgrade_action: Option<UpgradeAction>,
}

/// A selection of clusters from the sets that the namespace is bound to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "(has(self.clusterSets) && size(self.clusterSets) > 0) || (has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
        "an empty selector is not allowed here: set clusterSets, matchLabels or matchExpressions"
    ),
])))]
pub struct UpgradeClusterSelector {
    /// The sets that clusters are taken from. Without it, all sets that the namespace is bound to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(min = 1)))]
    pub cluster_sets: Vec<String>,
    /// Labels that a cluster has to have with exactly these values. For a cluster without a label `name`, that key
    /// stands for the cluster's own name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements on labels that all have to hold. For a cluster without a label `name`, that key stands for the
    /// cluster's own name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::strict_requirements")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// What clusters are upgraded to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "[has(self.channel) && self.channel != '', has(self.version) && self.version != '', has(self.image) && self.image != ''].exists(given, given)",
        "say what to upgrade to: set version, image or channel"
    ),
    (
        "!has(self.version) || self.version == '' || !has(self.image) || self.image == '' || self.image.matches('@sha256:[0-9a-f]{64}$')",
        "an image beside a version must be given by its digest (name@sha256:...), so that both name the same release; or leave one of them out"
    ),
])))]
pub struct TargetVersion {
    /// The channel that updates are taken from, such as stable-4.12.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = schema::MAX_NAME))]
    pub channel: Option<String>,
    /// The version, such as 4.12.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 128),
        extend("x-kubernetes-validations" = rules([(
            "self == '' || self.matches('^(0|[1-9][0-9]*)(\\\\.(0|[1-9][0-9]*)){2}([-+][-+.0-9A-Za-z]+)?$')",
            "write a whole version such as 4.12.0"
        )]))
    )]
    pub version: Option<String>,
    /// The server that tells which updates there are; the cluster's own where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub upstream: Option<String>,
    /// The release image, for clusters that can not look a version up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub image: Option<String>,
}

/// Which operators are upgraded, by approving the install plans that wait for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "!(has(self.approveAllUpgrades) && self.approveAllUpgrades && has(self.include) && size(self.include) > 0)",
        "choose one: approveAllUpgrades upgrades every operator, include only those listed; use exclude to leave some out"
    ),
])))]
pub struct OperatorUpgrades {
    /// Whether every operator is upgraded that waits for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve_all_upgrades: Option<bool>,
    /// The operators that are upgraded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub include: Vec<OperatorRef>,
    /// The operators that are never upgraded, whatever else is set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub exclude: Vec<OperatorRef>,
}

/// An operator's subscription on the managed clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct OperatorRef {
    /// The name of the subscription.
    #[schemars(
        length(min = 1, max = schema::MAX_NAME),
        extend("x-kubernetes-validations" = rules([(
            "self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",
            "write the name of the operator's Subscription, of lower case letters, digits, '-' and '.'"
        )]))
    )]
    pub name: String,
    /// The namespace of the subscription.
    #[schemars(
        length(min = 1, max = schema::MAX_NAME),
        extend("x-kubernetes-validations" = rules([(
            "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
            "write the namespace of the operator's Subscription, of lower case letters, digits and '-'"
        )]))
    )]
    pub namespace: String,
}

/// A text that names no operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no operator: write the namespace and the name of its Subscription, such as openshift-operators/openshift-gitops-operator"
)]
pub struct InvalidOperator(String);

impl FromStr for OperatorRef {
    type Err = InvalidOperator;

    fn from_str(text: &str) -> Result<Self, InvalidOperator> {
        let is_part = |part: &str| !part.is_empty() && !part.contains(|c: char| c == '/' || c.is_whitespace());
        let parts = text.split_once('/').filter(|(namespace, name)| is_part(namespace) && is_part(name));
        let (namespace, name) = parts.ok_or_else(|| InvalidOperator(text.to_owned()))?;
        Ok(Self { name: name.to_owned(), namespace: namespace.to_owned() })
    }
}

impl fmt::Display for OperatorRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// How clusters are upgraded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    ("!has(self.canarySoak) || has(self.canaryClusters)", "canarySoak waits for canaries: set canaryClusters too, or leave it out"),
])))]
pub struct UpgradeStrategy {
    /// Clusters that have to be upgraded before any other is begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary_clusters: Option<CanaryClusters>,
    /// How many clusters may be upgraded at one time: a number, not a percentage; 1 where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules([("self >= 1", "let at least 1 cluster be upgraded at a time")])))]
    pub max_concurrency: Option<i32>,
    /// How long the upgrade of one cluster's platform may take before it counts as failed; 2h where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_upgrade_timeout: Option<Timeout>,
    /// How long the upgrade of one cluster's operators may take before it counts as failed; 10m where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operators_upgrade_timeout: Option<Timeout>,
    /// How many clusters may fail before no more are begun; any number where it is not set. A canary may never fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules([("self >= 0", "0 lets no cluster fail; leave it out to go on whatever fails")])))]
    pub max_failures: Option<i32>,
    /// How long the canaries have to have been done before another cluster is begun; no time where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary_soak: Option<Timeout>,
}

/// Which clusters are the canaries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryClusters {
    /// Selects the canaries from among the clusters that are upgraded.
    pub cluster_selector: UpgradeClusterSelector,
}

/// Something that is done on each cluster before or after its upgrade.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "has(self.manifestWork.workload) && has(self.manifestWork.workload.manifests) && size(self.manifestWork.workload.manifests) > 0",
        "give the action something to do: list at least one manifest under manifestWork.workload.manifests"
    ),
])))]
pub struct UpgradeAction {
    /// What is applied to the cluster, in the shape of a ManifestWork's spec.
    pub manifest_work: ManifestWorkSpec,
    /// How long it may take before it counts as failed; as long as the upgrade of a cluster where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Timeout>,
}

/// What an upgrade came to so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClustersUpgradeStatus {
    /// Whether clusters were selected, are being upgraded, are done, or have failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// What the upgrade is doing as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<UpgradePhase>,
    /// How many clusters are done out of how many, such as 3/12.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// What keeps clusters from being begun that wait for their turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When all clusters will be done, if they take as long as those that are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub estimated_completion: Option<Time>,
    /// The generation of this object that the status was found for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// That the canaries are done, and with what. It stays so for that target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canaries_passed: Option<CanariesPassed>,
    /// The requests, made by annotations, that the hub has taken up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledged>,
    /// How the actions before the upgrade are doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_upgrade_action_summary: Option<ActionSummary>,
    /// How the canaries are doing. The field's spelling is that of its specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary_clusters_summery: Option<ClustersSummary>,
    /// How all clusters are doing, canaries among them. The field's spelling is that of its specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters_summery: Option<ClustersSummary>,
    /// How the actions after the upgrade are doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_upgrade_action_summary: Option<ActionSummary>,
}

/// That all canaries were upgraded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CanariesPassed {
    /// The fingerprint of what they were upgraded to.
    pub target: SetFingerprint,
    /// When the last of them was.
    #[schemars(schema_with = "schema::time")]
    pub time: Time,
}

/// What an upgrade is doing as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpgradePhase {
    /// Nothing is selected, or nothing may be begun yet.
    Waiting,
    /// The canaries are being upgraded.
    Canaries,
    /// The clusters are being upgraded.
    Upgrading,
    /// Somebody has paused it.
    Paused,
    /// Every cluster is upgraded.
    Complete,
    /// Clusters have failed, and nothing more will be begun.
    Failed,
}

/// How many clusters have an action in which state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActionSummary {
    /// How many clusters the action is for so far.
    #[serde(default)]
    pub total: i32,
    /// How many of them have it applied.
    #[serde(default)]
    pub applied: i32,
    /// How many of them are done with it.
    #[serde(default)]
    pub available: i32,
    /// How many of them are at it.
    #[serde(default)]
    pub progressing: i32,
    /// How many of them failed at it.
    #[serde(default)]
    pub degraded: i32,
}

/// How many clusters are at which point of the upgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClustersSummary {
    /// How many clusters are selected.
    #[serde(default)]
    pub total: i32,
    /// How many of them were begun, those that are done by now included.
    #[serde(default)]
    pub initialized: i32,
    /// How many of them are being upgraded.
    #[serde(default)]
    pub partial_upgrade: i32,
    /// How many of them are done.
    #[serde(default)]
    pub complete: i32,
    /// How many of them failed.
    #[serde(default)]
    pub failed: i32,
    /// How many of them wait for their turn.
    #[serde(default)]
    pub pending: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_named_by_namespace_and_name() {
        let operator: OperatorRef = "operators/gitops.v1".parse().expect("an operator");
        assert_eq!((operator.namespace.as_str(), operator.name.as_str()), ("operators", "gitops.v1"));
        assert_eq!(operator.to_string(), "operators/gitops.v1");
        for text in ["", "gitops", "/gitops", "operators/", "a/b/c", "operators/git ops"] {
            let error = text.parse::<OperatorRef>().expect_err(text).to_string();
            assert!(error.contains("openshift-operators/openshift-gitops-operator"), "{error}");
        }
    }
}
