//! `drover agent`: the managed cluster's side, for one cluster or for several.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    num::NonZero,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use drover_agent::{AddOnProof, Agent, Clusters, EVICTION_GRACE, Identity, Options};
use drover_api::cluster::ClientConfig;
use drover_runtime::{
    clock::Clock,
    metrics::Metrics,
    serve::{Server, endpoints},
};
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{announce, connect, log};

/// The namespace of an agent's own objects.
const NAMESPACE: &str = "open-cluster-management-agent";
/// The Secret with an agent's credentials.
const SECRET: &str = "hub-kubeconfig-secret";

/// A year.
const TOKEN_SECONDS: i64 = 365 * 24 * 60 * 60;

/// Run the agent of a managed cluster: it joins the hub, applies the works that the hub has for the cluster, gets the agents of add-ons
/// their credentials, and reports.
///
/// The agent needs the kubeconfig of the cluster that it manages, and a bootstrap kubeconfig of the hub. With the latter it asks to be let in; when an
/// administrator has accepted the cluster, it gets credentials of its own, keeps them in a Secret, and renews them in time.
#[derive(Debug, Args)]
pub(crate) struct AgentCommand {
    /// The name of the cluster on the hub.
    #[arg(long, value_name = "NAME", required_unless_present = "clusters")]
    cluster_name: Option<String>,
    /// The kubeconfig of the hub by which the agent asks to be let in.
    #[arg(long, value_name = "FILE", required_unless_present = "clusters")]
    bootstrap_kubeconfig: Option<PathBuf>,
    /// The kubeconfig of the cluster that is managed; that of the pod, or the usual one, where it is not set.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The kubeconfig of the cluster where the agent's own objects are, where it does not run on the one that it manages.
    #[arg(long, value_name = "FILE")]
    management_kubeconfig: Option<PathBuf>,
    /// The name of the agent, which is part of its user on the hub; as before, or drover, where it is not set.
    #[arg(long, value_name = "NAME")]
    agent_name: Option<String>,
    /// The namespace of the agent's own objects.
    #[arg(long, value_name = "NAME", default_value = NAMESPACE)]
    namespace: String,
    /// The Secret with the agent's credentials for the hub.
    #[arg(long, value_name = "NAME", default_value = SECRET)]
    hub_kubeconfig_secret: String,
    /// By which the agent tells what it has applied from what other agents on the same cluster have; a hash of the hub's address where it is not set.
    #[arg(long, value_name = "ID")]
    agent_id: Option<String>,
    /// Where the cluster's API server can be reached, for others; can be given several times.
    #[arg(long = "spoke-external-server-url", value_name = "URL")]
    addresses: Vec<String>,
    /// For how many seconds the agent's certificate is to be valid; as long as the hub likes, where it is not set.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i32).range(3600..))]
    client_cert_expiration_seconds: Option<i32>,
    /// How many minutes a work may be missing on the hub before what it has left on the cluster is removed; a hundred
    /// years or more means never.
    #[arg(long, value_name = "MINUTES", default_value_t = EVICTION_GRACE.as_secs() / 60)]
    eviction_grace_minutes: u64,
    /// Report values that are neither numbers, texts nor truths as JSON, up to so many characters.
    #[arg(long, value_name = "CHARACTERS")]
    max_json_raw_length: Option<usize>,
    /// How the agents of add-ons prove themselves to the hub's API server: by a certificate, or by a token of a service account.
    #[arg(long, value_enum, value_name = "MEANS", default_value_t = AddOnAuth::Csr)]
    addon_kubeclient_registration_auth: AddOnAuth,
    /// For how many seconds tokens of add-ons are to be valid.
    #[arg(long, value_name = "SECONDS", default_value_t = TOKEN_SECONDS, value_parser = clap::value_parser!(i64).range(600..))]
    addon_token_expiration_seconds: i64,
    /// Run the agents of several clusters in one process: a YAML file with a list of `clusterName`, `kubeconfig`, `bootstrapKubeconfig` and, if need be,
    /// `namespace`. What happens to one of them does not concern the others.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cluster_name", "bootstrap_kubeconfig", "kubeconfig"])]
    clusters: Option<PathBuf>,
    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8081")]
    health_listen: SocketAddr,
}

/// How the agents of add-ons prove themselves to the hub's API server.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum AddOnAuth {
    /// By a certificate that the hub signs.
    Csr,
    /// By a token of a service account on the hub.
    Token,
}

/// One cluster of several.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    cluster_name: String,
    kubeconfig: Option<PathBuf>,
    bootstrap_kubeconfig: PathBuf,
    namespace: Option<String>,
}

