//! How an agent comes to be known to its hub, and stays so.

use drover_api::{
    cluster::{ClusterClaim, ClusterClaimSpec},
    names::{CLUSTER_AVAILABLE, CLUSTER_JOINED, CLUSTER_LEASE},
};
use drover_testkit::{World, wait};
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
