//! Random histories of worlds: add-ons with all kinds of placements, and all that can happen to them.

use std::fmt;

use drover_engine::{
    revision::Set,
    revision::markers::Verdict,
    rollout::{Entry, Plan, member::Presence},
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};

use crate::{
    counterexample::Checked,
    rollout_world::{
        Cluster, LETTERS, Planner, World, Writes, fingerprint, goal, listed, missing_config, nobody, own_extras,
        settings_of, unlisted,
    },
};

/// How many placements may be listed.
const PLACEMENTS: usize = 4;
/// How many clusters there may be.
const CLUSTERS: usize = 8;

/// An add-on, its clusters, and what happens to them.
#[derive(Clone)]
pub(crate) struct History {
    /// The strategies of the placements in the list.
    strategies: Vec<Value>,
    clusters: Vec<Beginning>,
    /// Whether all of them run the first set when it begins.
    is_settled: bool,
    acts: Vec<Act>,
}

/// One line for each part: that is what is read when a property does not hold.
impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, strategy) in self.strategies.iter().enumerate() {
            writeln!(f, "p{index}: {strategy}")?;
        }
        for (index, cluster) in self.clusters.iter().enumerate() {
            writeln!(f, "c{index}: {cluster:?}")?;
        }
        writeln!(f, "is settled: {}", self.is_settled)?;
        self.acts.iter().try_for_each(|act| writeln!(f, "{act:?}"))
    }
}

/// How a cluster begins.
#[derive(Clone, Debug)]
struct Beginning {
    /// The placements that it matches: as many bits as there can be in the list, and one for a placement that is not.
    matches: u8,
    group: u32,
    has_addon: bool,
    is_tolerated: bool,
}

/// Something that happens, and what the hub makes of it.
#[derive(Clone, Debug)]
struct Act {
    event: Event,
    /// Whether the hub does not hear of it.
    is_missed: bool,
    /// What becomes of the plan that the hub makes then; nothing if it makes none.
    writes: Option<Writes>,
}

/// Something that happens. Clusters and entries go by number, modulo how many there are.
#[derive(Clone, Debug)]
enum Event {
    Want(char),
    WantHere(usize, char),
    Break(usize),
    Mend(usize),
    Match(usize, u8),
    Decide(usize),
    Leave(usize),
    Return(usize),
    Appear(usize, bool),
    Vanish(usize),
    Report(usize),
    Succeed(usize),
    AllSucceed,
    Fail(usize),
    Sicken(usize),
    Override(usize, Option<Own>),
    AtOdds(usize, bool),
    Pause(usize, bool),
    PauseCluster(usize, bool),
    Skip(usize, bool),
    Retry(Option<usize>),
    Pin(usize, Option<char>),
    /// The contents of a set are lost, or there again.
    Lose(char, bool),
    /// Another Drover comes, which would make something else of a set, or goes again.
    Outdate(char, bool),
    Pass(i64),
    Wake,
    JumpBack(i64),
    Restart,
    Relist,
    PlacementGone(usize, bool),
}

/// What a user asks for on a cluster.
#[derive(Clone, Copy, Debug)]
enum Own {
    SettingsOf(char),
    Extras,
}

