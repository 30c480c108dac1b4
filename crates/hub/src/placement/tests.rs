//! What is kept from change to change is what would be found from scratch, and costs what the change is worth.

use drover_api::cluster::{AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding};
use drover_runtime::{
    cache::Tracks,
    clock::{Clock, ManualClock},
    store::Store,
};
use k8s_openapi::jiff::SignedDuration;
use kube::api::ObjectMeta;
use proptest::{
    collection::vec,
    option,
    prelude::*,
    test_runner::{Config, TestCaseError, TestError, TestRng, TestRunner},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::cache::Queues;

fn read<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).expect("an object")
}

fn noon() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a time")
}

fn clock() -> Clock {
    ManualClock::at(noon()).clock()
}

/// Something that happens to a fleet.
#[derive(Clone, Debug)]
enum Event {
    Cluster {
        number: u8,
        env: u8,
        set: u8,
        taint: Option<(&'static str, i64)>,
        cpu: u8,
        heartbeat: u8,
    },
    ClusterGone(u8),
    Set {
        number: u8,
        env: Option<u8>,
    },
    SetGone(u8),
    Binding(u8),
    BindingGone(u8),
    Score {
        cluster: u8,
        value: u8,
        valid_until: Option<i64>,
    },
    ScoreGone(u8),
    Placement {
        number: u8,
        spec: u8,
    },
    PlacementGone(u8),
    Time(i64),
    /// A placement has its turn.
    Turn(u8),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let effects = prop::sample::select(vec!["NoSelect", "NoSelectIfNew", "PreferNoSelect"]);
    let cluster = (0..6_u8, 0..2_u8, 0..3_u8, option::of((effects, -60..120_i64)), 0..3_u8, 0..3_u8);
    let event = prop_oneof![
        6 => cluster.prop_map(|(number, env, set, taint, cpu, heartbeat)| {
            Event::Cluster { number, env, set, taint, cpu, heartbeat }
        }),
        1 => (0..6_u8).prop_map(Event::ClusterGone),
        2 => (0..3_u8, option::of(0..2_u8)).prop_map(|(number, env)| Event::Set { number, env }),
        1 => (0..3_u8).prop_map(Event::SetGone),
        2 => (0..3_u8).prop_map(Event::Binding),
        2 => (0..3_u8).prop_map(Event::BindingGone),
        3 => (0..6_u8, 0..3_u8, option::of(-60..120_i64))
            .prop_map(|(cluster, value, valid_until)| Event::Score { cluster, value, valid_until }),
        1 => (0..6_u8).prop_map(Event::ScoreGone),
        2 => (0..2_u8, 0..SPECS).prop_map(|(number, spec)| Event::Placement { number, spec }),
        1 => (0..2_u8).prop_map(Event::PlacementGone),
        3 => (1..90_i64).prop_map(Event::Time),
        9 => (0..2_u8).prop_map(Event::Turn),
    ];
    // All there is to begin with, so that most of what happens matters.
    vec(event, 1..60).prop_map(|mut events| {
        let start = [
            Event::Set { number: 0, env: None },
            Event::Set { number: 1, env: Some(0) },
            Event::Binding(0),
            Event::Binding(1),
            Event::Placement { number: 0, spec: 0 },
        ];
        let clusters =
            (0..6).map(|number| Event::Cluster { number, env: number % 2, set: 0, taint: None, cpu: 0, heartbeat: 0 });
        events.splice(0..0, start.into_iter().chain(clusters));
        events
    })
}

const SPECS: u8 = 6;

/// Placements that look at all there is to look at. None goes by balance alone, which other placements change.
fn spec(number: u8) -> Value {
    let tolerations = json!([{ "key": "t", "operator": "Exists", "tolerationSeconds": 30 }]);
    let by_score = json!({ "mode": "Exact", "configurations": [
        { "scoreCoordinate": { "type": "AddOn", "addOn": { "resourceName": "load", "scoreName": "free" } }, "weight": 1 },
    ] });
    let with_env =
        |env: &str| json!([{ "requiredClusterSelector": { "labelSelector": { "matchLabels": { "env": env } } } }]);
    match number {
        0 => json!({ "tolerations": tolerations }),
        1 => json!({ "clusterSets": ["s1"], "predicates": with_env("e0") }),
        2 => {
            json!({ "numberOfClusters": 2, "tolerations": tolerations, "prioritizerPolicy": { "mode": "Exact", "configurations": [
            { "scoreCoordinate": { "builtIn": "Steady" }, "weight": 1 },
            { "scoreCoordinate": { "builtIn": "ResourceAllocatableCPU" }, "weight": 3 },
        ] } })
        }
        3 => json!({ "numberOfClusters": 2, "prioritizerPolicy": by_score }),
        4 => json!({ "sortBy": "Score", "scoreRateLimit": "1m", "prioritizerPolicy": by_score }),
        _ => {
            json!({ "clusterSets": ["s0", "s2"], "predicates": [{ "requiredClusterSelector": { "celSelector": { "celExpressions": [
            "managedCluster.scores('load').exists(s, s.value > 0) || managedCluster.metadata.labels.env == 'e1'",
        ] } } }] })
        }
    }
}

/// What a fleet is not told of, though it is so: on purpose, to be caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Misses {
    Nothing,
    Clusters,
    Sets,
    Bindings,
    Scores,
    Placements,
    Decisions,
}

