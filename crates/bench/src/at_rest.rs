//! What a hub does that is started again on a fleet at rest: nothing, one hopes.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, ensure};
use clap::Args;
use drover_api::cluster::{ManagedCluster, ManagedClusterSetBinding, ManagedClusterSetBindingSpec, Placement};
use drover_testkit::{
    Server,
    objects::{self, Described as _},
};
use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::{api::core::v1::Namespace, jiff::Timestamp};
use kube::{
    Api, Client, Config, Resource,
    api::{Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::time::sleep;

use crate::{
    hub_process::{HubProcess, Rest},
    report::{Report, Table},
    rounded,
    server_counts::Requests,
};

const HUB_NAMESPACE: &str = "open-cluster-management-hub";
/// How many objects are made at a time.
const CONCURRENCY: usize = 32;
/// How long leases last: nothing may run out while this is measured.
const LEASE_SECONDS: i32 = 24 * 3600;

/// What a hub does that is started again on a fleet at rest.
#[derive(Debug, Args)]
pub(crate) struct AtRest {
    /// How many clusters there are.
    #[arg(long, default_value_t = 1000)]
    clusters: usize,
    /// How many placements select from them.
    #[arg(long, default_value_t = 20)]
    placements: usize,
    /// The program `drover`; the one beside this program if it is not set.
    #[arg(long, value_name = "FILE")]
    drover: Option<PathBuf>,
}

impl AtRest {
    pub(crate) fn measure(&self) -> anyhow::Result<Report> {
        tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(self.run())
    }

    async fn run(&self) -> anyhow::Result<Report> {
        let drover = match &self.drover {
            Some(drover) => drover.clone(),
            None => env::current_exe()?.with_file_name("drover"),
        };
        let server = Server::start();
        let client = connect(server.kubeconfig()).await?;
        let kubeconfig = as_hub(&server)?;
        self.make_fleet(&client).await?;

        let hub = HubProcess::start(&drover, kubeconfig.path())?;
        let first = hub.rest().await?;
        hub.stop()?;

        let before = Requests::count(&client).await?;
        let hub = HubProcess::start(&drover, kubeconfig.path())?;
        let begun = Instant::now();
        let again = hub.rest().await?;
        let time = begun.elapsed();
        hub.stop()?;
        let with_hub = Requests::count(&client).await?;
        // What the server and this program do by themselves.
        sleep(time).await;
        let without = Requests::count(&client).await?.since(&with_hub);
        Ok(self.report(&first, &again, &with_hub.since(&before), &without))
    }

    fn report(&self, first: &Rest, again: &Rest, requests: &Requests, without: &Requests) -> Report {
        let Self { clusters, placements, .. } = self;
        let mut report = Report::new(
            "at-rest",
            "A hub that is started again",
            &format!(
                "A hub is run on {clusters} clusters and {placements} placements until it is at rest, ended, and started again. The second time it has \
                 nothing to do, and is to write nothing but its Lease."
            ),
            &format!("at-rest --clusters {clusters} --placements {placements}"),
        );
        let columns =
            ["start", "ready after, s", "last active after, s", "writes of controllers", "memory, MB", "CPU, s"];
        let mut table = Table::new("The hub", &columns);
        for (name, rest) in [("first", first), ("again", again)] {
            table.rows.push(vec![
                name.to_owned(),
                rounded(rest.ready.as_secs_f64()),
                rounded(rest.last_active.as_secs_f64()),
                rest.writes.values().sum::<u64>().to_string(),
                rounded(rest.memory_megabytes),
                rounded(rest.cpu.as_secs_f64()),
            ]);
        }
        report.tables.push(table);
        let columns = ["resource", "verb", "requests", "without a hub, in the same time"];
        let mut table =
            Table::new("Requests that the API server counted from the second start until the hub had ended", &columns);
        for (key, count) in requests.iter() {
            let (resource, verb) = key;
            table.rows.push(vec![resource.clone(), verb.clone(), count.to_string(), without.of(key).to_string()]);
        }
        report.tables.push(table);
        report
    }

    /// Clusters whose agents have joined, and placements that select them in different ways.
    async fn make_fleet(&self, client: &Client) -> anyhow::Result<()> {
        let clusters = stream::iter(0..self.clusters).map(|index| make_cluster(client, index));
        clusters.buffer_unordered(CONCURRENCY).try_collect::<()>().await?;
        let namespaces = 4;
        for index in 0..namespaces.min(self.placements) {
            let namespace = format!("team-{index}");
            create(&Api::all(client.clone()), &named::<Namespace>(&namespace)).await?;
            let spec = ManagedClusterSetBindingSpec { cluster_set: "global".to_owned() };
            let binding = ManagedClusterSetBinding::new("global", spec);
            create(&Api::namespaced(client.clone(), &namespace), &binding).await?;
        }
        for index in 0..self.placements {
            let mut placement: Placement = serde_json::from_value(json!({
                "metadata": { "name": format!("placement-{index}") },
                "spec": spec(index),
            }))?;
            let namespace = format!("team-{}", index % namespaces);
            placement.metadata.namespace = Some(namespace.clone());
            create(&Api::namespaced(client.clone(), &namespace), &placement).await?;
        }
        Ok(())
    }
}

/// Different placements: all clusters, those of a region, the best of them, and some of each region.
fn spec(index: usize) -> Value {
    let region = json!({ "labelSelector": { "matchLabels": { "region": format!("region-{}", index % 5) } } });
    match index % 4 {
        0 => json!({}),
        1 => json!({ "predicates": [{ "requiredClusterSelector": region }] }),
        2 => json!({ "numberOfClusters": 100, "prioritizerPolicy": { "configurations": [
            { "scoreCoordinate": { "builtIn": "ResourceAllocatableCPU" }, "weight": 2 },
        ] } }),
        _ => json!({
            "predicates": [{ "requiredClusterSelector": region }],
            "decisionStrategy": { "groupStrategy": { "clustersPerDecisionGroup": "10%" } },
        }),
    }
}

/// A cluster that is accepted, has joined, and is available.
async fn make_cluster(client: &Client, index: usize) -> anyhow::Result<()> {
    let name = format!("cluster-{index:04}");
    let mut cluster = objects::cluster(&name)
        .labelled("region", &format!("region-{}", index % 5))
        .labelled("cluster.open-cluster-management.io/clusterset", "default");
    cluster.spec.lease_duration_seconds = LEASE_SECONDS;
    let clusters = Api::<ManagedCluster>::all(client.clone());
    create(&clusters, &cluster).await?;
    let now = Timestamp::now();
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": now.to_string() });
    let status = json!({ "status": {
        "conditions": [condition("ManagedClusterJoined"), condition("ManagedClusterConditionAvailable")],
        "version": { "kubernetes": "v1.34.0" },
        "allocatable": { "cpu": format!("{}", 1 + index % 97), "memory": "64Gi" },
        "capacity": { "cpu": "100", "memory": "128Gi" },
        "clusterClaims": [{ "name": "id.k8s.io", "value": name }],
    } });
    clusters.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

fn named<K: Resource + Default>(name: &str) -> K {
    let mut object = K::default();
    object.meta_mut().name = Some(name.to_owned());
    object
}

async fn create<K>(api: &Api<K>, object: &K) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let made = api.create(&PostParams::default(), object).await;
    made.map(drop).with_context(|| format!("could not make a {} {:?}", K::kind(&()), object.meta().name))
}

async fn connect(kubeconfig: &Path) -> anyhow::Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    Ok(Client::try_from(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)?)
}

/// A kubeconfig of the hub's own service account, with the roles and under the policies that `deploy` has.
fn as_hub(server: &Server) -> anyhow::Result<NamedTempFile> {
    for part in ["../../deploy/hub", "../../deploy/policies"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(part);
        kubectl(server, &["apply", "--server-side", "-f", folder.to_str().context("a path is text")?])?;
    }
    let token = kubectl(server, &["create", "token", "--namespace", HUB_NAMESPACE, "--duration=2h", "drover-hub"])?;
    let mut kubeconfig: Value = serde_saphyr::from_str(&fs::read_to_string(server.kubeconfig())?)?;
    for user in kubeconfig["users"].as_array_mut().into_iter().flatten() {
        user["user"] = json!({ "token": token.trim() });
    }
    let file = NamedTempFile::new()?;
    // JSON is YAML.
    serde_json::to_writer(&file, &kubeconfig)?;
    Ok(file)
}

fn kubectl(server: &Server, arguments: &[&str]) -> anyhow::Result<String> {
    let output =
        Command::new(Server::kubectl()).arg("--kubeconfig").arg(server.kubeconfig()).args(arguments).output()?;
    ensure!(output.status.success(), "kubectl failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}
