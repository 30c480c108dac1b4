//! Planners of rollouts that are wrong on purpose, each caught by the property that is there for it.

use std::collections::BTreeSet;

use drover_api::{drover::GateState, reference::ClusterName};
use drover_engine::{
    revision::Set,
    revision::markers::Verdict,
    rollout::{
        Course, Entry, Give, Hold, Plan, Rollout, Standing,
        member::Member,
        strategy::{Budget, Stages, Strategy, Window},
    },
};

use crate::{
    counterexample::counterexample_of,
    rollout_history::{History, canary_histories, histories},
    rollout_properties::{self as properties, Property},
    rollout_world::{Planner, Question, fingerprint, goal, letter},
};

/// How many histories a property may take to find out about a planner. Most need a few.
const CASES: u32 = 4096;

/// Whether a property finds out about a planner.
fn is_caught(planner: &dyn Planner, property: Property) -> bool {
    let in_some = |history: History| property(planner, &history);
    counterexample_of(&canary_histories(), CASES, 0, in_some).is_some()
        || counterexample_of(&histories(), CASES, 0, in_some).is_some()
}

macro_rules! is_caught {
    ($($test:ident: $planner:ident by $property:ident;)*) => {$(
        #[test]
        fn $test() {
            assert!(is_caught(&$planner, properties::$property));
        }
    )*};
}

is_caught! {
    who_ignores_the_window_is_caught: IgnoresTheWindow by never_more_than_the_window;
    who_fills_the_window_by_name_is_caught: FillsTheWindowByName by never_more_than_the_window;
    planner_that_forgets_what_ran_is_caught_by_the_window: ForgetsWhatRan by never_more_than_the_window;
    planner_that_forgets_what_ran_is_caught_by_groups:
        ForgetsWhatRan by no_cluster_starts_before_earlier_groups_are_updated_and_soaked;
    planner_that_forgets_what_ran_is_caught_by_canaries:
        ForgetsWhatRan by a_canary_that_turns_unhealthy_stops_new_starts;
    planner_that_ignores_groups_is_caught:
        IgnoresGroups by no_cluster_starts_before_earlier_groups_are_updated_and_soaked;
    planner_that_ignores_soaks_is_caught:
        IgnoresSoaks by no_cluster_starts_before_earlier_groups_are_updated_and_soaked;
    planner_that_reassigns_all_at_once_is_caught:
        ReassignsAllAtOnce by never_more_on_the_way_to_the_goal_than_the_window;
    who_opens_the_gate_for_one_canary_is_caught: OpensForOneCanary by nothing_passes_a_shut_gate;
    who_forgets_watched_canaries_is_caught: ForgetsWatchedCanaries by a_canary_that_is_cut_off_keeps_the_gate_shut;
    who_overlooks_unhealthy_canaries_is_caught: OverlooksUnhealth by a_canary_that_turns_unhealthy_stops_new_starts;
    who_gives_before_it_is_stored_is_caught: StoresTooLate by what_is_given_behind_a_gate_is_stored_as_good;
    who_gives_what_nobody_wanted_is_caught: GivesAnythingElse by every_give_is_one_whole_set_that_was_wanted;
    who_overlooks_losses_is_caught: OverlooksLosses by nobody_is_given_what_is_lost;
    who_overlooks_epochs_is_caught: OverlooksEpochs by nobody_is_moved_to_what_another_drover_has_made;
    who_tries_again_for_ever_is_caught: TriesAgainForEver by nobody_is_given_what_they_have;
    who_moves_back_on_a_shut_gate_is_caught: MovesBack by a_hold_moves_nobody_but_newcomers;
    who_gives_while_paused_is_caught: OverlooksPauses by a_hold_moves_nobody_but_newcomers;
    who_overlooks_failures_is_caught: OverlooksFailures by nothing_is_begun_beyond_the_failure_budget;
    who_lets_the_last_placement_win_over_canaries_is_caught: LetsTheLastWin by each_cluster_is_decided_by_one_entry;
    who_gives_to_the_unreachable_is_caught: TakesAllForReachable by who_can_not_be_reached_or_is_told_to_wait_is_given_nothing;
    who_picks_by_the_order_of_updates_is_caught: PicksByOrderOfUpdates by the_same_facts_give_the_same_plan;
    who_does_not_finish_first_is_caught: DoesNotFinishFirst by what_came_through_first_ends_first;
    who_finishes_at_any_price_is_caught: FinishesAtAnyPrice by what_is_halted_or_stuck_does_not_hold_up_its_cure;
    who_asks_canaries_on_the_way_back_is_caught: TrustsNothing by going_back_needs_no_canary;
    who_never_wakes_is_caught: NeverWakes by no_wake_up_is_lost;
    who_forgets_that_it_has_finished_is_caught: ForgetsTheEnd by a_quiet_fleet_comes_to_rest;
    who_gives_up_on_the_first_failure_is_caught: NeverForgives by a_quiet_fleet_comes_to_rest;
}

