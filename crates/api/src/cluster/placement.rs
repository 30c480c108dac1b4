//! A selection of clusters from the sets that a namespace is bound to.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, LabelSelectorRequirement, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TaintEffect;
use crate::{grammar::WindowSize, schema};

/// Which clusters are selected, in which order, and in which groups.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta1",
    kind = "Placement",
    doc = "Selects clusters from the sets that this namespace is bound to. The result is written to PlacementDecisions and kept up to date.",
    namespaced,
    status = "PlacementStatus",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "Satisfied",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="PlacementSatisfied")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="PlacementSatisfied")].reason"#
    ),
    printcolumn(name = "Selected", type_ = "integer", json_path = ".status.numberOfSelectedClusters"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSpec {
    /// The sets that clusters are taken from. They have to be bound to this namespace. Without it, all bound sets count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_sets: Vec<String>,
    /// How many clusters are wanted. Without it, all that match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number_of_clusters: Option<i32>,
    /// What clusters have to be like. A cluster that meets one of the predicates is selected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predicates: Vec<ClusterPredicate>,
    /// Which clusters are preferred where more match than are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prioritizer_policy: Option<PrioritizerPolicy>,
    /// How selected clusters are spread over regions, zones or the like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_policy: Option<SpreadPolicy>,
    /// Which taints do not keep a cluster from being selected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// How selected clusters are divided into groups, for rollouts that go group by group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_strategy: Option<DecisionStrategy>,
    /// The order in which clusters stand in the decisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "ClusterName"))]
    pub sort_by: Option<SortBy>,
    /// How often a change of scores may change the decisions, such as 1m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(pattern(r"^[0-9]+[hms]$"), extend("default" = "1m"))]
    pub score_rate_limit: Option<String>,
}

/// The order in which clusters stand in the decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SortBy {
    /// By name.
    ClusterName,
    /// By score, best first.
    Score,
}

/// What a cluster has to be like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPredicate {
    /// What the cluster's labels, claims and fields have to be. All of it has to hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_cluster_selector: Option<ClusterSelector>,
}

/// A selection by labels, claims and expressions, all of which have to hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelector {
    /// What the cluster's labels have to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub label_selector: Option<LabelSelector>,
    /// What the cluster's claims have to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_selector: Option<ClaimSelector>,
    /// What has to hold of the cluster in CEL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel_selector: Option<CelSelector>,
}

/// A selection by what clusters claim of themselves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSelector {
    /// Requirements on claims that all have to hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::claim_requirements")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// A selection by expressions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CelSelector {
    /// Expressions that all have to be true. `managedCluster` is the ManagedCluster, and
    /// `managedCluster.scores("name")` its scores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cel_expressions: Vec<String>,
}

/// Which clusters are preferred.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PrioritizerPolicy {
    /// Whether the configurations are added to the defaults (Additive) or are all there is (Exact).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Additive"))]
    pub mode: Option<String>,
    /// What makes a cluster better, and how much each counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<PrioritizerConfig>,
}

/// One thing that makes a cluster better.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrioritizerConfig {
    /// Where the score comes from.
    pub score_coordinate: ScoreCoordinate,
    /// How much it counts, from -10 to 10; 0 leaves it out.
    #[serde(default = "default_weight")]
    #[schemars(range(min = -10, max = 10))]
    pub weight: i32,
}

fn default_weight() -> i32 {
    1
}

/// Where a score comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoreCoordinate {
    /// Whether the score is built in or comes from an AddOnPlacementScore.
    #[serde(rename = "type", default)]
    #[schemars(extend("default" = "BuiltIn"))]
    pub kind: ScoreType,
    /// The built-in score: Steady, Balance, ResourceAllocatableCPU or ResourceAllocatableMemory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_in: Option<String>,
    /// The score of an AddOnPlacementScore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on: Option<AddOnScore>,
}

/// Where a score is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ScoreType {
    /// Computed by the hub.
    #[default]
    BuiltIn,
    /// Read from an AddOnPlacementScore in the cluster's namespace.
    AddOn,
}

/// One score of an AddOnPlacementScore.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnScore {
    /// The name of the AddOnPlacementScore.
    pub resource_name: String,
    /// The name of the score in it.
    pub score_name: String,
}

/// How selected clusters are spread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadPolicy {
    /// What clusters are spread over, most important first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub spread_constraints: Vec<SpreadConstraint>,
}

/// One thing that selected clusters are spread over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadConstraint {
    /// The label or claim whose values clusters are spread over.
    #[schemars(length(max = 316), pattern(schema::QUALIFIED_NAME))]
    pub topology_key: String,
    /// Whether the key is a label or a claim.
    pub topology_key_type: TopologyKeyType,
    /// By how many clusters the fullest value may exceed the emptiest.
    #[serde(default = "default_max_skew")]
    #[schemars(range(min = 1))]
    pub max_skew: i32,
    /// What happens where that can not be kept.
    #[serde(default)]
    #[schemars(extend("default" = "ScheduleAnyway"))]
    pub when_unsatisfiable: UnsatisfiableAction,
}

fn default_max_skew() -> i32 {
    1
}

/// Whether a topology's key is a label or a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TopologyKeyType {
    /// A label of the cluster.
    Label,
    /// A claim of the cluster.
    Claim,
}

/// What happens where clusters can not be spread as asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UnsatisfiableAction {
    /// Fewer clusters are selected.
    DoNotSchedule,
    /// The clusters that spread best are selected.
    #[default]
    ScheduleAnyway,
}

/// Which taints do not keep a cluster from being selected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// The taint's key; empty with the operator Exists for any taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 316), pattern(schema::QUALIFIED_NAME))]
    pub key: Option<String>,
    /// Whether the value has to be equal (Equal) or may be anything (Exists).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Equal"))]
    pub operator: Option<String>,
    /// The taint's value, for Equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub value: Option<String>,
    /// The taint's effect; empty for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// For how long after it was added the taint is tolerated. Without it, for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// How selected clusters are divided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionStrategy {
    /// How they are divided into groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_strategy: Option<GroupStrategy>,
}

/// How selected clusters are divided into groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupStrategy {
    /// Groups with a name, in order. A cluster is in the first one that it matches, the rest in groups without a name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decision_groups: Vec<DecisionGroup>,
    /// The size at which a group is divided: a number or a percentage of the selected clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "100%"))]
    pub clusters_per_decision_group: Option<WindowSize>,
}

/// A group with a name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionGroup {
    /// The name of the group.
    #[schemars(pattern(r"^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$"))]
    pub group_name: String,
    /// Which of the selected clusters are in it.
    pub group_cluster_selector: GroupClusterSelector,
}

/// A selection by labels and claims, both of which have to hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupClusterSelector {
    /// What the cluster's labels have to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub label_selector: Option<LabelSelector>,
    /// What the cluster's claims have to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_selector: Option<ClaimSelector>,
}

/// What a placement came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStatus {
    /// Whether as many clusters as wanted could be selected, and whether the placement makes sense.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// How many clusters are selected.
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub number_of_selected_clusters: i32,
    /// The groups that the selected clusters are in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decision_groups: Vec<DecisionGroupStatus>,
    /// When scores last changed the decisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_score_update_time: Option<Time>,
}

/// A group of selected clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionGroupStatus {
    /// The index of the group, from 0.
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub decision_group_index: i32,
    /// The name of the group; empty for those without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_group_name: Option<String>,
    /// The PlacementDecisions that list its clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// How many clusters are in it.
    #[serde(default, rename = "clusterCount")]
    pub cluster_count: i32,
}
