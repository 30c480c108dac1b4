//! What clusters run, and what they can be upgraded to.

use drover_engine::upgrade::naming::Part;
use drover_testkit::World;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::{
    Field, TO, operators,
    spokes::{FROM, Platform},
};

drover_testkit::scenarios! {
    Own {
        decision_45_who_is_there_is_done_and_nobody_is_downgraded,
        decision_46_a_cluster_without_an_update_path_waits,
        decision_47_a_cluster_that_is_not_upgradeable_waits_for_a_minor_step_only,
        decision_48_a_channel_alone_is_reached_when_it_is_observed,
        what_an_agent_can_not_apply_is_told,
        decision_49_that_somebody_else_asks_for_something_else_is_told,
        decisions_10a_10b_and_50_the_work_sets_what_it_names_and_keeps_the_cluster_version,
        decision_72_what_a_cluster_says_beats_what_is_stored,
    }
}

async fn claim(field: &Field, cluster: &str, version: &str) {
    let status = json!({ "status": { "clusterClaims": [{ "name": "version.openshift.io", "value": version }] } });
    let patch = Patch::Merge(status);
    field.managed().patch_status(cluster, &PatchParams::default(), &patch).await.expect("a cluster has claims");
}

async fn decision_45_who_is_there_is_done_and_nobody_is_downgraded(world: World) {
    let field = Field::of(world, &["claims", "tells", "beyond", "tells-beyond"]).await;
    claim(&field, "claims", TO).await;
    claim(&field, "beyond", "4.13.1").await;
    field.behave("tells", |spoke| TO.clone_into(&mut spoke.version)).await;
    field.behave("tells-beyond", |spoke| "4.12.1".clone_into(&mut spoke.version)).await;
    field.upgrade(json!({ "maxConcurrency": 4 }), json!({ "preUpgradeAction": super::action("backup") })).await;
    field.is_at("claims", "Complete/AlreadyAtTarget").await;
    field.is_at("tells", "Complete/AlreadyAtTarget").await;
    for (cluster, version) in [("beyond", "4.13.1"), ("tells-beyond", "4.12.1")] {
        let record = field.is_at(cluster, "Failed/Downgrade").await.status.expect("it was waited for");
        assert!(
            record.message.unwrap_or_default().contains(&format!("runs {version}, and 4.12.0 would be a downgrade"))
        );
    }
    let status = field.counts([4, 2, 0, 2, 2, 0]).await;
    assert_eq!(status.pre_upgrade_action_summary.unwrap_or_default().total, 0);
    for cluster in ["claims", "beyond"] {
        field.has_parts(cluster, &[]).await;
        field.is_nobodys(cluster).await;
    }
    field.hub.stop().await;
}

