//! Random histories of worlds in which clusters are upgraded, and all that can happen to them.

use std::{collections::BTreeMap, fmt, time::Duration};

use drover_api::reference::ClusterName;
use drover_engine::{
    tracker::BATCH,
    upgrade::{member::Owner, plan},
};
use proptest::{collection::vec, option, prelude::*, sample::select, test_runner::TestCaseError};

use crate::{
    sending::{Manner, manners},
    upgrade_known::{Decision, OTHER},
    upgrade_site::{Ending, Script, Site},
    upgrade_world::{Decider, Observer, PLATFORM_LIMIT, TARGETS, Wish, World},
};

/// How many clusters there may be.
const CLUSTERS: usize = 5;

/// An upgrade, its clusters, and what happens to them.
#[derive(Clone)]
pub(crate) struct History {
    wish: Wish,
    /// How many clusters are written in one plan.
    batch: usize,
    clusters: Vec<Beginning>,
    acts: Vec<Act>,
}

/// One line for each part: that is what is read when a property does not hold.
impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}, {} in a plan", self.wish, self.batch)?;
        for (index, cluster) in self.clusters.iter().enumerate() {
            writeln!(f, "c{index}: {cluster:?}")?;
        }
        self.acts.iter().try_for_each(|act| writeln!(f, "{act:?}"))
    }
}

/// How a cluster begins.
#[derive(Clone, Debug)]
struct Beginning {
    runs: &'static str,
    is_canary: bool,
    /// Whether it is selected from the first.
    is_in: bool,
    claims: bool,
    priority: i64,
    script: Script,
}

/// Something that happens, and what the hub makes of it.
#[derive(Clone, Debug)]
struct Act {
    event: Event,
    /// How the hub goes about the round that follows, if there is one.
    round: Option<Manner>,
}

/// Something that happens. Clusters go by number, modulo how many there are.
#[derive(Clone, Debug)]
enum Event {
    /// All goes its way, so many times: agents do their part, the hub does its, and time passes.
    Go(usize, i64),
    Serve(usize),
    Pass(i64),
    JumpBack(i64),
    Restart,
    Target(usize),
    Pause(bool),
    Limit(usize),
    MaxFailures(Option<usize>),
    Canaries(bool),
    Retry,
    Reach(usize, bool),
    Accept(usize, bool),
    Select(usize, bool),
    Decide(Decision),
    MarkCanary(usize, bool),
    Reregister(usize),
    Leave(usize),
    /// Another upgrade takes a cluster that is nobody's, or lets it go.
    Other(usize, bool),
    /// Somebody takes off by hand what says whose a cluster is.
    Disown(usize),
    Script(usize, Script),
    Mend(usize),
}

