//! Add-ons on a cluster with Drover's own agent: their agents get what they are known by, and what was deployed comes back as the state of a rollout.

use std::{collections::BTreeMap, time::Duration};

use drover_agent::AddOnProof;
use drover_api::{
    addon::{AddOnTemplate, ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::Placement,
    names::{
        AVAILABLE, CERTIFICATE_ROTATED, HOSTING_CLUSTER_ANNOTATION, KEPT_BY_LABEL, LIFECYCLE_ANNOTATION, PROGRESSING,
    },
};
use drover_runtime::clock::after;
use drover_testkit::{World, certificate::Certificate, objects, wait};
use futures_util::StreamExt as _;
use k8s_openapi::api::{
    apps::v1::Deployment,
    authentication::v1::SelfSubjectReview,
    certificates::v1::CertificateSigningRequest,
    coordination::v1::Lease,
    core::v1::{Namespace, Secret},
};
use kube::{
    Api, Client, Config, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{CLUSTER, Pair};
use crate::{
    registration::{Ground, file},
    running::{bound_namespace, change, condition, create},
};

drover_testkit::scenarios! {
    Own {
        a_template_is_placed_applied_proven_and_upgraded,
        the_agent_of_an_add_on_is_known_to_the_hub,
        credentials_that_are_lost_are_got_again_and_go_with_their_add_on,
        the_secret_of_somebody_else_is_left_alone,
        an_add_on_that_is_hosted_has_its_credentials_there,
        credentials_of_a_signer_are_renewed_in_time,
        an_agent_may_prove_itself_by_a_token,
        an_add_on_is_as_well_as_the_lease_of_its_agent,
        requests_that_are_denied_are_told_and_do_not_pile_up,
    }
}

const ADDON: &str = "hello";
const HOME: &str = "addon-home";
const SECRET: &str = "hello-hub-kubeconfig";

impl Pair {
    fn addons(&self) -> Api<ManagedClusterAddOn> {
        Api::namespaced(self.hub.client(), CLUSTER)
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.managed.client(), HOME)
    }

    fn requests(&self) -> Api<CertificateSigningRequest> {
        Api::all(self.hub.client())
    }

    /// Declares an add-on that is made from this template.
    async fn declare(&self, template: Value, installed: Value) {
        create(&Api::all(self.hub.client()), of::<AddOnTemplate>(template)).await;
        let config = json!({ "group": "addon.open-cluster-management.io", "resource": "addontemplates", "defaultConfig": { "name": ADDON } });
        let declared = json!({
            "metadata": { "name": ADDON, "annotations": { LIFECYCLE_ANNOTATION: "addon-manager" } },
            "spec": { "supportedConfigs": [config], "installStrategy": installed },
        });
        create(&Api::all(self.hub.client()), of::<ClusterManagementAddOn>(declared)).await;
    }

    /// Puts the add-on on the cluster by hand.
    async fn install(&self) {
        self.install_as(objects::addon_on(CLUSTER, ADDON)).await;
    }

    async fn install_as(&self, mut addon: ManagedClusterAddOn) {
        addon.spec.install_namespace = Some(HOME.to_owned());
        let namespaces = Api::<Namespace>::all(self.hub.client());
        wait::until(&namespaces, CLUSTER, "the cluster has a namespace", |_| true).await;
        create(&self.addons(), addon).await;
    }

    /// A pair with the add-on, whose agent registers like this.
    async fn with_addon(hub: World, registration: Value) -> Self {
        let pair = Self::new(hub).await;
        pair.managed.namespace_named(HOME).await;
        pair.declare(registering(&registration), json!({ "type": "Manual" })).await;
        pair.install().await;
        pair
    }

    async fn until_addon(&self, what: &str, holds: impl Fn(&ManagedClusterAddOn) -> bool) -> ManagedClusterAddOn {
        wait::until(&self.addons(), ADDON, what, holds).await
    }

    /// Waits until a condition of the add-on has that status and reason.
    async fn until_said(&self, type_: &str, status: &str, reason: &str) -> ManagedClusterAddOn {
        let what = format!("{type_} is {status}/{reason}");
        self.until_addon(&what, |addon| said(addon, type_) == Some((status, reason))).await
    }

    async fn until_kept(&self, name: &str) -> Secret {
        wait::until(&self.secrets(), name, "there are credentials", |_| true).await
    }
}

fn of<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("a valid object")
}

fn said<'a>(addon: &'a ManagedClusterAddOn, type_: &str) -> Option<(&'a str, &'a str)> {
    condition(addon.status.as_ref().map_or(&[], |status| &status.conditions), type_)
}

