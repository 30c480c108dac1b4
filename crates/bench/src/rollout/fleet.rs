//! The clusters of the benchmark, the placement that selects them, and the add-on.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use drover_api::{
    addon::{AddOnDeploymentConfig, AddOnTemplate, ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::{AddOnPlacementScore, ManagedCluster, Placement, PlacementDecision},
    grammar::SpecHash,
    names::{DECISION_GROUP_INDEX_LABEL, DECISION_GROUP_NAME_LABEL, PLACEMENT_LABEL},
    work::ManifestWork,
};
use drover_engine::placement::SCHEDULING_DISABLED_ANNOTATION;
use drover_testkit::objects::Described as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::info;

use super::{
    addon::{CONFIG, Edition, Maker, reference, settings},
    applied,
};
use crate::setup::{self, condition, create, for_each, named, report_cluster};

/// The label of all clusters and namespaces that a benchmark makes.
const LABEL: &str = "drover.dev/bench";
/// How many clusters are in a slice of a decision.
const SLICE: usize = 100;
/// The settings that one cluster has of its own.
const OWN: &str = "own";
/// How many writes the server's rate is taken from, and to how many objects, so that no two that are on their way meet.
const WRITES: u32 = 1000;
const SCORES: u32 = 64;
/// How often it is looked whether something has been written or removed.
const INTERVAL: Duration = Duration::from_millis(100);
/// What takes longer than this will not come.
const PATIENCE: Duration = Duration::from_mins(10);

/// A fleet of so many clusters. All its objects have names that begin with its own.
pub(super) struct Fleet {
    client: Client,
    name: String,
    size: usize,
    maker: Maker,
}

