//! Trackers of random fleets, whose events may be missed and whose plans may be dropped.

use k8s_openapi::jiff::SignedDuration;
use proptest::{collection::vec, prelude::*, test_runner::TestCaseError};

use super::*;
use crate::plan::{NoAction, ObjectKey, Plan, Write};

/// An index that keeps the values of members as they were last observed.
#[derive(Debug, Default)]
struct Index(BTreeMap<ClusterName, u32>);

impl MemberIndex for Index {
    type Member = u32;

    fn update(&mut self, cluster: &ClusterName, member: Option<u32>) {
        match member {
            Some(value) => drop(self.0.insert(cluster.clone(), value)),
            None => drop(self.0.remove(cluster)),
        }
    }

    fn members(&self) -> impl Iterator<Item = &ClusterName> {
        self.0.keys()
    }

    /// Settled while no member has an odd value.
    fn is_settled(&self) -> bool {
        self.0.values().all(|value| value % 2 == 0)
    }
}

/// What can go wrong in the code that drives a tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// What the queue carries is lost when a plan is dropped.
    DropsDirty,
    /// A change of what all members are observed by is not noticed.
    IgnoresContext,
    /// The wake-up times of members are not set.
    IgnoresWakes,
    /// Nothing is planned again without an event.
    NeverWakes,
}

#[derive(Clone, Debug)]
enum Step {
    /// A member has another value, or is gone. The event may be missed.
    Change {
        cluster: usize,
        value: Option<u32>,
        is_missed: bool,
    },
    /// All members are observed by something else.
    Context(u32),
    /// A member has a value of its own at that second, which no event announces.
    Later {
        cluster: usize,
        seconds: i64,
    },
    Plan {
        is_dropped: bool,
    },
    Pass {
        seconds: i64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let cluster = 0..6_usize;
    prop_oneof![
        4 => (cluster.clone(), prop::option::of(0..9_u32), prop::bool::weighted(0.2))
            .prop_map(|(cluster, value, is_missed)| Step::Change { cluster, value, is_missed }),
        1 => (0..3_u32).prop_map(Step::Context),
        1 => (cluster, 1..400_i64).prop_map(|(cluster, seconds)| Step::Later { cluster, seconds }),
        4 => any::<bool>().prop_map(|is_dropped| Step::Plan { is_dropped }),
        2 => (1..400_i64).prop_map(|seconds| Step::Pass { seconds }),
    ]
}

fn name(cluster: usize) -> ClusterName {
    ClusterName::from(format!("cluster-{cluster}").as_str())
}

struct World {
    fault: Fault,
    values: BTreeMap<ClusterName, u32>,
    /// When the value of a member is doubled.
    later: BTreeMap<ClusterName, Timestamp>,
    context: u32,
    now: Timestamp,
    queue: Dirty,
    wake: Option<Timestamp>,
    tracker: Tracker<Index, u32>,
}

impl World {
    fn new(fault: Fault) -> Self {
        Self {
            fault,
            values: BTreeMap::new(),
            later: BTreeMap::new(),
            context: 0,
            now: Timestamp::from_second(1_800_000_000).expect("a time"),
            queue: Dirty::default(),
            wake: None,
            tracker: Tracker::default(),
        }
    }

    /// What a look at a member finds now.
    fn value(&self, cluster: &ClusterName) -> Option<u32> {
        let is_later = self.later.get(cluster).is_some_and(|time| *time <= self.now);
        let value = self.values.get(cluster)? * if is_later { 2 } else { 1 };
        Some(value + 10 * self.context)
    }