impl History {
    pub(crate) fn world<'p>(&self, planner: &'p dyn Planner) -> World<'p> {
        let mut entries: Vec<Entry> = self
            .strategies
            .iter()
            .enumerate()
            .map(|(index, strategy)| listed(&format!("p{index}"), strategy))
            .collect();
        entries.extend([unlisted("aside"), unlisted("gone"), nobody()]);
        let mut world = World::new(planner, entries);
        let gone = world.entries.len() - 2;
        world.wishes[gone].is_there = false;
        for (index, beginning) in self.clusters.iter().enumerate() {
            world.change(&format!("c{index}"), |cluster, _| {
                cluster.matches = matches(beginning.matches, beginning.group, self.strategies.len());
                cluster.is_online = true;
                cluster.is_tolerated = beginning.is_tolerated;
                cluster.addon = beginning.has_addon.then(Presence::default);
                cluster.decide();
            });
        }
        world
    }

    /// Lets all of it happen. `observe` sees each plan with the world that it was made in, before anything is written, and whether it
    /// will be stored.
    pub(crate) fn play<'p>(
        &self,
        planner: &'p dyn Planner,
        mut observe: impl FnMut(&mut World<'p>, &Plan<Set>, bool) -> Checked,
    ) -> Result<World<'p>, TestCaseError> {
        let mut world = self.world(planner);
        if self.is_settled {
            world.settle();
        }
        let mut wake = None;
        for act in &self.acts {
            self.happen(&mut world, act, wake);
            let Some(writes) = act.writes else { continue };
            let plan = world.plan();
            observe(&mut world, &plan, writes != Writes::None)?;
            world.write(&plan, writes);
            wake = plan.wake;
        }
        Ok(world)
    }

    fn happen(&self, world: &mut World, act: &Act, wake: Option<k8s_openapi::jiff::Timestamp>) {
        let entry = |world: &World, number: usize| number % world.entries.len();
        match act.event {
            Event::Want(letter) => {
                world
                    .wishes
                    .iter_mut()
                    .for_each(|wish| wish.configured = wish.configured.as_ref().map(|_| Ok(goal(letter))));
            }
            Event::WantHere(number, letter) => {
                let wish = entry(world, number);
                world.wishes[wish].configured = world.wishes[wish].configured.as_ref().map(|_| Ok(goal(letter)));
            }
            Event::Break(number) => {
                let wish = entry(world, number);
                world.wishes[wish].configured = world.wishes[wish].configured.as_ref().map(|_| Err(missing_config()));
            }
            Event::Mend(number) => {
                let wish = entry(world, number);
                let wanted = world.wishes[wish].stored.wanted.as_ref().map(crate::rollout_world::letter);
                if let Some(letter) = wanted {
                    world.wishes[wish].configured = Some(Ok(goal(letter)));
                }
            }
            Event::Pause(number, is_paused) => {
                let wish = entry(world, number);
                world.wishes[wish].pause = is_paused.then(|| "somebody".to_owned());
            }
            Event::Pin(number, letter) => {
                let wish = entry(world, number);
                world.wishes[wish].pin = letter.map(fingerprint);
            }
            Event::Lose(letter, true) => drop(world.lost.insert(fingerprint(letter))),
            Event::Lose(letter, false) => drop(world.lost.remove(&fingerprint(letter))),
            Event::Outdate(letter, true) => drop(world.outdated.insert(fingerprint(letter))),
            Event::Outdate(letter, false) => drop(world.outdated.remove(&fingerprint(letter))),
            Event::PlacementGone(number, is_gone) => {
                let wish = entry(world, number);
                world.wishes[wish].is_there = !is_gone;
            }
            Event::Retry(None) => world.retried = Some(world.now),
            Event::Pass(seconds) => world.pass(seconds),
            Event::Wake => world.now = wake.unwrap_or(world.now).max(world.now),
            Event::JumpBack(seconds) => world.pass(-seconds),
            Event::Restart => world.restart(),
            Event::Relist => world.relist(),
            Event::AllSucceed => {
                let names: Vec<_> = world.clusters.keys().cloned().collect();
                for name in names {
                    world.change(name.as_str(), |cluster, now| {
                        if cluster.is_online {
                            cluster.prove(Verdict::Proven, now);
                        }
                    });
                }
            }
            ref event => self.happen_to_cluster(world, event, act.is_missed),
        }
    }

    fn happen_to_cluster(&self, world: &mut World, event: &Event, is_missed: bool) {
        let Some(number) = event.cluster() else { return };
        let name = format!("c{}", number % self.clusters.len()).as_str().into();
        let now = world.now;
        let Some(cluster) = world.clusters.get_mut(&name) else { return };
        change(cluster, event, self.strategies.len(), now);
        if !is_missed {
            world.tell(&name);
        }
    }
}

