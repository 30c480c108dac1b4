//! What an add-on's agent needs to prove itself to the hub by tokens: a service account in its cluster's namespace, and the right of the
//! cluster's agents to ask for tokens of that one account. The names, the rules and the words are OCM's, whose agents wait for them.

use std::collections::BTreeMap;

use drover_api::{
    addon::{KubeClientDriver, ManagedClusterAddOn, RegistrationConfig, RegistrationKind},
    names::{TOKEN_ADDON_LABEL, TOKEN_INFRASTRUCTURE_LABEL, TOKEN_INFRASTRUCTURE_READY},
    reference::ClusterName,
};
use k8s_openapi::{
    api::{
        core::v1::ServiceAccount,
        rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
    },
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
    jiff::Timestamp,
};
use kube::{Resource, ResourceExt};

use crate::{
    certificate::CLIENT_SIGNER,
    cluster::access::agents,
    condition::{self, Holds, Says},
};

const RBAC: &str = "rbac.authorization.k8s.io";
/// What the names of service accounts of add-ons end with.
const ACCOUNT: &str = "-agent";
/// What the names of roles for tokens, and of their bindings, end with.
const ROLE: &str = "-token-role";

/// Whether the agent of an add-on proves itself to the hub by tokens. The agent says so.
#[must_use]
pub fn uses_tokens(addon: &ManagedClusterAddOn) -> bool {
    let Some(status) = &addon.status else { return false };
    let is_token = |registration: &RegistrationConfig| {
        let driver = registration.kube_client.as_ref().and_then(|client| client.driver);
        driver.or(status.kube_client_driver) == Some(KubeClientDriver::Token)
    };
    status.registrations.iter().any(|registration| is_for_hub(registration) && is_token(registration))
}

/// Whether a registration is for the hub's API server.
pub(crate) fn is_for_hub(registration: &RegistrationConfig) -> bool {
    registration.kind == Some(RegistrationKind::KubeClient)
        || registration.signer_name.as_deref() == Some(CLIENT_SIGNER)
}

/// Whether there is something to be done about tokens of an add-on, or was.
#[must_use]
pub fn is_concerned(addon: &ManagedClusterAddOn) -> bool {
    uses_tokens(addon) || condition::holds(conditions(addon), TOKEN_INFRASTRUCTURE_READY).is_some()
}

fn conditions(addon: &ManagedClusterAddOn) -> &[Condition] {
    addon.status.as_ref().map_or(&[], |status| &status.conditions)
}

/// The name of an add-on's service account.
#[must_use]
pub fn account_name(addon: &str) -> String {
    format!("{addon}{ACCOUNT}")
}

/// The name of an add-on's role for tokens, and of its binding.
#[must_use]
pub fn role_name(addon: &str) -> String {
    format!("{addon}{ROLE}")
}

/// The add-on whose service account has this name.
#[must_use]
pub fn addon_of_account(name: &str) -> Option<&str> {
    name.strip_suffix(ACCOUNT)
}

/// The add-on whose role for tokens, or its binding, has this name.
#[must_use]
pub fn addon_of_role(name: &str) -> Option<&str> {
    name.strip_suffix(ROLE)
}

/// The service account of an add-on's agent.
#[must_use]
pub fn account(addon: &ManagedClusterAddOn) -> ServiceAccount {
    ServiceAccount { metadata: of(addon, account_name(&addon.name_any())), ..ServiceAccount::default() }
}

/// What the cluster's agents may do with that account, and with no other.
#[must_use]
pub fn role(addon: &ManagedClusterAddOn) -> Role {
    let rule = PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec!["serviceaccounts/token".to_owned()]),
        resource_names: Some(vec![account_name(&addon.name_any())]),
        verbs: vec!["create".to_owned(), "subscribe".to_owned()],
        ..PolicyRule::default()
    };
    Role { metadata: of(addon, role_name(&addon.name_any())), rules: Some(vec![rule]) }
}

/// Gives the cluster's agents that role.
#[must_use]
pub fn binding(addon: &ManagedClusterAddOn) -> RoleBinding {
    let cluster = ClusterName::from(addon.namespace().unwrap_or_default());
    let group = |name: String| Subject {
        api_group: Some(RBAC.to_owned()),
        kind: "Group".to_owned(),
        name,
        ..Subject::default()
    };
    let name = role_name(&addon.name_any());
    RoleBinding {
        metadata: of(addon, name.clone()),
        role_ref: RoleRef { api_group: Some(RBAC.to_owned()), kind: "Role".to_owned(), name },
        // The second is what agents are called that prove themselves by an account of their cloud.
        subjects: Some(vec![group(agents(&cluster)), group(format!("open-cluster-management:{cluster}"))]),
    }
}

/// The metadata of something that goes with an add-on.
fn of(addon: &ManagedClusterAddOn, name: String) -> ObjectMeta {
    let labels = [(TOKEN_INFRASTRUCTURE_LABEL, "true".to_owned()), (TOKEN_ADDON_LABEL, addon.name_any())];
    ObjectMeta {
        name: Some(name),
        namespace: addon.namespace(),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value)).into_iter().collect::<BTreeMap<_, _>>()),
        owner_references: addon.owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

