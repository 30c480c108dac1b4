//! What holds for every set of works, whatever agents say, users change and the clock shows.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use drover_api::{
    drover::{RolloutProgress, RolloutState},
    grammar::SetFingerprint,
    reference::{ClusterName, PlacementRef},
};
use drover_engine::{
    condition::Holds,
    presence::Source,
    revision::markers::{Proof, Verdict},
    rollout::{
        Entry, Goal, Plan, Rollout, Sets, Wish,
        member::{Group, Selection},
        strategy::Strategy,
    },
    work::replica_set::member::{Held, Placed, Spot, member},
    work::replica_set::revision::Template,
    workreport::{Report, Said, template::Rules},
};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use proptest::{prelude::*, strategy::Strategy as _};
use serde_json::json;

use crate::{counterexample::counterexample_of, fleet::noon};

const CLUSTERS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
/// How long a cluster has to stay well, where it has to.
const SOAK: i64 = 60;

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    /// An agent says whether the work of its cluster is applied and available.
    Says(usize, Holds, Holds),
    /// A cluster can be reached, or not.
    Reaches(usize, bool),
    /// Somebody deletes the work of a cluster.
    Loses(usize),
    /// The template is another one.
    Changes(u8),
    /// Time passes.
    Passes(i64),
}

fn event() -> impl proptest::strategy::Strategy<Value = Event> {
    let holds = || prop_oneof![3 => Just(Holds::Yes), 1 => Just(Holds::No), 1 => Just(Holds::Unknown)];
    let cluster = || 0..CLUSTERS.len();
    prop_oneof![
        6 => (cluster(), holds(), holds()).prop_map(|(cluster, applied, available)| Event::Says(cluster, applied, available)),
        1 => (cluster(), any::<bool>()).prop_map(|(cluster, is_online)| Event::Reaches(cluster, is_online)),
        1 => cluster().prop_map(Event::Loses),
        1 => (1..4_u8).prop_map(Event::Changes),
        2 => (1..200_i64).prop_map(Event::Passes),
    ]
}

/// How a change reaches the clusters.
#[derive(Clone, Debug)]
struct Limits {
    window: usize,
    failures: usize,
    soaks: bool,
    has_deadline: bool,
    /// Whether one decision group comes after the other.
    per_group: bool,
}

fn limits() -> impl proptest::strategy::Strategy<Value = Limits> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (1..4_usize, 0..3_usize, flags).prop_map(|(window, failures, (soaks, has_deadline, per_group))| Limits {
        window,
        failures,
        soaks,
        has_deadline,
        per_group,
    })
}

impl Limits {
    /// How many clusters may be in flight. Where groups follow each other, nothing else limits them.
    fn room(&self) -> usize {
        if self.per_group { CLUSTERS.len() } else { self.window }
    }
}

/// The decision group of a cluster, by its place in `CLUSTERS`.
fn group(cluster: &str) -> Group {
    let place = CLUSTERS.iter().position(|known| *known == cluster).expect("one of ours");
    Group { index: u32::try_from(place / 2).expect("few"), name: None }
}

/// The clusters of a set, the set, and who plans for it.
struct World {
    limits: Limits,
    works: BTreeMap<&'static str, Placed>,
    /// Clusters that have been well with their work since they were given it.
    ran: BTreeSet<&'static str>,
    offline: Vec<&'static str>,
    goal: SetFingerprint,
    now: Timestamp,
    fault: Option<Fault>,
    /// One that is kept up to date.
    rollout: Rollout<Template>,
}

fn template(number: u8) -> SetFingerprint {
    SetFingerprint::of([number; 8])
}

