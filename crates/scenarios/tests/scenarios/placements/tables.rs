//! What `kubectl get` shows of a small fleet after the hub has acted on it.

use std::time::Duration;

use drover_api::{
    cluster::{ManagedCluster, ManagedClusterSet, ManagedClusterSetSpec},
    names::{CLUSTER_AVAILABLE, CLUSTER_CLOCK_SYNCED, CLUSTER_SET_LABEL},
};
use drover_runtime::clock::ManualClock;
use drover_testkit::{
    World, golden,
    play::{Agent, Applicant},
    wait,
};
use kube::Api;
use serde_json::json;

use super::{label, placement, placements, until_selected};
use crate::{
    crds::without_age,
    running::{as_hub, bound_namespace, condition, create, hub_clock, start_at},
};

drover_testkit::scenarios! {
    Own { kubectl_shows_what_became_of_a_fleet }
}

/// The clusters that have joined, with their sets.
const JOINED: [(&str, &str); 4] =
    [("prod-1", "production"), ("prod-2", "production"), ("prod-3", "production"), ("stage-1", "staging")];
/// The one of them that is not heard of any more.
const SILENT: &str = "prod-3";

async fn kubectl_shows_what_became_of_a_fleet(world: World) {
    let clock = hub_clock();
    let hub = start_at(as_hub(&world).await, None, clock.clock()).await;
    assemble(&world, &clock).await;
    let namespace = bound_namespace(&world, "production").await;
    let placements = placements(&world, &namespace);
    create(&placements, placement("all", json!({}))).await;
    create(&placements, placement("three", json!({ "numberOfClusters": 3 }))).await;
    until_selected(&placements, "all", 2).await;
    until_selected(&placements, "three", 2).await;
    for (set, clusters) in [("default", 1), ("global", 5), ("production", 3), ("staging", 1)] {
        until_counted(&world, set, clusters).await;
    }

    let mut shown = Vec::new();
    for kind in ["placements", "placementdecisions", "managedclusters", "managedclustersets"] {
        let table = world.kubectl(["get", kind, "--namespace", &namespace]).await.success();
        shown.push(format!("$ kubectl get {kind}\n{}", without_age(&table)));
    }
    golden::assert_matches("crates/scenarios/tests/golden/kubectl-get-fleet.txt", &shown.join("\n"));
    hub.stop().await;
}

/// Two sets of clusters that have joined, of which one has fallen silent, and a newcomer whom nobody has accepted.
async fn assemble(world: &World, clock: &ManualClock) {
    let mut agents = Vec::new();
    for (cluster, set) in JOINED {
        agents.push((cluster, Agent::join(world, cluster).await));
        label(world, cluster, CLUSTER_SET_LABEL, set).await;
    }
    let sets = Api::<ManagedClusterSet>::all(world.client());
    for set in ["production", "staging"] {
        create(&sets, ManagedClusterSet::new(set, ManagedClusterSetSpec::default())).await;
    }
    clock.advance(Duration::from_mins(4));
    for (cluster, agent) in agents.iter().filter(|(cluster, _)| *cluster != SILENT) {
        agent.renew_lease_at(clock.clock().now()).await;
        until_says(world, cluster, CLUSTER_CLOCK_SYNCED, "True").await;
    }
    clock.advance(Duration::from_mins(1));
    until_says(world, SILENT, CLUSTER_AVAILABLE, "Unknown").await;
    Applicant::new(world, "newcomer").await;
}

async fn until_says(world: &World, cluster: &str, type_: &str, status: &str) {
    let clusters = Api::<ManagedCluster>::all(world.client());
    wait::until(&clusters, cluster, &format!("{type_} is {status}"), |cluster| {
        let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        condition(conditions, type_).is_some_and(|(said, _)| said == status)
    })
    .await;
}

async fn until_counted(world: &World, set: &str, clusters: usize) {
    let sets = Api::<ManagedClusterSet>::all(world.client());
    wait::until(&sets, set, &format!("it counts {clusters}"), |set| {
        let conditions = set.status.iter().flat_map(|status| &status.conditions);
        conditions.into_iter().any(|condition| condition.message.starts_with(&format!("{clusters} ")))
    })
    .await;
}
