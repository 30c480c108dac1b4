//! A managed cluster's agent: it has joined the hub, keeps its lease, and does what works say.

use drover_api::{
    cluster::ManagedCluster,
    names::{CLUSTER_AVAILABLE, CLUSTER_JOINED, CLUSTER_LEASE, HUB_ACCEPTED},
    work::{ManifestResourceMeta, ManifestResourceStatus, ManifestStatus, ManifestWork, ManifestWorkStatus},
};
use futures_util::StreamExt;
use k8s_openapi::{
    api::{
        authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
        coordination::v1::Lease,
    },
    apimachinery::pkg::apis::meta::v1::{Condition, MicroTime},
    jiff::Timestamp,
};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{
    conditions::holds,
    feedback::{Rise, feedback},
    identity::Asked,
    wish::Wish,
};
use crate::{World, objects, wait};

/// The group of those who may bring clusters in.
const BOOTSTRAP_GROUP: &str = "system:bootstrappers:managedcluster";

/// A cluster that asks to be let in: it has stored its ManagedCluster and its signing request, as somebody of the bootstrap group.
pub struct Applicant {
    cluster: String,
    asked: Asked,
}

/// An agent that acts as `system:open-cluster-management:<cluster>:<agent>`, with the permissions that the hub has given it.
pub struct Agent {
    cluster: String,
    client: Client,
}

impl Applicant {
    /// A new cluster that asks to be let in. What `deploy/hub/agents.yaml` says has to be in force.
    pub async fn new(world: &World, cluster: &str) -> Self {
        let bootstrap = world.certified("system:bootstrap:drover", &[BOOTSTRAP_GROUP]).await;
        may(&bootstrap, "create", "cluster.open-cluster-management.io", "managedclusters", None).await;
        may(&bootstrap, "create", "certificates.k8s.io", "certificatesigningrequests", None).await;
        let mut object = objects::cluster(cluster);
        object.spec.hub_accepts_client = false;
        let clusters = Api::<ManagedCluster>::all(bootstrap.clone());
        clusters.create(&PostParams::default(), &object).await.expect("a cluster asks to be let in");
        let asked = Asked::new(world, bootstrap, &Wish::of_cluster(cluster)).await;
        Self { cluster: cluster.to_owned(), asked }
    }

    /// The name of the cluster's signing request.
    #[must_use]
    pub fn request(&self) -> &str {
        self.asked.name()
    }

    /// The cluster's agent, when the cluster has been accepted and the hub has let it in.
    pub async fn join(self, world: &World) -> Agent {
        let clusters = Api::<ManagedCluster>::all(world.client());
        wait::until(&clusters, &self.cluster, "the hub has let it in", |cluster| {
            let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
            conditions.into_iter().any(|condition| condition.type_ == HUB_ACCEPTED && condition.status == "True")
        })
        .await;
        let agent = Agent { client: self.asked.client(world).await, cluster: self.cluster };
        agent.has_access().await;
        agent.report_joined().await;
        agent
    }
}

impl Agent {
    /// A new cluster that an administrator accepts, and its agent. A hub has to be running.
    pub async fn join(world: &World, cluster: &str) -> Self {
        let applicant = Applicant::new(world, cluster).await;
        let accept = Patch::Merge(json!({ "spec": { "hubAcceptsClient": true } }));
        let clusters = Api::<ManagedCluster>::all(world.client());
        clusters.patch(cluster, &PatchParams::default(), &accept).await.expect("a cluster can be accepted");
        applicant.join(world).await
    }

    /// Waits until what the hub has given is in force: a server learns of it a moment after it was written.
    async fn has_access(&self) {
        let own = Some(self.cluster.as_str());
        let (clusters, works) = ("cluster.open-cluster-management.io", "work.open-cluster-management.io");
        may(&self.client, "update", clusters, "managedclusters/status", own).await;
        may(&self.client, "update", "coordination.k8s.io", "leases", own).await;
        may(&self.client, "update", works, "manifestworks/status", own).await;
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
        self.renew_lease_at(Timestamp::now()).await
    }

