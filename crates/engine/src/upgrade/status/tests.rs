//! What is said of upgrades as a whole, beside the examples that users read.

use std::time::Duration;

use drover_api::cluster::ManagedClustersUpgrade;

use super::*;
use crate::upgrade::{
    member::{ActionTally, Standing},
    plan::{Member, Turn},
};

const QUEUED: Standing = Standing::Queued { is_claimed: false };
const FAILED: Standing = Standing::Failed { was_begun: true, is_moving: false };
const NONE: ActionTally = ActionTally { total: false, applied: false, available: false, degraded: false };
const RUNNING: ActionTally = ActionTally { total: true, applied: true, available: false, degraded: false };
const DONE_WITH: ActionTally = ActionTally { available: true, ..RUNNING };
const DEGRADED: ActionTally = ActionTally { degraded: true, ..RUNNING };

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).expect("a time")
}

/// A fleet of dev1, which is the canary, dev2 and so on, with the actions before and after.
fn fleet(members: &[(Standing, ActionTally, ActionTally)]) -> Fleet {
    let mut fleet = Fleet::default();
    for (index, (standing, pre_action, post_action)) in members.iter().enumerate() {
        let name: ClusterName = format!("dev{}", index + 1).into();
        let turn = Turn::of(&name, None, "default/up", 0, false);
        let took = (*standing == Standing::Complete).then_some(Duration::from_hours(1));
        let (is_canary, standing) = (index == 0, standing.clone());
        let (pre_action, post_action) = (*pre_action, *post_action);
        let member = Member { is_canary, is_selected: true, turn, standing, pre_action, post_action, took };
        fleet.update(&name, Some(member));
    }
    fleet
}

fn facts<'a>(fleet: &'a Fleet, hold: Option<&'a Hold>, passed: Option<&'a Passed>) -> Facts<'a> {
    Facts {
        stored: None,
        generation: Some(1),
        fleet,
        hold,
        passed,
        has_canaries: true,
        outside: Vec::new(),
        unclear: Vec::new(),
        complaints: Vec::new(),
        refusal: None,
        acknowledged: None,
        limit: 2,
        now: at(0),
    }
}

/// A status as users read it: each condition in its words.
fn words(status: &Status) -> Vec<(&str, &str, &str, &str)> {
    let of_the_specification = status.conditions.iter().filter(|condition| condition.type_ != CANARIES_SELECTED);
    of_the_specification.map(|said| (&*said.type_, &*said.status, &*said.reason, &*said.message)).collect()
}

