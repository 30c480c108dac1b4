//! What the agent of a cluster does for the agents of add-ons: which credentials it gets for each, where it keeps them, and what it says of them.
//!
//! The status of an add-on says how its agent registers. For each of these ways there is one Secret on the cluster, whose name and content are OCM's, so that
//! agents of add-ons find in it what they expect.

use std::{collections::BTreeMap, fmt};

use drover_api::{
    addon::{
        KubeClientDriver, KubeClientSubject, ManagedClusterAddOn, ManagedClusterAddOnStatus, RegistrationConfig,
        Subject,
    },
    names::{CERTIFICATE_ROTATED, HOSTING_CLUSTER_ANNOTATION, TOKEN_INFRASTRUCTURE_READY, TOKEN_REFRESHED},
    reference::ClusterName,
};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::{
    health::Health,
    identity,
    token::{self, Token},
    token_infrastructure::{account_name, is_for_hub},
};
use crate::{
    certificate::CLIENT_SIGNER,
    condition::{self, Holds, Says},
    hash::spec_hash,
    join::{self, Certificate, Hub},
};

/// The namespace of add-ons that say nothing of theirs.
const NAMESPACE: &str = "open-cluster-management-agent-addon";

/// Where the agent of an add-on runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Home {
    /// On the cluster that is managed.
    Managed,
    /// Where the agent of the cluster has its own objects.
    Management,
}

/// The Secret that credentials are kept in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// On which cluster.
    pub home: Home,
    /// In which namespace.
    pub namespace: String,
    /// Under which name.
    pub name: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Credentials that the agent of an add-on is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrolment {
    /// The add-on.
    pub addon: String,
    /// By what its agent is known.
    pub proof: Proof,
}

/// By what the agent of an add-on is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// By a certificate.
    Certificate {
        /// Who signs it.
        signer: String,
        /// Whom it is for.
        subject: Subject,
    },
    /// By a token.
    Token {
        /// The service account that it is for, in the cluster's namespace on the hub.
        account: String,
        /// The UID of that account.
        uid: String,
    },
    /// By something that the hub has yet to prepare. What is there stays.
    Awaited,
}

impl Proof {
    /// Whether it is for the hub's own API server, so that it is told with it where that is.
    #[must_use]
    pub fn is_for_hub(&self) -> bool {
        match self {
            Self::Certificate { signer, .. } => signer == CLIENT_SIGNER,
            Self::Token { .. } => true,
            Self::Awaited => false,
        }
    }
}

/// Who keeps credentials: the agent of a cluster.
#[derive(Clone, Debug)]
pub struct Keeper {
    /// The cluster.
    pub cluster: ClusterName,
    /// The agent's name.
    pub agent: String,
    /// Whether it has its own objects on another cluster than the one that it manages.
    pub is_hosted: bool,
    /// How agents of add-ons prove themselves to the hub's API server.
    pub driver: KubeClientDriver,
}

impl Keeper {
    /// On which cluster an add-on's agent runs, and in which namespace.
    #[must_use]
    pub fn home(&self, addon: &ManagedClusterAddOn) -> (Home, String) {
        let host = addon.annotations().get(HOSTING_CLUSTER_ANNOTATION).filter(|host| !host.is_empty());
        let home = if self.is_hosted && host.is_some() { Home::Management } else { Home::Managed };
        let status = addon.status.as_ref().and_then(|status| status.namespace.as_deref());
        let said = [status, addon.spec.install_namespace.as_deref()];
        let namespace = said.into_iter().flatten().find(|namespace| !namespace.is_empty()).unwrap_or(NAMESPACE);
        (home, namespace.to_owned())
    }

    /// The credentials that the agent of an add-on is to have. They stay while the add-on is being deleted: its agent may need them to clean up.
    #[must_use]
    pub fn enrolments(&self, addon: &ManagedClusterAddOn) -> BTreeMap<Place, Enrolment> {
        let name = addon.name_any();
        let (home, namespace) = self.home(addon);
        let registrations = addon.status.as_ref().map_or(&[][..], |status| &status.registrations);
        let mut enrolments = BTreeMap::new();
        for registration in registrations {
            let Some(signer) = signer(registration) else { continue };
            let place = Place { home, namespace: namespace.clone(), name: secret_name(&name, signer) };
            let proof = self.proof(addon, registration, signer);
            enrolments.entry(place).or_insert_with(|| Enrolment { addon: name.clone(), proof });
        }
        enrolments
    }

