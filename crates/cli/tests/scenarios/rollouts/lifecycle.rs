//! The examples of the add-on lifecycle: a fresh install, a rolling upgrade, and a return.

use drover_testkit::{World, play::Behaviour};
use serde_json::{Value, json};

use super::{ADDON, Field, placement, rolling, update_all};

drover_testkit::scenarios! {
    Own {
        a_fresh_install,
        a_rolling_upgrade_moves_a_quarter_at_a_time,
    }
}

/// What a placement publishes of its one configuration, in the flat shape.
async fn hashes(field: &Field, placement: &str) -> Value {
    let addon = field.addons().get(ADDON).await.expect("the add-on is there");
    let status = addon.status.expect("it has a status");
    let progression = status.install_progression.iter().find(|progression| progression.placement.name == placement);
    let reference = &progression.expect("the placement is listed").config_references[0];
    json!({
        "name": reference.config.referent.name,
        "desired": reference.desired_config_spec_hash.to_string(),
        "lastKnownGood": reference.last_known_good_config_spec_hash.to_string(),
        "lastApplied": reference.last_applied_config_spec_hash.to_string(),
    })
}

async fn hash_of(field: &Field, cluster: &str) -> String {
    let addon = field.on(cluster).get(ADDON).await.expect("the add-on is there");
    let status = addon.status.expect("it has a status");
    status.config_references[0].desired_config_spec_hash.clone().expect("it was given something").to_string()
}

async fn a_fresh_install(world: World) {
    let field = Field::new(world).await;
    let clusters = ["c1", "c2", "c3", "c4"];
    field.clusters(&clusters).await;
    for cluster in clusters {
        field.crowd.behave(cluster, Behaviour::Silent);
    }
    field.hub_config("hub-config-xxx", "v0.10.0").await;
    field.select("aws-placement", &clusters).await;
    field.list(&[placement("aws-placement", "hub-config-xxx", update_all())]).await;

    field.says("aws-placement", "True/Installing: 4/4 installing...").await;
    let xxx = hash_of(&field, "c1").await;
    let expected = json!({ "name": "hub-config-xxx", "desired": xxx, "lastKnownGood": "", "lastApplied": "" });
    assert_eq!(hashes(&field, "aws-placement").await, expected);
    field.says_on("c1", "True/Installing: installing...").await;

    for cluster in clusters {
        field.crowd.behave(cluster, Behaviour::Well);
    }
    field.says("aws-placement", "False/InstallSucceed: 4/4 install completed with no errors.").await;
    let expected = json!({ "name": "hub-config-xxx", "desired": xxx, "lastKnownGood": xxx, "lastApplied": xxx });
    assert_eq!(hashes(&field, "aws-placement").await, expected);
    let addon = field.says_on("c1", "False/InstallSucceed: install completed with no errors.").await;
    let reference = &addon.status.expect("it has a status").config_references[0];
    assert_eq!(reference.last_applied_config_spec_hash.as_ref().map(ToString::to_string), Some(xxx));
    field.hub.stop().await;
}

async fn a_rolling_upgrade_moves_a_quarter_at_a_time(world: World) {
    let field = Field::new(world).await;
    let clusters = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];
    field.clusters(&clusters).await;
    field.hub_config("hub-config-xxx", "v0.10.0").await;
    field.hub_config("hub-config-yyy", "v0.11.0").await;
    field.select("aws-placement", &clusters).await;
    field.list(&[placement("aws-placement", "hub-config-xxx", rolling("25%"))]).await;
    field.says("aws-placement", "False/InstallSucceed: 8/8 install completed with no errors.").await;
    let xxx = hash_of(&field, "c1").await;

    for cluster in clusters {
        field.crowd.behave(cluster, Behaviour::Silent);
    }
    field.list(&[placement("aws-placement", "hub-config-yyy", rolling("25%"))]).await;
    field.says("aws-placement", "True/Upgrading: 2/8 upgrading...").await;
    let given = field.given().await;
    let moved: Vec<_> =
        given.iter().filter(|(_, config)| *config == "hub-config-yyy").map(|(name, _)| name.clone()).collect();
    assert_eq!(moved.len(), 2, "{given:?}");
    let yyy = hash_of(&field, &moved[0]).await;
    let expected = json!({ "name": "hub-config-yyy", "desired": yyy, "lastKnownGood": xxx, "lastApplied": xxx });
    assert_eq!(hashes(&field, "aws-placement").await, expected);
    field.says_on(&moved[0], "True/Upgrading: upgrading...").await;

    field.crowd.behave(&moved[0], Behaviour::Well);
    field.says("aws-placement", "True/Upgrading: 3/8 upgrading...").await;
    field.says_on(&moved[0], "False/UpgradeSucceed: upgrade completed with no errors.").await;
    for cluster in clusters {
        field.crowd.behave(cluster, Behaviour::Well);
    }
    field.says("aws-placement", "False/UpgradeSucceed: 8/8 upgrade completed with no errors.").await;
    let expected = json!({ "name": "hub-config-yyy", "desired": yyy, "lastKnownGood": yyy, "lastApplied": yyy });
    assert_eq!(hashes(&field, "aws-placement").await, expected);
    field.hub.stop().await;
}
