//! The signing requests of agents, whose they are, and whom a change of them concerns.

use drover_api::{names::CLUSTER_NAME_LABEL, reference::ClusterName};
use drover_engine::{
    certificate::request::{awaits_certificate, is_decided},
    cluster::signing_request,
    registration::request::addon_of_request,
};
use drover_runtime::{
    cache::Tracks,
    decode::Damaged,
    store::{Change, ObjectKey, Store},
};
use k8s_openapi::{ByteString, api::certificates::v1::CertificateSigningRequest};
use kube::{ResourceExt, runtime::watcher};

use super::Belongings;
use crate::cache::{Cache, Queues, remove_from};

/// Which signing requests are clusters', or their add-ons'.
pub(crate) fn requests() -> watcher::Config {
    watcher::Config::default().labels(CLUSTER_NAME_LABEL)
}

/// Keeps of a request that has its certificate only that it has.
pub(crate) fn trim_request(request: &mut CertificateSigningRequest) {
    request.managed_fields_mut().clear();
    if let Some(certificate) = request.status.as_mut().and_then(|status| status.certificate.as_mut()) {
        *certificate = ByteString::default();
        request.spec.request = ByteString::default();
    }
}

impl Belongings {
    /// The requests for a cluster that are not decided on.
    pub(crate) fn pending(&self, cluster: &ClusterName) -> impl Iterator<Item = &ObjectKey> {
        self.pending.get(cluster).into_iter().flatten()
    }

    /// The requests for an add-on on a cluster that are not decided on, or not signed.
    pub(crate) fn open_requests(&self, addon: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.open.get(addon).into_iter().flatten()
    }

    /// The same, for all add-ons on a cluster.
    pub(super) fn open_on<'a>(&'a self, cluster: &'a str) -> impl Iterator<Item = &'a ObjectKey> {
        let from_there = self.open.range(ObjectKey::namespaced(cluster, "")..);
        from_there.take_while(move |(addon, _)| *addon.namespace == *cluster).flat_map(|(_, requests)| requests)
    }
}

impl Tracks<CertificateSigningRequest> for Cache {
    fn store(&mut self) -> &mut Store<CertificateSigningRequest> {
        &mut self.belongings.requests
    }

    /// A request that cannot be parsed is neither approved nor signed: the defect may hide that it
    /// was denied.
    fn fall_back(
        _: &Damaged<CertificateSigningRequest>,
        _: Option<&CertificateSigningRequest>,
    ) -> Option<CertificateSigningRequest> {
        None
    }

    fn changed(&mut self, change: &Change<CertificateSigningRequest>, queues: &Queues) {
        if change.new.is_none() {
            queues.requests.forget(&change.key);
        }
        self.sort_addon_request(change, queues);
        if let Some(cluster) = change.old.as_ref().and_then(|request| signing_request::cluster_of(request)) {
            remove_from(&mut self.belongings.pending, &cluster, &change.key);
        }
        let Some(request) = &change.new else { return };
        let Some(cluster) = signing_request::cluster_of(request) else { return };
        if !is_decided(request) {
            self.belongings.pending.entry(cluster).or_default().insert(change.key.clone());
        }
        if is_open(request) {
            queues.requests.mark(change.key.clone());
        }
    }
}

/// Whether something is still to be done about a request: it is not decided on, or not signed.
fn is_open(request: &CertificateSigningRequest) -> bool {
    !is_decided(request) || awaits_certificate(request)
}

/// The add-on on a cluster that a request is for.
fn addon_of(request: &CertificateSigningRequest) -> Option<ObjectKey> {
    let (cluster, addon) = addon_of_request(request)?;
    Some(ObjectKey::namespaced(cluster.as_str(), &addon))
}

impl Cache {
    /// Takes note of which add-on a request is for, and marks it. One that has its certificate too: it may have been said that it could
    /// not be signed. And one that is gone, so that it is forgotten.
    fn sort_addon_request(&mut self, change: &Change<CertificateSigningRequest>, queues: &Queues) {
        let (old, new) = (change.old.as_deref().and_then(addon_of), change.new.as_deref().and_then(addon_of));
        if old.is_some() || new.is_some() {
            queues.addon_requests.mark(change.key.clone());
        }
        if let Some(old) = old {
            remove_from(&mut self.belongings.open, &old, &change.key);
        }
        if let Some(new) = new.filter(|_| change.new.as_deref().is_some_and(is_open)) {
            self.belongings.open.entry(new).or_default().insert(change.key.clone());
        }
    }
}
