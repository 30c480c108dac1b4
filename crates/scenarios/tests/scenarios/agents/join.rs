//! How an agent comes to be known to its hub, and stays so.

use std::time::Duration;

use drover_api::{
    cluster::{ClusterClaim, ClusterClaimSpec},
    names::{CERTIFICATE_ROTATED, CLUSTER_AVAILABLE, CLUSTER_JOINED, CLUSTER_LEASE, REJOIN_ANNOTATION},
};
use drover_testkit::{World, objects, wait};
use k8s_openapi::api::{
    certificates::v1::CertificateSigningRequest, coordination::v1::Lease, core::v1::Node, core::v1::Secret,
};
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, PatchParams},
};
use serde_json::json;

use super::{CLUSTER, Pair, SILENCE, cluster_says};
use crate::running::{change, create};

drover_testkit::scenarios! {
    Own {
        an_agent_joins_and_tells_of_its_cluster,
        an_agent_that_is_started_again_is_known,
        an_agent_waits_until_its_cluster_is_accepted,
        a_cluster_that_was_silent_is_back_when_its_agent_is,
        a_certificate_is_renewed_before_its_end,
        an_agent_whose_hub_has_moved_joins_there,
    }
}

async fn an_agent_joins_and_tells_of_its_cluster(world: World) {
    let pair = Pair::new(world).await;
    let nodes = Api::<Node>::all(pair.managed.client());
    for (name, cpu) in [("n1", "4"), ("n2", "2")] {
        let node = json!({ "metadata": { "name": name } });
        create(&nodes, serde_json::from_value(node).expect("a node")).await;
        let status =
            json!({ "status": { "capacity": { "cpu": cpu, "memory": "8Gi" }, "allocatable": { "cpu": "1500m" } } });
        let patch = kube::api::Patch::Merge(status);
        nodes.patch_status(name, &PatchParams::default(), &patch).await.expect("a node has a status");
    }
    let claims = Api::<ClusterClaim>::all(pair.managed.client());
    create(&claims, ClusterClaim::new("region", ClusterClaimSpec { value: "north".to_owned() })).await;

    let cluster = pair
        .until_cluster("it is reported", |cluster| {
            let status = cluster.status.clone().unwrap_or_default();
            cluster_says(cluster, CLUSTER_JOINED, "True", "ManagedClusterJoined")
                && cluster_says(cluster, CLUSTER_AVAILABLE, "True", "ManagedClusterAvailable")
                && status.capacity.get("cpu").is_some_and(|cpu| cpu.to_string() == "6")
                && status.allocatable.get("cpu").is_some_and(|cpu| cpu.to_string() == "3")
                && status.cluster_claims.iter().any(|claim| claim.name == "region" && claim.value == "north")
        })
        .await;
    let version = cluster.status.and_then(|status| status.version).and_then(|version| version.kubernetes);
    assert!(version.is_some_and(|version| version.starts_with("v1.")));
    let leases = Api::<Lease>::namespaced(pair.hub.client(), CLUSTER);
    let renewed = |lease: &Lease| lease.spec.as_ref().is_some_and(|spec| spec.renew_time.is_some());
    wait::until(&leases, CLUSTER_LEASE, "it is renewed", renewed).await;

    let secrets = Api::<Secret>::namespaced(pair.managed.client(), "open-cluster-management-agent");
    let secret = secrets.get("hub-kubeconfig-secret").await.expect("the credentials are kept");
    let keys: Vec<_> = secret.data.iter().flat_map(|data| data.keys()).map(String::as_str).collect();
    assert_eq!(keys, ["agent-name", "cluster-name", "kubeconfig", "tls.crt", "tls.key"]);
    pair.end().await;
}

async fn an_agent_that_is_started_again_is_known(world: World) {
    let mut pair = Pair::new(world).await;
    pair.until_cluster("it has joined", |cluster| {
        cluster_says(cluster, CLUSTER_JOINED, "True", "ManagedClusterJoined")
    })
    .await;
    pair.stop().await;
    let requests = Api::<CertificateSigningRequest>::all(pair.hub.client());
    let count = async || requests.list(&ListParams::default()).await.expect("requests can be listed").items.len();
    let before = count().await;
    pair.start();
    pair.apply("after", json!([super::config_map("after", &json!({}))])).await;
    assert_eq!(count().await, before, "it asks for nothing");
    pair.end().await;
}

