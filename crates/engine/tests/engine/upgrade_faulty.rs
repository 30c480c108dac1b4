//! Deciders of upgrades that are wrong on purpose, each caught by the property that is there for it.

use std::time::Duration;

use drover_api::drover::{ClusterUpgrade, ClusterUpgradePhase as Phase};
use drover_engine::upgrade::{
    member::{self, Act, Cluster, Course, Facts, Look, Membership, Owner, Permit, Reach, Standing},
    plan::{Fleet, Hold, Member, Passed, Plan, Strategy},
};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::{
    counterexample::counterexample_of,
    upgrade_history::{History, canary_histories, histories},
    upgrade_properties::{self as properties, Property},
    upgrade_site::{Selected, Site},
    upgrade_world::{Decider, Question, has_slot, phase_of},
};

/// How many histories a property may take to find out about a decider. Most need a few.
const CASES: u32 = 4096;

/// Whether a property finds out about a decider.
fn is_caught(decider: &dyn Decider, property: Property) -> bool {
    let in_some = |history: History| property(decider, &history);
    counterexample_of(&canary_histories(), CASES / 16, 0, in_some).is_some()
        || counterexample_of(&histories(), CASES, 0, in_some).is_some()
}

macro_rules! is_caught {
    ($($test:ident: $decider:ident by $property:ident;)*) => {$(
        #[test]
        fn $test() {
            assert!(is_caught(&$decider, properties::$property));
        }
    )*};
}

is_caught! {
    who_counts_no_place_after_the_platform_is_caught: CountsPlatformsOnly by never_more_than_the_limit;
    who_frees_places_before_that_is_stored_is_caught: FreesPlacesTooEarly by never_more_than_the_limit;
    who_believes_what_is_not_stored_is_caught: FreesPlacesTooEarly by the_counts_are_right;
    who_opens_the_gate_for_one_canary_is_caught: OpensForOneCanary by a_gate_opens_for_canaries_that_are_done;
    who_trusts_the_canaries_of_another_target_is_caught: TrustsAnyTarget by nothing_passes_a_shut_gate;
    who_does_not_wait_for_the_soak_is_caught: DoesNotSoak by nothing_passes_a_shut_gate;
    who_goes_on_past_a_failed_canary_is_caught: GoesOnWithCanaries by nobody_is_begun_once_a_canary_has_failed;
    who_lets_a_canary_widen_the_selection_is_caught: WidensTheSelection by only_who_is_selected_is_begun;
    who_begins_what_is_unsure_is_caught: TakesUnsureForSelected by only_who_is_selected_is_begun;
    who_begins_the_unreachable_is_caught: TakesAllForReachable by only_who_can_be_upgraded_is;
    who_takes_what_is_anothers_is_caught: TakesAllForItsOwn by only_who_can_be_upgraded_is;
    who_forgets_what_was_begun_is_caught: ForgetsWhenItRestarts by each_cluster_is_asked_once;
    who_interrupts_clusters_is_caught: RetargetsUnderWay by a_target_stays_while_a_cluster_is_under_way;
    who_overlooks_pauses_is_caught: OverlooksPauses by a_paused_upgrade_starts_nobody;
    who_overlooks_failures_is_caught: OverlooksFailures by nobody_is_begun_beyond_the_failure_budget;
    who_upgrades_the_hub_beside_others_is_caught: OverlooksTheHub by the_hub_is_upgraded_alone;
    who_skips_the_check_is_caught: SkipsTheCheck by nobody_is_complete_without_the_check;
    who_keeps_the_place_of_what_is_degraded_is_caught: KeepsThePlaceOfDegraded by a_quiet_fleet_comes_to_rest;
    who_keeps_what_is_done_is_caught: NeverLetsGo by a_quiet_fleet_comes_to_rest;
    who_never_wakes_is_caught: NeverWakes by the_same_facts_give_the_same_plan;
    who_picks_by_the_order_of_looks_is_caught: PicksByOrderOfLooks by the_same_facts_give_the_same_plan;
    who_never_forgives_is_caught: NeverForgives by late_success_repairs;
    who_tries_again_with_what_has_failed_is_caught: TriesAgainWithTheSame by a_retry_is_a_new_attempt;
}

/// The phase that is stored.
fn stored(record: Option<&ClusterUpgrade>) -> Phase {
    phase_of(record.and_then(|record| record.status.as_ref()))
}

/// Looks at a cluster that it takes for another one.
fn look_at(cluster: &Cluster, facts: Facts, course: &Course, permit: Permit, now: Timestamp) -> Look {
    member::look(Facts { cluster: Some(cluster), ..facts }, course, permit, now)
}

fn with_strategy(question: &Question, change: impl FnOnce(&mut Strategy)) -> Question {
    let mut question = question.clone();
    change(&mut question.strategy);
    question
}

/// Counts those whose platform is upgraded, and nobody whose operators are or who is checked.
struct CountsPlatformsOnly;

