//! An add-on, as the hub offers it: its default configuration, where it is installed, and how changes roll out.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AddOnConfig, AddOnRolloutStrategy, ConfigGroupResource, ConfigReferent, ConfigSpecHash, DefaultConfigReference,
    ManagedClusterAddOnSpec,
};
use crate::{
    grammar::{SpecHash, Version},
    reference::PlacementRef,
    schema::{self, MAX_CONFIGS, MAX_PLACEMENTS, rules},
};

/// What an add-on is, how it is configured, and where it is installed.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "addon.open-cluster-management.io",
    version = "v1alpha1",
    kind = "ClusterManagementAddOn",
    doc = "An add-on that can be installed on clusters. It says which clusters get it, with which configuration, and how changes roll out. On each of these clusters there is a ManagedClusterAddOn of the same name.",
    status = "ClusterManagementAddOnStatus",
    shortname = "cma",
    shortname = "cmas",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Progress", type_ = "string", json_path = ".status.summary.progress"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.defaultVersion"),
    printcolumn(name = "Available", type_ = "string", json_path = ".status.summary.available"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Install", type_ = "string", json_path = ".spec.installStrategy.type", priority = "1"),
    printcolumn(name = "Display name", type_ = "string", json_path = ".spec.addOnMeta.displayName", priority = "1")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "!has(self.defaultConfigs) || !has(self.supportedConfigs) || self.defaultConfigs.all(d, self.supportedConfigs.all(s, s.group != d.group || s.resource != d.resource || !has(s.defaultConfig) || d.name == '__reserved_no_default__' || (s.defaultConfig.name == d.name && (has(s.defaultConfig.__namespace__) ? s.defaultConfig.__namespace__ : '') == (has(d.__namespace__) ? d.__namespace__ : ''))))",
        "defaultConfigs and supportedConfigs name different objects for one group and resource: keep the one you mean"
    ),
])))]
pub struct ClusterManagementAddOnSpec {
    /// What the add-on is called and what it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_meta: Option<AddOnMeta>,
    /// Where the add-on's configuration is kept. Use defaultConfigs or supportedConfigs instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_configuration: Option<ConfigCoordinates>,
    /// The types of configuration that the add-on takes, each with the object that is used by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_CONFIGS), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["group", "resource"]))]
    pub supported_configs: Vec<ConfigMeta>,
    /// The configurations that are used by default. Placements and single clusters may use others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_CONFIGS), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["group", "resource"]))]
    pub default_configs: Vec<AddOnConfig>,
    /// Which clusters get the add-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = { "type": "Manual" }))]
    pub install_strategy: Option<InstallStrategy>,
}

/// What an add-on is called and what it is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnMeta {
    /// The name that people see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What the add-on is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Where an add-on's configuration is kept, in an older form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigCoordinates {
    /// The name of the configuration's CRD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crd_name: Option<String>,
    /// The name of the configuration's object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cr_name: Option<String>,
    /// The generation of the object that was last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_observed_generation: Option<i64>,
}

/// A type of configuration that an add-on takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMeta {
    /// The configuration's type.
    #[serde(flatten)]
    pub group_resource: ConfigGroupResource,
    /// The object that is used by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_config: Option<ConfigReferent>,
}

/// Which clusters get an add-on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "self.type != 'Placements' || (has(self.placements) && size(self.placements) > 0)",
        "type Placements needs at least one placement: add it under placements, or use type Manual"
    ),
    (
        "self.type == 'ClusterLabelSelector' || !has(self.labelSelector)",
        "labelSelector belongs to type ClusterLabelSelector: set that type, or remove labelSelector"
    ),
    (
        "self.type != 'ClusterLabelSelector' || has(self.labelSelector)",
        "type ClusterLabelSelector needs labelSelector: set it, or use type Manual"
    ),
])))]
pub struct InstallStrategy {
    /// Whether clusters are chosen by hand, by placements, or by their labels; Manual where it is not set.
    #[serde(rename = "type", default)]
    #[schemars(extend("default" = "Manual"))]
    pub kind: InstallStrategyType,
    /// The labels of the clusters that get the add-on, for the type ClusterLabelSelector. An empty selector chooses all clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::strict_label_selector")]
    pub label_selector: Option<LabelSelector>,
    /// The placements whose clusters get the add-on; they count for the type Placements only. A cluster that several of them
    /// select follows the last, unless it is a canary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_PLACEMENTS), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["namespace", "name"]))]
    pub placements: Vec<PlacementStrategy>,
}

