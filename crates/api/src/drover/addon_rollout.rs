//! The state of an add-on's rollouts that has to outlive the hub's process.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Acknowledged;
use crate::{
    addon::{ConfigGroupResource, ConfigSpecHash},
    grammar::{SetFingerprint, Version},
    reference::{ClusterName, PlacementRef},
    schema,
};

/// Rollouts follow from add-ons and their placements: there is nothing to specify.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "drover.dev",
    version = "v1alpha1",
    kind = "AddOnRollout",
    doc = "The rollouts of the ClusterManagementAddOn of the same name: for each placement what is wanted, what is known to be good, whether its gate is open, and how far it is. Written by the hub.",
    no_spec,
    status = "AddOnRolloutStatus",
    shortname = "aor",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Progress", type_ = "string", json_path = ".status.progress"),
    printcolumn(name = "Failed", type_ = "integer", json_path = ".status.failed"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct AddOnRolloutSpec {}

/// The rollouts of an add-on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnRolloutStatus {
    /// What the add-on's rollouts are doing, all placements together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<RolloutState>,
    /// How many clusters run what is wanted for them out of how many, such as 120/400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// On how many clusters the present rollout has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<i32>,
    /// What the rollouts wait for, or who stopped them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation of the ClusterManagementAddOn that this was worked out from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The sets that placements below refer to by fingerprint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["fingerprint"]))]
    pub sets: Vec<ConfigSet>,
    /// The rollout of the defaults, where clusters are not chosen by placements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<RolloutProgress>,
    /// The rollout of each placement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["namespace", "name"]))]
    pub placements: Vec<PlacementRolloutStatus>,
    /// The requests, made by annotations, that the hub has taken up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledged>,
    /// Rollouts that have ended, latest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<RolloutRecord>,
    /// Whether anything keeps the add-on from being rolled out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// What a rollout is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RolloutState {
    /// Every cluster runs what is wanted for it.
    Complete,
    /// Clusters are being moved.
    RollingOut,
    /// The canaries are not done yet.
    WaitingForCanary,
    /// Somebody has paused it.
    Paused,
    /// Too many clusters have failed.
    Halted,
    /// Something that it needs is missing or contradicts itself, such as a configuration.
    Blocked,
}

/// Everything that a cluster is given, as one whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigSet {
    /// The name of the set.
    pub fingerprint: SetFingerprint,
    /// The configurations, each in one state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configs: Vec<SetConfig>,
    /// The version of the add-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// The epoch of the renderer: it rises when a new Drover would render the same configurations differently.
    pub epoch: i64,
    /// When the set was first wanted.
    #[schemars(schema_with = "schema::time")]
    pub first_wanted: Time,
}

/// One configuration of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct SetConfig {
    /// The configuration's type.
    #[serde(flatten)]
    pub group_resource: ConfigGroupResource,
    /// The configuration's object and the state of it.
    #[serde(flatten)]
    pub config: ConfigSpecHash,
}

/// The rollout of one placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementRolloutStatus {
    /// The placement.
    #[serde(flatten)]
    pub placement: PlacementRef,
    /// How far it is.
    #[serde(flatten)]
    pub progress: RolloutProgress,
}

/// How far a rollout is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutProgress {
    /// What it is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<RolloutState>,
    /// The set that is wanted now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<SetFingerprint>,
    /// The set that new clusters get: the last one that the canaries were well with, or that was applied everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known_good: Option<SetFingerprint>,
    /// The last set that ran on all clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied: Option<SetFingerprint>,
    /// Whether something else was wanted since a set first ran on all clusters: from then on a change is an upgrade, and no install.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_upgrade: bool,
    /// Sets that can be returned to without asking the canaries again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted: Vec<SetFingerprint>,
    /// The set that it is held at, and what was configured then. It is let go when something else is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<Pin>,
    /// The gates that wait for canaries, where the strategy has any: one for the set that rolls out behind it, and one
    /// for the set that the canaries are trying meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["set"]))]
    pub gates: Vec<Gate>,
    /// Why nothing new is begun, where too many clusters have failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halt: Option<Halt>,
    /// The clusters, counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<RolloutCounts>,
    /// When the present rollout began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub started: Option<Time>,
    /// When the present rollout ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub finished: Option<Time>,
}

/// A set that somebody holds a rollout at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pin {
    /// The set.
    pub set: SetFingerprint,
    /// The set that was configured when this one was pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<SetFingerprint>,
    /// Whether it has been let go, because something else was configured since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub let_go: bool,
}

/// A gate that opens for a set when every canary runs it well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// The set that the gate is about.
    pub set: SetFingerprint,
    /// The placement whose clusters are the canaries.
    pub canary: PlacementRef,
    /// Whether it is open.
    pub state: GateState,
    /// When it opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub opened: Option<Time>,
    /// The clusters that count as canaries even if they can not be reached any more: those that were given the set; when the
    /// gate is open, those that ran it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watching: Vec<ClusterName>,
    /// What the gate waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Whether a gate is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GateState {
    /// Nobody behind it is moved.
    Shut,
    /// The set rolls out.
    Open,
}

/// A rollout that begins nothing new, because too many clusters have failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Halt {
    /// The set that failed.
    pub set: SetFingerprint,
    /// Since when.
    #[schemars(schema_with = "schema::time")]
    pub since: Time,
    /// What failed, and what lifts the halt.
    pub message: String,
}

/// The clusters of a placement, counted. Each is counted under total and one other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutCounts {
    /// All clusters that the placement decides for.
    #[serde(default)]
    pub total: i32,
    /// Those that wait for their turn.
    #[serde(default)]
    pub waiting: i32,
    /// Those that were given the set and do not run it yet.
    #[serde(default)]
    pub given: i32,
    /// Those that run the set.
    #[serde(default)]
    pub proven: i32,
    /// Those on which it failed.
    #[serde(default)]
    pub failed: i32,
    /// Those that can not be reached and will catch up.
    #[serde(default)]
    pub offline: i32,
    /// Those that were told to be left out.
    #[serde(default)]
    pub skipped: i32,
    /// Those that were told to wait.
    #[serde(default)]
    pub paused: i32,
    /// Those that a user has configured otherwise.
    #[serde(default)]
    pub overridden: i32,
}

/// A rollout that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutRecord {
    /// The placement; none for a rollout of the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementRef>,
    /// The set that was rolled out.
    pub set: SetFingerprint,
    /// How it ended.
    pub outcome: RolloutOutcome,
    /// When it began.
    #[schemars(schema_with = "schema::time")]
    pub started: Time,
    /// When it ended.
    #[schemars(schema_with = "schema::time")]
    pub finished: Time,
    /// The clusters at the end, counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<RolloutCounts>,
}

/// How a rollout ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RolloutOutcome {
    /// The set ran on every cluster that could be reached.
    Complete,
    /// Another set was wanted before this one ran everywhere.
    Superseded,
    /// A set that ran before was wanted again.
    Abandoned,
}
