//! Upgrades of a cluster by its own agent: a ClusterVersion on its server, and an operator behind it that does what it says.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use drover_api::{
    cluster::{ManagedClusterSetBinding, ManagedClustersUpgrade},
    drover::ClusterUpgrade,
    work::ManifestWork,
};
use drover_engine::upgrade::naming::part_name;
use drover_testkit::{World, objects, wait};
use futures_util::StreamExt as _;
use k8s_openapi::{
    api::{core::v1::ConfigMap, rbac::v1::ClusterRole},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{CLUSTER, Pair};
use crate::running::{condition, create};

drover_testkit::scenarios! {
    Own {
        a_cluster_is_upgraded_by_its_agent_and_nothing_is_left_behind,
        a_cluster_version_stays_when_its_upgrade_and_all_its_works_are_deleted,
    }
}

const UPGRADE: &str = "to-4-12";
const HOME: &str = "default";

/// A ClusterVersion, with an operator that brings the cluster to what it says.
struct Platform {
    versions: Api<DynamicObject>,
    /// Whether the operator comes to an end.
    comes_to_an_end: Arc<AtomicBool>,
    operator: JoinHandle<()>,
}

impl Platform {
    async fn on(managed: &World) -> Self {
        let definition = serde_json::from_value(definition()).expect("a definition");
        let definitions = Api::<CustomResourceDefinition>::all(managed.client());
        create(&definitions, definition).await;
        let is_served = |definition: &CustomResourceDefinition| {
            let conditions = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
            conditions.into_iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
        };
        wait::until(&definitions, "clusterversions.config.openshift.io", "it is served", is_served).await;
        let kind = GroupVersionKind::gvk("config.openshift.io", "v1", "ClusterVersion");
        let versions = Api::all_with(managed.client(), &ApiResource::from_gvk(&kind));
        wait::attempt("a ClusterVersion can be made", async || {
            let spec = json!({ "clusterID": "94e170c1-7a3c-4ae1-a85d-8bd904ad783f", "channel": "stable-4.11" });
            let object = json!({ "apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
                "metadata": { "name": "version" }, "spec": spec });
            let object: DynamicObject = serde_json::from_value(object).expect("an object");
            versions.create(&kube::api::PostParams::default(), &object).await.map_err(|error| error.to_string())
        })
        .await;
        let comes_to_an_end = Arc::new(AtomicBool::new(true));
        report(&versions, &["4.11.30"], "Completed").await;
        let operator = tokio::spawn(operate(versions.clone(), Arc::clone(&comes_to_an_end)));
        Self { versions, comes_to_an_end, operator }
    }

    async fn spec(&self) -> Value {
        self.versions.get("version").await.expect("it is there").data["spec"].clone()
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        self.operator.abort();
    }
}

fn definition() -> Value {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let update = json!({ "type": "object", "properties": {
        "version": { "type": "string" }, "image": { "type": "string" }, "force": { "type": "boolean" } } });
    let spec = json!({ "type": "object", "required": ["clusterID"], "properties": {
        "clusterID": { "type": "string" }, "channel": { "type": "string" }, "upstream": { "type": "string" }, "desiredUpdate": update } });
    let version = json!({ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec, "status": open } } } });
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "clusterversions.config.openshift.io" },
        "spec": { "group": "config.openshift.io", "scope": "Cluster", "versions": [version],
            "names": { "plural": "clusterversions", "singular": "clusterversion", "kind": "ClusterVersion", "listKind": "ClusterVersionList" } } })
}

async fn report(versions: &Api<DynamicObject>, history: &[&str], state: &str) {
    let entry = |(index, version): (usize, &&str)| json!({ "version": version, "state": if index == 0 { state } else { "Completed" }, "verified": true });
    let history: Vec<_> = history.iter().enumerate().map(entry).collect();
    let desired = json!({ "version": history[0]["version"] });
    let message = format!("{state}: {}", history[0]["version"].as_str().unwrap_or_default());
    let progressing = json!({ "type": "Progressing", "status": "True", "message": message });
    let status = json!({ "status": { "history": history, "desired": desired, "conditions": [progressing] } });
    versions.patch_status("version", &PatchParams::default(), &Patch::Merge(status)).await.expect("it has a status");
}

/// Brings the cluster to what its ClusterVersion says: it is on its way first, and then there.
async fn operate(versions: Api<DynamicObject>, comes_to_an_end: Arc<AtomicBool>) {
    let mut seen = watcher(versions.clone(), watcher::Config::default()).default_backoff().applied_objects().boxed();
    while let Some(Ok(version)) = seen.next().await {
        let Some(wanted) = version.data["spec"]["desiredUpdate"]["version"].as_str() else { continue };
        let at = &version.data["status"]["history"][0];
        if at["version"].as_str() != Some(wanted) {
            report(&versions, &[wanted, "4.11.30"], "Partial").await;
        } else if at["state"] == "Partial" && comes_to_an_end.load(Ordering::Relaxed) {
            report(&versions, &[wanted, "4.11.30"], "Completed").await;
        }
    }
}

