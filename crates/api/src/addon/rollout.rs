//! How a change to an add-on's configuration reaches the clusters of a placement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    cluster::{RolloutAll, RolloutLimits, RolloutProgressive, RolloutProgressivePerGroup},
    grammar::WindowSize,
    reference::PlacementRef,
    schema::rules,
};

/// How a change reaches the clusters of a placement: by a strategy of OCM's, or by one that waits for canaries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "!has(self.rollingUpdate) || self.type == 'RollingUpdate'",
        "rollingUpdate belongs to type RollingUpdate: set that type, or remove rollingUpdate"
    ),
    (
        "!has(self.rollingUpdateWithCanary) || self.type == 'RollingUpdateWithCanary'",
        "rollingUpdateWithCanary belongs to type RollingUpdateWithCanary: set that type, or remove rollingUpdateWithCanary"
    ),
    (
        "self.type != 'RollingUpdateWithCanary' || has(self.rollingUpdateWithCanary)",
        "type RollingUpdateWithCanary needs its canaries: set rollingUpdateWithCanary.placement"
    ),
    (
        "self.type in ['All', 'Progressive', 'ProgressivePerGroup'] || !(has(self.all) || has(self.progressive) || has(self.progressivePerGroup))",
        "all, progressive and progressivePerGroup belong to the types All, Progressive and ProgressivePerGroup: change the type, or remove them"
    ),
])))]
pub struct AddOnRolloutStrategy {
    /// Which strategy it is; All where it is not set.
    #[serde(rename = "type", default)]
    #[schemars(extend("default" = "All"))]
    pub kind: AddOnRolloutType,
    /// Settings for the type RollingUpdate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,
    /// Settings for the type RollingUpdateWithCanary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update_with_canary: Option<RollingUpdateWithCanary>,
    /// Settings for the type All, of which only the deadline has an effect, as in OCM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<RolloutAll>,
    /// Settings for the type Progressive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progressive: Option<RolloutProgressive>,
    /// Settings for the type ProgressivePerGroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progressive_per_group: Option<RolloutProgressivePerGroup>,
}

/// Which strategy brings a change to the clusters of a placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AddOnRolloutType {
    /// All clusters at once.
    UpdateAll,
    /// A number of clusters at a time; the next is begun when one of them runs the change and is healthy.
    RollingUpdate,
    /// As RollingUpdate, once every cluster of the canary placement runs the change and is healthy.
    RollingUpdateWithCanary,
    /// All clusters at once, as OCM does it.
    #[default]
    All,
    /// A number of clusters at a time, mandatory groups before the rest, as OCM does it.
    Progressive,
    /// One decision group after the other, as OCM does it.
    ProgressivePerGroup,
}

/// Settings of a rollout to a number of clusters at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdate {
    /// How many clusters may be on their way at one time: a number such as 5, or a percentage of the placement's clusters
    /// such as 25%, rounded up. 25% where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "25%"))]
    pub max_concurrently_updating: Option<WindowSize>,
    /// When a cluster counts as done or failed, and how many may fail.
    #[serde(flatten)]
    pub limits: RolloutLimits,
}

/// Settings of a rollout that waits for canaries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RollingUpdateWithCanary {
    /// The placement whose clusters are the canaries. List it among the add-on's placements too, or upgrade its
    /// clusters by hand: this alone moves nobody.
    pub placement: PlacementRef,
    /// How the rollout goes once the canaries are well.
    #[serde(flatten)]
    pub rolling_update: RollingUpdate,
}
