//! Whether an agent gets the certificate that it asks for.
//!
//! A request is a cluster's if it is labelled with the cluster's name and addressed to the signer of the API server's clients. Its subject has
//! to be exactly an agent's of that cluster: what only begins like it is denied. A well-formed request is approved for the agent itself, which
//! renews its certificate, and for somebody of a bootstrap group, who brings a cluster in. The latter only until the cluster has joined: the
//! credentials of that group are on every cluster, and would otherwise get the identity of any. Others' requests are left for a person.

use std::collections::BTreeSet;

use drover_api::{
    cluster::ManagedCluster,
    names::{
        ADDON_NAME_LABEL, AGENT_PREFIX, AGENTS_GROUP, CLUSTER_JOINED, CLUSTER_NAME_LABEL, JOINED_ANNOTATION,
        REJOIN_ANNOTATION,
    },
    reference::ClusterName,
};
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use kube::ResourceExt;

use super::{access, conditions};
use crate::{
    certificate::{
        CLIENT_SIGNER, Malformed,
        request::{Asked, Subject, awaits_certificate, is_decided},
    },
    condition::{self, Holds},
};

/// What is to be done about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    None,
    /// It waits for somebody to do something.
    Wait(Wait),
    /// It is approved, for this reason.
    Approve(&'static str),
    /// It is denied, for this reason.
    Deny(Flaw),
}

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wait {
    /// The cluster is not accepted.
    #[error("an administrator has to accept the cluster: set spec.hubAcceptsClient to true")]
    Acceptance,
    /// The cluster is being deleted.
    #[error(
        "the cluster is being deleted, and takes nobody in; create it again when it is gone, or approve the request by hand"
    )]
    Leaving,
    /// The cluster has joined already.
    #[error(
        "the cluster has joined before, and somebody who brings clusters in asks for its certificate again: if that is right approve the \
         request by hand, or annotate the cluster with {REJOIN_ANNOTATION}=true"
    )]
    Rejoin,
    /// Nobody knows who asks.
    #[error(
        "whoever asks is neither the cluster's agent nor in a bootstrap group of the hub: approve or deny the request by hand"
    )]
    Stranger,
}

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// It is no request of any agent.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// It is for somebody else.
    #[error(
        "the subject is not that of an agent of the cluster {0}: its common name has to be {AGENT_PREFIX}{0}:<agent>, its \
         organisations {AGENT_PREFIX}{0} and {AGENTS_GROUP}, and there has to be nothing else in it"
    )]
    Subject(ClusterName),
    /// One agent asks in the name of another.
    #[error("{0} asks for the certificate of another agent")]
    Foreign(String),
}

/// The cluster that a request is for, if it is one of an agent.
#[must_use]
pub fn cluster_of(request: &CertificateSigningRequest) -> Option<ClusterName> {
    let labels = request.labels();
    // An add-on's agent is another matter.
    if request.spec.signer_name != CLIENT_SIGNER || labels.contains_key(ADDON_NAME_LABEL) {
        return None;
    }
    labels.get(CLUSTER_NAME_LABEL).map(|name| ClusterName::from(name.as_str()))
}

/// What is to be done about a request, given the cluster that it is for, if there is one, and the groups whose members
/// may bring clusters in.
#[must_use]
pub fn judge(
    request: &CertificateSigningRequest,
    cluster: Option<&ManagedCluster>,
    bootstrap_groups: &BTreeSet<String>,
) -> Verdict {
    let Some(name) = cluster_of(request).filter(|_| !is_decided(request)) else { return Verdict::None };
    let requester = Requester::of(&request.spec, &name, bootstrap_groups);
    match check(&request.spec, &name, requester) {
        Ok(()) => {}
        // What strangers ask for is not approved, and may be none of our business.
        Err(_) if requester == Requester::Stranger => return Verdict::None,
        Err(flaw) => return Verdict::Deny(flaw),
    }
    let Some(cluster) = cluster.filter(|cluster| is_accepted(cluster)) else { return Verdict::Wait(Wait::Acceptance) };
    match requester {
        Requester::Bootstrap if cluster.metadata.deletion_timestamp.is_some() => Verdict::Wait(Wait::Leaving),
        Requester::Bootstrap if has_joined(cluster) => Verdict::Wait(Wait::Rejoin),
        Requester::Bootstrap => Verdict::Approve("an accepted cluster joins"),
        Requester::Stranger => Verdict::Wait(Wait::Stranger),
        Requester::Agent | Requester::OtherAgent => {
            Verdict::Approve("the agent of an accepted cluster renews its certificate")
        }
    }
}