/// Has the hub upgrade the cluster, with actions before and after.
async fn upgrade(pair: &Pair) -> Api<ManagedClustersUpgrade> {
    let binding = serde_json::from_value(json!({ "clusterSet": "default" })).expect("a binding");
    create(&Api::namespaced(pair.hub.client(), HOME), ManagedClusterSetBinding::new("default", binding)).await;
    let action = |name: &str| json!({ "manifestWork": { "workload": { "manifests": [objects::config_map(name)] } } });
    let spec = json!({
        "clusterSelector": { "matchExpressions": [{ "key": "name", "operator": "In", "values": [CLUSTER] }] },
        "clusterVersion": { "version": "4.12.0", "channel": "stable-4.12" },
        "preUpgradeAction": action("backup"),
        "postUpgradeAction": action("check"),
    });
    let upgrades = Api::namespaced(pair.hub.client(), HOME);
    create(&upgrades, ManagedClustersUpgrade::new(UPGRADE, serde_json::from_value(spec).expect("an upgrade"))).await;
    upgrades
}

/// Waits until nothing is left of the upgrade but what it has brought about.
async fn is_clean(pair: &Pair) {
    wait::attempt("the works are gone", async || {
        pair.clock.advance(Duration::from_secs(1));
        let works = Api::<ManifestWork>::namespaced(pair.hub.client(), CLUSTER);
        let works = works.list(&ListParams::default()).await.expect("works can be listed");
        if works.items.is_empty() {
            Ok(())
        } else {
            Err(format!("{:?}", works.items.iter().map(kube::ResourceExt::name_any).collect::<Vec<_>>()))
        }
    })
    .await;
    let roles = Api::<ClusterRole>::all(pair.managed.client());
    let maps = Api::<ConfigMap>::namespaced(pair.managed.client(), "default");
    for role in ["drover-cluster-version", "drover-cluster-version-reader"] {
        wait::gone(&roles, role).await;
    }
    for map in ["backup", "check"] {
        wait::gone(&maps, map).await;
    }
}

async fn a_cluster_is_upgraded_by_its_agent_and_nothing_is_left_behind(world: World) {
    let pair = Pair::new(world).await;
    let platform = Platform::on(&pair.managed).await;
    let upgrades = upgrade(&pair).await;
    let records = Api::<ClusterUpgrade>::namespaced(pair.hub.client(), CLUSTER);
    let is_done = |record: &ClusterUpgrade| {
        record.status.as_ref().is_some_and(|status| status.reason.as_deref() == Some("Upgraded"))
    };
    let name = part_name(HOME, UPGRADE);
    let record = pair.later(wait::until(&records, &name, "the cluster is upgraded", is_done)).await;
    let status = record.status.expect("it was waited for");
    assert_eq!((status.from_version.as_deref(), status.current_version.as_deref()), (Some("4.11.30"), Some("4.12.0")));
    assert!(status.pre_action.is_some() && status.post_action.is_some() && status.delivered.is_some());
    let spec = json!({ "clusterID": "94e170c1-7a3c-4ae1-a85d-8bd904ad783f", "channel": "stable-4.12", "desiredUpdate": { "version": "4.12.0" } });
    assert_eq!(platform.spec().await, spec, "only what was asked for is changed");
    let is_complete = |upgrade: &ManagedClustersUpgrade| {
        let conditions = upgrade.status.as_ref().map_or(&[][..], |status| &status.conditions);
        condition(conditions, "Complete") == Some(("True", "ManagedClustersUpgradeComplete"))
    };
    pair.later(wait::until(&upgrades, UPGRADE, "it is complete", is_complete)).await;
    is_clean(&pair).await;
    assert_eq!(platform.spec().await, spec, "it stays when the works are gone");
    pair.end().await;
}

async fn a_cluster_version_stays_when_its_upgrade_and_all_its_works_are_deleted(world: World) {
    let pair = Pair::new(world).await;
    let platform = Platform::on(&pair.managed).await;
    platform.comes_to_an_end.store(false, Ordering::Relaxed);
    let upgrades = upgrade(&pair).await;
    let records = Api::<ClusterUpgrade>::namespaced(pair.hub.client(), CLUSTER);
    let is_under_way = |record: &ClusterUpgrade| {
        let status = record.status.clone().unwrap_or_default();
        status.message.unwrap_or_default().contains("Partial: 4.12.0")
    };
    pair.later(wait::until(&records, &part_name(HOME, UPGRADE), "it is under way", is_under_way)).await;
    let before = platform.versions.get("version").await.expect("it is there");

    upgrades.delete(UPGRADE, &DeleteParams::default()).await.expect("it can be deleted");
    pair.later(wait::gone(&upgrades, UPGRADE)).await;
    is_clean(&pair).await;
    let after = platform.versions.get("version").await.expect("it is still there");
    assert_eq!(
        (after.uid(), &after.data["spec"], &after.data["status"]),
        (before.uid(), &before.data["spec"], &before.data["status"])
    );
    assert_eq!(after.owner_references(), [], "it is nobody's");
    pair.end().await;
}
