//! What holds for every upgrade, whatever happens to its clusters and to the hub.
//!
//! Each property is about a [`Decider`], so that the deliberately wrong ones in `upgrade_faulty.rs` can be held to it too. What counts is what
//! is stored when something is done, not what a hub has in mind.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{
    drover::{ClusterUpgradePhase as Phase, ClusterUpgradeStatus},
    grammar::SetFingerprint,
    reference::ClusterName,
};
use drover_engine::{
    plan::{Plan, Write},
    tracker::BATCH,
    upgrade::{
        member::{Act, Owner, Standing},
        naming::Part,
        plan::{Fleet, Hold, Member},
        target::Place,
    },
};
use k8s_openapi::jiff::SignedDuration;
use proptest::prelude::*;

use crate::{
    counterexample::{Checked, counterexample, holds_for_the_engine},
    sending::{Manner, PickyServer, picky_servers},
    upgrade_history::{History, canary_histories, histories},
    upgrade_site::{Script, Site},
    upgrade_world::{Decider, Engine, Moment, Wish, World, has_slot, is_under_way, phase_of},
};

/// Something that holds for a decider in a history.
pub(crate) type Property = fn(&dyn Decider, &History) -> Checked;

holds_for_the_engine! {
    never_more_than_the_limit in histories();
    nothing_passes_a_shut_gate in canary_histories();
    a_gate_opens_for_canaries_that_are_done in canary_histories();
    nobody_is_begun_once_a_canary_has_failed in canary_histories();
    only_who_can_be_upgraded_is in histories();
    only_who_is_selected_is_begun in histories();
    each_cluster_is_asked_once in histories();
    a_target_stays_while_a_cluster_is_under_way in histories();
    a_paused_upgrade_starts_nobody in histories();
    nobody_is_begun_beyond_the_failure_budget in histories();
    the_hub_is_upgraded_alone in histories();
    nobody_is_complete_without_the_check in histories();
    the_counts_are_right in histories();
    a_look_at_everybody_finds_nothing_new in histories();
    a_plan_that_is_dropped_is_made_again in histories();
    a_quiet_fleet_is_written_nothing in histories();
    a_quiet_fleet_comes_to_rest in histories();
    a_quiet_fleet_with_canaries_comes_to_rest in canary_histories();
    late_success_repairs in histories();
    a_retry_is_a_new_attempt in histories();
}

/// What a cluster's record is about to say, if that begins something: the phase that it was in, and the one that it will be in.
fn begins(world: &World, name: &ClusterName, act: &Act) -> Option<(Phase, Phase)> {
    let Act::Tell(status) = act else { return None };
    let (from, to) = (world.phase(name), phase_of(Some(&**status)));
    let is_beginning = (is_under_way(to) && !is_under_way(from)) || (has_slot(to) && !has_slot(from));
    is_beginning.then_some((from, to))
}

/// Checks everything that is begun in a history against something that was so when it was planned.
fn whenever_one_is_begun_after<T>(
    decider: &dyn Decider,
    history: &History,
    mut planned: impl FnMut(&World) -> T,
    mut check: impl FnMut(&World, &ClusterName, &T) -> Checked,
) -> Checked {
    let mut was_so = None;
    let observe = &mut |world: &mut World, moment: Moment| {
        match moment {
            Moment::Planned(_) => was_so = Some(planned(world)),
            Moment::Acting(name, act) if begins(world, name, act).is_some() => {
                check(world, name, was_so.as_ref().expect("it was planned"))?;
            }
            Moment::Acting(..) | Moment::Recording(_) => {}
        }
        Ok(())
    };
    history.play(decider, observe)?.settle(observe)?;
    Ok(())
}

/// Checks everything that is begun in a history.
fn whenever_one_is_begun(
    decider: &dyn Decider,
    history: &History,
    mut check: impl FnMut(&World, &ClusterName, (Phase, Phase)) -> Checked,
) -> Checked {
    let observe = &mut |world: &mut World, moment: Moment| {
        if let Moment::Acting(name, act) = moment
            && let Some(phases) = begins(world, name, act)
        {
            check(world, name, phases)?;
        }
        Ok(())
    };
    history.play(decider, observe)?.settle(observe)?;
    Ok(())
}

/// Whether it is sure that nothing selects a cluster any more.
fn has_left(world: &World, name: &ClusterName) -> bool {
    !world.is_selected(name) && !world.is_unsure(name)
}

