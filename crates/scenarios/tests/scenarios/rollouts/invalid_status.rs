//! Works whose status cannot be parsed. They count as failed, and not as what they were before.

use std::time::Duration;

use drover_api::{names::ADDON_NAME_LABEL, work::ManifestWork};
use drover_runtime::clock::ManualClock;
use drover_testkit::{World, play::Behaviour, wait};
use kube::{
    Api, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams},
};
use serde_json::json;

use super::{ADDON, Field, XXX, YYY, placement, progress_of};
use crate::clusters::invalid_values::{INVALID, UNUSUAL, VALID, accept_any_time, report_since};

drover_testkit::scenarios! {
    Own {
        work_with_an_invalid_status_fails_its_cluster,
        addon_with_an_invalid_status_fails_its_cluster,
    }
}

/// Has the agent of a cluster report its work as applied and available since that time.
async fn report(field: &Field, cluster: &str, time: &str) {
    let works: Api<DynamicObject> =
        Api::namespaced_with(field.world.client(), cluster, &ApiResource::erase::<ManifestWork>(&()));
    let labelled = ListParams::default().labels(&format!("{ADDON_NAME_LABEL}={ADDON}"));
    let found = works.list(&labelled).await.expect("works can be listed");
    let [work] = found.items.as_slice() else { panic!("not one work: {found:?}") };
    report_since(&works, &work.name_any(), &["Applied", "Available"], time).await;
}

/// Waits until the manager has changed the work on a cluster to a configuration. Nothing parses the
/// work after an invalid report.
async fn is_changed(field: &Field, cluster: &str, config: &str) {
    let works = Api::<ManifestWork>::namespaced(field.world.client(), cluster);
    let is_changed = |work: &ManifestWork| work.annotations().values().any(|hashes| hashes.contains(config));
    wait::until(&works, &format!("addon-{ADDON}-deploy-0"), config, is_changed).await;
}

fn one_at_a_time() -> serde_json::Value {
    json!({ "type": "Progressive", "progressive": { "maxConcurrency": 1 } })
}

async fn work_with_an_invalid_status_fails_its_cluster(world: World) {
    accept_any_time(&world, "manifestworks.work.open-cluster-management.io").await;
    let clusters = ["a", "b", "c"];
    let field = Field::of_one_placement(world, &clusters, &one_at_a_time()).await;
    field.behave(&clusters, Behaviour::Silent);
    field.list(&[placement("aws-placement", YYY, one_at_a_time())]).await;
    field.is_given("a", YYY).await;
    field.is_noted("a", "Moving").await;
    is_changed(&field, "a", YYY).await;
    report(&field, "a", UNUSUAL).await;
    field.is_given("b", YYY).await;
    field.is_noted("b", "Moving").await;

    is_changed(&field, "b", YYY).await;
    report(&field, "b", INVALID).await;
    field.is_noted("b", "Failing").await;
    let field = field.restart().await;
    field.pass(Duration::from_mins(1));
    let failed = field.remembers("b has failed", |status| {
        progress_of(status, "aws-placement").clusters.as_ref().is_some_and(|counts| counts.failed == 1)
    });
    let failed = failed.await;
    let halt = progress_of(&failed, "aws-placement").halt.as_ref();
    assert!(halt.is_some(), "{failed:?}");
    assert_eq!(field.clusters_on(XXX).await, ["c"]);

    report(&field, "b", VALID).await;
    field.is_given("c", YYY).await;
    field.hub.stop().await;
}

async fn addon_with_an_invalid_status_fails_its_cluster(world: World) {
    accept_any_time(&world, "managedclusteraddons.addon.open-cluster-management.io").await;
    let clusters = ["a", "b"];
    let soaking = json!({ "type": "Progressive", "progressive": { "maxConcurrency": 1, "minSuccessTime": "10m" } });
    let field = Field::of_one_placement(world, &clusters, &one_at_a_time()).await;
    field.list(&[placement("aws-placement", YYY, soaking)]).await;
    field.is_given("a", YYY).await;
    field.is_noted("a", "Proven").await;
    let addons: Api<DynamicObject> = Api::namespaced_with(
        field.world.client(),
        "a",
        &ApiResource::erase::<drover_api::addon::ManagedClusterAddOn>(&()),
    );
    // The next hub finds a cluster that was well when it was last evaluated, and whose soak is over.
    let happens = async |clock: &ManualClock| {
        report_since(&addons, ADDON, &["Available"], INVALID).await;
        clock.advance(Duration::from_mins(11));
    };
    let field = field.restart_after(happens).await;
    field
        .remembers("a has failed", |status| {
            progress_of(status, "aws-placement").clusters.as_ref().is_some_and(|counts| counts.failed == 1)
        })
        .await;
    assert_eq!(field.clusters_on(XXX).await, ["b"]);
    field.hub.stop().await;
}
