//! `drover hub`: the hub's controllers, on a Kubernetes or on an API server of their own.

mod embedded;

use std::{env, fmt::Debug, fs, net::SocketAddr, path::PathBuf, process};

use anyhow::{Context, bail};
use clap::Args;
use drover_api::{
    cluster::{ManagedClustersUpgrade, Placement},
    drover::{AddOnRollout, ClusterUpgrade},
};
use drover_hub::{Approver, Area, Controllers, Dialect, EPOCH, Hub, Options, detect_dialect};
use drover_runtime::{clock::Clock, store::ObjectKey};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, Resource, api::ListParams};
use serde::de::DeserializeOwned;
use tokio::signal::unix::{SignalKind, signal};
use tracing::warn;

use self::embedded::Embedded;
use super::{announce, connect, log};

/// The namespace of the hub's own objects where it does not run in a pod.
const NAMESPACE: &str = "open-cluster-management-hub";
/// Where a pod is told its namespace.
const POD_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The group of the bootstrap tokens that clusters join with.
const BOOTSTRAP_GROUP: &str = "system:bootstrappers:managedcluster";

/// Run the hub's controllers against a Kubernetes that has Drover's API, or, with --embedded, on an API server of their own.
///
/// Today these are the controllers of clusters, cluster sets, their bindings, placements, add-ons, sets of works, and upgrades of clusters. Of several hubs on
/// one Kubernetes one leads, and another takes over when it ends.
#[derive(Debug, Args)]
pub(crate) struct HubCommand {
    /// The kubeconfig of the Kubernetes; that of the pod, or the usual one, where it is not set.
    #[arg(long, value_name = "FILE", conflicts_with = "embedded")]
    kubeconfig: Option<PathBuf>,
    /// Run on an API server of the hub's own, in this process, with nothing under it. It has Drover's API, its roles and policies; kubectl and
    /// agents reach it as they reach a Kubernetes.
    #[arg(long, requires = "data_dir")]
    embedded: bool,
    /// The folder in which the hub's own API server keeps everything; it is made if it is not there. The kubeconfig of an administrator is
    /// admin.kubeconfig in it.
    #[arg(long, value_name = "DIR", requires = "embedded")]
    data_dir: Option<PathBuf>,
    /// Where the hub's own API server is reached; port 0 is any that is free.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443", requires = "embedded")]
    listen: SocketAddr,
    /// The name of this hub in the election of a leader; it has to be another for each hub, because one that finds its own
    /// name takes the lead for its own. The host's name and the process's number where it is not set; with --embedded it is
    /// always the same, because no other hub can have the folder, so that one that was killed leads at once when it is back.
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// Whether a leader is elected; without it this has to be the only hub.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    leader_elect: bool,
    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    health_listen: SocketAddr,
    /// Which controllers to run: cluster, clusterset (with its bindings), placement, addon, work, upgrade; * for all, -name to leave one
    /// out. `*,-cluster,-clusterset` leaves registration to OCM's own controllers, `*,-placement` placements, `*,-addon` add-ons,
    /// `*,-work` sets of works, and `*,-upgrade` upgrades of clusters.
    #[arg(long, value_name = "LIST", default_value = "*", allow_hyphen_values = true)]
    controllers: Controllers,
    /// A group whose members may bring clusters in: their requests for the first certificate of a cluster that is
    /// accepted are approved. Can be given several times; an empty one is nobody's.
    #[arg(long = "bootstrap-group", value_name = "GROUP", default_value = BOOTSTRAP_GROUP)]
    bootstrap_groups: Vec<String>,
    /// The Secret with the CA that the API server trusts for its clients, as tls.crt and tls.key or ca.crt and ca.key. Use this where the
    /// Kubernetes does not sign for kubernetes.io/kube-apiserver-client, as some managed ones do not: agents are approved there and never
    /// get their certificates. The hub then signs for them itself; it needs a Role to get that Secret, and a ClusterRole with the label
    /// drover.dev/hub-signs to sign for that signer.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = secret)]
    client_signing_ca: Option<ObjectKey>,
    /// Where it is told why a placement selects what it selects, at /debug/placements/NAMESPACE/NAME; nowhere if it is not
    /// set. It is plain HTTP, and whoever asks sends a token: use a loopback address such as 127.0.0.1:8090, and reach it
    /// with `kubectl port-forward`.
    #[arg(long, value_name = "ADDRESS")]
    debug_listen: Option<SocketAddr>,
    /// Take over the add-ons that another manager has installed: those that are, as the hub starts, on a cluster that their
    /// strategy chooses count as installed by this hub, which removes them when they are no longer wanted there. Without it
    /// the hub removes nothing that it has not made. Once is enough.
    #[arg(long)]
    adopt_existing: bool,
    /// In whose words to report on add-ons: drover, with canaries and versions; or ocm, where the CRDs are OCM's own and have
    /// no place for these. It goes by the CRDs where it is not set.
    #[arg(long, value_name = "NAME")]
    dialect: Option<DialectName>,
    /// The image of the Job that upgrades operators on managed clusters, with this program or oc in it. Without it, no upgrade that asks for
    /// operators is begun.
    #[arg(long, value_name = "IMAGE")]
    operator_approver_image: Option<String>,
    /// What that Job runs: drover, which ends when the operators are upgraded; or oc, which ends when their upgrades are approved, and says no more.
    #[arg(long, value_name = "NAME", default_value = "drover")]
    operator_approver: ApproverName,
}

