//! What it costs a hub to upgrade many clusters.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::Args;
use drover_api::{
    cluster::{ManagedClustersUpgrade, Placement, PlacementDecision},
    drover::ClusterUpgrade,
    names::{PLACEMENT_LABEL, UPGRADE_LABEL, UPGRADE_PART_LABEL},
    work::ManifestWork,
};
use drover_testkit::Server;
use futures_util::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    hub_process::{HubProcess, Rest},
    report::{Report, Table},
    rounded,
    setup::{as_hub, cluster, connect, create, drover, for_each, named, report_cluster},
};

const HOME: &str = "default";
const UPGRADE: &str = "bench";
const FROM: &str = "4.11.30";
const TO: &str = "4.12.0";
/// How many clusters stand in one PlacementDecision.
const PER_SLICE: usize = 100;
/// How many agents answer at a time.
const AGENTS: usize = 64;
/// How often it is looked how far the upgrade is.
const INTERVAL: Duration = Duration::from_millis(250);
/// What the object may have, in KiB.
const BUDGET: usize = 100;

/// What it costs a hub to upgrade many clusters. This program answers as their agents would: each cluster is upgraded as soon as it is asked.
#[derive(Debug, Args)]
pub(crate) struct Upgrade {
    /// How many clusters there are.
    #[arg(long, default_value_t = 10_000)]
    clusters: usize,
    /// How many are upgraded at a time.
    #[arg(long, default_value_t = 500)]
    limit: usize,
    /// The program `drover`; the one beside this program if it is not set.
    #[arg(long, value_name = "FILE")]
    drover: Option<PathBuf>,
}

/// What was found.
struct Findings {
    time: Duration,
    /// The largest that the object was, in bytes.
    largest: usize,
    rest: Rest,
}

impl Upgrade {
    pub(crate) fn measure(&self) -> anyhow::Result<Report> {
        tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(self.run())
    }

    async fn run(&self) -> anyhow::Result<Report> {
        let drover = drover(self.drover.as_deref())?;
        let server = Server::start();
        let client = connect(server.kubeconfig()).await?;
        let kubeconfig = as_hub(&server)?;
        self.make_fleet(&client).await?;
        let agents = tokio::spawn(answer_all(client.clone()));
        let hub = HubProcess::start(&drover, kubeconfig.path(), "upgrade")?;
        let begun = Instant::now();
        let largest = self.upgrade(&client).await?;
        let time = begun.elapsed();
        let rest = hub.rest().await?;
        hub.stop()?;
        agents.abort();
        let records = Api::<ClusterUpgrade>::all(client).list_metadata(&ListParams::default()).await?;
        anyhow::ensure!(records.items.len() == self.clusters, "{} clusters have a record", records.items.len());
        Ok(self.report(&Findings { time, largest, rest }))
    }

    /// Clusters whose agents have joined, and a placement that selects all of them.
    async fn make_fleet(&self, client: &Client) -> anyhow::Result<()> {
        let (clusters, namespaces) = (Api::all(client.clone()), Api::<Namespace>::all(client.clone()));
        let names: Vec<_> = (0..self.clusters).map(|index| format!("cluster-{index:05}")).collect();
        for_each(names.iter().enumerate(), async |(index, name)| {
            create(&namespaces, &named(name)).await?;
            create(&clusters, &cluster(name, index)).await?;
            report_cluster(&clusters, name, index).await
        })
        .await?;
        let placements = Api::<Placement>::namespaced(client.clone(), HOME);
        create(&placements, &named("all")).await?;
        let slices = Api::<PlacementDecision>::namespaced(client.clone(), HOME);
        for_each(names.chunks(PER_SLICE).enumerate(), async |(index, names)| {
            let name = format!("all-decision-{}", index + 1);
            let mut slice: PlacementDecision = named(&name);
            slice.labels_mut().insert(PLACEMENT_LABEL.to_owned(), "all".to_owned());
            create(&slices, &slice).await?;
            let decisions: Vec<_> = names.iter().map(|name| json!({ "clusterName": name, "reason": "" })).collect();
            let status = Patch::Merge(json!({ "status": { "decisions": decisions } }));
            slices.patch_status(&name, &PatchParams::default(), &status).await?;
            Ok(())
        })
        .await?;
        let status = Patch::Merge(json!({ "status": { "numberOfSelectedClusters": names.len(), "conditions": [] } }));
        placements.patch_status("all", &PatchParams::default(), &status).await?;
        Ok(())
    }

