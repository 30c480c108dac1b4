//! A hub that does just enough to be measured: every cluster gets everything at once.

use drover_api::{
    addon::{AddOnDeploymentConfig, ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::PlacementDecision,
    names::CONFIG_SPEC_HASH_ANNOTATION,
    work::ManifestWork,
};
use drover_testkit::objects;
use futures_util::{Stream, StreamExt, stream};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::setup::condition;

/// A hub that runs until it is dropped.
pub(super) struct NaiveHub {
    _task: JoinSet<()>,
}

impl NaiveHub {
    pub(super) fn start(client: Client) -> Self {
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut changes = stream::select_all([
                changes::<ClusterManagementAddOn>(&client),
                changes::<AddOnDeploymentConfig>(&client),
                changes::<ManagedClusterAddOn>(&client),
                changes::<ManifestWork>(&client),
            ]);
            while changes.next().await.is_some() {
                // What somebody else has changed meanwhile, or is about to go, comes up again.
                let _ = reconcile(&client).await;
            }
        });
        Self { _task: task }
    }
}

fn changes<K>(client: &Client) -> stream::BoxStream<'static, ()>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let watch: std::pin::Pin<Box<dyn Stream<Item = _> + Send>> =
        watcher(Api::<K>::all(client.clone()), watcher::Config::default()).default_backoff().boxed();
    watch.map(drop).boxed()
}

async fn reconcile(client: &Client) -> kube::Result<()> {
    for owner in Api::<ClusterManagementAddOn>::all(client.clone()).list(&ListParams::default()).await? {
        let name = owner.name_any();
        let config = Api::<AddOnDeploymentConfig>::namespaced(client.clone(), &name).get("config").await?;
        let slices = Api::<PlacementDecision>::namespaced(client.clone(), &name).list(&ListParams::default()).await?;
        for decision in slices.iter().filter_map(|slice| slice.status.as_ref()).flat_map(|status| &status.decisions) {
            bring_up(client, &name, decision.cluster_name.as_str(), &config).await?;
        }
    }
    Ok(())
}

async fn bring_up(client: &Client, name: &str, cluster: &str, config: &AddOnDeploymentConfig) -> kube::Result<()> {
    let addons = Api::<ManagedClusterAddOn>::namespaced(client.clone(), cluster);
    let Some(addon) = addons.get_opt(name).await? else {
        addons.create(&PostParams::default(), &objects::addon_on(cluster, name)).await?;
        return Ok(());
    };
    let works = Api::<ManifestWork>::namespaced(client.clone(), cluster);
    let work = works.get_opt(&format!("addon-{name}-deploy-0")).await?;
    let hash = format!("{:064x}", config.metadata.generation.unwrap_or_default());
    let is_done = work.is_some_and(|work| runs(&work, &hash));
    let (status, reason) = if is_done { ("False", "Completed") } else { ("True", "Progressing") };
    let is_said = |condition: &Value| condition["type"] == "Progressing" && condition["status"] == status;
    let mut object = serde_json::to_value(&addon).unwrap();
    let said = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let given = object.pointer("/status/configReferences/0/desiredConfig/specHash");
    if given == Some(&json!(hash)) && said.iter().any(is_said) {
        return Ok(());
    }
    let desired = json!({ "namespace": name, "name": "config", "specHash": hash });
    let mut reference = json!({
        "group": "addon.open-cluster-management.io",
        "resource": "addondeploymentconfigs",
        "desiredConfig": desired,
    });
    if is_done {
        reference["lastAppliedConfig"] = desired;
    }
    let is_kept = |condition: &Value| condition["type"] != "Progressing" && condition["type"] != "Configured";
    let mut conditions: Vec<_> = said.into_iter().filter(is_kept).collect();
    conditions.push(condition("Configured", "True"));
    conditions.push(condition("Progressing", status));
    conditions.last_mut().unwrap()["reason"] = reason.into();
    object = json!({
        "metadata": { "resourceVersion": addon.resource_version() },
        "status": { "conditions": conditions, "configReferences": [reference] },
    });
    addons.patch_status(name, &PatchParams::default(), &Patch::Merge(object)).await?;
    Ok(())
}

/// Whether a work has this hash and is available.
fn runs(work: &ManifestWork, hash: &str) -> bool {
    let has_hash = work.annotations().get(CONFIG_SPEC_HASH_ANNOTATION).is_some_and(|text| text.contains(hash));
    let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let is_current = |type_: &str| {
        conditions.iter().any(|condition| {
            condition.type_ == type_
                && condition.status == "True"
                && condition.observed_generation == work.metadata.generation
        })
    };
    has_hash && is_current("Applied") && is_current("Available")
}