    fn plan(&mut self, is_dropped: bool) {
        let dirty = std::mem::take(&mut self.queue);
        if is_dropped && self.fault == Fault::DropsDirty {
            return;
        }
        self.tracker.mark(dirty);
        if self.fault != Fault::IgnoresContext || self.tracker.context().is_none() {
            self.tracker.set_context(self.context);
        }
        let candidates = self.values.keys().cloned().collect();
        for cluster in self.tracker.take_dirty(self.now, || candidates) {
            let wake = self.later.get(&cluster).copied().filter(|time| *time > self.now);
            let wake = wake.filter(|_| self.fault != Fault::IgnoresWakes);
            self.tracker.observed(&cluster, Observation { member: self.value(&cluster), wake });
        }
        self.wake = self.tracker.wake().filter(|_| self.fault != Fault::NeverWakes);
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Change { cluster, value, is_missed } => {
                let cluster = name(cluster);
                match value {
                    Some(value) => drop(self.values.insert(cluster.clone(), value)),
                    None => drop(self.values.remove(&cluster)),
                }
                if !is_missed {
                    self.queue.merge(Dirty::member(&cluster));
                }
            }
            Step::Context(context) => self.context = context,
            Step::Later { cluster, seconds } => {
                let cluster = name(cluster);
                self.later.insert(cluster.clone(), self.now + SignedDuration::from_secs(seconds));
                self.queue.merge(Dirty::member(&cluster));
            }
            Step::Plan { is_dropped } => self.plan(is_dropped),
            Step::Pass { seconds } => self.now += SignedDuration::from_secs(seconds),
        }
    }

    /// Plans when the tracker asks for it, until it does not any more.
    fn rest(&mut self) {
        self.plan(false);
        for _ in 0..20 {
            let Some(wake) = self.wake else { return };
            self.now = self.now.max(wake);
            self.plan(false);
            if self.is_current() && self.later.values().all(|time| *time <= self.now) {
                return;
            }
        }
    }

    /// Whether the index holds what a look at every member would find.
    fn is_current(&self) -> bool {
        let found = self.values.keys().filter_map(|cluster| Some((cluster.clone(), self.value(cluster)?)));
        found.collect::<BTreeMap<_, _>>() == self.tracker.index.0
    }
}

/// Runs the steps, and checks that the tracker holds in the end what there is. Events that were
/// missed are made good by a resync, which only happens while something is under way.
fn run(fault: Fault, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut world = World::new(fault);
    let is_missed = |step: &Step| matches!(step, Step::Change { is_missed: true, .. });
    for step in steps {
        world.take(step);
    }
    world.rest();
    let may_rest_outdated = steps.iter().any(is_missed) && world.tracker.index.is_settled();
    prop_assert!(world.is_current() || may_rest_outdated, "{:?} of {:?}", world.tracker.index, world.values);
    Ok(())
}

fn holds(fault: Fault) -> bool {
    let cases = if fault == Fault::None { 256 } else { 2000 };
    let config = ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    runner.run(&vec(step(), 1..40), |steps| run(fault, &steps)).is_ok()
}

#[test]
fn tracker_holds_what_a_look_at_every_member_would_find() {
    assert!(holds(Fault::None));
}

#[test]
fn property_catches_faults_of_the_driver() {
    for fault in [Fault::DropsDirty, Fault::IgnoresContext, Fault::IgnoresWakes, Fault::NeverWakes] {
        assert!(!holds(fault), "{fault:?}");
    }
}

#[test]
fn change_of_one_member_costs_one_look() {
    let mut tracker: Tracker<Index, ()> = Tracker::default();
    tracker.set_context(());
    let (now, all) = (Timestamp::UNIX_EPOCH, (0..1000).map(name));
    let looks = tracker.take_dirty(now, || all.collect());
    assert_eq!(looks.len(), 1000);
    for cluster in looks {
        tracker.observed(&cluster, Observation { member: Some(0), wake: None });
    }
    assert!(tracker.take_dirty(now, BTreeSet::new).is_empty(), "nothing has changed");
    tracker.mark(Dirty::member(&name(7)));
    assert_eq!(tracker.take_dirty(now, BTreeSet::new), BTreeSet::from([name(7)]));
    assert_eq!(tracker.wake(), None, "no resync while nothing is under way");
}

