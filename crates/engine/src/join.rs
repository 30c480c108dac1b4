//! How the agent of a cluster comes to be known to its hub, and stays so.
//!
//! An agent has a certificate of the hub's, by which it is known. Whoever has none yet asks for the first in somebody else's name, who may bring clusters in; the
//! agent renews it in its own name, long before it expires. The names are OCM's.

mod certificate;
mod claims;
mod resources;

use drover_api::{
    addon::Subject,
    names::{AGENT_PREFIX, AGENTS_GROUP},
    reference::ClusterName,
};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

pub use self::{
    certificate::{Certificate, Unreadable},
    claims::{MAX_CUSTOM_CLAIMS, claimed},
    resources::{Node, Resources, resources},
};

/// Where a hub is, and how it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hub {
    /// Its address.
    pub server: String,
    /// The certificates that it is checked against, in PEM.
    pub authority: Option<Vec<u8>>,
    /// What has to be asked to reach it.
    pub proxy: Option<String>,
}

/// Whom the certificate of a cluster's agent is for.
#[must_use]
pub fn subject(cluster: &ClusterName, agent: &str) -> Subject {
    Subject {
        user: Some(format!("{AGENT_PREFIX}{cluster}:{agent}")),
        groups: vec![format!("{AGENT_PREFIX}{cluster}"), AGENTS_GROUP.to_owned()],
        ..Subject::default()
    }
}

/// What becomes of a certificate that an agent has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is good until it is renewed, at that time.
    Good {
        /// When it is to be renewed.
        renew: Timestamp,
    },
    /// It is good, and it is time to renew it.
    Renew,
    /// It is of no use.
    Useless(Flaw),
}

/// Why an agent can not go on with what it has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Its certificate is none.
    #[error("the certificate can not be read: {0}")]
    Unreadable(#[from] Unreadable),
    /// It is for somebody else.
    #[error("the certificate is for {0:?}, and not for this agent")]
    Stranger(String),
    /// Its time is over.
    #[error("the certificate expired at {0}")]
    Expired(Timestamp),
    /// It is for another hub.
    #[error(
        "the credentials are for the hub at {0}, and the bootstrap kubeconfig names another, or another certificate authority of it"
    )]
    OtherHub(String),
    /// The hub does not take the certificate any more.
    #[error("the hub does not know this agent any more: its certificate was refused again and again")]
    TurnedAway,
}

/// What becomes of an agent's certificate: it is renewed when between a quarter and a fifth of its time is left, not all agents' at one time.
#[must_use]
pub fn judge(certificate: &Certificate, wanted: &Subject, now: Timestamp) -> Verdict {
    if !certificate.is_for(wanted) {
        return Verdict::Useless(Flaw::Stranger(certificate.user.clone()));
    }
    if certificate.not_after <= now {
        return Verdict::Useless(Flaw::Expired(certificate.not_after));
    }
    let renew = renewal(certificate);
    if renew <= now { Verdict::Renew } else { Verdict::Good { renew } }
}

fn renewal(certificate: &Certificate) -> Timestamp {
    let Certificate { not_before, not_after, user, .. } = certificate;
    let life = not_after.duration_since(*not_before).as_secs();
    // By its name, so that one agent has one time, and others have others.
    let spread = i64::from(Sha256::digest(user)[0]);
    let left = life / 5 + life / 20 * spread / 255;
    not_after.checked_sub(SignedDuration::from_secs(left)).unwrap_or(*not_before)
}

/// Whether credentials for one hub are of use where the bootstrap kubeconfig names another.
pub fn same_hub(credentials: &Hub, bootstrap: &Hub) -> Result<(), Flaw> {
    if credentials == bootstrap { Ok(()) } else { Err(Flaw::OtherHub(credentials.server.clone())) }
}

/// How many requests of one kind may be there before an agent makes no more: something is wrong if so many were not answered.
pub const MAX_REQUESTS: usize = 10;

#[cfg(test)]
mod tests;
