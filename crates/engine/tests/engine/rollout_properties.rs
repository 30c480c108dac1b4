//! What holds for every rollout, whatever happens to its clusters and to the hub.
//!
//! Each property is about a [`Planner`], so that the deliberately wrong ones in `rollout_faulty.rs` can be held to it too. Plans are judged by what the
//! hub had heard when it made them.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{drover::GateState, grammar::SetFingerprint, reference::ClusterName};
use drover_engine::{
    revision::Set,
    revision::markers::Verdict,
    rollout::{Hold, Plan, Shut, member::Member},
};
use k8s_openapi::jiff::SignedDuration;
use proptest::prelude::*;

use crate::{
    counterexample::{Checked, counterexample, holds_for_the_engine},
    rollout_history::{History, canary_histories, histories},
    rollout_oracle::{given, has_verdict, is_ready, proof_of},
    rollout_world::{Engine, Planner, World, is_known, letter},
};

/// Something that holds for a planner in a history.
pub(crate) type Property = fn(&dyn Planner, &History) -> Checked;

holds_for_the_engine! {
    never_more_than_the_window in histories();
    never_more_on_the_way_to_the_goal_than_the_window in histories();
    no_cluster_starts_before_earlier_groups_are_updated_and_soaked in histories();
    nothing_passes_a_shut_gate in histories();
    a_canary_that_is_cut_off_keeps_the_gate_shut in canary_histories();
    a_canary_that_turns_unhealthy_stops_new_starts in canary_histories();
    what_is_given_behind_a_gate_is_stored_as_good in canary_histories();
    every_give_is_one_whole_set_that_was_wanted in histories();
    nobody_is_given_what_they_have in histories();
    nobody_is_given_what_is_lost in canary_histories();
    nobody_is_moved_to_what_another_drover_has_made in canary_histories();
    a_hold_moves_nobody_but_newcomers in histories();
    nothing_is_begun_beyond_the_failure_budget in histories();
    each_cluster_is_decided_by_one_entry in histories();
    who_can_not_be_reached_or_is_told_to_wait_is_given_nothing in histories();
    the_same_facts_give_the_same_plan in histories();
    what_came_through_first_ends_first in canary_histories();
    what_is_halted_or_stuck_does_not_hold_up_its_cure in canary_histories();
    going_back_needs_no_canary in canary_histories();
    no_wake_up_is_lost in histories();
    a_quiet_fleet_comes_to_rest in histories();
    a_quiet_fleet_with_canaries_comes_to_rest in canary_histories();
}

// ---- Who is given what

pub(crate) fn never_more_than_the_window(planner: &dyn Planner, history: &History) -> Checked {
    history.play(planner, |world, plan, _| {
        for entry in 0..world.entries.len() {
            let started: BTreeSet<_> = starts(world, plan, entry).collect();
            if started.is_empty() {
                continue;
            }
            let goal = plan.courses[entry].goal.clone();
            let has_failed =
                |member: &Member<Set>| goal.as_ref().is_some_and(|goal| world.has_failed(entry, member, goal));
            let is_busy = |name: &ClusterName, member: &Member<Set>| {
                world.is_in_flight(name) && is_ready_but_for_pause(member) && !has_failed(member)
            };
            let busy = world.decided(entry).filter(|(name, member)| is_busy(name, member)).map(|(name, _)| name);
            let all: BTreeSet<_> = busy.chain(started.iter().copied()).collect();
            let window = world.strategy(entry).window.of(world.total(entry));
            prop_assert!(
                all.len() <= window,
                "entry {}: {:?} in a window of {}, {:?} of them new",
                entry,
                all,
                window,
                started
            );
        }
        Ok(())
    })?;
    Ok(())
}

