//! A Secret with the credentials of an add-on's agent: what is in it, and what is put into it. The layout is OCM's.

use std::collections::BTreeMap;

use drover_api::names::KEPT_BY_LABEL;
use drover_engine::registration::enrolment::{Access, Imprint, Kept, Means, Place, Proof};
use drover_runtime::{
    cache::Tracks,
    caches,
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
    credentials::{CERTIFICATE, CLUSTER_NAME, KEY, KUBECONFIG, kept_hub_of, kubeconfig},
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

    /// Whether it is known what is in it.
    pub(super) fn is_known(&self) -> bool {
        self.is_listed
    }

    /// The Secret, if there is one.
    pub(super) fn secret(&self) -> Option<&Secret> {
        self.secrets.iter().next().map(|(_, secret)| &**secret)
    }
}

caches!(Drawer => (); Secret);

impl Tracks<Secret> for Drawer {
    fn store(&mut self) -> &mut Store<Secret> {
        &mut self.secrets
    }

    fn changed(&mut self, _: &Change<Secret>, (): &()) {
        self.seen.send_modify(|times| *times += 1);
    }

    fn listed(&mut self, (): &()) {
        self.is_listed = true;
        self.seen.send_modify(|times| *times += 1);
    }
}

/// What is in a Secret.
pub(super) fn kept(secret: &Secret) -> Kept {
    let text = |key: &str| part(secret, key).and_then(|value| String::from_utf8(value).ok());
    Kept {
        kept_by: secret.labels().get(KEPT_BY_LABEL).cloned(),
        cluster: text(CLUSTER_NAME),
        certificate: part(secret, CERTIFICATE).filter(|_| part(secret, KEY).is_some()),
        token: part(secret, TOKEN),
        access: text(KUBECONFIG).and_then(|text| access(&Kubeconfig::from_yaml(&text).ok()?)),
    }
}

fn part(secret: &Secret, key: &str) -> Option<Vec<u8>> {
    secret.data.as_ref()?.get(key).map(|value| value.0.clone())
}

/// What a kubeconfig says, if it has one user.
fn access(kubeconfig: &Kubeconfig) -> Option<Access> {
    let [user] = kubeconfig.auth_infos.as_slice() else { return None };
    let user = user.auth_info.as_ref()?;
    let files = [&user.client_certificate, &user.client_key, &user.token_file].map(Option::as_deref);
    let by = match files {
        [Some(CERTIFICATE), Some(KEY), None] => Means::Certificate,
        [None, None, Some(TOKEN)] => Means::Token,
        _ => Means::Other,
    };
    Some(Access { hub: kept_hub_of(kubeconfig).ok()?, by })
}

/// Credentials that are about to be kept.
#[derive(Clone)]
pub(super) enum Fresh {
    Certificate(Issued),
    Token(String),
}

impl Fresh {
    /// Those that a Secret has, if it has any of that sort.
    pub(super) fn of(secret: &Secret, proof: &Proof) -> Option<Self> {
        match proof {
            Proof::Certificate { .. } => {
                let (certificate, key) = part(secret, CERTIFICATE).zip(part(secret, KEY))?;
                Some(Self::Certificate(Issued { certificate, key }))
            }
            Proof::Token { .. } => String::from_utf8(part(secret, TOKEN)?).ok().map(Self::Token),
            Proof::Awaited => None,
        }
    }

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
