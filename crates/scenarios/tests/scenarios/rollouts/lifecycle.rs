//! The examples of the add-on lifecycle: a fresh install, and a rolling upgrade, with the status that each shows.

use drover_testkit::{World, play::Behaviour};

use super::{Field, XXX, YYY, hash_of, placement, published, published_on, rolling, update_all};

drover_testkit::scenarios! {
    Own {
        a_fresh_install,
        a_rolling_upgrade_moves_a_quarter_at_a_time,
    }
}

async fn a_fresh_install(world: World) {
    let field = Field::new(world).await;
    let clusters = ["c1", "c2", "c3", "c4"];
    field.clusters(&clusters).await;
    field.behave(&clusters, Behaviour::Silent);
    field.hub_config(XXX, "v0.10.0").await;
    field.select("aws-placement", &clusters).await;
    field.list(&[placement("aws-placement", XXX, update_all())]).await;

    let xxx = hash_of("v0.10.0");
    let hashes = |hashes: [&str; 3]| (XXX.to_owned(), hashes.map(str::to_owned));
    let addon = field.says("aws-placement", "True/Installing: 4/4 installing...").await;
    assert_eq!(published(&addon, "aws-placement"), hashes([&xxx, "", ""]));
    let on_cluster = field.says_on("c1", "True/Installing: installing...").await;
    assert_eq!(published_on(&on_cluster), (XXX.to_owned(), [xxx.clone(), String::new()]));

    field.behave(&clusters, Behaviour::Well);
    let addon = field.says("aws-placement", "False/InstallSucceed: 4/4 install completed with no errors.").await;
    assert_eq!(published(&addon, "aws-placement"), hashes([&xxx, &xxx, &xxx]));
    let on_cluster = field.says_on("c1", "False/InstallSucceed: install completed with no errors.").await;
    assert_eq!(published_on(&on_cluster), (XXX.to_owned(), [xxx.clone(), xxx]));
    field.hub.stop().await;
}

async fn a_rolling_upgrade_moves_a_quarter_at_a_time(world: World) {
    let clusters = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];
    let field = Field::of_one_placement(world, &clusters, &rolling("25%")).await;
    let (xxx, yyy) = (hash_of("v0.10.0"), hash_of("v0.11.0"));
    let hashes = |hashes: [&String; 3]| (YYY.to_owned(), hashes.map(Clone::clone));

    field.behave(&clusters, Behaviour::Silent);
    field.list(&[placement("aws-placement", YYY, rolling("25%"))]).await;
    let addon = field.says("aws-placement", "True/Upgrading: 2/8 upgrading...").await;
    assert_eq!(published(&addon, "aws-placement"), hashes([&yyy, &xxx, &xxx]));
    let moved = field.clusters_on(YYY).await;
    assert_eq!(moved.len(), 2, "{moved:?}");
    let on_cluster = field.says_on(&moved[0], "True/Upgrading: upgrading...").await;
    assert_eq!(published_on(&on_cluster), (YYY.to_owned(), [yyy.clone(), xxx.clone()]));

    field.behave(&[&moved[0]], Behaviour::Well);
    field.says("aws-placement", "True/Upgrading: 3/8 upgrading...").await;
    let on_cluster = field.says_on(&moved[0], "False/UpgradeSucceed: upgrade completed with no errors.").await;
    assert_eq!(published_on(&on_cluster), (YYY.to_owned(), [yyy.clone(), yyy.clone()]));
    field.behave(&clusters, Behaviour::Well);
    let addon = field.says("aws-placement", "False/UpgradeSucceed: 8/8 upgrade completed with no errors.").await;
    assert_eq!(published(&addon, "aws-placement"), hashes([&yyy, &yyy, &yyy]));
    field.hub.stop().await;
}
