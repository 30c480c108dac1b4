//! Whose turn it is in fleets that are small enough to see.

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).expect("a time")
}

fn target() -> SetFingerprint {
    SetFingerprint::of([1; 8])
}

const QUEUED: Standing = Standing::Queued { is_claimed: false };
const CLAIMED: Standing = Standing::Queued { is_claimed: true };
const FAILED: Standing = Standing::Failed { was_begun: true, is_moving: false };
const BEYOND: Standing = Standing::Failed { was_begun: false, is_moving: false };
const MOVING: Standing = Standing::Failed { was_begun: true, is_moving: true };

/// Clusters, by name, and how they stand.
type Members = &'static [(&'static str, Standing)];

/// A cluster that stands so. Its name says what else there is to it: a canary, the hub, and its priority.
fn member(name: &str, standing: Standing) -> Member {
    let is_hub = name.starts_with("hub");
    let priority = name.split('@').nth(1).map_or(0, |priority| priority.parse().expect("a number"));
    Member {
        is_canary: name.starts_with("canary"),
        is_selected: true,
        turn: Turn::of(&name.into(), None, "default/up", priority, is_hub),
        standing,
        pre_action: ActionTally::default(),
        post_action: ActionTally::default(),
        took: None,
    }
}

fn fleet(members: &[(&str, Standing)]) -> Fleet {
    let mut fleet = Fleet::default();
    for (name, standing) in members {
        fleet.update(&(*name).into(), Some(member(name, standing.clone())));
    }
    fleet
}

fn strategy(limit: usize, has_canaries: bool) -> Strategy {
    Strategy { limit, has_canaries, soak: Duration::ZERO, max_failures: None }
}

fn plan(members: &[(&str, Standing)], strategy: &Strategy) -> Plan {
    fleet(members).plan(strategy, &target(), None, false, at(0))
}

/// Who may do what, in the order of turns.
fn permits(plan: &Plan) -> Vec<String> {
    plan.permits.iter().map(|(name, permit)| format!("{} {permit:?}", name.as_str())).collect()
}

#[test]
fn no_more_are_begun_than_there_are_places() {
    let cases: [(Members, usize, &[&str]); 8] = [
        (&[("a", Standing::Ready)], 1, &["a Start"]),
        (&[("a", Standing::Ready), ("b", Standing::Begun)], 1, &[]),
        (&[("a", Standing::Ready), ("b", Standing::Partial)], 2, &["a Start"]),
        (&[("a", Standing::Ready), ("b", Standing::Begun), ("c", Standing::Partial)], 1, &[]),
        (&[("a", QUEUED), ("b", Standing::Partial)], 1, &["a Prepare"]),
        (&[("a", QUEUED), ("b", Standing::Ready), ("c", Standing::Partial)], 1, &[]),
        (&[("a", QUEUED), ("b", Standing::Barred), ("c", FAILED)], 1, &["a Prepare"]),
        (&[("a", Standing::Barred), ("b", Standing::Complete)], 3, &[]),
    ];
    for (members, limit, expected) in cases {
        assert_eq!(permits(&plan(members, &strategy(limit, false))), expected, "{members:?}");
    }
}

#[test]
fn the_order_of_turns_is_the_same_for_everybody() {
    let members = [("x@5", QUEUED), ("y@-1", QUEUED), ("canary@9", QUEUED), ("z@2", QUEUED), ("w@5", CLAIMED)];
    let passed = Passed { target: target(), time: at(-1) };
    let order = |members: &[(&str, Standing)]| {
        let plan = fleet(members).plan(&strategy(9, true), &target(), Some(&passed), false, at(0));
        permits(&plan)
    };
    let expected = ["w@5 Prepare", "canary@9 Prepare", "y@-1 Prepare", "z@2 Prepare", "x@5 Prepare"];
    assert_eq!(order(&members), expected, "those who were promised one, canaries, then by priority");
    let mut reversed = members;
    reversed.reverse();
    assert_eq!(order(&reversed), expected);
    let starts = [("a", Standing::Ready), ("b", Standing::Resumable), ("c", QUEUED)];
    assert_eq!(permits(&plan(&starts, &strategy(2, false))), ["b Start", "a Start", "c Prepare"]);
    // Without priorities, each upgrade begins elsewhere.
    let turn = |cluster: &str, upgrade: &str| Turn::of(&cluster.into(), Some("uid"), upgrade, 0, false);
    let firsts = (0..20).map(|upgrade| turn("a", &upgrade.to_string()) < turn("b", &upgrade.to_string()));
    assert!((1..20).contains(&firsts.filter(|is_first| *is_first).count()));
}