    /// Has all clusters upgraded, and returns how large the object was at most.
    async fn upgrade(&self, client: &Client) -> anyhow::Result<usize> {
        let upgrades = Api::<ManagedClustersUpgrade>::namespaced(client.clone(), HOME);
        let spec = json!({ "placement": [{ "namespace": HOME, "name": "all" }], "clusterVersion": { "version": TO },
            "upgradeStrategy": { "maxConcurrency": self.limit } });
        create(&upgrades, &ManagedClustersUpgrade::new(UPGRADE, serde_json::from_value(spec)?)).await?;
        let mut largest = 0;
        loop {
            let upgrade = upgrades.get(UPGRADE).await.context("could not read the upgrade")?;
            largest = largest.max(serde_json::to_vec(&upgrade)?.len());
            let summary = upgrade.status.and_then(|status| status.clusters_summery).unwrap_or_default();
            if usize::try_from(summary.complete) == Ok(self.clusters) {
                return Ok(largest);
            }
            anyhow::ensure!(summary.failed == 0, "{} clusters failed", summary.failed);
            sleep(INTERVAL).await;
        }
    }

    fn report(&self, found: &Findings) -> Report {
        let Self { clusters, limit, .. } = self;
        let mut report = Report::new(
            "upgrade",
            "An upgrade of many clusters",
            &format!(
                "{clusters} clusters are upgraded, {limit} at a time, by a hub that runs the controller of upgrades alone, on a real kube-apiserver. Each cluster is upgraded as \
                 soon as it is asked, so that this is what the hub costs. The ManagedClustersUpgrade is to stay under {BUDGET} KiB, and is to be written at most once a second."
            ),
            &format!("upgrade --clusters {clusters} --limit {limit}"),
        );
        let writes = |what: &str| {
            found.rest.writes.iter().filter(|(sort, _)| sort.contains(what)).map(|(_, count)| count).sum::<u64>()
        };
        let columns = [
            "clusters",
            "time, s",
            "the object at most, KiB",
            "its writes",
            "memory, MB",
            "CPU, s",
            "CPU per cluster, ms",
        ];
        let mut table = Table::new("The upgrade", &columns);
        let per_cluster = |number: f64| number / f64::from(u32::try_from(*clusters).unwrap_or(u32::MAX));
        table.rows.push(vec![
            clusters.to_string(),
            rounded(found.time.as_secs_f64()),
            rounded(f64::from(u32::try_from(found.largest).unwrap_or(u32::MAX)) / 1024.0),
            writes("ManagedClustersUpgrade").to_string(),
            rounded(found.rest.memory_megabytes),
            rounded(found.rest.cpu.as_secs_f64()),
            rounded(per_cluster(found.rest.cpu.as_secs_f64() * 1000.0)),
        ]);
        report.tables.push(table);
        let mut table = Table::new("What the hub writes", &["kind and verb", "writes", "per cluster"]);
        for (sort, count) in &found.rest.writes {
            let count = u32::try_from(*count).unwrap_or(u32::MAX);
            table.rows.push(vec![spoken(sort), count.to_string(), rounded(per_cluster(f64::from(count)))]);
        }
        report.tables.push(table);
        report
    }
}

/// What a metric counts by, as people say it: `kind="X",verb="y"` is X, y.
fn spoken(labels: &str) -> String {
    let values: Vec<_> = labels.split('"').skip(1).step_by(2).collect();
    values.join(", ")
}

/// Says of every work what its cluster's agent would.
async fn answer_all(client: Client) {
    let works = Api::<ManifestWork>::all(client.clone());
    let works = watcher(works, watcher::Config::default().labels(UPGRADE_LABEL)).default_backoff().applied_objects();
    let answers =
        works.filter_map(async |work| work.ok()).map(|work| answer(client.clone(), work)).buffer_unordered(AGENTS);
    pin_mut!(answers);
    while answers.next().await.is_some() {}
}

/// That a work is gone by now is nothing wrong.
async fn answer(client: Client, work: ManifestWork) {
    let conditions = work.status.as_ref().map_or(&[][..], |status| &status.conditions);
    if conditions.iter().any(|condition| condition.observed_generation == work.metadata.generation) {
        return;
    }
    let version = match work.labels().get(UPGRADE_PART_LABEL).map(String::as_str) {
        Some("preflight") => FROM,
        _ => TO,
    };
    let works = Api::<ManifestWork>::namespaced(client, &work.namespace().unwrap_or_default());
    let patch = Patch::Merge(json!({ "status": status(&work, version) }));
    let _ = works.patch_status(&work.name_any(), &PatchParams::default(), &patch).await;
}

fn status(work: &ManifestWork, version: &str) -> Value {
    let text = |name: &str, value: &str| json!({ "name": name, "fieldValue": { "type": "String", "string": value } });
    let condition = |type_: &str| {
        json!({ "type": type_, "status": "True", "reason": "Bench", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": work.metadata.generation })
    };
    let manifest = json!({ "resourceMeta": { "ordinal": 0, "resource": "clusterversions" }, "conditions": [],
        "statusFeedback": { "values": [text("version", version), text("state", "Completed")] } });
    json!({ "conditions": [condition("Applied"), condition("Available")], "resourceStatus": { "manifests": [manifest] } })
}
