//! What the agent of an add-on may do on the hub: the roles that a template names, given to the agents of one cluster.
//!
//! Each binding is for one add-on on one cluster and one role, all of which are in its name: no two clusters share one, and another role
//! is another binding, because the role of a binding can not be changed.

use std::collections::BTreeMap;

use drover_api::{
    addon::{self, HubPermission, HubPermissionType, ManagedClusterAddOn, RegistrationSpec, RegistrationType},
    names::{ADDON_NAME_LABEL, CLUSTER_NAME_LABEL, REGISTRATION_APPLIED, TEMPLATE_BINDING_LABEL},
    reference::ClusterName,
};
use k8s_openapi::{
    api::rbac::v1::{RoleBinding, RoleRef, Subject},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Resource, ResourceExt};

use super::{identity, token_infrastructure};
use crate::condition::{Holds, Says};

const RBAC: &str = "rbac.authorization.k8s.io";
/// What the names of bindings begin with.
const PREFIX: &str = "open-cluster-management:";
/// What the names of roles begin with that no template can name: those of clusters' agents, which the hub may bind for these, and the hub's own.
const RESERVED: [&str; 2] = ["open-cluster-management:managedcluster:", "drover-hub"];

/// The bindings that give the agent of an add-on on a cluster what it may do on the hub.
#[must_use]
pub fn bindings(on_cluster: &ManagedClusterAddOn, specs: &[RegistrationSpec]) -> Vec<RoleBinding> {
    let bindings = permissions(specs).filter_map(|permission| binding(on_cluster, permission));
    let distinct: BTreeMap<_, _> =
        bindings.map(|binding| ((binding.metadata.namespace.clone(), binding.name_any()), binding)).collect();
    distinct.into_values().collect()
}

/// What a template says that its agent may do on the hub.
fn permissions(specs: &[RegistrationSpec]) -> impl Iterator<Item = &HubPermission> {
    let with_hub = specs.iter().filter(|spec| spec.kind == RegistrationType::KubeClient);
    with_hub.filter_map(|spec| spec.kube_client.as_ref()).flat_map(|client| &client.hub_permissions)
}

/// A role that a template names though no template can.
pub(super) fn reserved_role(specs: &[RegistrationSpec]) -> Option<String> {
    permissions(specs).filter_map(role_ref).find(is_reserved).map(|role| role.name)
}

fn is_reserved(role: &RoleRef) -> bool {
    RESERVED.iter().any(|prefix| role.name.starts_with(prefix))
}

/// The add-on on a cluster that a binding of this name was made for.
#[must_use]
pub fn addon_of(binding_name: &str) -> Option<(ClusterName, String)> {
    // A role's name may contain colons.
    let parts: Vec<_> = binding_name.strip_prefix(PREFIX)?.splitn(4, ':').collect();
    let [addon, cluster, kind, role] = parts[..] else { return None };
    let is_one = ["role", "clusterrole"].contains(&kind) && [addon, cluster, role].iter().all(|part| !part.is_empty());
    is_one.then(|| (cluster.into(), addon.to_owned()))
}

/// The binding of one role; nothing for a permission that names none, which the API server does not take, or one that no template can name.
fn binding(on_cluster: &ManagedClusterAddOn, permission: &HubPermission) -> Option<RoleBinding> {
    let (addon, cluster) = (on_cluster.name_any(), ClusterName::from(on_cluster.namespace()?));
    let role_ref = role_ref(permission).filter(|role| !is_reserved(role))?;
    let name = format!("{PREFIX}{addon}:{cluster}:{}:{}", role_ref.kind.to_lowercase(), role_ref.name);
    let (namespace, owner) = match permission.kind {
        HubPermissionType::CurrentCluster => (cluster.to_string(), on_cluster.owner_ref(&())),
        // An owner in another namespace would count as gone.
        HubPermissionType::SingleNamespace => (permission.single_namespace.as_ref()?.namespace.clone(), None),
    };
    let labels = [
        (ADDON_NAME_LABEL, addon.clone()),
        (CLUSTER_NAME_LABEL, cluster.to_string()),
        (TEMPLATE_BINDING_LABEL, String::new()),
    ];
    let metadata = ObjectMeta {
        name: Some(name),
        namespace: Some(namespace),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value)).into_iter().collect()),
        owner_references: owner.map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    Some(RoleBinding { metadata, role_ref, subjects: Some(agents(on_cluster, &cluster, &addon)) })
}

/// The role, which may be named in two places.
fn role_ref(permission: &HubPermission) -> Option<RoleRef> {
    let HubPermission { role_ref, current_cluster, single_namespace, .. } = permission;
    let inside = match permission.kind {
        HubPermissionType::CurrentCluster => current_cluster.as_ref().map(|current| addon::RoleRef {
            kind: "ClusterRole".to_owned(),
            name: current.cluster_role_name.clone(),
            ..addon::RoleRef::default()
        }),
        HubPermissionType::SingleNamespace => single_namespace.as_ref().and_then(|single| single.role_ref.clone()),
    };
    let addon::RoleRef { kind, name, .. } = inside.or_else(|| role_ref.clone()).filter(|role| !role.name.is_empty())?;
    Some(RoleRef { api_group: Some(RBAC.to_owned()), kind, name })
}

/// Whom a role is given to: the add-on's agents on this cluster, and not the group of its agents on all clusters. Who proves itself by
/// tokens is in no group of ours, and is known by its service account.
fn agents(on_cluster: &ManagedClusterAddOn, cluster: &ClusterName, addon: &str) -> Vec<Subject> {
    let group = Subject {
        api_group: Some(RBAC.to_owned()),
        kind: "Group".to_owned(),
        name: identity::group(cluster, addon),
        ..Subject::default()
    };
    let account = token_infrastructure::uses_tokens(on_cluster).then(|| Subject {
        kind: "ServiceAccount".to_owned(),
        name: token_infrastructure::account_name(addon),
        namespace: Some(cluster.to_string()),
        ..Subject::default()
    });
    std::iter::once(group).chain(account).collect()
}

/// How far it is with the registration of an add-on's agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered<'a> {
    /// It does not register.
    NotNeeded,
    /// All is there that it needs.
    Applied,
    /// Something is not, because of this.
    Failed(&'a str),
    /// It is not known yet who it is.
    Pending,
}

impl<'a> Registered<'a> {
    /// What the add-on says of it, in OCM's words: add-on managers wait for them.
    #[must_use]
    pub fn says(self) -> Says<'a> {
        let (holds, reason, message) = match self {
            Self::NotNeeded => (Holds::Yes, "NilRegistration", "Registration of the addon agent is configured"),
            Self::Applied => (Holds::Yes, "SetPermissionApplied", "Registration of the addon agent is configured"),
            Self::Failed(why) => (Holds::No, "SetPermissionFailed", why),
            Self::Pending => (Holds::No, "PermissionConfigPending", "registration subject not ready"),
        };
        Says { type_: REGISTRATION_APPLIED, holds, reason, message, generation: None }
    }
}

#[cfg(test)]
mod tests;