fn with_strategies(entries: &[Entry], change: impl Fn(&mut Strategy)) -> Vec<Entry> {
    let mut entries = entries.to_vec();
    entries.iter_mut().filter_map(|entry| entry.strategy.as_mut().ok()).for_each(change);
    entries
}

/// The clusters that an entry decides for, and how they stand.
fn standings(rollout: &Rollout<Set>, entry: usize) -> Vec<(ClusterName, Standing)> {
    let of_entry = |name: &ClusterName| rollout.standing(name).filter(|(decides, _)| *decides == entry);
    let standings = rollout.members().filter_map(|(name, _)| Some((name.clone(), of_entry(name)?.1.clone())));
    standings.collect()
}

fn give(course: &Course<Set>, entry: usize, cluster: ClusterName) -> Option<Give> {
    Some(Give { cluster, set: course.goal.clone()?, entry })
}

/// Moves all at once.
struct IgnoresTheWindow;

impl Planner for IgnoresTheWindow {
    fn entries(&self, entries: &[Entry]) -> Vec<Entry> {
        with_strategies(entries, |strategy| strategy.window = Window::All)
    }
}

/// Takes a cluster that fails or falls silent for one that never ran its revision.
struct ForgetsWhatRan;

impl Planner for ForgetsWhatRan {
    fn member(&self, member: &Member<Set>) -> Member<Set> {
        let mut member = member.clone();
        if let Some(proof) = member.addon.as_mut().and_then(|addon| addon.proof.as_mut()) {
            proof.verdict = match proof.verdict {
                Verdict::NoLongerApplied => Verdict::Failing,
                Verdict::Unsettled => Verdict::Moving,
                verdict => verdict,
            };
        }
        member
    }
}

/// Moves all groups at once.
struct IgnoresGroups;

impl Planner for IgnoresGroups {
    fn entries(&self, entries: &[Entry]) -> Vec<Entry> {
        with_strategies(entries, |strategy| strategy.stages = Stages::One)
    }
}

/// Takes a cluster for done as soon as it is updated.
struct IgnoresSoaks;

impl Planner for IgnoresSoaks {
    fn entries(&self, entries: &[Entry]) -> Vec<Entry> {
        with_strategies(entries, |strategy| strategy.soak = std::time::Duration::ZERO)
    }
}

/// Turns around all clusters that are on the way to something else, whatever the window.
struct ReassignsAllAtOnce;

impl Planner for ReassignsAllAtOnce {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        let mut plan = question.ask(rollout);
        for (entry, course) in plan.courses.iter().enumerate().filter(|(_, course)| course.hold.is_none()) {
            let is_left = |name: &ClusterName| !plan.gives.iter().any(|give| give.cluster == *name);
            let strays = standings(rollout, entry).into_iter().filter(|(_, how)| *how == Standing::Stray);
            let strays: Vec<_> = strays.filter(|(name, _)| is_left(name)).collect();
            plan.gives.extend(strays.into_iter().filter_map(|(name, _)| give(course, entry, name)));
        }
        plan
    }
}

/// Gives what there is no content of.
struct OverlooksLosses;

impl Planner for OverlooksLosses {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        Question { lost: BTreeSet::new(), ..question.clone() }.ask(rollout)
    }
}

/// Goes on with what another Drover has made, as if it would make the same.
struct OverlooksEpochs;

impl Planner for OverlooksEpochs {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        Question { outdated: BTreeSet::new(), ..question.clone() }.ask(rollout)
    }
}

/// Fills the window with those whose names come first, on top of those who are on their way.
struct FillsTheWindowByName;

