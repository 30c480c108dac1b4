//! What can not be done is said, with what to do about it.

use drover_api::{
    names::{MANIFESTWORK_APPLIED, PLACEMENT_ROLLED_OUT},
    work::ManifestWork,
};
use drover_engine::work::replica_set::naming::work_name;
use drover_testkit::{World, objects};
use kube::api::DeleteParams;
use serde_json::json;

use super::{Field, HOME, SET, message, said, template};
use crate::running::{change, create};

drover_testkit::scenarios! {
    Own {
        a_name_that_is_too_long_for_a_label_is_said,
        a_template_that_makes_no_sense_moves_nobody,
        a_work_of_somebody_else_is_left_alone_and_said,
    }
}

async fn a_name_that_is_too_long_for_a_label_is_said(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["a"]).await;
    field.select("all", &["a"]).await;
    let long = "x".repeat(80);
    field.make(&long, json!([{ "name": "all" }]), "v1").await;
    let status = field.says(&long, MANIFESTWORK_APPLIED, "False/InvalidManifestWorkName").await;
    let text = message(&status, MANIFESTWORK_APPLIED);
    assert!(text.ends_with("may have 63 characters and has 88: make the set anew with a shorter name"), "{text}");
    field.make(SET, json!([{ "name": long }]), "v1").await;
    let status = field.says(SET, MANIFESTWORK_APPLIED, "False/InvalidManifestWorkName").await;
    assert!(message(&status, MANIFESTWORK_APPLIED).ends_with("list a placement with a shorter name"));
    assert!(field.versions().await.is_empty());
    field.sets().delete(&long, &DeleteParams::default()).await.expect("it can be deleted");
    drover_testkit::wait::gone(&field.sets(), &long).await;
    field.hub.stop().await;
}

async fn a_template_that_makes_no_sense_moves_nobody(world: World) {
    let field = Field::of_one_placement(world, &["a"], json!({ "type": "All" })).await;
    let map = objects::config_map("twice");
    let twice = json!({ "workload": { "manifests": [map, map] } });
    change(&field.sets(), SET, json!({ "spec": { "manifestWorkTemplate": twice } })).await;
    let status = field.says(SET, MANIFESTWORK_APPLIED, "False/NotAsExpected").await;
    assert_eq!(said(&status, PLACEMENT_ROLLED_OUT).as_deref(), Some("False/Progressing"));
    let text = message(&status, MANIFESTWORK_APPLIED);
    assert_eq!(text, "manifestWorkTemplate: the ConfigMap (v1) default/twice is there twice: remove one of them");
    field.settle().await;
    assert_eq!(field.clusters_on("v1").await, ["a"]);
    field.hub.stop().await;
}

async fn a_work_of_somebody_else_is_left_alone_and_said(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["a", "b"]).await;
    field.select("all", &["a", "b"]).await;
    let spec = serde_json::from_value(template("theirs")).expect("a valid work");
    let name = work_name(HOME, SET);
    create(&field.works("a"), ManifestWork::new(&name, spec)).await;
    field.make(SET, json!([{ "name": "all" }]), "v1").await;
    let status = field.says(SET, MANIFESTWORK_APPLIED, "False/NotAsExpected").await;
    let text = message(&status, MANIFESTWORK_APPLIED);
    assert!(
        text.contains(&format!("could not Create ManifestWork a/{name}")) && text.contains("already exists"),
        "{text}"
    );
    field.is_given("b", "v1").await;
    let theirs = field.works("a").get(&name).await.expect("it is there");
    assert_eq!(super::version_of(&theirs).as_deref(), Some("theirs"));
    field.works("a").delete(&name, &DeleteParams::default()).await.expect("it can be deleted");
    field.says_in_time(SET, MANIFESTWORK_APPLIED, "True/AsExpected").await;
    field.hub.stop().await;
}
