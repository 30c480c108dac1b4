//! The permission controller: binds the agents of add-ons that are made from templates to the roles that their template names.
//!
//! Its key is a ManagedClusterAddOn, which the add-on controller marks when it finds its bindings to be others than they should. It writes the
//! bindings, and says on the add-on, in the condition `RegistrationApplied`, if the server does not take them. It is a controller of its own so
//! that an add-on whose agent may not be given something is deployed and reported on all the same.

use drover_api::addon::ManagedClusterAddOn;
use drover_engine::{
    addon::permission::AgentBindings,
    condition,
    plan::{NoAction, Plan, PlanPart, Write, WriteResult, could_not},
    registration::permission::Registered,
    tracker::Rejections,
};
use drover_runtime::{controller::Reconciler, store::ObjectKey};
use k8s_openapi::{api::rbac::v1::RoleBinding, jiff::Timestamp};

use crate::cache::Cache;

/// Binds agents to roles.
pub(crate) struct Permissions;

impl Reconciler<Cache> for Permissions {
    type Key = ObjectKey;
    /// The bindings that the server has rejected.
    type State = Rejections;
    type Action = NoAction;

    const NAME: &'static str = "drover-addon-permission";

    fn plan(&self, cache: &Cache, key: &ObjectKey, rejections: &mut Rejections, now: Timestamp) -> Plan {
        let Some(bindings) = AgentBindings::of(cache, key, now) else { return Plan::default() };
        let writes = bindings.writes();
        if writes.is_empty() {
            *rejections = Rejections::default();
            return Plan::default();
        }
        let on_cluster = cache.addons.mcas.get(key);
        let said = rejections.first().zip(on_cluster).and_then(|(why, on_cluster)| say(on_cluster, why, now));
        // What will be refused once more must not keep it from being said.
        Plan { ordered: said.into_iter().collect(), parallel: writes, ..Plan::default() }
    }

    fn sent(
        &self,
        _: &ObjectKey,
        rejections: &mut Rejections,
        part: PlanPart<'_, NoAction>,
        result: &WriteResult,
        _: Timestamp,
    ) {
        let PlanPart::Write(write) = part else { return };
        if write.kind().is::<RoleBinding>() {
            rejections.record_as(write.key().clone(), refusal(write, result), result);
        }
    }
}

/// Why a binding was not taken, and what can be done about it. That somebody was faster, or the server not reached, is no failure of ours.
fn refusal(write: &Write, result: &WriteResult) -> Option<String> {
    let mut why = could_not(write, result.objection()?);
    if matches!(result, WriteResult::Forbidden(_)) {
        why += "; let the hub bind the role by a ClusterRole that is labelled drover.dev/hub-binds=true";
    }
    Some(why)
}

/// Says that the agent of an add-on could not be given what it needs.
fn say(on_cluster: &ManagedClusterAddOn, why: &str, now: Timestamp) -> Option<Write> {
    let mut wanted = on_cluster.clone();
    let status = wanted.status.get_or_insert_default();
    status.conditions = condition::with(std::mem::take(&mut status.conditions), Registered::Failed(why).says(), now);
    Write::status(on_cluster, &wanted)
}

#[cfg(test)]
mod tests;