fn stored<'w>(world: &'w World, name: &ClusterName) -> Option<&'w ClusterUpgradeStatus> {
    world.sites[name].record.as_ref()?.status.as_ref()
}

// ---- How many

pub(crate) fn never_more_than_the_limit(decider: &dyn Decider, history: &History) -> Checked {
    whenever_one_is_begun(decider, history, |world, name, (_, to)| {
        let limit = world.wish.strategy.limit;
        prop_assert!(!has_slot(to) || world.in_slots() < limit, "{name} is one more than {limit}");
        Ok(())
    })
}

pub(crate) fn a_paused_upgrade_starts_nobody(decider: &dyn Decider, history: &History) -> Checked {
    whenever_one_is_begun(decider, history, |world, name, phases| {
        prop_assert!(!world.wish.is_paused, "{name}: {phases:?}");
        Ok(())
    })
}

pub(crate) fn nobody_is_begun_beyond_the_failure_budget(decider: &dyn Decider, history: &History) -> Checked {
    let failed = |world: &World| {
        let is_counted = |name: &&ClusterName| world.is_selected(name) && world.is_current(name);
        // Who was not begun has not failed for what is rolled out.
        let was_begun = |name: &&ClusterName| {
            let status = world.sites[*name].own_record().and_then(|record| record.status.as_ref());
            status.and_then(|status| status.failed_phase) != Some(Phase::Waiting)
        };
        let has_failed = |name: &&ClusterName| world.phase(name) == Phase::Failed && was_begun(name);
        world.sites.keys().filter(is_counted).filter(has_failed).count()
    };
    whenever_one_is_begun_after(decider, history, failed, |world, name, failed| {
        let Some(allowed) = world.wish.strategy.max_failures else { return Ok(()) };
        prop_assert!(*failed <= allowed, "{name} is begun although {failed} have failed");
        Ok(())
    })
}

pub(crate) fn the_hub_is_upgraded_alone(decider: &dyn Decider, history: &History) -> Checked {
    whenever_one_is_begun(decider, history, |world, name, phases| {
        let others = || world.sites.iter().filter(|(other, _)| *other != name);
        // Who leaves before it has begun is as good as gone.
        let is_busy = |other: &ClusterName| {
            let phase = world.phase(other);
            has_slot(phase) || (is_under_way(phase) && !has_left(world, other))
        };
        let is_alone = if world.sites[name].is_hub {
            !others().any(|(other, _)| is_busy(other))
        } else {
            !others().any(|(other, site)| site.is_hub && is_busy(other))
        };
        prop_assert!(is_alone, "{name}: {phases:?}");
        Ok(())
    })
}

// ---- Canaries

pub(crate) fn nothing_passes_a_shut_gate(decider: &dyn Decider, history: &History) -> Checked {
    whenever_one_is_begun(decider, history, |world, name, phases| {
        if !world.wish.strategy.has_canaries || world.is_canary(name) {
            return Ok(());
        }
        let target = world.wish.target();
        let passed = world.passed().filter(|passed| passed.target == *target.name());
        let soak = SignedDuration::try_from(world.wish.strategy.soak).expect("a duration");
        prop_assert!(passed.is_some_and(|passed| passed.time + soak <= world.now), "{name}: {phases:?}");
        Ok(())
    })
}

pub(crate) fn a_gate_opens_for_canaries_that_are_done(decider: &dyn Decider, history: &History) -> Checked {
    let observe = &mut |world: &mut World, moment: Moment| {
        let Moment::Recording(status) = moment else { return Ok(()) };
        let is_new = |target: &SetFingerprint| world.passed().is_none_or(|passed| passed.target != *target);
        let Some(passed) = status.canaries_passed.as_ref().filter(|passed| is_new(&passed.target)) else {
            return Ok(());
        };
        let target = world.wish.target();
        prop_assert_eq!(&passed.target, target.name());
        prop_assert!(world.canaries().count() > 0);
        for canary in world.canaries() {
            let is_done = world.phase(canary) == Phase::Complete && world.is_current(canary);
            prop_assert!(is_done, "{} is not done", canary);
        }
        Ok(())
    };
    history.play(decider, observe)?.settle(observe)?;
    Ok(())
}