fn knows(values: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    values.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

async fn decision_46_a_cluster_without_an_update_path_waits(world: World) {
    let field = Field::of(world, &["a", "b", "c"]).await;
    field.behave("a", |spoke| spoke.preflight = knows(&[("retrieved", "True"), ("channel", "stable-4.12")])).await;
    field
        .behave("b", |spoke| {
            spoke.preflight = knows(&[("retrieved", "True"), ("channel", "stable-4.12"), ("conditionalUpdate", TO)]);
        })
        .await;
    // It has not asked in the channel that it is moved to.
    field.behave("c", |spoke| spoke.preflight = knows(&[("retrieved", "True"), ("channel", "stable-4.11")])).await;
    field.upgrade(json!({}), json!({})).await;
    let record = field.is_at("a", "Waiting/NoUpdatePath").await.status.expect("it was waited for");
    assert!(record.message.unwrap_or_default().contains("no update from 4.11.30 to 4.12.0"));
    field.is_at("b", "Complete/Upgraded").await;
    field.is_at("c", "Complete/Upgraded").await;
    field.behave("a", |spoke| spoke.preflight.push(("update", TO.to_owned()))).await;
    field.is_complete().await;
    field.hub.stop().await;
}

async fn decision_47_a_cluster_that_is_not_upgradeable_waits_for_a_minor_step_only(world: World) {
    let field = Field::of(world, &["minor", "patch"]).await;
    let not = knows(&[("upgradeable", "False"), ("upgradeableMessage", "an acknowledgement is needed")]);
    for (cluster, version) in [("minor", FROM), ("patch", "4.12.0-rc.1")] {
        let not = not.clone();
        field.behave(cluster, |spoke| (spoke.preflight, spoke.version) = (not, version.to_owned())).await;
    }
    field.upgrade(json!({}), json!({})).await;
    let record = field.is_at("minor", "Waiting/NotUpgradeable").await.status.expect("it was waited for");
    assert!(record.message.unwrap_or_default().ends_with("an acknowledgement is needed"));
    field.is_at("patch", "Complete/Upgraded").await;
    field.is_nobodys("minor").await;
    field.behave("minor", |spoke| spoke.preflight.clear()).await;
    field.is_complete().await;
    field.hub.stop().await;
}

async fn decision_48_a_channel_alone_is_reached_when_it_is_observed(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.behave("a", |spoke| spoke.preflight = knows(&[("channel", "stable-4.12")])).await;
    field.upgrade(json!({}), json!({ "clusterVersion": { "channel": "stable-4.12" } })).await;
    field.is_at("a", "Complete/AlreadyAtTarget").await;
    let refused = field.refuses(json!({ "spec": { "clusterVersion": { "channel": null } } })).await;
    assert!(refused.contains("say what to upgrade to"), "{refused}");
    field.hub.stop().await;
}

async fn what_an_agent_can_not_apply_is_told(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.platforms(&["a"], Platform::Refused).await;
    field.upgrade(json!({}), json!({})).await;
    let record = field.is_at("a", "Upgrading/NotApplied").await.status.expect("it was waited for");
    assert!(record.message.unwrap_or_default().ends_with("clusterversions is forbidden"));
    field.platforms(&["a"], Platform::Completes).await;
    field.is_complete().await;
    field.hub.stop().await;
}

async fn decision_49_that_somebody_else_asks_for_something_else_is_told(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.platforms(&["a"], Platform::Contested).await;
    field.upgrade(json!({}), json!({})).await;
    let record = field.is_at("a", "Upgrading/Contested").await.status.expect("it was waited for");
    assert!(record.message.unwrap_or_default().contains("for 4.13.0 instead of 4.12.0"));
    // Once it has got there, it is not asked to go back.
    field.platforms(&["a"], Platform::Overtaken).await;
    let record = field.is_at("a", "Failed/Overtaken").await.status.expect("it was waited for");
    assert!(record.message.unwrap_or_default().contains("has upgraded the cluster to 4.13.0"));
    field.has_parts("a", &[]).await;
    field.is_nobodys("a").await;
    field.hub.stop().await;
}

async fn decisions_10a_10b_and_50_the_work_sets_what_it_names_and_keeps_the_cluster_version(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.platforms(&["a"], Platform::Moves).await;
    field.upgrade(json!({}), json!({ "ocpOperators": operators() })).await;
    let work = field.work("a", Part::Platform).await;
    assert_eq!(work.metadata.name.as_deref(), Some("a-cluster-upgrade"));
    let spec = serde_json::to_value(&work.spec).expect("JSON");
    let rule = &spec["deleteOption"]["selectivelyOrphans"]["orphaningRules"][0];
    let rule = ["group", "resource", "name"].map(|field| rule[field].as_str().unwrap_or_default());
    assert_eq!(rule, ["config.openshift.io", "clusterversions", "version"]);
    let manifests: Vec<&Value> = work.spec.manifests().iter().collect();
    let version = manifests.iter().find(|manifest| manifest["kind"] == "ClusterVersion").expect("it is there");
    assert_eq!(
        version["spec"],
        json!({ "channel": "stable-4.12", "desiredUpdate": { "version": TO } }),
        "no clusterID, no force"
    );
    let role = manifests.iter().find(|manifest| manifest["kind"] == "ClusterRole").expect("it is there");
    assert_eq!(role["rules"][0]["resources"], json!(["clusterversions"]));
    let binding = manifests.iter().find(|manifest| manifest["kind"] == "ClusterRoleBinding").expect("it is there");
    assert_ne!(binding["roleRef"]["name"], "cluster-admin");
    field.platforms(&["a"], Platform::Completes).await;
    field.is_complete().await;
    field.hub.stop().await;
}

async fn decision_72_what_a_cluster_says_beats_what_is_stored(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    field.platforms(&["a", "b"], Platform::Moves).await;
    field.upgrade(json!({}), json!({})).await;
    field.counts([2, 1, 1, 0, 0, 1]).await;
    let waiting = if field.place("a").await.as_deref() == Some("Upgrading/Upgrading") { "b" } else { "a" };
    field.behave(waiting, |spoke| TO.clone_into(&mut spoke.version)).await;
    field.is_at(waiting, "Complete/AlreadyAtTarget").await;
    field.hub.stop().await;
}
