//! `drover hub --embedded`: the hub with nothing under it, as a process. What it has answered is never lost, and what is wrong is said.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader, Read as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use drover_api::cluster::ManagedCluster;
use drover_testkit::wait;
use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use kube::{
    Api, Client, Config, ResourceExt as _,
    api::{ListParams, ObjectMeta, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use tempfile::TempDir;

use crate::running::NAMESPACE;

/// How often a hub is killed in the midst of writes. By hand, many more: `DROVER_KILLS=200`.
const KILLS: usize = 3;

/// A hub that runs in a process of its own.
pub(crate) struct Process {
    child: Child,
    /// Held open, because it has more to say.
    pub(crate) output: Option<BufReader<ChildStdout>>,
}

impl Process {
    fn spawn(data: &Path, listen: &str) -> Child {
        Command::new(env!("CARGO_BIN_EXE_drover-under-test"))
            .args(["hub", "--embedded", "--listen", listen, "--health-listen", "127.0.0.1:0", "--data-dir"])
            .arg(data)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("drover can be run")
    }

    /// Starts a hub, and waits until it is ready.
    pub(crate) fn start(data: &Path) -> Self {
        let mut child = Self::spawn(data, "127.0.0.1:0");
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("standard output is piped"));
        stdout.read_line(&mut line).expect("it says something");
        let is_ready = line.starts_with("the API is at https://127.0.0.1:");
        let mut child = if is_ready { child } else { panic!("it did not start: {line}{}", complaint(child)) };
        // Nobody reads what it logs, and a full pipe would stop it.
        let mut log = child.stderr.take().expect("standard error is piped");
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { child, output: Some(stdout) }
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a hub said that did not start.
fn complaint(mut child: Child) -> String {
    let mut text = String::new();
    child.stderr.take().expect("standard error is piped").read_to_string(&mut text).expect("it is text");
    assert!(!child.wait().expect("it ends").success(), "it ended well: {text}");
    text
}

pub(crate) fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("there is room for files");
    let data = folder.path().join("data");
    (folder, data)
}

pub(crate) async fn client(data: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(data.join("admin.kubeconfig")).expect("it can be read");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("it is valid");
    Client::try_from(config).expect("a client can be made")
}

fn map(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }, ..ConfigMap::default() }
}