impl World {
    fn new(limits: Limits) -> Self {
        let rollout = Rollout::new(vec![entry(&limits)]);
        let (works, ran, offline) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        Self { limits, works, ran, offline, goal: template(1), now: noon(), fault: None, rollout }
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::Says(cluster, applied, available) => {
                let said = |holds: &Holds| Some(Said { holds: *holds, since: self.now });
                if let Some(work) = self.works.get_mut(CLUSTERS[*cluster]) {
                    work.report = Report { applied: said(applied), available: said(available), ..Report::default() };
                    if (*applied, *available) == (Holds::Yes, Holds::Yes) {
                        self.ran.insert(CLUSTERS[*cluster]);
                    }
                }
            }
            Event::Reaches(cluster, is_online) => {
                self.offline.retain(|offline| *offline != CLUSTERS[*cluster]);
                if !is_online {
                    self.offline.push(CLUSTERS[*cluster]);
                }
            }
            Event::Loses(cluster) => {
                self.works.remove(CLUSTERS[*cluster]);
                self.ran.remove(CLUSTERS[*cluster]);
            }
            Event::Changes(number) => self.goal = template(*number),
            Event::Passes(seconds) => self.now += SignedDuration::from_secs(*seconds),
        }
    }

    fn held(&self) -> Held<'_> {
        Held { goal: &self.goal, soaks: self.limits.soaks, is_gradual: true, settled: None, now: self.now }
    }

    fn is_online(&self, cluster: &str) -> bool {
        !self.offline.contains(&cluster)
    }

    /// Tells a planner of all clusters, and has it plan.
    fn ask(&self, rollout: &mut Rollout<Template>) -> Plan<Template> {
        for cluster in CLUSTERS {
            let spot = self.works.get(cluster).cloned().map_or(Spot::Free, Spot::Work);
            let selections = vec![Selection { placement: 0, group: group(cluster) }];
            let member = member(&spot, selections, self.is_online(cluster), &self.held());
            rollout.update(&ClusterName::from(cluster), Some(member));
        }
        let goal = Goal { fingerprint: self.goal.clone(), set: Arc::new(Template) };
        let sets: Sets<Template> = [(goal.fingerprint.clone(), goal.set.clone())].into_iter().collect();
        let stored = RolloutProgress { wanted: Some(self.goal.clone()), ..RolloutProgress::default() };
        let wish = Wish { configured: Some(Ok(goal)), is_there: true, pause: None, pin: None, stored };
        rollout.plan(&[wish], &sets, None, self.now)
    }

    /// Plans, does what is planned, and says what was.
    fn step(&mut self) -> Plan<Template> {
        let mut rollout = self.rollout.clone();
        let plan = self.ask(&mut rollout);
        for cluster in CLUSTERS {
            let proof = self.works.get(cluster).and_then(|work| work.to_record(&self.held()));
            if let (Some(work), Some(proof)) = (self.works.get_mut(cluster), proof) {
                work.recorded = Proof::from_annotation(&proof.to_annotation());
            }
            if let (Some(work), Some(Fault::RecordsNothing)) = (self.works.get_mut(cluster), self.fault) {
                work.recorded = None;
            }
        }
        for give in &plan.gives {
            let cluster = CLUSTERS.into_iter().find(|cluster| *cluster == give.cluster.as_str()).expect("one of ours");
            let proof = || Proof { set: give.set.clone(), verdict: Verdict::Proven, since: self.now };
            let recorded = matches!(self.fault, Some(Fault::RecordsTooEarly)).then(proof);
            let (set, rules) = (give.set.clone(), Rules::default());
            let work = Placed { set, rules, given: self.now, report: Report::default(), recorded };
            self.works.insert(cluster, work);
            self.ran.remove(cluster);
        }
        self.rollout = rollout;
        plan
    }

    /// The clusters that were given the template, and of which nothing was heard since.
    fn fresh(&self) -> usize {
        let is_fresh = |(cluster, work): &(&&str, &Placed)| {
            let is_late = self.limits.has_deadline && (self.now - work.given).get_seconds() >= 120;
            work.set == self.goal && work.report == Report::default() && self.is_online(cluster) && !is_late
        };
        self.works.iter().filter(is_fresh).count()
    }

    /// The clusters that were given some template, never ran it, and do not say that they can not.
    fn in_flight(&self) -> Vec<&'static str> {
        let is_in_flight = |(cluster, work): &(&&'static str, &Placed)| {
            let is_failing = work.report.applied.is_some_and(|said| said.holds == Holds::No);
            let is_late = self.limits.has_deadline && (self.now - work.given).get_seconds() >= 120;
            !self.ran.contains(**cluster) && self.is_online(cluster) && !is_failing && !is_late
        };
        self.works.iter().filter(is_in_flight).map(|(cluster, _)| *cluster).collect()
    }

    /// The clusters that have to be given the goal before those of a group are.
    fn come_before(&self, group_index: u32) -> Vec<&'static str> {
        let is_before = |cluster: &&&str| self.limits.per_group && group(cluster).index < group_index;
        CLUSTERS.iter().filter(is_before).filter(|cluster| self.is_online(cluster)).copied().collect()
    }
}

fn entry(limits: &Limits) -> Entry {
    let soak = if limits.soaks { format!("{SOAK}s") } else { "0".to_owned() };
    let deadline = if limits.has_deadline { "2m" } else { "None" };
    let settings = json!({ "maxConcurrency": limits.window, "maxFailures": limits.failures, "minSuccessTime": soak,
        "progressDeadline": deadline });
    let written = if limits.per_group {
        json!({ "type": "ProgressivePerGroup", "progressivePerGroup": settings })
    } else {
        json!({ "type": "Progressive", "progressive": settings })
    };
    let written = serde_json::from_value(written).expect("a strategy");
    let placement = PlacementRef { namespace: "default".to_owned(), name: "all".to_owned() };
    Entry { source: Source::Listed(placement), strategy: Strategy::of_ocm(Some(&written), None) }
}

