//! Sets of works: one work for each cluster that the placements of a ManifestWorkReplicaSet select.
//!
//! Which cluster is assigned the template when is decided by the [planner of rollouts](crate::rollout),
//! the same as for add-ons. Here is what that is told of each cluster, what the works are called, which
//! of them are removed, and what is reported of the whole set.

mod deletion;
pub mod facts;
pub mod member;
pub mod naming;
pub mod placed_work;
mod planner;
pub mod revision;
pub mod selection;
mod state;
pub mod status;
pub mod tally;
mod work_template;

use k8s_openapi::jiff::Timestamp;

use self::{facts::ReplicaSetFacts, planner::ReplicaSetPlanner};
pub use self::{state::ReplicaSetState, work_template::WorkTemplate};
use crate::plan::{ObjectKey, Plan};

/// Plans a set of works. Also returns how many clusters were observed.
pub fn plan<F: ReplicaSetFacts>(
    facts: &F,
    key: &ObjectKey,
    state: &mut ReplicaSetState,
    now: Timestamp,
) -> (Plan<F::Action>, usize) {
    let (Some(set), Some(template)) = (facts.replica_set(key), facts.work_template(key)) else {
        *state = ReplicaSetState::default();
        return (Plan::default(), 0);
    };
    if set.metadata.deletion_timestamp.is_some() {
        return (deletion::delete(facts, key, set, now), 0);
    }
    if !template.is_unfit()
        && let Some(write) = deletion::add_finalizer(set)
    {
        return (Plan::from_iter([write]), 0);
    }
    ReplicaSetPlanner::new(facts, key, set, template, now).plan(state)
}