/// Clusters that are turned around in place count too, whatever they failed of before.
pub(crate) fn never_more_on_the_way_to_the_goal_than_the_window(planner: &dyn Planner, history: &History) -> Checked {
    history.play(planner, |world, plan, _| {
        for (entry, course) in plan.courses.iter().enumerate() {
            let Some(goal) = &course.goal else { continue };
            let assigned = plan.gives.iter().filter(|give| give.entry == entry && give.set == *goal);
            let assigned: BTreeSet<_> = assigned.map(|give| &give.cluster).collect();
            if assigned.is_empty() {
                continue;
            }
            let is_busy = |name: &ClusterName, member: &Member<Set>| {
                let is_on_the_way = given(member) == Some(goal) && world.is_in_flight(name);
                is_on_the_way && is_ready_but_for_pause(member) && !world.has_failed(entry, member, goal)
            };
            let busy = world.decided(entry).filter(|(name, member)| is_busy(name, member)).map(|(name, _)| name);
            let all: BTreeSet<_> = busy.chain(assigned.iter().copied()).collect();
            let window = world.strategy(entry).window.of(world.total(entry));
            prop_assert!(all.len() <= window, "entry {}: {:?} in a window of {}", entry, all, window);
        }
        Ok(())
    })?;
    Ok(())
}

pub(crate) fn no_cluster_starts_before_earlier_groups_are_updated_and_soaked(
    planner: &dyn Planner,
    history: &History,
) -> Checked {
    history.play(planner, |world, plan, _| {
        for (entry, course) in plan.courses.iter().enumerate().filter(|(_, course)| course.hold.is_none()) {
            let Some(goal) = &course.goal else { continue };
            let last = starts(world, plan, entry).max_by_key(|name| world.stage(entry, name));
            let Some(last) = last else { continue };
            let is_earlier = |name: &&ClusterName| world.stage(entry, name) < world.stage(entry, last);
            let earlier = world.decided(entry).map(|(name, _)| name).filter(is_earlier);
            for name in earlier {
                prop_assert!(!world.is_open(entry, name, goal), "{} starts before {} is done", last, name);
            }
        }
        Ok(())
    })?;
    Ok(())
}

fn is_ready_but_for_pause(member: &Member<Set>) -> bool {
    let mut member = member.clone();
    member.steering.is_paused = false;
    is_ready(&member)
}

/// The clusters that an entry begins to move: those that were at rest, or had nothing.
fn starts<'a>(world: &'a World, plan: &'a Plan<Set>, entry: usize) -> impl Iterator<Item = &'a ClusterName> {
    let of_entry = plan.gives.iter().filter(move |give| give.entry == entry).map(|give| &give.cluster);
    of_entry.filter(|name| !world.is_in_flight(name))
}

pub(crate) fn every_give_is_one_whole_set_that_was_wanted(planner: &dyn Planner, history: &History) -> Checked {
    let mut wanted_once: BTreeSet<SetFingerprint> = BTreeSet::new();
    history.play(planner, |world, plan, _| {
        let wanted = (0..world.entries.len()).filter_map(|entry| world.wanted_set(entry, plan));
        wanted_once.extend(wanted);
        for give in &plan.gives {
            prop_assert!(is_known(&give.set) && wanted_once.contains(&give.set), "{give:?}");
        }
        Ok(())
    })?;
    Ok(())
}

pub(crate) fn nobody_is_given_what_they_have(planner: &dyn Planner, history: &History) -> Checked {
    history.play(planner, |world, plan, _| {
        for give in &plan.gives {
            prop_assert_ne!(given(&world.known[&give.cluster]), Some(&give.set), "{}", give.cluster);
        }
        Ok(())
    })?;
    Ok(())
}

pub(crate) fn nobody_is_given_what_is_lost(planner: &dyn Planner, history: &History) -> Checked {
    history.play(planner, |world, plan, _| {
        let lost = world.all_lost();
        for give in &plan.gives {
            prop_assert!(!lost.contains(&give.set), "{} is given {}", give.cluster, letter(&give.set));
        }
        Ok(())
    })?;
    Ok(())
}