impl History {
    pub(crate) fn world<'d>(&self, decider: &'d dyn Decider) -> World<'d> {
        let site = |beginning: &Beginning| Site {
            is_canary: beginning.is_canary,
            is_selected: beginning.is_in,
            claims: beginning.claims,
            priority: beginning.priority,
            ..Site::new(beginning.runs, beginning.script)
        };
        let mut sites: BTreeMap<_, _> =
            self.clusters.iter().enumerate().map(|(index, beginning)| (name(index), site(beginning))).collect();
        // The hub runs on the first of some fleets: those in which that makes a difference.
        if self.wish.may_upgrade_hub
            && let Some(hub) = sites.get_mut(&name(0))
        {
            (hub.is_hub, hub.is_canary) = (true, false);
        }
        World::new(decider, self.wish.clone(), sites).with_batches_of(self.batch)
    }

    /// Lets all of it happen.
    pub(crate) fn play<'d>(
        &self,
        decider: &'d dyn Decider,
        observe: &mut Observer,
    ) -> Result<World<'d>, TestCaseError> {
        let mut world = self.world(decider);
        for act in &self.acts {
            if let Event::Go(times, seconds) = act.event {
                for _ in 0..times {
                    world.serve();
                    world.round(Manner { dies_after: None, ..act.round.unwrap_or_default() }, observe)?;
                    world.pass(seconds);
                }
            } else {
                self.happen(&mut world, &act.event);
            }
            if let Some(manner) = act.round {
                world.round(manner, observe)?;
            }
        }
        Ok(world)
    }

    fn happen(&self, world: &mut World, event: &Event) {
        let number = |number: &usize| name(number % self.clusters.len());
        match event {
            Event::Go(..) => {}
            Event::Serve(cluster) => drop(world.serve_one(&number(cluster))),
            Event::Pass(seconds) => world.pass(*seconds),
            Event::JumpBack(seconds) => world.pass(-seconds),
            Event::Restart => world.restart(),
            Event::Target(target) => world.ask(|wish| wish.target = *target),
            Event::Pause(is_paused) => world.ask(|wish| wish.is_paused = *is_paused),
            Event::Limit(limit) => world.ask(|wish| wish.strategy.limit = *limit),
            Event::MaxFailures(failures) => world.ask(|wish| wish.strategy.max_failures = *failures),
            Event::Canaries(has_canaries) => world.ask(|wish| wish.strategy.has_canaries = *has_canaries),
            Event::Retry => world.ask(|wish| wish.retries += 1),
            Event::Reach(cluster, is_online) => world.change(&number(cluster), |site, now| {
                site.is_online = *is_online;
                site.offline_since = (!is_online).then_some(now);
            }),
            Event::Accept(cluster, is) => world.change(&number(cluster), |site, _| site.is_accepted = *is),
            Event::Select(cluster, is) => world.change(&number(cluster), |site, _| site.is_selected = *is),
            Event::Decide(decision) => world.decision = *decision,
            Event::MarkCanary(cluster, is) => {
                world.change(&number(cluster), |site, _| site.is_canary = *is && !site.is_hub);
            }
            Event::Reregister(cluster) => world.change(&number(cluster), |site, _| {
                site.incarnation += 1;
                site.is_there = true;
                (site.owner, site.claim, site.moving) = (Owner::Nobody, None, None);
            }),
            Event::Leave(cluster) => world.change(&number(cluster), |site, _| {
                site.is_there = false;
                site.owner = Owner::Nobody;
            }),
            Event::Other(cluster, takes) => world.change(&number(cluster), |site, _| match (&site.owner, takes) {
                (Owner::Nobody, true) if site.is_there => site.owner = Owner::Other(OTHER.to_owned()),
                (Owner::Other(_), false) => site.owner = Owner::Nobody,
                _ => {}
            }),
            Event::Disown(cluster) => world.change(&number(cluster), |site, _| {
                if site.owner == Owner::Us {
                    site.owner = Owner::Nobody;
                }
            }),
            Event::Script(cluster, script) => world.change(&number(cluster), |site, _| site.script = *script),
            Event::Mend(cluster) => world.change(&number(cluster), |site, now| {
                site.script = Script::well();
                if let Some((_, done)) = &mut site.moving {
                    done.get_or_insert(now);
                }
            }),
        }
    }
}

fn name(index: usize) -> ClusterName {
    format!("c{index}").as_str().into()
}

// ---- Strategies

pub(crate) fn histories() -> impl Strategy<Value = History> {
    let batch = select(vec![1, 2, BATCH]);
    (wishes(), batch, vec(beginnings(), 1..=CLUSTERS), vec(acts(), 0..30))
        .prop_map(|(wish, batch, clusters, acts)| History { wish, batch, clusters, acts })
}

/// Histories with canaries, some of which fail or take their time.
pub(crate) fn canary_histories() -> impl Strategy<Value = History> {
    histories().prop_map(|mut history| {
        history.wish.strategy.has_canaries = true;
        history.wish.may_upgrade_hub = false;
        if let Some(first) = history.clusters.first_mut() {
            (first.is_canary, first.is_in) = (true, true);
        }
        history
    })
}

fn wishes() -> impl Strategy<Value = Wish> {
    let parts = [any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()];
    let soak = select(vec![0, 0, 120, 1800]);
    let failures = select(vec![None, None, Some(0), Some(1)]);
    let strategy =
        (1..=3_usize, any::<bool>(), soak, failures).prop_map(|(limit, has_canaries, soak, max_failures)| {
            plan::Strategy { limit, has_canaries, soak: Duration::from_secs(soak), max_failures }
        });
    (0..2_usize, strategy, parts).prop_map(|(target, strategy, [pre, operators, post, hub])| Wish {
        target,
        strategy,
        has_pre_action: pre,
        has_operators: operators,
        has_post_action: post,
        may_upgrade_hub: hub,
        is_paused: false,
        retries: 0,
    })
}

