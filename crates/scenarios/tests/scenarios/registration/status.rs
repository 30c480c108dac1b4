//! How an add-on's agent is told to register: in the shapes of both versions, whichever of them the agent speaks.

use drover_api::names::TOKEN_INFRASTRUCTURE_READY;
use drover_testkit::{World, wait};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::{ConfigMap, ServiceAccount},
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
};
use serde_json::{Value, json};

use super::{Ground, Site, allowed, forbidden};

drover_testkit::scenarios! {
    Own {
        clients_of_both_versions_read_how_to_register,
        an_agent_that_uses_tokens_keeps_them_in_either_version,
    }
}

const VERSIONS: [&str; 2] = ["v1alpha1", "v1beta1"];
const CLIENTS: &str = "kubernetes.io/kube-apiserver-client";
const SIGNER: &str = "example.com/signer-name";

/// The add-ons of a cluster, as a client of one version sees them.
fn addons(client: Client, version: &str, cluster: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("addon.open-cluster-management.io", version, "ManagedClusterAddOn");
    Api::namespaced_with(client, cluster, &ApiResource::from_gvk(&kind))
}

/// The status of the add-on on a cluster, as a client of one version reads it.
async fn status(site: &Site, version: &str, cluster: &str) -> Value {
    let addon = addons(site.client(), version, cluster).get("hello").await.expect("the add-on is there");
    addon.data["status"].clone()
}

/// As whom the agent acts with a certificate.
fn default(cluster: &str) -> Value {
    let of = format!("system:open-cluster-management:cluster:{cluster}:addon:hello");
    json!({ "user": format!("{of}:agent:hello-agent"), "groups": [of, "system:open-cluster-management:addon:hello"] })
}

/// As whom it acts with a token, as it says itself.
fn account(cluster: &str) -> Value {
    json!({ "user": format!("system:serviceaccount:{cluster}:hello-agent"), "groups": ["system:serviceaccounts"] })
}

fn registration() -> Value {
    let subject = json!({ "user": "user1", "groups": ["g1"], "organizationUnit": ["o1"] });
    let permission = json!({ "type": "CurrentCluster", "currentCluster": { "clusterRoleName": "cm-admin" } });
    json!([
        { "type": "KubeClient", "kubeClient": { "hubPermissions": [permission] } },
        { "type": "CustomSigner", "customSigner": { "signerName": SIGNER, "subject": subject,
            "signingCA": { "name": "ca-secret" } } },
    ])
}

/// A hub with the add-on on two clusters.
async fn site(world: World) -> (Site, [Client; 2]) {
    let ground = Ground::prepare(world).await;
    ground.world.namespace_named("open-cluster-management").await;
    ground.apply(&["roles.yaml"]).await;
    ground.grant_as_in_the_example().await;
    let site = ground.start().await;
    let agents = [site.join("c1").await.client(), site.join("c10").await.client()];
    site.deploy("hello", registration(), &["c1", "c10"]).await;
    for cluster in ["c1", "c10"] {
        site.registrations(cluster, "hello").await;
    }
    (site, agents)
}

async fn clients_of_both_versions_read_how_to_register(world: World) {
    let (site, _) = site(world).await;

    let custom = json!({ "user": "user1", "groups": ["g1"], "organizationUnit": ["o1"], "organizationUnits": ["o1"] });
    for version in VERSIONS {
        let expected = json!([
            { "signerName": CLIENTS, "subject": default("c1"),
              "type": "kubeClient", "kubeClient": { "subject": default("c1") } },
            { "signerName": SIGNER, "subject": custom,
              "type": "customSigner", "customSigner": { "signerName": SIGNER, "subject": custom } },
        ]);
        assert_eq!(status(&site, version, "c1").await["registrations"], expected, "{version}");
    }
    site.hub.stop().await;
}

