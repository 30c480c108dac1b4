//! Agents report on works and add-ons, truly or falsely, in any order. No report starts a cluster
//! out of turn.
//!
//! The hub here is the engine's own path from reports to assignments. What each cluster has run is
//! recorded beside it.

use std::{cell::Cell, collections::BTreeSet};

use drover_api::{
    addon::{ManagedClusterAddOn, ManagedClusterAddOnSpec},
    drover::RolloutProgress,
    grammar::SetFingerprint,
    names::{
        ADDON_NAME_LABEL, AVAILABLE, CONFIG_SPEC_HASH_ANNOTATION, MANIFEST_APPLIED, PROVEN, WORK_APPLIED,
        WORK_AVAILABLE,
    },
    reference::ClusterName,
    work::{ManifestWork, ManifestWorkSpec},
};
use drover_engine::{
    addon::{
        progress::{Evidence, Finding, Health, Maker, prove},
        status::{Facts, Holding, Turn, status},
        words::Vocabulary,
    },
    revision::Set,
    revision::markers::{Given, Proof},
    rollout::{
        Entry, Plan, Rollout, Sets, Wish,
        member::{Group, Member, Presence, Selection},
    },
    steering::MemberSteering,
    template::AddOnWork,
};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::{SignedDuration, Timestamp},
};
use kube::ResourceExt as _;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};

use crate::{
    counterexample::{Checked, counterexample, counterexample_of},
    fleet::noon,
    rollout_world::{goal, listed},
};

const CLUSTERS: [&str; 5] = ["a", "b", "c", "d", "e"];
/// How long a cluster has to stay healthy, where it has to.
const SOAK: i64 = 30;

/// What an agent, the add-on's manager, a user or the clock does.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The agent sets a condition of its work, or removes it, for a generation so far behind.
    OnWork(usize, &'static str, Option<&'static str>, i64),
    /// The agent reports its work as applied and available.
    Succeed(usize),
    /// The agent sets `Available` of the add-on, or removes it.
    OnAddOn(usize, Option<&'static str>),
    /// The work of a cluster is deleted.
    Lose(usize),
    /// The manager makes the work of what the cluster was assigned.
    Deploy(usize),
    Target(char),
    Pass(i64),
}

#[derive(Clone, Debug)]
struct History {
    strategy: RolloutKind,
    events: Vec<Event>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RolloutKind {
    RollingUpdate,
    Progressive,
    ProgressivePerGroup,
    /// The first two clusters are canaries of the others.
    WithCanary,
}

impl RolloutKind {
    fn entries(self) -> Vec<Entry> {
        let rolling =
            |window: Value| json!({ "type": "RollingUpdate", "rollingUpdate": { "maxConcurrentlyUpdating": window } });
        let soak = format!("{SOAK}s");
        let written = match self {
            Self::RollingUpdate => rolling(json!(1)),
            Self::Progressive => {
                json!({ "type": "Progressive", "progressive": { "maxConcurrency": 1, "minSuccessTime": soak } })
            }
            Self::ProgressivePerGroup => {
                json!({ "type": "ProgressivePerGroup", "progressivePerGroup": { "minSuccessTime": soak } })
            }
            Self::WithCanary => json!({
                "type": "RollingUpdateWithCanary",
                "rollingUpdateWithCanary": {
                    "placement": { "namespace": "default", "name": "canaries" }, "maxConcurrentlyUpdating": 1,
                },
            }),
        };
        let canaries = (self == Self::WithCanary).then(|| listed("canaries", &rolling(json!("100%"))));
        [listed("all", &written)].into_iter().chain(canaries).collect()
    }

    /// The entry that decides for a cluster.
    fn entry(self, cluster: usize) -> usize {
        usize::from(self == Self::WithCanary && cluster < 2)
    }

