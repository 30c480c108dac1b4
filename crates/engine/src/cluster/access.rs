//! What a cluster's agent may do on the hub: read and report its own cluster, and act in its own namespace.
//!
//! The two roles for namespaces are the same for all clusters and come with the hub's installation; here they are bound. The names and
//! the rules are OCM's.

use std::collections::BTreeMap;

use drover_api::{
    names::{AGENT_PREFIX, CLUSTER_NAME_LABEL, WORK_BINDING_FINALIZER},
    reference::ClusterName,
};
use k8s_openapi::{
    api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleBinding, RoleRef, Subject},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

const RBAC: &str = "rbac.authorization.k8s.io";
const CLUSTERS: &str = "cluster.open-cluster-management.io";
const READ: [&str; 3] = ["get", "list", "watch"];

/// A part of what agents do in their namespaces, with a role of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Leases, and the state of add-ons.
    Registration,
    /// Works.
    Work,
}

impl Part {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Registration, Self::Work];

    fn name(self) -> &'static str {
        match self {
            Self::Registration => "registration",
            Self::Work => "work",
        }
    }
}

/// How far an agent is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// It may do its work.
    Full,
    /// It may see whether it is accepted again.
    Look,
}

/// What the names of all roles and bindings of agents begin with.
const PREFIX: &str = "open-cluster-management:managedcluster:";

/// Names that no cluster can have, because something that all clusters share is called so: the group of all agents, and the roles for
/// namespaces.
pub const RESERVED: [&str; 3] = ["managed-clusters", "registration", "work"];

/// Whether a role or binding of this name is for agents.
#[must_use]
pub fn is_for_agents(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// The cluster whose own role, or its binding, has this name.
#[must_use]
pub fn cluster_of_role(name: &str) -> Option<ClusterName> {
    let cluster = name.strip_prefix(PREFIX)?;
    (!cluster.contains(':') && !RESERVED.contains(&cluster)).then(|| cluster.into())
}

/// The group of a cluster's agents.
#[must_use]
pub fn agents(cluster: &ClusterName) -> String {
    format!("{AGENT_PREFIX}{cluster}")
}

/// The name of a cluster's own role, and of its binding.
#[must_use]
pub fn role_name(cluster: &ClusterName) -> String {
    format!("{PREFIX}{cluster}")
}

/// The name of the binding of a part in the cluster's namespace.
#[must_use]
pub fn binding_name(cluster: &ClusterName, part: Part) -> String {
    format!("{}:{}", role_name(cluster), part.name())
}

/// What the cluster's agents may do outside of any namespace.
#[must_use]
pub fn role(cluster: &ClusterName, extent: Extent) -> ClusterRole {
    let own = |resource, verbs: &[&str]| PolicyRule {
        resource_names: Some(vec![cluster.to_string()]),
        ..rule(CLUSTERS, resource, verbs)
    };
    let rules = match extent {
        Extent::Look => vec![own("managedclusters", &READ)],
        Extent::Full => vec![
            rule("certificates.k8s.io", "certificatesigningrequests", &["create", "get", "list", "watch"]),
            rule("register.open-cluster-management.io", "managedclusters/clientcertificates", &["renew"]),
            own("managedclusters", &["get", "list", "watch", "update"]),
            own("managedclusters/status", &["patch", "update"]),
        ],
    };
    ClusterRole { metadata: named(cluster, role_name(cluster)), rules: Some(rules), ..ClusterRole::default() }
}

/// Gives the cluster's agents their own role.
#[must_use]
pub fn role_binding(cluster: &ClusterName) -> ClusterRoleBinding {
    let name = role_name(cluster);
    ClusterRoleBinding {
        metadata: named(cluster, name.clone()),
        role_ref: role_ref(name),
        subjects: Some(vec![subject(cluster)]),
    }
}

/// Gives the cluster's agents a part of what they do in their namespace.
#[must_use]
pub fn binding(cluster: &ClusterName, part: Part) -> RoleBinding {
    let mut metadata = named(cluster, binding_name(cluster, part));
    metadata.namespace = Some(cluster.to_string());
    // The agent needs this to finish its works while the namespace is being deleted.
    metadata.finalizers = (part == Part::Work).then(|| vec![WORK_BINDING_FINALIZER.to_owned()]);
    RoleBinding {
        metadata,
        role_ref: role_ref(format!("{PREFIX}{}", part.name())),
        subjects: Some(vec![subject(cluster)]),
    }
}

fn named(cluster: &ClusterName, name: String) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        labels: Some(BTreeMap::from([(CLUSTER_NAME_LABEL.to_owned(), cluster.to_string())])),
        ..ObjectMeta::default()
    }
}

fn role_ref(name: String) -> RoleRef {
    RoleRef { api_group: Some(RBAC.to_owned()), kind: "ClusterRole".to_owned(), name }
}

fn subject(cluster: &ClusterName) -> Subject {
    Subject { api_group: Some(RBAC.to_owned()), kind: "Group".to_owned(), name: agents(cluster), ..Subject::default() }
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_clusters_share_is_no_clusters_own() {
        assert_eq!(cluster_of_role(&role_name(&"one".into())), Some("one".into()));
        for part in Part::ALL {
            assert_eq!(cluster_of_role(&binding(&"one".into(), part).role_ref.name), None);
            assert_eq!(cluster_of_role(&binding_name(&"one".into(), part)), None);
        }
        assert_eq!(cluster_of_role("cluster-admin"), None);
        assert!(RESERVED.iter().any(|name| agents(&(*name).into()) == drover_api::names::AGENTS_GROUP));
    }
}
