//! A Secret with the credentials of an add-on's agent: what is in it, and what is put into it. The layout is OCM's.

use std::collections::BTreeMap;

use drover_api::names::KEPT_BY_LABEL;
use drover_engine::{
    join::Hub,
    registration::enrolment::{Kept, Place, Proof},
};
use drover_runtime::{
    fleet::Tracks,
    store::{Change, Store},
};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    ResourceExt as _,
    api::ObjectMeta,
    config::{AuthInfo, Kubeconfig},
};
use tokio::sync::watch;

use crate::join::{
    credentials::{CERTIFICATE, CLUSTER_NAME, KEY, KUBECONFIG, hub_of, kubeconfig},
    request::Issued,
};

/// The key of a token.
const TOKEN: &str = "token";

/// One Secret, as it was last seen.
pub(super) struct Drawer {
    secrets: Store<Secret>,
    is_listed: bool,
    /// Counts what was seen.
    seen: watch::Sender<u64>,
}

impl Default for Drawer {
    fn default() -> Self {
        Self { secrets: Store::default(), is_listed: false, seen: watch::Sender::new(0) }
    }
}

impl Drawer {
    /// Tells when there is something new.
    pub(super) fn seen(&self) -> watch::Receiver<u64> {
        self.seen.subscribe()
    }

    /// What is in it, once that is known.
    pub(super) fn kept(&self) -> Option<Kept> {
        let secret = self.secrets.iter().next();
        self.is_listed.then(|| secret.map(|(_, secret)| kept(secret)).unwrap_or_default())
    }

    /// Whether it is marked as kept by somebody; also if there is none.
    pub(super) fn is_marked(&self, kept_by: &str) -> bool {
        self.secrets.iter().all(|(_, secret)| secret.labels().get(KEPT_BY_LABEL).is_some_and(|by| by == kept_by))
    }
}

impl Tracks<Secret> for Drawer {
    fn store(&mut self) -> &mut Store<Secret> {
        &mut self.secrets
    }

    fn changed(&mut self, _: &Change<Secret>) {
        self.seen.send_modify(|times| *times += 1);
    }

    fn listed(&mut self) {
        self.is_listed = true;
        self.seen.send_modify(|times| *times += 1);
    }
}

/// What is in a Secret.
pub(super) fn kept(secret: &Secret) -> Kept {
    let part = |key: &str| secret.data.as_ref()?.get(key).map(|value| value.0.clone());
    let hub = |text: Vec<u8>| hub_of(&Kubeconfig::from_yaml(str::from_utf8(&text).ok()?).ok()?).ok();
    Kept {
        certificate: part(CERTIFICATE).filter(|_| part(KEY).is_some()),
        token: part(TOKEN),
        hub: part(KUBECONFIG).and_then(hub),
    }
}

/// Credentials that were just got.
#[derive(Clone)]
pub(super) enum Fresh {
    Certificate(Issued),
    Token(String),
}

/// What Secrets say besides the credentials in them.
#[derive(Clone, Debug)]
pub(crate) struct Imprint {
    pub(crate) cluster: String,
    /// The agent that keeps them, as a label's value.
    pub(crate) kept_by: String,
    /// The hub that they are for.
    pub(crate) hub: Hub,
}

impl Fresh {
    /// The Secret that they are kept in. Its kubeconfig names the other keys as files beside it, as it is mounted.
    pub(super) fn secret(&self, imprint: &Imprint, place: &Place, proof: &Proof) -> Secret {
        let (mut data, user) = match self {
            Self::Certificate(Issued { certificate, key }) => (
                vec![(CERTIFICATE, certificate.clone()), (KEY, key.clone())],
                AuthInfo {
                    client_certificate: Some(CERTIFICATE.to_owned()),
                    client_key: Some(KEY.to_owned()),
                    ..AuthInfo::default()
                },
            ),
            Self::Token(token) => (
                vec![(TOKEN, token.clone().into_bytes())],
                AuthInfo { token_file: Some(TOKEN.to_owned()), ..AuthInfo::default() },
            ),
        };
        data.push((CLUSTER_NAME, imprint.cluster.as_bytes().to_vec()));
        if proof.is_for_hub() {
            // JSON is YAML, and a kubeconfig is JSON.
            data.push((KUBECONFIG, serde_json::to_vec(&kubeconfig(&imprint.hub, user)).unwrap_or_default()));
        }
        let labels = BTreeMap::from([(KEPT_BY_LABEL.to_owned(), imprint.kept_by.clone())]);
        let metadata = ObjectMeta {
            namespace: Some(place.namespace.clone()),
            name: Some(place.name.clone()),
            labels: Some(labels),
            ..ObjectMeta::default()
        };
        let data = data.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value))).collect::<BTreeMap<_, _>>();
        Secret { metadata, data: Some(data), ..Secret::default() }
    }
}