fn beginnings() -> impl Strategy<Value = Beginning> {
    let runs = select(vec!["4.11.9", "4.11.9", "4.11.9", "4.11.9", "4.12.0", "4.14.0"]);
    let is = prop::bool::weighted;
    (runs, is(0.35), is(0.85), is(0.7), select(vec![0, 0, 1, -1]), scripts()).prop_map(
        |(runs, is_canary, is_in, claims, priority, script)| Beginning {
            runs,
            is_canary,
            is_in,
            claims,
            priority,
            script,
        },
    )
}

fn scripts() -> impl Strategy<Value = Script> {
    let ending = || {
        prop_oneof![
            6 => (1..200_i64).prop_map(Ending::Well),
            1 => (1..200_i64).prop_map(Ending::Badly),
            1 => (1000..2500_i64).prop_map(Ending::Well),
            1 => Just(Ending::Never),
        ]
    };
    let platform = prop_oneof![
        6 => (1..PLATFORM_LIMIT).prop_map(Some),
        2 => (PLATFORM_LIMIT..3 * PLATFORM_LIMIT).prop_map(Some),
        1 => Just(None),
    ];
    (prop::bool::weighted(0.95), ending(), platform, ending(), ending()).prop_map(
        |(is_upgradeable, pre_action, platform, operators, post_action)| Script {
            is_upgradeable,
            pre_action,
            platform,
            operators,
            post_action,
        },
    )
}

fn acts() -> impl Strategy<Value = Act> {
    (events(), option::weighted(0.8, manners())).prop_map(|(event, round)| Act { event, round })
}

fn events() -> impl Strategy<Value = Event> {
    let cluster = || 0..CLUSTERS;
    let is = any::<bool>;
    let going = prop_oneof![
        4 => (1..12_usize, select(vec![1, 15, 60])).prop_map(|(times, seconds)| Event::Go(times, seconds)),
        2 => (1..12_usize, select(vec![300, 850, 4000])).prop_map(|(times, seconds)| Event::Go(times, seconds)),
        1 => cluster().prop_map(Event::Serve),
    ];
    let time = prop_oneof![
        3 => (1..600_i64).prop_map(Event::Pass),
        2 => (600..8000_i64).prop_map(Event::Pass),
        1 => (1..5000_i64).prop_map(Event::JumpBack),
    ];
    let wish = prop_oneof![
        2 => (0..TARGETS.len()).prop_map(Event::Target),
        1 => is().prop_map(Event::Pause),
        2 => (1..4_usize).prop_map(Event::Limit),
        1 => option::of(0..3_usize).prop_map(Event::MaxFailures),
        1 => is().prop_map(Event::Canaries),
        3 => Just(Event::Retry),
    ];
    let selection = prop_oneof![
        4 => (cluster(), is()).prop_map(|(cluster, is)| Event::Select(cluster, is)),
        1 => select(vec![Decision::Confirmed, Decision::Unconfirmed, Decision::Undecided]).prop_map(Event::Decide),
        2 => (cluster(), is()).prop_map(|(cluster, is)| Event::MarkCanary(cluster, is)),
        1 => cluster().prop_map(Event::Reregister),
        1 => cluster().prop_map(Event::Leave),
    ];
    let state = prop_oneof![
        2 => cluster().prop_map(|cluster| Event::Reach(cluster, false)),
        3 => cluster().prop_map(|cluster| Event::Reach(cluster, true)),
        1 => (cluster(), prop::bool::weighted(0.7)).prop_map(|(cluster, is)| Event::Accept(cluster, is)),
        2 => (cluster(), is()).prop_map(|(cluster, takes)| Event::Other(cluster, takes)),
        1 => cluster().prop_map(Event::Disown),
        1 => (cluster(), scripts()).prop_map(|(cluster, script)| Event::Script(cluster, script)),
        2 => cluster().prop_map(Event::Mend),
    ];
    prop_oneof![8 => going, 2 => time, 3 => wish, 3 => selection, 4 => state, 1 => Just(Event::Restart)]
}