/// How far it is with what an add-on's agent needs for tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Readiness<'a> {
    /// The agent can ask for tokens of this account.
    Ready(&'a ServiceAccount),
    /// It can not, because of this.
    Failed(&'a str),
    /// It needs none.
    NotNeeded,
}

/// The add-on, saying so.
#[must_use]
pub fn saying(addon: &ManagedClusterAddOn, readiness: Readiness<'_>, now: Timestamp) -> ManagedClusterAddOn {
    let mut wanted = addon.clone();
    let Some(status) = &mut wanted.status else { return wanted };
    let there = std::mem::take(&mut status.conditions);
    let says = |holds, reason, message: &str| {
        let says = Says { type_: TOKEN_INFRASTRUCTURE_READY, holds, reason, message, generation: None };
        condition::with(there.clone(), says, now)
    };
    status.conditions = match readiness {
        // Agents read the account's UID out of this sentence.
        Readiness::Ready(account) => {
            let (name, uid) = (account.name_any(), account.uid().unwrap_or_default());
            let namespace = account.namespace().unwrap_or_default();
            says(
                Holds::Yes,
                "TokenInfrastructureReady",
                &format!("ServiceAccount {namespace}/{name} (UID: {uid}) is ready"),
            )
        }
        Readiness::Failed(why) => says(Holds::No, "TokenInfrastructureApplyFailed", why),
        Readiness::NotNeeded => {
            there.into_iter().filter(|condition| condition.type_ != TOKEN_INFRASTRUCTURE_READY).collect()
        }
    };
    wanted
}

#[cfg(test)]
mod tests {
    use drover_api::addon::{ManagedClusterAddOnSpec, ManagedClusterAddOnStatus};
    use serde_json::{Value, json};

    use super::*;

    fn addon(status: Value) -> ManagedClusterAddOn {
        let mut addon = ManagedClusterAddOn::new("hello", ManagedClusterAddOnSpec::default());
        addon.metadata.namespace = Some("one".to_owned());
        addon.metadata.uid = Some("uid".to_owned());
        addon.status = Some(serde_json::from_value::<ManagedClusterAddOnStatus>(status).expect("a status"));
        addon
    }

    #[test]
    fn an_agent_says_in_either_version_that_it_uses_tokens() {
        let v1beta1 =
            |driver: &str| json!({ "registrations": [{ "type": "kubeClient", "kubeClient": { "driver": driver } }] });
        let v1alpha1 = |signer: &str, driver: Option<&str>| json!({ "registrations": [{ "signerName": signer }], "kubeClientDriver": driver });
        for (status, uses) in [
            (v1beta1("token"), true),
            (v1beta1("csr"), false),
            (v1alpha1(CLIENT_SIGNER, Some("token")), true),
            (v1alpha1(CLIENT_SIGNER, Some("csr")), false),
            (v1alpha1(CLIENT_SIGNER, None), false),
            (v1alpha1("example.com/signer", Some("token")), false),
            (json!({ "kubeClientDriver": "token" }), false),
        ] {
            assert_eq!(uses_tokens(&addon(status.clone())), uses, "{status}");
        }
    }

    #[test]
    fn agents_get_tokens_of_one_account() {
        let addon = addon(json!({}));
        let rules = role(&addon).rules.expect("it has rules");
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].resource_names, Some(vec![account(&addon).name_any()]));
        let binding = binding(&addon);
        assert_eq!(binding.role_ref.name, role(&addon).name_any());
        let subjects: Vec<_> = binding.subjects.into_iter().flatten().map(|subject| subject.name).collect();
        assert_eq!(subjects, ["system:open-cluster-management:one", "open-cluster-management:one"]);
        for metadata in [account(&addon).metadata, role(&addon).metadata, binding.metadata] {
            assert_eq!(metadata.owner_references.expect("it is owned")[0].uid, "uid");
            assert_eq!(metadata.labels.expect("it is labelled").len(), 2);
        }
    }

    #[test]
    fn names_lead_back_to_the_add_on() {
        assert_eq!(addon_of_account(&account_name("hello")), Some("hello"));
        assert_eq!(addon_of_role(&role_name("hello")), Some("hello"));
        assert_eq!((addon_of_account("default"), addon_of_role("default")), (None, None));
    }

    #[test]
    fn what_is_said_goes_when_it_is_not_needed() {
        let (addon, now) = (addon(json!({})), Timestamp::UNIX_EPOCH);
        let mut account = account(&addon);
        account.metadata.uid = Some("1-2-3".to_owned());
        let ready = saying(&addon, Readiness::Ready(&account), now);
        assert_eq!(conditions(&ready)[0].message, "ServiceAccount one/hello-agent (UID: 1-2-3) is ready");
        assert!(is_concerned(&ready));
        let failed = saying(&ready, Readiness::Failed("because"), now);
        assert_eq!((conditions(&failed)[0].status.as_str(), conditions(&failed).len()), ("False", 1));
        assert_eq!(saying(&failed, Readiness::NotNeeded, now), addon);
    }
}
