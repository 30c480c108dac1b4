//! Works of sets whose status cannot be parsed. They count as failed.

use std::time::Duration;

use drover_api::{names::PLACEMENT_ROLLED_OUT, work::ManifestWork};
use drover_engine::work::replica_set::naming::work_name;
use drover_testkit::{World, play::Behaviour};
use kube::{
    Api,
    api::{ApiResource, DynamicObject},
};

use super::{Field, HOME, SET, message, one_at_a_time, version_of};
use crate::clusters::invalid_values::{INVALID, UNUSUAL, VALID, accept_any_time, report_since};

drover_testkit::scenarios! {
    Own {
        work_with_an_invalid_status_fails_its_cluster,
    }
}

/// Has the agent of a cluster report its work as applied and available since that time.
async fn report(field: &Field, cluster: &str, time: &str) {
    let works: Api<DynamicObject> =
        Api::namespaced_with(field.world.client(), cluster, &ApiResource::erase::<ManifestWork>(&()));
    report_since(&works, &work_name(HOME, SET), &["Applied", "Available"], time).await;
}

async fn work_with_an_invalid_status_fails_its_cluster(world: World) {
    accept_any_time(&world, "manifestworks.work.open-cluster-management.io").await;
    let clusters = ["a", "b", "c"];
    let field = Field::of_one_placement(world, &clusters, one_at_a_time()).await;
    field.behave(&clusters, Behaviour::Silent);
    field.roll_out("v2").await;
    field.counts(SET, [3, 3, 1, 0, 0, 1, 0]).await;
    report(&field, "a", UNUSUAL).await;
    field.counts(SET, [3, 3, 2, 1, 1, 1, 0]).await;

    report(&field, "b", INVALID).await;
    let field = field.restart().await;
    field.clock.advance(Duration::from_mins(1));
    let has_failed = |status: &_| message(status, PLACEMENT_ROLLED_OUT).contains("1 failed, where 0 may");
    field.has_status(SET, "it has failed", has_failed).await;
    let waiting = field.works("c").get(&work_name(HOME, SET)).await.expect("c has a work");
    assert_eq!(version_of(&waiting).as_deref(), Some("v1"));

    report(&field, "b", VALID).await;
    field.counts(SET, [3, 3, 3, 2, 2, 1, 0]).await;
    field.hub.stop().await;
}
