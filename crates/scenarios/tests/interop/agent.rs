//! Drover's agent on a hub that is run by OCM's controllers, with OCM's definitions.

use drover_api::{
    cluster::ManagedCluster,
    names::{CLUSTER_LEASE, CLUSTER_NAME_LABEL, CLUSTER_SET_LABEL, WORK_APPLIED, WORK_AVAILABLE},
    work::ManifestWork,
};
use drover_testkit::{World, wait};
use k8s_openapi::api::{
    apps::v1::Deployment, certificates::v1::CertificateSigningRequest, coordination::v1::Lease, core::v1::ConfigMap,
    core::v1::Namespace,
};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::{
    cluster::{ADDONS, CLUSTER, Managed, accept, apply, bootstrap, define, until_available},
    program::Program,
};

drover_testkit::scenarios! {
    on kube
    Bare { our_agent_joins_their_hub_and_does_its_works }
}

/// OCM's hub, and a cluster with Drover's agent that it has let in.
struct Site {
    // They end in this order, so that nobody is left without a server.
    _programs: Vec<Program>,
    managed: Managed,
    hub: World,
}

impl Site {
    async fn new(hub: World) -> Self {
        define(&hub, &[]).await;
        let ocm = Program::ocm("hub", [format!("--kubeconfig={}", hub.kubeconfig().display())]);
        let managed = Managed::new().await;
        define(&managed.world, &["--managed"]).await;
        apply(&hub, &joining()).await;
        let (kubeconfig, bootstrap) = (managed.world.kubeconfig().display(), bootstrap(&hub).await);
        let agent = Program::drover(
            "agent",
            [
                format!("--cluster-name={CLUSTER}"),
                format!("--kubeconfig={kubeconfig}"),
                format!("--bootstrap-kubeconfig={}", bootstrap.display()),
            ],
        );
        accept(&hub).await;
        let site = Self { _programs: vec![agent, ocm], managed, hub };
        site.approve().await;
        site
    }

    /// Approves what the agent asks for, as an administrator of OCM's hub does for each new cluster.
    async fn approve(&self) {
        let requests = Api::<CertificateSigningRequest>::all(self.hub.client());
        let is_ours = |request: &CertificateSigningRequest| {
            request.labels().get(CLUSTER_NAME_LABEL).is_some_and(|cluster| cluster == CLUSTER)
        };
        let request = wait::such(&requests, "", "the agent asks for a certificate", is_ours).await;
        self.hub.kubectl(["certificate", "approve", &request.name_any()]).await.success();
    }

    fn works(&self) -> Api<ManifestWork> {
        Api::namespaced(self.hub.client(), CLUSTER)
    }

    /// Waits until the work is like this, for its present generation.
    async fn until_work(&self, what: &str, holds: impl Fn(&ManifestWork) -> bool) -> ManifestWork {
        wait::until(&self.works(), "work", what, |work| {
            let conditions = work.status.as_ref().map_or(&[][..], |status| &status.conditions);
            let is_true = |type_: &str| {
                let mut current = conditions.iter().filter(|said| said.observed_generation == work.metadata.generation);
                current.any(|said| said.type_ == type_ && said.status == "True")
            };
            is_true(WORK_APPLIED) && is_true(WORK_AVAILABLE) && holds(work)
        })
        .await
    }
}

/// What lets clusters ask to be let in, which on OCM's hubs the command that joins clusters makes.
fn joining() -> Value {
    let name = "open-cluster-management:bootstrap";
    let (requests, clusters) = ("certificates.k8s.io", "cluster.open-cluster-management.io");
    json!([
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name },
            "rules": [
                { "apiGroups": [requests], "resources": ["certificatesigningrequests"], "verbs": ["create", "get", "list", "watch"] },
                { "apiGroups": [clusters], "resources": ["managedclusters"], "verbs": ["create", "get"] },
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:bootstrappers:managedcluster" }],
        },
    ])
}

fn work(image: &str) -> Value {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": ADDONS, "name": "settings" },
        "data": { "image": image },
    });
    let pod = json!({
        "metadata": { "labels": { "app": "hello" } },
        "spec": { "containers": [{ "name": "hello", "image": image }] },
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "namespace": ADDONS, "name": "hello" },
        "spec": { "replicas": 2, "selector": { "matchLabels": { "app": "hello" } }, "template": pod },
    });
    let feedback = json!({
        "resourceIdentifier": { "group": "apps", "resource": "deployments", "namespace": ADDONS, "name": "hello" },
        "feedbackRules": [{ "type": "WellKnownStatus" }],
    });
    json!([{
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": { "namespace": CLUSTER, "name": "work" },
        "spec": { "workload": { "manifests": [map, deployment] }, "manifestConfigs": [feedback] },
    }])
}

/// The number that is fed back of the workload under this name.
fn fed_back(work: &ManifestWork, name: &str) -> Option<i64> {
    let work = serde_json::to_value(work).expect("an object is JSON");
    let values = work["status"]["resourceStatus"]["manifests"][1]["statusFeedback"]["values"].as_array()?.clone();
    values.iter().find(|value| value["name"] == name)?["fieldValue"]["integer"].as_i64()
}

async fn our_agent_joins_their_hub_and_does_its_works(hub: World) {
    let site = Site::new(hub).await;
    let joined = until_available(&site.hub).await;
    assert!(joined.status.is_some_and(|status| status.version.is_some()), "it tells of its cluster");
    let namespaces = Api::<Namespace>::all(site.hub.client());
    wait::until(&namespaces, CLUSTER, "OCM's hub has made a namespace", |_| true).await;

    // What OCM's webhook would set, and a lease that is renewed often enough to be watched.
    let patch =
        json!({ "metadata": { "labels": { CLUSTER_SET_LABEL: "default" } }, "spec": { "leaseDurationSeconds": 1 } });
    let patch = format!("--patch={patch}");
    site.hub.kubectl(["patch", "managedcluster", CLUSTER, "--type=merge", &patch]).await.success();
    let leases = Api::<Lease>::namespaced(site.hub.client(), CLUSTER);
    let renewed = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.renew_time.clone());
    let first = wait::until(&leases, CLUSTER_LEASE, "it is renewed", |lease| renewed(lease).is_some()).await;
    wait::until(&leases, CLUSTER_LEASE, "it is renewed again", |lease| renewed(lease) > renewed(&first)).await;

    apply(&site.hub, &work("hello:v1")).await;
    site.until_work("it is ready", |work| fed_back(work, "ReadyReplicas") == Some(2)).await;
    apply(&site.hub, &work("hello:v2")).await;
    site.until_work("it is ready again", |work| fed_back(work, "AvailableReplicas") == Some(2)).await;
    let maps = Api::<ConfigMap>::namespaced(site.managed.world.client(), ADDONS);
    let map = maps.get("settings").await.expect("it is applied");
    assert_eq!(map.data.unwrap_or_default()["image"], "hello:v2");

    site.hub.kubectl(["delete", "manifestwork", "--namespace", CLUSTER, "work"]).await.success();
    wait::gone::<Deployment>(&site.managed.workloads(), "hello").await;
    wait::gone(&maps, "settings").await;
    site.hub.kubectl(["delete", "managedcluster", CLUSTER]).await.success();
    wait::gone(&Api::<ManagedCluster>::all(site.hub.client()), CLUSTER).await;
}
