//! Upgrades behind canaries: the examples of the add-on lifecycle with the status that each shows, and its corner cases.

use drover_api::drover::{AddOnRolloutStatus, RolloutOutcome, RolloutRecord};
use drover_testkit::{World, play::Behaviour};

use super::{Field, XXX, YYY, ZZZ, hash_of, progress_of, published, upgrade};

drover_testkit::scenarios! {
    Own {
        an_upgrade_waits_for_its_canaries,
        going_back_while_canaries_try_needs_nobody_behind_them,
        going_back_while_it_rolls_out_needs_no_canary,
        a_new_canary_without_the_add_on_is_installed_as_a_canary,
        a_new_canary_with_the_add_on_follows_the_canaries,
        a_new_cluster_without_the_add_on_gets_what_is_known_to_be_good,
        a_new_cluster_with_the_add_on_waits_for_the_canaries,
        a_new_cluster_of_both_is_a_canary_first,
        canaries_that_change_do_not_stop_what_rolls_out,
        what_rolls_out_comes_to_its_end_before_the_next,
    }
}

const AWS: [&str; 4] = ["a1", "a2", "a3", "a4"];
const CANARIES: [&str; 2] = ["c1", "c2"];
/// What clusters behind the canaries wait for while none of these is done.
const WAITING: &str = "True/WaitingForCanary: waitingForCanary... 2 of 2 canaries are not done, c1 among them";
const DONE: &str = "False/UpgradeSucceed: 4/4 upgrade completed with no errors.";

async fn start(world: World) -> Field {
    Field::behind_canaries(world, &AWS, &CANARIES).await
}

/// All run the first configuration, and the canaries are trying the second.
async fn while_canaries_try(world: World) -> Field {
    let field = start(world).await;
    field.behave(&CANARIES, Behaviour::Silent);
    field.list(&upgrade(YYY)).await;
    field.says("canary-placement", "True/Upgrading: 1/2 upgrading...").await;
    field.says("aws-placement", WAITING).await;
    field
}

/// The canaries run the second configuration, and the first cluster behind them is on its way.
async fn while_it_rolls_out(world: World) -> Field {
    let field = start(world).await;
    field.behave(&AWS, Behaviour::Silent);
    field.list(&upgrade(YYY)).await;
    field.says("aws-placement", "True/Upgrading: 1/4 upgrading...").await;
    field.says("canary-placement", "False/UpgradeSucceed: 2/2 upgrade completed with no errors.").await;
    field
}

fn of(config: &str, hashes: [&String; 3]) -> (String, [String; 3]) {
    (config.to_owned(), hashes.map(Clone::clone))
}

/// How rollouts to the clusters behind the canaries have ended, and how many of these ran what was rolled out.
fn ended(status: &AddOnRolloutStatus) -> Vec<(RolloutOutcome, i32)> {
    let is_of_aws =
        |record: &&RolloutRecord| record.placement.as_ref().is_some_and(|placement| placement.name == "aws-placement");
    let proven = |record: &RolloutRecord| record.clusters.as_ref().map_or(0, |clusters| clusters.proven);
    status.history.iter().filter(is_of_aws).map(|record| (record.outcome, proven(record))).collect()
}

async fn an_upgrade_waits_for_its_canaries(world: World) {
    let field = start(world).await;
    let (xxx, yyy) = (hash_of("v0.10.0"), hash_of("v0.11.0"));
    field.behave(&CANARIES, Behaviour::Silent);
    field.list(&upgrade(YYY)).await;
    let addon = field.says("canary-placement", "True/Upgrading: 1/2 upgrading...").await;
    assert_eq!(published(&addon, "canary-placement"), of(YYY, [&yyy, &xxx, &xxx]));
    let addon = field.says("aws-placement", WAITING).await;
    assert_eq!(published(&addon, "aws-placement"), of(YYY, [&yyy, &xxx, &xxx]));
    let given = field.given().await;
    assert!(AWS.iter().all(|cluster| given[*cluster] == XXX), "{given:?}");

    field.behave(&AWS, Behaviour::Silent);
    field.behave(&CANARIES, Behaviour::Well);
    let addon = field.says("canary-placement", "False/UpgradeSucceed: 2/2 upgrade completed with no errors.").await;
    assert_eq!(published(&addon, "canary-placement"), of(YYY, [&yyy, &yyy, &yyy]));
    let addon = field.says("aws-placement", "True/Upgrading: 1/4 upgrading...").await;
    assert_eq!(published(&addon, "aws-placement"), of(YYY, [&yyy, &yyy, &xxx]));
    let moved = field.clusters_on(YYY).await;
    assert_eq!(moved.len(), 3, "{moved:?}");

    field.behave(&AWS, Behaviour::Well);
    let addon = field.says("aws-placement", DONE).await;
    assert_eq!(published(&addon, "aws-placement"), of(YYY, [&yyy, &yyy, &yyy]));
    field.hub.stop().await;
}

