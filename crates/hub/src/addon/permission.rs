//! The permission controller: binds the agents of add-ons that are made from templates to the roles that their template names.
//!
//! Its key is a ManagedClusterAddOn, which the add-on controller marks when it finds its bindings to be others than they should. It writes the
//! bindings, and says on the add-on, in the condition `RegistrationApplied`, if the server does not take them. It is a controller of its own so
//! that an add-on whose agent may not be given something is deployed and reported on all the same.

use drover_api::{addon::ManagedClusterAddOn, reference::ClusterName};
use drover_engine::{
    condition,
    plan::{NoAction, Plan, PlanPart, Write, WriteResult, could_not},
    registration::{
        identity,
        permission::{Registered, bindings},
    },
    revision::markers::Given,
    tracker::Rejections,
};
use drover_runtime::{controller::Reconciler, store::ObjectKey};
use k8s_openapi::{api::rbac::v1::RoleBinding, jiff::Timestamp};

use super::{progress, signing_request::is_accepted, workshop::Making};
use crate::cache::Cache;

/// What is said of the agent of an add-on whose cluster is shut out.
const SHUT_OUT: &str = "the cluster is not accepted, so that its agents may do nothing on the hub: set spec.hubAcceptsClient of the \
                        ManagedCluster to let it in";

/// Binds agents to roles.
pub(crate) struct Permissions;

impl Reconciler<Cache> for Permissions {
    type Key = ObjectKey;
    /// The bindings that the server has rejected.
    type State = Rejections;
    type Action = NoAction;

    const NAME: &'static str = "drover-addon-permission";

    fn plan(&self, cache: &Cache, key: &ObjectKey, rejections: &mut Rejections, now: Timestamp) -> Plan {
        let Some(bindings) = Bindings::of(cache, key, now) else { return Plan::default() };
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

/// The bindings for the agent of an add-on on one cluster.
pub(super) struct Bindings<'a> {
    wanted: Vec<RoleBinding>,
    found: Vec<&'a RoleBinding>,
    /// How the agent registers.
    registration: Registration,
}

/// How an agent registers.
enum Registration {
    /// Not at all.
    None,
    /// Not as long as its cluster is shut out.
    ShutOut,
    /// As its template says.
    AsSaid,
    /// Not in all ways that its template says, because of this.
    Misconfigured(String),
}

impl<'a> Bindings<'a> {
    /// Those of an add-on on a cluster; nothing if they are to stay as they are, because nobody knows what they are to be, or because the
    /// add-on is on its way out and its agent may need them until it is gone.
    fn of(cache: &'a Cache, key: &ObjectKey, now: Timestamp) -> Option<Self> {
        let Some(on_cluster) = cache.addons.mcas.get(key) else {
            // One that can not be read is still there.
            return (!cache.addons.mcas.has(key)).then(|| Self::none(cache, key));
        };
        // Who is shut out has nothing to finish.
        if !is_accepted(cache, &ClusterName::from(&*key.namespace)) {
            return Some(Self::none(cache, key));
        }
        if on_cluster.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let conditions = on_cluster.status.as_ref().map_or(&[][..], |status| &status.conditions);
        if Given::read(conditions).is_none() {
            return Some(Self::none(cache, key));
        }
        Self::made(cache, on_cluster, &progress::making(cache, on_cluster, now)?)
    }

    /// Those of an add-on whose works come about like this; nothing if they are to stay as they are. An agent that runs keeps what it may do
    /// until it is known what its successor may.
    pub(super) fn made(cache: &'a Cache, on_cluster: &ManagedClusterAddOn, making: &Making) -> Option<Self> {
        let key = ObjectKey::of(on_cluster);
        if !is_accepted(cache, &ClusterName::from(&*key.namespace)) {
            return Some(Self { registration: Registration::ShutOut, ..Self::none(cache, &key) });
        }
        let specs = match making {
            Making::ByManager => &[],
            Making::Former(None) | Making::Unreadable(_) | Making::NotYet(_) => return None,
            Making::Former(Some(blueprint)) => blueprint.registrations(),
            Making::Made(blueprint, made) => made.is_possible().then(|| blueprint.registrations())?,
        };
        let registration = match identity::check(specs) {
            Err(misconfigured) => Registration::Misconfigured(misconfigured.to_string()),
            Ok(()) if specs.is_empty() => Registration::None,
            Ok(()) => Registration::AsSaid,
        };
        let found = cache.belongings.bindings_of_addon(&key).collect();
        Some(Self { wanted: bindings(on_cluster, specs), found, registration })
    }

    /// That there are to be none.
    fn none(cache: &'a Cache, key: &ObjectKey) -> Self {
        let found = cache.belongings.bindings_of_addon(key).collect();
        Self { wanted: Vec::new(), found, registration: Registration::None }
    }

    /// What has to be written so that there is exactly what is wanted.
    pub(super) fn writes(&self) -> Vec<Write> {
        let missing = self.wanted.iter().filter_map(|wanted| {
            let stored = self.found.iter().copied().find(|stored| is_same(stored, wanted));
            match stored {
                Some(stored) if stored.metadata.deletion_timestamp.is_some() => None,
                // A binding can not be given another role.
                Some(stored) if stored.role_ref != wanted.role_ref => Some(Write::delete(stored)),
                stored => Write::ensure(stored, wanted.clone()),
            }
        });
        let is_wanted = |stored: &RoleBinding| self.wanted.iter().any(|wanted| is_same(stored, wanted));
        let others = self.found.iter().copied().filter(|stored| !is_wanted(stored));
        let others = others.filter(|stored| stored.metadata.deletion_timestamp.is_none()).map(Write::delete);
        missing.chain(others).collect()
    }

    /// How far it is with the agent's registration; nothing while something is still to be written.
    pub(super) fn registered(&self) -> Option<Registered<'_>> {
        let registered = match &self.registration {
            Registration::None => Registered::NotNeeded,
            Registration::ShutOut => Registered::Failed(SHUT_OUT),
            Registration::AsSaid => Registered::Applied,
            Registration::Misconfigured(why) => Registered::Failed(why),
        };
        self.writes().is_empty().then_some(registered)
    }
}

fn is_same(one: &RoleBinding, other: &RoleBinding) -> bool {
    ObjectKey::of(one) == ObjectKey::of(other)
}

#[cfg(test)]
mod tests;
