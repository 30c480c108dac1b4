//! Whether a cluster is let in, and what stands in the way.

use drover_api::{
    cluster::ManagedCluster,
    names::{CLUSTER_NAME_LABEL, HUB_ACCEPTED},
};
use k8s_openapi::{
    api::core::v1::Namespace,
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
    jiff::Timestamp,
};

use super::{access::RESERVED, conditions};
use crate::condition::{self, Holds, Says};

/// What the hub does about a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// Nobody has accepted it yet: nothing is done.
    Awaited,
    /// It is accepted: it gets a namespace and its agent gets access.
    Accepted,
    /// It is accepted, and something stands in the way.
    Hindered(Hindrance),
    /// It was accepted once and is no longer: its agent may read the cluster's object, and nothing else.
    Denied,
}

/// Why a cluster that is accepted gets no namespace, and its agent nothing to do in one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Hindrance {
    /// Something of Kubernetes or of the hub is called like the cluster.
    #[error("Kubernetes or the hub itself uses the name {0}: register the cluster under another one")]
    Reserved(String),
    /// A namespace can not be called like the cluster.
    #[error(
        "a cluster has a namespace of its name on the hub, and no namespace can be called {0}: register the cluster \
         under a name of at most 63 lower-case letters, digits and dashes"
    )]
    Name(String),
    /// The namespace is somebody else's.
    #[error(
        "the namespace {0} is there and does not belong to this cluster, so its agent gets no access: delete the \
         namespace, label it {CLUSTER_NAME_LABEL}={0} if the cluster is to have it, or register the cluster under another name"
    )]
    Namespace(String),
    /// The namespace is being deleted.
    #[error("the namespace {0} is being deleted; the cluster gets a new one when it is gone")]
    NamespaceTerminating(String),
}

impl Hindrance {
    fn reason(&self) -> &'static str {
        match self {
            Self::Name(_) | Self::Reserved(_) => "NameNotUsable",
            Self::Namespace(_) => "NamespaceNotOwned",
            Self::NamespaceTerminating(_) => "NamespaceTerminating",
        }
    }
}

/// What a cluster's agent has on the hub already. Unlike conditions, the agent has no say in this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// It has its own role.
    pub role: bool,
    /// It may act in the cluster's namespace.
    pub namespace: bool,
}

/// What is to be done about a cluster, given the namespace of its name if there is one, and what its agent has already.
#[must_use]
pub fn judge(cluster: &ManagedCluster, namespace: Option<&Namespace>, access: Access) -> Acceptance {
    if !cluster.spec.hub_accepts_client {
        let was_told = condition::holds(conditions(cluster), HUB_ACCEPTED).is_some();
        let was_accepted = access != Access::default() || was_told;
        return if was_accepted { Acceptance::Denied } else { Acceptance::Awaited };
    }
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    if is_reserved(name) {
        return Acceptance::Hindered(Hindrance::Reserved(name.to_owned()));
    }
    if !is_namespace_name(name) {
        return Acceptance::Hindered(Hindrance::Name(name.to_owned()));
    }
    match namespace.map(|namespace| &namespace.metadata) {
        Some(metadata) if metadata.deletion_timestamp.is_some() => {
            Acceptance::Hindered(Hindrance::NamespaceTerminating(name.to_owned()))
        }
        Some(metadata) if !belongs_to(metadata, name, access) => {
            Acceptance::Hindered(Hindrance::Namespace(name.to_owned()))
        }
        _ => Acceptance::Accepted,
    }
}

/// The conditions of a cluster, with what the hub says of its acceptance.
#[must_use]
pub fn conditions_of(cluster: &ManagedCluster, acceptance: &Acceptance, now: Timestamp) -> Vec<Condition> {
    let there = conditions(cluster).to_vec();
    let hindered;
    let (holds, reason, message) = match acceptance {
        Acceptance::Awaited => return there,
        Acceptance::Accepted => (Holds::Yes, "HubClusterAdminAccepted", "an administrator of the hub has accepted it"),
        Acceptance::Denied => (Holds::No, "HubClusterAdminDenied", "an administrator of the hub accepts it no longer"),
        Acceptance::Hindered(hindrance) => {
            hindered = hindrance.to_string();
            (Holds::No, hindrance.reason(), hindered.as_str())
        }
    };
    let says = Says { type_: HUB_ACCEPTED, holds, reason, message, generation: None };
    condition::with(there, says, now)
}