async fn going_back_while_canaries_try_needs_nobody_behind_them(world: World) {
    let field = while_canaries_try(world).await;
    let xxx = hash_of("v0.10.0");
    field.list(&upgrade(XXX)).await;
    // The canary that was on its way to the other is turned around.
    let addon = field.says("canary-placement", "True/Upgrading: 2/2 upgrading...").await;
    assert_eq!(published(&addon, "canary-placement"), of(XXX, [&xxx, &xxx, &xxx]));
    let addon = field.says("aws-placement", "False/InstallSucceed: 4/4 install completed with no errors.").await;
    assert_eq!(published(&addon, "aws-placement"), of(XXX, [&xxx, &xxx, &xxx]));
    assert_eq!(field.clusters_on(YYY).await, [""; 0]);

    field.behave(&CANARIES, Behaviour::Well);
    field.says("canary-placement", "False/UpgradeSucceed: 2/2 upgrade completed with no errors.").await;
    field.hub.stop().await;
}

async fn going_back_while_it_rolls_out_needs_no_canary(world: World) {
    let field = while_it_rolls_out(world).await;
    let (xxx, yyy) = (hash_of("v0.10.0"), hash_of("v0.11.0"));
    field.behave(&CANARIES, Behaviour::Silent);
    field.list(&upgrade(XXX)).await;
    let addon = field.says("canary-placement", "True/Upgrading: 1/2 upgrading...").await;
    assert_eq!(published(&addon, "canary-placement"), of(XXX, [&xxx, &yyy, &yyy]));
    let addon = field.says("aws-placement", "True/Upgrading: 4/4 upgrading...").await;
    assert_eq!(published(&addon, "aws-placement"), of(XXX, [&xxx, &xxx, &xxx]));

    field.behave(&AWS, Behaviour::Well);
    field.says("aws-placement", DONE).await;
    assert_eq!(field.clusters_on(YYY).await.len(), 1, "one canary waits for the other");
    field.behave(&CANARIES, Behaviour::Well);
    field.says("canary-placement", "False/UpgradeSucceed: 2/2 upgrade completed with no errors.").await;
    field.hub.stop().await;
}

async fn a_new_canary_without_the_add_on_is_installed_as_a_canary(world: World) {
    let field = while_canaries_try(world).await;
    field.behave(&["c3"], Behaviour::Silent);
    field.clusters(&["c3"]).await;
    field.select("canary-placement", &["c1", "c2", "c3"]).await;
    field.says("aws-placement", &WAITING.replace("2 of 2", "3 of 3")).await;
    field.behave(&["c1"], Behaviour::Well);
    field.is_given("c3", YYY).await;
    field.says_on("c3", "True/Installing: installing...").await;
    field.hub.stop().await;
}

async fn a_new_canary_with_the_add_on_follows_the_canaries(world: World) {
    let field = while_canaries_try(world).await;
    field.clusters(&["c3"]).await;
    field.install_by_hand("c3").await;
    field.says_on("c3", "False/InstallSucceed: install completed with no errors.").await;
    field.behave(&["c3"], Behaviour::Silent);
    field.select("canary-placement", &["c1", "c2", "c3"]).await;
    // It takes one of the canaries' places like everybody else.
    field.says("canary-placement", "True/Upgrading: 2/3 upgrading...").await;
    field.behave(&CANARIES, Behaviour::Well);
    field.is_given("c3", YYY).await;
    field.says_on("c3", "True/Upgrading: upgrading...").await;
    field.says("aws-placement", "True/WaitingForCanary: waitingForCanary... 1 of 3 canaries is not done: c3").await;
    field.behave(&["c3"], Behaviour::Well);
    field.says("aws-placement", DONE).await;
    field.hub.stop().await;
}

