//! What a hub does that is started again on a fleet at rest: nothing, one hopes.

use std::{path::PathBuf, time::Instant};

use clap::Args;
use drover_api::cluster::{ManagedClusterSetBinding, ManagedClusterSetBindingSpec, Placement};
use drover_testkit::Server;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    hub_process::{HubProcess, Rest},
    report::{Report, Table},
    rounded,
    server_counts::Requests,
    setup::{as_hub, cluster, connect, create, drover, for_each, named, report_cluster},
};

/// The parts of the hub that run: all of them.
const CONTROLLERS: &str = "*";

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
        let drover = drover(self.drover.as_deref())?;
        let server = Server::start();
        let client = connect(server.kubeconfig()).await?;
        let kubeconfig = as_hub(&server)?;
        self.make_fleet(&client).await?;

        let hub = HubProcess::start(&drover, kubeconfig.path(), CONTROLLERS)?;
        let first = hub.rest().await?;
        hub.stop()?;

        let before = Requests::count(&client).await?;
        let hub = HubProcess::start(&drover, kubeconfig.path(), CONTROLLERS)?;
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
        let clusters = Api::all(client.clone());
        for_each(0..self.clusters, async |index| {
            let name = format!("cluster-{index:04}");
            create(&clusters, &cluster(&name, index)).await?;
            report_cluster(&clusters, &name, index).await
        })
        .await?;
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
