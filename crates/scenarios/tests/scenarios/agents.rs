//! Drover's own agent: a hub and a managed cluster, each on a server of its own, and the agent between them.

mod addons;
mod bad_input;
mod bounds;
mod deeply_nested;
mod join;
mod killed;
mod outage;
mod several;
mod upgrades;
mod works;

use std::{path::PathBuf, pin::pin, time::Duration};

use drover_agent::{AddOnProof, Agent, Clusters, EVICTION_GRACE, Identity, Options};
use drover_api::{cluster::ManagedCluster, work::ManifestWork};
use drover_hub::Hub;
use drover_runtime::{
    clock::{Clock, ManualClock},
    metrics::Metrics,
};
use drover_testkit::{
    World, objects,
    play::{Asked, Wish},
    wait,
};
use kube::{Api, Client, api::PostParams};
use serde_json::{Value, json};

use crate::running::{as_hub, condition, create, hub_clock, show_what_hubs_say, start_at};

/// The name of the cluster.
const CLUSTER: &str = "one";
/// Who may bring clusters in.
const BOOTSTRAP: (&str, &str) = ("system:bootstrap:drover", "system:bootstrappers:managedcluster");

/// A hub that runs, and a cluster that its agent manages.
struct Pair {
    hub: World,
    managed: World,
    clock: ManualClock,
    running: Hub,
    bootstrap: PathBuf,
    addon_proof: AddOnProof,
    /// For how long the agent asks for certificates.
    expiration_seconds: Option<i32>,
    /// Where the agent has its own objects, if that is not the cluster.
    management: Option<Client>,
    agent: Option<Agent>,
}

impl Pair {
    /// A hub that accepts a cluster, whose agent runs.
    async fn new(hub: World) -> Self {
        let mut pair = Self::without_agent(hub).await;
        create(&pair.clusters(), objects::cluster(CLUSTER)).await;
        pair.start();
        pair
    }

    async fn without_agent(hub: World) -> Self {
        let managed = hub.another().await;
        let clock = hub_clock();
        let running = start_at(as_hub(&hub).await, None, clock.clock()).await;
        let bootstrap = Asked::approved(&hub, &Wish::to_be(BOOTSTRAP.0, &[BOOTSTRAP.1])).await.kubeconfig(&hub).await;
        let addon_proof = AddOnProof::Certificates;
        Self {
            hub,
            managed,
            clock,
            running,
            bootstrap,
            addon_proof,
            expiration_seconds: None,
            management: None,
            agent: None,
        }
    }

    /// Starts the agent.
    fn start(&mut self) {
        self.start_with(self.managed.client(), self.clock.clock());
    }

    fn start_with(&mut self, managed: Client, clock: Clock) {
        show_what_hubs_say();
        let clusters = Clusters { managed, management: self.management.clone() };
        self.agent = Some(Agent::start(clusters, self.options(), clock, Metrics::new()));
    }

    fn options(&self) -> Options {
        let identity = Identity {
            cluster: CLUSTER.into(),
            agent: None,
            namespace: "open-cluster-management-agent".to_owned(),
            secret: "hub-kubeconfig-secret".to_owned(),
            bootstrap: self.bootstrap.clone(),
            addresses: Vec::new(),
            expiration_seconds: self.expiration_seconds,
        };
        Options {
            identity,
            agent_id: None,
            eviction_grace: EVICTION_GRACE,
            raw_json: None,
            addon_proof: self.addon_proof,
        }
    }