pub(crate) fn nobody_is_begun_once_a_canary_has_failed(decider: &dyn Decider, history: &History) -> Checked {
    let failed = |world: &World| {
        let has_failed = |canary: &&ClusterName| world.phase(canary) == Phase::Failed && world.is_current(canary);
        world.canaries().find(has_failed).cloned()
    };
    whenever_one_is_begun_after(decider, history, failed, |world, name, failed| {
        let target = world.wish.target();
        let has_passed = world.passed().is_some_and(|passed| passed.target == *target.name());
        // Who has begun before may do what is left.
        let is_resumed = stored(world, name).is_some_and(|status| status.platform_completed.is_some());
        if !world.wish.strategy.has_canaries || has_passed || (is_resumed && world.is_canary(name)) {
            return Ok(());
        }
        prop_assert_eq!(failed, &None, "{} is begun", name);
        Ok(())
    })
}

// ---- To whom

pub(crate) fn only_who_can_be_upgraded_is(decider: &dyn Decider, history: &History) -> Checked {
    let observe = &mut |world: &mut World, moment: Moment| {
        let Moment::Acting(name, act) = moment else { return Ok(()) };
        let site = &world.sites[name];
        if let Act::Send(Part::Platform | Part::Operators, _) = act {
            prop_assert_eq!(&site.owner, &Owner::Us, "a work is sent to {}", name);
        }
        let Some((_, Phase::Upgrading)) = begins(world, name, act) else { return Ok(()) };
        prop_assert!(site.is_online && site.is_there && site.is_accepted, "{} can not be reached", name);
        prop_assert_eq!(&site.owner, &Owner::Us, "{} is not ours", name);
        let (version, is_complete) = site.reported().expect("it was found out what the cluster runs");
        let target = world.wish.target();
        let place = if is_complete { target.place_of(&version) } else { Place::Below };
        prop_assert_eq!(place, Place::Below, "{} runs {} and is upgraded to {}", name, version, target.title());
        Ok(())
    };
    history.play(decider, observe)?.settle(observe)?;
    Ok(())
}

pub(crate) fn only_who_is_selected_is_begun(decider: &dyn Decider, history: &History) -> Checked {
    whenever_one_is_begun(decider, history, |world, name, (from, to)| {
        let site = &world.sites[name];
        // Whose platform is upgraded does what is left, selected or not.
        let goes_on = from == Phase::Waiting && matches!(to, Phase::Operators | Phase::PostAction);
        let is_selected = world.is_selected(name) || (goes_on && !world.is_unsure(name));
        prop_assert!(is_selected && site.is_there, "{name}: {from:?} to {to:?}");
        Ok(())
    })
}

pub(crate) fn each_cluster_is_asked_once(decider: &dyn Decider, history: &History) -> Checked {
    let mut asked = BTreeSet::new();
    let observe = &mut |world: &mut World, moment: Moment| {
        let Moment::Acting(name, Act::Send(Part::Platform, _)) = moment else { return Ok(()) };
        let site = &world.sites[name];
        let record = site.record.as_ref().expect("what is sent is recorded before");
        prop_assert_eq!(world.phase(name), Phase::Upgrading, "{} is sent a work", name);
        let acknowledged = record.status.as_ref().and_then(|status| status.acknowledged.as_ref());
        let retried = acknowledged.and_then(|acknowledged| acknowledged.retried.as_ref()).map(|time| time.0);
        let which = (name.clone(), record.metadata.uid.clone(), record.metadata.generation, retried);
        let is_new = asked.insert(which) || site.works.contains_key(&Part::Platform);
        prop_assert!(is_new, "{} is asked again for {:?}", name, record.spec.target.version);
        Ok(())
    };
    history.play(decider, observe)?.settle(observe)?;
    Ok(())
}

pub(crate) fn a_target_stays_while_a_cluster_is_under_way(decider: &dyn Decider, history: &History) -> Checked {
    let observe = &mut |world: &mut World, moment: Moment| {
        if let Moment::Acting(name, Act::Retarget(_) | Act::Drop) = moment {
            // Who is not selected any more can still go before it has begun.
            let phase = world.phase(name);
            let can_go = phase == Phase::PreAction && has_left(world, name);
            prop_assert!(!is_under_way(phase) || can_go, "{} is in {:?}", name, phase);
        }
        Ok(())
    };
    history.play(decider, observe)?.settle(observe)?;
    Ok(())
}

