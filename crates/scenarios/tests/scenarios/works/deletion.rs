//! What becomes of the works of a set that is deleted.

use drover_api::work::ManifestWork;
use drover_engine::work::replica_set::naming::work_name;
use drover_testkit::{World, wait};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::{Field, HOME, SET};
use crate::running::change;

drover_testkit::scenarios! {
    Own {
        in_the_background_a_set_goes_before_its_works,
        in_the_foreground_a_set_waits_for_its_works,
    }
}

/// A set that is deleted with that policy, on two clusters of which one is slow to let its work go.
async fn deleted(world: World, policy: &str) -> Field {
    let field = Field::of_one_placement(world, &["a", "b"], json!({ "type": "All" })).await;
    change(&field.works("b"), &work_name(HOME, SET), finalizers(&["example.com/slow"])).await;
    change(&field.sets(), SET, json!({ "spec": { "cascadeDeletionPolicy": policy } })).await;
    field.sets().delete(SET, &DeleteParams::default()).await.expect("a set can be deleted");
    field
}

fn finalizers(finalizers: &[&str]) -> Value {
    json!({ "metadata": { "finalizers": finalizers } })
}

async fn is_leaving(field: &Field, cluster: &str) {
    let is_leaving = |work: &ManifestWork| work.metadata.deletion_timestamp.is_some();
    wait::until(&field.works(cluster), &work_name(HOME, SET), "it is on its way out", is_leaving).await;
}

async fn in_the_background_a_set_goes_before_its_works(world: World) {
    let field = deleted(world, "Background").await;
    wait::gone(&field.sets(), SET).await;
    wait::gone(&field.works("a"), &work_name(HOME, SET)).await;
    is_leaving(&field, "b").await;
    change(&field.works("b"), &work_name(HOME, SET), finalizers(&[])).await;
    wait::gone(&field.works("b"), &work_name(HOME, SET)).await;
    field.hub.stop().await;
}

async fn in_the_foreground_a_set_waits_for_its_works(world: World) {
    let field = deleted(world, "Foreground").await;
    wait::gone(&field.works("a"), &work_name(HOME, SET)).await;
    is_leaving(&field, "b").await;
    let field = field.restart().await;
    field.settle().await;
    let set = field.sets().get(SET).await.expect("it waits");
    assert!(set.metadata.deletion_timestamp.is_some());
    change(&field.works("b"), &work_name(HOME, SET), finalizers(&[])).await;
    wait::gone(&field.sets(), SET).await;
    field.hub.stop().await;
}
