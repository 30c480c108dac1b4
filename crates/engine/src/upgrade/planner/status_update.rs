//! The status of an upgrade, and its events.

use drover_api::{
    cluster::{ManagedClustersUpgrade, ManagedClustersUpgradeStatus as Status, UpgradePhase},
    reference::ClusterName,
};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::{ListedPlacement, Turns, UpgradePlanner};
use crate::{
    placement::sets::Reach,
    plan::{Event, Plan, Write},
    upgrade::{facts::UpgradeFacts, state::UpgradeState, status::Facts, steering::acknowledge},
};

/// The condition of a placement that says why it selects no cluster.
const SATISFIED: &str = "PlacementSatisfied";

impl<F: UpgradeFacts> UpgradePlanner<'_, F> {
    /// Writes the status of the upgrade if it differs, or returns when that may be written. What other
    /// clusters wait for is written at once, and first.
    pub(super) fn update_status(
        &self,
        state: &UpgradeState,
        turns: &Turns,
        is_awaited: bool,
        plan: &mut Plan,
    ) -> Option<Timestamp> {
        let wanted = self.status(state, turns, state.tracker.rejections.of_plan(plan));
        if self.upgrade.status.as_ref() == Some(&wanted) {
            return None;
        }
        if !is_awaited && let Err(time) = state.tracker.throttle.check(self.now) {
            return Some(time);
        }
        let events = self.events(&wanted);
        let told = ManagedClustersUpgrade { status: Some(wanted), ..self.upgrade.clone() };
        let write = Write::status(self.upgrade, &told)?;
        plan.events.extend(events);
        if is_awaited {
            plan.ordered.push(write);
        } else {
            plan.parallel.push(write);
        }
        None
    }

    fn status(&self, state: &UpgradeState, turns: &Turns, rejection: Option<&str>) -> Status {
        let facts = Facts {
            stored: self.upgrade.status.as_ref(),
            generation: self.upgrade.metadata.generation,
            fleet: &state.tracker.index,
            hold: turns.hold.as_ref(),
            passed: turns.passed.as_ref(),
            has_canaries: self.settings.strategy.has_canaries,
            outside: state.outside.iter().map(ClusterName::as_str).collect(),
            unclear: self.unclear(state),
            complaints: self.settings.flaws.clone(),
            refusal: rejection,
            acknowledged: acknowledge(
                self.upgrade.annotations(),
                self.upgrade.status.as_ref().and_then(|status| status.acknowledged.as_ref()),
                self.now,
            ),
            limit: self.settings.strategy.limit,
            now: self.now,
        };
        facts.status()
    }

    /// Why it is not known which clusters the upgrade selects, or why it selects none.
    fn unclear(&self, state: &UpgradeState) -> Vec<String> {
        let placements = self.placements.iter().filter_map(|listed| self.unclear_placement(listed));
        let is_empty = state.tracker.index.tally().total == 0;
        let reach = match &self.reach {
            _ if self.settings.selector.is_none() => None,
            Reach::Unbound => Some(format!(
                "clusterSelector selects from the sets that the namespace {} is bound to, and there are none: make a ManagedClusterSetBinding",
                self.key.namespace
            )),
            Reach::NoIntersection { named } => Some(format!(
                "the namespace {} is not bound to {}: make a ManagedClusterSetBinding for it",
                self.key.namespace,
                named.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
            )),
            Reach::Sets(_) => is_empty.then(|| "clusterSelector matches no cluster of its sets".to_owned()),
        };
        placements.chain(reach).collect()
    }

    fn unclear_placement(&self, listed: &ListedPlacement) -> Option<String> {
        let key = &listed.key;
        match listed.decided {
            Ok(decided) if decided.clusters > 0 => None,
            Ok(_) => {
                let status = self.facts.placement(key).into_option().and_then(|placement| placement.status.as_ref());
                let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
                let said = conditions.find(|condition| condition.type_ == SATISFIED).map(|it| it.message.clone());
                Some(format!("the Placement {key} selects no cluster: {}", said.unwrap_or_default()))
            }
            Err(why) => Some(format!("the Placement {key} {why}; until then its clusters stay as they are")),
        }
    }

    fn events(&self, wanted: &Status) -> Vec<Event> {
        let before = self.upgrade.status.as_ref();
        let mut events = Vec::new();
        let message = |type_: &str| {
            let said = wanted.conditions.iter().find(|condition| condition.type_ == type_);
            said.map(|condition| condition.message.clone()).unwrap_or_default()
        };
        let passed = |status: Option<&Status>| status.and_then(|status| status.canaries_passed.clone());
        if wanted.canaries_passed.is_some() && passed(before) != wanted.canaries_passed {
            events.push(Event::normal(self.upgrade, "CanariesPassed", "all canaries are upgraded"));
        }
        let phase = wanted.phase.filter(|phase| before.and_then(|status| status.phase) != Some(*phase));
        events.extend(phase.and_then(|phase| match phase {
            UpgradePhase::Waiting => None,
            UpgradePhase::Canaries => Some(Event::normal(self.upgrade, "CanariesStarted", message("CanariesSelected"))),
            UpgradePhase::Upgrading => Some(Event::normal(self.upgrade, "UpgradeStarted", message("Selected"))),
            UpgradePhase::Paused => Some(Event::normal(self.upgrade, "UpgradePaused", "nothing more is begun")),
            UpgradePhase::Complete => Some(Event::normal(self.upgrade, "UpgradeComplete", message("Complete"))),
            UpgradePhase::Failed => Some(Event::warning(self.upgrade, "UpgradeFailed", message("Failed"))),
        }));
        events
    }
}