/// How the clusters that get an add-on are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InstallStrategyType {
    /// By hand: whoever creates a ManagedClusterAddOn installs the add-on there.
    #[default]
    Manual,
    /// By placements.
    Placements,
    /// By the clusters' labels.
    ClusterLabelSelector,
}

/// A placement whose clusters get an add-on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "!has(self.rolloutStrategy) || !has(self.rolloutStrategy.rollingUpdateWithCanary) || self.rolloutStrategy.rollingUpdateWithCanary.placement.name != self.name || self.rolloutStrategy.rollingUpdateWithCanary.placement.__namespace__ != self.__namespace__",
        "a placement can not be its own canary: name another placement in rollingUpdateWithCanary.placement"
    ),
])))]
pub struct PlacementStrategy {
    /// The placement.
    #[serde(flatten)]
    pub placement: PlacementRef,
    /// The configurations that the placement's clusters get instead of the defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_CONFIGS))]
    pub configs: Vec<AddOnConfig>,
    /// What add-ons look like when they are created for this placement's clusters. Its installVersion and configs keep
    /// applying afterwards; what a user changes on an add-on is never changed back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules([
        (
            "!has(self.installVersion) || !has(self.desiredVersion) || self.installVersion == self.desiredVersion",
            "installVersion and desiredVersion are two names of one setting: keep one of them"
        ),
    ])))]
    pub addon_template: Option<ManagedClusterAddOnSpec>,
    /// How changes of configuration reach the placement's clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = { "type": "All" }))]
    pub rollout_strategy: Option<AddOnRolloutStrategy>,
}

/// What an add-on has come to on all its clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterManagementAddOnStatus {
    /// The state of the add-on on all its clusters, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<AddOnSummary>,
    /// The default configurations, as they were found.
    #[serde(default, rename = "defaultconfigReferences", skip_serializing_if = "Vec::is_empty")]
    pub default_config_references_v1alpha1: Vec<DefaultConfigReference>,
    /// The default configurations, as they were found; the same as defaultconfigReferences, for clients that speak v1beta1.
    #[serde(default, rename = "defaultConfigReferences", skip_serializing_if = "Vec::is_empty")]
    pub default_config_references_v1beta1: Vec<DefaultConfigReference>,
    /// The state of each placement, with the configurations and hashes that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub install_progressions: Vec<InstallProgression>,
    /// The state of each placement; the same as installProgressions, with flat hashes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub install_progression: Vec<FlatInstallProgression>,
    /// The versions that the add-on can be installed in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema::MAX_VERSIONS))]
    pub supported_versions: Vec<Version>,
    /// The version that is installed where none is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_version: Option<Version>,
}

/// The state of an add-on on all its clusters, in a few words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AddOnSummary {
    /// What is going on, such as 100/400 upgrading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// On how many clusters out of how many the add-on is available, such as 398/400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<String>,
}

/// The state of an add-on on the clusters of one placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallProgression {
    /// The placement.
    #[serde(flatten)]
    pub placement: PlacementRef,
    /// The configurations of the placement's clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_references: Vec<InstallConfigReference>,
    /// Whether a change is rolling out, waits, is done, or has failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// One configuration of a placement's clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallConfigReference {
    /// The configuration's type.
    #[serde(flatten)]
    pub group_resource: ConfigGroupResource,
    /// The state of it that is wanted now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_config: Option<ConfigSpecHash>,
    /// The last state of it that the canaries were well with, or that was applied everywhere where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known_good_config: Option<ConfigSpecHash>,
    /// The last state of it that was applied on all the placement's clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_config: Option<ConfigSpecHash>,
}

/// The state of an add-on on the clusters of one placement, with flat hashes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlatInstallProgression {
    /// The placement.
    #[serde(flatten)]
    pub placement: PlacementRef,
    /// The configurations of the placement's clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_references: Vec<FlatInstallConfigReference>,
    /// Whether a change is rolling out, waits, is done, or has failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// One configuration of a placement's clusters, with flat hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlatInstallConfigReference {
    /// The configuration.
    #[serde(flatten)]
    pub config: AddOnConfig,
    /// The hash of the content that is wanted now.
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub desired_config_spec_hash: SpecHash,
    /// The hash of the last content that the canaries were well with, or that was applied everywhere where there are none.
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub last_known_good_config_spec_hash: SpecHash,
    /// The hash of the last content that was applied on all the placement's clusters.
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub last_applied_config_spec_hash: SpecHash,
}