#[test]
fn what_keeps_clusters_from_being_begun_is_told() {
    let plain = strategy(1, true);
    let none_may_fail = Strategy { max_failures: Some(0), ..strategy(1, false) };
    let canary = |standing: Standing| vec![("canary", standing), ("a", QUEUED)];
    let cases = [
        (vec![("a", QUEUED)], plain, Some(Hold::NoCanaries)),
        (canary(QUEUED), plain, Some(Hold::Canaries { done: 0, total: 1 })),
        (canary(Standing::Partial), plain, Some(Hold::Canaries { done: 0, total: 1 })),
        (canary(FAILED), plain, Some(Hold::CanaryFailed { failed: "canary".into() })),
        (canary(Standing::Complete), plain, None),
        (vec![], plain, Some(Hold::Canaries { done: 0, total: 0 })),
        (vec![("a", QUEUED), ("b", FAILED)], none_may_fail, Some(Hold::Failures { failed: 1, allowed: 0 })),
        (vec![("a", QUEUED), ("b", FAILED)], Strategy { max_failures: Some(1), ..none_may_fail }, None),
        // Who was never begun has not failed for what is rolled out.
        (vec![("a", QUEUED), ("b", BEYOND)], none_may_fail, None),
        (vec![("a", QUEUED), ("b", MOVING)], strategy(1, false), None),
        (vec![("a", QUEUED), ("b", MOVING), ("c", MOVING)], strategy(1, false), Some(Hold::StillMoving { moving: 2 })),
    ];
    for (members, strategy, expected) in cases {
        let plan = plan(&members, &strategy);
        assert_eq!(plan.hold, expected, "{members:?}");
        let is_begun = plan.permits.iter().any(|(name, _)| name.as_str() == "a");
        assert_eq!(is_begun, expected.is_none() && members.contains(&("a", QUEUED)), "{members:?}");
    }
    let paused = fleet(&canary(QUEUED)).plan(&plain, &target(), None, true, at(0));
    assert_eq!((paused.hold, paused.permits), (Some(Hold::Paused), Vec::new()));
}

#[test]
fn once_a_canary_has_failed_nothing_is_begun_and_what_was_is_gone_on_with() {
    let members =
        [("canary1", FAILED), ("canary2", Standing::Ready), ("canary3", QUEUED), ("canary4", Standing::Resumable)];
    assert_eq!(permits(&plan(&members, &strategy(9, true))), ["canary4 Start"]);
}

#[test]
fn canaries_pass_once_for_each_target() {
    let done = [("canary", Standing::Complete), ("a", QUEUED)];
    let passed = plan(&done, &strategy(1, true)).passed;
    assert_eq!(passed, Some(Passed { target: target(), time: at(0) }));
    // Another one that comes later does not shut the gate again.
    let joined = fleet(&[("canary", Standing::Complete), ("canary2", QUEUED), ("a", Standing::Ready)]);
    let later = joined.plan(&strategy(1, true), &target(), passed.as_ref(), false, at(60));
    assert_eq!((later.hold, later.passed), (None, passed.clone()));
    let other = joined.plan(&strategy(1, true), &SetFingerprint::of([2; 8]), passed.as_ref(), false, at(60));
    assert_eq!((other.hold, other.passed), (Some(Hold::Canaries { done: 1, total: 2 }), None));
}

#[test]
fn the_rest_waits_for_the_soak() {
    let soaking = Strategy { soak: Duration::from_mins(10), ..strategy(1, true) };
    let fleet = fleet(&[("canary", Standing::Complete), ("a", QUEUED)]);
    let passed = Passed { target: target(), time: at(0) };
    let plan = |seconds| fleet.plan(&soaking, &target(), Some(&passed), false, at(seconds));
    let early = plan(599);
    assert_eq!((early.hold, early.wake), (Some(Hold::Soak { until: at(600) }), Some(at(600))));
    assert!(early.permits.is_empty());
    assert_eq!(permits(&plan(600)), ["a Prepare"]);
}

