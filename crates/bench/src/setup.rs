//! What benchmarks on a server share: clusters, and a hub under the role that `deploy` has.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};
use drover_api::{
    cluster::ManagedCluster,
    names::{CLUSTER_AVAILABLE, CLUSTER_JOINED, CLUSTER_SET_LABEL},
};
use drover_testkit::{
    Server,
    objects::{self, Described as _},
};
use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::jiff::Timestamp;
use kube::{
    Api, Client, Config, Resource,
    api::{Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

const HUB_NAMESPACE: &str = "open-cluster-management-hub";
/// How many requests are on their way at a time.
const CONCURRENCY: usize = 32;
/// How long leases last: nothing may run out while something is measured.
const LEASE_SECONDS: i32 = 24 * 3600;

/// Does something for each of these, many at a time.
pub(crate) async fn for_each<T, F>(items: impl IntoIterator<Item = T>, act: impl FnMut(T) -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    stream::iter(items).map(act).buffer_unordered(CONCURRENCY).try_collect::<()>().await
}

/// A cluster that is accepted, in one of five regions.
pub(crate) fn cluster(name: &str, index: usize) -> ManagedCluster {
    let mut cluster = objects::cluster(name)
        .labelled("region", &format!("region-{}", index % 5))
        .labelled(CLUSTER_SET_LABEL, "default");
    cluster.spec.lease_duration_seconds = LEASE_SECONDS;
    cluster
}

/// Reports that a cluster has joined and is available.
pub(crate) async fn report_cluster(clusters: &Api<ManagedCluster>, name: &str, index: usize) -> anyhow::Result<()> {
    let status = json!({ "status": {
        "conditions": [condition(CLUSTER_JOINED, "True"), condition(CLUSTER_AVAILABLE, "True")],
        "version": { "kubernetes": "v1.34.0" },
        "allocatable": { "cpu": format!("{}", 1 + index % 97), "memory": "64Gi" },
        "capacity": { "cpu": "100", "memory": "128Gi" },
        "clusterClaims": [{ "name": "id.k8s.io", "value": name }],
    } });
    let reported = clusters.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await;
    reported.map(drop).with_context(|| format!("could not report on cluster {name}"))
}

/// A condition of now.
pub(crate) fn condition(type_: &str, status: &str) -> Value {
    let now = Timestamp::now().to_string();
    json!({ "type": type_, "status": status, "reason": type_, "message": "", "lastTransitionTime": now })
}

pub(crate) fn named<K: Resource + Default>(name: &str) -> K {
    let mut object = K::default();
    object.meta_mut().name = Some(name.to_owned());
    object
}

pub(crate) async fn create<K>(api: &Api<K>, object: &K) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let made = api.create(&PostParams::default(), object).await;
    made.map(drop).with_context(|| format!("could not make a {} {:?}", K::kind(&()), object.meta().name))
}

/// How to reach the server of a kubeconfig.
pub(crate) async fn config(kubeconfig: &Path) -> anyhow::Result<Config> {
    let read = Kubeconfig::read_from(kubeconfig).with_context(|| format!("could not read {}", kubeconfig.display()))?;
    Ok(Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?)
}

pub(crate) async fn connect(kubeconfig: &Path) -> anyhow::Result<Client> {
    Ok(Client::try_from(config(kubeconfig).await?)?)
}

/// The object in a file of examples.
pub(crate) fn example(file: &str) -> anyhow::Result<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(file);
    let text = fs::read_to_string(&file).with_context(|| format!("could not read {}", file.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("{} is no YAML", file.display()))
}

/// The program `drover`: the one that was named, or the one beside this program.
pub(crate) fn drover(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    Ok(match named {
        Some(drover) => drover.to_owned(),
        None => env::current_exe()?.with_file_name("drover"),
    })
}

/// A kubeconfig of the hub's own service account, with the roles and under the policies that `deploy` has.
pub(crate) fn as_hub(server: &Server) -> anyhow::Result<NamedTempFile> {
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