#[test]
fn every_pending_member_gets_its_turn() {
    let mut batches = Batches::default();
    let names: BTreeSet<_> = (0..1000).map(name).collect();
    for name in &names {
        batches.insert(name.clone());
    }
    let mut seen = BTreeSet::new();
    for _ in 0..4 {
        // Nothing comes of any step, which must not keep the others from their turn.
        let steps = names.iter().map(|name| (name.clone(), ())).collect();
        let (taken, is_more) = batches.take(steps);
        assert_eq!((taken.len(), is_more), (BATCH, true));
        batches.sent();
        seen.extend(taken.into_iter().map(|(name, ())| name));
    }
    assert_eq!(seen, names);
}

#[test]
fn rejection_is_forgotten_when_the_write_succeeds_or_is_not_planned_any_more() {
    let write = |name: &str| {
        let mut work = drover_api::work::ManifestWork::new(name, drover_api::work::ManifestWorkSpec::default());
        work.metadata.namespace = Some("one".to_owned());
        Write::create(work)
    };
    let plan = |names: &[&str]| Plan::<NoAction> {
        parallel: names.iter().map(|name| write(name)).collect(),
        ..Plan::default()
    };
    let mut rejections = Rejections::default();
    let mut send = |name: &str, result: WriteResult| {
        rejections.record::<NoAction>(PlanPart::Write(&write(name)), &result);
        rejections.clone()
    };
    let no = || WriteResult::Forbidden("no".to_owned());
    let rejected = send("a", no());
    assert_eq!(rejected.of_plan(&plan(&["b", "a"])), Some("could not Create ManifestWork one/a: no"));
    assert_eq!(rejected.of_plan(&plan(&["b"])), None, "it is not sent any more");
    let unknown = send("a", WriteResult::TimedOut);
    assert!(unknown.of_plan(&plan(&["a"])).is_some(), "nothing is known that was not known before");
    assert_eq!(send("a", WriteResult::Done).of_plan(&plan(&["a"])), None);
    assert_eq!(write("a").key(), &ObjectKey::namespaced("one", "a"));
}

/// The names of the steps whose turn it is, where nothing is observed but the next batch.
fn next_turn(batches: &mut Batches) -> Vec<ClusterName> {
    let steps = batches.next_batch().into_iter().map(|name| (name, ())).collect();
    batches.take(steps).0.into_iter().map(|(name, ())| name).collect()
}

#[test]
fn batch_that_is_dropped_is_taken_again() {
    let mut batches = Batches::of_size(2);
    (0..5).for_each(|number| batches.insert(name(number)));
    let first = next_turn(&mut batches);
    assert_eq!(first, [name(0), name(1)]);
    assert_eq!(next_turn(&mut batches), first);
    batches.sent();
    assert_eq!(next_turn(&mut batches), [name(2), name(3)]);
}

#[test]
fn pending_members_get_their_turn_although_no_more_than_a_batch_is_observed() {
    let mut batches = Batches::of_size(2);
    (0..3).for_each(|number| batches.insert(name(number)));
    let mut seen = BTreeSet::new();
    for _ in 0..2 {
        seen.extend(next_turn(&mut batches));
        batches.sent();
    }
    assert_eq!(seen.len(), 3);
}

#[test]
fn member_that_was_not_observed_is_more_to_do() {
    let mut batches = Batches::of_size(2);
    (0..3).for_each(|number| batches.insert(name(number)));
    let observed = batches.next_batch();
    for cluster in &observed {
        batches.remove(cluster);
    }
    let (taken, is_more) = batches.take(BTreeMap::<ClusterName, u8>::new());
    assert_eq!((taken.len(), is_more), (0, true), "nothing was left to do about those that were observed");
    assert_eq!(next_turn(&mut batches), [name(2)]);
}