/// A fleet, and the time.
struct World {
    cache: Cache,
    queues: Queues,
    controller: Placements,
    now: Timestamp,
    misses: Misses,
    versions: u32,
}

impl World {
    fn new(misses: Misses) -> Self {
        let (cache, queues) = (Cache::new(clock()), Queues::new(&clock()));
        Self { cache, queues, controller: Placements { metrics: Metrics::new() }, now: noon(), misses, versions: 0 }
    }

    /// The same objects in a fleet that knows nothing else.
    fn scratch(&self) -> Self {
        let mut scratch = Self { now: self.now, ..Self::new(Misses::Nothing) };
        scratch.copy(&self.cache.sets, Misses::Sets);
        scratch.copy(&self.cache.bindings, Misses::Bindings);
        scratch.copy(&self.cache.placements, Misses::Placements);
        scratch.copy(&self.cache.decisions, Misses::Decisions);
        scratch.copy(&self.cache.clusters, Misses::Clusters);
        scratch.copy(&self.cache.scores, Misses::Scores);
        scratch
    }

    fn copy<K: Resource + Clone>(&mut self, objects: &Store<K>, heard_unless: Misses)
    where
        Cache: Tracks<K>,
    {
        for (_, object) in objects.iter() {
            self.apply((**object).clone(), heard_unless);
        }
    }

    fn apply<K: Resource>(&mut self, mut object: K, heard_unless: Misses)
    where
        Cache: Tracks<K>,
    {
        object.meta_mut().resource_version = Some(self.next_version());
        let change = Tracks::<K>::store(&mut self.cache).apply(object);
        // What is new is always heard of: who misses a kind misses only what changes.
        if let Some(change) = change.filter(|change| self.misses != heard_unless || change.old.is_none()) {
            self.cache.changed(&change, &self.queues);
        }
    }