    /// Renews the cluster's lease, by a clock that shows that time.
    pub async fn renew_lease_at(&self, time: Timestamp) -> Lease {
        let leases = Api::<Lease>::namespaced(self.client(), &self.cluster);
        let mut lease = leases.get(CLUSTER_LEASE).await.expect("the hub has made a lease");
        lease.spec.get_or_insert_default().renew_time = Some(MicroTime(time));
        leases.replace(CLUSTER_LEASE, &PostParams::default(), &lease).await.expect("the lease can be renewed")
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
        let joined = holds(CLUSTER_JOINED, "ManagedClusterJoined", "Managed cluster joined", None);
        self.report(joined).await;
        self.report_available().await;
    }

    /// Reports that the cluster is available.
    pub async fn report_available(&self) {
        self.report(holds(CLUSTER_AVAILABLE, "ManagedClusterAvailable", "Managed cluster is available", None)).await;
    }

    /// Reports one condition of the cluster, beside those of others.
    pub async fn report(&self, condition: Condition) {
        let clusters = Api::<ManagedCluster>::all(self.client());
        loop {
            let mut cluster = clusters.get(&self.cluster).await.expect("an agent reads its own cluster");
            let conditions = &mut cluster.status.get_or_insert_default().conditions;
            conditions.retain(|there| there.type_ != condition.type_);
            conditions.push(condition.clone());
            match clusters.replace_status(&self.cluster, &PostParams::default(), &cluster).await {
                // Somebody else has written meanwhile.
                Err(kube::Error::Api(status)) if status.is_conflict() => {}
                written => return drop(written.expect("an agent reports on its own cluster")),
            }
        }
    }
}

/// Asks for the certificate of a cluster's agent in somebody's name, and returns the name of the request.
pub async fn ask(world: &World, somebody: Client, cluster: &str) -> String {
    Asked::new(world, somebody, &Wish::of_cluster(cluster)).await.name().to_owned()
}

/// Waits until somebody may do something, to one object or in one namespace.
async fn may(client: &Client, verb: &str, group: &str, resource: &str, own: Option<&str>) {
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (resource, None),
    };
    let own = own.map(str::to_owned);
    let attributes = ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource,
        name: own.clone().filter(|_| resource == "managedclusters"),
        namespace: own.filter(|_| resource != "managedclusters"),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
    wait::attempt(&format!("{verb} {resource}"), async || {
        let answer = reviews.create(&PostParams::default(), &review).await.expect("everybody may ask");
        let is_allowed = answer.status.as_ref().is_some_and(|status| status.allowed);
        if is_allowed { Ok(()) } else { Err(format!("not allowed: {:?}", answer.status)) }
    })
    .await;
}

fn is_reported(work: &ManifestWork) -> bool {
    let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions.iter().any(|condition| condition.observed_generation == work.metadata.generation)
}

/// Reports a work as applied and available. It may be gone by now, or have changed, in which case it will be seen again.
async fn report(works: &Api<ManifestWork>, work: &ManifestWork) {
    let patch =
        json!({ "metadata": { "resourceVersion": work.resource_version() }, "status": success(work, Rise::Ready) });
    let _ = works.patch_status(&work.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
}

/// The status of a work that is applied and available, with the feedback that it asks for.
pub(super) fn success(work: &ManifestWork, rise: Rise) -> ManifestWorkStatus {
    let generation = work.metadata.generation;
    let applied = |what| holds("Applied", &format!("AppliedManifest{what}Complete"), "Applied", generation);
    let manifests = work.spec.manifests().iter().zip(0..);
    ManifestWorkStatus {
        conditions: vec![
            applied("Work"),
            holds("Available", "ResourcesAvailable", "All resources are available", generation),
        ],
        resource_status: Some(ManifestResourceStatus {
            manifests: manifests
                .map(|(manifest, ordinal)| ManifestStatus {
                    resource_meta: resource_meta(manifest, ordinal),
                    status_feedback: feedback(work, manifest, rise),
                    conditions: vec![applied("")],
                })
                .collect(),
        }),
    }
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