/// The dialects, as they are named on the command line.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum DialectName {
    Drover,
    Ocm,
}

/// What upgrades operators, as it is named on the command line.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ApproverName {
    Drover,
    Oc,
}

impl HubCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        log();
        tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let embedded = match self.data_dir.as_deref().filter(|_| self.embedded) {
            Some(data) => Some(Embedded::start(data, self.listen).await?),
            None => None,
        };
        let client = match &embedded {
            Some(embedded) => embedded.client(),
            None => connect(self.kubeconfig.as_deref()).await?,
        };
        check_api(&client).await?;
        if self.controllers.runs(Area::AddOn) {
            check_own_api(&client).await?;
        }
        if self.controllers.runs(Area::Upgrade) {
            check_upgrade_api(&client).await?;
        }
        let options = Options {
            namespace: fs::read_to_string(POD_NAMESPACE)
                .map_or_else(|_| NAMESPACE.to_owned(), |text| text.trim().to_owned()),
            identity: self.leader_elect.then(|| self.own_identity()),
            health_listen: Some(self.health_listen),
            controllers: self.controllers.clone(),
            bootstrap_groups: self.bootstrap_groups.iter().filter(|group| !group.is_empty()).cloned().collect(),
            client_ca: self.client_signing_ca.clone(),
            debug_listen: self.debug_listen,
            adopt_existing: self.adopt_existing,
            dialect: self.dialect(&client).await?,
            approver: self.approver(),
            epoch: EPOCH,
        };
        if options.identity.is_some() {
            check_namespace(&client, &options.namespace).await?;
        }
        let hub = Hub::start(client, &options, Clock::system()).await?;
        if let Some(embedded) = &embedded {
            let (address, kubeconfig) = (embedded.address(), embedded.kubeconfig().display());
            announce(format_args!("the API is at https://{address}; try kubectl --kubeconfig {kubeconfig} get drover"));
        }
        if let Some(health) = hub.health() {
            announce(format_args!("drover hub is running; health and metrics are at http://{health}"));
        }
        if let Some(debug) = hub.debug() {
            announce(format_args!("placements are explained at http://{debug}/debug/placements/"));
        }
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        hub.stop().await;
        if let Some(embedded) = embedded {
            embedded.stop().await;
        }
        Ok(())
    }

    /// Who this hub is in the election of a leader.
    fn own_identity(&self) -> String {
        match &self.identity {
            Some(identity) => identity.clone(),
            None if self.embedded => "embedded".to_owned(),
            None => process_identity(),
        }
    }

    /// What upgrades operators.
    fn approver(&self) -> Option<Approver> {
        let image = self.operator_approver_image.clone()?;
        Some(match self.operator_approver {
            ApproverName::Drover => Approver::Drover { image },
            ApproverName::Oc => Approver::Oc { image },
        })
    }

    /// In whose words to report. Where the CRDs are OCM's, it is told what that means.
    async fn dialect(&self, client: &Client) -> anyhow::Result<Dialect> {
        let dialect = match self.dialect {
            Some(DialectName::Drover) => Dialect::Drover,
            Some(DialectName::Ocm) => Dialect::Ocm,
            None if !self.controllers.runs(Area::AddOn) => Dialect::default(),
            None => detect_dialect(client.clone()).await.context("could not read the definition of add-ons")?,
        };
        if dialect == Dialect::Ocm {
            warn!(
                "reporting in OCM's words: versions and the strategies UpdateAll, RollingUpdate and RollingUpdateWithCanary are off; apply Drover's CRDs to have them"
            );
        }
        Ok(dialect)
    }
}