impl Decider for CountsPlatformsOnly {
    fn member(&self, mut member: Member, record: Option<&ClusterUpgrade>) -> Member {
        if matches!(stored(record), Phase::Operators | Phase::PostAction) {
            member.standing = Standing::Complete;
        }
        member
    }
}

/// Gives a place to the next as soon as it sees that somebody is done.
struct FreesPlacesTooEarly;

impl Decider for FreesPlacesTooEarly {
    fn look(&self, facts: Facts, course: &Course, permit: Permit, now: Timestamp) -> Look {
        let mut look = member::look(facts, course, permit, now);
        if let (true, Some(Act::Tell(status))) = (has_slot(stored(facts.record)), &look.act) {
            look.standing = match status.phase {
                Some(Phase::Complete) => Standing::Complete,
                Some(Phase::Failed) => Standing::Failed { was_begun: true, is_moving: false },
                _ => look.standing,
            };
        }
        look
    }
}

/// Takes one canary that is done for all of them.
struct OpensForOneCanary;

impl Decider for OpensForOneCanary {
    fn plan(&self, fleet: &Fleet, question: &Question) -> Plan {
        let is_one_done = question.strategy.has_canaries && fleet.canaries().complete > 0;
        let passed = is_one_done.then(|| Passed { target: question.target.clone(), time: question.now });
        Question { passed: question.passed.clone().or(passed), ..question.clone() }.ask(fleet)
    }
}

/// Takes canaries that were upgraded to anything for canaries that were upgraded to this.
struct TrustsAnyTarget;

impl Decider for TrustsAnyTarget {
    fn plan(&self, fleet: &Fleet, question: &Question) -> Plan {
        let mut trusting = question.clone();
        if let Some(passed) = &mut trusting.passed {
            passed.target = question.target.clone();
        }
        Plan { passed: question.passed.clone(), ..trusting.ask(fleet) }
    }
}

/// Has no time.
struct DoesNotSoak;

impl Decider for DoesNotSoak {
    fn plan(&self, fleet: &Fleet, question: &Question) -> Plan {
        with_strategy(question, |strategy| strategy.soak = Duration::ZERO).ask(fleet)
    }
}

/// Tries the other canaries when one has failed.
struct GoesOnWithCanaries;

impl Decider for GoesOnWithCanaries {
    fn plan(&self, fleet: &Fleet, question: &Question) -> Plan {
        let plan = question.ask(fleet);
        if !matches!(plan.hold, Some(Hold::CanaryFailed { .. })) {
            return plan;
        }
        let is_fresh = |member: &Member| member.is_canary && member.standing == Standing::Ready;
        let ready = fleet.members().filter(|(_, member)| is_fresh(member));
        let permits = ready.map(|(name, _)| (name.clone(), Permit::Start)).take(1).collect();
        Plan { permits, ..plan }
    }
}

/// Upgrades canaries whether they are selected or not.
struct WidensTheSelection;

impl Decider for WidensTheSelection {
    fn membership(&self, site: &Site) -> Membership {
        if site.is_canary { Membership::In { is_canary: true } } else { site.membership() }
    }
}

/// Takes those for selected of whom that is not known.
struct TakesUnsureForSelected;

impl Decider for TakesUnsureForSelected {
    fn membership(&self, site: &Site) -> Membership {
        match site.selected {
            Selected::Unsure => Membership::In { is_canary: site.is_canary },
            Selected::In | Selected::Out => site.membership(),
        }
    }
}

/// Takes everybody for reachable.
struct TakesAllForReachable;

impl Decider for TakesAllForReachable {
    fn look(&self, facts: Facts, course: &Course, permit: Permit, now: Timestamp) -> Look {
        let Some(cluster) = facts.cluster else { return member::look(facts, course, permit, now) };
        look_at(&Cluster { reach: Reach::Online, ..cluster.clone() }, facts, course, permit, now)
    }
}

/// Takes every cluster for its own.
struct TakesAllForItsOwn;

impl Decider for TakesAllForItsOwn {
    fn look(&self, facts: Facts, course: &Course, permit: Permit, now: Timestamp) -> Look {
        let Some(cluster) = facts.cluster else { return member::look(facts, course, permit, now) };
        look_at(&Cluster { owner: Owner::Us, ..cluster.clone() }, facts, course, permit, now)
    }
}

/// Has to begin anew what it had begun when it was killed.
struct ForgetsWhenItRestarts;

impl Decider for ForgetsWhenItRestarts {
    fn look(&self, facts: Facts, course: &Course, permit: Permit, now: Timestamp) -> Look {
        let has_just_begun = now.duration_since(course.attentive_since) < SignedDuration::from_secs(5);
        let mut record = facts.record.cloned();
        if let Some(record) =
            record.as_mut().filter(|record| has_just_begun && stored(Some(record)) == Phase::Upgrading)
        {
            record.status = None;
        }
        member::look(Facts { record: record.as_ref(), ..facts }, course, permit, now)
    }
}