impl Event {
    fn cluster(&self) -> Option<usize> {
        match *self {
            Self::Match(number, _)
            | Self::Decide(number)
            | Self::Leave(number)
            | Self::Return(number)
            | Self::Appear(number, _)
            | Self::Vanish(number)
            | Self::Report(number)
            | Self::Succeed(number)
            | Self::Fail(number)
            | Self::Sicken(number)
            | Self::Override(number, _)
            | Self::AtOdds(number, _)
            | Self::PauseCluster(number, _)
            | Self::Skip(number, _)
            | Self::Retry(Some(number)) => Some(number),
            _ => None,
        }
    }
}

fn change(cluster: &mut Cluster, event: &Event, placements: usize, now: k8s_openapi::jiff::Timestamp) {
    let is_there = cluster.addon.is_some() && cluster.is_online;
    match *event {
        Event::Match(_, bits) => {
            cluster.matches = matches(bits, u32::from(bits % 3), placements);
            cluster.decide();
        }
        Event::Decide(_) => cluster.decide(),
        Event::Leave(_) => cluster.is_online = false,
        Event::Return(_) => cluster.is_online = true,
        Event::Appear(_, is_hand_made) if cluster.addon.is_none() => {
            cluster.addon = Some(Presence { is_hand_made, ..Presence::default() });
        }
        Event::Vanish(_) if cluster.is_online => (cluster.addon, cluster.ran) = (None, None),
        Event::Report(_) => cluster.prove(Verdict::Moving, now),
        Event::Succeed(_) if is_there => cluster.prove(Verdict::Proven, now),
        Event::Fail(_) if is_there => cluster.prove(Verdict::Failing, now),
        // Only what it ran before can make a cluster unhealthy.
        Event::Sicken(_) if cluster.has_run() => cluster.prove(Verdict::Unhealthy, now),
        Event::PauseCluster(_, is_paused) => cluster.steering.is_paused = is_paused,
        Event::Skip(_, is_skipped) => cluster.steering.is_skipped = is_skipped,
        Event::Retry(_) => cluster.steering.retried = Some(now),
        Event::Override(_, own) => {
            if let Some(addon) = &mut cluster.addon {
                addon.overrides = own.map(|own| match own {
                    Own::SettingsOf(letter) => settings_of(letter).into(),
                    Own::Extras => own_extras().into(),
                });
            }
            // What a user asks for is noted with what comes of it.
            if !cluster.has_run() {
                cluster.prove(Verdict::Moving, now);
            }
        }
        Event::AtOdds(_, is_at_odds) => {
            if let Some(addon) = &mut cluster.addon {
                addon.is_at_odds = is_at_odds;
            }
        }
        _ => {}
    }
}

/// The entries of the placements whose bits are set: those in the list, and one that is not.
fn matches(bits: u8, group: u32, placements: usize) -> std::collections::BTreeMap<usize, u32> {
    let in_list = (0..placements).filter(|placement| bits & (1 << placement) != 0);
    let aside = (bits & (1 << PLACEMENTS) != 0).then_some(placements);
    in_list.chain(aside).map(|entry| (entry, group)).collect()
}

// ---- What may be generated

pub(crate) fn histories() -> impl Strategy<Value = History> {
    (strategies(), vec(beginnings(), 1..=CLUSTERS), any::<bool>(), vec(acts(events()), 0..60))
        .prop_map(|(strategies, clusters, is_settled, acts)| History { strategies, clusters, is_settled, acts })
}

/// Histories in which the first placement waits for the second, which may wait for a third, and most of what happens is about that.
pub(crate) fn canary_histories() -> impl Strategy<Value = History> {
    let gated = |canary: &'static str| limits().prop_map(move |limits| with_canary(canary, limits));
    let canaries = prop_oneof![3 => rolling(), 1 => gated("p2"), 1 => Just(json!({ "type": "UpdateAll" }))];
    let strategies = (gated("p1"), canaries, rolling()).prop_map(|(first, second, third)| vec![first, second, third]);
    (strategies, vec(beginnings(), 0..3), prop::bool::weighted(0.8), vec(acts(canary_events()), 0..40)).prop_map(
        |(strategies, more, is_settled, acts)| {
            let of = |matches| Beginning { matches, group: 0, has_addon: true, is_tolerated: false };
            let clusters = [0b010, 0b010, 0b001, 0b001, 0b001, 0b011].map(of).into_iter().chain(more).collect();
            History { strategies, clusters, is_settled, acts }
        },
    )
}

