//! Who gets a work, and who loses it.

use std::time::Duration;

use drover_api::{
    cluster::{ManagedCluster, Placement, PlacementDecision},
    names::{MANIFESTWORK_APPLIED, PLACEMENT_ROLLED_OUT, PLACEMENT_VERIFIED, REPLICA_SET_LABEL},
    work::ManifestWork,
};
use drover_engine::work::replica_set::naming::work_name;
use drover_testkit::{World, objects, objects::Described as _, wait};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

use super::{Field, HOME, SET, one_at_a_time, said, template};
use crate::running::{change, count, create, decide, reach, select};

drover_testkit::scenarios! {
    Own {
        two_placements_that_select_one_cluster_do_not_fight,
        nothing_is_left_when_template_and_selection_change_together,
        a_missing_placement_removes_nothing,
        a_cluster_that_moves_between_slices_keeps_its_work,
        a_cluster_that_is_not_reached_keeps_its_work,
        a_cluster_that_leaves_gets_no_work,
        zero_clusters_are_not_complete,
        a_placement_that_is_taken_off_the_list_takes_its_works_along,
    }
}

async fn two_placements_that_select_one_cluster_do_not_fight(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["a", "b", "c"]).await;
    field.select("one", &["a", "b"]).await;
    field.select("two", &["b", "c"]).await;
    field.make(SET, json!([{ "name": "one" }, { "name": "two" }]), "v1").await;
    let status = field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    let totals: Vec<_> =
        status.placement_summary.iter().map(|it| it.summary.as_ref().and_then(|summary| summary.total)).collect();
    assert_eq!(totals, [Some(1), Some(2)], "the last that selects a cluster decides for it");
    field.settle().await;
    let placement = async |cluster: &str| {
        let works = field.works(cluster).list(&ListParams::default()).await.expect("works can be listed");
        let [work] = works.items.as_slice() else { panic!("not one work: {works:?}") };
        (work.labels()["work.open-cluster-management.io/placementname"].clone(), work.metadata.generation)
    };
    assert_eq!(placement("a").await, ("one".to_owned(), Some(1)));
    assert_eq!(placement("b").await, ("two".to_owned(), Some(1)));

    // It goes over to the other without being touched otherwise.
    field.select("two", &["c"]).await;
    let is_of_one = |work: &ManifestWork| work.labels()["work.open-cluster-management.io/placementname"] == "one";
    wait::until(&field.works("b"), &work_name(HOME, SET), "it is of the other", is_of_one).await;
    assert_eq!(placement("b").await, ("one".to_owned(), Some(1)));
    field.hub.stop().await;
}

async fn nothing_is_left_when_template_and_selection_change_together(world: World) {
    let field = Field::of_one_placement(world, &["a", "b", "c"], one_at_a_time()).await;
    field.clusters(&["d"]).await;
    let (sets, name) = (field.sets(), work_name(HOME, SET));
    field.hub.stop().await;
    change(&sets, SET, json!({ "spec": { "manifestWorkTemplate": template("v2") } })).await;
    select(&field.world, HOME, "all", &["c", "d"]).await;
    let field = Field { hub: super::start(field.client.clone(), &field.clock).await, ..field };
    for cluster in ["a", "b"] {
        wait::gone(&field.works(cluster), &name).await;
    }
    field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    assert_eq!(field.clusters_on("v2").await, ["c", "d"]);
    assert_eq!(field.versions().await.len(), 2);
    field.hub.stop().await;
}

async fn a_missing_placement_removes_nothing(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["a", "b"]).await;
    field.select("one", &["a"]).await;
    field.select("two", &["b"]).await;
    field.make(SET, json!([{ "name": "one" }, { "name": "two" }]), "v1").await;
    field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;

    let params = DeleteParams::default();
    Api::<Placement>::namespaced(field.world.client(), HOME).delete("one", &params).await.expect("it can be deleted");
    let slices = Api::<PlacementDecision>::namespaced(field.world.client(), HOME);
    slices.delete("one-decision-1", &params).await.expect("it can be deleted");
    field.select("two", &[]).await;
    let status = field.says(SET, PLACEMENT_VERIFIED, "False/PlacementDecisionNotFound").await;
    assert!(super::message(&status, PLACEMENT_VERIFIED).starts_with("the Placement one: it does not exist"));
    field.counts(SET, [0, 2, 2, 2, 2, 0, 0]).await;
    field.clock.advance(Duration::from_mins(1));
    field.settle().await;
    assert_eq!(field.clusters_on("v1").await, ["a", "b"], "nobody can tell whom they select together");

    field.select("one", &["a"]).await;
    wait::gone(&field.works("b"), &work_name(HOME, SET)).await;
    field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    assert_eq!(field.clusters_on("v1").await, ["a"]);
    field.hub.stop().await;
}