/// A template whose agent registers like this.
fn registering(registration: &Value) -> Value {
    template(&[objects::config_map(ADDON)], registration)
}

fn template(manifests: &[Value], registration: &Value) -> Value {
    let agent = json!({ "workload": { "manifests": manifests } });
    json!({ "metadata": { "name": ADDON }, "spec": { "addonName": ADDON, "agentSpec": agent, "registration": registration } })
}

/// A template whose agent is of that image, in a namespace that comes with it.
fn deploying(image: &str) -> Value {
    let pod = json!({
        "metadata": { "labels": { "app": ADDON } },
        "spec": { "containers": [{ "name": "agent", "image": image }] },
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": ADDON, "namespace": HOME },
        "spec": { "selector": { "matchLabels": { "app": ADDON } }, "template": pod },
    });
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": HOME } });
    template(&[namespace, deployment], &with_hub())
}

fn with_hub() -> Value {
    json!([{ "type": "KubeClient" }])
}

/// Has every Deployment of the managed cluster run what it says, as its controllers would.
fn run_deployments(managed: Client) -> JoinHandle<()> {
    tokio::spawn(async move {
        let all = Api::<Deployment>::all(managed.clone());
        let mut seen = watcher(all, watcher::Config::default()).default_backoff().applied_objects().boxed();
        while let Some(deployment) = seen.next().await {
            let Ok(deployment) = deployment else { continue };
            let generation = deployment.metadata.generation;
            if deployment.status.as_ref().is_some_and(|status| status.observed_generation == generation) {
                continue;
            }
            let available =
                json!({ "type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "" });
            let status = json!({ "status": { "observedGeneration": generation, "replicas": 1, "updatedReplicas": 1,
                "readyReplicas": 1, "availableReplicas": 1, "conditions": [available] } });
            let namespaced =
                Api::<Deployment>::namespaced(managed.clone(), &deployment.namespace().unwrap_or_default());
            // Somebody may have changed or removed it meanwhile, and is seen then.
            let _ =
                namespaced.patch_status(&deployment.name_any(), &PatchParams::default(), &Patch::Merge(status)).await;
        }
    })
}

async fn a_template_is_placed_applied_proven_and_upgraded(world: World) {
    let pair = Pair::new(world).await;
    let running = run_deployments(pair.managed.client());
    let namespace = bound_namespace(&pair.hub, "global").await;
    let placement = json!({ "metadata": { "name": "all" }, "spec": { "clusterSets": ["global"] } });
    create(&Api::namespaced(pair.hub.client(), &namespace), of::<Placement>(placement)).await;
    let strategy = json!({ "type": "RollingUpdate" });
    let placements = json!([{ "name": "all", "namespace": namespace, "rolloutStrategy": strategy }]);
    pair.declare(deploying("v1"), json!({ "type": "Placements", "placements": placements })).await;

    let installed = pair.until_said(PROGRESSING, "False", "InstallSucceed").await;
    assert_eq!(said(&installed, AVAILABLE), Some(("True", "ProbeAvailable")));
    let deployments = Api::<Deployment>::namespaced(pair.managed.client(), HOME);
    assert_eq!(image(&deployments.get(ADDON).await.expect("it is deployed")), Some("v1"));

    let templates = Api::<AddOnTemplate>::all(pair.hub.client());
    // The namespace is in the same work.
    pair.until_kept(SECRET).await;
    change(&templates, ADDON, deploying("v2")).await;
    pair.until_said(PROGRESSING, "False", "UpgradeSucceed").await;
    assert_eq!(image(&deployments.get(ADDON).await.expect("it is deployed")), Some("v2"));
    let declared = Api::<ClusterManagementAddOn>::all(pair.hub.client());
    wait::until(&declared, ADDON, "the placement says so too", |addon| {
        let progressions = addon.status.iter().flat_map(|status| &status.install_progressions);
        progressions.into_iter().any(|it| condition(&it.conditions, PROGRESSING) == Some(("False", "UpgradeSucceed")))
    })
    .await;
    running.abort();
    pair.end().await;
}

fn image(deployment: &Deployment) -> Option<&str> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    pod.containers.first()?.image.as_deref()
}

/// Who the hub takes somebody for who has mounted this Secret.
async fn who(secret: &Secret) -> String {
    let part = |key: &str| secret.data.as_ref().and_then(|data| data.get(key)).map(|value| value.0.clone());
    let mut kubeconfig: Value =
        serde_json::from_slice(&part("kubeconfig").expect("there is a kubeconfig")).expect("it is JSON");
    let folder = tempfile::tempdir().expect("a folder");
    for key in ["tls.crt", "tls.key", "token"] {
        if let Some(content) = part(key) {
            std::fs::write(folder.path().join(key), content).expect("the folder is writable");
        }
    }
    // What it names stands beside it.
    let user = kubeconfig["users"][0]["user"].as_object_mut().expect("there is a user");
    for (_, name) in user.iter_mut() {
        *name = folder.path().join(name.as_str().expect("a name")).to_str().expect("a path is text").into();
    }
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig.to_string()).expect("it is valid");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("it is whole");
    let reviews = Api::<SelfSubjectReview>::all(Client::try_from(config).expect("a client can be made"));
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.expect("the hub answers");
    review.status.and_then(|status| status.user_info).and_then(|user| user.username).expect("it says who it is")
}