/// Reads where a Secret is.
fn secret(text: &str) -> Result<ObjectKey, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(ObjectKey::namespaced(namespace, name))
        }
        _ => Err(format!("{text:?} names no Secret: write its namespace, a slash and its name")),
    }
}

/// A name that no other hub has: that of the host, with the number of the process.
fn process_identity() -> String {
    let host = env::var("HOSTNAME").or_else(|_| fs::read_to_string("/etc/hostname")).unwrap_or_default();
    format!("{}-{}", host.trim(), process::id())
}

/// Makes sure that the server has Drover's API and that this hub may use it, and says what to do if not.
async fn check_api(client: &Client) -> anyhow::Result<()> {
    check_kind::<Placement>(
        client,
        "this Kubernetes lacks Drover's API: apply it with `drover crds | kubectl apply --server-side -f -`",
    )
    .await
}

/// Makes sure that the server has the kinds that are Drover's alone, where the others may be OCM's own.
async fn check_own_api(client: &Client) -> anyhow::Result<()> {
    let remedy = "this Kubernetes has OCM's API, and lacks what Drover keeps of rollouts: apply that with `drover crds --group drover.dev | \
                  kubectl apply --server-side -f -`, or leave add-ons to somebody else with `--controllers=*,-addon`";
    check_kind::<AddOnRollout>(client, remedy).await
}

/// Makes sure that upgrades of clusters have where they are asked for, and where the hub keeps how far they are.
async fn check_upgrade_api(client: &Client) -> anyhow::Result<()> {
    let remedy = "this Kubernetes has no ManagedClustersUpgrades or ClusterUpgrades, by which clusters are upgraded: apply Drover's CRDs with `drover crds | \
                  kubectl apply --server-side -f -`, or leave upgrades to somebody else with `--controllers=*,-upgrade`";
    check_kind::<ManagedClustersUpgrade>(client, remedy).await?;
    check_kind::<ClusterUpgrade>(client, remedy).await
}

async fn check_kind<K>(client: &Client, if_it_is_missing: &'static str) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let kinds = K::plural(&());
    match Api::<K>::all(client.clone()).list_metadata(&ListParams::default().limit(1)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => match status.code {
            404 => bail!(if_it_is_missing),
            401 => bail!("this Kubernetes does not accept the credentials: check the kubeconfig, or make a new token"),
            403 => bail!("{}: apply deploy/hub, and run the hub as its service account", status.message),
            _ => bail!("could not read {kinds}: {}", status.message),
        },
        Err(error) => Err(error).context("could not reach the Kubernetes of the kubeconfig"),
    }
}

/// Makes sure that there is a place for the lease, without which nobody would ever lead.
async fn check_namespace(client: &Client, namespace: &str) -> anyhow::Result<()> {
    match Api::<Namespace>::all(client.clone()).get_opt(namespace).await {
        Ok(None) => bail!("there is no namespace {namespace}, where hubs elect their leader: apply deploy/hub"),
        // Whoever may not look may still lead.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_named_by_its_namespace_and_its_name() {
        assert_eq!(secret("hub/ca"), Ok(ObjectKey::namespaced("hub", "ca")));
        for wrong in ["", "ca", "/ca", "hub/", "hub/ca/more"] {
            assert!(secret(wrong).is_err(), "{wrong}");
        }
    }
}
