//! How the agent comes to be known to its hub, and stays so.

pub(crate) mod credentials;
pub(crate) mod request;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use drover_api::{
    cluster::{ClientConfig, ManagedCluster, ManagedClusterSpec},
    names::CLUSTER_NAME_LABEL,
    reference::ClusterName,
};
use drover_engine::{
    certificate::CLIENT_SIGNER,
    join::{Flaw, Hub, Verdict, judge, same_hub, subject},
};
use drover_runtime::{
    backoff::Backoff,
    client,
    clock::{Clock, after},
    pace::answered,
};
use k8s_openapi::{
    api::core::v1::{Namespace, Secret},
    jiff::Timestamp,
};
use kube::{
    Api, Client, Config,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::{info, warn};

pub(crate) use self::credentials::Credentials;
use self::{
    credentials::{NoHub, hub_of},
    request::{NotIssued, Wish},
};
use crate::line::Line;

/// How long an agent that could not join waits.
const JOIN_BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(2));
/// How often it is looked whether the bootstrap kubeconfig names another hub now.
const LOOK: Duration = Duration::from_mins(1);
/// The name of an agent that was given none.
const AGENT: &str = "drover";
/// In whose name the agent writes.
pub(crate) const MANAGER: &str = "registration-agent";

/// Who an agent is, and where it keeps what it is known by.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The name of the cluster.
    pub cluster: ClusterName,
    /// The name of the agent: several can be the agents of one cluster. Without it, it is what it was before.
    pub agent: Option<String>,
    /// The namespace of the agent's own objects.
    pub namespace: String,
    /// The Secret with its credentials for the hub.
    pub secret: String,
    /// The kubeconfig by which it asks the hub for the first credentials.
    pub bootstrap: PathBuf,
    /// Where the cluster's own API server can be reached, for others.
    pub addresses: Vec<ClientConfig>,
    /// For how long a certificate is asked for; as long as the hub likes, if nothing is said.
    pub expiration_seconds: Option<i32>,
}