/// A mistake that the properties have to find.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// No work records that its cluster ran the template.
    RecordsNothing,
    /// Every work says that its cluster ran the template, as soon as it is given.
    RecordsTooEarly,
}

type History = (Limits, Vec<Event>);

fn histories() -> impl proptest::strategy::Strategy<Value = History> {
    (limits(), prop::collection::vec(event(), 0..60))
}

/// Whether no report makes more clusters be in flight than may be, or moves a cluster that runs
/// something before all of the groups before its own were given the goal.
fn keeps_window_and_groups((limits, events): &History, fault: Option<Fault>) -> Result<(), TestCaseError> {
    let mut world = World::new(limits.clone());
    world.fault = fault;
    for event in events {
        world.happen(event);
        let (ran, goal) = (world.ran.clone(), world.goal.clone());
        let had_some: BTreeSet<_> = world.works.keys().copied().collect();
        let had: BTreeSet<_> = world.works.iter().filter(|(_, work)| work.set == goal).map(|(name, _)| *name).collect();
        let plan = world.step();
        let in_flight = world.in_flight();
        // A cluster that is in flight already may be turned around in place.
        let starts = |cluster: &str| ran.contains(cluster) || !had_some.contains(cluster);
        let is_start = plan.gives.iter().any(|give| starts(give.cluster.as_str()));
        prop_assert!(!is_start || in_flight.len() <= limits.room(), "{in_flight:?} {plan:#?}");
        for give in plan.gives.iter().filter(|give| ran.contains(give.cluster.as_str())) {
            let first = world.come_before(group(give.cluster.as_str()).index);
            prop_assert!(first.iter().all(|cluster| had.contains(cluster)), "{} before {first:?}", give.cluster);
        }
    }
    Ok(())
}

#[test]
fn works_that_record_nothing_or_too_early_are_caught() {
    for fault in [Fault::RecordsNothing, Fault::RecordsTooEarly] {
        let found = counterexample_of(&histories(), 1024, 0, |history| keeps_window_and_groups(&history, Some(fault)));
        assert!(found.is_some(), "{fault:?}");
    }
}

proptest! {
    #[test]
    fn nobody_is_given_anything_beyond_the_window(limits in limits(), events in prop::collection::vec(event(), 0..40)) {
        let mut world = World::new(limits.clone());
        for event in &events {
            world.happen(event);
            let before = world.fresh();
            let had: Vec<_> = world.works.iter().filter(|(_, work)| work.set == world.goal).map(|(name, _)| *name).collect();
            let plan = world.step();
            prop_assert!(plan.gives.is_empty() || before + plan.gives.len() <= limits.room(), "{before} and {plan:#?}");
            for give in &plan.gives {
                prop_assert_eq!(&give.set, &world.goal);
                prop_assert!(world.is_online(give.cluster.as_str()), "{} can not be reached", give.cluster);
                prop_assert!(!had.contains(&give.cluster.as_str()), "{} had it already", give.cluster);
            }
        }
    }

    #[test]
    fn no_report_exceeds_the_window_or_moves_a_cluster_before_its_group(history in histories()) {
        keeps_window_and_groups(&history, None)?;
    }

    #[test]
    fn who_begins_anew_plans_the_same(limits in limits(), events in prop::collection::vec(event(), 0..40)) {
        let mut world = World::new(limits);
        for event in &events {
            world.happen(event);
            let anew = world.ask(&mut Rollout::new(vec![entry(&world.limits)]));
            let plan = world.step();
            prop_assert_eq!(plan.gives, anew.gives);
            prop_assert_eq!(plan.wake, anew.wake);
            prop_assert_eq!(&plan.courses[0].decided, &anew.courses[0].decided);
            prop_assert_eq!(&plan.courses[0].hold, &anew.courses[0].hold);
        }
    }

    #[test]
    fn where_all_agents_are_well_everybody_gets_there(limits in limits(), events in prop::collection::vec(event(), 0..40)) {
        let mut world = World::new(limits);
        for event in &events {
            world.happen(event);
            world.step();
        }
        world.offline.clear();
        let mut state = None;
        for _ in 0..3 * CLUSTERS.len() {
            for cluster in 0..CLUSTERS.len() {
                world.happen(&Event::Says(cluster, Holds::Yes, Holds::Yes));
            }
            world.step();
            world.happen(&Event::Passes(SOAK));
            state = world.step().courses[0].progress.state;
        }
        prop_assert_eq!(state, Some(RolloutState::Complete));
        let is_there = |work: &Placed| work.set == world.goal && work.verdict() == Verdict::Proven;
        prop_assert!(CLUSTERS.iter().all(|cluster| world.works.get(cluster).is_some_and(is_there)), "{:#?}", world.works);
    }
}
