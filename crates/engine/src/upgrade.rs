//! Upgrades of clusters: which clusters, in which order, and what is done about each of them.
//!
//! One cluster is a [member](member) with a record that says in which phase it is; a look at it says what is to be done next. Whose turn it is,
//! is [planned](plan) from how all of them stand. Nothing here interrupts a cluster that is under way.

pub mod action;
pub mod approval;
mod deletion;
pub mod facts;
pub mod feedback;
pub mod member;
pub mod naming;
pub mod operator_work;
pub mod plan;
mod planner;
pub mod platform;
pub mod reason;
pub mod selection;
mod settings;
mod state;
pub mod status;
pub mod steering;
pub mod tally;
pub mod target;
pub mod upgrade_work;
pub mod work;

use k8s_openapi::jiff::Timestamp;

use self::{facts::UpgradeFacts, planner::UpgradePlanner};
pub use self::{settings::UpgradeSettings, state::UpgradeState};
use crate::plan::{ObjectKey, Plan};

/// Plans an upgrade. Also returns how many clusters were observed.
pub fn plan<F: UpgradeFacts>(facts: &F, key: &ObjectKey, state: &mut UpgradeState, now: Timestamp) -> (Plan, usize) {
    let (Some(upgrade), Some(settings)) = (facts.upgrade(key), facts.settings(key)) else {
        *state = UpgradeState::default();
        return (Plan::default(), 0);
    };
    if upgrade.metadata.deletion_timestamp.is_some() {
        return (deletion::delete(facts, upgrade, settings, now), 0);
    }
    if let Some(write) = deletion::add_finalizer(upgrade) {
        return (Plan::from_iter([write]), 0);
    }
    UpgradePlanner::new(facts, key, upgrade, settings, now).plan(state)
}
