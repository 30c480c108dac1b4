//! A world in which an add-on is rolled out: its placements, its clusters and what happens to them, and a hub that plans with a
//! [`Planner`] and may miss what happens, restart, or fail to write.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use drover_api::{
    addon::{AddOnRolloutStrategy, ConfigGroupResource, ConfigReferent, ConfigSpecHash},
    drover::{ConfigSet, RolloutProgress, SetConfig},
    grammar::{CountOrPercentage, SetFingerprint, WindowSize},
    reference::{ClusterName, PlacementRef},
};
use drover_engine::{
    addon::{
        configuration::{ConfigName, Problem},
        registry,
    },
    presence::Source,
    revision::{
        Overrides, Set,
        markers::{Given, Proof, Verdict},
    },
    rollout::{
        Entry, Goal, Plan, Rollout, Sets, Snapshot, Standing, TargetError, Wish,
        member::{Group, Member, Presence, Selection},
        strategy::Strategy,
    },
    steering::MemberSteering,
};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::fleet::noon;

/// Who plans in a world. A faulty one spoils what it is told, or what it answers.
pub(crate) trait Planner {
    fn entries(&self, entries: &[Entry]) -> Vec<Entry> {
        entries.to_vec()
    }

    fn member(&self, member: &Member<Set>) -> Member<Set> {
        member.clone()
    }

    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        question.ask(rollout)
    }
}

/// The planner as it is.
pub(crate) struct Engine;

impl Planner for Engine {}

/// What a planner is asked, besides the clusters that it was told of.
#[derive(Clone)]
pub(crate) struct Question {
    pub(crate) wishes: Vec<Wish<Set>>,
    pub(crate) retried: Option<Timestamp>,
    pub(crate) now: Timestamp,
    /// The sets whose contents are kept nowhere.
    pub(crate) lost: BTreeSet<SetFingerprint>,
    /// The sets that another Drover has made.
    pub(crate) outdated: BTreeSet<SetFingerprint>,
    /// The clusters in the order in which it was told of them.
    pub(crate) heard: Vec<ClusterName>,
}

impl Question {
    pub(crate) fn ask(&self, rollout: &mut Rollout<Set>) -> Plan<Set> {
        let mut sets = SETS.clone();
        self.lost.iter().for_each(|set| sets.lose(set.clone(), some_config()));
        self.outdated.iter().for_each(|set| sets.outdate(set.clone()));
        rollout.plan(&self.wishes, &sets, self.retried, self.now)
    }
}

// ---- Sets

/// The sets of all worlds.
pub(crate) const LETTERS: [char; 5] = ['A', 'B', 'C', 'D', 'E'];

static SETS: LazyLock<Sets<Set>> = LazyLock::new(|| {
    let set = |letter: char| Arc::new(Set::new([config("settings", letter), config("extras", '0')], None));
    LETTERS.into_iter().map(set).map(|set| (set.fingerprint(), set)).collect()
});

/// All sets, as they are recorded.
pub(crate) fn all_sets(now: Timestamp) -> Vec<ConfigSet> {
    registry::keep(&[], &SETS, &SETS.iter().map(|(name, _)| name.clone()).collect(), now)
}

fn config(resource: &str, content: char) -> SetConfig {
    SetConfig { group_resource: type_(resource), config: state(content) }
}

fn type_(resource: &str) -> ConfigGroupResource {
    ConfigGroupResource { group: "example.com".to_owned(), resource: resource.to_owned() }
}

fn state(content: char) -> ConfigSpecHash {
    let referent = ConfigReferent { namespace: None, name: "config".to_owned() };
    ConfigSpecHash { referent, spec_hash: content.to_string().parse().expect("any text is a hash") }
}

/// A set, by letter.
pub(crate) fn goal(letter: char) -> Goal<Set> {
    let (fingerprint, set) = SETS.iter().find(|(_, set)| letter_of(set) == letter).expect("a set of that letter");
    Goal { fingerprint: fingerprint.clone(), set: set.clone() }
}

pub(crate) fn fingerprint(letter: char) -> SetFingerprint {
    goal(letter).fingerprint
}

/// The letter of a set.
pub(crate) fn letter(set: &SetFingerprint) -> char {
    SETS.get(set).map_or('?', |set| letter_of(set))
}

fn letter_of(set: &Set) -> char {
    let settings = set.configs().iter().find(|config| config.group_resource == type_("settings"));
    let hash = settings.map(|config| config.config.spec_hash.to_string()).unwrap_or_default();
    hash.chars().next().unwrap_or('?')
}

