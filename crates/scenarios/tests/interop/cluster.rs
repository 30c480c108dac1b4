//! What the scenarios have in common: a hub that lets a cluster in, and a cluster whose workloads get ready.

use std::{fs, path::PathBuf};

use drover_api::{cluster::ManagedCluster, names::CLUSTER_AVAILABLE};
use drover_testkit::{
    World,
    play::{Asked, Wish},
    wait,
};
use futures_util::StreamExt as _;
use k8s_openapi::{api::apps::v1::Deployment, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
    config::{AuthInfo, Kubeconfig},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::program::printed;

/// The name of the cluster.
pub(crate) const CLUSTER: &str = "one";
/// Where the agents of add-ons run, which OCM's operator makes on each cluster.
pub(crate) const ADDONS: &str = "open-cluster-management-agent-addon";
/// Who may bring clusters in.
const BOOTSTRAP: (&str, &str) = ("system:bootstrap:drover", "system:bootstrappers:managedcluster");

/// The kubeconfig with which a cluster asks to be let in.
pub(crate) async fn bootstrap(hub: &World) -> PathBuf {
    Asked::approved(hub, &Wish::to_be(BOOTSTRAP.0, &[BOOTSTRAP.1])).await.kubeconfig(hub).await
}

/// The kubeconfig of a service account.
pub(crate) async fn account(world: &World, namespace: &str, name: &str) -> PathBuf {
    let token = world.kubectl(["create", "token", name, "--namespace", namespace]).await.success();
    let mut kubeconfig = Kubeconfig::read_from(world.kubeconfig()).expect("the server's kubeconfig can be read");
    for user in &mut kubeconfig.auth_infos {
        user.auth_info = Some(AuthInfo { token: Some(token.trim().to_owned().into()), ..AuthInfo::default() });
    }
    let path = world.kubeconfig().with_file_name(format!("{name}.kubeconfig"));
    // JSON is YAML.
    fs::write(&path, serde_json::to_vec(&kubeconfig).expect("a kubeconfig is JSON")).expect("the folder is writable");
    path
}

/// Installs the definitions that OCM's operators install, as `interop crds` prints them.
pub(crate) async fn define(world: &World, args: &[&str]) {
    let definitions = printed(&[&["crds"], args].concat());
    world.kubectl_with_input(["apply", "--server-side", "-f", "-"], &definitions).await.success();
    world.kubectl(["wait", "--for=condition=Established", "crd", "--all"]).await.success();
}

/// Applies objects, as people do.
pub(crate) async fn apply(world: &World, objects: &Value) {
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    let text = serde_json::to_vec(&list).expect("objects are JSON");
    world.kubectl_with_input(["apply", "--server-side", "-f", "-"], &text).await.success();
}

/// A cluster to be managed, with nothing but Kubernetes, where workloads get ready as soon as they are there.
pub(crate) struct Managed {
    pub(crate) world: World,
    workloads: JoinHandle<()>,
}

impl Managed {
    pub(crate) async fn new() -> Self {
        let world = World::kube().await;
        for namespace in ["open-cluster-management-agent", ADDONS] {
            world.namespace_named(namespace).await;
        }
        let workloads = tokio::spawn(make_ready(world.client()));
        Self { world, workloads }
    }

    /// A workload in the namespace of add-ons.
    pub(crate) fn workloads(&self) -> Api<Deployment> {
        Api::namespaced(self.world.client(), ADDONS)
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        self.workloads.abort();
    }
}

/// Plays the controller of Deployments, whose pods are always ready at once.
async fn make_ready(client: Client) {
    let watch = watcher(Api::<Deployment>::all(client.clone()), watcher::Config::default());
    let mut seen = watch.default_backoff().applied_objects().boxed();
    while let Some(found) = seen.next().await {
        let Ok(deployment) = found else { continue };
        let generation = deployment.metadata.generation;
        if deployment.status.as_ref().and_then(|status| status.observed_generation) == generation {
            continue;
        }
        let condition = json!({ "type": "Available", "status": "True", "reason": "MinimumReplicasAvailable" });
        let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let status = json!({
            "observedGeneration": generation, "conditions": [condition], "replicas": wanted,
            "updatedReplicas": wanted, "readyReplicas": wanted, "availableReplicas": wanted,
        });
        let deployments = Api::<Deployment>::namespaced(client.clone(), &deployment.namespace().unwrap_or_default());
        let patch = Patch::Merge(json!({ "status": status }));
        // It may be gone already.
        let _ = deployments.patch_status(&deployment.name_any(), &PatchParams::default(), &patch).await;
    }
}

/// Accepts the cluster that has asked to be let in.
pub(crate) async fn accept(hub: &World) {
    let clusters = Api::<ManagedCluster>::all(hub.client());
    wait::until(&clusters, CLUSTER, "it asks to be let in", |_| true).await;
    hub.kubectl(["patch", "managedcluster", CLUSTER, "--type=merge", r#"--patch={"spec":{"hubAcceptsClient":true}}"#])
        .await
        .success();
}

/// Waits until the cluster is there.
pub(crate) async fn until_available(hub: &World) -> ManagedCluster {
    let clusters = Api::<ManagedCluster>::all(hub.client());
    wait::until(&clusters, CLUSTER, "it is available", |cluster| {
        let conditions = cluster.status.as_ref().map_or(&[][..], |status| &status.conditions);
        says(conditions, CLUSTER_AVAILABLE, "True", "ManagedClusterAvailable")
    })
    .await
}

/// Whether a condition has this status and reason.
pub(crate) fn says(conditions: &[Condition], type_: &str, status: &str, reason: &str) -> bool {
    conditions.iter().any(|said| said.type_ == type_ && said.status == status && said.reason == reason)
}