/// Writes the status of the add-on on a cluster, as an agent of one version: it knows no other fields, and loses them.
async fn write(client: &Client, version: &str, cluster: &str, change: impl Fn(&mut Value)) {
    let addons = addons(client.clone(), version, cluster);
    loop {
        let mut addon = addons.get("hello").await.expect("an agent reads its add-ons");
        change(&mut addon.data["status"]);
        match addons.replace_status("hello", &PostParams::default(), &addon).await {
            // Somebody else has written meanwhile.
            Err(kube::Error::Api(status)) if status.is_conflict() => {}
            written => return drop(written.expect("an agent writes the status of its add-ons")),
        }
    }
}

async fn an_agent_that_uses_tokens_keeps_them_in_either_version(world: World) {
    let (site, [one, ten]) = site(world).await;

    write(&one, "v1beta1", "c1", |status| {
        for registration in status["registrations"].as_array_mut().expect("a list") {
            let fields = registration.as_object_mut().expect("a registration");
            fields.retain(|field, _| ["type", "kubeClient", "customSigner"].contains(&field.as_str()));
        }
        status["registrations"][0]["kubeClient"] = json!({ "driver": "token", "subject": account("c1") });
    })
    .await;
    write(&ten, "v1alpha1", "c10", |status| {
        for registration in status["registrations"].as_array_mut().expect("a list") {
            let fields = registration.as_object_mut().expect("a registration");
            fields.retain(|field, _| ["signerName", "subject"].contains(&field.as_str()));
        }
        status["registrations"][0]["subject"] = account("c10");
        status["kubeClientDriver"] = json!("token");
    })
    .await;

    for (cluster, driver) in [("c1", json!({ "driver": "token" })), ("c10", json!({}))] {
        let ready = (TOKEN_INFRASTRUCTURE_READY, "True", "TokenInfrastructureReady");
        site.says(cluster, "hello", ready, "").await;
        let mut client = json!({ "subject": account(cluster) });
        client.as_object_mut().expect("a map").extend(driver.as_object().expect("a map").clone());
        let expected =
            json!({ "signerName": CLIENTS, "subject": account(cluster), "type": "kubeClient", "kubeClient": client });
        wait::until(&addons(site.client(), "v1beta1", cluster), "hello", "both shapes are filled", |addon| {
            addon.data["status"]["registrations"][0] == expected
        })
        .await;
        let read = status(&site, "v1alpha1", cluster).await;
        assert_eq!(read["registrations"][0], expected, "{cluster}");
        assert_eq!(read["registrations"].as_array().map(Vec::len), Some(2), "{cluster}");
    }
    assert_eq!(status(&site, "v1alpha1", "c10").await["kubeClientDriver"], "token");
    has_its_role_by_token(&site, &one).await;
    site.hub.stop().await;
}

/// Tries what the add-on's agent on c1 may do with a token that the cluster's agent gets for it.
async fn has_its_role_by_token(site: &Site, agent: &Client) {
    let binding = "open-cluster-management:hello:c1:clusterrole:cm-admin";
    wait::until(&site.bindings("c1"), binding, "it is for the service account, too", |binding| {
        binding
            .subjects
            .iter()
            .flatten()
            .any(|subject| subject.kind == "ServiceAccount" && subject.name == "hello-agent")
    })
    .await;
    let accounts = Api::<ServiceAccount>::namespaced(agent.clone(), "c1");
    let request = TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
    let token = wait::attempt("the cluster's agent gets a token", async || {
        let token = accounts.create_token_request("hello-agent", &PostParams::default(), &request).await;
        token.map_err(|error| error.to_string())
    })
    .await;
    let addon = site.world().bearing(token);
    let own = Api::<ConfigMap>::namespaced(addon.clone(), "c1");
    wait::attempt("the add-on's agent reads ConfigMaps", async || allowed(own.get_opt("none").await)).await;
    let others = Api::<ConfigMap>::namespaced(addon, "c10");
    assert_eq!(forbidden(others.get_opt("none").await), Ok(()));
}