async fn an_agent_waits_until_its_cluster_is_accepted(world: World) {
    let mut pair = Pair::without_agent(world).await;
    pair.start();
    pair.until_cluster("it has asked to be let in", |cluster| !cluster.spec.hub_accepts_client).await;
    let requests = Api::<CertificateSigningRequest>::all(pair.hub.client());
    wait::such(&requests, "", "it has asked for a certificate", |request| request.name_any().starts_with("one-")).await;
    change(&pair.clusters(), CLUSTER, json!({ "spec": { "hubAcceptsClient": true } })).await;
    pair.until_cluster("it has joined", |cluster| {
        cluster_says(cluster, CLUSTER_JOINED, "True", "ManagedClusterJoined")
    })
    .await;
    pair.end().await;
}

async fn a_cluster_that_was_silent_is_back_when_its_agent_is(world: World) {
    let mut pair = Pair::new(world).await;
    pair.apply("held", json!([super::config_map("held", &json!({ "a": "1" }))])).await;
    pair.stop().await;
    pair.clock.advance(SILENCE);
    pair.until_cluster("it is silent", |cluster| {
        cluster_says(cluster, CLUSTER_AVAILABLE, "Unknown", "ManagedClusterLeaseUpdateStopped")
    })
    .await;
    let maps = Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(pair.managed.client(), "default");
    maps.get("held").await.expect("workloads stay");
    pair.start();
    pair.until_cluster("it is back", |cluster| {
        cluster_says(cluster, CLUSTER_AVAILABLE, "True", "ManagedClusterAvailable")
    })
    .await;
    pair.end().await;
}

/// The agent's own Secret.
async fn until_credentials(pair: &Pair, what: &str, holds: impl Fn(&Secret) -> bool) -> Secret {
    let secrets = Api::<Secret>::namespaced(pair.managed.client(), "open-cluster-management-agent");
    wait::until(&secrets, "hub-kubeconfig-secret", what, holds).await
}

fn part(secret: &Secret, key: &str) -> String {
    let data = secret.data.as_ref().and_then(|data| data.get(key));
    data.map(|value| String::from_utf8_lossy(&value.0).into_owned()).unwrap_or_default()
}

async fn a_certificate_is_renewed_before_its_end(world: World) {
    let mut pair = Pair::without_agent(world).await;
    create(&pair.clusters(), objects::cluster(CLUSTER)).await;
    pair.expiration_seconds = Some(3600);
    pair.start();
    pair.apply("before", json!([super::config_map("before", &json!({}))])).await;
    let first = until_credentials(&pair, "there are some", |_| true).await;
    pair.clock.advance(Duration::from_mins(50));
    let is_another = |secret: &Secret| part(secret, "tls.crt") != part(&first, "tls.crt");
    let second = until_credentials(&pair, "there are others", is_another).await;
    assert_ne!(part(&second, "tls.key"), part(&first, "tls.key"));
    pair.until_cluster("it is told", |cluster| {
        cluster_says(cluster, CERTIFICATE_ROTATED, "True", "ClientCertificateUpdated")
    })
    .await;
    pair.apply("after", json!([super::config_map("after", &json!({}))])).await;
    pair.end().await;
}

async fn an_agent_whose_hub_has_moved_joins_there(world: World) {
    let pair = Pair::new(world).await;
    pair.apply("before", json!([super::config_map("before", &json!({}))])).await;
    // The same hub, under another address. Who has lost his credentials, or gives them up, needs leave to join once more.
    let rejoin = json!({ "metadata": { "annotations": { REJOIN_ANNOTATION: "true" } } });
    change(&pair.clusters(), CLUSTER, rejoin).await;
    let bootstrap = std::fs::read_to_string(&pair.bootstrap).expect("there is a bootstrap kubeconfig");
    assert!(bootstrap.contains("127.0.0.1"));
    std::fs::write(&pair.bootstrap, bootstrap.replace("127.0.0.1", "localhost")).expect("it can be changed");
    let is_there = |secret: &Secret| part(secret, "kubeconfig").contains("https://localhost");
    pair.later(until_credentials(&pair, "they are for the new address", is_there)).await;
    pair.later(pair.apply("after", json!([super::config_map("after", &json!({}))]))).await;
    let maps = Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(pair.managed.client(), "default");
    maps.get("before").await.expect("it stays");
    pair.end().await;
}
