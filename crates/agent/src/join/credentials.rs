//! What the agent is known to the hub by, and where that is kept: a Secret with OCM's layout, in which OCM's agents find themselves too.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use drover_engine::join::{Certificate, Hub, Unreadable};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Config,
    api::ObjectMeta,
    config::{
        AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, KubeconfigError, NamedAuthInfo, NamedCluster,
        NamedContext,
    },
};

/// The keys of the Secret.
pub(crate) const CERTIFICATE: &str = "tls.crt";
pub(crate) const KEY: &str = "tls.key";
pub(crate) const KUBECONFIG: &str = "kubeconfig";
pub(crate) const CLUSTER_NAME: &str = "cluster-name";
const AGENT_NAME: &str = "agent-name";
/// What entries of the kubeconfig are called.
const ENTRY: &str = "default-cluster";

/// What the agent is known by to one hub.
#[derive(Clone, PartialEq)]
pub(crate) struct Credentials {
    pub(crate) hub: Hub,
    /// In PEM.
    pub(crate) certificate: Vec<u8>,
    /// In PEM.
    pub(crate) key: Vec<u8>,
    pub(crate) cluster: String,
    pub(crate) agent: String,
}

/// Why a kubeconfig does not say where the hub is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoHub {
    /// It can not be read.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The certificates of the hub are no base64.
    #[error("certificate-authority-data is not base64: {0}")]
    Authority(#[from] base64::DecodeError),
    /// It names a file with the certificates of the hub, and may not.
    #[error("it names a file as certificate-authority: put the certificates into certificate-authority-data")]
    File,
    /// The context names no cluster.
    #[error("its current context names no cluster with a server")]
    NoServer,
}

/// Where the hub of a kubeconfig is that the agent was given. What it names as files is read.
pub(crate) fn hub_of(kubeconfig: &Kubeconfig) -> Result<Hub, NoHub> {
    hub_with(kubeconfig, |file| {
        std::fs::read(file).map_err(|error| KubeconfigError::ReadConfig(error, file.into()).into())
    })
}

/// Where the hub of a kubeconfig is that somebody may have put into a Secret. He has no say in which files the agent reads.
pub(crate) fn kept_hub_of(kubeconfig: &Kubeconfig) -> Result<Hub, NoHub> {
    hub_with(kubeconfig, |_| Err(NoHub::File))
}

fn hub_with(kubeconfig: &Kubeconfig, read: impl Fn(&str) -> Result<Vec<u8>, NoHub>) -> Result<Hub, NoHub> {
    let context = kubeconfig
        .current_context
        .as_deref()
        .and_then(|name| kubeconfig.contexts.iter().find(|context| context.name == name));
    let name = context.and_then(|context| context.context.as_ref()).map(|context| context.cluster.as_str());
    let named = kubeconfig.clusters.iter().find(|cluster| Some(cluster.name.as_str()) == name);
    let cluster = named.and_then(|named| named.cluster.as_ref()).ok_or(NoHub::NoServer)?;
    let authority = match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (Some(text), _) => Some(STANDARD.decode(text)?),
        (None, Some(file)) => Some(read(file)?),
        (None, None) => None,
    };
    let server = cluster.server.clone().ok_or(NoHub::NoServer)?;
    Ok(Hub { server, authority, proxy: cluster.proxy_url.clone() })
}

impl Credentials {
    /// What the certificate says.
    pub(crate) fn read(&self) -> Result<Certificate, Unreadable> {
        Certificate::read(&self.certificate)
    }

    /// How the hub is reached with them.
    pub(crate) async fn config(&self) -> Result<Config, KubeconfigError> {
        let user = AuthInfo {
            client_certificate_data: Some(STANDARD.encode(&self.certificate)),
            client_key_data: Some(STANDARD.encode(&self.key).into()),
            ..AuthInfo::default()
        };
        Config::from_custom_kubeconfig(kubeconfig(&self.hub, user), &KubeConfigOptions::default()).await
    }

