//! A managed cluster's agent: it has joined the hub, keeps its lease, and does what works say.

use drover_api::{
    cluster::ManagedCluster,
    names::CLUSTER_LEASE,
    work::{ManifestResourceMeta, ManifestResourceStatus, ManifestStatus, ManifestWork, ManifestWorkStatus},
};
use futures_util::StreamExt;
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        rbac::v1::Subject,
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{conditions::holds, identity};
use crate::{World, objects};

/// An agent that acts as `system:open-cluster-management:<cluster>:<agent>`, with the permissions that OCM's hub
/// gives an agent: its own cluster, and what is in its cluster's namespace.
pub struct Agent {
    cluster: String,
    client: Client,
}

impl Agent {
    /// A new cluster, accepted by the hub, and its agent.
    pub async fn join(world: &World, cluster: &str) -> Self {
        let group = format!("system:open-cluster-management:{cluster}");
        let clusters = Api::<ManagedCluster>::all(world.client());
        clusters.create(&PostParams::default(), &objects::cluster(cluster)).await.expect("a cluster can be made");
        world.namespace_named(cluster).await;
        permit(world, cluster, &group).await;
        let groups = [group.as_str(), "system:open-cluster-management:managed-clusters"];
        let client = identity::by_certificate(world, &format!("{group}:agent"), &groups).await;
        let agent = Self { cluster: cluster.to_owned(), client };
        agent.report_joined().await;
        agent
    }

    /// The agent's own client.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The works of the agent's cluster.
    #[must_use]
    pub fn works(&self) -> Api<ManifestWork> {
        Api::namespaced(self.client(), &self.cluster)
    }

    /// Renews the cluster's lease, so that the hub takes it for alive.
    pub async fn renew_lease(&self) -> Lease {
        let leases = Api::<Lease>::namespaced(self.client(), &self.cluster);
        let spec = LeaseSpec { renew_time: Some(MicroTime(Timestamp::now())), ..LeaseSpec::default() };
        let patch = json!({ "spec": spec });
        leases
            .patch(CLUSTER_LEASE, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("the lease can be renewed")
    }

    /// From now on, reports every work as applied and available as soon as it sees it.
    #[must_use]
    pub fn obey(&self) -> JoinHandle<()> {
        let works = self.works();
        tokio::spawn(async move {
            let mut seen =
                watcher(works.clone(), watcher::Config::default()).default_backoff().applied_objects().boxed();
            while let Some(work) = seen.next().await {
                // A watch that breaks is begun again.
                if let Ok(work) = work
                    && !is_reported(&work)
                {
                    report(&works, &work).await;
                }
            }
        })
    }

    async fn report_joined(&self) {
        let joined = holds("ManagedClusterJoined", "ManagedClusterJoined", "Managed cluster joined", None);
        let available =
            holds("ManagedClusterConditionAvailable", "ManagedClusterAvailable", "Managed cluster is available", None);
        let status = json!({ "status": { "conditions": [joined, available] } });
        let clusters = Api::<ManagedCluster>::all(self.client());
        clusters
            .patch_status(&self.cluster, &PatchParams::default(), &Patch::Merge(status))
            .await
            .expect("an agent reports on its own cluster");
    }
}

/// Gives the agents of a cluster what OCM's hub gives them, and a lease to renew.
async fn permit(world: &World, cluster: &str, group: &str) {
    let agents = || Subject {
        kind: "Group".to_owned(),
        name: group.to_owned(),
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        ..Subject::default()
    };
    let (clusters, works, addons) =
        ("cluster.open-cluster-management.io", "work.open-cluster-management.io", "addon.open-cluster-management.io");
    let read = ["get", "list", "watch"];
    let mut own_cluster = identity::rule(clusters, &["managedclusters"], &["get", "list", "watch", "update"]);
    let mut own_status = identity::rule(clusters, &["managedclusters/status"], &["patch", "update"]);
    own_cluster.resource_names = Some(vec![cluster.to_owned()]);
    own_status.resource_names = Some(vec![cluster.to_owned()]);
    let name = format!("open-cluster-management:managedcluster:{cluster}");
    identity::allow_everywhere(world, agents(), &name, vec![own_cluster, own_status]).await;
    let rules = vec![
        identity::rule("coordination.k8s.io", &["leases"], &["get", "list", "watch", "update", "patch"]),
        identity::rule(addons, &["managedclusteraddons"], &read),
        identity::rule(addons, &["managedclusteraddons/status"], &["patch", "update"]),
        identity::rule(works, &["manifestworks"], &["get", "list", "watch", "update", "patch"]),
        identity::rule(works, &["manifestworks/status"], &["patch", "update"]),
        identity::rule("", &["events"], &["create", "patch"]),
    ];
    identity::allow_in(world, cluster, agents(), &name, rules).await;
    let lease = Lease {
        metadata: kube::api::ObjectMeta { name: Some(CLUSTER_LEASE.to_owned()), ..Default::default() },
        spec: None,
    };
    let leases = Api::<Lease>::namespaced(world.client(), cluster);
    leases.create(&PostParams::default(), &lease).await.expect("a lease can be made");
}

fn is_reported(work: &ManifestWork) -> bool {
    let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions.iter().any(|condition| condition.observed_generation == work.metadata.generation)
}

/// Reports a work as applied and available. It may be gone by now, or have changed, in which case it will be seen again.
async fn report(works: &Api<ManifestWork>, work: &ManifestWork) {
    let generation = work.metadata.generation;
    let applied = |what| holds("Applied", &format!("AppliedManifest{what}Complete"), "Applied", generation);
    let manifests = work.spec.manifests().iter().zip(0..);
    let status = ManifestWorkStatus {
        conditions: vec![
            applied("Work"),
            holds("Available", "ResourcesAvailable", "All resources are available", generation),
        ],
        resource_status: Some(ManifestResourceStatus {
            manifests: manifests
                .map(|(manifest, ordinal)| ManifestStatus {
                    resource_meta: resource_meta(manifest, ordinal),
                    status_feedback: None,
                    conditions: vec![applied("")],
                })
                .collect(),
        }),
    };
    let patch = json!({ "metadata": { "resourceVersion": work.resource_version() }, "status": status });
    let _ = works.patch_status(&work.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
}

fn resource_meta(manifest: &Value, ordinal: i32) -> ManifestResourceMeta {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (group, version) = match manifest["apiVersion"].as_str().unwrap_or_default().split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), manifest["apiVersion"].as_str().unwrap_or_default().to_owned()),
    };
    ManifestResourceMeta {
        ordinal,
        group: Some(group),
        version: Some(version),
        kind: text(&manifest["kind"]),
        resource: None,
        name: text(&manifest["metadata"]["name"]),
        namespace: text(&manifest["metadata"]["namespace"]),
    }
}
