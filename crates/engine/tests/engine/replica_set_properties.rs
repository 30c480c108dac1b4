//! What holds for every set of works, whatever agents say, users change, the server answers and the
//! clock shows.

use std::collections::BTreeSet;

use drover_engine::{condition::Holds, plan::PlanStep, tracker::BATCH};
use proptest::{prelude::*, sample::select};

use crate::{
    counterexample::{Checked, counterexample, counterexample_of},
    replica_set_world::{Event, Fault, Limits, SOAK, World, group, name},
    sending::{Manner, PickyServer, manners, picky_servers},
};

const CLUSTERS: usize = 6;

fn cluster() -> impl Strategy<Value = usize> {
    0..CLUSTERS
}

fn event() -> impl Strategy<Value = Event> {
    let holds = || prop_oneof![3 => Just(Holds::Yes), 1 => Just(Holds::No), 1 => Just(Holds::Unknown)];
    prop_oneof![
        6 => (cluster(), holds(), holds()).prop_map(|(cluster, applied, available)| Event::Says(cluster, applied, available)),
        1 => (cluster(), any::<bool>()).prop_map(|(cluster, is_online)| Event::Reaches(cluster, is_online)),
        1 => cluster().prop_map(Event::Loses),
        1 => (1..4_u8).prop_map(Event::Changes),
        2 => (1..200_i64).prop_map(Event::Passes),
    ]
}

/// Events that also change who is selected, and the hub.
fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => event(),
        2 => (cluster(), any::<bool>()).prop_map(|(cluster, is)| Event::Selects(cluster, is)),
        1 => Just(Event::Restarts),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (1..4_usize, 0..3_usize, flags).prop_map(|(window, failures, (soaks, has_deadline, per_group))| Limits {
        window,
        failures,
        soaks,
        has_deadline,
        per_group,
    })
}

/// A set, and what happens to it.
#[derive(Clone, Debug)]
struct History {
    limits: Limits,
    /// How many clusters are written in one plan.
    batch: usize,
    /// What happens, and how the hub sends the plan that follows.
    steps: Vec<(Event, Manner)>,
}

impl History {
    fn world(&self, fault: Option<Fault>) -> World {
        World::new(self.limits.clone(), CLUSTERS).with_fault(fault).with_batches_of(self.batch)
    }

    fn play(&self, fault: Option<Fault>) -> World {
        let mut world = self.world(fault);
        for (event, manner) in &self.steps {
            world.happen(event);
            world.round(*manner);
        }
        world
    }
}

fn histories_of(
    event: impl Strategy<Value = Event>,
    manner: impl Strategy<Value = Manner>,
) -> impl Strategy<Value = History> {
    let batch = select(vec![1, 2, BATCH]);
    (limits(), batch, prop::collection::vec((event, manner), 0..60)).prop_map(|(limits, batch, steps)| History {
        limits,
        batch,
        steps,
    })
}

fn histories() -> impl Strategy<Value = History> {
    histories_of(event(), manners())
}

/// Histories of anything.
fn any_histories() -> impl Strategy<Value = History> {
    histories_of(any_event(), manners())
}

fn holds(strategy: &impl Strategy<Value = History>, property: impl Fn(&History) -> Checked) {
    if let Some(case) = counterexample(strategy, |history| property(&history)) {
        panic!("{case}");
    }
}

// ---- How many

/// Whether no report makes more clusters be in flight than may be, or moves a cluster that runs
/// something before all of the groups before its own were given the goal.
fn keeps_window_and_groups(history: &History, fault: Option<Fault>) -> Checked {
    let mut world = history.world(fault);
    for (event, manner) in &history.steps {
        world.happen(event);
        let works = &world.works;
        let had_some: BTreeSet<_> = works.keys().cloned().collect();
        let ran: BTreeSet<_> = works.iter().filter(|(_, work)| work.has_run()).map(|(name, _)| name.clone()).collect();
        let had: BTreeSet<_> =
            works.iter().filter(|(_, work)| work.says() == world.goal()).map(|(name, _)| name.clone()).collect();
        let gives = World::gives(&world.round(*manner));
        let in_flight = world.in_flight();
        // A cluster that is in flight already may be turned around in place.
        let is_start = gives.iter().any(|cluster| ran.contains(cluster) || !had_some.contains(cluster));
        prop_assert!(!is_start || in_flight.len() <= world.room(), "{in_flight:?} {gives:?}");
        for cluster in gives.iter().filter(|cluster| ran.contains(*cluster)) {
            let first = world.come_before(group(cluster).index);
            prop_assert!(first.iter().all(|first| had.contains(*first)), "{cluster} before {first:?}");
        }
    }
    Ok(())
}

#[test]
fn works_that_record_nothing_or_too_early_are_caught() {
    for fault in [Fault::KeepsNoProof, Fault::RecordsTooEarly] {
        let found = counterexample_of(&histories(), 1024, 0, |history| keeps_window_and_groups(&history, Some(fault)));
        assert!(found.is_some(), "{fault:?}");
    }
}

#[test]
fn no_report_exceeds_the_window_or_moves_a_cluster_before_its_group() {
    holds(&histories(), |history| keeps_window_and_groups(history, None));
}

fn gives_nothing_beyond_the_window(history: &History) -> Checked {
    let mut world = history.world(None);
    for (event, manner) in &history.steps {
        world.happen(event);
        let (before, goal) = (world.fresh(), world.goal());
        let works = world.works.iter().filter(|(_, work)| work.says() == goal);
        let had: BTreeSet<_> = works.map(|(name, _)| name.clone()).collect();
        let gives = World::gives(&world.round(*manner));
        prop_assert!(gives.is_empty() || before + gives.len() <= world.room(), "{before} and {gives:?}");
        for cluster in &gives {
            prop_assert!(world.is_online(cluster), "{cluster} can not be reached");
            prop_assert!(!had.contains(cluster), "{cluster} had it already");
        }
    }
    Ok(())
}