fn keys(secret: &Secret) -> Vec<&str> {
    secret.data.iter().flat_map(BTreeMap::keys).map(String::as_str).collect()
}

async fn the_agent_of_an_add_on_is_known_to_the_hub(world: World) {
    let pair = Pair::with_addon(world, with_hub()).await;
    let secret = pair.until_kept(SECRET).await;
    assert_eq!(keys(&secret), ["cluster-name", "kubeconfig", "tls.crt", "tls.key"]);
    assert_eq!(who(&secret).await, "system:open-cluster-management:cluster:one:addon:hello:agent:hello-agent");
    let told = pair.until_said(CERTIFICATE_ROTATED, "True", "ClientCertificateUpdated").await;
    let status = serde_json::to_value(told.status).expect("JSON");
    assert_eq!(status["kubeClientDriver"], "csr");
    pair.end().await;
}

async fn credentials_that_are_lost_are_got_again_and_go_with_their_add_on(world: World) {
    let mut pair = Pair::with_addon(world, with_hub()).await;
    let first = pair.until_kept(SECRET).await;
    pair.secrets().delete(SECRET, &DeleteParams::default()).await.expect("a Secret can be deleted");
    let is_another = |secret: &Secret| secret.uid() != first.uid();
    let second = wait::until(&pair.secrets(), SECRET, "it is back", is_another).await;
    assert_ne!(second.data, first.data);

    // Who is started again finds it, and asks for nothing, even if another agent had made it.
    pair.until_said(CERTIFICATE_ROTATED, "True", "ClientCertificateUpdated").await;
    pair.stop().await;
    change(&pair.secrets(), SECRET, json!({ "metadata": { "labels": null } })).await;
    let requests = pair.requests();
    let count = async || requests.list(&ListParams::default()).await.expect("they can be listed").items.len();
    let asked = count().await;
    pair.start();
    let is_marked = |secret: &Secret| secret.labels().contains_key(KEPT_BY_LABEL);
    let marked = wait::until(&pair.secrets(), SECRET, "it is the agent's", is_marked).await;
    assert_eq!((marked.uid(), marked.data), (second.uid(), second.data));
    assert_eq!(count().await, asked);

    // What is wanted no more goes, also if that happened while nobody looked. Others' Secrets stay.
    pair.stop().await;
    let other = json!({ "metadata": { "name": "a-secret", "labels": { KEPT_BY_LABEL: "somebody" } } });
    create(&pair.secrets(), of::<Secret>(other)).await;
    pair.addons().delete(ADDON, &DeleteParams::default()).await.expect("an add-on can be deleted");
    wait::gone(&pair.addons(), ADDON).await;
    pair.secrets().get(SECRET).await.expect("nobody has removed it");
    pair.start();
    wait::gone(&pair.secrets(), SECRET).await;

    pair.install().await;
    pair.until_kept(SECRET).await;
    pair.addons().delete(ADDON, &DeleteParams::default()).await.expect("an add-on can be deleted");
    wait::gone(&pair.secrets(), SECRET).await;
    pair.secrets().get("a-secret").await.expect("it is somebody else's");
    pair.end().await;
}

async fn the_secret_of_somebody_else_is_left_alone(world: World) {
    let pair = Pair::new(world).await;
    pair.managed.namespace_named(HOME).await;
    let other = json!({ "metadata": { "name": SECRET }, "stringData": { "kubeconfig": "mine" } });
    let other = create(&pair.secrets(), of::<Secret>(other)).await;
    pair.declare(registering(&with_hub()), json!({ "type": "Manual" })).await;
    pair.install().await;
    let told = pair.until_said(CERTIFICATE_ROTATED, "False", "ClientCertificateUpdateFailed").await;
    assert!(is_told(&told, "the Secret addon-home/hello-hub-kubeconfig is not the add-on's"), "{told:?}");
    assert_eq!(pair.until_kept(SECRET).await.resource_version(), other.resource_version());
    pair.secrets().delete(SECRET, &DeleteParams::default()).await.expect("a Secret can be deleted");
    pair.until_said(CERTIFICATE_ROTATED, "True", "ClientCertificateUpdated").await;
    pair.end().await;
}