    /// Ends the agent.
    async fn stop(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.stop().await;
        }
    }

    /// Waits for something, while time passes: so much of the clock's after each such pause.
    async fn meanwhile<T>(&self, step: Duration, pause: Duration, something: impl Future<Output = T>) -> T {
        let mut something = pin!(something);
        loop {
            tokio::select! {
                done = &mut something => return done,
                () = tokio::time::sleep(pause) => self.clock.advance(step),
            }
        }
    }

    /// Waits for something for which the agent or the hub has to try again.
    async fn later<T>(&self, something: impl Future<Output = T>) -> T {
        self.meanwhile(Duration::from_secs(10), Duration::from_millis(10), something).await
    }

    async fn end(mut self) {
        self.stop().await;
        self.running.stop().await;
    }

    fn clusters(&self) -> Api<ManagedCluster> {
        Api::all(self.hub.client())
    }

    fn works(&self) -> Api<ManifestWork> {
        Api::namespaced(self.hub.client(), CLUSTER)
    }

    async fn until_cluster(&self, what: &str, holds: impl Fn(&ManagedCluster) -> bool) -> ManagedCluster {
        wait::until(&self.clusters(), CLUSTER, what, holds).await
    }

    async fn until_work(&self, name: &str, what: &str, holds: impl Fn(&ManifestWork) -> bool) -> ManifestWork {
        wait::until(&self.works(), name, what, holds).await
    }

    /// Makes a work, when the hub has a namespace for it.
    async fn make_work(&self, name: &str, spec: Value) -> ManifestWork {
        let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(self.hub.client());
        wait::until(&namespaces, CLUSTER, "the cluster has a namespace", |_| true).await;
        create(&self.works(), work(name, &spec)).await
    }

    /// Makes a work with these manifests, and waits until it is applied.
    async fn apply(&self, name: &str, manifests: Value) -> ManifestWork {
        self.make_work(name, json!({ "workload": { "manifests": manifests } })).await;
        self.until_applied(name).await
    }

    async fn until_applied(&self, name: &str) -> ManifestWork {
        self.until_work(name, "it is applied", |work| says(work, "Applied", "True") && says(work, "Available", "True"))
            .await
    }
}

fn work(name: &str, spec: &Value) -> ManifestWork {
    let work = json!({ "metadata": { "name": name }, "spec": spec });
    serde_json::from_value(work).expect("a work")
}

/// Whether a condition of a work has that status, for its present generation.
fn says(work: &ManifestWork, type_: &str, status: &str) -> bool {
    let conditions = work.status.iter().flat_map(|status| &status.conditions);
    let mut current = conditions.filter(|condition| condition.observed_generation == work.metadata.generation);
    current.any(|condition| condition.type_ == type_ && condition.status == status)
}

fn cluster_says(cluster: &ManagedCluster, type_: &str, status: &str, reason: &str) -> bool {
    let conditions = cluster.status.as_ref().map_or(&[][..], |status| &status.conditions);
    condition(conditions, type_) == Some((status, reason))
}

/// What is said of one manifest of a work.
fn manifest_says(work: &ManifestWork, ordinal: usize, type_: &str) -> Option<(String, String, String)> {
    let manifest = work.status.as_ref()?.resource_status.as_ref()?.manifests.get(ordinal)?;
    let said = manifest.conditions.iter().find(|condition| condition.type_ == type_)?;
    Some((said.status.clone(), said.reason.clone(), said.message.clone()))
}

fn config_map(name: &str, data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "default", "name": name }, "data": data })
}

/// Longer than it takes until the hub takes a cluster for silent.
const SILENCE: Duration = Duration::from_mins(6);

/// Something that a scenario makes without caring for the answer.
async fn make(client: &Client, object: Value) {
    let object: kube::api::DynamicObject = serde_json::from_value(object).expect("an object");
    let types = object.types.clone().expect("it has a kind");
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let kind = kube::api::GroupVersionKind::gvk(group, version, &types.kind);
    let (resource, capabilities) = kube::discovery::pinned_kind(client, &kind).await.expect("the kind is served");
    let api = match object.metadata.namespace.as_deref() {
        Some(namespace) if capabilities.scope == kube::discovery::Scope::Namespaced => {
            Api::<kube::api::DynamicObject>::namespaced_with(client.clone(), namespace, &resource)
        }
        _ => Api::all_with(client.clone(), &resource),
    };
    api.create(&PostParams::default(), &object).await.expect("it can be made");
}