fn example(file: &str) -> Status {
    let path = format!("{}/../../examples/cluster-upgrade/status/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let upgrade: ManagedClustersUpgrade =
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    upgrade.status.expect("a status")
}

#[test]
fn the_examples_say_what_is_said() {
    let passed = Passed { target: drover_api::grammar::SetFingerprint::of([1; 8]), time: at(0) };
    let waiting = (QUEUED, NONE, NONE);
    let done = (Standing::Complete, DONE_WITH, DONE_WITH);
    let under_way = (Standing::Partial, DONE_WITH, NONE);
    let canaries = Hold::Canaries { done: 0, total: 1 };
    let failed = Hold::CanaryFailed { failed: "dev1".into() };
    let rest = [waiting.clone(), waiting.clone(), waiting.clone()];
    let with_canary = |canary| [vec![canary], rest.to_vec()].concat();
    let cases = [
        ("01-preparing.yaml", with_canary((Standing::Preparing, RUNNING, NONE)), Some(&canaries), None),
        ("02-in-progress.yaml", vec![done.clone(), under_way.clone(), under_way, waiting], None, Some(&passed)),
        ("03-complete.yaml", vec![done; 4], None, Some(&passed)),
        ("04-canary-failed.yaml", with_canary((FAILED, DONE_WITH, DEGRADED)), Some(&failed), None),
    ];
    for (file, members, hold, passed) in cases {
        let (fleet, expected) = (fleet(&members), example(file));
        let status = facts(&fleet, hold, passed).status();
        assert_eq!(status.clusters_summery, expected.clusters_summery, "{file}");
        assert_eq!(status.canary_clusters_summery, expected.canary_clusters_summery, "{file}");
        assert_eq!(status.pre_upgrade_action_summary, expected.pre_upgrade_action_summary, "{file}");
        assert_eq!(status.post_upgrade_action_summary, expected.post_upgrade_action_summary, "{file}");
        assert_eq!(words(&status), words(&expected), "{file}");
    }
}

#[test]
fn who_is_not_selected_any_more_is_counted_and_told() {
    let done = (Standing::Complete, NONE, NONE);
    let mut fleet = fleet(&[done.clone(), done.clone(), done]);
    let selected = |fleet: &Fleet| {
        let status = facts(fleet, None, None).status();
        let said = status.conditions.iter().find(|condition| condition.type_ == SELECTED).expect("a condition");
        (said.status.clone(), said.message.clone(), status.clusters_summery.expect("counts").total)
    };
    for (left, message) in [
        ("dev3", "ManagedClusters upgrade select 2 clusters; 1 cluster besides, not selected any more"),
        ("dev2", "ManagedClusters upgrade select 1 cluster; 2 clusters besides, not selected any more"),
    ] {
        let member = Member { is_selected: false, ..fleet.member(&left.into()).expect("a member").clone() };
        fleet.update(&left.into(), Some(member));
        assert_eq!(selected(&fleet), ("True".to_owned(), message.to_owned(), 3));
    }
}

#[test]
fn what_everybody_waits_for_is_in_the_message() {
    let of = |standings: &[Standing]| -> Vec<_> { standings.iter().map(|one| (one.clone(), NONE, NONE)).collect() };
    let message = |standings: &[Standing]| facts(&fleet(&of(standings)), None, None).status().message;
    assert_eq!(message(&[Standing::Complete]), None);
    assert_eq!(message(&[Standing::Partial, QUEUED]), None, "there is a place left");
    let full = message(&[Standing::Partial, Standing::Begun, QUEUED]).unwrap_or_default();
    assert_eq!(full, "as many are being upgraded as may be at a time: 2");
    let failed = message(&[Standing::Complete, FAILED, Standing::Barred]).unwrap_or_default();
    assert_eq!(
        failed,
        "1 cluster can not be begun: see their ClusterUpgrades; 1 cluster failed: see their ClusterUpgrades"
    );
    assert!(message(&[]).unwrap_or_default().starts_with("ManagedClusters upgrade select no cluster"));
}

#[test]
fn an_estimate_waits_for_the_soak_and_is_nobodys_while_somebody_has_to_act() {
    let fleet = fleet(&[(Standing::Complete, NONE, NONE), (QUEUED, NONE, NONE)]);
    let estimate = |hold: &Hold| facts(&fleet, Some(hold), None).status().estimated_completion;
    assert_eq!(estimate(&Hold::Soak { until: at(7200) }), Some(Time(at(3 * 3600))));
    for hold in [Hold::Paused, Hold::CanaryFailed { failed: "dev1".into() }, Hold::Failures { failed: 1, allowed: 0 }] {
        assert_eq!(estimate(&hold), None, "{hold}");
    }
}

#[test]
fn an_end_with_failures_is_not_taken_for_success() {
    let of = |standings: &[Standing]| -> Vec<_> { standings.iter().map(|one| (one.clone(), NONE, NONE)).collect() };
    let reason = |standings: &[Standing], type_: &str| {
        let fleet = fleet(&of(standings));
        let status = facts(&fleet, None, None).status();
        let condition = status.conditions.iter().find(|condition| condition.type_ == type_).expect("a condition");
        (condition.status.clone(), condition.reason.clone(), status.phase.expect("a phase"))
    };
    let mixed = [Standing::Complete, FAILED];
    let finished = "ManagedClustersUpgradeFinishedWithFailures";
    assert_eq!(reason(&mixed, COMPLETE), ("False".to_owned(), finished.to_owned(), UpgradePhase::Failed));
    assert_eq!(reason(&mixed, FAILED_CONDITION), ("True".to_owned(), finished.to_owned(), UpgradePhase::Failed));
    let all = [FAILED, FAILED];
    assert_eq!(reason(&all, COMPLETE).1, "ManagedClustersUpgradeFailed");
    // As long as something happens yet, it is not over.
    let going = [FAILED, Standing::Partial];
    assert_eq!(reason(&going, COMPLETE).1, "ManagedClustersUpgradeInProgress");
    assert_ne!(reason(&going, COMPLETE).2, UpgradePhase::Failed);
}

const FAILED_CONDITION: &str = super::FAILED;

#[test]
fn an_estimate_changes_with_the_counts_and_at_no_other_time() {
    let done = (Standing::Complete, NONE, NONE);
    let waiting = (QUEUED, NONE, NONE);
    let early = fleet(&[done.clone(), waiting.clone(), waiting.clone(), waiting.clone()]);
    let first = facts(&early, None, None).status();
    // Three are left, two at a time, an hour each.
    assert_eq!(first.estimated_completion, Some(Time(at(2 * 3600))));
    let again = Facts { stored: Some(&first), now: at(600), ..facts(&early, None, None) }.status();
    assert_eq!(again.estimated_completion, first.estimated_completion);
    let further = fleet(&[done.clone(), done.clone(), waiting.clone(), waiting]);
    let later = Facts { stored: Some(&again), now: at(600), ..facts(&further, None, None) }.status();
    assert_eq!(later.estimated_completion, Some(Time(at(600 + 3600))));
    let all = fleet(&[done.clone(), done]);
    assert_eq!(facts(&all, None, None).status().estimated_completion, None);
}

#[test]
fn what_holds_an_upgrade_up_is_said() {
    let held = fleet(&[(QUEUED, NONE, NONE)]);
    let paused = facts(&held, Some(&Hold::Paused), None).status();
    assert_eq!((paused.phase, paused.message), (Some(UpgradePhase::Paused), Some(Hold::Paused.to_string())));
    let barred = fleet(&[(Standing::Barred, NONE, NONE), (Standing::Complete, NONE, NONE)]);
    let stuck = facts(&barred, None, None).status().message.expect("a message");
    assert!(stuck.starts_with("1 cluster can not be begun"), "{stuck}");
    let nobody = Fleet::default();
    let empty = facts(&nobody, None, None).status();
    let selected = empty.conditions.iter().find(|condition| condition.type_ == SELECTED).expect("a condition");
    assert_eq!((selected.status.as_str(), selected.reason.as_str()), ("False", "NoClustersSelected"));
    let outside = Facts { outside: vec!["dev9"], ..facts(&held, None, None) }.status();
    let canaries =
        outside.conditions.iter().find(|condition| condition.type_ == CANARIES_SELECTED).expect("a condition");
    assert_eq!((canaries.status.as_str(), canaries.reason.as_str()), ("True", "CanariesOutsideSelection"));
    assert!(canaries.message.contains("dev9"), "{}", canaries.message);
}