pub(crate) fn nobody_is_complete_without_the_check(decider: &dyn Decider, history: &History) -> Checked {
    // The clusters that were asked for something, with their records and what those were about.
    let mut changed = BTreeSet::new();
    let observe = &mut |world: &mut World, moment: Moment| {
        let Moment::Acting(name, act) = moment else { return Ok(()) };
        let record = world.sites[name].record.as_ref();
        let which = record.map(|record| (name.clone(), record.metadata.uid.clone(), record.metadata.generation));
        match act {
            Act::Send(Part::Platform, _) => drop(changed.insert(which)),
            Act::Tell(status) if status.phase == Some(Phase::Complete) && changed.contains(&which) => {
                prop_assert!(!world.wish.has_operators || status.operators_completed.is_some(), "{}: operators", name);
                prop_assert!(!world.wish.has_post_action || status.post_action.is_some(), "{}: check", name);
            }
            _ => {}
        }
        Ok(())
    };
    history.play(decider, observe)?.settle(observe)?;
    Ok(())
}

// ---- Counts and plans

/// All that can be seen of a fleet.
fn seen(fleet: &Fleet) -> impl PartialEq + std::fmt::Debug + use<> {
    let members: BTreeMap<_, _> = fleet.members().map(|(name, member)| (name.clone(), member.clone())).collect();
    let failed: Vec<_> = fleet.failed().cloned().collect();
    (members, fleet.tally().clone(), fleet.canaries().clone(), failed, fleet.failed_canary().cloned())
}

pub(crate) fn the_counts_are_right(decider: &dyn Decider, history: &History) -> Checked {
    let observe = &mut |world: &mut World, moment: Moment| {
        let Moment::Planned(_) = moment else { return Ok(()) };
        let count = |is: fn(&Standing) -> bool| {
            let members = world.fleet().members().filter(|(_, member)| is(&member.standing));
            i64::try_from(members.count()).expect("a few")
        };
        let tally = world.fleet().tally();
        let before = count(|standing| matches!(standing, Standing::Failed { was_begun: false, .. }));
        let after = count(|standing| matches!(standing, Standing::Failed { was_begun: true, .. }));
        let started = count(|standing| matches!(standing, Standing::Begun | Standing::Resumable));
        prop_assert_eq!(tally.total, tally.pending + tally.initialized + before);
        prop_assert_eq!(tally.initialized, started + tally.partial + tally.complete + after);
        prop_assert_eq!(tally.failed, before + after);
        // What is counted is what is stored.
        for (name, member) in world.fleet().members() {
            let phase = world.phase(name);
            if member.standing == Standing::Complete || matches!(member.standing, Standing::Failed { .. }) {
                let is_stored = matches!(phase, Phase::Complete | Phase::Failed);
                prop_assert!(is_stored, "{} counts as {:?} and is in {:?}", name, member.standing, phase);
            }
            prop_assert_eq!(member.standing.has_slot(), has_slot(phase), "{}", name);
        }
        Ok(())
    };
    history.play(decider, observe)?.settle(observe)?;
    Ok(())
}

/// The same clusters, counted anew in that order.
fn counted_anew<'a>(members: impl Iterator<Item = (&'a ClusterName, &'a Member)>) -> Fleet {
    let mut fleet = Fleet::default();
    members.for_each(|(name, member)| fleet.update(name, Some(member.clone())));
    fleet
}

/// The same clusters, but for how long each took: that goes on until it is stored, which may take
/// more than one batch.
fn without_times(fleet: &Fleet) -> Fleet {
    let timeless = |(name, member): (&ClusterName, &Member)| (name.clone(), Member { took: None, ..member.clone() });
    let members: Vec<_> = fleet.members().map(timeless).collect();
    counted_anew(members.iter().map(|(name, member)| (name, member)))
}

pub(crate) fn a_look_at_everybody_finds_nothing_new(decider: &dyn Decider, history: &History) -> Checked {
    let observe = &mut |world: &mut World, moment: Moment| {
        let Moment::Planned(_) = moment else { return Ok(()) };
        let found = seen(world.fleet());
        let members: Vec<_> = world.fleet().members().collect();
        prop_assert_eq!(&found, &seen(&counted_anew(members.iter().copied())), "something is counted twice");
        prop_assert_eq!(&found, &seen(&counted_anew(members.into_iter().rev())), "counts depend on the order");
        let found = seen(&without_times(world.fleet()));
        world.plan_after_resync();
        prop_assert_eq!(found, seen(&without_times(world.fleet())), "a wake-up is lost");
        Ok(())
    };
    history.play(decider, observe)?.settle(observe)?;
    Ok(())
}

/// What a plan sends.
fn sends(plan: &Plan) -> Vec<Write> {
    plan.ordered.iter().chain(&plan.parallel).cloned().collect()
}