async fn a_new_cluster_without_the_add_on_gets_what_is_known_to_be_good(world: World) {
    let field = while_canaries_try(world).await;
    field.clusters(&["a5"]).await;
    field.select("aws-placement", &["a1", "a2", "a3", "a4", "a5"]).await;
    field.is_given("a5", XXX).await;
    field.says_on("a5", "False/InstallSucceed: install completed with no errors.").await;
    field.says("aws-placement", WAITING).await;
    field.behave(&CANARIES, Behaviour::Well);
    field.says("aws-placement", &DONE.replace("4/4", "5/5")).await;
    field.hub.stop().await;
}

async fn a_new_cluster_with_the_add_on_waits_for_the_canaries(world: World) {
    let field = while_canaries_try(world).await;
    field.clusters(&["a5"]).await;
    field.install_by_hand("a5").await;
    field.says_on("a5", "False/InstallSucceed: install completed with no errors.").await;
    field.select("aws-placement", &["a1", "a2", "a3", "a4", "a5"]).await;
    field
        .remembers("the new cluster counts", |status| {
            progress_of(status, "aws-placement").clusters.as_ref().is_some_and(|clusters| clusters.total == 5)
        })
        .await;
    assert_eq!(field.given().await["a5"], "", "it keeps what it has");
    field.behave(&CANARIES, Behaviour::Well);
    field.says("aws-placement", &DONE.replace("4/4", "5/5")).await;
    assert_eq!(field.given().await["a5"], YYY);
    field.hub.stop().await;
}

async fn a_new_cluster_of_both_is_a_canary_first(world: World) {
    let field = while_canaries_try(world).await;
    field.behave(&AWS, Behaviour::Silent);
    field.clusters(&["b1"]).await;
    // In this order, because a cluster that only the first selects gets what is known to be good there.
    field.select("canary-placement", &["b1", "c1", "c2"]).await;
    field.select("aws-placement", &["a1", "a2", "a3", "a4", "b1"]).await;
    // The canaries may all be on their way by now; who is new is next.
    field.behave(&["c1", "c2"], Behaviour::Well);
    field.is_given("b1", YYY).await;
    // Where it is one of five, it is done, and two may be on their way.
    field.says("aws-placement", "True/Upgrading: 3/5 upgrading...").await;
    field.behave(&AWS, Behaviour::Well);
    field.says("aws-placement", &DONE.replace("4/4", "5/5")).await;
    field.hub.stop().await;
}

async fn canaries_that_change_do_not_stop_what_rolls_out(world: World) {
    let field = while_it_rolls_out(world).await;
    let yyy = hash_of("v0.11.0");
    field.behave(&["c3"], Behaviour::Silent);
    field.clusters(&["c3"]).await;
    field.select("canary-placement", &["c2", "c3"]).await;
    field.is_given("c3", YYY).await;
    field.says("canary-placement", "True/Upgrading: 2/2 upgrading...").await;
    field.behave(&AWS, Behaviour::Well);
    let addon = field.says("aws-placement", DONE).await;
    assert_eq!(published(&addon, "aws-placement"), of(YYY, [&yyy, &yyy, &yyy]));
    field.hub.stop().await;
}

async fn what_rolls_out_comes_to_its_end_before_the_next(world: World) {
    let field = while_it_rolls_out(world).await;
    let (xxx, yyy, zzz) = (hash_of("v0.10.0"), hash_of("v0.11.0"), hash_of("v0.12.0"));
    field.list(&upgrade(ZZZ)).await;
    for canary in CANARIES {
        field.is_given(canary, ZZZ).await;
        field.says_on(canary, "False/UpgradeSucceed: upgrade completed with no errors.").await;
    }
    let addon = field.says("aws-placement", "True/Upgrading: 1/4 upgrading...").await;
    assert_eq!(published(&addon, "aws-placement"), of(ZZZ, [&zzz, &yyy, &xxx]));
    assert_eq!(field.clusters_on(YYY).await.len(), 1);

    field.behave(&AWS, Behaviour::Well);
    field.is_given("a1", ZZZ).await;
    let complete = (RolloutOutcome::Complete, 4);
    field.remembers("all three came to their end", |status| ended(status) == [complete; 3]).await;
    let addon = field.says("aws-placement", DONE).await;
    assert_eq!(published(&addon, "aws-placement"), of(ZZZ, [&zzz, &zzz, &zzz]));
    field.hub.stop().await;
}