pub(crate) fn nobody_is_moved_to_what_another_drover_has_made(planner: &dyn Planner, history: &History) -> Checked {
    history.play(planner, |world, plan, _| {
        let outdated = world.all_outdated();
        for give in plan.gives.iter().filter(|give| outdated.contains(&give.set)) {
            let is_wanted = world.wanted_set(give.entry, plan).as_ref() == Some(&give.set);
            let is_new = given(&world.known[&give.cluster]).is_none();
            prop_assert!(is_wanted || is_new, "{} is given {}", give.cluster, letter(&give.set));
        }
        Ok(())
    })?;
    Ok(())
}

pub(crate) fn each_cluster_is_decided_by_one_entry(planner: &dyn Planner, history: &History) -> Checked {
    history.play(planner, |world, plan, _| {
        let clusters: BTreeSet<_> = plan.gives.iter().map(|give| &give.cluster).collect();
        prop_assert_eq!(clusters.len(), plan.gives.len(), "a cluster is given two things");
        for give in &plan.gives {
            prop_assert_eq!(world.decides(&world.known[&give.cluster]), Some(give.entry), "{}", give.cluster);
        }
        Ok(())
    })?;
    Ok(())
}

pub(crate) fn who_can_not_be_reached_or_is_told_to_wait_is_given_nothing(
    planner: &dyn Planner,
    history: &History,
) -> Checked {
    history.play(planner, |world, plan, _| {
        for give in &plan.gives {
            prop_assert!(is_ready(&world.known[&give.cluster]), "{}", give.cluster);
        }
        Ok(())
    })?;
    Ok(())
}

// ---- Holds

pub(crate) fn a_hold_moves_nobody_but_newcomers(planner: &dyn Planner, history: &History) -> Checked {
    history.play(planner, |world, plan, _| {
        for give in &plan.gives {
            let (course, wish) = (&plan.courses[give.entry], &world.wishes[give.entry]);
            let is_open =
                |set| course.progress.gates.iter().any(|gate| gate.set == set && gate.state == GateState::Open);
            let wanted = world.wanted(give.entry, plan);
            let is_held = wish.pause.is_some()
                || course.hold.is_some()
                || match wanted {
                    Some(Err(_)) | None => !course.progress.last_known_good.clone().is_some_and(is_open),
                    Some(Ok(wanted)) => {
                        world.is_gated(give.entry)
                            && !is_open(wanted.fingerprint)
                            && !course.progress.last_known_good.clone().is_some_and(is_open)
                    }
                };
            if !is_held {
                continue;
            }
            prop_assert!(
                given(&world.known[&give.cluster]).is_none(),
                "{} is moved by {:?}",
                give.cluster,
                course.hold
            );
            let is_good =
                [&course.progress.last_known_good, &course.progress.last_applied].contains(&&Some(give.set.clone()));
            prop_assert!(is_good, "{} gets something else than what is known to be good", give.cluster);
        }
        Ok(())
    })?;
    Ok(())
}

pub(crate) fn nothing_is_begun_beyond_the_failure_budget(planner: &dyn Planner, history: &History) -> Checked {
    history.play(planner, |world, plan, _| {
        for give in &plan.gives {
            let stored = &world.wishes[give.entry].stored;
            let ran_everywhere = stored.last_applied.as_ref() == Some(&give.set);
            let is_start = !world.is_in_flight(&give.cluster);
            // Who failed before a rollout began has not failed in it.
            let begins = plan.courses[give.entry].progress.started != stored.started;
            if is_start && !ran_everywhere && !begins {
                prop_assert!(!world.is_overdrawn(give.entry, &give.set), "{give:?}");
            }
        }
        Ok(())
    })?;
    Ok(())
}

// ---- Gates

pub(crate) fn nothing_passes_a_shut_gate(planner: &dyn Planner, history: &History) -> Checked {
    history.play(planner, |world, plan, _| opens_rightly(world, plan, |_| BTreeSet::new()))?;
    Ok(())
}