pub(crate) fn a_plan_that_is_dropped_is_made_again(decider: &dyn Decider, history: &History) -> Checked {
    let observe = &mut |world: &mut World, moment: Moment| {
        let Moment::Planned(plan) = moment else { return Ok(()) };
        let mut plan = plan.clone();
        // One that is to be followed by another at once may have found out something that the next
        // is made by.
        for _ in 0..=world.sites.len() {
            let again = world.plan();
            prop_assert!(plan.wake == Some(world.now) || sends(&plan) == sends(&again), "{:?} {:?}", plan, again);
            plan = again;
        }
        prop_assert_eq!(sends(&plan), sends(&world.plan()));
        prop_assert_eq!(sends(&plan), sends(&world.plan_after_resync()));
        Ok(())
    };
    history.play(decider, observe)?.settle(observe)?;
    Ok(())
}

// ---- The end

pub(crate) fn a_quiet_fleet_comes_to_rest(decider: &dyn Decider, history: &History) -> Checked {
    let nothing = &mut |_: &mut World, _: Moment| Ok(());
    let mut world = history.play(decider, nothing)?;
    let hold = world.settle(nothing)?;
    for name in world.sites.keys() {
        is_explained(&world, name, hold.as_ref())?;
        is_tidy(&world, name)?;
    }
    Ok(())
}

pub(crate) fn a_quiet_fleet_with_canaries_comes_to_rest(decider: &dyn Decider, history: &History) -> Checked {
    a_quiet_fleet_comes_to_rest(decider, history)
}

/// Whether it can be told why a cluster is where it is.
fn is_explained(world: &World, name: &ClusterName, hold: Option<&Hold>) -> Checked {
    let site = &world.sites[name];
    if !world.is_selected(name) {
        return Ok(());
    }
    if !site.is_there {
        prop_assert!(site.record.is_none(), "{} is gone, and its record is not", name);
        return Ok(());
    }
    let Some(record) = &site.record else {
        prop_assert!(!site.is_accepted, "{} has no record", name);
        return Ok(());
    };
    let reason = record.status.as_ref().and_then(|status| status.reason.as_deref()).unwrap_or_default();
    let is_waiting_for_others = || {
        let is_restless = |member: &drover_engine::upgrade::plan::Member| !member.standing.is_at_rest();
        world.fleet().members().any(|(other, member)| other != name && is_restless(member))
    };
    let is_held = hold.is_some() || (site.is_hub && is_waiting_for_others());
    let is_explained = match (world.phase(name), reason) {
        (Phase::Complete | Phase::Failed, _) => world.is_current(name),
        (Phase::Waiting, "Offline") => !site.is_online,
        (Phase::Waiting, "NotAccepted") => !site.is_accepted,
        (Phase::Waiting, "OwnedByAnotherUpgrade") => matches!(site.owner, Owner::Other(_)),
        (Phase::Waiting, "NotUpgradeable") => !site.script.is_upgradeable,
        (Phase::Waiting, "PreActionDegraded") => world.wish.has_pre_action,
        (Phase::Waiting, "Busy") => site.moving.is_some(),
        (Phase::Waiting, "HubComesLast") => site.is_hub && is_held,
        (Phase::Waiting, "Queued" | "Resuming") | (Phase::PreAction, "Prepared") => is_held,
        _ => false,
    };
    prop_assert!(is_explained, "{} is in {:?}: {}; {:?}", name, world.phase(name), reason, hold);
    if let Some(Hold::Canaries { .. }) = hold {
        let is_stuck = |canary: &ClusterName| world.phase(canary) == Phase::Waiting || world.is_unsure(canary);
        prop_assert!(world.canaries().any(is_stuck), "the canaries do not get on");
    }
    Ok(())
}

/// Whether nothing is left on a cluster that is over.
fn is_tidy(world: &World, name: &ClusterName) -> Checked {
    let site = &world.sites[name];
    let is_over = match world.phase(name) {
        _ if site.record.is_none() => true,
        phase => phase == Phase::Complete,
    };
    // What is withdrawn stays until the agent is back.
    let is_stuck = |part: &Part| !site.is_online && site.works[part].work.metadata.deletion_timestamp.is_some();
    let left: Vec<_> = site.works.keys().copied().filter(|part| !is_stuck(part)).collect();
    if is_over && site.is_there {
        let may_stay = world.fleet().tally().restless > 0 && site.record.is_some();
        let is_left = |part: &&Part| !(may_stay && matches!(part, Part::PreAction | Part::PostAction));
        prop_assert_eq!(left.iter().find(is_left), None, "{} has works left", name);
        let is_needed = [Part::Platform, Part::Operators].iter().any(|part| site.works.contains_key(part));
        prop_assert!(site.owner != Owner::Us || is_needed, "{} is not let go", name);
    }
    Ok(())
}

