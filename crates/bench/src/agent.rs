//! What an agent costs that has many works: little while it installs them, and next to nothing once it has.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::Args;
use drover_api::{
    cluster::ManagedCluster,
    names::{CLUSTER_JOINED, WORK_APPLIED},
    work::ManifestWork,
};
use drover_testkit::{Server, World, objects, wait};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace},
};
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    agent_process::{AgentProcess, Asks, Ways},
    hub_process::HubProcess,
    process::Process,
    report::{Report, Table},
    rounded,
    server_counts::Requests,
    setup::{as_hub, create, drover, for_each, named},
};

const CLUSTER: &str = "bench";
/// The namespace of what works have.
const NAMESPACE: &str = "apps";
/// What an agent at rest may have of memory, in megabytes.
const BUDGET: u32 = 30;
/// How often the hub wants the lease renewed, so that renewals are seen.
const LEASE_SECONDS: i32 = 10;
/// An agent that has asked for nothing but its lease for so long is at rest.
const QUIET: Duration = Duration::from_secs(5);
/// After how long everything is taken to have been asked for that a change brings about.
const AFTERMATH: Duration = Duration::from_secs(2);

/// What an agent costs that has many works.
#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// How many works there are, each with ten manifests.
    #[arg(long, default_value_t = 100)]
    works: usize,
    /// For how many seconds the agent is looked at while it is at rest. Watches are begun anew every five minutes.
    #[arg(long, default_value_t = 360)]
    rest: u64,
    /// How many objects are changed in each way.
    #[arg(long, default_value_t = 20)]
    changes: usize,
    /// The program `drover`; the one beside this program if it is not set.
    #[arg(long, value_name = "FILE")]
    drover: Option<PathBuf>,
}

/// The memory of an agent at one time, in megabytes.
struct Memory {
    when: &'static str,
    total: f64,
    private: f64,
    peak: f64,
    cpu: Duration,
}

impl Memory {
    fn of(process: Process, when: &'static str) -> anyhow::Result<Self> {
        let (total, private) = (process.memory_megabytes()?, process.private_megabytes()?);
        Ok(Self { when, total, private, peak: process.peak_memory_megabytes()?, cpu: process.cpu()? })
    }
}

/// A hub and a cluster, and works for it.
struct Stage {
    hub: World,
    managed: World,
    ways: Ways,
}

