//! The registration controller of add-ons: approves the certificates of their agents, denies what is not theirs, and signs where nobody else does.
//!
//! Watches signing requests that are labelled with a cluster and an add-on, and add-ons on clusters. Its key is a request, or an add-on on a
//! cluster, which alone has a namespace, when what that says of its requests may be out of date. It writes the decision and the certificate, and
//! on the add-on the condition `drover.dev/CertificatesSigned` when it could not.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use drover_api::{
    addon::{ManagedClusterAddOn, RegistrationSpec},
    reference::ClusterName,
};
use drover_engine::{
    addon,
    certificate::{
        CLIENT_SIGNER,
        request::{awaits_certificate, is_decided},
    },
    plan::{Controller, Plan, PlanPart, Write, WriteResult},
    registration::{
        request::{self, Signer, Verdict},
        signing::{self, Signing},
    },
    revision::markers::Given,
    template::Blueprint,
};
use drover_runtime::{
    clock::after,
    controller::Reconciler,
    store::{Change, ObjectKey},
};
use k8s_openapi::{api::certificates::v1::CertificateSigningRequest, jiff::Timestamp};
use kube::ResourceExt;
use parking_lot::{Mutex, MutexGuard};

use crate::{
    cache::{Cache, Queues},
    cluster::decide,
    signer::Sign,
};

/// When a denial is tried again that the hub had no right to, and when a request is looked at again whose template is not known.
const PATIENCE: Duration = Duration::from_mins(10);

/// Decides on the requests of agents of add-ons.
pub(crate) struct AddOnRequests {
    /// The hub's own namespace, where CAs are whose namespace is not said.
    namespace: String,
    /// The CA for clients of the API server, where Kubernetes does not sign for them.
    client_ca: Option<ObjectKey>,
    /// What was last tried with a request.
    attempts: Mutex<BTreeMap<ObjectKey, Attempt>>,
}

/// What was tried with a request, and what the server said to it if it was against it.
struct Attempt {
    /// The add-on on a cluster that the request is for.
    addon: ObjectKey,
    step: Step,
    refusal: Option<Refusal>,
    /// Until when it is left alone.
    rests_until: Option<Timestamp>,
}

impl Attempt {
    fn new(addon: ObjectKey, step: Step) -> Self {
        Self { addon, step, refusal: None, rests_until: None }
    }

    /// What is said on the add-on of an attempt that has failed. What somebody has asked for who is not the add-on's agent is not said there.
    fn failure(&self, request: &CertificateSigningRequest) -> Option<String> {
        let what = match self.step {
            Step::Approve => "approve",
            Step::Sign => "sign",
            Step::Deny => return None,
        };
        let (name, signer, why) = (request.name_any(), &request.spec.signer_name, &self.refusal.as_ref()?.why);
        Some(format!("could not {what} the request {name} for the signer {signer}: {why}"))
    }
}

/// What is done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Approve,
    Deny,
    Sign,
}

/// Why something could not be done.
#[derive(Clone)]
struct Refusal {
    why: String,
    /// Whether the hub had no right to it.
    is_forbidden: bool,
}

impl AddOnRequests {
    pub(crate) fn new(namespace: String, client_ca: Option<ObjectKey>) -> Self {
        Self { namespace, client_ca, attempts: Mutex::default() }
    }