pub(crate) fn a_quiet_fleet_is_written_nothing(decider: &dyn Decider, history: &History) -> Checked {
    let nothing = &mut |_: &mut World, _: Moment| Ok(());
    let mut world = history.play(decider, nothing)?;
    world.settle(nothing)?;
    prop_assert_eq!(sends(&world.plan_after_resync()), []);
    world.restart();
    for _ in 0..2 {
        // A hub that has just started counts anew how long an action takes, which may show in the
        // counts of the upgrade.
        prop_assert_eq!(world.plan().parallel.iter().find_map(|write| world.act_of(write)), None, "after a restart");
    }
    Ok(())
}

// ---- Batches

/// Whether every cluster is written within as many plans as there are batches, whatever becomes of
/// the others.
pub(crate) fn every_cluster_has_its_turn(decider: &dyn Decider, server: &PickyServer) -> Checked {
    let name = |number: usize| ClusterName::from(format!("c{number:03}").as_str());
    let sites = (0..server.accepts.len()).map(|number| (name(number), Site::new("4.11.9", Script::well())));
    let mut world = World::new(decider, Wish::plain(), sites.collect()).with_batches_of(server.batch);
    let rejected = (0..server.accepts.len()).filter(|number| !server.accepts[*number]).map(name);
    world.rejects = rejected.collect();
    let manner = Manner { drops: server.drops, ..Manner::default() };
    for _ in 0..server.accepts.len().div_ceil(server.batch) {
        world.round(manner, &mut |_, _| Ok(()))?;
    }
    for name in world.sites.keys() {
        prop_assert!(world.asked.contains(name), "{} has had no turn", name);
        prop_assert_eq!(world.sites[name].record.is_some(), !world.rejects.contains(name), "{}", name);
    }
    Ok(())
}

#[test]
fn every_cluster_has_its_turn_in_every_fleet() {
    if let Some(case) = counterexample(&picky_servers(), |server| every_cluster_has_its_turn(&Engine, &server)) {
        panic!("{case}");
    }
}

#[test]
fn every_cluster_has_its_turn_in_a_fleet_of_several_batches() {
    let accepts = (0..2 * BATCH + 10).map(|number| number >= BATCH + 5).collect();
    every_cluster_has_its_turn(&Engine, &PickyServer { batch: BATCH, accepts, drops: 1 })
        .expect("every cluster is written");
}

pub(crate) fn late_success_repairs(decider: &dyn Decider, history: &History) -> Checked {
    let nothing = &mut |_: &mut World, _: Moment| Ok(());
    let mut world = history.play(decider, nothing)?;
    world.settle(nothing)?;
    for (name, site) in &world.sites {
        let is_heard = site.is_online && site.is_there && site.works.contains_key(&Part::Platform);
        let target = site.record.as_ref().and_then(|record| record.spec.target.version.as_ref());
        let failed_at = stored(&world, name).and_then(|status| status.failed_phase);
        if is_heard && world.phase(name) == Phase::Failed && failed_at == Some(Phase::Upgrading) {
            prop_assert_ne!(target, Some(&site.runs), "{} has got there, and counts as failed", name);
        }
    }
    Ok(())
}

pub(crate) fn a_retry_is_a_new_attempt(decider: &dyn Decider, history: &History) -> Checked {
    // The works that were there when it was asked to try again.
    let mut former: BTreeMap<(ClusterName, Part), u32> = BTreeMap::new();
    let observe = &mut |world: &mut World, moment: Moment| {
        let Moment::Acting(name, Act::Tell(status)) = moment else { return Ok(()) };
        let works = &world.sites[name].works;
        let part = match status.reason.as_deref() {
            Some("Retried") => {
                former.extend(works.iter().map(|(part, work)| ((name.clone(), *part), work.number)));
                return Ok(());
            }
            Some("OperatorsFailed") => Part::Operators,
            Some("PostActionDegraded") => Part::PostAction,
            _ => return Ok(()),
        };
        let is_fresh = world.phase(name) != Phase::Failed && status.phase == Some(Phase::Failed);
        if let Some(work) = works.get(&part).filter(|_| is_fresh) {
            let judged = former.get(&(name.clone(), part));
            prop_assert_ne!(judged, Some(&work.number), "{} fails by what had failed before", name);
        }
        Ok(())
    };
    history.play(decider, observe)?.settle(observe)?;
    Ok(())
}