    fn proof(&self, addon: &ManagedClusterAddOn, registration: &RegistrationConfig, signer: &str) -> Proof {
        let certificate = || Proof::Certificate {
            signer: signer.to_owned(),
            subject: self.subject(&addon.name_any(), registration, signer),
        };
        if signer != CLIENT_SIGNER {
            return certificate();
        }
        // As long as the status says otherwise, the hub expects somebody else.
        let is_account = said_subject(registration).user.as_ref() == Some(&self.account_user(&addon.name_any()));
        match (self.driver, said_driver(addon, registration)) {
            (KubeClientDriver::Csr, None | Some(KubeClientDriver::Csr)) if !is_account => certificate(),
            (KubeClientDriver::Token, Some(KubeClientDriver::Token)) => ready_account(addon)
                .map_or(Proof::Awaited, |uid| Proof::Token { account: account_name(&addon.name_any()), uid }),
            _ => Proof::Awaited,
        }
    }

    fn subject(&self, addon: &str, registration: &RegistrationConfig, signer: &str) -> Subject {
        let said = said_subject(registration);
        let group = identity::group(&self.cluster, addon);
        let units = said.units().to_vec();
        let user = said.user.filter(|user| !user.is_empty()).unwrap_or_else(|| format!("{group}:agent:{}", self.agent));
        let groups = if said.groups.is_empty() && signer == CLIENT_SIGNER { vec![group] } else { said.groups };
        Subject { user: Some(user), groups, organization_units: units, ..Subject::default() }
    }

    /// What the status of an add-on is to say: how its agent proves itself, what has become of its credentials, and how it is, where that is known.
    #[must_use]
    pub fn report(
        &self,
        addon: &ManagedClusterAddOn,
        outcomes: &[(&Enrolment, &Outcome)],
        health: Option<&Health>,
        now: Timestamp,
    ) -> ManagedClusterAddOnStatus {
        let mut status = addon.status.clone().unwrap_or_default();
        self.declare(&mut status, &addon.name_any());
        let expected = self.enrolments(addon);
        let of = |is_meant: fn(&Proof) -> bool| {
            let outcomes: Vec<_> = outcomes
                .iter()
                .filter(|(enrolment, _)| is_meant(&enrolment.proof))
                .map(|(_, outcome)| *outcome)
                .collect();
            let all = expected.values().filter(|enrolment| is_meant(&enrolment.proof)).count();
            summary(&outcomes, all)
        };
        let certificates = of(|proof| matches!(proof, Proof::Certificate { .. }));
        let tokens = of(|proof| matches!(proof, Proof::Token { .. }));
        let words = [(CERTIFICATES, certificates), (TOKENS, tokens)];
        for (words, outcome) in words.iter().filter_map(|(words, outcome)| Some((words, outcome.as_ref()?))) {
            let (reason, message) = words.put(outcome);
            let holds = Holds::from(matches!(outcome, Outcome::Kept { .. }));
            let says = Says { type_: words.type_, holds, reason, message: &message, generation: None };
            status.conditions = condition::with(status.conditions, says, now);
        }
        if let Some(health) = health {
            status.conditions = condition::with(status.conditions, health.says(), now);
        }
        status
    }

    /// The user that an add-on's agent is by a token.
    fn account_user(&self, addon: &str) -> String {
        format!("system:serviceaccount:{}:{}", self.cluster, account_name(addon))
    }

    /// Says how the agent proves itself to the hub's API server, and with tokens, as whom.
    fn declare(&self, status: &mut ManagedClusterAddOnStatus, addon: &str) {
        let mut for_hub = status.registrations.iter_mut().filter(|registration| is_for_hub(registration)).peekable();
        status.kube_client_driver = for_hub.peek().map(|_| self.driver);
        let user = (self.driver == KubeClientDriver::Token).then(|| self.account_user(addon));
        for registration in for_hub {
            if let Some(client) = &mut registration.kube_client {
                client.driver = Some(self.driver);
            }
            if let Some(user) = &user {
                registration.subject = Some(Subject { user: Some(user.clone()), ..Subject::default() });
                let subject = KubeClientSubject { user: Some(user.clone()), ..KubeClientSubject::default() };
                registration.kube_client.iter_mut().for_each(|client| client.subject = Some(subject.clone()));
            }
        }
    }
}

/// Who signs for a registration, in whichever of its two shapes that is said.
fn signer(registration: &RegistrationConfig) -> Option<&str> {
    let flat = registration.signer_name.as_deref();
    let custom = registration.custom_signer.as_ref().map(|custom| &*custom.signer_name);
    let default = is_for_hub(registration).then_some(CLIENT_SIGNER);
    [flat, custom, default].into_iter().flatten().find(|signer| !signer.is_empty())
}

