//! Upgrades behind canaries: the example, and its corner cases.

use drover_testkit::{World, play::Behaviour};

use super::{Field, behind, placement, rolling};

drover_testkit::scenarios! {
    Own {
        an_upgrade_waits_for_its_canaries,
    }
}

async fn an_upgrade_waits_for_its_canaries(world: World) {
    let field = Field::new(world).await;
    let (aws, canaries) = (["a1", "a2", "a3", "a4"], ["c1", "c2"]);
    field.clusters(&aws).await;
    field.clusters(&canaries).await;
    field.hub_config("hub-config-xxx", "v0.10.0").await;
    field.hub_config("hub-config-yyy", "v0.11.0").await;
    field.select("aws-placement", &aws).await;
    field.select("canary-placement", &canaries).await;
    let list = |config: &str| {
        [
            placement("aws-placement", config, behind("canary-placement", "25%")),
            placement("canary-placement", config, rolling("50%")),
        ]
    };
    field.list(&list("hub-config-xxx")).await;
    field.says("aws-placement", "False/InstallSucceed: 4/4 install completed with no errors.").await;

    field.crowd.behave("c1", Behaviour::Silent);
    field.crowd.behave("c2", Behaviour::Silent);
    field.list(&list("hub-config-yyy")).await;
    field.says("canary-placement", "True/Upgrading: 1/2 upgrading...").await;
    field
        .says("aws-placement", "True/WaitingForCanary: waitingForCanary... 2 of 2 canaries are not done, c1 among them")
        .await;
    let given = field.given().await;
    assert!(aws.iter().all(|cluster| given[*cluster] == "hub-config-xxx"), "{given:?}");

    for cluster in aws {
        field.crowd.behave(cluster, Behaviour::Silent);
    }
    field.crowd.behave("c1", Behaviour::Well);
    field.crowd.behave("c2", Behaviour::Well);
    field.says("canary-placement", "False/UpgradeSucceed: 2/2 upgrade completed with no errors.").await;
    field.says("aws-placement", "True/Upgrading: 1/4 upgrading...").await;
    for cluster in aws {
        field.crowd.behave(cluster, Behaviour::Well);
    }
    field.says("aws-placement", "False/UpgradeSucceed: 4/4 upgrade completed with no errors.").await;
    field.hub.stop().await;
}