fn beginnings() -> impl Strategy<Value = Beginning> {
    // Most match one placement only.
    let bits = prop_oneof![3 => (0..3_u8).prop_map(|bit| 1 << bit), 2 => any::<u8>()];
    (bits, 0..3_u32, prop::bool::weighted(0.8), prop::bool::weighted(0.1))
        .prop_map(|(matches, group, has_addon, is_tolerated)| Beginning { matches, group, has_addon, is_tolerated })
}

fn acts(events: impl Strategy<Value = Event>) -> impl Strategy<Value = Act> {
    let writes = prop_oneof![
        14 => Just(Some(Writes::All)),
        2 => Just(None),
        1 => Just(Some(Writes::None)),
        2 => any::<u8>().prop_map(|bits| Some(Writes::Some(bits))),
    ];
    (events, prop::bool::weighted(0.08), writes).prop_map(|(event, is_missed, writes)| Act { event, is_missed, writes })
}

/// What decides on gates.
fn canary_events() -> impl Strategy<Value = Event> {
    let cluster = || 0..6_usize;
    prop_oneof![
        6 => select(LETTERS[..3].to_vec()).prop_map(Event::Want),
        10 => Just(Event::AllSucceed),
        4 => cluster().prop_map(Event::Succeed),
        4 => cluster().prop_map(Event::Report),
        4 => cluster().prop_map(Event::Fail),
        4 => cluster().prop_map(Event::Sicken),
        3 => cluster().prop_map(Event::Leave),
        3 => cluster().prop_map(Event::Return),
        4 => cluster().prop_map(Event::Decide),
        2 => select(vec![1, 60, 700]).prop_map(Event::Pass),
        1 => Just(Event::Wake),
        1 => (select(LETTERS[..3].to_vec()), any::<bool>()).prop_map(|(letter, lost)| Event::Lose(letter, lost)),
        1 => (select(LETTERS[..3].to_vec()), any::<bool>()).prop_map(|(letter, is_old)| Event::Outdate(letter, is_old)),
        1 => Just(Event::Restart),
        3 => events(),
    ]
}

fn events() -> impl Strategy<Value = Event> {
    let cluster = || 0..CLUSTERS;
    let entry = || 0..PLACEMENTS + 3;
    let letter = || select(LETTERS[..4].to_vec());
    let own = prop_oneof![letter().prop_map(Own::SettingsOf), Just(Own::Extras)];
    let configuration = prop_oneof![
        6 => letter().prop_map(Event::Want),
        2 => (entry(), letter()).prop_map(|(entry, letter)| Event::WantHere(entry, letter)),
        1 => entry().prop_map(Event::Break),
        1 => entry().prop_map(Event::Mend),
        1 => (letter(), any::<bool>()).prop_map(|(letter, lost)| Event::Lose(letter, lost)),
        1 => (letter(), any::<bool>()).prop_map(|(letter, is_old)| Event::Outdate(letter, is_old)),
    ];
    let membership = prop_oneof![
        2 => (cluster(), any::<u8>()).prop_map(|(cluster, bits)| Event::Match(cluster, bits)),
        3 => cluster().prop_map(Event::Decide),
        3 => cluster().prop_map(Event::Leave),
        4 => cluster().prop_map(Event::Return),
        3 => (cluster(), prop::bool::weighted(0.2)).prop_map(|(cluster, hand_made)| Event::Appear(cluster, hand_made)),
        1 => cluster().prop_map(Event::Vanish),
        1 => (entry(), any::<bool>()).prop_map(|(entry, gone)| Event::PlacementGone(entry, gone)),
    ];
    let works = prop_oneof![
        3 => cluster().prop_map(Event::Report),
        6 => cluster().prop_map(Event::Succeed),
        4 => Just(Event::AllSucceed),
        4 => cluster().prop_map(Event::Fail),
        2 => cluster().prop_map(Event::Sicken),
    ];
    let steering = prop_oneof![
        (cluster(), option::of(own)).prop_map(|(cluster, own)| Event::Override(cluster, own)),
        (cluster(), any::<bool>()).prop_map(|(cluster, odds)| Event::AtOdds(cluster, odds)),
        (entry(), any::<bool>()).prop_map(|(entry, pause)| Event::Pause(entry, pause)),
        (cluster(), any::<bool>()).prop_map(|(cluster, pause)| Event::PauseCluster(cluster, pause)),
        (cluster(), any::<bool>()).prop_map(|(cluster, skip)| Event::Skip(cluster, skip)),
        option::of(cluster()).prop_map(Event::Retry),
        (entry(), option::of(letter())).prop_map(|(entry, letter)| Event::Pin(entry, letter)),
    ];
    let time = prop_oneof![
        4 => (1..200_i64).prop_map(Event::Pass),
        1 => Just(Event::Pass(700)),
        3 => Just(Event::Wake),
        1 => (1..200_i64).prop_map(Event::JumpBack),
    ];
    let hub = prop_oneof![Just(Event::Restart), Just(Event::Relist)];
    prop_oneof![3 => configuration, 3 => membership, 8 => works, 2 => steering, 2 => time, 1 => hub]
}

