//! The registration controller: approves the certificates of agents, and denies what is not theirs.
//!
//! Watches signing requests that are labelled with a cluster, and clusters. Its key is a request. It writes the decision.

use std::collections::BTreeSet;

use drover_engine::cluster::signing_request::{self, Verdict};
use drover_runtime::{
    controller::{Plan, Reconciler},
    store::ObjectKey,
    write::Write,
};
use k8s_openapi::{
    api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition},
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};

use crate::fleet::Fleet;

/// Decides on the requests of agents.
pub(crate) struct SigningRequests {
    /// The groups whose members may bring clusters in.
    pub(crate) bootstrap_groups: BTreeSet<String>,
}

impl Reconciler<Fleet> for SigningRequests {
    type Key = ObjectKey;

    const NAME: &'static str = "drover-registration";

    fn plan(&self, fleet: &Fleet, key: &ObjectKey, now: Timestamp) -> Plan<Fleet> {
        let Some(request) = fleet.belongings.requests.get(key) else { return Plan::default() };
        let cluster = signing_request::cluster_of(request).and_then(|name| fleet.cluster(&name));
        let write = match signing_request::judge(request, cluster.map(|cluster| &**cluster), &self.bootstrap_groups) {
            Verdict::NotOurs | Verdict::Wait => None,
            Verdict::Approve(why) => decide(request, "Approved", "AgentOfAcceptedCluster", why, now),
            Verdict::Deny(flaw) => decide(request, "Denied", "NotAnAgentsRequest", &flaw.to_string(), now),
        };
        write.into_iter().collect()
    }
}

fn decide(
    request: &CertificateSigningRequest,
    type_: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Option<Write<Fleet>> {
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
    Write::approval(request, &wanted)
}
