//! A hub that is of no use for a while: it answers nonsense, or nothing. The cluster is kept as it was last wanted, and nothing is lost when the hub is back.

use std::time::Duration;

use drover_api::{names::CLUSTER_AVAILABLE, work::AppliedManifestWork};
use drover_testkit::{
    World, objects,
    proxy::{Proxy, Trouble},
    wait,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt as _, api::ListParams};
use serde_json::json;

use super::{CLUSTER, Pair, SILENCE, cluster_says, config_map};
use crate::running::{change, create};

drover_testkit::scenarios! {
    Own {
        a_hub_that_knows_nobody_takes_nothing_away,
        a_hub_that_forbids_everything_takes_nothing_away,
        a_hub_where_everything_is_gone_takes_nothing_away,
        a_hub_that_is_too_busy_takes_nothing_away,
        a_hub_that_is_broken_takes_nothing_away,
        a_hub_that_is_silent_takes_nothing_away,
        a_hub_that_can_not_be_reached_takes_nothing_away,
    }
}

/// How often time leaps while the hub is away, and how far: in all for longer than works may be missing.
const LEAPS: u32 = 7;
const LEAP: Duration = Duration::from_mins(10);
/// How long it may take, by the clock, until all is well again.
const RETURN: i64 = 60;

async fn a_hub_that_knows_nobody_takes_nothing_away(world: World) {
    outage(world, Trouble::Code(401)).await;
}

async fn a_hub_that_forbids_everything_takes_nothing_away(world: World) {
    outage(world, Trouble::Code(403)).await;
}

async fn a_hub_where_everything_is_gone_takes_nothing_away(world: World) {
    outage(world, Trouble::Code(410)).await;
}

async fn a_hub_that_is_too_busy_takes_nothing_away(world: World) {
    outage(world, Trouble::Code(429)).await;
}

async fn a_hub_that_is_broken_takes_nothing_away(world: World) {
    outage(world, Trouble::Code(500)).await;
}

async fn a_hub_that_is_silent_takes_nothing_away(world: World) {
    outage(world, Trouble::Silence).await;
}

async fn a_hub_that_can_not_be_reached_takes_nothing_away(world: World) {
    outage(world, Trouble::Closed).await;
}

async fn outage(world: World, trouble: Trouble) {
    assert!(LEAP * LEAPS > drover_agent::EVICTION_GRACE);
    let mut pair = Pair::without_agent(world).await;
    let proxy = Proxy::start(pair.hub.kubeconfig()).await;
    pair.bootstrap = proxy.kubeconfig(&pair.bootstrap);
    create(&pair.clusters(), objects::cluster(CLUSTER)).await;
    pair.start();
    pair.apply("held", json!([config_map("held", &json!({ "a": "wanted" })), config_map("untouched", &json!({}))]))
        .await;
    is_available(&pair).await;
    let before = recorded(&pair).await;

    proxy.has(trouble);
    if trouble != Trouble::Silence {
        // Both watches have been tried again by then, more than once.
        proxy.turned_away(5).await;
    }
    pair.make_work("later", json!({ "workload": { "manifests": [config_map("later", &json!({}))] } })).await;
    drift_is_repaired(&pair).await;
    pair.clock.advance(SILENCE);
    pair.until_cluster("it is silent", |cluster| {
        cluster_says(cluster, CLUSTER_AVAILABLE, "Unknown", "ManagedClusterLeaseUpdateStopped")
    })
    .await;
    for _ in 0..LEAPS {
        pair.clock.advance(LEAP);
        drift_is_repaired(&pair).await;
    }
    assert_eq!(recorded(&pair).await, before, "what is recorded of the work stays");
    maps(&pair).get("untouched").await.expect("it stays");
    assert!(maps(&pair).get_opt("later").await.expect("it can be looked for").is_none(), "the hub was away");

    proxy.has(Trouble::None);
    let return_begun = pair.clock.clock().now();
    pair.meanwhile(Duration::from_secs(1), Duration::from_millis(200), async {
        is_available(&pair).await;
        pair.until_applied("later").await;
    })
    .await;
    let seconds = pair.clock.clock().now().duration_since(return_begun).as_secs();
    assert!(seconds <= RETURN, "it took {seconds} s until all was well again");
    drift_is_repaired(&pair).await;
    assert_eq!(recorded(&pair).await[..1], before[..], "and nothing else has changed");
    pair.end().await;
}

fn maps(pair: &Pair) -> Api<ConfigMap> {
    Api::namespaced(pair.managed.client(), "default")
}

async fn is_available(pair: &Pair) {
    pair.until_cluster("it is available", |cluster| {
        cluster_says(cluster, CLUSTER_AVAILABLE, "True", "ManagedClusterAvailable")
    })
    .await;
}

/// Somebody changes what was applied, and it is brought back.
async fn drift_is_repaired(pair: &Pair) {
    change(&maps(pair), "held", json!({ "data": { "a": "otherwise" } })).await;
    let is_wanted = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["a"] == "wanted");
    wait::until(&maps(pair), "held", "it is repaired", is_wanted).await;
}

/// What is recorded on the cluster of works: the name and the state of each.
async fn recorded(pair: &Pair) -> Vec<(String, String)> {
    let works = Api::<AppliedManifestWork>::all(pair.managed.client());
    let list = works.list(&ListParams::default()).await.expect("they can be listed").items;
    let all = list.into_iter().map(|work| (work.name_any(), work.resource_version().unwrap_or_default()));
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(name, _)| !name.ends_with("-held"));
    all
}