impl Planner for FillsTheWindowByName {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        let mut plan = question.ask(rollout);
        let strategies: Vec<_> =
            rollout.entries().iter().map(|entry| entry.strategy.clone().unwrap_or_default()).collect();
        plan.gives.clear();
        for (entry, course) in plan.courses.iter().enumerate().filter(|(_, course)| course.hold.is_none()) {
            let standings = standings(rollout, entry);
            let window = strategies[entry].window.of(standings.len());
            let is_open = |standing: &Standing| matches!(standing, Standing::Waiting(_) | Standing::Moving { .. });
            let first = standings.into_iter().filter(|(_, standing)| is_open(standing)).take(window);
            let waiting = first.filter(|(_, standing)| matches!(standing, Standing::Waiting(_)));
            plan.gives.extend(waiting.filter_map(|(name, _)| give(course, entry, name)));
        }
        plan
    }
}

/// Leaves out the canaries that are not done, as soon as one of them is.
struct OpensForOneCanary;

impl Planner for OpensForOneCanary {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        question.ask(rollout);
        let is_proven = |member: &Member<Set>| {
            let proof = member.addon.as_ref().and_then(|addon| addon.proof.as_ref());
            proof.is_some_and(|proof| proof.verdict == Verdict::Proven)
        };
        let mut lenient = rollout.clone();
        if rollout.members().any(|(_, member)| is_proven(member)) {
            for (name, member) in rollout.members().filter(|(_, member)| !is_proven(member)) {
                let mut member = member.clone();
                member.steering.is_skipped = true;
                lenient.update(name, Some(member));
            }
        }
        question.ask(&mut lenient)
    }
}

/// Knows only those canaries that are selected at the moment.
struct ForgetsWatchedCanaries;

impl Planner for ForgetsWatchedCanaries {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        let mut question = question.clone();
        let gates = question.wishes.iter_mut().flat_map(|wish| &mut wish.stored.gates);
        gates.for_each(|gate| gate.watching.clear());
        question.ask(rollout)
    }
}

/// Takes everybody for healthy who ever was.
struct OverlooksUnhealth;

impl Planner for OverlooksUnhealth {
    fn member(&self, member: &Member<Set>) -> Member<Set> {
        let mut member = member.clone();
        let proof = member.addon.as_mut().and_then(|addon| addon.proof.as_mut());
        if let Some(proof) = proof.filter(|proof| proof.verdict == Verdict::Unhealthy) {
            proof.verdict = Verdict::Proven;
        }
        member
    }
}

/// Remembers what came through a gate only after it was given.
struct StoresTooLate;

impl Planner for StoresTooLate {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        let mut plan = question.ask(rollout);
        for (course, wish) in plan.courses.iter_mut().zip(&question.wishes) {
            course.progress.last_known_good.clone_from(&wish.stored.last_known_good);
        }
        plan
    }
}

/// Gives a set that nobody has asked for.
struct GivesAnythingElse;

impl Planner for GivesAnythingElse {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        let mut plan = question.ask(rollout);
        plan.gives.iter_mut().for_each(|give| give.set = fingerprint('E'));
        plan
    }
}

/// Gives those who have failed the same once more.
struct TriesAgainForEver;

impl Planner for TriesAgainForEver {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        let mut plan = question.ask(rollout);
        for (entry, course) in plan.courses.iter().enumerate() {
            let failed = standings(rollout, entry).into_iter().filter(|(_, how)| matches!(how, Standing::Failed(_)));
            plan.gives.extend(failed.filter_map(|(name, _)| give(course, entry, name)));
        }
        plan
    }
}

/// Takes everybody back to what is known to be good when a gate shuts.
struct MovesBack;

impl Planner for MovesBack {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        let mut plan = question.ask(rollout);
        let shut = plan.courses.iter().enumerate().filter(|(_, course)| matches!(course.hold, Some(Hold::Gate(_))));
        let back = shut.flat_map(|(entry, course)| {
            let others = standings(rollout, entry).into_iter();
            let others = others
                .filter(|(_, how)| matches!(how, Standing::Waiting(_) | Standing::Stray | Standing::Ahead { .. }));
            others.filter_map(move |(name, _)| give(course, entry, name))
        });
        let back: Vec<_> = back.collect();
        plan.gives.extend(back);
        plan
    }
}

/// Pauses for nobody.
struct OverlooksPauses;

