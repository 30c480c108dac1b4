//! The token controller: gives the agents of add-ons that prove themselves by tokens a service account, and says so.
//!
//! Watches add-ons, and the service accounts, roles and bindings that carry its label. Its key is a ManagedClusterAddOn. It writes these
//! objects, and the add-on's condition `TokenInfrastructureReady`. They go with the add-on, by their owner reference.

use drover_api::{addon::ManagedClusterAddOn, names::TOKEN_INFRASTRUCTURE_LABEL};
use drover_engine::{
    plan::{NoAction, Plan, PlanPart, Writable, Write, WriteResult, could_not},
    registration::token_infrastructure::{self, Readiness},
};
use drover_runtime::{
    cache::Tracks,
    controller::Reconciler,
    store::{Change, ObjectKey, Store},
};
use k8s_openapi::{
    api::{
        core::v1::ServiceAccount,
        rbac::v1::{Role, RoleBinding},
    },
    jiff::Timestamp,
};
use kube::{ResourceExt, runtime::watcher};

use crate::cache::{Cache, Queues};

/// What was made for agents that prove themselves by tokens; the bindings are with those of other agents.
#[derive(Default)]
pub(crate) struct Tokens {
    accounts: Store<ServiceAccount>,
    roles: Store<Role>,
}

/// Which service accounts, roles and bindings are for tokens.
pub(crate) fn for_tokens() -> watcher::Config {
    watcher::Config::default().labels(&format!("{TOKEN_INFRASTRUCTURE_LABEL}=true"))
}

/// Keeps up what agents need for tokens.
pub(crate) struct TokenInfrastructure;

/// Makes what is missing, and says whether all is there.
fn keep(addon: &ManagedClusterAddOn, made: &Made<'_>, rejection: &mut Option<String>, now: Timestamp) -> Plan {
    let writes = made.ensure(addon);
    let readiness = match made.account.filter(|_| writes.is_empty()) {
        Some(account) => {
            *rejection = None;
            Some(say(addon, Readiness::Ready(account), now))
        }
        None => rejection.as_deref().map(|why| say(addon, Readiness::Failed(why), now)),
    };
    // What will be rejected once more must not keep it from being said.
    writes.into_iter().collect::<Plan>().after(readiness.flatten())
}

impl Reconciler<Cache> for TokenInfrastructure {
    type Key = ObjectKey;
    /// Why the server rejected what was last written for the add-on.
    type State = Option<String>;
    type Action = NoAction;

    const NAME: &'static str = "drover-addon-token";

    fn plan(&self, cache: &Cache, key: &ObjectKey, rejection: &mut Option<String>, now: Timestamp) -> Plan {
        let addon = cache.addons.mcas.get(key).filter(|addon| addon.metadata.deletion_timestamp.is_none());
        let Some(addon) = addon else {
            *rejection = None;
            return Plan::default();
        };
        let made = Made::of(cache, key);
        if token_infrastructure::uses_tokens(addon) {
            return keep(addon, &made, rejection, now);
        }
        *rejection = None;
        let removals = made.remove();
        if removals.is_empty() {
            say(addon, Readiness::NotNeeded, now).into_iter().collect()
        } else {
            removals.into_iter().collect()
        }
    }

    fn sent(
        &self,
        _: &ObjectKey,
        rejection: &mut Option<String>,
        part: PlanPart<'_, NoAction>,
        result: &WriteResult,
        _: Timestamp,
    ) {
        let PlanPart::Write(write) = part else { return };
        // An object of another client may be in the way, or one that is to be changed may be gone: both are reported.
        let why = match result {
            WriteResult::Unreachable(why) => Some(&**why),
            result => result.objection(),
        };
        if let Some(why) = why {
            *rejection = Some(could_not(write, why));
        }
    }
}

fn say(addon: &ManagedClusterAddOn, readiness: Readiness<'_>, now: Timestamp) -> Option<Write> {
    Write::status(addon, &token_infrastructure::saying(addon, readiness, now))
}

/// What is there for the tokens of an add-on.
struct Made<'a> {
    account: Option<&'a ServiceAccount>,
    role: Option<&'a Role>,
    binding: Option<&'a RoleBinding>,
}

impl<'a> Made<'a> {
    fn of(cache: &'a Cache, key: &ObjectKey) -> Self {
        let named = |name: String| ObjectKey::namespaced(&key.namespace, &name);
        let role = named(token_infrastructure::role_name(&key.name));
        Self {
            account: cache.tokens.accounts.get(&named(token_infrastructure::account_name(&key.name))).map(|it| &**it),
            role: cache.tokens.roles.get(&role).map(|it| &**it),
            // One that is called so and was not made for tokens is somebody else's.
            binding: cache
                .belongings
                .binding_at(&role)
                .filter(|it| it.labels().contains_key(TOKEN_INFRASTRUCTURE_LABEL)),
        }
    }

    /// What makes all be there as it should.
    fn ensure(&self, addon: &ManagedClusterAddOn) -> Vec<Write> {
        let wanted = token_infrastructure::binding(addon);
        let binding = match self.binding {
            // A binding can not be given another role.
            Some(stored) if stored.role_ref != wanted.role_ref => Some(Write::delete(stored)),
            stored => Write::ensure(stored, wanted),
        };
        let account = Write::ensure(self.account, token_infrastructure::account(addon));
        let role = Write::ensure(self.role, token_infrastructure::role(addon));
        account.into_iter().chain(role).chain(binding).collect()
    }

    /// What makes nothing of it be there: first the right, then what it is for.
    fn remove(&self) -> Vec<Write> {
        let removals = [remove(self.binding), remove(self.role), remove(self.account)];
        removals.into_iter().flatten().collect()
    }
}

fn remove<K: Writable>(stored: Option<&K>) -> Option<Write> {
    stored.filter(|stored| stored.meta().deletion_timestamp.is_none()).map(Write::delete)
}

impl Queues {
    /// Enqueues the add-on in a namespace that something was created for, so that it is created again if it was removed.
    pub(crate) fn mark_tokens(&self, namespace: &str, addon: Option<&str>) {
        if let Some(addon) = addon {
            self.tokens.mark(ObjectKey::namespaced(namespace, addon));
        }
    }

    /// Enqueues an add-on whose agent authenticates by tokens, or did.
    pub(super) fn mark_token_user(&self, change: &Change<ManagedClusterAddOn>) {
        if [&change.old, &change.new].into_iter().flatten().any(|addon| token_infrastructure::is_concerned(addon)) {
            self.tokens.mark(change.key.clone());
        }
    }
}

impl Tracks<ServiceAccount> for Cache {
    fn store(&mut self) -> &mut Store<ServiceAccount> {
        &mut self.tokens.accounts
    }

    fn changed(&mut self, change: &Change<ServiceAccount>, queues: &Queues) {
        queues.mark_tokens(&change.key.namespace, token_infrastructure::addon_of_account(&change.key.name));
    }
}

impl Tracks<Role> for Cache {
    fn store(&mut self) -> &mut Store<Role> {
        &mut self.tokens.roles
    }

    fn changed(&mut self, change: &Change<Role>, queues: &Queues) {
        queues.mark_tokens(&change.key.namespace, token_infrastructure::addon_of_role(&change.key.name));
    }
}

#[cfg(test)]
mod tests;
