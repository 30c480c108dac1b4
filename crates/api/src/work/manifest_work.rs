//! What is to be applied to one managed cluster, and what became of it there.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    schema::{self, rules},
    spec::may_be_missing,
};

/// What is applied to a cluster, and how.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "work.open-cluster-management.io",
    version = "v1",
    kind = "ManifestWork",
    doc = "Kubernetes objects that the agent of the cluster in whose namespace this stands applies to that cluster, keeps there, and reports on.",
    namespaced,
    status = "ManifestWorkStatus",
    shortname = "mw",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Applied", type_ = "string", json_path = r#".status.conditions[?(@.type=="Applied")].status"#),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#
    ),
    printcolumn(
        name = "Add-on",
        type_ = "string",
        json_path = r".metadata.labels.open-cluster-management\.io/addon-name"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(remote = "Self")]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkSpec {
    /// What is applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<ManifestsTemplate>,
    /// What happens to the applied objects when the work is deleted. By default they are deleted too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_option: Option<DeleteOption>,
    /// How single objects are applied and what is reported of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifest_configs: Vec<ManifestConfig>,
    /// In whose name the objects are applied on the cluster. Without it, in the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
}

may_be_missing!(ManifestWorkSpec);

impl ManifestWorkSpec {
    /// The manifests that are applied.
    #[must_use]
    pub fn manifests(&self) -> &[Value] {
        self.workload.as_ref().map_or(&[], |workload| &workload.manifests)
    }
}

/// Objects that are applied to a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManifestsTemplate {
    /// The objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::manifests")]
    pub manifests: Vec<Value>,
}

/// What happens to the applied objects when a work is deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteOption {
    /// Whether they are deleted, kept, or kept as the rules say.
    #[serde(default)]
    #[schemars(extend("default" = "Foreground"))]
    pub propagation_policy: DeletePropagationPolicy,
    /// Which objects are kept, for the policy SelectivelyOrphan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selectively_orphans: Option<SelectivelyOrphan>,
    /// After how many seconds a work is deleted that has done what it was for. Without it, never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
}

/// Whether applied objects are deleted with their work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletePropagationPolicy {
    /// They are deleted, and the work is gone when they are.
    #[default]
    Foreground,
    /// They are kept.
    Orphan,
    /// Those that a rule names are kept, the others deleted.
    SelectivelyOrphan,
}

/// Which objects are kept when their work is deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectivelyOrphan {
    /// The objects that are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orphaning_rules: Vec<OrphaningRule>,
}

/// One object that is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrphaningRule {
    /// The object's API group; empty for the core group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The object's resource, in lower case and plural, such as deployments.
    pub resource: String,
    /// The object's namespace; empty if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object's name.
    pub name: String,
}

/// How one object is applied, and what is reported of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestConfig {
    /// Which objects this is about. Name and namespace may hold `*` for any text.
    pub resource_identifier: ResourceIdentifier,
    /// What of the object's state is reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback_rules: Vec<FeedbackRule>,
    /// How often it is looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Poll"))]
    pub feedback_scrape_type: Option<FeedbackScrapeType>,
    /// How the object is brought to what the manifest says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,
    /// Conditions that are worked out from the object's state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["condition"]))]
    pub condition_rules: Vec<ConditionRule>,
}

/// Some objects of a work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceIdentifier {
    /// The object's API group; empty for the core group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The object's resource, in lower case and plural, such as deployments.
    pub resource: String,
    /// The object's name.
    pub name: String,
    /// The object's namespace; empty if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// What of an object's state is reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackRule {
    /// Whether what is known for the kind is reported, or what the paths name.
    #[serde(rename = "type")]
    pub kind: FeedbackType,
    /// The values that are reported, for the type JSONPaths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub json_paths: Vec<JsonPath>,
}

/// Where reported values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FeedbackType {
    /// What matters for the object's kind, such as the replicas of a Deployment.
    WellKnownStatus,
    /// What the paths name.
    #[serde(rename = "JSONPaths")]
    JsonPaths,
}

/// One value that is reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JsonPath {
    /// The name under which it is reported.
    pub name: String,
    /// The version of the object's API that the path is for; any where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where the value stands in the object, such as `.status.readyReplicas`.
    pub path: String,
}

/// How often an object's state is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FeedbackScrapeType {
    /// Every now and then.
    Poll,
    /// Whenever it changes.
    Watch,
}

/// How an object is brought to what its manifest says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// Which way it is.
    #[serde(rename = "type", default)]
    #[schemars(extend("default" = "Update"))]
    pub kind: UpdateStrategyType,
    /// Settings for the type ServerSideApply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApplyConfig>,
}

