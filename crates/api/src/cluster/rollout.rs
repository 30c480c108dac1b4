//! OCM's rollout strategies, which add-ons and replicated works share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::grammar::{CountOrPercentage, Deadline, GoDuration, Lenient};

/// How a change reaches the clusters of a placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategy {
    /// Which strategy it is; All where it is not set.
    #[serde(rename = "type", default)]
    #[schemars(extend("default" = "All"))]
    pub kind: RolloutType,
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
pub enum RolloutType {
    /// All clusters at once.
    #[default]
    All,
    /// A number of clusters at a time, mandatory groups before the rest.
    Progressive,
    /// One decision group after the other.
    ProgressivePerGroup,
}

/// When a cluster counts as done or failed, and how many may fail.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutLimits {
    /// How long a cluster has to stay well before it counts as done, such as 10m; not at all where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "0"))]
    pub min_success_time: Option<Lenient<GoDuration>>,
    /// How long a cluster may take before it counts as failed, such as 1h30m, or None for no limit; None where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "None"))]
    pub progress_deadline: Option<Lenient<Deadline>>,
    /// How many clusters may fail before no further ones are started: a number such as 5, or a percentage such as 10%; 0
    /// where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub max_failures: Option<CountOrPercentage>,
}

/// The deadline of OCM's strategies under whichever of its names it was given. The API server fills
/// `progressDeadline` in with `None`, so that value does not hide a timeout.
fn deadline<'a>(limits: &'a RolloutLimits, timeout: Option<&'a Lenient<Deadline>>) -> Option<&'a Lenient<Deadline>> {
    match &limits.progress_deadline {
        None | Some(Lenient::Read(Deadline::Never)) => timeout.or(limits.progress_deadline.as_ref()),
        given => given.as_ref(),
    }
}

/// Settings of a rollout to all clusters at once. Of these only the deadline has an effect, as in OCM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutAll {
    /// When a cluster counts as failed.
    #[serde(flatten)]
    pub limits: RolloutLimits,
    /// The former name of progressDeadline, used where that one is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Lenient<Deadline>>,
}

impl RolloutAll {
    /// How long a cluster may take, under either name of the setting.
    #[must_use]
    pub fn deadline(&self) -> Option<&Lenient<Deadline>> {
        deadline(&self.limits, self.timeout.as_ref())
    }
}

/// Settings of a rollout to a number of clusters at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutProgressive {
    /// When a cluster counts as done or failed.
    #[serde(flatten)]
    pub limits: RolloutLimits,
    /// Groups that have to be done, one after the other and without a failure, before any other cluster is started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mandatory_decision_groups: Vec<MandatoryDecisionGroup>,
    /// How many clusters may be on their way at one time: a number such as 5, or a percentage such as 25%. Without it,
    /// the placement's clustersPerDecisionGroup decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<CountOrPercentage>,
    /// The former name of progressDeadline, used where that one is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Lenient<Deadline>>,
}

impl RolloutProgressive {
    /// How long a cluster may take, under either name of the setting.
    #[must_use]
    pub fn deadline(&self) -> Option<&Lenient<Deadline>> {
        deadline(&self.limits, self.timeout.as_ref())
    }
}

/// Settings of a rollout to one decision group after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutProgressivePerGroup {
    /// When a cluster counts as done or failed.
    #[serde(flatten)]
    pub limits: RolloutLimits,
    /// Groups that have to be done, one after the other and without a failure, before any other group is started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mandatory_decision_groups: Vec<MandatoryDecisionGroup>,
    /// The former name of progressDeadline, used where that one is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Lenient<Deadline>>,
}

impl RolloutProgressivePerGroup {
    /// How long a cluster may take, under either name of the setting.
    #[must_use]
    pub fn deadline(&self) -> Option<&Lenient<Deadline>> {
        deadline(&self.limits, self.timeout.as_ref())
    }
}

/// A decision group, by name, or by index where the name is not set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MandatoryDecisionGroup {
    /// The name of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_name: Option<String>,
    /// The index of the group, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_index: Option<i32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deadline_of(json: serde_json::Value) -> Option<String> {
        let all: RolloutAll = serde_json::from_value(json).expect("valid settings");
        all.deadline().map(ToString::to_string)
    }

    #[test]
    fn timeout_is_the_deadline_where_only_the_default_stands_beside_it() {
        let json = |text| serde_json::from_str(text).expect("JSON");
        assert_eq!(deadline_of(json(r#"{"timeout": "30m"}"#)).as_deref(), Some("30m"));
        assert_eq!(deadline_of(json(r#"{"timeout": "30m", "progressDeadline": "None"}"#)).as_deref(), Some("30m"));
        assert_eq!(deadline_of(json(r#"{"timeout": "30m", "progressDeadline": "1h"}"#)).as_deref(), Some("1h"));
        assert_eq!(deadline_of(json("{}")), None);
    }

    #[test]
    fn what_ocm_lets_through_and_nobody_can_read_is_kept_and_complained_about() {
        let json = serde_json::json!({ "progressDeadline": "1hour", "minSuccessTime": "soon" });
        let all: RolloutAll = serde_json::from_value(json.clone()).expect("a bad field does not hide the object");
        let complaint = all.deadline().expect("it is set").complaint().expect("it can not be read");
        assert!(complaint.to_string().contains("\"1hour\" is not a duration"), "{complaint}");
        assert_eq!(serde_json::to_value(all).expect("JSON"), json);
    }
}
