//! OCM's own strategies, with their decision groups, and without the defects that OCM has, or had, in them.

use std::time::Duration;

use drover_api::names::{DECISION_GROUP_INDEX_LABEL, DECISION_GROUP_NAME_LABEL};
use drover_testkit::{World, play::Behaviour};
use serde_json::{Value, json};

use super::{Field, XXX, YYY, placement, progress_of, rolling};

drover_testkit::scenarios! {
    Own {
        mandatory_groups_come_first,
        groups_come_one_after_the_other_over_gaps,
        clusters_of_another_placement_hold_up_no_group,
        clusters_that_sort_first_do_not_exceed_the_window,
        mandatory_groups_leave_the_window_sliding,
        a_budget_above_all_clusters_tolerates_all,
        an_update_long_after_the_install_still_goes_by_the_window,
    }
}

/// A decision group: its index, its name, and its clusters.
type Group<'a> = (u32, &'a str, &'a [&'a str]);

fn progressive(settings: &Value) -> Value {
    json!({ "type": "Progressive", "progressive": settings })
}

fn per_group(settings: &Value) -> Value {
    json!({ "type": "ProgressivePerGroup", "progressivePerGroup": settings })
}

/// Clusters in decision groups, all of which run the first configuration, and do nothing any more.
async fn start(world: World, groups: &[Group<'_>], strategy: &Value) -> Field {
    let field = Field::new(world).await;
    field.hub_configs().await;
    let all: Vec<&str> = groups.iter().flat_map(|(_, _, clusters)| clusters.iter().copied()).collect();
    field.clusters(&all).await;
    field.select("grouped", &[]).await;
    for (index, name, clusters) in groups {
        let index = index.to_string();
        let labels = [(DECISION_GROUP_INDEX_LABEL, index.as_str()), (DECISION_GROUP_NAME_LABEL, name)];
        field.decide(&format!("grouped-{index}"), "grouped", &labels, clusters).await;
    }
    field.list(&[placement("grouped", XXX, strategy.clone())]).await;
    let total = all.len();
    field.says("grouped", &format!("False/InstallSucceed: {total}/{total} install completed with no errors.")).await;
    field.behave(&all, Behaviour::Silent);
    field
}

/// Waits until exactly these have been given the second configuration.
async fn are_moved(field: &Field, clusters: &[&str]) {
    for cluster in clusters {
        field.is_given(cluster, YYY).await;
    }
    assert_eq!(field.clusters_on(YYY).await, clusters);
}

async fn want(field: &Field, strategy: &Value) {
    field.list(&[placement("grouped", YYY, strategy.clone())]).await;
}

async fn mandatory_groups_come_first(world: World) {
    let strategy = progressive(&json!({ "maxConcurrency": 2, "mandatoryDecisionGroups": [{ "groupName": "dev" }] }));
    let field = start(world, &[(0, "prod", &["a1", "a2", "a3"]), (1, "dev", &["d1"])], &strategy).await;
    want(&field, &strategy).await;
    field.says("grouped", "True/Upgrading: 1/4 upgrading...").await;
    are_moved(&field, &["d1"]).await;
    field.behave(&["d1"], Behaviour::Well);
    field.says("grouped", "True/Upgrading: 3/4 upgrading...").await;
    are_moved(&field, &["a1", "a2", "d1"]).await;
    field.behave(&["a1", "a2", "a3"], Behaviour::Well);
    field.says("grouped", "False/UpgradeSucceed: 4/4 upgrade completed with no errors.").await;
    field.hub.stop().await;
}

async fn groups_come_one_after_the_other_over_gaps(world: World) {
    let strategy = per_group(&json!({}));
    let groups: [Group; 3] = [(0, "", &["c5", "c6"]), (2, "", &["c3", "c4"]), (7, "", &["c1"])];
    let field = start(world, &groups, &strategy).await;
    want(&field, &strategy).await;
    field.says("grouped", "True/Upgrading: 2/5 upgrading...").await;
    are_moved(&field, &["c5", "c6"]).await;
    field.behave(&["c5", "c6"], Behaviour::Well);
    field.says("grouped", "True/Upgrading: 4/5 upgrading...").await;
    are_moved(&field, &["c3", "c4", "c5", "c6"]).await;
    field.behave(&["c1", "c3", "c4"], Behaviour::Well);
    field.says("grouped", "False/UpgradeSucceed: 5/5 upgrade completed with no errors.").await;
    field.hub.stop().await;
}

async fn clusters_of_another_placement_hold_up_no_group(world: World) {
    let strategy = per_group(&json!({}));
    let field = start(world, &[(0, "", &["c1", "c2"]), (1, "", &["c3", "c4"])], &strategy).await;
    field.select("later", &["c1", "c2"]).await;
    field.list(&[placement("grouped", YYY, strategy), placement("later", XXX, rolling("100%"))]).await;
    field.says("grouped", "True/Upgrading: 2/2 upgrading...").await;
    are_moved(&field, &["c3", "c4"]).await;
    field.hub.stop().await;
}

async fn clusters_that_sort_first_do_not_exceed_the_window(world: World) {
    let strategy = progressive(&json!({ "maxConcurrency": 2 }));
    let field = start(world, &[(0, "", &["c3", "c4", "c5", "c6"])], &strategy).await;
    want(&field, &strategy).await;
    field.says("grouped", "True/Upgrading: 2/4 upgrading...").await;
    are_moved(&field, &["c3", "c4"]).await;
    field.behave(&["c1", "c2"], Behaviour::Silent);
    field.clusters(&["c1", "c2"]).await;
    field.decide("grouped-1", "grouped", &[(DECISION_GROUP_INDEX_LABEL, "1")], &["c1", "c2"]).await;
    field.says("grouped", "True/Upgrading: 2/6 upgrading...").await;
    are_moved(&field, &["c3", "c4"]).await;
    field.behave(&["c4"], Behaviour::Well);
    field.says("grouped", "True/Upgrading: 3/6 upgrading...").await;
    are_moved(&field, &["c1", "c3", "c4"]).await;
    field.hub.stop().await;
}

async fn mandatory_groups_leave_the_window_sliding(world: World) {
    let strategy = progressive(&json!({ "maxConcurrency": 2, "mandatoryDecisionGroups": [{ "groupIndex": 1 }] }));
    let field = start(world, &[(0, "", &["a1", "a2", "a3"]), (1, "", &["d1"])], &strategy).await;
    field.behave(&["d1"], Behaviour::Well);
    want(&field, &strategy).await;
    field.says("grouped", "True/Upgrading: 3/4 upgrading...").await;
    are_moved(&field, &["a1", "a2", "d1"]).await;
    // One is done, the other is not: the next begins.
    field.behave(&["a1"], Behaviour::Well);
    field.says("grouped", "True/Upgrading: 4/4 upgrading...").await;
    are_moved(&field, &["a1", "a2", "a3", "d1"]).await;
    field.hub.stop().await;
}

async fn a_budget_above_all_clusters_tolerates_all(world: World) {
    let strategy = progressive(&json!({ "maxConcurrency": 1, "maxFailures": 99 }));
    let field = start(world, &[(0, "", &["c1", "c2"])], &strategy).await;
    want(&field, &strategy).await;
    field.says("grouped", "True/Upgrading: 1/2 upgrading...").await;
    field.fail("c1").await;
    field.pass(Duration::from_mins(1));
    field.says("grouped", "True/Upgrading: 2/2 upgrading... 1 failed.").await;
    field.fail("c2").await;
    field.pass(Duration::from_mins(1));
    field.says("grouped", "True/Upgrading: 2/2 upgrading... 2 failed.").await;
    field.hub.stop().await;
}

/// ocm#1201: the time from which a cluster has to stay well was that of the install, so that an update came to all clusters at once.
async fn an_update_long_after_the_install_still_goes_by_the_window(world: World) {
    let strategy = progressive(&json!({ "maxConcurrency": 1, "minSuccessTime": "10m" }));
    let field = Field::new(world).await;
    field.hub_configs().await;
    field.clusters(&["c1", "c2", "c3"]).await;
    field.select("grouped", &["c1", "c2", "c3"]).await;
    field.list(&[placement("grouped", XXX, update_at_once())]).await;
    field.says("grouped", "False/InstallSucceed: 3/3 install completed with no errors.").await;
    field.list(&[placement("grouped", XXX, strategy.clone())]).await;
    field.pass(Duration::from_hours(24));

    want(&field, &strategy).await;
    for moved in [&["c1"][..], &["c1", "c2"], &["c1", "c2", "c3"]] {
        let done = i32::try_from(moved.len()).expect("a few");
        field
            .remembers("the next has got there", |status| {
                let progress = progress_of(status, "grouped");
                let clusters = progress.clusters.clone().unwrap_or_default();
                progress.wanted != progress.last_applied && clusters.proven == done
            })
            .await;
        are_moved(&field, moved).await;
        field.pass(Duration::from_mins(10));
    }
    field.says("grouped", "False/UpgradeSucceed: 3/3 upgrade completed with no errors.").await;
    field.hub.stop().await;
}

fn update_at_once() -> Value {
    json!({ "type": "All" })
}