/// Whether each set that has become good behind a gate is trusted there, or was shown to be good by all canaries.
fn opens_rightly(world: &World, plan: &Plan<Set>, cut_off: impl Fn(usize) -> BTreeSet<ClusterName>) -> Checked {
    for entry in world.gated() {
        let stored = &world.wishes[entry].stored;
        let gave = plan.gives.iter().filter(|give| give.entry == entry).map(|give| &give.set);
        let good: BTreeSet<_> = gave.chain(&plan.courses[entry].progress.last_known_good).collect();
        let is_new = |set: &&SetFingerprint| {
            let is_good = stored.last_known_good.as_ref() == Some(*set)
                && (world.rolls_out(entry, set) || given_up(world, plan, entry));
            !is_good && !world.is_trusted(entry, set)
        };
        for set in good.into_iter().filter(is_new) {
            let verdict = world.canaries_are_well(entry, set, &cut_off(entry), plan);
            prop_assert_eq!(verdict, Ok(()), "entry {} lets {} through", entry, letter(set));
        }
    }
    Ok(())
}

/// Whether what was good last stays what it is because nothing else is.
fn given_up(world: &World, plan: &Plan<Set>, entry: usize) -> bool {
    let good = &world.wishes[entry].stored.last_known_good;
    let is_given = plan.gives.iter().any(|give| give.entry == entry && Some(&give.set) == good.as_ref());
    let is_open = plan.courses[entry]
        .progress
        .gates
        .iter()
        .any(|gate| gate.state == GateState::Open && Some(&gate.set) == good.as_ref());
    !is_given && !is_open
}

/// The canaries of each gate that were given what it is shut for.
#[derive(Default)]
struct Watch(BTreeMap<usize, (SetFingerprint, BTreeSet<ClusterName>)>);

impl Watch {
    fn cut_off(&self, world: &World, plan: &Plan<Set>, entry: usize) -> BTreeSet<ClusterName> {
        let Some(canary) = world.canary(entry) else { return BTreeSet::new() };
        let watched = self.0.get(&entry).filter(|(set, _)| world.wanted_set(entry, plan).as_ref() == Some(set));
        let watched = watched.into_iter().flat_map(|(set, watched)| watched.iter().map(move |name| (set, name)));
        // A canary that was assigned something else since does not try it any more.
        let tries = |set: &SetFingerprint, name: &ClusterName| {
            let member = world.known.get(name);
            member.is_some_and(|member| given(member) == Some(set) || proof_of(member, set).is_some())
        };
        let watched = watched.filter(|(set, name)| world.stays_canary(canary, name) && tries(set, name));
        watched.map(|(_, name)| name.clone()).collect()
    }

    fn look(&mut self, world: &World, plan: &Plan<Set>) {
        for entry in world.gated() {
            let is_shut = |set: &SetFingerprint| plan.courses[entry].progress.last_known_good.as_ref() != Some(set);
            let wanted = world.wanted_set(entry, plan).filter(is_shut);
            let (Some(wanted), Some(canary)) = (wanted, world.canary(entry)) else {
                // What can not be had at the moment is waited for.
                if world.wanted(entry, plan).is_some_and(|wanted| wanted.is_ok()) {
                    self.0.remove(&entry);
                }
                continue;
            };
            let gets = |name: &ClusterName| plan.gives.iter().any(|give| give.cluster == *name && give.set == wanted);
            let has = |member: &Member<Set>| given(member) == Some(&wanted) || proof_of(member, &wanted).is_some();
            let tries =
                |name: &&ClusterName| world.is_selected(name, canary) && (gets(name) || has(&world.known[*name]));
            let trying = world.known.keys().filter(tries).cloned();
            let all = self.cut_off(world, plan, entry).into_iter().chain(trying);
            let all = all.filter(|name| world.stays_canary(canary, name)).collect();
            self.0.insert(entry, (wanted, all));
        }
    }
}

pub(crate) fn a_canary_that_is_cut_off_keeps_the_gate_shut(planner: &dyn Planner, history: &History) -> Checked {
    let mut watch = Watch::default();
    history.play(planner, |world, plan, is_stored| {
        opens_rightly(world, plan, |entry| watch.cut_off(world, plan, entry))?;
        if is_stored {
            watch.look(world, plan);
        }
        Ok(())
    })?;
    Ok(())
}

