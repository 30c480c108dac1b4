//! How a change reaches the clusters of a placement, whichever of the two dialects it was written in.

use std::time::Duration;

use drover_api::{
    addon::{AddOnRolloutStrategy, AddOnRolloutType, RollingUpdate},
    cluster::{MandatoryDecisionGroup, RolloutLimits, RolloutStrategy, RolloutType},
    grammar::{CountOrPercentage, Deadline, Lenient, WindowSize},
    reference::PlacementRef,
};

use super::member::Group;

/// How many clusters are moved at one time where nobody has said.
const USUAL_WINDOW: u8 = 25;

/// How a change reaches the clusters of a placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    /// How many clusters may be on their way.
    pub window: Window,
    /// Which clusters have to be done before others are begun.
    pub stages: Stages,
    /// Who comes first within a stage.
    pub order: Order,
    /// How long a cluster has to stay well before it counts as done.
    pub soak: Duration,
    /// How long a cluster may take before it counts as failed.
    pub deadline: Option<Duration>,
    /// How many clusters may fail.
    pub budget: Budget,
    /// The placement whose clusters have to be well with a change before it comes here.
    pub canary: Option<PlacementRef>,
}

impl Strategy {
    /// Whether clusters wait for each other.
    #[must_use]
    pub fn is_gradual(&self) -> bool {
        self.window != Window::All || self.stages != Stages::One || !self.soak.is_zero()
    }
}

/// How many clusters may be on their way at one time.
#[derive(Clone, Debug, PartialEq)]
pub enum Window {
    /// All of them.
    All,
    /// So many, and at least one.
    AtMost(CountOrPercentage),
}

impl Window {
    /// How many out of how many.
    #[must_use]
    pub fn of(&self, total: usize) -> usize {
        match self {
            Self::All => usize::MAX,
            Self::AtMost(size) => size.window(total),
        }
    }
}

/// Which clusters have to be done before others are begun.
#[derive(Clone, Debug, PartialEq)]
pub enum Stages {
    /// None.
    One,
    /// Some decision groups, one after the other, and then all others.
    Mandatory(Vec<MandatoryDecisionGroup>),
    /// Some decision groups, one after the other, and then the other ones, one after the other too.
    PerGroup(Vec<MandatoryDecisionGroup>),
}

/// A part of a placement's clusters that has to be done before the next is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// A group that had to come first, and may not fail at all.
    Mandatory(usize),
    /// A group among the others; all others are one where groups do not matter.
    Other(u32),
}

impl Stages {
    /// The stage that clusters of a group belong to.
    #[must_use]
    pub fn of(&self, group: &Group) -> Stage {
        let position = |mandatory: &[MandatoryDecisionGroup]| mandatory.iter().position(|named| is_named(group, named));
        match self {
            Self::One => Stage::Other(0),
            Self::Mandatory(mandatory) => position(mandatory).map_or(Stage::Other(0), Stage::Mandatory),
            Self::PerGroup(mandatory) => position(mandatory).map_or(Stage::Other(group.index), Stage::Mandatory),
        }
    }
}

fn is_named(group: &Group, named: &MandatoryDecisionGroup) -> bool {
    match named.group_name.as_deref() {
        Some(name) if !name.is_empty() => group.name.as_deref() == Some(name),
        _ => u32::try_from(named.group_index.unwrap_or_default()) == Ok(group.index),
    }
}

/// Who comes first within a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Group by group, scattered within each, so that neighbours are not hit together.
    Scattered,
    /// By name, as OCM does it.
    ByName,
}

/// How many clusters may fail.
#[derive(Clone, Debug, PartialEq)]
pub enum Budget {
    /// Failures stop nothing.
    Unlimited,
    /// So many.
    AtMost(CountOrPercentage),
}

impl Budget {
    /// How many out of how many.
    #[must_use]
    pub fn of(&self, total: usize) -> usize {
        match self {
            Self::Unlimited => usize::MAX,
            Self::AtMost(count) => count.of(total),
        }
    }
}

/// A setting of a strategy that nobody can read, which only OCM's schema lets through.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rolloutStrategy: {field}: {complaint}")]
pub struct Unreadable {
    /// Which one.
    pub field: &'static str,
    /// What is wrong with it.
    pub complaint: String,
}

impl Default for Strategy {
    /// All clusters at once, whatever comes of it.
    fn default() -> Self {
        Self {
            window: Window::All,
            stages: Stages::One,
            order: Order::Scattered,
            soak: Duration::ZERO,
            deadline: None,
            budget: Budget::Unlimited,
            canary: None,
        }
    }
}