/// Whether a namespace is a cluster's own: by its label, or, if that was lost, because the cluster's agent has its place there.
fn belongs_to(namespace: &ObjectMeta, cluster: &str, access: Access) -> bool {
    match namespace.labels.as_ref().and_then(|labels| labels.get(CLUSTER_NAME_LABEL)) {
        Some(owner) => owner == cluster,
        None => access.namespace,
    }
}

/// Whether a name is taken by what all clusters share, or its namespace by Kubernetes or the hub.
fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
        || name == "default"
        || name.starts_with("kube-")
        || name.starts_with("open-cluster-management")
}

/// Whether a namespace can have that name.
fn is_namespace_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= 63
        && name.bytes().all(|byte| is_plain(byte) || byte == b'-')
        && name.bytes().next().is_some_and(is_plain)
        && name.bytes().last().is_some_and(is_plain)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use drover_api::cluster::{ManagedClusterSpec, ManagedClusterStatus};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn cluster(name: &str, accepted: bool) -> ManagedCluster {
        ManagedCluster::new(name, ManagedClusterSpec { hub_accepts_client: accepted, ..ManagedClusterSpec::default() })
    }

    fn namespace(owner: Option<&str>) -> Namespace {
        let labels = owner.map(|owner| BTreeMap::from([(CLUSTER_NAME_LABEL.to_owned(), owner.to_owned())]));
        Namespace { metadata: ObjectMeta { labels, ..ObjectMeta::default() }, ..Namespace::default() }
    }

    const NOTHING: Access = Access { role: false, namespace: false };
    const ALL: Access = Access { role: true, namespace: true };

    #[test]
    fn a_namespace_that_is_not_labelled_as_the_clusters_own_is_not_used() {
        let one = cluster("one", true);
        assert_eq!(judge(&one, None, NOTHING), Acceptance::Accepted);
        assert_eq!(judge(&one, Some(&namespace(Some("one"))), NOTHING), Acceptance::Accepted);
        let not_owned = Acceptance::Hindered(Hindrance::Namespace("one".to_owned()));
        assert_eq!(judge(&one, Some(&namespace(None)), NOTHING), not_owned);
        assert_eq!(judge(&one, Some(&namespace(Some("two"))), ALL), not_owned);
    }

    #[test]
    fn a_label_that_was_lost_does_not_cost_the_cluster_its_namespace() {
        let mut one = cluster("one", true);
        assert_eq!(judge(&one, Some(&namespace(None)), ALL), Acceptance::Accepted);
        // What the cluster says of itself does not get it a namespace.
        let conditions = conditions_of(&one, &Acceptance::Accepted, Timestamp::UNIX_EPOCH);
        one.status = Some(ManagedClusterStatus { conditions, ..ManagedClusterStatus::default() });
        assert_ne!(judge(&one, Some(&namespace(None)), NOTHING), Acceptance::Accepted);
    }

    #[test]
    fn a_namespace_that_goes_is_waited_for() {
        let mut going = namespace(Some("one"));
        going.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        let terminating = Acceptance::Hindered(Hindrance::NamespaceTerminating("one".to_owned()));
        assert_eq!(judge(&cluster("one", true), Some(&going), ALL), terminating);
    }

    #[test]
    fn a_name_that_can_not_be_used_is_named() {
        let hindrance = |name: &str| match judge(&cluster(name, true), None, NOTHING) {
            Acceptance::Hindered(hindrance) => Some(hindrance),
            _ => None,
        };
        for name in ["a.b", "-a", "a-", &"a".repeat(64)] {
            assert_eq!(hindrance(name), Some(Hindrance::Name(name.to_owned())));
        }
        for name in RESERVED.into_iter().chain(["default", "kube-system", "open-cluster-management-hub"]) {
            assert_eq!(hindrance(name), Some(Hindrance::Reserved(name.to_owned())));
        }
        assert_eq!(hindrance(&"a".repeat(63)), None);
    }

    #[test]
    fn whoever_has_access_can_be_denied_whatever_the_conditions_say() {
        let mut one = cluster("one", false);
        assert_eq!(judge(&one, None, NOTHING), Acceptance::Awaited);
        assert_eq!(conditions_of(&one, &Acceptance::Awaited, Timestamp::UNIX_EPOCH), []);
        assert_eq!(judge(&one, None, Access { role: true, namespace: false }), Acceptance::Denied);
        let conditions = conditions_of(&one, &Acceptance::Accepted, Timestamp::UNIX_EPOCH);
        one.status = Some(ManagedClusterStatus { conditions, ..ManagedClusterStatus::default() });
        assert_eq!(judge(&one, None, NOTHING), Acceptance::Denied);
    }
}