    fn attempts(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Attempt>> {
        self.attempts.lock()
    }

    /// Takes note of what is tried now, and says why it could not be done before.
    fn attempt(&self, case: &Case<'_>, step: Step) -> Option<Refusal> {
        let mut attempts = self.attempts();
        let new = || Attempt::new(case.addon.clone(), step);
        let attempt = attempts.entry(case.key.clone()).or_insert_with(new);
        if attempt.step != step {
            *attempt = new();
        }
        attempt.refusal.clone()
    }

    /// Takes note that something was refused.
    fn note(&self, request: &ObjectKey, refusal: Refusal) {
        if let Some(attempt) = self.attempts().get_mut(request) {
            attempt.refusal = Some(refusal);
        }
    }

    /// What could not be done about the requests of an add-on: of several, about the first, so that all say the same, whichever was tried last.
    fn failure(&self, cache: &Cache, addon: &ObjectKey) -> Option<String> {
        let attempts = self.attempts();
        let mut open = cache.belongings.open_requests(addon);
        open.find_map(|key| attempts.get(key)?.failure(cache.belongings.requests.get(key)?))
    }

    /// Until when an attempt rests that the hub had no right to; nothing once it has rested, and is made anew.
    fn rest(&self, request: &ObjectKey, now: Timestamp) -> Option<Timestamp> {
        let mut attempts = self.attempts();
        let attempt = attempts.get_mut(request)?;
        let until = *attempt.rests_until.get_or_insert_with(|| after(now, PATIENCE));
        if until <= now {
            *attempt = Attempt::new(attempt.addon.clone(), attempt.step);
        }
        (now < until).then_some(until)
    }

    /// The Secret with the CA by which a request is to be signed.
    fn ca(&self, request: &CertificateSigningRequest, specs: &[RegistrationSpec]) -> Option<ObjectKey> {
        match request::signer(request, specs)? {
            Signer::ApiServer => self.client_ca.clone(),
            Signer::Hub(ca) => {
                let namespace = ca.namespace.as_deref().filter(|namespace| !namespace.is_empty());
                Some(ObjectKey::namespaced(namespace.unwrap_or(&self.namespace), &ca.name))
            }
        }
    }

    /// Whether a CA does not sign a request because clients of the API server are known by it: for another signer, a template can choose any
    /// name, and who has that would be let in by it.
    fn is_reserved(&self, ca: &ObjectKey, request: &CertificateSigningRequest) -> bool {
        self.client_ca.as_ref() == Some(ca) && request.spec.signer_name != CLIENT_SIGNER
    }

    /// What is done about a request, and, if that could not be done before, what is said of it before it is tried again.
    fn try_again(&self, case: &Case<'_>, step: Step, plan: impl FnOnce() -> Plan<Sign>, now: Timestamp) -> Plan<Sign> {
        let Some(refusal) = self.attempt(case, step) else { return plan() };
        match step {
            // There may be a signer who is not ours.
            Step::Deny if refusal.is_forbidden => match self.rest(case.key, now) {
                Some(until) => Plan { wake: Some(until), ..Plan::default() },
                None => plan(),
            },
            Step::Deny => plan(),
            Step::Approve | Step::Sign => plan().after(self.say_failed(case, now)),
        }
    }

    /// Has the add-on say what could not be done about the requests of its agent.
    fn say_failed(&self, case: &Case<'_>, now: Timestamp) -> Vec<Write> {
        let failure = self.failure(case.cache, &case.addon);
        failure.and_then(|why| say(case.cache, &case.addon, Signing::Failed(&why), now)).into_iter().collect()
    }

    /// Signs a request that waits for the hub to sign it.
    fn sign(&self, case: &Case<'_>, now: Timestamp) -> Plan<Sign> {
        if let Some(ca) = self.ca(case.request, case.specs) {
            if self.is_reserved(&ca, case.request) {
                self.attempt(case, Step::Sign);
                self.note(case.key, Refusal::reserved(&ca));
                return self.say_failed(case, now).into_iter().collect();
            }
            let signing = || Plan::act(Sign { request: Arc::clone(case.request), ca, now });
            return self.try_again(case, Step::Sign, signing, now);
        }
        self.attempts().remove(case.key);
        Plan::default()
    }

    /// Has an add-on say what has come of its requests, where it says that something was not signed, and nothing waits for the hub any more.
    fn settle(&self, cache: &Cache, addon: &ObjectKey, outcome: Signing<'_>, now: Timestamp) -> Plan<Sign> {
        if !cache.addons.mcas.get(addon).is_some_and(|addon| signing::says_failed(addon)) {
            return Plan::default();
        }
        let mut open =
            cache.belongings.open_requests(addon).filter_map(|key| cache.belongings.requests.get(key)).peekable();
        if open.peek().is_some() {
            let Some(blueprint) = blueprint(cache, addon, now) else { return later(now) };
            if open.any(|request| self.is_due(request, blueprint.registrations())) {
                return Plan::default();
            }
        }
        say(cache, addon, outcome, now).into_iter().collect()
    }

    /// Whether a request waits for the hub to approve it, or to sign it.
    fn is_due(&self, request: &CertificateSigningRequest, specs: &[RegistrationSpec]) -> bool {
        matches!(request::judge(request, specs), Verdict::Approve(_)) || self.ca(request, specs).is_some()
    }
}

/// A request, and what it is decided by.
struct Case<'a> {
    cache: &'a Cache,
    key: &'a ObjectKey,
    request: &'a Arc<CertificateSigningRequest>,
    /// The add-on on a cluster that the request is for.
    addon: ObjectKey,
    specs: &'a [RegistrationSpec],
}

/// Has an add-on say what has become of its agent's requests.
fn say(cache: &Cache, addon: &ObjectKey, what: Signing<'_>, now: Timestamp) -> Option<Write> {
    let addon = cache.addons.mcas.get(addon)?;
    Write::status(&**addon, &signing::saying(addon, what, now))
}

/// Nothing now, and another look after a while: what is missing may come without anybody telling.
fn later(now: Timestamp) -> Plan<Sign> {
    Plan { wake: Some(after(now, PATIENCE)), ..Plan::default() }
}

/// The template of an add-on on a cluster, by which its agent registers; nothing if that is not known, or there is none.
fn blueprint(cache: &Cache, addon: &ObjectKey, now: Timestamp) -> Option<Arc<Blueprint>> {
    let on_cluster = cache.addons.mcas.get(addon).filter(|addon| addon.metadata.deletion_timestamp.is_none())?;
    addon::on_cluster::render_state(cache, on_cluster, now)?.blueprint().cloned()
}

impl Reconciler<Cache> for AddOnRequests {
    type Key = ObjectKey;
    type State = ();
    type Action = Sign;

    const NAME: &'static str = "drover-addon-registration";

