//! OCM's agents, and an add-on that is made with OCM's framework, on Drover's hub.

use drover_api::{
    addon::{ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::ManagedCluster,
    names::{AVAILABLE, PROGRESSING},
};
use drover_testkit::{World, certificate::Certificate, wait};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret};
use kube::Api;
use serde_json::{Value, json};

use crate::{
    cluster::{ADDONS, CLUSTER, Managed, accept, account, apply, bootstrap, define, says, until_available},
    program::{Program, repository},
};

drover_testkit::scenarios! {
    Own {
        an_add_on_from_a_template_is_installed_upgraded_and_removed,
        an_add_on_of_the_framework_is_installed_upgraded_and_removed,
    }
}

/// Drover's hub, and a cluster with OCM's agents that it has let in.
struct Site {
    // They end in this order, so that nobody is left without a server.
    _programs: Vec<Program>,
    managed: Managed,
    hub: World,
}

impl Site {
    async fn new(hub: World) -> Self {
        for part in ["deploy/hub", "deploy/policies"] {
            let part = repository().join(part);
            hub.kubectl(["apply", "--server-side", "-f", part.to_str().expect("a path is text")]).await.success();
        }
        let kubeconfig = account(&hub, "open-cluster-management-hub", "drover-hub").await;
        let drover = Program::drover("hub", [flag("kubeconfig", kubeconfig.display())]);

        let managed = Managed::new().await;
        define(&managed.world, &["--managed"]).await;
        let agent = Program::ocm(
            "agent",
            [
                flag("cluster-name", CLUSTER),
                flag("kubeconfig", managed.world.kubeconfig().display()),
                flag("bootstrap-kubeconfig", bootstrap(&hub).await.display()),
                flag("data-dir", "."),
            ],
        );
        accept(&hub).await;
        until_available(&hub).await;
        Self { _programs: vec![agent, drover], managed, hub }
    }

    /// Makes an add-on of these configurations, which is installed on all clusters.
    async fn install(&self, addon: &str, supported: Value) {
        let binding = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding",
            "metadata": { "namespace": "default", "name": "default" }, "spec": { "clusterSet": "default" },
        });
        let placement = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": { "namespace": "default", "name": "all" }, "spec": {},
        });
        let addon = json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
            "metadata": {
                "name": addon, "annotations": { "addon.open-cluster-management.io/lifecycle": "addon-manager" },
            },
            "spec": {
                "supportedConfigs": supported,
                "installStrategy": { "type": "Placements", "placements": [{ "namespace": "default", "name": "all" }] },
            },
        });
        apply(&self.hub, &json!([binding, placement, addon])).await;
    }

    /// Waits until the add-on says so of the cluster, and of the placement that has chosen it.
    async fn reaches(&self, addon: &str, reason: &str) {
        let what = format!("it reaches {reason}");
        let on_cluster = Api::<ManagedClusterAddOn>::namespaced(self.hub.client(), CLUSTER);
        wait::until(&on_cluster, addon, &what, |addon| {
            let conditions = addon.status.as_ref().map_or(&[][..], |status| &status.conditions);
            says(conditions, PROGRESSING, "False", reason)
                && conditions.iter().any(|said| said.type_ == AVAILABLE && said.status == "True")
        })
        .await;
        let everywhere = Api::<ClusterManagementAddOn>::all(self.hub.client());
        wait::until(&everywhere, addon, &what, |addon| {
            let mut placements = addon.status.iter().flat_map(|status| &status.install_progressions);
            placements.any(|placement| says(&placement.conditions, PROGRESSING, "False", reason))
        })
        .await;
    }

    /// Waits until the add-on's agent has got a certificate for that user.
    async fn registers(&self, addon: &str, user: &str) {
        let secrets = Api::<Secret>::namespaced(self.managed.world.client(), ADDONS);
        let certificate = |secret: &Secret| secret.data.as_ref()?.get("tls.crt").cloned();
        let name = format!("{addon}-hub-kubeconfig");
        let secret = wait::until(&secrets, &name, "it has a certificate", |secret| certificate(secret).is_some()).await;
        let subject = Certificate::read(&certificate(&secret).expect("it was waited for").0).subject();
        assert!(subject.contains(&format!("CN={user}")), "{subject}");
        assert!(secret.data.is_some_and(|data| data.contains_key("kubeconfig")));
    }

    /// Waits until the add-on's workload on the cluster is like this.
    async fn runs(&self, workload: &str, what: &str, is_so: impl Fn(&Value) -> bool) {
        let is_so = |deployment: &Deployment| is_so(&serde_json::to_value(deployment).expect("an object is JSON"));
        wait::until(&self.managed.workloads(), workload, what, is_so).await;
    }

    /// Removes the add-on, and then the cluster.
    async fn end(self, addon: &str, workload: &str) {
        self.hub.kubectl(["delete", "clustermanagementaddon", addon]).await.success();
        wait::gone(&self.managed.workloads(), workload).await;
        wait::gone(&Api::<ManagedClusterAddOn>::namespaced(self.hub.client(), CLUSTER), addon).await;
        self.hub.kubectl(["delete", "managedcluster", CLUSTER]).await.success();
        wait::gone(&Api::<ManagedCluster>::all(self.hub.client()), CLUSTER).await;
    }
}

fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}

fn template(image: &str) -> Value {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "hello-agent", "namespace": ADDONS },
        "spec": {
            "selector": { "matchLabels": { "app": "hello-agent" } },
            "template": {
                "metadata": { "labels": { "app": "hello-agent" } },
                "spec": { "containers": [{
                    "name": "agent", "image": image,
                    "args": ["--cluster={{CLUSTER_NAME}}", "--hub-kubeconfig={{HUB_KUBECONFIG}}"],
                }] },
            },
        },
    });
    json!([{
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnTemplate",
        "metadata": { "name": "hello" },
        "spec": {
            "addonName": "hello",
            "agentSpec": { "workload": { "manifests": [deployment] } },
            "registration": [{ "type": "KubeClient", "kubeClient": {} }],
        },
    }])
}

async fn an_add_on_from_a_template_is_installed_upgraded_and_removed(hub: World) {
    let site = Site::new(hub).await;
    apply(&site.hub, &template("hello:v1")).await;
    let group = "addon.open-cluster-management.io";
    let supported = json!([{ "group": group, "resource": "addontemplates", "defaultConfig": { "name": "hello" } }]);
    site.install("hello", supported).await;
    site.reaches("hello", "InstallSucceed").await;
    site.registers("hello", "system:open-cluster-management:cluster:one:addon:hello:agent:").await;

    apply(&site.hub, &template("hello:v2")).await;
    let runs = |image: &'static str| {
        move |deployment: &Value| deployment["spec"]["template"]["spec"]["containers"][0]["image"] == image
    };
    site.runs("hello-agent", "it has the new image", runs("hello:v2")).await;
    site.reaches("hello", "UpgradeSucceed").await;
    site.end("hello", "hello-agent").await;
}

fn settings(node: &str) -> Value {
    json!([{
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnDeploymentConfig",
        "metadata": { "namespace": "default", "name": "helloworld" },
        "spec": { "nodePlacement": { "nodeSelector": { "runs-on": node } } },
    }])
}

async fn an_add_on_of_the_framework_is_installed_upgraded_and_removed(hub: World) {
    let site = Site::new(hub).await;
    let manager = Program::ocm("addon", [flag("kubeconfig", site.hub.kubeconfig().display())]);
    apply(&site.hub, &settings("old")).await;
    let group = "addon.open-cluster-management.io";
    let config = json!({ "namespace": "default", "name": "helloworld" });
    let supported = json!([{ "group": group, "resource": "addondeploymentconfigs", "defaultConfig": config }]);
    site.install("helloworld", supported).await;
    site.reaches("helloworld", "InstallSucceed").await;
    site.registers("helloworld", "system:open-cluster-management:cluster:one:addon:helloworld:agent:agent").await;

    apply(&site.hub, &settings("new")).await;
    site.runs("helloworld-agent", "it is to run elsewhere", |deployment| {
        deployment["spec"]["template"]["spec"]["nodeSelector"]["runs-on"] == "new"
    })
    .await;
    site.reaches("helloworld", "UpgradeSucceed").await;
    site.end("helloworld", "helloworld-agent").await;
    drop(manager);
}