    fn remove<K: Resource>(&mut self, namespace: &str, name: &str, heard_unless: Misses)
    where
        Cache: Tracks<K>,
    {
        let meta = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
            resource_version: Some(self.next_version()),
            ..ObjectMeta::default()
        };
        let change = Tracks::<K>::store(&mut self.cache).delete(&meta);
        if let Some(change) = change.filter(|_| self.misses != heard_unless) {
            self.cache.changed(&change, &self.queues);
        }
    }

    fn next_version(&mut self) -> String {
        self.versions += 1;
        self.versions.to_string()
    }

    fn happen(&mut self, event: &Event) -> Result<(), TestCaseError> {
        let at = |seconds: i64| (noon() + SignedDuration::from_secs(seconds)).to_string();
        match event {
            Event::Cluster { number, env, set, taint, cpu, heartbeat } => {
                let taints: Vec<_> = taint
                    .iter()
                    .map(|(effect, added)| json!({ "key": "t", "effect": effect, "timeAdded": at(*added) }))
                    .collect();
                let labels = json!({
                    "env": format!("e{env}"),
                    "cluster.open-cluster-management.io/clusterset": format!("s{set}"),
                });
                let cluster: ManagedCluster = read(json!({
                    "metadata": { "name": format!("c{number}"), "labels": labels },
                    "spec": { "taints": taints },
                    "status": {
                        "allocatable": { "cpu": cpu.to_string() },
                        "version": { "kubernetes": heartbeat.to_string() },
                    },
                }));
                self.apply(cluster, Misses::Clusters);
            }
            Event::ClusterGone(number) => {
                self.remove::<ManagedCluster>("", &format!("c{number}"), Misses::Clusters);
            }
            Event::Set { number, env } => {
                let selector = match env {
                    None => json!({ "selectorType": "ExclusiveClusterSetLabel" }),
                    Some(env) => json!({
                        "selectorType": "LabelSelector",
                        "labelSelector": { "matchLabels": { "env": format!("e{env}") } },
                    }),
                };
                let set: ManagedClusterSet = read(json!({
                    "metadata": { "name": format!("s{number}") },
                    "spec": { "clusterSelector": selector },
                }));
                self.apply(set, Misses::Sets);
            }
            Event::SetGone(number) => self.remove::<ManagedClusterSet>("", &format!("s{number}"), Misses::Sets),
            Event::Binding(number) => {
                let name = format!("s{number}");
                let binding: ManagedClusterSetBinding = read(json!({
                    "metadata": { "name": name, "namespace": "ns" },
                    "spec": { "clusterSet": name },
                }));
                self.apply(binding, Misses::Bindings);
            }
            Event::BindingGone(number) => {
                self.remove::<ManagedClusterSetBinding>("ns", &format!("s{number}"), Misses::Bindings);
            }
            Event::Score { cluster, value, valid_until } => {
                let mut score = json!({
                    "metadata": { "name": "load", "namespace": format!("c{cluster}") },
                    "status": { "scores": [{ "name": "free", "value": value }] },
                });
                if let Some(seconds) = valid_until {
                    score["status"]["validUntil"] = at(*seconds).into();
                }
                self.apply(read::<AddOnPlacementScore>(score), Misses::Scores);
            }
            Event::ScoreGone(cluster) => {
                self.remove::<AddOnPlacementScore>(&format!("c{cluster}"), "load", Misses::Scores);
            }
            Event::Placement { number, spec } => self.edit(*number, &self::spec(*spec)),
            Event::PlacementGone(number) => {
                let key = placement_key(*number);
                for slice in self.cache.slices.get(&key).cloned().unwrap_or_default() {
                    self.remove::<PlacementDecision>("ns", &slice.name, Misses::Decisions);
                }
                self.remove::<Placement>("ns", &key.name, Misses::Placements);
            }
            Event::Time(seconds) => self.now += SignedDuration::from_secs(*seconds),
            Event::Turn(number) => self.turn(&placement_key(*number))?,
        }
        Ok(())
    }

    fn edit(&mut self, number: u8, spec: &Value) {
        let key = placement_key(number);
        let stored = self.cache.placements.get(&key);
        let mut placement: Placement = read(json!({
            "metadata": { "name": &*key.name, "namespace": &*key.namespace, "generation": 1 },
            "spec": spec,
        }));
        placement.status = stored.and_then(|stored| stored.status.clone());
        placement.metadata.generation = stored.map_or(Some(1), |stored| stored.metadata.generation.map(|old| old + 1));
        self.apply(placement, Misses::Placements);
    }

    /// Has a placement decided on until nothing is left to write, and compares each step with one from scratch.
    fn turn(&mut self, key: &ObjectKey) -> Result<(), TestCaseError> {
        for _ in 0..10 {
            let scratch = self.scratch();
            let plan = self.plan(key);
            prop_assert_eq!(&plan, &scratch.plan(key));
            prop_assert_eq!(self.verdicts(key), scratch.verdicts(key));
            if plan.0.is_empty() {
                return Ok(());
            }
            self.write(key);
        }
        Err(TestCaseError::fail("a decision does not come to rest"))
    }

    /// What would be written, and when the key is planned again. Resource versions differ from
    /// world to world, so bodies are not compared.
    fn plan(&self, key: &ObjectKey) -> (Vec<String>, Option<Timestamp>) {
        let plan = self.controller.plan(&self.cache, key, &mut (), self.now);
        (plan.ordered.iter().map(Write::to_string).collect(), plan.wake)
    }

    fn verdicts(&self, key: &ObjectKey) -> Vec<Verdict> {
        let judging = self.cache.judging.get(key);
        judging.map(|judging| judging.found().verdicts.iter().cloned().collect()).unwrap_or_default()
    }

    /// Writes what was decided, as the API server would.
    fn write(&mut self, key: &ObjectKey) {
        let placement = (**self.cache.placements.get(key).expect("it was decided on")).clone();
        let stored: Vec<_> = slices_of(&self.cache, key).into_iter().cloned().collect();
        let current: Vec<_> = stored.iter().map(Slice::read).collect();
        let decision = {
            let judging = self.cache.judging.get(key).expect("it was decided on");
            let program = judging.program.as_ref().expect("it makes sense");
            let case = Case { cache: &self.cache, key, placement: &placement, program, now: self.now };
            case.decide(&judging.found().verdicts, &case.reach(), &current)
        };
        for change in changes(&current, &decision.slices) {
            match change {
                SliceChange::Create(slice) | SliceChange::Update(slice) => {
                    let mut object = new_slice(&placement, &slice);
                    object.status = Some(PlacementDecisionStatus { decisions: slice.decisions });
                    self.apply(object, Misses::Decisions);
                }
                SliceChange::Delete(name) => {
                    self.remove::<PlacementDecision>(&key.namespace, &name, Misses::Decisions);
                }
            }
        }
        self.apply(Placement { status: Some(decision.status), ..placement }, Misses::Placements);
    }

    fn steps(&self, step: &str) -> usize {
        let metrics = self.controller.metrics.encode();
        let line = format!(r#"drover_steps_total{{controller="drover-placement",step="{step}"}} "#);
        metrics.lines().find_map(|found| found.strip_prefix(&line)).map_or(0, |count| count.parse().expect("a number"))
    }
}