/// What was found.
#[derive(Default)]
struct Findings {
    memory: Vec<Memory>,
    /// Requests at each stage.
    asks: Vec<(&'static str, Asks)>,
    installed_after: Duration,
    /// How objects were changed, and all that was asked for then.
    changes: Vec<(&'static str, Asks)>,
}

impl Agent {
    pub(crate) fn measure(&self) -> anyhow::Result<Report> {
        tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(self.run())
    }

    async fn run(&self) -> anyhow::Result<Report> {
        let drover = drover(self.drover.as_deref())?;
        let server = Server::start();
        let kubeconfig = as_hub(&server)?;
        let (hub, managed) = (World::on(server).await, World::on(Server::start()).await);
        let ways = Ways::new(&hub, &managed).await;
        let stage = Stage { hub, managed, ways };
        let _hub = HubProcess::start(&drover, kubeconfig.path(), "*")?;
        let mut found = Findings::default();

        stage.make_cluster().await?;
        let agent = AgentProcess::start(&drover, CLUSTER, &stage.ways)?;
        stage.joined().await;
        found.asks.push(("to join", stage.settled().await));

        let begun = Instant::now();
        stage.make_works(self.works).await?;
        stage.installed(self.works).await?;
        found.installed_after = begun.elapsed();
        found.asks.push(("to install all works", stage.settled().await));
        found.memory.push(Memory::of(agent.process(), "when all works are installed")?);
        found.asks.push(("at rest", self.rest(&stage).await));
        found.memory.push(Memory::of(agent.process(), "after the time at rest")?);
        self.change(&stage, &mut found).await?;
        found.memory.push(Memory::of(agent.process(), "after all changes")?);
        agent.stop()?;

        stage.ways.take();
        let agent = AgentProcess::start(&drover, CLUSTER, &stage.ways)?;
        sleep(QUIET).await;
        found.asks.push(("to start again", stage.settled().await));
        found.memory.push(Memory::of(agent.process(), "when it has started again")?);
        found.asks.push(("at rest, after it has started again", self.rest(&stage).await));
        found.memory.push(Memory::of(agent.process(), "after the time at rest, started again")?);
        agent.stop()?;
        Ok(self.report(&found))
    }

    async fn rest(&self, stage: &Stage) -> Asks {
        stage.ways.take();
        sleep(Duration::from_secs(self.rest)).await;
        stage.ways.take()
    }

    /// Changes objects one by one, in different ways.
    async fn change(&self, stage: &Stage, found: &mut Findings) -> anyhow::Result<()> {
        let each = || (0..self.changes).map(|index| index % self.works.max(1));
        let maps = Api::<ConfigMap>::namespaced(stage.managed.client(), NAMESPACE);
        stage.ways.take();
        for work in each() {
            let name = format!("w{work:03}-map-0");
            let drift = json!({ "data": { "key-0": "not what the manifest says" } });
            maps.patch(&name, &PatchParams::default(), &Patch::Merge(drift)).await?;
            wait::until(&maps, &name, "it is repaired", |map| value(map) == Some("value-0")).await;
            sleep(AFTERMATH).await;
        }
        found.changes.push(("a field that the manifest has, which is repaired", stage.ways.take()));
        for work in each() {
            let more = json!({ "metadata": { "annotations": { "example.com/more": "of no interest" } } });
            maps.patch(&format!("w{work:03}-map-0"), &PatchParams::default(), &Patch::Merge(more)).await?;
            sleep(AFTERMATH).await;
        }
        found.changes.push(("a field that the manifest does not have", stage.ways.take()));
        let deployments = Api::<Deployment>::namespaced(stage.managed.client(), NAMESPACE);
        let works = Api::<ManifestWork>::namespaced(stage.hub.client(), CLUSTER);
        for work in each() {
            let name = format!("w{work:03}");
            let ready = json!({ "status": { "replicas": 2, "readyReplicas": 2, "availableReplicas": 2 } });
            deployments.patch_status(&name, &PatchParams::default(), &Patch::Merge(ready)).await?;
            wait::until(&works, &name, "it is reported", |work| reports_ready(work, 2)).await;
            sleep(AFTERMATH).await;
        }
        found.changes.push(("a status that is reported", stage.ways.take()));
        Ok(())
    }

    fn report(&self, found: &Findings) -> Report {
        let Self { works, rest, changes, .. } = self;
        let mut report = Report::new(
            "agent",
            "An agent",
            &format!(
                "An agent with {works} works of ten manifests each: a Deployment with feedback, a Service, an account with a role and its binding, a Secret, and four \
                 ConfigMaps. Hub and cluster are real kube-apiservers; somebody between them and the agent counts all that it asks for. The hub wants the lease renewed \
                 every {LEASE_SECONDS} s. At rest the agent is to have less than {BUDGET} MB, and to ask for nothing but its lease, watches, and once a minute whether \
                 the cluster's API server is well; a change of one object is to cause one status write at most."
            ),
            &format!("agent --works {works} --rest {rest} --changes {changes}"),
        );
        report.tables.push(memory(&found.memory));
        report.tables.push(changed(&found.changes, *changes));
        report.tables.push(self.per_work(found));
        for (when, asks) in found.asks.iter().filter(|(when, _)| when.starts_with("at rest")) {
            let title = format!("Requests {when}, in {rest} s");
            report.tables.push(requests(&title, asks));
        }
        for (when, asks) in found.asks.iter().filter(|(when, _)| !when.starts_with("at rest")) {
            report.tables.push(requests(&format!("Requests {when}"), asks));
        }
        report
    }

    fn per_work(&self, found: &Findings) -> Table {
        let columns = ["works", "installed after, s", "requests to the hub per work", "to the cluster per work"];
        let mut table = Table::new("What it takes to install the works", &columns);
        if let Some((_, asks)) = found.asks.iter().find(|(when, _)| *when == "to install all works") {
            let per_work = |requests: &Requests| {
                let all: u64 = requests.iter().map(|(_, count)| count).sum();
                rounded(ratio(all, self.works))
            };
            let seconds = rounded(found.installed_after.as_secs_f64());
            table.rows.push(vec![self.works.to_string(), seconds, per_work(&asks.hub), per_work(&asks.managed)]);
        }
        table
    }
}

#[expect(clippy::cast_precision_loss, reason = "there are not that many")]
fn ratio(count: u64, of: usize) -> f64 {
    count as f64 / of.max(1) as f64
}

fn memory(all: &[Memory]) -> Table {
    let columns = ["when", "memory, MB", "of it private, MB", "at most so far, MB", "CPU so far, s"];
    let mut table = Table::new("The agent", &columns);
    for Memory { when, total, private, peak, cpu } in all {
        let numbers = [*total, *private, *peak, cpu.as_secs_f64()].map(rounded);
        table.rows.push(std::iter::once((*when).to_owned()).chain(numbers).collect());
    }
    table
}

fn changed(all: &[(&'static str, Asks)], times: usize) -> Table {
    let columns =
        ["what is changed", "status writes per change", "other requests to the hub", "requests to the cluster"];
    let mut table = Table::new(&format!("Changes of one object, {times} of each kind"), &columns);
    for (what, asks) in all {
        let count = |requests: &Requests, is_meant: &dyn Fn(&str, &str) -> bool| {
            let meant = requests.iter().filter(|((resource, verb), _)| is_meant(resource, verb));
            rounded(ratio(meant.map(|(_, count)| count).sum(), times))
        };
        // These go on whatever happens.
        let goes_on = |resource: &str, verb: &str| resource == "leases" || resource.starts_with('/') || verb == "WATCH";
        let is_status = |resource: &str| resource == "manifestworks/status";
        table.rows.push(vec![
            (*what).to_owned(),
            count(&asks.hub, &|resource, _| is_status(resource)),
            count(&asks.hub, &|resource, verb| !is_status(resource) && !goes_on(resource, verb)),
            count(&asks.managed, &|resource, verb| !goes_on(resource, verb)),
        ]);
    }
    table
}

fn requests(title: &str, asks: &Asks) -> Table {
    let mut table = Table::new(title, &["of", "resource", "verb", "requests"]);
    for (of, requests) in [("the hub", &asks.hub), ("the cluster", &asks.managed)] {
        for ((resource, verb), count) in requests.iter() {
            table.rows.push(vec![of.to_owned(), resource.clone(), verb.clone(), count.to_string()]);
        }
    }
    table
}

impl Stage {
    async fn make_cluster(&self) -> anyhow::Result<()> {
        create(&Api::all(self.managed.client()), &named::<Namespace>(NAMESPACE)).await?;
        let mut cluster = objects::cluster(CLUSTER);
        cluster.spec.lease_duration_seconds = LEASE_SECONDS;
        create(&Api::all(self.hub.client()), &cluster).await
    }

    async fn joined(&self) {
        let clusters = Api::<ManagedCluster>::all(self.hub.client());
        let has_joined = |cluster: &ManagedCluster| {
            let mut conditions = cluster.status.iter().flat_map(|status| &status.conditions);
            conditions.any(|condition| condition.type_ == CLUSTER_JOINED && condition.status == "True")
        };
        wait::until(&clusters, CLUSTER, "it has joined", has_joined).await;
    }

    async fn make_works(&self, count: usize) -> anyhow::Result<()> {
        let works = Api::<ManifestWork>::namespaced(self.hub.client(), CLUSTER);
        for_each(0..count, async |index| create(&works, &work(index)?).await).await
    }

    /// Waits until all works are applied.
    async fn installed(&self, count: usize) -> anyhow::Result<()> {
        let works = Api::<ManifestWork>::namespaced(self.hub.client(), CLUSTER);
        loop {
            let list = works.list(&ListParams::default()).await?;
            if list.iter().filter(|work| is_applied(work)).count() == count {
                return Ok(());
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until nothing is asked for but what always is, and says what was until then.
    async fn settled(&self) -> Asks {
        let mut all = self.ways.take();
        loop {
            sleep(QUIET).await;
            let more = self.ways.take();
            let goes_on = |resource: &str| resource == "leases" || resource.starts_with('/');
            let mut news = more.hub.iter().chain(more.managed.iter());
            let is_quiet = news.all(|((resource, _), _)| goes_on(resource));
            for (all, more) in [(&mut all.hub, &more.hub), (&mut all.managed, &more.managed)] {
                more.iter().for_each(|(sort, count)| all.add(sort.clone(), count));
            }
            if is_quiet {
                return all;
            }
        }
    }
}

fn value(map: &ConfigMap) -> Option<&str> {
    map.data.as_ref()?.get("key-0").map(String::as_str)
}

fn is_applied(work: &ManifestWork) -> bool {
    let mut conditions = work.status.iter().flat_map(|status| &status.conditions);
    conditions.any(|condition| condition.type_ == WORK_APPLIED && condition.status == "True")
}

/// Whether a work tells that so many replicas of its Deployment are ready.
fn reports_ready(work: &ManifestWork, replicas: i64) -> bool {
    let manifests =
        work.status.iter().filter_map(|status| status.resource_status.as_ref()).flat_map(|it| &it.manifests);
    let mut values = manifests.filter_map(|manifest| manifest.status_feedback.as_ref()).flat_map(|it| &it.values);
    values.any(|value| value.name == "ReadyReplicas" && value.field_value.integer == Some(replicas))
}

/// A work of ten manifests, as an application has them.
fn work(index: usize) -> anyhow::Result<ManifestWork> {
    let name = format!("w{index:03}");
    let object = |api_version: &str, kind: &str, name: &str, rest: Value| {
        let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": {
            "namespace": NAMESPACE, "name": name, "labels": { "app": name } } });
        if let (Value::Object(object), Value::Object(rest)) = (&mut object, rest) {
            object.extend(rest);
        }
        object
    };
    let rbac = "rbac.authorization.k8s.io/v1";
    let maps = (0..4).map(|map| {
        let data: Value = (0..10).map(|key| (format!("key-{key}"), json!(format!("value-{key}")))).collect();
        object("v1", "ConfigMap", &format!("{name}-map-{map}"), json!({ "data": data }))
    });
    let rest = [
        object("v1", "ServiceAccount", &name, json!({})),
        object(
            rbac,
            "Role",
            &name,
            json!({ "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"] }] }),
        ),
        object(
            rbac,
            "RoleBinding",
            &name,
            json!({
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
                "subjects": [{ "kind": "ServiceAccount", "namespace": NAMESPACE, "name": name }],
            }),
        ),
        object("v1", "Secret", &name, json!({ "stringData": { "password": "not that secret" } })),
        object("v1", "Service", &name, json!({ "spec": { "selector": { "app": name }, "ports": [{ "port": 80 }] } })),
        object("apps/v1", "Deployment", &name, deployment(&name)),
    ];
    let mut work = objects::work(CLUSTER, &name, maps.chain(rest));
    work.spec.manifest_configs = serde_json::from_value(json!([{
        "resourceIdentifier": { "group": "apps", "resource": "deployments", "namespace": NAMESPACE, "name": name },
        "feedbackRules": [{ "type": "WellKnownStatus" }],
    }]))
    .context("a configuration")?;
    debug_assert_eq!(work.name_any(), name);
    Ok(work)
}

fn deployment(name: &str) -> Value {
    let container = json!({
        "name": "main", "image": "registry.example.com/app:1.2.3", "args": ["--verbose"],
        "env": [{ "name": "MODE", "value": "production" }],
        "resources": { "requests": { "cpu": "100m", "memory": "64Mi" }, "limits": { "memory": "128Mi" } },
        "ports": [{ "containerPort": 8080 }],
    });
    json!({ "spec": {
        "replicas": 2, "selector": { "matchLabels": { "app": name } },
        "template": { "metadata": { "labels": { "app": name } }, "spec": { "serviceAccountName": name, "containers": [container] } },
    } })
}