pub(crate) fn is_known(set: &SetFingerprint) -> bool {
    SETS.get(set).is_some()
}

/// What an add-on is to run: what it was given, with what a user has asked for instead.
pub(crate) fn effective(addon: &Presence<Set>) -> Option<SetFingerprint> {
    let given = &addon.given.as_ref()?.set;
    match &addon.overrides {
        None => Some(given.clone()),
        Some(overrides) => Some(SETS.get(given)?.with(overrides).fingerprint()),
    }
}

/// A user's wish to run the settings of another set.
pub(crate) fn settings_of(letter: char) -> Overrides {
    Overrides { configs: [(type_("settings"), vec![state(letter)])].into(), version: None }
}

/// A user's wish for something that no set has.
pub(crate) fn own_extras() -> Overrides {
    Overrides { configs: [(type_("extras"), vec![state('9')])].into(), version: None }
}

pub(crate) fn missing_config() -> TargetError<Problem> {
    TargetError::Configuration(Problem::Missing(some_config()))
}

fn some_config() -> ConfigName {
    let referent = ConfigReferent { namespace: None, name: "config".to_owned() };
    ConfigName { group_resource: type_("settings"), referent }
}

// ---- Placements

pub(crate) fn placement(name: &str) -> PlacementRef {
    PlacementRef { namespace: "default".to_owned(), name: name.to_owned() }
}

/// A placement in the add-on's list, with a strategy as users write it.
pub(crate) fn listed(name: &str, strategy: &Value) -> Entry {
    let written: AddOnRolloutStrategy = serde_json::from_value(strategy.clone()).expect("a strategy");
    let per_group = WindowSize(CountOrPercentage::count(2));
    Entry { source: Source::Listed(placement(name)), strategy: Strategy::read(Some(&written), Some(&per_group)) }
}

/// A placement that is only named as the canaries of another.
pub(crate) fn unlisted(name: &str) -> Entry {
    Entry { source: Source::Canaries(placement(name)), strategy: Ok(Strategy::default()) }
}

/// Clusters that have the add-on though no placement selects them.
pub(crate) fn nobody() -> Entry {
    Entry { source: Source::Nobody, strategy: Ok(Strategy::default()) }
}

// ---- Clusters

/// A cluster as it is, whatever the hub has heard of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    /// The placements whose predicates it fulfils, with the group that it is in.
    pub(crate) matches: BTreeMap<usize, u32>,
    /// The placements that have decided for it. They drop it when it can not be reached.
    pub(crate) selected: BTreeMap<usize, u32>,
    pub(crate) addon: Option<Presence<Set>>,
    pub(crate) is_online: bool,
    /// Whether placements keep it although it can not be reached.
    pub(crate) is_tolerated: bool,
    pub(crate) steering: MemberSteering,
    /// The revision that it has run since it was assigned it, whatever it reports after that.
    pub(crate) ran: Option<SetFingerprint>,
}

impl Cluster {
    /// Has placements decide again.
    pub(crate) fn decide(&mut self) {
        let is_kept = self.is_online || self.is_tolerated;
        self.selected = if is_kept { self.matches.clone() } else { BTreeMap::new() };
    }

    /// Notes how it is found to stand to what it is to run.
    pub(crate) fn prove(&mut self, found: Verdict, now: Timestamp) {
        let Some(addon) = &mut self.addon else { return };
        let Some(set) = effective(addon) else { return };
        self.ran =
            self.ran.take().filter(|ran| *ran == set).or_else(|| (found == Verdict::Proven).then(|| set.clone()));
        addon.proof = Some(Proof::follow(addon.proof.as_ref(), set, found, now));
    }

    /// Whether it runs, or ran, what it is to run.
    pub(crate) fn has_run(&self) -> bool {
        let Some(addon) = &self.addon else { return false };
        let is_current = |proof: &&Proof| Some(&proof.set) == effective(addon).as_ref();
        let proof = addon.proof.as_ref().filter(is_current);
        proof.is_some_and(|proof| proof.verdict.has_run())
    }

    fn member(&self) -> Option<Member<Set>> {
        if self.selected.is_empty() && self.addon.is_none() {
            return None;
        }
        let group = |index: u32| Group { index, name: Some(format!("g{index}").into()) };
        let selection = |(placement, index): (&usize, &u32)| Selection { placement: *placement, group: group(*index) };
        Some(Member {
            selections: self.selected.iter().map(selection).collect(),
            addon: self.addon.clone().map(|addon| Presence { runs: effective(&addon), ..addon }),
            is_online: self.is_online,
            steering: self.steering.clone(),
        })
    }
}