fn strategies() -> impl Strategy<Value = Vec<Value>> {
    let canary = select(vec!["p0", "p1", "p2", "p3", "aside", "gone"]);
    let gated = (canary, limits()).prop_map(|(canary, limits)| with_canary(canary, limits));
    let any = prop_oneof![4 => gated, 3 => rolling(), 1 => Just(json!({ "type": "UpdateAll" })), 3 => of_ocm()];
    // Nobody can be their own canary.
    let is_own = |(index, strategy): (usize, &Value)| {
        strategy["rollingUpdateWithCanary"]["placement"]["name"] == format!("p{index}").as_str()
    };
    vec(any, 0..=PLACEMENTS)
        .prop_filter("a placement is not its own canary", move |all| !all.iter().enumerate().any(is_own))
}

fn with_canary(canary: &str, mut limits: Value) -> Value {
    limits["placement"] = json!({ "namespace": "default", "name": canary });
    json!({ "type": "RollingUpdateWithCanary", "rollingUpdateWithCanary": limits })
}

fn rolling() -> impl Strategy<Value = Value> {
    limits().prop_map(|limits| json!({ "type": "RollingUpdate", "rollingUpdate": limits }))
}

fn limits() -> impl Strategy<Value = Value> {
    let size = select(vec![Value::Null, json!(1), json!(2), json!("50%"), json!("100%")]);
    (size, common_limits()).prop_map(|(size, mut limits)| {
        if size != Value::Null {
            limits["maxConcurrentlyUpdating"] = size;
        }
        limits
    })
}

fn common_limits() -> impl Strategy<Value = Value> {
    let failures = select(vec![Value::Null, Value::Null, json!(1), json!("50%"), json!("100%")]);
    (prop::bool::weighted(0.3), prop::bool::weighted(0.3), failures).prop_map(|(soak, deadline, failures)| {
        let mut limits = json!({});
        if soak {
            limits["minSuccessTime"] = "30s".into();
        }
        if deadline {
            limits["progressDeadline"] = "100s".into();
        }
        if failures != Value::Null {
            limits["maxFailures"] = failures;
        }
        limits
    })
}

fn of_ocm() -> impl Strategy<Value = Value> {
    let groups =
        select(vec![json!([]), json!([{ "groupIndex": 1 }]), json!([{ "groupName": "g2" }, { "groupIndex": 0 }])]);
    let size = select(vec![Value::Null, json!(0), json!(1), json!("50%")]);
    (0..3_u8, common_limits(), groups, size).prop_map(|(kind, mut limits, groups, size)| {
        if kind == 0 {
            return json!({ "type": "All", "all": limits });
        }
        limits["mandatoryDecisionGroups"] = groups;
        if kind == 1 {
            return json!({ "type": "ProgressivePerGroup", "progressivePerGroup": limits });
        }
        if size != Value::Null {
            limits["maxConcurrency"] = size;
        }
        json!({ "type": "Progressive", "progressive": limits })
    })
}