/// Which way an object is brought to what its manifest says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateStrategyType {
    /// What differs is overwritten.
    #[default]
    Update,
    /// The object is created, and never changed afterwards.
    CreateOnly,
    /// The API server merges, by field owners.
    ServerSideApply,
    /// Nothing is written; the object is only reported on.
    ReadOnly,
}

/// How server-side apply is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerSideApplyConfig {
    /// Whether fields are taken from their owners where there is a conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
    /// The name under which fields are owned; it begins with work-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(pattern(r"^work-agent"), extend("default" = "work-agent"))]
    pub field_manager: Option<String>,
    /// Fields of the manifest that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["condition"]))]
    pub ignore_fields: Vec<IgnoreField>,
}

/// Fields that are left out, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IgnoreField {
    /// When they are left out.
    #[serde(default)]
    #[schemars(extend("default" = "OnSpokePresent"))]
    pub condition: IgnoreFieldsCondition,
    /// The fields, as JSON paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_paths: Vec<String>,
    /// The fields, as JSON pointers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_pointers: Vec<String>,
    /// The fields, as jq expressions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jq_path_expressions: Vec<String>,
}

/// When fields are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IgnoreFieldsCondition {
    /// Once the object exists.
    #[default]
    OnSpokePresent,
    /// Until the manifest changes.
    OnSpokeChange,
}

/// A condition that is worked out from an object's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    ("self.type != 'CEL' || self.condition != ''", "name the condition that the celExpressions stand for: set condition"),
])))]
pub struct ConditionRule {
    /// The type of the condition, such as Progressing.
    pub condition: String,
    /// Whether what is known for the kind decides, or the expressions.
    #[serde(rename = "type")]
    pub kind: ConditionRuleType,
    /// Expressions that all have to be true, for the type CEL. `object` is the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cel_expressions: Vec<String>,
    /// The condition's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// An expression for the condition's message. `object` is the object, `result` whether the expressions were true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_expression: Option<String>,
}

/// What decides on a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionRuleType {
    /// What is known for the object's kind, such as the completion of a Job.
    WellKnownConditions,
    /// The expressions.
    #[serde(rename = "CEL")]
    Cel,
}

/// In whose name objects are applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Executor {
    /// Who it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<ExecutorSubject>,
}

/// Who applies objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutorSubject {
    /// What kind of subject it is.
    #[serde(rename = "type")]
    pub kind: ExecutorSubjectType,
    /// The service account on the managed cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ExecutorServiceAccount>,
}

/// What kind of subject applies objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ExecutorSubjectType {
    /// A service account of the managed cluster.
    ServiceAccount,
}

/// A service account of the managed cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutorServiceAccount {
    /// The account's namespace.
    #[schemars(length(min = 1, max = schema::MAX_NAME), pattern(DNS_NAME))]
    pub namespace: String,
    /// The account's name.
    #[schemars(length(min = 1, max = schema::MAX_NAME), pattern(DNS_NAME))]
    pub name: String,
}

const DNS_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$";

/// What became of a work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkStatus {
    /// Whether everything is applied, is there, and whatever the condition rules say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// What became of each object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_status: Option<ManifestResourceStatus>,
}

/// What became of each object of a work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManifestResourceStatus {
    /// One entry for each object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<ManifestStatus>,
}

/// What became of one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestStatus {
    /// Which object it is.
    pub resource_meta: ManifestResourceMeta,
    /// The values that the feedback rules ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_feedback: Option<StatusFeedback>,
    /// Whether the object is applied, is there, and whatever the condition rules say.
    #[serde(default)]
    #[schemars(required, schema_with = "schema::conditions", extend("default" = null))]
    pub conditions: Vec<Condition>,
}

/// An object of a work, with its place in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ManifestResourceMeta {
    /// The object's place in the work, from 0.
    pub ordinal: i32,
    /// The object's API group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The version of its API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its resource, in lower case and plural.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its namespace, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Values that were read from an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusFeedback {
    /// The values by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub values: Vec<FeedbackValue>,
}

/// One value that was read from an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackValue {
    /// The name that the rule gave it.
    pub name: String,
    /// The value.
    pub field_value: FieldValue,
}

/// A value with its type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldValue {
    /// Which of integer, string, boolean and jsonRaw holds the value.
    #[serde(rename = "type")]
    pub kind: FieldValueType,
    /// A whole number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integer: Option<i64>,
    /// A text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,
    /// True or false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boolean: Option<bool>,
    /// Anything else, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub json_raw: Option<String>,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FieldValueType {
    /// A whole number.
    Integer,
    /// A text.
    String,
    /// True or false.
    Boolean,
    /// Anything else, as JSON.
    JsonRaw,
}