fn placement_key(number: u8) -> ObjectKey {
    ObjectKey::namespaced("ns", &format!("p{number}"))
}

/// Looks for changes after which something else was kept than would be found.
fn counterexample(misses: Misses) -> Option<String> {
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let result = TestRunner::new_with_rng(config, rng).run(&events(), |events| {
        let mut world = World::new(misses);
        events.iter().try_for_each(|event| world.happen(event))?;
        (0..2).try_for_each(|number| world.turn(&placement_key(number)))
    });
    match result {
        Ok(()) => None,
        Err(TestError::Fail(reason, events)) => Some(format!("{reason}\n{events:?}")),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

#[test]
fn what_is_kept_is_what_would_be_found_from_scratch() {
    assert_eq!(counterexample(Misses::Nothing), None);
}

#[test]
fn who_misses_a_change_is_caught() {
    for misses in
        [Misses::Clusters, Misses::Sets, Misses::Bindings, Misses::Scores, Misses::Placements, Misses::Decisions]
    {
        assert!(counterexample(misses).is_some(), "{misses:?}");
    }
}

/// Rare among random events: what was held back is decided on when its time has come, though nothing else has changed.
#[test]
fn scores_that_were_held_back_are_written_in_time() {
    let mut world = World::new(Misses::Nothing);
    let score = |cluster, value| Event::Score { cluster, value, valid_until: None };
    let cluster = |number| Event::Cluster { number, env: 0, set: 0, taint: None, cpu: 0, heartbeat: 0 };
    let mut happen = |events: &[Event]| {
        events.iter().try_for_each(|event| world.happen(event)).expect("it is as from scratch");
        world.plan(&placement_key(0)).1
    };
    let start = [Event::Set { number: 0, env: None }, Event::Binding(0), Event::Placement { number: 0, spec: 4 }];
    happen(&start);
    assert_eq!(happen(&[cluster(0), cluster(1), score(0, 1), Event::Turn(0)]), None);
    let minute = noon() + SignedDuration::from_mins(1);
    assert_eq!(happen(&[score(1, 2), Event::Turn(0)]), Some(minute));
    assert_eq!(happen(&[Event::Time(59), Event::Turn(0)]), Some(minute));
    assert_eq!(happen(&[Event::Time(1), Event::Turn(0)]), None);
}

/// 2,000 clusters in two sets, and 20 placements of which half take clusters from either set.
fn large() -> World {
    let mut world = World::new(Misses::Nothing);
    for set in 0..2 {
        world.happen(&Event::Set { number: set, env: None }).expect("nothing is compared");
        world.happen(&Event::Binding(set)).expect("nothing is compared");
    }
    for number in 0..20 {
        let spec = json!({
            "clusterSets": [format!("s{}", number % 2)],
            "predicates": [{ "requiredClusterSelector": { "labelSelector": { "matchLabels": { "env": "e0" } } } }],
        });
        world.edit(number, &spec);
    }
    for number in 0..2000_usize {
        world.apply(a_cluster(number, "e0", "1.30"), Misses::Clusters);
    }
    world
}

fn a_cluster(number: usize, env: &str, version: &str) -> ManagedCluster {
    read(json!({
        "metadata": { "name": format!("c{number:04}"), "labels": {
            "env": env,
            "cluster.open-cluster-management.io/clusterset": format!("s{}", number % 2),
        } },
        "spec": {},
        "status": { "version": { "kubernetes": version } },
    }))
}

impl World {
    /// Has each placement decided on, and returns how many clusters were judged and how many decisions made.
    fn turns(&mut self) -> (usize, usize) {
        let before = (self.steps("judge"), self.steps("decide"));
        for number in 0..20 {
            let key = placement_key(number);
            while !self.plan(&key).0.is_empty() {
                self.write(&key);
            }
        }
        (self.steps("judge") - before.0, self.steps("decide") - before.1)
    }
}

#[test]
fn a_change_costs_what_it_is_worth() {
    let mut world = large();
    // Each decision is made, written, and found to be written.
    assert_eq!(world.turns(), (20 * 1000, 20 * 2));
    assert_eq!(world.turns(), (0, 0), "nothing has changed");

    world.apply(a_cluster(0, "e0", "1.31"), Misses::Clusters);
    assert_eq!(world.turns(), (10, 0), "an agent reports: ten placements look at the cluster, and nobody decides");

    world.apply(a_cluster(1, "e1", "1.30"), Misses::Clusters);
    assert_eq!(world.turns(), (10, 20), "a label changes: ten placements look, decide, and see that it is written");

    world.apply(a_cluster(1, "e2", "1.30"), Misses::Clusters);
    assert_eq!(world.turns(), (10, 0), "another label that nobody selects");

    for number in 0..1000 {
        world.apply(a_cluster(number, "e0", "1.32"), Misses::Clusters);
    }
    assert_eq!(world.turns(), (10 * 1000, 20), "half of the fleet reports, and one cluster has its label back");
}
