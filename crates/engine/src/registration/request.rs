//! Whether the agent of an add-on gets the certificate that it asks for, and from whom.
//!
//! A request is an add-on's if it is labelled with the add-on's name and the cluster's. The cluster's agent asks, for a certificate that the
//! add-on's agent on that cluster gets. All of it has to be exactly as the template says; whatever is not is denied.

use std::collections::BTreeSet;

use drover_api::{
    addon::{RegistrationSpec, RegistrationType, SigningCaRef, Subject},
    names::{ADDON_NAME_LABEL, CLUSTER_NAME_LABEL},
    reference::ClusterName,
};
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use kube::ResourceExt;

use super::identity;
use crate::{
    certificate::{
        Malformed,
        request::{self, Asked, awaits_certificate, is_decided},
    },
    cluster::access,
};

/// What is to be done about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    None,
    /// It is approved, for this reason.
    Approve(&'static str),
    /// It is denied, for this reason.
    Deny(Flaw),
}

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Somebody else asks.
    #[error(
        "{user} asks, and is no agent of the cluster {cluster}: that is {0}:<agent>, in the group {0}",
        access::agents(cluster)
    )]
    Requester {
        /// Who asks.
        user: String,
        /// The cluster whose agent has to.
        cluster: ClusterName,
    },
    /// It is for a signer that the add-on does not register with.
    #[error("the add-on does not register with the signer {signer}, but with {}", all(.expected))]
    Signer {
        /// The signer that was asked.
        signer: String,
        /// Those that it registers with.
        expected: Vec<String>,
    },
    /// It is no request of any agent.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// There is something in the subject that no agent has.
    #[error("there is more in the subject than a common name, organisations and organisational units: leave it out")]
    Parts,
    /// It is for somebody else.
    #[error("the subject needs exactly one common name, {expected}")]
    Name {
        /// The name that it has to have.
        expected: String,
    },
    /// It is for other groups.
    #[error("the organisations in the subject have to be {}, and no others", all(.expected))]
    Groups {
        /// Those that it has to have.
        expected: BTreeSet<String>,
    },
    /// It is for other units.
    #[error("the organisational units in the subject have to be {}, and no others", all(.expected))]
    Units {
        /// Those that it has to have.
        expected: BTreeSet<String>,
    },
}

/// Names in a sentence.
fn all<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let names: Vec<_> = names.into_iter().map(String::as_str).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" and ") }
}

/// Who signs a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer<'a> {
    /// Who signs for clients of the hub's API server: Kubernetes, or the hub where that does not.
    ApiServer,
    /// The hub, with this CA.
    Hub(&'a SigningCaRef),
}

/// The cluster and the add-on that a request is for, if it is for one.
#[must_use]
pub fn addon_of_request(request: &CertificateSigningRequest) -> Option<(ClusterName, String)> {
    let label = |key| request.labels().get(key).filter(|value| !value.is_empty());
    let (cluster, addon) = label(CLUSTER_NAME_LABEL).zip(label(ADDON_NAME_LABEL))?;
    Some((cluster.as_str().into(), addon.clone()))
}

/// What is to be done about a request of an add-on that registers in these ways.
#[must_use]
pub fn judge(request: &CertificateSigningRequest, specs: &[RegistrationSpec]) -> Verdict {
    let of = addon_of_request(request).filter(|_| !is_decided(request));
    let Some((cluster, addon)) = of else { return Verdict::None };
    match check(&request.spec, &cluster, &addon, specs) {
        Ok(_) => Verdict::Approve("the agent of the cluster asks for the add-on's own certificate"),
        Err(flaw) => Verdict::Deny(flaw),
    }
}

/// Who is to sign a request: if it is approved and waits for its certificate, and would be approved today.
#[must_use]
pub fn signer<'a>(request: &CertificateSigningRequest, specs: &'a [RegistrationSpec]) -> Option<Signer<'a>> {
    let (cluster, addon) = addon_of_request(request).filter(|_| awaits_certificate(request))?;
    let spec = check(&request.spec, &cluster, &addon, specs).ok()?;
    match spec.kind {
        RegistrationType::KubeClient => Some(Signer::ApiServer),
        RegistrationType::CustomSigner => spec.custom_signer.as_ref().map(|custom| Signer::Hub(&custom.signing_ca)),
    }
}

/// The registration that a request is for, and meets in all points.
fn check<'a>(
    asked: &CertificateSigningRequestSpec,
    cluster: &ClusterName,
    addon: &str,
    specs: &'a [RegistrationSpec],
) -> Result<&'a RegistrationSpec, Flaw> {
    if !is_agent(asked, cluster) {
        return Err(Flaw::Requester { user: asked.username.clone().unwrap_or_default(), cluster: cluster.clone() });
    }
    let mut of_signer = specs.iter().filter(|spec| identity::signer(spec) == Some(&asked.signer_name));
    let Some(first) = of_signer.next() else {
        let expected = specs.iter().filter_map(identity::signer).map(str::to_owned).collect();
        return Err(Flaw::Signer { signer: asked.signer_name.clone(), expected });
    };
    let subject = Asked::read(asked)?.subject(Some(&identity::host(addon)))?.ok_or(Flaw::Parts)?;
    let meets = |spec| compare(&subject, &identity::subject(cluster, addon, spec)).map(|()| spec);
    // One signer may sign for several; what is wrong is said of the first.
    meets(first).or_else(|flaw| of_signer.find_map(|spec| meets(spec).ok()).ok_or(flaw))
}

/// Whether an agent of the cluster asks: the group is the cluster's, and the user has one more part. What only begins so is another's.
fn is_agent(asked: &CertificateSigningRequestSpec, cluster: &ClusterName) -> bool {
    let group = access::agents(cluster);
    let user = asked.username.as_deref().unwrap_or_default();
    let agent = user.strip_prefix(&group).and_then(|rest| rest.strip_prefix(':'));
    agent.is_some_and(|agent| !agent.is_empty() && !agent.contains(':'))
        && asked.groups.as_deref().unwrap_or_default().contains(&group)
}

/// Compares whom a certificate is asked for with whom it may be for.
fn compare(subject: &request::Subject, expected: &Subject) -> Result<(), Flaw> {
    let set = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
    let (groups, units) = (set(&expected.groups), set(expected.units()));
    if subject.name() != expected.user.as_deref() {
        Err(Flaw::Name { expected: expected.user.clone().unwrap_or_default() })
    } else if subject.organisations != groups {
        Err(Flaw::Groups { expected: groups })
    } else if subject.units != units {
        Err(Flaw::Units { expected: units })
    } else {
        Ok(())
    }
}