impl Strategy {
    /// What a strategy of either dialect means. `per_group` is how many clusters the placement puts into a decision group.
    pub fn read(written: Option<&AddOnRolloutStrategy>, per_group: Option<&WindowSize>) -> Result<Self, Unreadable> {
        let Some(written) = written else { return Ok(Self::default()) };
        match written.kind {
            AddOnRolloutType::UpdateAll => Ok(Self::default()),
            AddOnRolloutType::RollingUpdate => rolling(written.rolling_update.as_ref()),
            AddOnRolloutType::RollingUpdateWithCanary => {
                let with_canary = written.rolling_update_with_canary.as_ref();
                let canary = with_canary.map(|with_canary| with_canary.placement.clone());
                Ok(Self { canary, ..rolling(with_canary.map(|with_canary| &with_canary.rolling_update))? })
            }
            AddOnRolloutType::All => {
                let deadline = deadline(written.all.as_ref().and_then(|all| all.deadline()))?;
                Ok(Self { deadline, order: Order::ByName, ..Self::default() })
            }
            AddOnRolloutType::Progressive => progressive(written, per_group),
            AddOnRolloutType::ProgressivePerGroup => per_group_strategy(written),
        }
    }

    /// What a strategy of OCM's means, as sets of works have it.
    pub fn of_ocm(written: Option<&RolloutStrategy>, per_group: Option<&WindowSize>) -> Result<Self, Unreadable> {
        let written = written.cloned().unwrap_or_default();
        let kind = match written.kind {
            RolloutType::All => AddOnRolloutType::All,
            RolloutType::Progressive => AddOnRolloutType::Progressive,
            RolloutType::ProgressivePerGroup => AddOnRolloutType::ProgressivePerGroup,
        };
        let RolloutStrategy { all, progressive, progressive_per_group, .. } = written;
        let written = AddOnRolloutStrategy { kind, all, progressive, progressive_per_group, ..Default::default() };
        Self::read(Some(&written), per_group)
    }

    /// How many failures a stage tolerates: none where it is mandatory.
    #[must_use]
    pub fn tolerated(&self, stage: Stage, size_of_stage: usize, total: usize) -> usize {
        match (stage, &self.stages) {
            (Stage::Mandatory(_), _) => 0,
            (Stage::Other(_), Stages::PerGroup(_)) => self.budget.of(size_of_stage),
            (Stage::Other(_), _) => self.budget.of(total),
        }
    }
}

fn rolling(settings: Option<&RollingUpdate>) -> Result<Strategy, Unreadable> {
    let size = settings.and_then(|settings| settings.max_concurrently_updating.clone());
    let size = size.map_or_else(|| CountOrPercentage::percent(USUAL_WINDOW), |size| size.0);
    limited(settings.map(|settings| &settings.limits), Strategy { window: Window::AtMost(size), ..Strategy::default() })
}

fn progressive(written: &AddOnRolloutStrategy, per_group: Option<&WindowSize>) -> Result<Strategy, Unreadable> {
    let settings = written.progressive.clone().unwrap_or_default();
    // No limit and a limit of nothing mean the same to OCM.
    let is_limit = |size: &CountOrPercentage| size.of(usize::MAX / 100) > 0;
    let size = settings.max_concurrency.clone().or_else(|| per_group.map(|size| size.0.clone()));
    let window = size.filter(is_limit).map_or(Window::All, Window::AtMost);
    let stages = Stages::Mandatory(settings.mandatory_decision_groups.clone());
    let strategy =
        limited(Some(&settings.limits), Strategy { window, stages, order: Order::ByName, ..Strategy::default() })?;
    Ok(Strategy { deadline: deadline(settings.deadline())?, ..strategy })
}

fn per_group_strategy(written: &AddOnRolloutStrategy) -> Result<Strategy, Unreadable> {
    let settings = written.progressive_per_group.clone().unwrap_or_default();
    let stages = Stages::PerGroup(settings.mandatory_decision_groups.clone());
    let strategy = limited(Some(&settings.limits), Strategy { stages, order: Order::ByName, ..Strategy::default() })?;
    Ok(Strategy { deadline: deadline(settings.deadline())?, ..strategy })
}

/// The strategy, with the limits that were set.
fn limited(limits: Option<&RolloutLimits>, strategy: Strategy) -> Result<Strategy, Unreadable> {
    let limits = limits.cloned().unwrap_or_default();
    let soak = match &limits.min_success_time {
        None => Duration::ZERO,
        Some(Lenient::Read(soak)) => soak.get(),
        Some(unreadable) => return Err(complaint("minSuccessTime", unreadable.complaint())),
    };
    let budget = Budget::AtMost(limits.max_failures.clone().unwrap_or_else(|| CountOrPercentage::count(0)));
    Ok(Strategy { soak, deadline: deadline(limits.progress_deadline.as_ref())?, budget, ..strategy })
}

fn deadline(written: Option<&Lenient<Deadline>>) -> Result<Option<Duration>, Unreadable> {
    match written {
        None => Ok(None),
        Some(Lenient::Read(deadline)) => Ok(deadline.get()),
        Some(unreadable) => Err(complaint("progressDeadline", unreadable.complaint())),
    }
}