// ---- The world

/// An add-on with its clusters, and the hub that rolls it out.
#[derive(Clone)]
pub(crate) struct World<'p> {
    planner: &'p dyn Planner,
    pub(crate) entries: Vec<Entry>,
    /// What is configured, steered and stored for each entry.
    pub(crate) wishes: Vec<Wish<Set>>,
    pub(crate) clusters: BTreeMap<ClusterName, Cluster>,
    /// What the hub has heard of the clusters.
    pub(crate) known: BTreeMap<ClusterName, Member<Set>>,
    /// What those have come to run since they were assigned it.
    pub(crate) ran: BTreeMap<ClusterName, SetFingerprint>,
    pub(crate) retried: Option<Timestamp>,
    /// The sets whose contents are not kept.
    pub(crate) lost: BTreeSet<SetFingerprint>,
    /// The sets that another Drover has made.
    pub(crate) outdated: BTreeSet<SetFingerprint>,
    pub(crate) now: Timestamp,
    rollout: Rollout<Set>,
    heard: Vec<ClusterName>,
}

/// What becomes of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    /// All of it is written.
    All,
    /// What is to be remembered can not be written, so nothing is.
    None,
    /// What is to be remembered is written, and of the clusters those whose place in the plan is a bit in this.
    Some(u8),
}

impl<'p> World<'p> {
    pub(crate) fn new(planner: &'p dyn Planner, entries: Vec<Entry>) -> Self {
        let wish = |entry: &Entry| Wish {
            configured: (!matches!(entry.source, Source::Canaries(_))).then(|| Ok(goal('A'))),
            is_there: true,
            pause: None,
            pin: None,
            stored: RolloutProgress::default(),
        };
        let wishes = entries.iter().map(wish).collect();
        let rollout = Rollout::new(planner.entries(&entries));
        Self {
            planner,
            entries,
            wishes,
            clusters: BTreeMap::new(),
            known: BTreeMap::new(),
            ran: BTreeMap::new(),
            retried: None,
            lost: BTreeSet::new(),
            outdated: BTreeSet::new(),
            now: noon(),
            rollout,
            heard: Vec::new(),
        }
    }

    // ---- What the hub hears

    /// The hub hears how a cluster is.
    pub(crate) fn tell(&mut self, name: &ClusterName) {
        let member = self.clusters.get(name).and_then(Cluster::member);
        match &member {
            Some(member) => self.known.insert(name.clone(), member.clone()),
            None => self.known.remove(name),
        };
        match self.clusters.get(name).and_then(|cluster| cluster.ran.clone()) {
            Some(ran) => self.ran.insert(name.clone(), ran),
            None => self.ran.remove(name),
        };
        let seen = member.map(|member| self.planner.member(&member));
        self.rollout.update(name, seen);
        self.heard.retain(|heard| heard != name);
        self.heard.push(name.clone());
    }

    /// The hub looks at all clusters again.
    pub(crate) fn relist(&mut self) {
        let names: BTreeSet<_> = self.clusters.keys().chain(self.known.keys()).cloned().collect();
        for name in &names {
            self.tell(name);
        }
    }

    /// The hub starts anew, from what is stored.
    pub(crate) fn restart(&mut self) {
        self.rollout = Rollout::new(self.planner.entries(&self.entries));
        self.known.clear();
        self.ran.clear();
        self.relist();
    }

    /// Changes a cluster, and the hub hears of it.
    pub(crate) fn change(&mut self, name: &str, change: impl FnOnce(&mut Cluster, Timestamp)) {
        let name = ClusterName::from(name);
        change(self.clusters.entry(name.clone()).or_default(), self.now);
        self.tell(&name);
    }

    // ---- What the hub does

    pub(crate) fn question(&self) -> Question {
        let (wishes, heard) = (self.wishes.clone(), self.heard.clone());
        let (lost, outdated) = (self.all_lost(), self.all_outdated());
        Question { wishes, retried: self.retried, lost, outdated, now: self.now, heard }
    }

    /// The sets that can not be given: what somebody is configured to has its contents from there.
    pub(crate) fn all_lost(&self) -> BTreeSet<SetFingerprint> {
        self.lost.difference(&self.configured()).cloned().collect()
    }