    fn group(self, cluster: usize) -> u32 {
        u32::from(self == Self::ProgressivePerGroup && cluster >= 2)
    }
}

/// A cluster, and what is true of it.
struct Cluster {
    addon: ManagedClusterAddOn,
    work: Option<ManifestWork>,
    generation: i64,
    /// Whether it has run what it was assigned since.
    has_run: bool,
    /// All that it has run.
    ran: BTreeSet<SetFingerprint>,
    healthy_since: Option<Timestamp>,
}

struct World {
    strategy: RolloutKind,
    clusters: Vec<Cluster>,
    rollout: Rollout<Set>,
    stored: Vec<RolloutProgress>,
    target: char,
    now: Timestamp,
    /// Whether the hub forgets what a cluster ran when its report changes.
    forgets: bool,
}

fn says(type_: &str, status: &str, generation: Option<i64>) -> Condition {
    let (reason, message) = ("Reported".to_owned(), String::new());
    let (type_, status) = (type_.to_owned(), status.to_owned());
    Condition {
        type_,
        status,
        reason,
        message,
        observed_generation: generation,
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

fn set_condition(conditions: &mut Vec<Condition>, type_: &str, condition: Option<Condition>) {
    conditions.retain(|condition| condition.type_ != type_);
    conditions.extend(condition);
}

impl Cluster {
    fn new() -> Self {
        let mut addon = ManagedClusterAddOn::new("hello", ManagedClusterAddOnSpec::default());
        addon.status.get_or_insert_default().conditions = vec![says(MANIFEST_APPLIED, "True", None)];
        Self { addon, work: None, generation: 0, has_run: false, ran: BTreeSet::new(), healthy_since: None }
    }

    fn conditions(&self) -> &[Condition] {
        self.addon.status.as_ref().map_or(&[], |status| &status.conditions)
    }

    fn given(&self) -> Option<Given> {
        Given::read(self.conditions())
    }

    fn is_in_flight(&self) -> bool {
        self.given().is_some() && !self.has_run
    }

    fn report(&mut self, type_: &str, status: Option<&str>, behind: i64) {
        let Some(work) = &mut self.work else { return };
        let generation = work.metadata.generation.unwrap_or_default() - behind;
        let conditions = &mut work.status.get_or_insert_default().conditions;
        set_condition(conditions, type_, status.map(|status| says(type_, status, Some(generation))));
    }

    fn deploy(&mut self) {
        let Some(given) = self.given() else { return };
        self.generation += 1;
        let settings = crate::rollout_world::letter(&given.set);
        let hashes = json!({ "settings.example.com//config": settings.to_string(), "extras.example.com//config": "0" });
        let mut work = ManifestWork::new("addon-hello-deploy-0", ManifestWorkSpec::default());
        work.status = self.work.take().and_then(|work| work.status);
        work.metadata.generation = Some(self.generation);
        work.labels_mut().insert(ADDON_NAME_LABEL.to_owned(), "hello".to_owned());
        work.annotations_mut().insert(CONFIG_SPEC_HASH_ANNOTATION.to_owned(), hashes.to_string());
        self.work = Some(work);
    }

    /// The hub notes down what the cluster was assigned and what its reports verify of that.
    fn note(&mut self, given: &Given, forgets: bool, now: Timestamp) {
        let set = goal(crate::rollout_world::letter(&given.set)).set;
        let work = self.work.as_ref().and_then(|work| AddOnWork::of(work, &work.metadata.clone().into()));
        let works: Vec<_> = work.iter().collect();
        let finding = prove(&Evidence {
            addon: &self.addon,
            works: &works,
            set: &set,
            supported_versions: &[],
            health: Health::Counts,
            maker: Maker::Manager,
        });
        let is_updated = finding == Finding::Proven;
        self.has_run |= is_updated;
        self.healthy_since = is_updated.then(|| self.healthy_since.unwrap_or(now));
        if is_updated {
            self.ran.insert(given.set.clone());
        }
        if forgets
            && !is_updated
            && let Some(status) = &mut self.addon.status
        {
            status.conditions.retain(|condition| condition.type_ != PROVEN);
        }
        let generation = |_: &_| None;
        let turn = Turn::Come(Holding { given, set: &set, finding: &finding, failure: None, generation: &generation });
        let facts = Facts {
            stored: self.addon.status.as_ref(),
            vocabulary: Vocabulary::Lifecycle,
            turn,
            unsupported: &[],
            invalid_version: None,
            hindrance: None,
            pending: None,
            supported_versions: &[],
        };
        self.addon.status = Some(status(&facts, now));
    }

    fn member(&self, placement: usize, index: u32) -> Member<Set> {
        let given = self.given();
        let runs = given.as_ref().map(|given| given.set.clone());
        let addon = Presence { given, runs, proof: Proof::read(self.conditions()), ..Presence::default() };
        let group = Group { index, name: None };
        let selections = vec![Selection { placement, group }];
        Member { selections, addon: Some(addon), is_online: true, steering: MemberSteering::default() }
    }
}

impl World {
    fn new(strategy: RolloutKind, forgets: bool) -> Self {
        let entries = strategy.entries();
        let stored = vec![RolloutProgress::default(); entries.len()];
        let clusters = CLUSTERS.iter().map(|_| Cluster::new()).collect();
        let rollout = Rollout::new(entries);
        Self { strategy, clusters, rollout, stored, target: 'A', now: noon(), forgets }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::OnWork(cluster, type_, status, behind) => self.clusters[cluster].report(type_, status, behind),
            Event::Succeed(cluster) => {
                for type_ in [WORK_APPLIED, WORK_AVAILABLE] {
                    self.clusters[cluster].report(type_, Some("True"), 0);
                }
            }
            Event::OnAddOn(cluster, available) => {
                let conditions = &mut self.clusters[cluster].addon.status.get_or_insert_default().conditions;
                set_condition(conditions, AVAILABLE, available.map(|status| says(AVAILABLE, status, None)));
            }
            Event::Lose(cluster) => self.clusters[cluster].work = None,
            Event::Deploy(cluster) => self.clusters[cluster].deploy(),
            Event::Target(letter) => self.target = letter,
            Event::Pass(seconds) => self.now += SignedDuration::from_secs(seconds),
        }
    }

    /// The hub reads all reports and plans.
    fn plan(&mut self) -> Plan<Set> {
        for (index, cluster) in self.clusters.iter_mut().enumerate() {
            if let Some(given) = cluster.given() {
                cluster.note(&given, self.forgets, self.now);
            }
            let member = cluster.member(self.strategy.entry(index), self.strategy.group(index));
            self.rollout.update(&ClusterName::from(CLUSTERS[index]), Some(member));
        }
        let sets: Sets<Set> = ['A', 'B', 'C'].map(goal).into_iter().map(|goal| (goal.fingerprint, goal.set)).collect();
        let wish = |stored: &RolloutProgress| Wish {
            configured: Some(Ok(goal(self.target))),
            is_there: true,
            pause: None,
            pin: None,
            stored: stored.clone(),
        };
        let wishes: Vec<_> = self.stored.iter().map(wish).collect();
        self.rollout.plan(&wishes, &sets, None, self.now)
    }

    /// The hub writes what it has planned.
    fn write(&mut self, plan: &Plan<Set>) {
        self.stored = plan.courses.iter().map(|course| course.progress.clone()).collect();
        for give in &plan.gives {
            let cluster = &mut self.clusters[index_of(&give.cluster)];
            (cluster.has_run, cluster.healthy_since) = (false, None);
            cluster.note(&Given { set: give.set.clone(), since: self.now }, self.forgets, self.now);
        }
    }

    /// Whether every start in a plan is in turn.
    fn is_in_turn(&self, plan: &Plan<Set>) -> Checked {
        for (entry, course) in plan.courses.iter().enumerate().filter(|(_, course)| course.hold.is_none()) {
            let Some(target) = &course.goal else { continue };
            let gives = plan.gives.iter().filter(|give| give.entry == entry).map(|give| index_of(&give.cluster));
            let starts: BTreeSet<_> = gives.filter(|index| !self.clusters[*index].is_in_flight()).collect();
            if starts.is_empty() {
                continue;
            }
            let all = (0..CLUSTERS.len()).filter(|index| self.strategy.entry(*index) == entry);
            let in_flight: BTreeSet<_> = all.clone().filter(|index| self.clusters[*index].is_in_flight()).collect();
            let window = self.rollout.entries()[entry].strategy.as_ref().map_or(0, |it| it.window.of(all.count()));
            let busy = in_flight.union(&starts).count();
            prop_assert!(busy <= window, "{starts:?} start while {in_flight:?} are in flight");
            self.are_earlier_groups_done(&starts, target, entry)?;
            self.have_canaries_run(target, entry)?;
        }
        Ok(())
    }

    fn are_earlier_groups_done(&self, starts: &BTreeSet<usize>, target: &SetFingerprint, entry: usize) -> Checked {
        let stored = &self.stored[entry];
        let is_settled = stored.finished.is_some() && stored.last_applied.as_ref() == Some(target);
        let last = starts.iter().map(|index| self.strategy.group(*index)).max().unwrap_or_default();
        let earlier = (0..CLUSTERS.len()).filter(|index| self.strategy.group(*index) < last && !is_settled);
        for index in earlier {
            let cluster = &self.clusters[index];
            let is_on_target = cluster.given().is_some_and(|given| given.set == *target);
            prop_assert!(is_on_target && cluster.has_run, "{starts:?} start before {index} is updated");
            let soaked = cluster.healthy_since.map(|since| self.now.duration_since(since).as_secs() >= SOAK);
            prop_assert!(soaked != Some(false), "{starts:?} start before {index} has soaked");
        }
        Ok(())
    }

    fn have_canaries_run(&self, target: &SetFingerprint, entry: usize) -> Checked {
        let is_gated = self.strategy == RolloutKind::WithCanary && entry == 0;
        let canaries = (0..2).filter(|_| is_gated);
        for canary in canaries {
            prop_assert!(self.clusters[canary].ran.contains(target), "{canary} has not run what passes its gate");
        }
        Ok(())
    }
}

fn index_of(name: &ClusterName) -> usize {
    CLUSTERS.iter().position(|cluster| *cluster == name.as_str()).expect("a cluster of this world")
}

fn events() -> impl Strategy<Value = Event> {
    let cluster = || 0..CLUSTERS.len();
    let status = || select(vec![Some("True"), Some("False"), Some("False"), Some("Unknown"), None]);
    let type_ = select(vec![WORK_APPLIED, WORK_AVAILABLE]);
    let behind = select(vec![0, 0, 0, 1, -1]);
    prop_oneof![
        8 => (cluster(), type_, status(), behind)
            .prop_map(|(cluster, type_, status, behind)| Event::OnWork(cluster, type_, status, behind)),
        12 => cluster().prop_map(Event::Succeed),
        3 => (cluster(), status()).prop_map(|(cluster, status)| Event::OnAddOn(cluster, status)),
        1 => cluster().prop_map(Event::Lose),
        12 => cluster().prop_map(Event::Deploy),
        2 => select(vec!['A', 'B', 'C']).prop_map(Event::Target),
        4 => select(vec![1, SOAK, 61]).prop_map(Event::Pass),
    ]
}

fn histories() -> impl Strategy<Value = History> {
    let strategies = [
        RolloutKind::RollingUpdate,
        RolloutKind::Progressive,
        RolloutKind::ProgressivePerGroup,
        RolloutKind::WithCanary,
    ];
    (select(strategies.to_vec()), vec(events(), 0..80)).prop_map(|(strategy, events)| History { strategy, events })
}

/// Plays a history after all clusters were updated to the first revision. Returns the number of
/// assignments.
fn play(history: &History, forgets: bool) -> Result<usize, TestCaseError> {
    let mut world = World::new(history.strategy, forgets);
    let settled = (0..8).flat_map(|_| {
        let all = (0..CLUSTERS.len()).flat_map(|cluster| [Event::Deploy(cluster), Event::Succeed(cluster)]);
        all.chain([Event::Pass(SOAK)])
    });
    let mut starts = 0;
    for event in settled.chain([Event::Target('B')]).chain(history.events.iter().copied()) {
        world.happen(event);
        let plan = world.plan();
        world.is_in_turn(&plan)?;
        starts += plan.gives.len();
        world.write(&plan);
    }
    Ok(starts)
}

#[test]
fn no_report_starts_a_cluster_out_of_turn() {
    let moved = Cell::new(0);
    let found = counterexample(&histories(), |history| {
        let starts = play(&history, false)?;
        moved.set(moved.get() + usize::from(starts > CLUSTERS.len() + 2));
        Ok(())
    });
    assert_eq!(found, None);
    assert!(moved.get() > 10, "rollouts go on in {} histories", moved.get());
}

#[test]
fn hub_that_forgets_what_ran_is_caught() {
    let found = counterexample_of(&histories(), 1024, 0, |history| play(&history, true).map(drop));
    assert!(found.is_some());
}