#[test]
fn who_is_tried_again_comes_first_and_a_place_is_kept_for_it() {
    let again = |name: &str, standing: Standing| {
        let member = member(name, standing);
        (name.to_owned(), Member { turn: member.turn.clone().again(), ..member })
    };
    let fresh = |name: &str, standing: Standing| (name.to_owned(), member(name, standing));
    let permits_of = |members: Vec<(String, Member)>, limit: usize| {
        let mut fleet = Fleet::default();
        for (name, member) in members {
            fleet.update(&name.as_str().into(), Some(member));
        }
        permits(&fleet.plan(&strategy(limit, false), &target(), None, false, at(0)))
    };
    let queued = vec![again("z@9", QUEUED), fresh("a", QUEUED)];
    assert_eq!(permits_of(queued, 1), ["z@9 Prepare"]);
    let starts = |standing: Standing, limit| {
        let members = vec![again("z@9", standing), fresh("a", Standing::Ready), fresh("b", Standing::Ready)];
        permits_of(members, limit).iter().filter(|permit| permit.ends_with("Start")).count()
    };
    let of = |standing: &Standing| [1, 2, 3, 4].map(|limit| starts(standing.clone(), limit));
    assert_eq!(of(&Standing::Preparing), [0, 1, 2, 2]);
    // One that can not even begin to prepare, because others have these places, would wait for them as they for it.
    assert_eq!([of(&QUEUED), of(&CLAIMED)], [[1, 2, 2, 2]; 2]);
    let ready = vec![again("z@9", Standing::Ready), fresh("a", Standing::Ready)];
    assert_eq!(permits_of(ready, 1), ["z@9 Start"]);
    // Who can not be tried now keeps nobody waiting; nor does the hub's own cluster, which waits for all others.
    let hub = vec![again("hub", QUEUED), fresh("a", Standing::Ready)];
    assert_eq!(permits_of(hub, 2), ["a Start"]);
    let barred = vec![again("z@9", Standing::Barred), fresh("a", Standing::Ready)];
    assert_eq!(permits_of(barred, 1), ["a Start"]);
}

#[test]
fn those_held_back_do_not_hold_up_canaries() {
    let members = [("a", Standing::Ready), ("canary", QUEUED)];
    assert_eq!(permits(&plan(&members, &strategy(1, true))), ["canary Prepare"]);
}

#[test]
fn the_hub_is_last_and_alone() {
    let cases: [(Members, &[&str]); 9] = [
        // Of two, one waits for the other and not the other way round too.
        (&[("hub@1", QUEUED), ("hub@2", QUEUED), ("a", Standing::Complete)], &["hub@1 Prepare"]),
        (&[("hub@1", Standing::Complete), ("hub@2", QUEUED)], &["hub@2 Prepare"]),
        (&[("hub", QUEUED), ("a@9", QUEUED)], &["a@9 Prepare"]),
        (&[("hub", QUEUED), ("a", Standing::Partial)], &[]),
        (&[("hub", QUEUED), ("a", Standing::Barred)], &[]),
        (&[("hub", QUEUED), ("a", Standing::Complete), ("b", FAILED)], &["hub Prepare"]),
        // From then on everybody else waits for it, so that none of them waits for the other.
        (&[("hub", Standing::Preparing), ("a", QUEUED)], &[]),
        (&[("hub", Standing::Ready), ("a", QUEUED)], &["hub Start"]),
        (&[("hub", Standing::Partial), ("a", QUEUED), ("b", Standing::Ready)], &[]),
    ];
    for (members, expected) in cases {
        assert_eq!(permits(&plan(members, &strategy(3, false))), expected, "{members:?}");
    }
}

#[test]
fn clusters_are_counted_as_they_change() {
    let mut fleet = fleet(&[("canary", Standing::Partial), ("a", QUEUED), ("b", FAILED)]);
    fleet.update(&"canary".into(), Some(member("canary", FAILED)));
    assert_eq!(fleet.failed_canary().map(ClusterName::as_str), Some("canary"));
    fleet.update(&"canary".into(), Some(member("canary", Standing::Complete)));
    fleet.update(&"a".into(), Some(member("a", Standing::Leaving)));
    fleet.update(&"b".into(), None);
    assert_eq!((fleet.failed_canary(), fleet.failed().count(), fleet.members().count()), (None, 0, 1));
    let mut anew = Fleet::default();
    anew.update(&"canary".into(), Some(member("canary", Standing::Complete)));
    assert_eq!((fleet.tally(), fleet.canaries()), (anew.tally(), anew.canaries()));
}