#[test]
fn nobody_is_given_anything_beyond_the_window() {
    holds(&histories(), gives_nothing_beyond_the_window);
}

// ---- Plans

/// What a plan does about clusters.
fn does(plan: &drover_engine::plan::Plan<impl PlanStep>) -> Vec<String> {
    let works = plan.parallel.iter().filter(|write| write.kind().kind == "ManifestWork");
    plan.actions.iter().map(|action| format!("{action:?}")).chain(works.map(|write| format!("{write:?}"))).collect()
}

fn plans_the_same_after_a_restart(history: &History) -> Checked {
    let mut world = history.world(None).with_batches_of(BATCH);
    for (event, _) in &history.steps {
        world.happen(event);
        let anew = world.plan_anew();
        let plan = world.round(Manner::default());
        prop_assert_eq!(does(&plan), does(&anew));
    }
    Ok(())
}

#[test]
fn who_begins_anew_plans_the_same() {
    // That a rollout has finished but for clusters that can not be reached is not in the status, so
    // that it is not recalled.
    let is_reachable = |event: &Event| !matches!(event, Event::Reaches(_, false));
    let reachable = event().prop_filter("every cluster can be reached", is_reachable);
    holds(&histories_of(reachable, manners()), plans_the_same_after_a_restart);
}

fn plans_again_what_was_dropped(history: &History) -> Checked {
    let mut world = history.world(None);
    for (event, manner) in &history.steps {
        world.happen(event);
        let mut plan = world.plan();
        // One that is to be followed by another at once may have found out something that the next
        // is made by.
        for _ in 0..=CLUSTERS {
            let again = world.plan();
            prop_assert!(plan.wake == Some(world.now) || does(&plan) == does(&again), "{:?} {:?}", plan, again);
            plan = again;
        }
        prop_assert_eq!(does(&plan), does(&world.plan()));
        prop_assert_eq!(does(&plan), does(&world.plan_after_resync()));
        world.round(*manner);
    }
    Ok(())
}

#[test]
fn a_plan_that_is_dropped_is_made_again() {
    holds(&any_histories(), plans_again_what_was_dropped);
}

// ---- The end

/// Lets all agents be well until the hub has nothing more to do.
fn settle(world: &mut World) {
    for cluster in 0..CLUSTERS {
        world.happen(&Event::Reaches(cluster, true));
        world.happen(&Event::Selects(cluster, true));
    }
    // With the smallest window and batch, each cluster is given the template, and then its proof is
    // recorded.
    for _ in 0..8 * CLUSTERS {
        for cluster in 0..CLUSTERS {
            world.happen(&Event::Says(cluster, Holds::Yes, Holds::Yes));
        }
        world.round(Manner::default());
        world.happen(&Event::Passes(SOAK));
        world.round(Manner::default());
    }
}

fn comes_to_rest(history: &History) -> Checked {
    let mut world = history.play(None);
    settle(&mut world);
    prop_assert!(world.is_complete());
    let goal = world.goal();
    prop_assert!((0..CLUSTERS).all(|cluster| world.works.get(&name(cluster)).is_some_and(|work| work.says() == goal)));
    let plan = world.plan_after_resync();
    prop_assert!(plan.actions.is_empty() && plan.parallel.is_empty(), "{:?}", plan);
    world.restart();
    let plan = world.plan();
    prop_assert!(plan.actions.is_empty() && plan.parallel.is_empty(), "after a restart: {:?}", plan);
    Ok(())
}

#[test]
fn where_all_agents_are_well_everybody_gets_there_and_nothing_more_is_written() {
    holds(&any_histories(), comes_to_rest);
}

// ---- Batches

/// Whether every cluster is written within as many plans as there are batches, whatever becomes of
/// the others.
fn every_cluster_has_its_turn(server: &PickyServer, fault: Option<Fault>) -> Checked {
    let clusters = server.accepts.len();
    let limits = Limits { window: clusters, failures: 0, soaks: false, has_deadline: false, per_group: false };
    let mut world = World::new(limits, clusters).with_fault(fault).with_batches_of(server.batch);
    world.rejects = (0..clusters).filter(|number| !server.accepts[*number]).map(name).collect();
    for _ in 0..clusters.div_ceil(server.batch) {
        world.round(Manner { drops: server.drops, ..Manner::default() });
    }
    for cluster in (0..clusters).map(name) {
        prop_assert!(world.asked.contains(&cluster), "{} has had no turn", cluster);
        prop_assert_eq!(world.works.contains_key(&cluster), !world.rejects.contains(&cluster), "{}", cluster);
    }
    Ok(())
}

#[test]
fn every_cluster_has_its_turn_in_every_fleet() {
    if let Some(case) = counterexample(&picky_servers(), |server| every_cluster_has_its_turn(&server, None)) {
        panic!("{case}");
    }
}

#[test]
fn every_cluster_has_its_turn_in_a_fleet_of_several_batches() {
    let accepts = (0..2 * BATCH + 10).map(|number| number >= BATCH + 5).collect();
    every_cluster_has_its_turn(&PickyServer { batch: BATCH, accepts, drops: 1 }, None)
        .expect("every cluster is written");
}

#[test]
fn cursor_that_stands_still_or_moves_with_a_dropped_plan_is_caught() {
    for fault in [Fault::RecordsNoResults, Fault::RecordsDroppedPlans] {
        let found =
            counterexample_of(&picky_servers(), 1024, 0, |server| every_cluster_has_its_turn(&server, Some(fault)));
        assert!(found.is_some(), "{fault:?}");
    }
}