pub(crate) fn a_canary_that_turns_unhealthy_stops_new_starts(planner: &dyn Planner, history: &History) -> Checked {
    // Who has vouched for what behind each gate, as long as that rolls out.
    let mut vouching: BTreeMap<usize, (SetFingerprint, BTreeSet<ClusterName>)> = BTreeMap::new();
    history.play(planner, |world, plan, _| {
        for entry in world.gated() {
            let stored = &world.wishes[entry].stored;
            let open = stored.last_known_good.clone().filter(|set| world.rolls_out(entry, set));
            let is_settled = stored.finished.is_some() && stored.last_applied == open;
            let (Some(open), Some(canary), false) = (open, world.canary(entry), is_settled) else {
                vouching.remove(&entry);
                continue;
            };
            let former = vouching.remove(&entry).filter(|(set, _)| *set == open).map(|(_, former)| former);
            let has_shown = |name: &&ClusterName| {
                world.is_selected(name, canary) && has_verdict(&world.known[*name], &open, Verdict::Proven)
            };
            let now: BTreeSet<_> = world.known.keys().filter(has_shown).cloned().collect();
            let all =
                now.into_iter().chain(former.into_iter().flatten()).filter(|name| world.stays_canary(canary, name));
            let all: BTreeSet<_> = all.collect();
            let is_sick = |name: &&ClusterName| world.is_unhealthy(&world.known[*name], &open);
            let sick = all.iter().find(is_sick);
            if let Some(sick) = sick {
                let mut begun = plan.gives.iter().filter(|give| give.entry == entry && give.set == open);
                let is_bad = |give: &drover_engine::rollout::Give| stored.last_applied.as_ref() != Some(&give.set);
                prop_assert!(!begun.any(is_bad), "{} is sick with {}, which begins elsewhere", sick, letter(&open));
            }
            vouching.insert(entry, (open, all));
        }
        Ok(())
    })?;
    Ok(())
}

pub(crate) fn what_is_given_behind_a_gate_is_stored_as_good(planner: &dyn Planner, history: &History) -> Checked {
    history.play(planner, |world, plan, _| {
        for give in plan.gives.iter().filter(|give| world.is_gated(give.entry)) {
            let progress = &plan.courses[give.entry].progress;
            let is_good = [&progress.last_known_good, &progress.last_applied].contains(&&Some(give.set.clone()));
            prop_assert!(is_good, "{give:?}");
        }
        Ok(())
    })?;
    Ok(())
}

pub(crate) fn what_came_through_first_ends_first(planner: &dyn Planner, history: &History) -> Checked {
    history.play(planner, |world, plan, _| {
        for entry in world.gated() {
            let Some(former) = world.wishes[entry].stored.last_known_good.clone() else { continue };
            let Some(wanted) = world.wanted_set(entry, plan) else { continue };
            let is_next = wanted != former && !world.is_trusted(entry, &wanted) && world.rolls_out(entry, &former);
            if !is_next {
                continue;
            }
            if plan.courses[entry].progress.last_known_good.as_ref() == Some(&wanted) {
                let is_halted = world.wishes[entry].stored.halt.as_ref().is_some_and(|halt| halt.set == former);
                prop_assert!(
                    is_halted || world.is_over(entry, &former),
                    "{} comes before {} has ended",
                    letter(&wanted),
                    letter(&former)
                );
            } else {
                let gave = plan.gives.iter().find(|give| give.entry == entry && give.set == wanted);
                prop_assert_eq!(gave, None);
            }
        }
        Ok(())
    })?;
    Ok(())
}