/// Whom a registration is for, in whichever of its two shapes that is said.
fn said_subject(registration: &RegistrationConfig) -> Subject {
    let client = registration.kube_client.as_ref().and_then(|client| client.subject.clone());
    let client = client.map(|KubeClientSubject { user, groups }| Subject { user, groups, ..Subject::default() });
    let custom = registration.custom_signer.as_ref().and_then(|custom| custom.subject.clone());
    let shapes = [registration.subject.clone(), client, custom];
    shapes.into_iter().flatten().find(|subject| *subject != Subject::default()).unwrap_or_default()
}

fn said_driver(addon: &ManagedClusterAddOn, registration: &RegistrationConfig) -> Option<KubeClientDriver> {
    let typed = registration.kube_client.as_ref().and_then(|client| client.driver);
    typed.or_else(|| addon.status.as_ref()?.kube_client_driver)
}

/// The UID of the service account that the hub has prepared for an add-on, which it tells in a sentence.
fn ready_account(addon: &ManagedClusterAddOn) -> Option<String> {
    let conditions = &addon.status.as_ref()?.conditions;
    let ready = conditions.iter().find(|said| said.type_ == TOKEN_INFRASTRUCTURE_READY && said.status == "True")?;
    let (_, rest) = ready.message.split_once("UID: ")?;
    rest.split_once(')').map(|(uid, _)| uid.to_owned()).filter(|uid| !uid.is_empty())
}

/// The name of the Secret with what a signer has signed for an add-on.
fn secret_name(addon: &str, signer: &str) -> String {
    if signer == CLIENT_SIGNER {
        format!("{addon}-hub-kubeconfig")
    } else {
        format!("{addon}-{}-client-cert", signer.replace('/', "-"))
    }
}

/// What an agent writes into all its Secrets besides the credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imprint {
    /// The cluster.
    pub cluster: String,
    /// By what they are told from those of other agents, as a label's value.
    pub kept_by: String,
    /// The hub that they are for.
    pub hub: Hub,
}

/// By what the Secrets of an agent are told from those of other agents, as a label's value. An agent is known by the cluster that it manages and by where it
/// keeps its own credentials, also when the hub gets another address.
#[must_use]
pub fn kept_by(cluster: &ClusterName, own_namespace: &str, own_secret: &str, home: Home) -> String {
    let home = match home {
        Home::Managed => "managed",
        Home::Management => "management",
    };
    let mut hash = spec_hash(&format!("{cluster}/{own_namespace}/{own_secret}/{home}")).to_string();
    hash.truncate(16);
    hash
}

/// What is in a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Whose it is by its label.
    pub kept_by: Option<String>,
    /// The cluster that it says it is for.
    pub cluster: Option<String>,
    /// A certificate, in PEM, if there is a key to it.
    pub certificate: Option<Vec<u8>>,
    /// A token.
    pub token: Option<Vec<u8>>,
    /// What its kubeconfig says.
    pub access: Option<Access>,
}

/// What a kubeconfig says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The hub that it is for.
    pub hub: Hub,
    /// By what one is known there.
    pub by: Means,
}

/// By what somebody is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// The certificate beside it.
    Certificate,
    /// The token beside it.
    Token,
    /// Something else.
    Other,
}

impl Kept {
    /// Whether it is this agent's, or one that OCM's agent has made for the same cluster.
    fn is_of(&self, imprint: &Imprint) -> bool {
        match &self.kept_by {
            Some(kept_by) => *kept_by == imprint.kept_by,
            None => self.cluster.as_ref() == Some(&imprint.cluster),
        }
    }

    /// Whether everything besides the credentials is as this agent writes it.
    fn is_tidy(&self, proof: &Proof, imprint: &Imprint) -> bool {
        let means = match proof {
            Proof::Token { .. } => Means::Token,
            Proof::Certificate { .. } | Proof::Awaited => Means::Certificate,
        };
        self.kept_by.as_ref() == Some(&imprint.kept_by)
            && self.cluster.as_ref() == Some(&imprint.cluster)
            && (!proof.is_for_hub() || self.access.as_ref().is_some_and(|access| access.by == means))
    }
}

/// What becomes of credentials that are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They are good.
    Good {
        /// When they are to be renewed.
        renew: Timestamp,
        /// When they expire.
        until: Timestamp,
    },
    /// They are good, and what stands beside them is not.
    Untidy,
    /// They are good, and it is time to renew them.
    Renew,
    /// They are of no use.
    Useless(Flaw),
    /// The Secret is somebody else's.
    Foreign,
}