    fn plan(&self, cache: &Cache, key: &ObjectKey, (): &mut (), now: Timestamp) -> Plan<Sign> {
        if !key.namespace.is_empty() {
            return self.settle(cache, key, Signing::Over, now);
        }
        let Some(request) = cache.belongings.requests.get(key) else {
            let attempt = self.attempts().remove(key);
            let enqueue = attempt.map(|attempt| (Controller::AddOnRegistration, attempt.addon));
            return Plan { enqueue: enqueue.into_iter().collect(), ..Plan::default() };
        };
        let Some((cluster, addon)) = request::addon_of_request(request).filter(|(it, _)| is_accepted(cache, it)) else {
            return Plan::default();
        };
        let addon = ObjectKey::namespaced(cluster.as_str(), &addon);
        if is_closed(request) {
            self.attempts().remove(key);
            return self.settle(cache, &addon, outcome_of(request), now);
        }
        let Some(blueprint) = blueprint(cache, &addon, now) else { return later(now) };
        let specs = blueprint.registrations();
        let case = Case { cache, key, request, addon, specs };
        match request::judge(request, specs) {
            Verdict::None => self.sign(&case, now),
            Verdict::Approve(why) => {
                let approval = || decide(request, "Approved", "AgentOfAddOn", why, now);
                self.try_again(&case, Step::Approve, approval, now)
            }
            Verdict::Deny(flaw) => {
                let denial = || decide(request, "Denied", "NotAnAddOnsRequest", &flaw.to_string(), now);
                self.try_again(&case, Step::Deny, denial, now)
            }
        }
    }

    fn sent(&self, key: &ObjectKey, (): &mut (), part: PlanPart<'_, Sign>, result: &WriteResult, _: Timestamp) {
        let is_about_request = match part {
            // What is said on the add-on is another matter.
            PlanPart::Write(write) => write.kind().is::<CertificateSigningRequest>(),
            PlanPart::Action(_) => true,
            PlanPart::Event(_) => false,
        };
        if let Some(refusal) = Refusal::of(result).filter(|_| is_about_request) {
            self.note(key, refusal);
        }
    }
}

/// Whether nothing is to be done about a request any more: it is signed, denied, or has failed.
fn is_closed(request: &CertificateSigningRequest) -> bool {
    is_decided(request) && !awaits_certificate(request)
}

/// What has come of a request that nothing is to be done about any more.
fn outcome_of(request: &CertificateSigningRequest) -> Signing<'static> {
    let is_signed = request.status.as_ref().is_some_and(|status| status.certificate.is_some());
    if is_signed { Signing::Signed } else { Signing::Over }
}

/// Whether a cluster is let in: nothing is given to the agents of one that is not.
pub(super) fn is_accepted(cache: &Cache, cluster: &ClusterName) -> bool {
    cache.cluster(cluster).is_some_and(|cluster| cluster.spec.hub_accepts_client)
}

impl Refusal {
    fn reserved(ca: &ObjectKey) -> Self {
        let why = format!("the Secret {ca} has the CA for clients of the API server: name another CA in signingCA");
        Self { why, is_forbidden: false }
    }

    /// What a write or an action says that was not accepted; `None` if the request has changed, or the server was not reached,
    /// which are no failures of ours.
    fn of(result: &WriteResult) -> Option<Self> {
        let mut why = result.objection()?.to_owned();
        let is_forbidden = matches!(result, WriteResult::Forbidden(_));
        if is_forbidden {
            why += "; let the hub approve and sign for this signer, by a ClusterRole with the label drover.dev/hub-signs: \"true\"";
        }
        Some(Self { why, is_forbidden })
    }
}

impl Cache {
    /// Marks the requests of an add-on on a cluster that are not decided on, or not signed, if something has changed that they depend on. What
    /// else the add-on says is no reason: that one could not be signed would have all of them tried at once, and for ever.
    pub(crate) fn mark_requests_of(&self, change: &Change<ManagedClusterAddOn>, queues: &Queues) {
        if matches!((&change.old, &change.new), (Some(old), Some(new)) if registers_the_same(old, new)) {
            return;
        }
        for request in self.belongings.open_requests(&change.key) {
            queues.addon_requests.mark(request.clone());
        }
        // A request may have gone while no hub was there.
        if change.new.as_deref().is_some_and(signing::says_failed) {
            queues.addon_requests.mark(change.key.clone());
        }
    }
}

/// Whether the agent of an add-on registers in one state as in another: it is the same add-on, asks for the same, was given the same, and says
/// the same of how to register.
fn registers_the_same(one: &ManagedClusterAddOn, other: &ManagedClusterAddOn) -> bool {
    let status = |addon: &ManagedClusterAddOn| {
        let status = addon.status.as_ref()?;
        Some((Given::read(&status.conditions), status.registrations.clone()))
    };
    let is_going = |addon: &ManagedClusterAddOn| addon.metadata.deletion_timestamp.is_some();
    one.metadata.uid == other.metadata.uid
        && is_going(one) == is_going(other)
        && one.spec == other.spec
        && one.metadata.annotations == other.metadata.annotations
        && status(one).unwrap_or_default() == status(other).unwrap_or_default()
}

#[cfg(test)]
mod tests;