async fn an_add_on_that_is_hosted_has_its_credentials_there(world: World) {
    let mut pair = Pair::without_agent(world).await;
    create(&pair.clusters(), objects::cluster(CLUSTER)).await;
    let hosting = pair.hub.another().await;
    hosting.namespace_named(HOME).await;
    pair.management = Some(hosting.client());
    pair.start();
    // Templates can not be hosted, so somebody else manages the add-on and approves what is asked for.
    create(&Api::all(pair.hub.client()), objects::addon(ADDON)).await;
    let mut addon = objects::addon_on(CLUSTER, ADDON);
    addon.annotations_mut().insert(HOSTING_CLUSTER_ANNOTATION.to_owned(), "elsewhere".to_owned());
    pair.install_as(addon).await;
    let registrations = json!([{ "signerName": "kubernetes.io/kube-apiserver-client", "subject": { "user": "u" } }]);
    let status = Patch::Merge(json!({ "status": { "registrations": registrations } }));
    pair.addons().patch_status(ADDON, &PatchParams::default(), &status).await.expect("it has a status");
    let asked = wait::such(&pair.requests(), "", "it is asked for", is_of_addon).await;
    decide(&pair.requests(), &asked.name_any(), "Approved").await;
    let there = Api::<Secret>::namespaced(hosting.client(), HOME);
    wait::until(&there, SECRET, "there are credentials", |_| true).await;
    let own = Api::<Secret>::namespaced(hosting.client(), "open-cluster-management-agent");
    own.get("hub-kubeconfig-secret").await.expect("the agent's own are there too");
    pair.addons().delete(ADDON, &DeleteParams::default()).await.expect("an add-on can be deleted");
    wait::gone(&there, SECRET).await;
    pair.end().await;
}

async fn credentials_of_a_signer_are_renewed_in_time(world: World) {
    let ground = Ground::prepare(world).await;
    ground.store("ca", &[("tls.crt", file("p256.crt")), ("tls.key", file("p256.pkcs8.key"))]).await;
    ground.lend(&["ca"]).await;
    ground.grant_signers("signers", &["example.com/signer"]).await;
    let subject = json!({ "user": "u", "groups": ["g"], "organizationUnit": ["o"] });
    let custom = json!({ "signerName": "example.com/signer", "subject": subject, "signingCA": { "name": "ca" } });
    let pair = Pair::with_addon(ground.world, json!([{ "type": "CustomSigner", "customSigner": custom }])).await;
    let name = "hello-example.com-signer-client-cert";
    let first = pair.until_kept(name).await;
    assert_eq!(keys(&first), ["cluster-name", "tls.crt", "tls.key"]);
    let subject = Certificate::read(&first.data.as_ref().expect("there is data")["tls.crt"].0).subject();
    assert!(["CN=u", "O=g", "OU=o"].iter().all(|part| subject.contains(part)), "{subject}");
    pair.until_said(CERTIFICATE_ROTATED, "True", "ClientCertificateUpdated").await;

    // The hub signs for a day.
    pair.clock.advance(Duration::from_hours(20));
    let is_renewed = |secret: &Secret| secret.data != first.data;
    wait::until(&pair.secrets(), name, "it is renewed", is_renewed).await;
    pair.end().await;
}

async fn an_agent_may_prove_itself_by_a_token(world: World) {
    let mut pair = Pair::without_agent(world).await;
    create(&pair.clusters(), objects::cluster(CLUSTER)).await;
    pair.addon_proof = AddOnProof::Tokens { seconds: 3600 };
    pair.start();
    pair.managed.namespace_named(HOME).await;
    pair.declare(registering(&with_hub()), json!({ "type": "Manual" })).await;
    pair.install().await;
    let secret = pair.until_kept(SECRET).await;
    assert_eq!(keys(&secret), ["cluster-name", "kubeconfig", "token"]);
    assert_eq!(who(&secret).await, "system:serviceaccount:one:hello-agent");
    let told = pair.until_said("TokenRefreshed", "True", "AddonTokenRefreshed").await;
    let status = serde_json::to_value(told.status).expect("JSON");
    assert_eq!(status["kubeClientDriver"], "token");

    // From now on by certificates: the token goes.
    pair.stop().await;
    pair.addon_proof = AddOnProof::Certificates;
    pair.start();
    let by_certificate = |secret: &Secret| keys(secret) == ["cluster-name", "kubeconfig", "tls.crt", "tls.key"];
    let secret = wait::until(&pair.secrets(), SECRET, "it has a certificate", by_certificate).await;
    assert_eq!(who(&secret).await, "system:open-cluster-management:cluster:one:addon:hello:agent:hello-agent");
    pair.end().await;
}