/// Why credentials are of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// There are none.
    #[error("there are none")]
    None,
    /// They are for another hub.
    #[error("they are for another hub")]
    OtherHub,
    /// The certificate is of no use.
    #[error(transparent)]
    Certificate(#[from] join::Flaw),
    /// The token is none.
    #[error("the token can not be read: {0}")]
    Token(#[from] token::Unreadable),
    /// The token is of an account that is gone.
    #[error("the token is for another service account")]
    OtherAccount,
    /// The token's time is over.
    #[error("the token expired at {0}")]
    Expired(Timestamp),
}

/// What becomes of what is in a Secret, if there is one; nothing is known while credentials are awaited.
#[must_use]
pub fn judge(proof: &Proof, kept: Option<&Kept>, imprint: &Imprint, now: Timestamp) -> Option<Verdict> {
    let missing = Kept::default();
    if kept.is_some_and(|kept| !kept.is_of(imprint)) {
        return Some(Verdict::Foreign);
    }
    let kept = kept.unwrap_or(&missing);
    let verdict = match proof {
        Proof::Awaited => return None,
        Proof::Certificate { subject, .. } => judge_certificate(subject, kept, now),
        Proof::Token { uid, .. } => judge_token(uid, kept, now),
    };
    let hub = kept.access.as_ref().map(|access| &access.hub);
    Some(match verdict {
        // A certificate of one hub is of no use at another.
        Ok(_) if proof.is_for_hub() && hub.is_some_and(|hub| *hub != imprint.hub) => Verdict::Useless(Flaw::OtherHub),
        Ok(Verdict::Good { .. }) if !kept.is_tidy(proof, imprint) => Verdict::Untidy,
        Ok(verdict) => verdict,
        Err(flaw) => Verdict::Useless(flaw),
    })
}

fn judge_certificate(subject: &Subject, kept: &Kept, now: Timestamp) -> Result<Verdict, Flaw> {
    let certificate = Certificate::read(kept.certificate.as_ref().ok_or(Flaw::None)?).map_err(join::Flaw::from)?;
    Ok(match join::judge(&certificate, subject, now) {
        join::Verdict::Good { renew } => Verdict::Good { renew, until: certificate.not_after },
        join::Verdict::Renew => Verdict::Renew,
        join::Verdict::Useless(flaw) => Verdict::Useless(flaw.into()),
    })
}

fn judge_token(uid: &str, kept: &Kept, now: Timestamp) -> Result<Verdict, Flaw> {
    let token = Token::read(kept.token.as_ref().ok_or(Flaw::None)?)?;
    if token.account.as_deref() != Some(uid) {
        return Err(Flaw::OtherAccount);
    }
    if token.expires <= now {
        return Err(Flaw::Expired(token.expires));
    }
    let renew = token.renewal();
    Ok(if renew <= now { Verdict::Renew } else { Verdict::Good { renew, until: token.expires } })
}

/// What has become of an enrolment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There are credentials, which are good until then.
    Kept {
        /// When they expire.
        until: Timestamp,
    },
    /// There are none, or they could not be renewed, for this reason.
    Failed(String),
}

/// What is said of several: of the first that failed, or once there is none to wait for, of all.
fn summary(outcomes: &[&Outcome], expected: usize) -> Option<Outcome> {
    if let Some(failed) = outcomes.iter().find(|outcome| matches!(outcome, Outcome::Failed(_))) {
        return Some(Outcome::clone(failed));
    }
    let ends = outcomes.iter().filter_map(|outcome| match outcome {
        Outcome::Kept { until } => Some(*until),
        Outcome::Failed(_) => None,
    });
    ends.min().filter(|_| outcomes.len() == expected).map(|until| Outcome::Kept { until })
}

/// How it is told what has become of credentials of one sort.
struct Words {
    type_: &'static str,
    kept: &'static str,
    failed: &'static str,
    what: &'static str,
}

const CERTIFICATES: Words = Words {
    type_: CERTIFICATE_ROTATED,
    kept: "ClientCertificateUpdated",
    failed: "ClientCertificateUpdateFailed",
    what: "client certificate rotated, and valid until",
};

const TOKENS: Words = Words {
    type_: TOKEN_REFRESHED,
    kept: "AddonTokenRefreshed",
    failed: "TokenCreationFailed",
    what: "token refreshed, and valid until",
};

impl Words {
    fn put(&self, outcome: &Outcome) -> (&'static str, String) {
        match outcome {
            Outcome::Kept { until } => (self.kept, format!("{} {until}", self.what)),
            Outcome::Failed(why) => (self.failed, why.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