#[tokio::test]
async fn what_was_answered_is_there_again_however_often_the_hub_is_killed() {
    let (_folder, data) = folder();
    let kills = std::env::var("DROVER_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let mut answered = BTreeSet::new();
    let mut last_revision = 0;
    for round in 0..kills {
        let hub = Process::start(&data);
        let maps = Api::<ConfigMap>::namespaced(client(&data).await, "default");
        let there = maps.list(&ListParams::default()).await.expect("they can be listed");
        let revision: u64 = there.metadata.resource_version.expect("a list says").parse().expect("a number");
        assert!(revision >= last_revision, "the revision never goes back");
        let names: BTreeSet<_> = there.items.iter().map(ConfigMap::name_any).collect();
        assert!(names.is_superset(&answered), "lost: {:?}", answered.difference(&names));
        // Somewhere among these it is killed.
        let mut hub = Some(hub);
        let mut writes = stream::iter(0..400)
            .map(async |number| {
                let name = format!("map-{round}-{number}");
                maps.create(&PostParams::default(), &map(&name)).await.ok().map(|made| {
                    let revision = made.resource_version().and_then(|text| text.parse::<u64>().ok());
                    (name, revision.expect("an object says of which revision it is"))
                })
            })
            .buffer_unordered(16);
        while let Some(written) = writes.next().await {
            let Some((name, revision)) = written else { continue };
            answered.insert(name);
            last_revision = last_revision.max(revision);
            if answered.len() % 150 == 100
                && let Some(hub) = hub.take()
            {
                hub.kill();
            }
        }
    }
    let _hub = Process::start(&data);
    let maps = Api::<ConfigMap>::namespaced(client(&data).await, "default");
    let there = maps.list(&ListParams::default()).await.expect("they can be listed");
    let names: BTreeSet<_> = there.items.iter().map(ConfigMap::name_any).collect();
    assert!(names.is_superset(&answered), "lost: {:?}", answered.difference(&names));
}

#[tokio::test]
async fn the_hub_works_and_nobody_else_can_read_what_it_keeps() {
    let (_folder, data) = folder();
    let hub = Process::start(&data);
    for name in ["admin.kubeconfig", "store.redb", "lock", "pki/ca.key", "pki/sa.key"] {
        let mode = fs::metadata(data.join(name)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert_eq!(fs::metadata(&data).expect("it is there").permissions().mode() & 0o777, 0o700);
    let client = client(&data).await;
    let clusters = Api::<ManagedCluster>::all(client.clone());
    let cluster = serde_json::json!({ "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": { "name": "one" }, "spec": { "hubAcceptsClient": true } });
    let cluster = serde_json::from_value(cluster).expect("a cluster");
    clusters.create(&PostParams::default(), &cluster).await.expect("a cluster can be made");
    let is_accepted = |one: &ManagedCluster| {
        let mut conditions = one.status.iter().flat_map(|status| &status.conditions);
        conditions.any(|condition| condition.type_ == "HubAcceptedManagedCluster" && condition.status == "True")
    };
    wait::until(&clusters, "one", "the hub has let it in", is_accepted).await;
    // Nobody else can have the folder, so that one that was killed need not wait for its own lease to run out.
    let leases = Api::<Lease>::namespaced(client, NAMESPACE);
    let lease = leases.get("drover-hub").await.expect("the hub leads");
    assert_eq!(lease.spec.and_then(|spec| spec.holder_identity).as_deref(), Some("embedded"));

    // A second one in the same folder would spoil it.
    let told = complaint(Process::spawn(&data, "127.0.0.1:0"));
    assert!(told.contains("another process uses") && told.contains("use another folder"), "{told}");
    drop(hub);
}

#[tokio::test]
async fn the_hub_goes_on_where_nobody_reads_what_it_says() {
    let (_folder, data) = folder();
    // As with `drover hub | head -1`: it has more to say.
    let mut hub = Process::start(&data);
    drop(hub.output.take());
    let leases = Api::<Lease>::namespaced(client(&data).await, NAMESPACE);
    let leads = |lease: &Lease| lease.spec.as_ref().is_some_and(|spec| spec.holder_identity.is_some());
    let lease = wait::until(&leases, "drover-hub", "the hub leads", leads).await;
    let renewed = |now: &Lease| now.resource_version() != lease.resource_version();
    wait::until(&leases, "drover-hub", "the hub goes on", renewed).await;
    hub.kill();
}

#[test]
fn what_is_wrong_is_said_and_what_to_do_about_it() {
    let (_folder, data) = folder();
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = taken.local_addr().expect("it has an address").to_string();
    let told = complaint(Process::spawn(&data, &address));
    assert!(told.contains(&format!("could not listen on {address}")) && told.contains("port 0"), "{told}");

    fs::write(data.join("pki/ca.key"), "nonsense").expect("it can be written");
    let told = complaint(Process::spawn(&data, "127.0.0.1:0"));
    assert!(told.contains("ca.key can not be read as a key"), "{told}");

    let (_folder, data) = folder();
    fs::create_dir(&data).expect("it can be made");
    fs::write(data.join("store.redb"), "nonsense").expect("it can be written");
    let told = complaint(Process::spawn(&data, "127.0.0.1:0"));
    assert!(told.contains("store.redb") && told.contains("drover:"), "{told}");

    let without =
        Command::new(env!("CARGO_BIN_EXE_drover-under-test")).args(["hub", "--embedded"]).output().expect("it runs");
    let told = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(!without.status.success() && told.contains("--data-dir"), "{told}");
}