/// Has somebody else, who is not there, manage the add-on.
async fn managed_by_nobody(world: World) -> Pair {
    let pair = Pair::new(world).await;
    create(&Api::all(pair.hub.client()), objects::addon(ADDON)).await;
    pair.install().await;
    pair
}

async fn an_add_on_is_as_well_as_the_lease_of_its_agent(world: World) {
    let pair = managed_by_nobody(world).await;
    pair.managed.namespace_named(HOME).await;
    let status = Patch::Merge(json!({ "status": { "namespace": HOME } }));
    pair.addons().patch_status(ADDON, &PatchParams::default(), &status).await.expect("it has a status");
    pair.until_said(AVAILABLE, "Unknown", "ManagedClusterAddOnLeaseNotFound").await;

    let leases = Api::<Lease>::namespaced(pair.managed.client(), HOME);
    let renewed = |at| json!({ "metadata": { "name": ADDON }, "spec": { "renewTime": k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(at) } });
    let now = pair.clock.clock().now();
    create(&leases, of::<Lease>(renewed(now))).await;
    pair.until_said(AVAILABLE, "True", "ManagedClusterAddOnLeaseUpdated").await;
    pair.clock.advance(Duration::from_mins(5));
    pair.until_said(AVAILABLE, "False", "ManagedClusterAddOnLeaseUpdateStopped").await;
    change(&leases, ADDON, renewed(after(now, Duration::from_mins(5)))).await;
    pair.until_said(AVAILABLE, "True", "ManagedClusterAddOnLeaseUpdated").await;
    leases.delete(ADDON, &DeleteParams::default()).await.expect("a Lease can be deleted");
    pair.until_said(AVAILABLE, "Unknown", "ManagedClusterAddOnLeaseNotFound").await;
    pair.end().await;
}

async fn requests_that_are_denied_are_told_and_do_not_pile_up(world: World) {
    let pair = managed_by_nobody(world).await;
    let registrations = json!([{ "signerName": "example.com/signer", "subject": { "user": "u" } }]);
    let status = Patch::Merge(json!({ "status": { "registrations": registrations } }));
    pair.addons().patch_status(ADDON, &PatchParams::default(), &status).await.expect("it has a status");
    let requests = pair.requests();
    let denying = tokio::spawn(deny_all(requests.clone()));
    pair.until_addon("it is told why", |addon| is_told(addon, "not today")).await;
    pair.later(pair.until_addon("no more are made", |addon| is_told(addon, "approve or delete them"))).await;
    let made = requests.list(&ListParams::default()).await.expect("they can be listed");
    assert_eq!(made.iter().filter(|request| is_of_addon(request)).count(), 10);
    denying.abort();
    pair.end().await;
}

fn is_told(addon: &ManagedClusterAddOn, message: &str) -> bool {
    let conditions = addon.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|said| said.type_ == CERTIFICATE_ROTATED && said.message.contains(message))
}

fn is_of_addon(request: &CertificateSigningRequest) -> bool {
    request.name_any().starts_with("addon-one-hello-")
}

/// Denies every request for the add-on.
async fn deny_all(requests: Api<CertificateSigningRequest>) {
    let mut seen = watcher(requests.clone(), watcher::Config::default()).default_backoff().applied_objects().boxed();
    while let Some(request) = seen.next().await {
        let request = request.expect("requests can be watched");
        if is_of_addon(&request) && request.status.as_ref().is_none_or(|status| status.conditions.is_none()) {
            decide(&requests, &request.name_any(), "Denied").await;
        }
    }
}

/// Decides on a request, as an administrator.
async fn decide(requests: &Api<CertificateSigningRequest>, name: &str, decision: &str) {
    let decided = json!({ "type": decision, "status": "True", "reason": "Scenario", "message": "not today" });
    let decided = Patch::Merge(json!({ "status": { "conditions": [decided] } }));
    let answer = requests.patch_subresource("approval", name, &PatchParams::default(), &decided).await;
    answer.expect("it can be decided on");
}