/// Sends clusters elsewhere in the middle of their upgrade.
struct RetargetsUnderWay;

impl Decider for RetargetsUnderWay {
    fn look(&self, facts: Facts, course: &Course, permit: Permit, now: Timestamp) -> Look {
        let mut look = member::look(facts, course, permit, now);
        if let Some(record) = facts.record.filter(|record| has_slot(stored(Some(record))))
            && record.spec.target != *course.errand.target.written()
        {
            let mut spec = record.spec.clone();
            spec.target = course.errand.target.written().clone();
            look.act = Some(Act::Retarget(Box::new(spec)));
        }
        look
    }
}

/// Pauses for nobody.
struct OverlooksPauses;

impl Decider for OverlooksPauses {
    fn plan(&self, fleet: &Fleet, question: &Question) -> Plan {
        Question { is_paused: false, ..question.clone() }.ask(fleet)
    }
}

/// Goes on whatever comes of it.
struct OverlooksFailures;

impl Decider for OverlooksFailures {
    fn plan(&self, fleet: &Fleet, question: &Question) -> Plan {
        with_strategy(question, |strategy| strategy.max_failures = None).ask(fleet)
    }
}

/// Upgrades the cluster on which it runs like any other.
struct OverlooksTheHub;

impl Decider for OverlooksTheHub {
    fn member(&self, member: Member, _record: Option<&ClusterUpgrade>) -> Member {
        let turn = drover_engine::upgrade::plan::Turn::of(&"any".into(), None, "any", 0, false);
        Member { turn, ..member }
    }
}

/// Is content with what it was upgraded to.
struct SkipsTheCheck;

impl Decider for SkipsTheCheck {
    fn look(&self, facts: Facts, course: &Course, permit: Permit, now: Timestamp) -> Look {
        let has_started = stored(facts.record) == Phase::Operators;
        let post_action = course.post_action.clone().filter(|_| !has_started);
        member::look(facts, &Course { post_action, ..course.clone() }, permit, now)
    }
}

/// Has those whose action before the upgrade has failed keep their place.
struct KeepsThePlaceOfDegraded;

impl Decider for KeepsThePlaceOfDegraded {
    fn member(&self, mut member: Member, record: Option<&ClusterUpgrade>) -> Member {
        let reason = record.and_then(|record| record.status.as_ref()?.reason.as_deref());
        if reason == Some("PreActionDegraded") && member.standing == Standing::Barred {
            member.standing = Standing::Preparing;
        }
        member
    }
}

/// Never lets a cluster go.
struct NeverLetsGo;

impl Decider for NeverLetsGo {
    fn look(&self, facts: Facts, course: &Course, permit: Permit, now: Timestamp) -> Look {
        let look = member::look(facts, course, permit, now);
        Look { act: look.act.filter(|act| *act != Act::Release), ..look }
    }
}

/// Waits for others to wake it.
struct NeverWakes;

impl Decider for NeverWakes {
    fn look(&self, facts: Facts, course: &Course, permit: Permit, now: Timestamp) -> Look {
        Look { wake: None, ..member::look(facts, course, permit, now) }
    }
}

/// Takes those first whom it looked at last.
struct PicksByOrderOfLooks;

impl Decider for PicksByOrderOfLooks {
    fn plan(&self, fleet: &Fleet, question: &Question) -> Plan {
        let mut plan = question.ask(fleet);
        plan.permits.sort_by_key(|(name, _)| question.heard.iter().rposition(|heard| heard == name));
        plan
    }
}

/// Takes who has failed for failed.
struct NeverForgives;

impl Decider for NeverForgives {
    fn look(&self, facts: Facts, course: &Course, permit: Permit, now: Timestamp) -> Look {
        let look = member::look(facts, course, permit, now);
        let is_repaired = stored(facts.record) == Phase::Failed && matches!(look.act, Some(Act::Tell(_)));
        Look { act: look.act.filter(|_| !is_repaired), ..look }
    }
}

/// Goes on after a retry with the works that are there.
struct TriesAgainWithTheSame;

impl Decider for TriesAgainWithTheSame {
    fn look(&self, facts: Facts, course: &Course, permit: Permit, now: Timestamp) -> Look {
        let look = member::look(facts, course, permit, now);
        let (Some(record), Some(status)) = (facts.record, facts.record.and_then(|record| record.status.as_ref()))
        else {
            return look;
        };
        // What it does about a cluster that waits again is what it would do if the cluster had never stopped.
        let is_again = status.reason.as_deref() == Some("Retried") && status.operators_completed.is_some();
        if !(is_again && matches!(look.act, Some(Act::Withdraw(_)))) {
            return look;
        }
        let mut status = status.clone();
        status.phase = Some(Phase::PostAction);
        let mut again = record.clone();
        again.status = Some(status.clone());
        Look {
            act: Some(Act::Tell(Box::new(status))),
            ..member::look(Facts { record: Some(&again), ..facts }, course, permit, now)
        }
    }
}