impl Planner for OverlooksPauses {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        let mut question = question.clone();
        question.wishes.iter_mut().for_each(|wish| wish.pause = None);
        question.ask(rollout)
    }
}

/// Goes on whatever comes of it.
struct OverlooksFailures;

impl Planner for OverlooksFailures {
    fn entries(&self, entries: &[Entry]) -> Vec<Entry> {
        with_strategies(entries, |strategy| strategy.budget = Budget::Unlimited)
    }
}

/// Has the last placement in the list decide, canaries or not.
struct LetsTheLastWin;

impl Planner for LetsTheLastWin {
    fn member(&self, member: &Member<Set>) -> Member<Set> {
        let mut member = member.clone();
        let last = member.selections.iter().map(|selection| selection.placement).max();
        member.selections.retain(|selection| Some(selection.placement) == last);
        member
    }
}

/// Takes everybody for reachable.
struct TakesAllForReachable;

impl Planner for TakesAllForReachable {
    fn member(&self, member: &Member<Set>) -> Member<Set> {
        Member { is_online: true, ..member.clone() }
    }
}

/// Takes those first whom it heard of last.
struct PicksByOrderOfUpdates;

impl Planner for PicksByOrderOfUpdates {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        let mut plan = question.ask(rollout);
        let place = |give: &Give| question.heard.iter().rposition(|name| *name == give.cluster);
        plan.gives.sort_by_key(place);
        plan
    }
}

/// Drops what rolls out as soon as something else is wanted.
struct DoesNotFinishFirst;

impl Planner for DoesNotFinishFirst {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        let patient = question.ask(&mut rollout.clone());
        let waits = |message: &String| message.ends_with("comes to its end first");
        let mut question = question.clone();
        for (wish, course) in question.wishes.iter_mut().zip(&patient.courses) {
            if course.progress.gates.iter().filter_map(|gate| gate.message.as_ref()).any(waits) {
                wish.stored.gates.retain(|gate| gate.state == GateState::Shut);
            }
        }
        question.ask(rollout)
    }
}

/// Wants nothing else until what rolls out runs everywhere.
struct FinishesAtAnyPrice;

impl Planner for FinishesAtAnyPrice {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        let mut question = question.clone();
        for wish in &mut question.wishes {
            let open = wish.stored.gates.iter().find(|gate| gate.state == GateState::Open).map(|gate| gate.set.clone());
            if let Some(open) = open.filter(|open| wish.stored.last_applied.as_ref() != Some(open)) {
                wish.configured = Some(Ok(goal(letter(&open))));
                wish.pin = None;
            }
        }
        question.ask(rollout)
    }
}

/// Asks canaries each time.
struct TrustsNothing;

impl Planner for TrustsNothing {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        let mut suspicious = question.clone();
        for wish in &mut suspicious.wishes {
            wish.stored.trusted.clear();
            wish.stored.last_applied = None;
        }
        let mut plan = suspicious.ask(rollout);
        for (course, wish) in plan.courses.iter_mut().zip(&question.wishes) {
            course.progress.trusted.extend(wish.stored.trusted.iter().cloned());
            let applied = course.progress.last_applied.take();
            course.progress.last_applied = applied.or(wish.stored.last_applied.clone());
        }
        plan
    }
}

/// Waits for others to wake it.
struct NeverWakes;

impl Planner for NeverWakes {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        Plan { wake: None, ..question.ask(rollout) }
    }
}

/// Arrives anew with each plan.
struct ForgetsTheEnd;

impl Planner for ForgetsTheEnd {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        let mut question = question.clone();
        question.wishes.iter_mut().for_each(|wish| wish.stored.finished = None);
        question.ask(rollout)
    }
}

/// Stops for good where anything was ever halted.
struct NeverForgives;

impl Planner for NeverForgives {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        let mut plan = question.ask(rollout);
        let halted = question.wishes.iter().enumerate().filter(|(_, wish)| wish.stored.halt.is_some());
        let halted: BTreeSet<_> = halted.map(|(entry, _)| entry).collect();
        plan.gives.retain(|give| !halted.contains(&give.entry));
        for (entry, course) in plan.courses.iter_mut().enumerate().filter(|(entry, _)| halted.contains(entry)) {
            course.progress.halt.clone_from(&question.wishes[entry].stored.halt);
        }
        plan
    }
}