pub(crate) fn what_is_halted_or_stuck_does_not_hold_up_its_cure(planner: &dyn Planner, history: &History) -> Checked {
    let mut watch = Watch::default();
    history.play(planner, |world, plan, is_stored| {
        for entry in world.gated() {
            let Some(wanted) = world.wanted_set(entry, plan) else { continue };
            let former = world.wishes[entry].stored.last_known_good.clone();
            let is_over = former.is_none_or(|former| !world.rolls_out(entry, &former) || world.is_over(entry, &former));
            let cut_off = watch.cut_off(world, plan, entry);
            let is_awaited = world.decided(entry).any(|(_, member)| is_awaited(world, entry, member));
            if is_over && !is_awaited && world.canaries_are_well(entry, &wanted, &cut_off, plan).is_ok() {
                let good = plan.courses[entry].progress.last_known_good.as_ref();
                prop_assert_eq!(good, Some(&wanted), "{} is held up", letter(&wanted));
            }
        }
        if is_stored {
            watch.look(world, plan);
        }
        Ok(())
    })?;
    Ok(())
}

/// Whether a cluster that ran its revision has to soak, to report again, or to apply it again.
fn is_awaited(world: &World, entry: usize, member: &Member<Set>) -> bool {
    let proof = member.addon.as_ref().and_then(|addon| addon.proof.as_ref());
    proof.is_some_and(|proof| match proof.verdict {
        Verdict::Proven => crate::rollout_oracle::later(proof.since, world.strategy(entry).soak) > world.now,
        Verdict::Unsettled | Verdict::NoLongerApplied => true,
        Verdict::Moving | Verdict::Failing | Verdict::Unhealthy => false,
    })
}

pub(crate) fn going_back_needs_no_canary(planner: &dyn Planner, history: &History) -> Checked {
    history.play(planner, |world, plan, _| {
        for entry in world.gated() {
            let wanted = world.wanted_set(entry, plan).filter(|wanted| world.is_trusted(entry, wanted));
            let Some(wanted) = wanted else { continue };
            let course = &plan.courses[entry];
            prop_assert_eq!(course.goal.as_ref(), Some(&wanted));
            prop_assert!(!matches!(course.hold, Some(Hold::Gate(_))), "{:?}", course.hold);
        }
        Ok(())
    })?;
    Ok(())
}

// ---- Facts and time

pub(crate) fn the_same_facts_give_the_same_plan(planner: &dyn Planner, history: &History) -> Checked {
    history.play(planner, |world, plan, _| {
        let names: Vec<_> = world.known.keys().cloned().collect();
        let in_order = world.plan_from_scratch(names.iter().cloned());
        let backwards = world.plan_from_scratch(names.iter().rev().cloned());
        prop_assert_eq!(plan, &in_order);
        prop_assert_eq!(plan, &backwards);
        Ok(())
    })?;
    Ok(())
}

pub(crate) fn no_wake_up_is_lost(planner: &dyn Planner, history: &History) -> Checked {
    let mut world = history.play(planner, |_, _, _| Ok(()))?;
    for _ in 0..4 {
        let plan = world.plan();
        world.write(&plan, crate::rollout_world::Writes::All);
        let standing = world.plan();
        if !standing.gives.is_empty() || !world.has_stored(&standing) {
            continue;
        }
        // Asked now and then, or never before the time that it has named.
        let wake = standing.wake.unwrap_or(world.now + SignedDuration::from_hours(24));
        prop_assert!(wake > world.now, "it wakes at once, for ever");
        let length = wake.duration_since(world.now);
        let mut asked = world.clone();
        for part in [0, 10, 40, 99] {
            asked.now = world.now + length / 100 * part;
            let between = asked.plan();
            prop_assert_eq!(
                &between,
                &standing,
                "it is another plan {} before it wakes",
                wake.duration_since(asked.now)
            );
        }
        (world.now, asked.now) = (wake, wake);
        prop_assert_eq!(world.plan(), asked.plan());
    }
    Ok(())
}

// ---- Rest