impl Fleet {
    pub(super) fn new(client: Client, size: usize, maker: Maker) -> Self {
        Self { client, name: format!("bench-{size}"), size, maker }
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The name of the add-on, of the placement, and of the namespace that has the placement.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn cluster(&self, index: usize) -> String {
        format!("{}-{index:05}", self.name)
    }

    pub(super) fn clusters(&self) -> impl Iterator<Item = String> {
        (0..self.size).map(|index| self.cluster(index))
    }

    /// Makes all that is there before the add-on.
    pub(super) async fn make(&self) -> anyhow::Result<()> {
        info!("making {} clusters", self.size);
        let hint =
            || format!("`kubectl delete managedclusters,namespaces -l {LABEL}` removes what another run may have left");
        let clusters = Api::<ManagedCluster>::all(self.client());
        let namespaces = Api::<Namespace>::all(self.client());
        create(&namespaces, &named::<Namespace>(&self.name).labelled(LABEL, &self.name)).await.with_context(hint)?;
        for_each(0..self.size, async |index| {
            let name = self.cluster(index);
            create(&namespaces, &named::<Namespace>(&name).labelled(LABEL, &self.name)).await?;
            create(&clusters, &setup::cluster(&name, index).labelled(LABEL, &self.name)).await?;
            report_cluster(&clusters, &name, index).await
        })
        .await
        .with_context(hint)?;
        self.make_placement().await?;
        self.make_configs().await
    }

    /// How many writes a second the server takes, 32 at a time, of a kind with a schema that does not concern add-ons.
    pub(super) async fn rate(&self) -> anyhow::Result<f64> {
        let scores = Api::<AddOnPlacementScore>::namespaced(self.client(), &self.name);
        let name = |index: u32| format!("rate-{}", index % SCORES);
        for index in 0..SCORES {
            create(&scores, &named(&name(index))).await?;
        }
        let begun = Instant::now();
        for_each(0..WRITES, async |index| {
            let status = Patch::Merge(json!({ "status": { "scores": [{ "name": "rate", "value": index % 100 }] } }));
            scores.patch_status(&name(index), &PatchParams::default(), &status).await?;
            Ok(())
        })
        .await?;
        Ok(f64::from(WRITES) / begun.elapsed().as_secs_f64())
    }

    /// The placement, with the decision that a hub would make for it.
    async fn make_placement(&self) -> anyhow::Result<()> {
        let placements = Api::<Placement>::namespaced(self.client(), &self.name);
        let placement = named::<Placement>(&self.name).annotated(SCHEDULING_DISABLED_ANNOTATION, "true");
        create(&placements, &placement).await?;
        let all: Vec<_> = self.clusters().collect();
        let mut slices = Vec::new();
        for (index, clusters) in all.chunks(SLICE).enumerate() {
            let name = format!("{}-decision-{}", self.name, index + 1);
            self.make_decision(&name, clusters).await?;
            slices.push(name);
        }
        let group = json!({ "decisionGroupIndex": 0, "decisions": slices, "clusterCount": self.size });
        let status = json!({ "status": {
            "numberOfSelectedClusters": self.size,
            "decisionGroups": [group],
            "conditions": [condition("PlacementSatisfied", "True"), condition("PlacementMisconfigured", "False")],
        } });
        placements.patch_status(&self.name, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }

    async fn make_decision(&self, name: &str, clusters: &[String]) -> anyhow::Result<()> {
        let slices = Api::<PlacementDecision>::namespaced(self.client(), &self.name);
        let slice = named::<PlacementDecision>(name)
            .labelled(PLACEMENT_LABEL, &self.name)
            .labelled(DECISION_GROUP_INDEX_LABEL, "0")
            .labelled(DECISION_GROUP_NAME_LABEL, "");
        create(&slices, &slice).await?;
        let decisions: Vec<_> =
            clusters.iter().map(|cluster| json!({ "clusterName": cluster, "reason": "" })).collect();
        let status = Patch::Merge(json!({ "status": { "decisions": decisions } }));
        slices.patch_status(name, &PatchParams::default(), &status).await?;
        Ok(())
    }

    async fn make_configs(&self) -> anyhow::Result<()> {
        for template in self.maker.templates(&self.name)? {
            create(&Api::all(self.client()), &template).await?;
        }
        let mut config = named::<AddOnDeploymentConfig>(CONFIG);
        config.spec = serde_json::from_value(self.maker.content(Edition::First))?;
        create(&self.configs(), &config).await
    }

    fn configs(&self) -> Api<AddOnDeploymentConfig> {
        Api::namespaced(self.client(), &self.name)
    }

    /// Makes the add-on, for all clusters.
    pub(super) async fn install(&self, rollout: &Value) -> anyhow::Result<()> {
        create(&Api::all(self.client()), &self.maker.addon(&self.name, rollout)?).await
    }

    /// Changes the content of the configuration, or has the placement name another template.
    pub(super) async fn upgrade(&self, rollout: &Value) -> anyhow::Result<()> {
        let params = PatchParams::default();
        match self.maker {
            Maker::Manager => {
                let patch = Patch::Merge(json!({ "spec": self.maker.content(Edition::Second) }));
                self.configs().patch(CONFIG, &params, &patch).await?;
            }
            Maker::Template => {
                let strategy = self.maker.install_strategy(&self.name, Edition::Second, rollout);
                let patch = Patch::Merge(json!({ "spec": { "installStrategy": strategy } }));
                Api::<ClusterManagementAddOn>::all(self.client()).patch(&self.name, &params, &patch).await?;
            }
        }
        Ok(())
    }

    /// Writes settings that one cluster has of its own, each number another one. The first time, the cluster is told of them.
    pub(super) async fn write_settings(&self, cluster: &str, number: u32) -> anyhow::Result<()> {
        let configs = Api::<AddOnDeploymentConfig>::namespaced(self.client(), cluster);
        let (params, content) = (PatchParams::default(), settings(&(number + 10).to_string()));
        if configs.get_opt(OWN).await?.is_some() {
            configs.patch(OWN, &params, &Patch::Merge(json!({ "spec": content }))).await?;
            return Ok(());
        }
        let mut config = named::<AddOnDeploymentConfig>(OWN);
        config.spec = serde_json::from_value(content)?;
        create(&configs, &config).await?;
        let own = reference::<AddOnDeploymentConfig>(Some(cluster), OWN);
        let patch = Patch::Merge(json!({ "spec": { "configs": [own] } }));
        Api::<ManagedClusterAddOn>::namespaced(self.client(), cluster).patch(&self.name, &params, &patch).await?;
        Ok(())
    }

    /// Writes a hash of the present configuration to where OCM's manager expects it. It takes any text that differs with the content.
    pub(super) async fn write_hash(&self) -> anyhow::Result<()> {
        let generation = self.configs().get(CONFIG).await?.metadata.generation.unwrap_or_default();
        let addons = Api::<ClusterManagementAddOn>::all(self.client());
        let begun = Instant::now();
        loop {
            let mut addon = serde_json::to_value(addons.get(&self.name).await?)?;
            let desired = addon.pointer_mut("/status/installProgressions/0/configReferences/0/desiredConfig");
            if let Some(desired) = desired {
                desired["specHash"] = format!("{generation:064x}").into();
                let patch = json!({
                    "metadata": { "resourceVersion": addon["metadata"]["resourceVersion"] },
                    "status": { "installProgressions": addon["status"]["installProgressions"] },
                });
                match addons.patch_status(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await {
                    // Somebody else has written meanwhile.
                    Err(kube::Error::Api(status)) if status.is_conflict() => {}
                    written => return Ok(written.map(drop)?),
                }
            }
            ensure!(begun.elapsed() < PATIENCE, "the hub does not list the configuration in the status of the add-on");
            sleep(INTERVAL).await;
        }
    }

    /// The hashes of what a cluster runs.
    pub(super) async fn applied(&self, cluster: &str) -> anyhow::Result<Vec<SpecHash>> {
        let addon = Api::<ManagedClusterAddOn>::namespaced(self.client(), cluster).get(&self.name).await?;
        applied(&addon).context("the add-on does not run what it was given any more")
    }

    /// A work of the add-on.
    pub(super) async fn work(&self, cluster: &str) -> anyhow::Result<ManifestWork> {
        let works = Api::<ManifestWork>::namespaced(self.client(), cluster);
        Ok(works.get(&format!("addon-{}-deploy-0", self.name)).await?)
    }

    /// Reports whether a work is available, as its agent would.
    pub(super) async fn report(&self, work: &ManifestWork, is_available: bool) -> anyhow::Result<()> {
        let works = Api::<ManifestWork>::namespaced(self.client(), &work.namespace().unwrap_or_default());
        let mut conditions =
            [condition("Applied", "True"), condition("Available", if is_available { "True" } else { "False" })];
        for condition in &mut conditions {
            condition["observedGeneration"] = work.metadata.generation.into();
        }
        let patch = Patch::Merge(json!({ "status": { "conditions": conditions } }));
        works.patch_status(&work.name_any(), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Removes all that was made, and waits until it is gone.
    pub(super) async fn remove(&self) -> anyhow::Result<()> {
        let (clusters, namespaces) = (Api::<ManagedCluster>::all(self.client()), Api::<Namespace>::all(self.client()));
        let now = DeleteParams::default();
        let addons = Api::<ClusterManagementAddOn>::all(self.client());
        is_removed(addons.delete(&self.name, &now).await)?;
        let templates = Api::<AddOnTemplate>::all(self.client());
        for template in self.maker.templates(&self.name)? {
            is_removed(templates.delete(&template.name_any(), &now).await)?;
        }
        for_each(self.clusters(), async |cluster: String| {
            is_removed(clusters.delete(&cluster, &now).await)?;
            is_removed(namespaces.delete(&cluster, &now).await)
        })
        .await?;
        is_removed(namespaces.delete(&self.name, &now).await)?;
        let left = ListParams::default().labels(&format!("{LABEL}={}", self.name)).limit(1);
        let begun = Instant::now();
        while !clusters.list(&left).await?.items.is_empty() || !namespaces.list(&left).await?.items.is_empty() {
            ensure!(begun.elapsed() < PATIENCE, "clusters or namespaces with {LABEL}={} do not go", self.name);
            sleep(INTERVAL).await;
        }
        Ok(())
    }
}

/// What is not there needs not be removed.
fn is_removed<T>(outcome: kube::Result<T>) -> anyhow::Result<()> {
    match outcome {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        outcome => Ok(outcome.map(drop)?),
    }
}
