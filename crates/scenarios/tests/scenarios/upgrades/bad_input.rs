//! What makes no sense is refused or told, with what to change.

use drover_testkit::World;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use super::{Field, HOME, TO, message, said, spokes::Platform};
use crate::running::create;

drover_testkit::scenarios! {
    Own {
        decision_40_and_58_what_can_be_seen_at_once_is_refused,
        a_placement_that_is_missing_is_told_and_moves_nobody,
        a_cluster_that_is_deleted_meanwhile_is_let_go,
        what_somebody_else_has_put_in_the_way_is_told,
        an_action_that_no_work_can_hold_is_told_and_nothing_is_begun,
        decision_69_ten_thousand_names_do_not_fit_and_are_not_listed,
    }
}

async fn decision_40_and_58_what_can_be_seen_at_once_is_refused(world: World) {
    let field = Field::new(world).await;
    let placement = json!([{ "namespace": HOME, "name": "all" }]);
    let wrong: [(&str, Value, &str); 7] = [
        ("nobody", json!({ "clusterVersion": { "version": TO } }), "name the clusters to upgrade"),
        ("nothing", json!({ "placement": placement, "clusterVersion": {} }), "say what to upgrade to"),
        (
            "half",
            json!({ "placement": placement, "clusterVersion": { "version": "4.12" } }),
            "write a whole version such as 4.12.0",
        ),
        (
            "endless",
            json!({ "placement": placement, "clusterVersion": { "version": TO }, "upgradeStrategy": { "clusterUpgradeTimeout": "two hours" } }),
            "duration",
        ),
        (
            "negative",
            json!({ "placement": placement, "clusterVersion": { "version": TO }, "upgradeStrategy": { "maxFailures": -1 } }),
            "0 lets no cluster fail",
        ),
        (
            "both",
            json!({ "placement": placement, "clusterVersion": { "version": TO },
                "ocpOperators": { "approveAllUpgrades": true, "include": [{ "name": "a", "namespace": "b" }] } }),
            "choose one",
        ),
        (
            "idle",
            json!({ "placement": placement, "clusterVersion": { "version": TO }, "preUpgradeAction": { "manifestWork": {} } }),
            "give the action something to do",
        ),
    ];
    for (name, spec, why) in wrong {
        let object = json!({ "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "ManagedClustersUpgrade",
            "metadata": { "name": name }, "spec": spec });
        let object: kube::api::DynamicObject = serde_json::from_value(object).expect("an object");
        let kind = kube::api::ApiResource::erase::<drover_api::cluster::ManagedClustersUpgrade>(&());
        let api = kube::Api::<kube::api::DynamicObject>::namespaced_with(field.world.client(), HOME, &kind);
        let refused = api.create(&PostParams::default(), &object).await.expect_err(name).to_string();
        assert!(refused.contains(why), "{name}: {refused}");
    }
    field.hub.stop().await;
}

async fn a_placement_that_is_missing_is_told_and_moves_nobody(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["a"]).await;
    field.upgrade(json!({}), json!({})).await;
    let status = field.says("Selected", "False/NoClustersSelected").await;
    assert!(message(&status, "Selected").contains("the Placement default/all does not exist: create it"), "{status:?}");
    field.select(&["a"]).await;
    field.is_complete().await;

    let placements = kube::Api::<drover_api::cluster::Placement>::namespaced(field.world.client(), HOME);
    placements.delete("all", &DeleteParams::default()).await.expect("it can be deleted");
    let status = field.has("it is told", |status| message(status, "Selected").contains("does not exist")).await;
    assert_eq!(said(&status, "Selected").as_deref(), Some("True/ManagedClustersSelected"), "its clusters stay");
    field.hub.stop().await;
}

async fn a_cluster_that_is_deleted_meanwhile_is_let_go(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.platforms(&["a"], Platform::Moves).await;
    field.upgrade(json!({ "maxConcurrency": 2 }), json!({})).await;
    field.is_at("a", "Upgrading/Upgrading").await;
    field.managed().delete("a", &DeleteParams::default()).await.expect("a cluster can be removed");
    let status = field.counts([1, 1, 0, 1, 0, 0]).await;
    assert_eq!(said(&status, "Complete").as_deref(), Some("True/ManagedClustersUpgradeComplete"));
    field.hub.stop().await;
}

async fn what_somebody_else_has_put_in_the_way_is_told(world: World) {
    let field = Field::of(world, &["a"]).await;
    let work = json!({ "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": { "name": "a-cluster-upgrade" },
        "spec": { "workload": { "manifests": [drover_testkit::objects::config_map("x")] } } });
    create(&field.works("a"), serde_json::from_value(work).expect("a work")).await;
    field.upgrade(json!({}), json!({})).await;
    field.is_at("a", "Upgrading/NotDelivered").await;
    let status =
        field.has("it is told", |status| said(status, "Applied").is_some_and(|said| said.ends_with("/Refused"))).await;
    assert!(message(&status, "Applied").contains("a-cluster-upgrade"), "{status:?}");
    field.works("a").delete("a-cluster-upgrade", &DeleteParams::default()).await.expect("it can be removed");
    field.is_complete().await;
    field.hub.stop().await;
}

async fn an_action_that_no_work_can_hold_is_told_and_nothing_is_begun(world: World) {
    let field = Field::of(world, &["a"]).await;
    let mut map = drover_testkit::objects::config_map("large");
    map["data"] = json!({ "text": "x".repeat(600 * 1024) });
    let large = json!({ "manifestWork": { "workload": { "manifests": [map] } } });
    field.upgrade(json!({}), json!({ "preUpgradeAction": large })).await;
    let is_told =
        |status: &super::Status| status.message.as_ref().is_some_and(|said| said.contains("and a work takes"));
    let status = field.has("it is told", is_told).await;
    let said = status.message.unwrap_or_default();
    assert!(said.starts_with("nothing is begun, because spec.preUpgradeAction.manifestWork can not be sent"), "{said}");
    field.settle().await;
    assert_eq!(field.place("a").await.as_deref(), Some("Waiting/Queued"));
    field.change(json!({ "spec": { "preUpgradeAction": super::action("small") } })).await;
    field.is_complete().await;
    field.hub.stop().await;
}

async fn decision_69_ten_thousand_names_do_not_fit_and_are_not_listed(world: World) {
    let names: Vec<_> = (0..40).map(|number| format!("cluster-{number:02}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let field = Field::of(world, &names).await;
    for name in &names {
        field.behave(name, |spoke| "4.13.0".clone_into(&mut spoke.version)).await;
    }
    field.upgrade(json!({ "maxConcurrency": 40 }), json!({})).await;
    let status = field.counts([40, 0, 0, 0, 40, 0]).await;
    assert!(message(&status, "Failed").starts_with("40 clusters failed: cluster-00, cluster-01, cluster-02, …"));
    let upgrade = field.upgrades().get(super::UPGRADE).await.expect("it is there");
    assert!(serde_json::to_vec(&upgrade).expect("JSON").len() < 8 << 10);
    field.hub.stop().await;
}
