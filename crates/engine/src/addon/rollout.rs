//! The rollouts of an add-on: what each cluster is assigned, and what is recorded and reported of it.

pub mod notes;
mod planner;
mod rejected_record;
mod state;
mod status_update;

use std::collections::BTreeSet;

use drover_api::{
    addon::ClusterManagementAddOn,
    drover::{AddOnRollout, AddOnRolloutSpec, AddOnRolloutStatus, RolloutProgress},
    grammar::SetFingerprint,
};
use k8s_openapi::jiff::Timestamp;
use kube::{Resource, ResourceExt};

pub use self::state::AddOnRolloutState;
use self::{
    planner::RolloutPlanner,
    rejected_record::{RecordKind, RejectedRecord},
};
use super::{
    configuration::{ConfigName, Problem},
    facts::AddOnFacts,
    inheritance::is_managed,
};
use crate::{
    owner::own,
    plan::{Event, ObjectKey, Plan, Write},
    presence::Source,
    revision::{Overrides, Set},
    rollout::Revision,
};

/// The reason of the event that says that the server rejects what has to be recorded first.
const BLOCKED: &str = "RolloutBlocked";

impl Revision for Set {
    type Overrides = Overrides;
    type Part = ConfigName;
    type Problem = Problem;

    fn with_overrides(&self, overrides: &Overrides) -> SetFingerprint {
        self.with(overrides).fingerprint()
    }
}

/// Plans the rollouts of an add-on.
pub fn plan<F: AddOnFacts>(facts: &F, key: &ObjectKey, state: &mut AddOnRolloutState, now: Timestamp) -> Plan {
    let addon = facts.addon(key).filter(|addon| addon.metadata.deletion_timestamp.is_none());
    let Some(addon) = addon.filter(|addon| is_managed(addon)) else {
        *state = AddOnRolloutState::default();
        return Plan::default();
    };
    let rejected = state.rejected.clone().filter(|rejected| rejected.holds(now));
    // The status of the add-on can still be written when its record cannot.
    let is_record_rejected = rejected.as_ref().is_some_and(|rejected| rejected.kind == RecordKind::Rollout);
    let stored = facts.rollout(key);
    if let Some(write) = ensure_record(stored, addon).filter(|_| !is_record_rejected) {
        return Plan::from_iter([write]);
    }
    let record = stored.cloned().unwrap_or_else(|| new_record(addon));
    let planner = RolloutPlanner { facts, key, addon, record: &record, rejected: rejected.as_ref(), now };
    let plan = planner.plan(state);
    match rejected {
        Some(rejected) => report_blocked(addon, &rejected, plan),
        None => plan,
    }
}

/// The plan, which is made again when what was rejected is sent again. When everything else is
/// written, an event says so.
fn report_blocked(addon: &ClusterManagementAddOn, rejected: &RejectedRecord, plan: Plan) -> Plan {
    let wake = plan.wake.into_iter().chain([rejected.again]).min();
    let is_quiet = plan.ordered.is_empty() && plan.parallel.is_empty();
    let event = (is_quiet && !rejected.is_announced)
        .then(|| Event::warning(addon, BLOCKED, format!("nobody new is given anything: {}", rejected.why)));
    Plan { wake, ..plan }.with_events(event)
}

/// Creates the record of an add-on's rollouts, or makes the add-on its owner; `None` if both is done.
fn ensure_record(stored: Option<&AddOnRollout>, addon: &ClusterManagementAddOn) -> Option<Write> {
    match stored {
        None => Some(Write::create(new_record(addon))),
        // A record that an add-on of this name has left behind would be deleted with that one.
        Some(record) => Write::update(record, &owned(record, addon)),
    }
}

/// The record of an add-on's rollouts, which is deleted with the add-on.
fn new_record(addon: &ClusterManagementAddOn) -> AddOnRollout {
    owned(&AddOnRollout::new(&addon.name_any(), AddOnRolloutSpec {}), addon)
}

fn owned(record: &AddOnRollout, addon: &ClusterManagementAddOn) -> AddOnRollout {
    let mut wanted = record.clone();
    if let Some(owner) = addon.controller_owner_ref(&()) {
        own(wanted.owner_references_mut(), &owner);
    }
    wanted
}

/// The revisions that are recorded.
#[must_use]
pub fn recorded_revisions(status: &AddOnRolloutStatus) -> BTreeSet<SetFingerprint> {
    status.sets.iter().map(|set| set.fingerprint.clone()).collect()
}

/// What is remembered of an entry.
pub(crate) fn progress_of(status: &AddOnRolloutStatus, source: &Source) -> RolloutProgress {
    match source {
        Source::Nobody => status.defaults.clone(),
        Source::Listed(placement) | Source::Canaries(placement) => {
            let found = status.placements.iter().find(|known| known.placement == *placement);
            found.map(|known| known.progress.clone())
        }
    }
    .unwrap_or_default()
}