async fn a_cluster_that_moves_between_slices_keeps_its_work(world: World) {
    let field = Field::of_one_placement(world, &["a", "b"], one_at_a_time()).await;
    let name = work_name(HOME, SET);
    let before = field.works("b").get(&name).await.expect("it is there");
    // OCM takes a cluster out of one slice before it puts it into another.
    decide(&field.world, (HOME, "all-decision-1"), "all", &[], &["a"]).await;
    field.counts(SET, [1, 2, 2, 2, 2, 0, 0]).await;
    field.clock.advance(Duration::from_secs(9));
    field.settle().await;
    decide(&field.world, (HOME, "all-decision-2"), "all", &[], &["b"]).await;
    field.counts(SET, [2, 2, 2, 2, 2, 0, 0]).await;
    let after = field.works("b").get(&name).await.expect("it is there");
    assert_eq!((after.metadata.uid, after.metadata.deletion_timestamp), (before.metadata.uid, None));

    // Where the placement confirms it, nobody waits.
    decide(&field.world, (HOME, "all-decision-2"), "all", &[], &[]).await;
    count(&field.world, HOME, "all", json!({ "numberOfSelectedClusters": 1 })).await;
    wait::gone(&field.works("b"), &name).await;

    // Where it does not, ten seconds are enough.
    decide(&field.world, (HOME, "all-decision-1"), "all", &[], &[]).await;
    field.counts(SET, [0, 1, 1, 1, 1, 0, 0]).await;
    field.clock.advance(Duration::from_secs(10));
    wait::gone(&field.works("a"), &name).await;
    field.hub.stop().await;
}

async fn a_cluster_that_is_not_reached_keeps_its_work(world: World) {
    let field = Field::of_one_placement(world, &["a", "b"], one_at_a_time()).await;
    reach(&field.world, "b", "Unknown").await;
    field.select("all", &["a"]).await;
    field.counts(SET, [1, 2, 2, 2, 2, 0, 0]).await;
    field.clock.advance(Duration::from_hours(1));
    field.settle().await;
    assert_eq!(field.clusters_on("v1").await, ["a", "b"]);
    reach(&field.world, "b", "True").await;
    field.settle().await;
    field.clock.advance(Duration::from_secs(10));
    wait::gone(&field.works("b"), &work_name(HOME, SET)).await;
    field.hub.stop().await;
}

async fn a_cluster_that_leaves_gets_no_work(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["a"]).await;
    field.world.namespace_named("b").await;
    let clusters = Api::<ManagedCluster>::all(field.world.client());
    let mut leaving = objects::cluster("b").annotated("kept", "by a finalizer");
    leaving.finalizers_mut().push("example.com/kept".to_owned());
    create(&clusters, leaving).await;
    reach(&field.world, "b", "True").await;
    clusters.delete("b", &DeleteParams::default()).await.expect("it can be deleted");
    field.select("all", &["a", "b"]).await;
    field.make(SET, json!([{ "name": "all" }]), "v1").await;
    field.counts(SET, [2, 1, 1, 1, 1, 0, 0]).await;
    field.settle().await;
    assert_eq!(field.clusters_on("v1").await, ["a"]);
    change(&clusters, "b", json!({ "metadata": { "finalizers": null } })).await;
    field.hub.stop().await;
}

async fn zero_clusters_are_not_complete(world: World) {
    let field = Field::new(world).await;
    field.select("all", &[]).await;
    field.make(SET, json!([{ "name": "all" }]), "v1").await;
    let status = field.says(SET, PLACEMENT_VERIFIED, "False/PlacementDecisionEmpty").await;
    assert_eq!(said(&status, PLACEMENT_ROLLED_OUT).as_deref(), Some("False/PlacementDecisionEmpty"));
    assert_eq!(said(&status, MANIFESTWORK_APPLIED).as_deref(), Some("False/PlacementDecisionEmpty"));
    field.counts(SET, [0; 7]).await;
    field.clusters(&["a"]).await;
    field.select("all", &["a"]).await;
    field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    field.hub.stop().await;
}

async fn a_placement_that_is_taken_off_the_list_takes_its_works_along(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["a", "b"]).await;
    field.select("one", &["a"]).await;
    field.select("two", &["b"]).await;
    field.make(SET, json!([{ "name": "one" }, { "name": "two" }]), "v1").await;
    field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    change(&field.sets(), SET, json!({ "spec": { "placementRefs": [{ "name": "two" }] } })).await;
    wait::gone(&field.works("a"), &work_name(HOME, SET)).await;
    let status = field.counts(SET, [1, 1, 1, 1, 1, 0, 0]).await;
    assert_eq!(status.placement_summary.len(), 1);
    let all = Api::<ManifestWork>::all(field.world.client());
    assert_eq!(all.list(&ListParams::default().labels(REPLICA_SET_LABEL)).await.expect("a list").items.len(), 1);
    field.hub.stop().await;
}