fn complaint(field: &'static str, complaint: Option<impl std::fmt::Display>) -> Unreadable {
    Unreadable { field, complaint: complaint.map(|complaint| complaint.to_string()).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(written: Value) -> Result<Strategy, Unreadable> {
        let written: AddOnRolloutStrategy = serde_json::from_value(written).expect("a valid strategy");
        Strategy::read(Some(&written), Some(&WindowSize(CountOrPercentage::count(7))))
    }

    fn strategy(written: Value) -> Strategy {
        read(written).expect("a readable strategy")
    }

    #[test]
    fn nothing_said_is_all_at_once() {
        assert_eq!(Strategy::read(None, None), Ok(Strategy::default()));
        assert_eq!(strategy(json!({ "type": "UpdateAll" })), Strategy::default());
    }

    #[test]
    fn a_rolling_update_moves_a_quarter_at_a_time_and_tolerates_nothing() {
        let rolling = strategy(json!({ "type": "RollingUpdate" }));
        assert_eq!((rolling.window.of(400), rolling.window.of(5), rolling.window.of(0)), (100, 2, 1));
        assert_eq!(rolling.tolerated(Stage::Other(0), 400, 400), 0);
        let limited = strategy(json!({ "type": "RollingUpdate", "rollingUpdate": {
            "maxConcurrentlyUpdating": 3, "minSuccessTime": "5m", "progressDeadline": "1h", "maxFailures": "10%"
        } }));
        assert_eq!((limited.window.of(400), limited.tolerated(Stage::Other(0), 400, 400)), (3, 40));
        assert_eq!((limited.soak, limited.deadline), (Duration::from_mins(5), Some(Duration::from_hours(1))));
    }

    #[test]
    fn canaries_are_named_by_their_placement() {
        let canary = strategy(json!({ "type": "RollingUpdateWithCanary", "rollingUpdateWithCanary": {
            "placement": { "namespace": "default", "name": "canary" }, "maxConcurrentlyUpdating": "50%"
        } }));
        assert_eq!(canary.canary.map(|canary| canary.to_string()).as_deref(), Some("default/canary"));
        assert_eq!(canary.window.of(10), 5);
    }

    #[test]
    fn all_in_the_words_of_ocm_has_only_a_deadline() {
        let all = strategy(
            json!({ "type": "All", "all": { "minSuccessTime": "5m", "progressDeadline": "1h", "maxFailures": 1 } }),
        );
        assert_eq!((all.soak, all.deadline), (Duration::ZERO, Some(Duration::from_hours(1))));
        assert_eq!((all.window.of(9), all.tolerated(Stage::Other(0), 9, 9)), (usize::MAX, usize::MAX));
    }

    #[test]
    fn a_progressive_rollout_goes_by_the_size_of_groups_where_it_is_not_told() {
        assert_eq!(strategy(json!({ "type": "Progressive" })).window.of(100), 7);
        let of = |size: Value| {
            strategy(json!({ "type": "Progressive", "progressive": { "maxConcurrency": size } })).window.of(100)
        };
        assert_eq!((of(json!(3)), of(json!("20%")), of(json!(0)), of(json!("0%"))), (3, 20, usize::MAX, usize::MAX));
    }

    #[test]
    fn mandatory_groups_come_first_and_tolerate_nothing() {
        let group = |index, name: &str| Group { index, name: Some(name.into()) };
        let groups =
            json!({ "maxFailures": 2, "mandatoryDecisionGroups": [{ "groupName": "b" }, { "groupIndex": 0 }] });
        let progressive = strategy(json!({ "type": "Progressive", "progressive": groups }));
        let stage = |strategy: &Strategy, index, name| strategy.stages.of(&group(index, name));
        assert_eq!(stage(&progressive, 0, "a"), Stage::Mandatory(1));
        assert_eq!(stage(&progressive, 1, "b"), Stage::Mandatory(0));
        assert_eq!(stage(&progressive, 2, "c"), Stage::Other(0));
        assert_eq!(progressive.tolerated(Stage::Mandatory(0), 9, 9), 0);
        let per_group = strategy(json!({ "type": "ProgressivePerGroup", "progressivePerGroup": groups }));
        assert_eq!(stage(&per_group, 2, "c"), Stage::Other(2));
        assert!(Stage::Mandatory(9) < Stage::Other(0));
    }

    #[test]
    fn a_budget_above_all_clusters_is_all_of_them() {
        let generous = strategy(json!({ "type": "Progressive", "progressive": { "maxFailures": 99 } }));
        assert_eq!(generous.tolerated(Stage::Other(0), 4, 4), 4);
    }

    #[test]
    fn a_setting_that_nobody_can_read_is_named() {
        let error =
            read(json!({ "type": "All", "all": { "progressDeadline": "1hour" } })).expect_err("it is unreadable");
        assert!(
            error.to_string().starts_with("rolloutStrategy: progressDeadline: \"1hour\" is not a duration"),
            "{error}"
        );
    }
}
