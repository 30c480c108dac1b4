//! The RoleBindings of the agents of add-ons that are rendered from templates.

use drover_api::{addon::ManagedClusterAddOn, reference::ClusterName};
use k8s_openapi::{api::rbac::v1::RoleBinding, jiff::Timestamp};

use super::{facts::AddOnFacts, on_cluster, render_state::RenderState};
use crate::{
    plan::{ObjectKey, Write},
    registration::{
        identity,
        permission::{Registered, bindings},
    },
    revision::markers::Given,
};

/// What is reported of the agent of an add-on whose cluster is not accepted.
const NOT_ACCEPTED: &str = "the cluster is not accepted, so that its agents may do nothing on the hub: set spec.hubAcceptsClient of the \
                            ManagedCluster to let it in";

/// The RoleBindings of the agent of an add-on on one cluster.
#[derive(Debug)]
pub struct AgentBindings<'a> {
    wanted: Vec<RoleBinding>,
    found: Vec<&'a RoleBinding>,
    registration: Registration,
}

/// How an agent registers.
#[derive(Debug)]
enum Registration {
    /// Not at all.
    None,
    /// Not while its cluster is not accepted.
    NotAccepted,
    /// As its template says.
    AsSaid,
    /// Not in all ways that its template says, because of this.
    Misconfigured(String),
}

impl<'a> AgentBindings<'a> {
    /// Those of an add-on on a cluster. `None` if they stay as they are: because it is not known what
    /// they should be, or because the add-on is being deleted and its agent may need them until then.
    #[must_use]
    pub fn of<F: AddOnFacts>(facts: &'a F, key: &ObjectKey, now: Timestamp) -> Option<Self> {
        let Some(on_cluster) = facts.on_cluster(key) else {
            return (!facts.is_on_cluster(key)).then(|| Self::none(facts, key));
        };
        // On a cluster that is not accepted there is nothing to finish.
        if !is_accepted(facts, key) {
            return Some(Self::none(facts, key));
        }
        if on_cluster.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let conditions = on_cluster.status.as_ref().map_or(&[][..], |status| &status.conditions);
        if Given::read(conditions).is_none() {
            return Some(Self::none(facts, key));
        }
        Self::rendered(facts, on_cluster, &on_cluster::render_state(facts, on_cluster, now)?)
    }

    /// Those of an add-on whose works come about like this; `None` if they stay as they are. A running
    /// agent keeps its permissions until those of its successor are known.
    #[must_use]
    pub fn rendered<F: AddOnFacts>(
        facts: &'a F,
        on_cluster: &ManagedClusterAddOn,
        state: &RenderState,
    ) -> Option<Self> {
        let key = ObjectKey::of(on_cluster);
        if !is_accepted(facts, &key) {
            return Some(Self { registration: Registration::NotAccepted, ..Self::none(facts, &key) });
        }
        let specs = match state {
            RenderState::ByManager => &[],
            RenderState::Former(None) | RenderState::Unreadable(_) | RenderState::Pending(_) => return None,
            RenderState::Former(Some(blueprint)) => blueprint.registrations(),
            RenderState::Rendered(blueprint, rendered) => rendered.works.is_ok().then(|| blueprint.registrations())?,
        };
        let registration = match identity::check(specs) {
            Err(misconfigured) => Registration::Misconfigured(misconfigured.to_string()),
            Ok(()) if specs.is_empty() => Registration::None,
            Ok(()) => Registration::AsSaid,
        };
        Some(Self { wanted: bindings(on_cluster, specs), found: facts.role_bindings_of(&key), registration })
    }

    /// None should exist.
    fn none<F: AddOnFacts>(facts: &'a F, key: &ObjectKey) -> Self {
        Self { wanted: Vec::new(), found: facts.role_bindings_of(key), registration: Registration::None }
    }

    /// What has to be written so that exactly the wanted bindings exist.
    #[must_use]
    pub fn writes(&self) -> Vec<Write> {
        let missing = self.wanted.iter().filter_map(|wanted| {
            let stored = self.found.iter().copied().find(|stored| is_same(stored, wanted));
            match stored {
                Some(stored) if stored.metadata.deletion_timestamp.is_some() => None,
                // The role of a binding is immutable.
                Some(stored) if stored.role_ref != wanted.role_ref => Some(Write::delete(stored)),
                stored => Write::ensure(stored, wanted.clone()),
            }
        });
        let is_wanted = |stored: &RoleBinding| self.wanted.iter().any(|wanted| is_same(stored, wanted));
        let others = self.found.iter().copied().filter(|stored| !is_wanted(stored));
        let others = others.filter(|stored| stored.metadata.deletion_timestamp.is_none()).map(Write::delete);
        missing.chain(others).collect()
    }

    /// The state of the agent's registration; `None` while something is still to be written.
    #[must_use]
    pub fn registered(&self) -> Option<Registered<'_>> {
        let registered = match &self.registration {
            Registration::None => Registered::NotNeeded,
            Registration::NotAccepted => Registered::Failed(NOT_ACCEPTED),
            Registration::AsSaid => Registered::Applied,
            Registration::Misconfigured(why) => Registered::Failed(why),
        };
        self.writes().is_empty().then_some(registered)
    }
}

fn is_accepted<F: AddOnFacts>(facts: &F, on_cluster: &ObjectKey) -> bool {
    let cluster = facts.cluster(&ClusterName::from(&*on_cluster.namespace));
    cluster.is_some_and(|cluster| cluster.spec.hub_accepts_client)
}

fn is_same(one: &RoleBinding, other: &RoleBinding) -> bool {
    ObjectKey::of(one) == ObjectKey::of(other)
}