pub(crate) fn a_quiet_fleet_comes_to_rest(planner: &dyn Planner, history: &History) -> Checked {
    let mut world = history.play(planner, |_, _, _| Ok(()))?;
    world.relist();
    let Some(plan) = world.settle() else {
        return Err(TestCaseError::fail("it never rests"));
    };
    for (entry, course) in plan.courses.iter().enumerate() {
        if let Some(hold) = &course.hold {
            is_right_to_hold(&world, &plan, entry, hold)?;
            continue;
        }
        let Some(wanted) = world.wanted_set(entry, &plan) else { continue };
        for (name, member) in world.decided(entry).filter(|(_, member)| is_ready(member)) {
            prop_assert_eq!(given(member).map(letter), Some(letter(&wanted)), "{} does not have what is wanted", name);
        }
    }
    world.pass(100_000);
    let later = world.plan();
    prop_assert_eq!(&later, &plan, "it does not stay at rest");
    prop_assert!(plan.happenings.is_empty() && plan.ended.is_empty());
    Ok(())
}

pub(crate) fn a_quiet_fleet_with_canaries_comes_to_rest(planner: &dyn Planner, history: &History) -> Checked {
    a_quiet_fleet_comes_to_rest(planner, history)
}

/// Whether there is something behind a hold that does not go away by itself.
fn is_right_to_hold(world: &World, plan: &Plan<Set>, entry: usize, hold: &Hold<Set>) -> Checked {
    let canary = world.canary(entry);
    let is_right = match hold {
        Hold::Blocked(_) => world.wanted(entry, plan).is_some_and(|wanted| wanted.is_err()),
        Hold::Paused(_) => world.wishes[entry].pause.is_some(),
        Hold::Halted { .. } => world.decided(entry).any(|(_, member)| !member.is_online),
        Hold::CanaryUnhealthy(name) => !world.known[name].is_online,
        Hold::Lost(_) => plan.courses[entry].goal.as_ref().is_some_and(|goal| world.all_lost().contains(goal)),
        Hold::Gate(Shut::NoPlacement(_)) => canary.is_none_or(|canary| !world.wishes[canary].is_there),
        Hold::Gate(Shut::Cycle(_)) => world.waits_for_itself(entry),
        Hold::Gate(Shut::NoCanaries(_) | Shut::AllSkipped(_)) => canary.is_some_and(|canary| {
            !world.known.iter().any(|(name, member)| world.is_selected(name, canary) && !member.steering.is_skipped)
        }),
        Hold::Gate(Shut::ConfiguredOtherwise(_)) => {
            canary.is_some_and(|canary| world.wanted_set(canary, plan) != world.wanted_set(entry, plan))
        }
        Hold::Gate(Shut::Overridden(name)) => {
            world.known[name].addon.as_ref().is_some_and(|addon| addon.overrides.is_some() || addon.is_at_odds)
        }
        Hold::Gate(Shut::Unproven { first, .. }) => is_right_to_wait_for(world, plan, canary, first),
        Hold::Outdated(_) | Hold::Gate(Shut::Unreadable(_) | Shut::Soaking { .. } | Shut::Finishing { .. }) => false,
    };
    prop_assert!(is_right, "entry {entry} is held up by {hold:?}");
    if let Some(good) =
        plan.courses[entry].progress.last_known_good.as_ref().filter(|good| world.is_trusted(entry, good))
    {
        let is_halt = matches!(hold, Hold::Halted { .. } | Hold::CanaryUnhealthy(_) | Hold::Lost(_));
        let is_halt = is_halt || world.all_lost().contains(good);
        let newcomers = || world.decided(entry).filter(|(_, member)| is_ready(member));
        for (name, member) in newcomers().filter(|_| !is_halt) {
            prop_assert!(given(member).is_some(), "{} gets nothing, though {} is good", name, letter(good));
        }
    }
    Ok(())
}

/// Whether a canary can not do what is waited for, though all do what they are told.
fn is_right_to_wait_for(world: &World, plan: &Plan<Set>, canary: Option<usize>, name: &ClusterName) -> bool {
    let member = &world.known[name];
    let Some(canary) = canary else { return false };
    let is_moved_by_another = world.decides(member) != Some(canary);
    is_moved_by_another
        || !is_ready(member)
        || plan.courses[canary].hold.is_some()
        || plan.courses[canary].problem.is_some()
}