impl AgentCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        log();
        let entries = self.entries()?;
        // An agent waits most of the time, and every thread has memory of its own.
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(entries.len());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        runtime.block_on(self.serve(entries))
    }

    async fn serve(self, entries: Vec<Entry>) -> anyhow::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let metrics = Metrics::new();
        let server = Server::bind(self.health_listen).await.with_context(|| {
            format!(
                "could not listen on {} for health and metrics: choose another address with --health-listen",
                self.health_listen
            )
        })?;
        let health = server.address();
        let mut agents = Vec::new();
        for entry in &entries {
            agents.push(self.start(entry, &metrics).await?);
        }
        let end = CancellationToken::new();
        let (router, clock, ended) = (endpoints(metrics, Vec::new), Clock::system(), end.clone());
        let serving = tokio::spawn(async move { server.run(router, &clock, ended).await });
        announce(format_args!("drover agent is running; health and metrics are at http://{health}"));
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        for agent in agents {
            agent.stop().await;
        }
        end.cancel();
        drop(serving.await);
        Ok(())
    }

    /// The clusters whose agents this is.
    fn entries(&self) -> anyhow::Result<Vec<Entry>> {
        if let Some(file) = &self.clusters {
            let entries = read(file)?;
            let management = self.management_kubeconfig.as_deref();
            check_homes(entries.iter().map(|entry| (entry, self.namespace(entry))), management)?;
            return Ok(entries);
        }
        let (Some(cluster_name), Some(bootstrap_kubeconfig)) = (&self.cluster_name, &self.bootstrap_kubeconfig) else {
            bail!("name the cluster with --cluster-name, and the hub with --bootstrap-kubeconfig");
        };
        Ok(vec![Entry {
            cluster_name: cluster_name.clone(),
            kubeconfig: self.kubeconfig.clone(),
            bootstrap_kubeconfig: bootstrap_kubeconfig.clone(),
            namespace: None,
        }])
    }

    fn namespace<'a>(&'a self, entry: &'a Entry) -> &'a str {
        entry.namespace.as_deref().unwrap_or(&self.namespace)
    }

    async fn start(&self, entry: &Entry, metrics: &Metrics) -> anyhow::Result<Agent> {
        check_name(&entry.cluster_name)?;
        ensure!(
            entry.bootstrap_kubeconfig.exists(),
            "there is no file {}: name the bootstrap kubeconfig of the hub",
            entry.bootstrap_kubeconfig.display()
        );
        let managed = connect(entry.kubeconfig.as_deref()).await?;
        let management = match &self.management_kubeconfig {
            Some(file) => Some(connect(Some(file)).await?),
            None => None,
        };
        let identity = Identity {
            cluster: entry.cluster_name.as_str().into(),
            agent: self.agent_name.clone(),
            namespace: self.namespace(entry).to_owned(),
            secret: self.hub_kubeconfig_secret.clone(),
            bootstrap: entry.bootstrap_kubeconfig.clone(),
            addresses: self.addresses.iter().map(|url| ClientConfig { url: url.clone(), ca_bundle: None }).collect(),
            expiration_seconds: self.client_cert_expiration_seconds,
        };
        let options = Options {
            identity,
            agent_id: self.agent_id.clone(),
            eviction_grace: Duration::from_secs(self.eviction_grace_minutes.saturating_mul(60)),
            raw_json: self.max_json_raw_length,
            addon_proof: match self.addon_kubeclient_registration_auth {
                AddOnAuth::Csr => AddOnProof::Certificates,
                AddOnAuth::Token => AddOnProof::Tokens { seconds: self.addon_token_expiration_seconds },
            },
        };
        Ok(Agent::start(Clusters { managed, management }, options, Clock::system(), metrics.clone()))
    }
}

fn read(file: &Path) -> anyhow::Result<Vec<Entry>> {
    let text = fs::read_to_string(file).with_context(|| format!("could not read {}", file.display()))?;
    let entries: Vec<Entry> = serde_saphyr::from_str(&text).with_context(|| {
        format!("{} is no list of clusters with clusterName and bootstrapKubeconfig", file.display())
    })?;
    ensure!(!entries.is_empty(), "{} lists no clusters", file.display());
    let mut names: Vec<_> = entries.iter().map(|entry| &entry.cluster_name).collect();
    names.sort();
    ensure!(names.windows(2).all(|pair| pair[0] != pair[1]), "{} lists a cluster twice", file.display());
    Ok(entries)
}

/// Makes sure that no two agents, with the namespaces of their own objects, keep their credentials in one Secret.
fn check_homes<'a>(
    entries: impl Iterator<Item = (&'a Entry, &'a str)>,
    management: Option<&'a Path>,
) -> anyhow::Result<()> {
    let mut homes = BTreeMap::new();
    for (entry, namespace) in entries {
        let home = management.or(entry.kubeconfig.as_deref());
        if let Some(other) = homes.insert((home, namespace), &entry.cluster_name) {
            bail!(
                "the agents of {other} and {} would keep their credentials in one Secret, in the namespace {namespace}: give one of \
                 them another namespace",
                entry.cluster_name
            );
        }
    }
    Ok(())
}

/// Makes sure that a cluster can have this name, which is that of its namespace on the hub too.
fn check_name(name: &str) -> anyhow::Result<()> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = (1..=63).contains(&name.len())
        && name.chars().all(is_allowed)
        && !name.starts_with('-')
        && !name.ends_with('-');
    ensure!(
        is_name,
        "{name:?} can not be the name of a cluster: use at most 63 lower-case letters, digits and dashes, with a letter or digit at both ends"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_named_as_a_namespace() {
        assert!(check_name("cluster-1").is_ok());
        for wrong in ["", "Cluster", "a.b", "-a", "a-", &"a".repeat(64)] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }
    #[test]
    fn no_two_agents_have_one_home() {
        let entry = |name: &str| Entry {
            cluster_name: name.to_owned(),
            kubeconfig: Some(format!("{name}.kubeconfig").into()),
            bootstrap_kubeconfig: "bootstrap.kubeconfig".into(),
            namespace: None,
        };
        let (one, two) = (entry("one"), entry("two"));
        let check = |namespaces: [&str; 2], management: Option<&str>| {
            let entries = [(&one, namespaces[0]), (&two, namespaces[1])];
            check_homes(entries.into_iter(), management.map(Path::new)).map_err(|error| error.to_string())
        };
        assert_eq!(check(["agents", "agents"], None), Ok(()));
        assert_eq!(check(["agents-1", "agents-2"], Some("hosts.kubeconfig")), Ok(()));
        let refused = check(["agents", "agents"], Some("hosts.kubeconfig"));
        assert!(refused.is_err_and(|error| error.contains("one and two") && error.contains("agents")));
    }
}