    /// The sets that another Drover has made: what somebody is configured to is made by this one.
    pub(crate) fn all_outdated(&self) -> BTreeSet<SetFingerprint> {
        self.outdated.difference(&self.configured()).cloned().collect()
    }

    fn configured(&self) -> BTreeSet<SetFingerprint> {
        let configured = self.wishes.iter().filter_map(|wish| wish.configured.as_ref()?.as_ref().ok());
        configured.map(|goal| goal.fingerprint.clone()).collect()
    }

    pub(crate) fn plan(&mut self) -> Plan<Set> {
        let question = self.question();
        self.planner.plan(&mut self.rollout, &question)
    }

    /// What is published of the last plan.
    pub(crate) fn snapshot(&self, plan: &Plan<Set>) -> Snapshot<Set> {
        self.rollout.snapshot(&plan.courses)
    }

    /// How a cluster stands, by the last plan.
    pub(crate) fn standing_of(&self, name: &ClusterName) -> Option<Standing> {
        self.rollout.standing(name).map(|(_, standing)| standing.clone())
    }

    /// What a hub plans that has just started, and has heard only what this one has heard, in that order.
    pub(crate) fn plan_from_scratch(&self, order: impl Iterator<Item = ClusterName>) -> Plan<Set> {
        let mut rollout = Rollout::new(self.planner.entries(&self.entries));
        let mut question = Question { heard: Vec::new(), ..self.question() };
        for name in order {
            rollout.update(&name, self.known.get(&name).map(|member| self.planner.member(member)));
            question.heard.push(name);
        }
        self.planner.plan(&mut rollout, &question)
    }

    /// Remembers what has to be remembered, and then gives.
    pub(crate) fn write(&mut self, plan: &Plan<Set>, writes: Writes) {
        let done = |index: usize| match writes {
            Writes::All => true,
            Writes::None => false,
            Writes::Some(bits) => bits & (1 << (index % 8)) != 0,
        };
        if writes == Writes::None {
            return;
        }
        for (wish, course) in self.wishes.iter_mut().zip(&plan.courses) {
            wish.stored = course.progress.clone();
        }
        let gives: Vec<_> = plan.gives.iter().enumerate().filter(|(index, _)| done(*index)).collect();
        for (_, give) in gives {
            let Some(cluster) = self.clusters.get_mut(&give.cluster) else { continue };
            if let Some(addon) = &mut cluster.addon {
                addon.given = Some(Given { set: give.set.clone(), since: self.now });
                // What was proven of something else is no longer said, in the same write.
                if !cluster.has_run() {
                    cluster.prove(Verdict::Moving, self.now);
                }
                self.tell(&give.cluster);
            }
        }
    }

    /// Whether everything is stored that a plan has to remember.
    pub(crate) fn has_stored(&self, plan: &Plan<Set>) -> bool {
        self.wishes.iter().zip(&plan.courses).all(|(wish, course)| wish.stored == course.progress)
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    // ---- What comes of it when nothing else happens

    /// Lets the hub work until nothing changes any more, while all that can be reached do what they are told. Returns the plan
    /// that it comes to rest with, or nothing if it does not.
    pub(crate) fn settle(&mut self) -> Option<Plan<Set>> {
        for _ in 0..300 {
            let mut is_quiet = self.comply();
            let plan = self.plan();
            is_quiet &= plan.gives.is_empty();
            is_quiet &= self.has_stored(&plan);
            self.write(&plan, Writes::All);
            match plan.wake {
                None if is_quiet => return Some(plan),
                Some(wake) if is_quiet && wake > self.now => self.now = wake,
                Some(_) if is_quiet => return None,
                _ => self.pass(1),
            }
        }
        None
    }

    /// Everybody does what they are told. Tells whether that changed nothing.
    fn comply(&mut self) -> bool {
        let mut is_quiet = true;
        let names: Vec<_> = self.clusters.keys().cloned().collect();
        for name in names {
            let Some(cluster) = self.clusters.get_mut(&name) else { continue };
            cluster.decide();
            if !cluster.selected.is_empty() && cluster.addon.is_none() {
                cluster.addon = Some(Presence::default());
            }
            if cluster.is_online {
                cluster.prove(Verdict::Proven, self.now);
            }
            if self.known.get(&name) != cluster.member().as_ref() {
                is_quiet = false;
                self.tell(&name);
            }
        }
        is_quiet
    }
}