    /// The Secret that they are kept in. Its kubeconfig names the other keys as files beside it, as it is mounted.
    pub(crate) fn secret(&self, namespace: &str, name: &str) -> Secret {
        let user = AuthInfo {
            client_certificate: Some(CERTIFICATE.to_owned()),
            client_key: Some(KEY.to_owned()),
            ..AuthInfo::default()
        };
        // JSON is YAML, and a kubeconfig is JSON.
        let kubeconfig = serde_json::to_vec(&kubeconfig(&self.hub, user)).unwrap_or_default();
        let parts = [
            (CERTIFICATE, self.certificate.clone()),
            (KEY, self.key.clone()),
            (KUBECONFIG, kubeconfig),
            (CLUSTER_NAME, self.cluster.clone().into_bytes()),
            (AGENT_NAME, self.agent.clone().into_bytes()),
        ];
        let data =
            parts.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value))).collect::<BTreeMap<_, _>>();
        let metadata =
            ObjectMeta { namespace: Some(namespace.to_owned()), name: Some(name.to_owned()), ..ObjectMeta::default() };
        Secret { metadata, data: Some(data), ..Secret::default() }
    }

    /// What is kept in a Secret; nothing if there is not all of it.
    pub(crate) fn of_secret(secret: &Secret) -> Option<Self> {
        let part = |key: &str| secret.data.as_ref()?.get(key).map(|value| value.0.clone());
        let text = |key: &str| part(key).and_then(|value| String::from_utf8(value).ok());
        let kubeconfig = Kubeconfig::from_yaml(&text(KUBECONFIG)?).ok()?;
        Some(Self {
            hub: kept_hub_of(&kubeconfig).ok()?,
            certificate: part(CERTIFICATE)?,
            key: part(KEY)?,
            cluster: text(CLUSTER_NAME)?,
            agent: text(AGENT_NAME)?,
        })
    }
}

/// How a hub is reached by somebody who is known by that.
pub(crate) fn kubeconfig(hub: &Hub, user: AuthInfo) -> Kubeconfig {
    let cluster = Cluster {
        server: Some(hub.server.clone()),
        certificate_authority_data: hub.authority.as_ref().map(|authority| STANDARD.encode(authority)),
        proxy_url: hub.proxy.clone(),
        ..Cluster::default()
    };
    let context = Context { cluster: ENTRY.to_owned(), user: Some(ENTRY.to_owned()), ..Context::default() };
    Kubeconfig {
        clusters: vec![NamedCluster { name: ENTRY.to_owned(), cluster: Some(cluster), ..NamedCluster::default() }],
        auth_infos: vec![NamedAuthInfo { name: ENTRY.to_owned(), auth_info: Some(user), ..NamedAuthInfo::default() }],
        contexts: vec![NamedContext { name: ENTRY.to_owned(), context: Some(context), ..NamedContext::default() }],
        current_context: Some(ENTRY.to_owned()),
        ..Kubeconfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_again() {
        let hub = Hub { server: "https://hub:6443".to_owned(), authority: Some(b"ca".to_vec()), proxy: None };
        let credentials = Credentials {
            hub,
            certificate: b"certificate".to_vec(),
            key: b"key".to_vec(),
            cluster: "c1".to_owned(),
            agent: "a1".to_owned(),
        };
        let mut secret = credentials.secret("agents", "hub-kubeconfig-secret");
        assert!(Credentials::of_secret(&secret) == Some(credentials));
        secret.data.as_mut().expect("there is data").remove("tls.key");
        assert!(Credentials::of_secret(&secret).is_none());
    }

    #[test]
    fn a_secret_has_no_file_read() {
        let hub = Hub { server: "https://hub:6443".to_owned(), authority: None, proxy: None };
        let mut kubeconfig = kubeconfig(&hub, AuthInfo::default());
        assert_eq!(kept_hub_of(&kubeconfig).ok(), Some(hub));
        let cluster = kubeconfig.clusters[0].cluster.as_mut().expect("there is a cluster");
        cluster.certificate_authority = Some("/dev/null".to_owned());
        assert!(matches!(kept_hub_of(&kubeconfig), Err(NoHub::File)));
        assert!(hub_of(&kubeconfig).is_ok());
    }
}