fn is_accepted(cluster: &ManagedCluster) -> bool {
    cluster.spec.hub_accepts_client && !access::RESERVED.contains(&cluster.cluster_name().as_str())
}

/// Whether a cluster has joined, and is not to do so again.
fn has_joined(cluster: &ManagedCluster) -> bool {
    let is_set = |annotation| cluster.annotations().get(annotation).is_some_and(|value| value == "true");
    let says_so = condition::holds(conditions(cluster), CLUSTER_JOINED) == Some(Holds::Yes);
    (says_so || is_set(JOINED_ANNOTATION)) && !is_set(REJOIN_ANNOTATION)
}

/// Whether a request is approved and waits for a certificate that an agent of its cluster may have. Who has approved it has judged
/// who asks; one agent gets no certificate of another's.
#[must_use]
pub fn awaits_own_certificate(request: &CertificateSigningRequest) -> bool {
    let Some(cluster) = cluster_of(request).filter(|_| awaits_certificate(request)) else { return false };
    let requester = Requester::of(&request.spec, &cluster, &BTreeSet::new());
    check(&request.spec, &cluster, requester).is_ok()
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requester {
    /// An agent of the cluster.
    Agent,
    /// An agent of another cluster.
    OtherAgent,
    Bootstrap,
    Stranger,
}

impl Requester {
    fn of(spec: &CertificateSigningRequestSpec, cluster: &ClusterName, bootstrap_groups: &BTreeSet<String>) -> Self {
        let user = spec.username.as_deref().unwrap_or_default();
        let groups = spec.groups.as_deref().unwrap_or_default();
        let own = access::agents(cluster);
        if groups.contains(&own) && user.strip_prefix(&own).is_some_and(|agent| agent.starts_with(':')) {
            Self::Agent
        } else if user.starts_with(AGENT_PREFIX) || groups.iter().any(|group| group.starts_with(AGENT_PREFIX)) {
            Self::OtherAgent
        } else if groups.iter().any(|group| bootstrap_groups.contains(group)) {
            Self::Bootstrap
        } else {
            Self::Stranger
        }
    }
}

/// Checks that a request is for an agent of the cluster, and that no other agent has made it.
fn check(spec: &CertificateSigningRequestSpec, cluster: &ClusterName, requester: Requester) -> Result<(), Flaw> {
    let agent = agent_of(spec, cluster)?;
    let user = spec.username.as_deref().unwrap_or_default();
    let is_foreign = requester == Requester::OtherAgent || (requester == Requester::Agent && user != agent);
    if is_foreign { Err(Flaw::Foreign(user.to_owned())) } else { Ok(()) }
}

/// The agent that the certificate would be for: the common name.
fn agent_of(spec: &CertificateSigningRequestSpec, cluster: &ClusterName) -> Result<String, Flaw> {
    let subject = Asked::read(spec)?.subject(None)?;
    let agent = subject.as_ref().and_then(|subject| agent_in(subject, cluster));
    agent.map(str::to_owned).ok_or_else(|| Flaw::Subject(cluster.clone()))
}

/// The common name, if all of the subject is exactly what an agent of the cluster has.
fn agent_in<'a>(subject: &'a Subject, cluster: &ClusterName) -> Option<&'a str> {
    let group = access::agents(cluster);
    let agent = subject.name()?;
    let own = agent.strip_prefix(&group)?.strip_prefix(':')?;
    let is_agent = !own.is_empty() && !own.contains(':') && subject.units.is_empty();
    let organisations = BTreeSet::from([group, AGENTS_GROUP.to_owned()]);
    (is_agent && subject.organisations == organisations).then_some(agent)
}
