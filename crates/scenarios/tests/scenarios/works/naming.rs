//! What works are called, and how they are known.

use drover_api::{
    names::{PLACEMENT_ROLLED_OUT, REPLICA_SET_LABEL},
    work::{ManifestWork, ManifestWorkReplicaSet},
};
use drover_engine::work::replica_set::naming::work_name;
use drover_testkit::{World, objects::Described as _, wait};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

use super::{Field, HOME, SET, template};
use crate::running::{create, select};

drover_testkit::scenarios! {
    Own {
        sets_of_one_name_in_two_namespaces_do_not_clash,
        a_set_with_a_dot_in_its_name_works,
        works_that_ocm_has_made_keep_their_names,
    }
}

async fn sets_of_one_name_in_two_namespaces_do_not_clash(world: World) {
    let field = Field::of_one_placement(world, &["a"], json!({ "type": "All" })).await;
    let other = field.world.namespace("other").await;
    select(&field.world, &other, "all", &["a"]).await;
    let spec = json!({ "placementRefs": [{ "name": "all" }], "manifestWorkTemplate": template("other") });
    let sets = Api::<ManifestWorkReplicaSet>::namespaced(field.world.client(), &other);
    create(&sets, ManifestWorkReplicaSet::new(SET, serde_json::from_value(spec).expect("a valid set"))).await;
    let has = |set: &ManifestWorkReplicaSet| {
        set.status.as_ref().and_then(|status| super::said(status, PLACEMENT_ROLLED_OUT)).as_deref()
            == Some("True/Complete")
    };
    wait::until(&sets, SET, "it is complete", has).await;
    let works = field.works("a").list(&ListParams::default()).await.expect("works can be listed");
    let mut versions: Vec<_> = works.iter().filter_map(super::version_of).collect();
    versions.sort();
    assert_eq!(versions, ["other", "v1"]);
    field.hub.stop().await;
}

async fn a_set_with_a_dot_in_its_name_works(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["a"]).await;
    field.select("all", &["a"]).await;
    field.make("hello.world.v1", json!([{ "name": "all" }]), "v1").await;
    field.says("hello.world.v1", PLACEMENT_ROLLED_OUT, "True/Complete").await;
    field.sets().delete("hello.world.v1", &DeleteParams::default()).await.expect("it can be deleted");
    wait::gone(&field.works("a"), &work_name(HOME, "hello.world.v1")).await;
    field.hub.stop().await;
}

async fn works_that_ocm_has_made_keep_their_names(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["a", "b"]).await;
    field.select("all", &["a", "b"]).await;
    let work = |name: &str, version: &str| {
        let spec = serde_json::from_value(template(version)).expect("a valid work");
        ManifestWork::new(name, spec).labelled(REPLICA_SET_LABEL, "default.hello")
    };
    create(&field.works("a"), work("hello-x7b2k", "v1")).await;
    create(&field.works("b"), work("hello-p9qrs", "v1")).await;
    create(&field.works("b"), work("hello-zzzzz", "v0")).await;
    field.make(SET, json!([{ "name": "all" }]), "v1").await;
    field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    wait::gone(&field.works("b"), "hello-zzzzz").await;
    for (cluster, name) in [("a", "hello-x7b2k"), ("b", "hello-p9qrs")] {
        let works = field.works(cluster).list(&ListParams::default()).await.expect("works can be listed");
        let [work] = works.items.as_slice() else { panic!("not one work: {works:?}") };
        assert_eq!((work.name_any().as_str(), work.metadata.generation), (name, Some(1)));
    }
    field.roll_out("v2").await;
    let is_new = |work: &ManifestWork| super::version_of(work).as_deref() == Some("v2");
    wait::until(&field.works("a"), "hello-x7b2k", "it is given v2", is_new).await;
    field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    field.hub.stop().await;
}