/// Why an agent is not known to its hub.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotJoined {
    #[error("the bootstrap kubeconfig {file} can not be used: {source}", file = file.display())]
    Bootstrap { file: PathBuf, source: NoHub },
    #[error("the credentials can not be used: {0}")]
    Credentials(#[from] KubeconfigError),
    #[error("the Secret {0} with the credentials can not be read or written: {1}")]
    Secret(String, kube::Error),
    #[error("the hub did not take the ManagedCluster: {0}")]
    Cluster(kube::Error),
    #[error("there is no certificate from the hub: {0}")]
    Certificate(#[from] NotIssued),
    #[error("{0}")]
    Useless(#[from] Flaw),
}

/// How the last attempt to renew the agent's certificate went, for the cluster's status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rotation {
    /// There was none.
    #[default]
    None,
    /// It went well, and the certificate is valid until then.
    Done(Timestamp),
    /// It failed, for this reason.
    Failed(String),
}

/// Who joins a hub.
#[derive(Clone)]
pub(crate) struct Joining {
    pub(crate) identity: Identity,
    /// Where the agent's own objects are.
    pub(crate) management: Client,
    pub(crate) clock: Clock,
    /// The agent's name, once it is known.
    agent: Arc<OnceLock<String>>,
    /// The certificate that the hub has refused, or that can not be used.
    refused: Arc<Mutex<Option<Vec<u8>>>>,
}

impl Joining {
    pub(crate) fn new(identity: Identity, management: Client, clock: Clock) -> Self {
        Self { identity, management, clock, agent: Arc::default(), refused: Arc::default() }
    }

    /// Takes note that credentials are of no use, whatever they say themselves.
    pub(crate) fn refuse(&self, credentials: &Credentials) {
        *self.refused.lock() = Some(credentials.certificate.clone());
    }

    fn is_refused(&self, credentials: &Credentials) -> bool {
        self.refused.lock().as_ref() == Some(&credentials.certificate)
    }

    fn agent(&self) -> &str {
        self.agent.get().map_or(AGENT, String::as_str)
    }

    /// The agent's credentials, if it has joined, or once it has.
    pub(crate) async fn join(&self) -> Credentials {
        let mut failures = 0;
        loop {
            match self.try_join().await {
                Ok(credentials) => return credentials,
                Err(error) => warn!(cluster = %self.identity.cluster, %error, "not joined yet, and will try again"),
            }
            self.clock.sleep(JOIN_BACKOFF.delay(failures)).await;
            failures += 1;
        }
    }

    async fn try_join(&self) -> Result<Credentials, NotJoined> {
        let stored = self.stored().await?;
        self.agent.get_or_init(|| {
            let named = self.identity.agent.clone().or_else(|| stored.as_ref().map(|stored| stored.agent.clone()));
            named.unwrap_or_else(|| AGENT.to_owned())
        });
        match stored.map(|credentials| self.check(&credentials).map(|_| credentials)) {
            Some(Ok(credentials)) => return Ok(credentials),
            Some(Err(flaw)) => info!(cluster = %self.identity.cluster, %flaw, "joining anew"),
            None => info!(cluster = %self.identity.cluster, "joining"),
        }
        let hub = self.hub()?;
        let bootstrap = self.bootstrap_client().await?;
        self.announce(&bootstrap).await?;
        tokio::select! {
            joined = self.certify(bootstrap) => joined,
            () = self.moved(&hub) => Err(Flaw::OtherHub(hub.server.clone()).into()),
        }
    }

    /// Waits until the bootstrap kubeconfig names another hub. An administrator can take days to accept a cluster.
    async fn moved(&self, hub: &Hub) {
        loop {
            self.clock.sleep(LOOK).await;
            if self.hub().is_ok_and(|now| now != *hub) {
                return;
            }
        }
    }

    /// The hub that the bootstrap kubeconfig names.
    fn hub(&self) -> Result<Hub, NotJoined> {
        hub_of(&self.bootstrap()?).map_err(|source| self.no_bootstrap(source))
    }

    /// Whether credentials are of use, and what becomes of them.
    fn check(&self, credentials: &Credentials) -> Result<Verdict, NotJoined> {
        same_hub(&credentials.hub, &self.hub()?)?;
        if self.is_refused(credentials) {
            return Err(Flaw::TurnedAway.into());
        }
        let certificate = credentials.read().map_err(Flaw::from)?;
        let wanted = subject(&self.identity.cluster, self.agent());
        match judge(&certificate, &wanted, self.clock.now()) {
            Verdict::Useless(flaw) => Err(flaw.into()),
            verdict => Ok(verdict),
        }
    }

    /// Asks for a certificate in somebody's name, and keeps what comes of it.
    async fn certify(&self, hub: Client) -> Result<Credentials, NotJoined> {
        let Identity { cluster, expiration_seconds, .. } = &self.identity;
        let (agent, of_hub) = (self.agent(), self.hub()?);
        let wish = Wish {
            prefix: format!("{cluster}-"),
            labels: BTreeMap::from([(CLUSTER_NAME_LABEL.to_owned(), cluster.to_string())]),
            signer: CLIENT_SIGNER.to_owned(),
            subject: subject(cluster, agent),
            host: None,
            expiration_seconds: *expiration_seconds,
        };
        let issued = wish.fulfil(hub, &self.clock).await?;
        let credentials = Credentials {
            hub: of_hub,
            certificate: issued.certificate,
            key: issued.key,
            cluster: cluster.to_string(),
            agent: agent.to_owned(),
        };
        self.keep(&credentials).await?;
        Ok(credentials)
    }

    /// Tells the hub of the cluster, unless somebody has: an administrator may have made it, and whoever may not make clusters need not.
    async fn announce(&self, bootstrap: &Client) -> Result<(), NotJoined> {
        let spec = ManagedClusterSpec {
            managed_cluster_client_configs: self.identity.addresses.clone(),
            ..ManagedClusterSpec::default()
        };
        let cluster = ManagedCluster::new(self.identity.cluster.as_str(), spec);
        let clusters = Api::all(bootstrap.clone());
        match answered(&self.clock, clusters.create(&PostParams::default(), &cluster)).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() || status.is_forbidden() => Ok(()),
            made => made.map(drop).map_err(NotJoined::Cluster),
        }
    }

    /// Keeps the line to the hub alive: renews the certificate in time, and asks for another if the hub does not know it any more. Returns why the agent
    /// has to join anew.
    pub(crate) async fn stay(
        &self,
        line: &Line,
        mut credentials: Credentials,
        told: &watch::Sender<Rotation>,
    ) -> NotJoined {
        loop {
            let renew = match self.check(&credentials) {
                Err(reason @ NotJoined::Useless(_)) => return reason,
                // A bootstrap kubeconfig that can not be read at the moment is no reason to leave.
                Err(reason) => {
                    warn!(cluster = %self.identity.cluster, %reason, "the credentials could not be checked");
                    Timestamp::MAX
                }
                Ok(Verdict::Renew) => match self.renew_before_the_end(line, &credentials).await {
                    Ok(renewed) => {
                        let until = renewed.read().map_or(Timestamp::MAX, |certificate| certificate.not_after);
                        told.send_replace(Rotation::Done(until));
                        info!(cluster = %self.identity.cluster, %until, "the certificate is renewed");
                        credentials = renewed;
                        self.next_renewal(&credentials)
                    }
                    Err(error) => {
                        warn!(cluster = %self.identity.cluster, %error, "the certificate was not renewed, and will be tried again");
                        told.send_replace(Rotation::Failed(error.to_string()));
                        Timestamp::MAX
                    }
                },
                Ok(Verdict::Good { renew }) => renew,
                Ok(Verdict::Useless(flaw)) => return flaw.into(),
            };
            let look = after(self.clock.now(), LOOK).min(renew);
            tokio::select! {
                () = self.clock.sleep_until(look) => {}
                () = line.turned_away() => {
                    // It may have been told for a moment, by a server that is starting.
                    self.clock.sleep(JOIN_BACKOFF.longest()).await;
                    match self.get_in(line).await {
                        Ok(None) => {}
                        Ok(Some(renewed)) => credentials = renewed,
                        Err(reason) => warn!(cluster = %self.identity.cluster, %reason, "turned away, and will try again"),
                    }
                }
            }
        }
    }

    /// When credentials that were just got are to be renewed. If that is now, because a clock is wrong, they are looked at again after a while: the hub would be
    /// asked without end otherwise.
    fn next_renewal(&self, credentials: &Credentials) -> Timestamp {
        match self.check(credentials) {
            Ok(Verdict::Good { renew }) => renew,
            _ => Timestamp::MAX,
        }
    }

    /// Gets in again where the hub does not know the agent: by another certificate, which is asked for as the first was, or by the one that there is, should the
    /// hub know it again. That can take days, in which the cluster is kept as it was last wanted.
    async fn get_in(&self, line: &Line) -> Result<Option<Credentials>, NotJoined> {
        let hub = self.hub()?;
        tokio::select! {
            biased;
            () = line.let_in() => Ok(None),
            renewed = self.ask_anew(line) => renewed.map(Some),
            // What that means is decided by who looks next.
            () = self.moved(&hub) => Ok(None),
        }
    }

    async fn ask_anew(&self, line: &Line) -> Result<Credentials, NotJoined> {
        let bootstrap = self.bootstrap_client().await?;
        self.announce(&bootstrap).await?;
        let renewed = self.certify(bootstrap).await?;
        line.exchange(connect(&renewed).await?);
        info!(cluster = %self.identity.cluster, "let in by another certificate");
        Ok(renewed)
    }

    /// Renews the certificate, as long as there is one by which that can be asked for.
    async fn renew_before_the_end(&self, line: &Line, credentials: &Credentials) -> Result<Credentials, NotJoined> {
        let end = credentials.read().map_err(Flaw::from)?.not_after;
        tokio::select! {
            renewed = self.renew(line) => renewed,
            () = self.clock.sleep_until(end) => Err(Flaw::Expired(end).into()),
        }
    }

    async fn renew(&self, line: &Line) -> Result<Credentials, NotJoined> {
        let renewed = self.certify(line.client()).await?;
        line.exchange(connect(&renewed).await?);
        Ok(renewed)
    }

    fn bootstrap(&self) -> Result<Kubeconfig, NotJoined> {
        let file = &self.identity.bootstrap;
        Kubeconfig::read_from(file).map_err(|error| self.no_bootstrap(error.into()))
    }

    async fn bootstrap_client(&self) -> Result<Client, NotJoined> {
        let config = Config::from_custom_kubeconfig(self.bootstrap()?, &KubeConfigOptions::default()).await;
        let config = config.map_err(|error| self.no_bootstrap(error.into()))?;
        client::connect(config).map_err(NotJoined::Cluster)
    }

    fn no_bootstrap(&self, source: NoHub) -> NotJoined {
        NotJoined::Bootstrap { file: self.identity.bootstrap.clone(), source }
    }

    async fn stored(&self) -> Result<Option<Credentials>, NotJoined> {
        let secrets = Api::<Secret>::namespaced(self.management.clone(), &self.identity.namespace);
        let found = answered(&self.clock, secrets.get_opt(&self.identity.secret)).await;
        let found = found.map_err(|error| self.no_secret(error))?;
        Ok(found.as_ref().and_then(Credentials::of_secret))
    }

    async fn keep(&self, credentials: &Credentials) -> Result<(), NotJoined> {
        let Identity { namespace, secret, .. } = &self.identity;
        let namespaces = Api::<Namespace>::all(self.management.clone());
        let own = ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() };
        // Where it is there already, or we may not make it, the next write tells.
        let own = Namespace { metadata: own, ..Namespace::default() };
        let _ = answered(&self.clock, namespaces.create(&PostParams::default(), &own)).await;
        let secrets = Api::<Secret>::namespaced(self.management.clone(), namespace);
        let params = PatchParams::apply(MANAGER).force();
        let wanted = Patch::Apply(credentials.secret(namespace, secret));
        let written = answered(&self.clock, secrets.patch(secret, &params, &wanted)).await;
        written.map(drop).map_err(|error| self.no_secret(error))
    }

    fn no_secret(&self, error: kube::Error) -> NotJoined {
        let Identity { namespace, secret, .. } = &self.identity;
        NotJoined::Secret(format!("{namespace}/{secret}"), error)
    }
}

/// A client that is known to the hub by these credentials.
pub(crate) async fn connect(credentials: &Credentials) -> Result<Client, NotJoined> {
    client::connect(credentials.config().await?).map_err(NotJoined::Cluster)
}
