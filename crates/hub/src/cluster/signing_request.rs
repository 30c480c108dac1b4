//! The registration controller: approves the certificates of agents, denies what is not theirs, and signs where Kubernetes does not.
//!
//! Watches signing requests that are labelled with a cluster, and clusters. Its key is a request. It writes the decision, and the certificate.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use drover_api::cluster::ManagedCluster;
use drover_engine::{
    cluster::signing_request::{self, Verdict, Wait},
    plan::{Event, Plan, Write},
};
use drover_runtime::{controller::Reconciler, store::ObjectKey};
use k8s_openapi::{
    api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition},
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};
use kube::ResourceExt;
use parking_lot::Mutex;
use tracing::info;

use crate::{cache::Cache, signer::Sign};

/// Decides on the requests of agents.
pub(crate) struct SigningRequests {
    /// The groups whose members may bring clusters in.
    bootstrap_groups: BTreeSet<String>,
    /// What was told that requests wait for, so that it is told once.
    told: Mutex<BTreeMap<ObjectKey, Wait>>,
    /// The CA by which agents get their certificates, where Kubernetes does not sign for clients of its API server.
    client_ca: Option<ObjectKey>,
}

impl SigningRequests {
    pub(crate) fn new(bootstrap_groups: BTreeSet<String>, client_ca: Option<ObjectKey>) -> Self {
        Self { bootstrap_groups, told: Mutex::default(), client_ca }
    }

    /// Signs a request that is approved, if the hub is who signs.
    fn sign(&self, request: &Arc<CertificateSigningRequest>, now: Timestamp) -> Option<Sign> {
        let ca = self.client_ca.clone().filter(|_| signing_request::awaits_own_certificate(request))?;
        Some(Sign { request: Arc::clone(request), ca, now })
    }

    /// Takes note of what a request waits for, and says whether that is news.
    fn is_news(&self, cache: &Cache, request: &ObjectKey, what: Wait) -> bool {
        let requests = &cache.belongings.requests;
        let mut told = self.told.lock();
        // Nobody tells of requests that have gone, so their names must not pile up.
        if told.len() > requests.count() {
            told.retain(|request, _| requests.has(request));
        }
        told.insert(request.clone(), what) != Some(what)
    }
}

impl Reconciler<Cache> for SigningRequests {
    type Key = ObjectKey;
    type State = ();
    type Action = Sign;

    const NAME: &'static str = "drover-registration";

    fn plan(&self, cache: &Cache, key: &ObjectKey, (): &mut (), now: Timestamp) -> Plan<Sign> {
        let Some(request) = cache.belongings.requests.get(key) else { return Plan::default() };
        let cluster = signing_request::cluster_of(request).and_then(|name| cache.cluster(&name));
        match signing_request::judge(request, cluster.map(|cluster| &**cluster), &self.bootstrap_groups) {
            Verdict::None => self.sign(request, now).map(Plan::act).unwrap_or_default(),
            Verdict::Wait(what) => {
                let cluster = cluster.filter(|_| self.is_news(cache, key, what));
                Plan::default().with_events(cluster.map(|cluster| waits(request, cluster, what)))
            }
            Verdict::Approve(why) => decide(request, "Approved", "AgentOfAcceptedCluster", why, now),
            Verdict::Deny(flaw) => decide(request, "Denied", "NotAnAgentsRequest", &flaw.to_string(), now),
        }
    }
}

/// Tells what a request waits for.
fn waits(request: &CertificateSigningRequest, cluster: &ManagedCluster, what: Wait) -> Event {
    let note = format!("the signing request {} waits: {what}", request.name_any());
    match what {
        Wait::Acceptance => Event::normal(cluster, "RequestWaits", note),
        Wait::Leaving | Wait::Rejoin | Wait::Stranger => Event::warning(cluster, "RequestWaits", note),
    }
}

/// Writes a decision on a request down.
pub(crate) fn decide(
    request: &CertificateSigningRequest,
    type_: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Plan<Sign> {
    info!(
        request = request.name_any(),
        requester = request.spec.username,
        decision = type_,
        message,
        "deciding on a signing request"
    );
    let decision = CertificateSigningRequestCondition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_update_time: Some(Time(now)),
        last_transition_time: None,
    };
    let mut wanted = request.clone();
    wanted.status.get_or_insert_default().conditions.get_or_insert_default().push(decision);
    Write::approval(request, &wanted).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use drover_api::names::CLUSTER_NAME_LABEL;
    use drover_engine::certificate::CLIENT_SIGNER;
    use k8s_openapi::ByteString;
    use serde_json::{Value, json};

    use super::*;

    fn request(status: &Value) -> Arc<CertificateSigningRequest> {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests-data/cluster.csr");
        let request = json!({
            "metadata": { "name": "request", "labels": { CLUSTER_NAME_LABEL: "one" } },
            "spec": {
                "request": ByteString(fs::read(file).expect("a request")),
                "signerName": CLIENT_SIGNER,
                "usages": ["digital signature", "client auth"],
                "username": "system:bootstrap:abcdef",
            },
            "status": status,
        });
        Arc::new(serde_json::from_value(request).expect("a request"))
    }

    #[test]
    fn an_approved_request_is_signed_where_kubernetes_does_not() {
        let by_hub = SigningRequests::new(BTreeSet::new(), Some(ObjectKey::namespaced("kube-system", "client-ca")));
        let by_kubernetes = SigningRequests::new(BTreeSet::new(), None);
        let approved = request(&json!({ "conditions": [{ "type": "Approved", "status": "True" }] }));
        assert!(by_hub.sign(&approved, Timestamp::UNIX_EPOCH).is_some());
        assert!(by_kubernetes.sign(&approved, Timestamp::UNIX_EPOCH).is_none());
        assert!(by_hub.sign(&request(&json!({})), Timestamp::UNIX_EPOCH).is_none(), "nobody has approved it");
    }
}
