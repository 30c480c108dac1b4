//! What holds for every set of works, whatever agents say, users change and the clock shows.

use std::collections::BTreeMap;

use drover_api::{
    drover::{RolloutProgress, RolloutState},
    grammar::SetFingerprint,
    reference::{ClusterName, PlacementRef},
};
use drover_engine::{
    addon::mark::Verdict,
    condition::Holds,
    rollout::{
        Entry, Goal, Plan, Rollout, Sets, Source, Wish,
        member::{Group, Selection},
        strategy::Strategy,
    },
    work::replica_set::{
        member::{Held, Noting, Placed, Spot, member, noting},
        report::{Report, Said},
        template::Rules,
    },
};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use proptest::{prelude::*, strategy::Strategy as _};
use serde_json::json;

use crate::fleet::noon;

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
}

fn limits() -> impl proptest::strategy::Strategy<Value = Limits> {
    (1..4_usize, 0..3_usize, any::<bool>(), any::<bool>()).prop_map(|(window, failures, soaks, has_deadline)| Limits {
        window,
        failures,
        soaks,
        has_deadline,
    })
}

/// The clusters of a set, the set, and who plans for it.
struct World {
    limits: Limits,
    works: BTreeMap<&'static str, Placed>,
    offline: Vec<&'static str>,
    goal: SetFingerprint,
    now: Timestamp,
    /// One that is kept up to date.
    rollout: Rollout,
}

fn template(number: u8) -> SetFingerprint {
    SetFingerprint::of([number; 8])
}

impl World {
    fn new(limits: Limits) -> Self {
        let rollout = Rollout::new(vec![entry(&limits)]);
        Self { limits, works: BTreeMap::new(), offline: Vec::new(), goal: template(1), now: noon(), rollout }
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::Says(cluster, applied, available) => {
                let said = |holds: &Holds| Some(Said { holds: *holds, since: self.now });
                if let Some(work) = self.works.get_mut(CLUSTERS[*cluster]) {
                    work.report = Report { applied: said(applied), available: said(available), ..Report::default() };
                }
            }
            Event::Reaches(cluster, is_online) => {
                self.offline.retain(|offline| *offline != CLUSTERS[*cluster]);
                if !is_online {
                    self.offline.push(CLUSTERS[*cluster]);
                }
            }
            Event::Loses(cluster) => drop(self.works.remove(CLUSTERS[*cluster])),
            Event::Changes(number) => self.goal = template(*number),
            Event::Passes(seconds) => self.now += SignedDuration::from_secs(*seconds),
        }
    }

    fn held(&self) -> Held<'_> {
        Held { goal: &self.goal, rules: Rules::default(), soaks: self.limits.soaks, settled: None, now: self.now }
    }

    fn is_online(&self, cluster: &str) -> bool {
        !self.offline.contains(&cluster)
    }

    /// Tells a planner of all clusters, and has it plan.
    fn ask(&self, rollout: &mut Rollout) -> Plan {
        for cluster in CLUSTERS {
            let spot = self.works.get(cluster).cloned().map_or(Spot::Free, Spot::Work);
            let selections = vec![Selection { placement: 0, group: Group::default() }];
            let member = member(&spot, selections, self.is_online(cluster), &self.held());
            rollout.update(&ClusterName::from(cluster), Some(member));
        }
        let goal = Goal::whole(self.goal.clone());
        let sets: Sets = [(goal.fingerprint.clone(), goal.set.clone())].into_iter().collect();
        let stored = RolloutProgress { wanted: Some(self.goal.clone()), ..RolloutProgress::default() };
        let wish = Wish { configured: Some(Ok(goal)), is_there: true, pause: None, pin: None, stored };
        rollout.plan(&[wish], &sets, None, self.now)
    }

    /// Plans, does what is planned, and says what was.
    fn step(&mut self) -> Plan {
        let mut rollout = self.rollout.clone();
        let plan = self.ask(&mut rollout);
        for cluster in CLUSTERS {
            let standing = rollout.standing(&cluster.into()).map(|(_, standing)| standing.clone());
            let Some(work) = self.works.get(cluster) else { continue };
            let proven = match noting(work, standing.as_ref(), &self.held()) {
                Noting::Keep => continue,
                Noting::Make(note) => Some(note),
                Noting::Drop => None,
            };
            if let Some(work) = self.works.get_mut(cluster) {
                work.proven = proven;
            }
        }
        for give in &plan.gives {
            let cluster = CLUSTERS.into_iter().find(|cluster| *cluster == give.cluster.as_str()).expect("one of ours");
            let work = Placed { set: give.set.clone(), given: self.now, report: Report::default(), proven: None };
            self.works.insert(cluster, work);
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
}

fn entry(limits: &Limits) -> Entry {
    let soak = if limits.soaks { format!("{SOAK}s") } else { "0".to_owned() };
    let deadline = if limits.has_deadline { "2m" } else { "None" };
    let settings = json!({ "maxConcurrency": limits.window, "maxFailures": limits.failures, "minSuccessTime": soak,
        "progressDeadline": deadline });
    let written = json!({ "type": "Progressive", "progressive": settings });
    let written = serde_json::from_value(written).expect("a strategy");
    let placement = PlacementRef { namespace: "default".to_owned(), name: "all".to_owned() };
    Entry { source: Source::Listed(placement), strategy: Strategy::of_ocm(Some(&written), None) }
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
            prop_assert!(plan.gives.is_empty() || before + plan.gives.len() <= limits.window, "{before} and {plan:#?}");
            for give in &plan.gives {
                prop_assert_eq!(&give.set, &world.goal);
                prop_assert!(world.is_online(give.cluster.as_str()), "{} can not be reached", give.cluster);
                prop_assert!(!had.contains(&give.cluster.as_str()), "{} had it already", give.cluster);
            }
        }
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
        let is_there = |work: &Placed| work.set == world.goal && work.verdict(&world.held()) == Verdict::Proven;
        prop_assert!(CLUSTERS.iter().all(|cluster| world.works.get(cluster).is_some_and(is_there)), "{:#?}", world.works);
    }
}
