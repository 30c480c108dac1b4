//! An object that is nested more deeply than a client can parse. Kubernetes stores it; Drover's own
//! server does not.

use drover_api::names::{ADDON_NAME_LABEL, REPLICA_SET_LABEL, UPGRADE_LABEL};
use drover_testkit::{World, wait};
use kube::api::DeleteParams;
use serde_json::json;

use super::{CLUSTER, Pair, config_map};
use crate::running::{NAMESPACE, start_at};

drover_testkit::scenarios! {
    on kube Own {
        deeply_nested_work_stops_no_watch,
    }
}

async fn deeply_nested_work_stops_no_watch(world: World) {
    let mut pair = Pair::new(world).await;
    pair.apply("before", json!([config_map("before", &json!({}))])).await;
    // Every watch of works that the hub has sees it.
    let labels = json!({ REPLICA_SET_LABEL: "default.deep", ADDON_NAME_LABEL: "deep", UPGRADE_LABEL: "deep" });
    let work = json!({ "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": { "name": "deep", "namespace": CLUSTER, "labels": labels },
        "spec": { "workload": { "manifests": [config_map("deep", &json!("NESTED"))] } } });
    let nested = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
    let work = work.to_string().replace(r#""NESTED""#, &nested);
    pair.hub.kubectl_with_input(["create", "--validate=false", "-f", "-"], work.as_bytes()).await.success();
    pair.apply("beside", json!([config_map("beside", &json!({}))])).await;

    pair.stop().await;
    pair.running.stop().await;
    let hub = pair.hub.service_account(NAMESPACE, "drover-hub").await;
    pair.running = start_at(hub, None, pair.clock.clock()).await;
    pair.start();
    pair.apply("after", json!([config_map("after", &json!({}))])).await;

    pair.clusters().delete(CLUSTER, &DeleteParams::default()).await.expect("a cluster can be deleted");
    pair.later(wait::gone(&pair.clusters(), CLUSTER)).await;
    pair.end().await;
}
