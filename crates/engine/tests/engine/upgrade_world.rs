//! A world in which clusters are upgraded: an upgrade, its clusters with their agents, records and works, and a hub that looks and plans with
//! a [`Decider`] and may be killed between any two things that it does.

use std::{collections::BTreeMap, sync::LazyLock, time::Duration};

use drover_api::{
    cluster::{OperatorRef, OperatorUpgrades, TargetVersion, UpgradeAction},
    drover::{ClusterUpgrade, ClusterUpgradePhase as Phase, ClusterUpgradeStatus, UpgradeRef},
    grammar::SetFingerprint,
    reference::ClusterName,
};
use drover_engine::tracker::{Dirty, Observation, Tracker};
use drover_engine::upgrade::{
    action::Action,
    member::{self, Act, Cluster, Course, Facts, Look, Membership, Owner, Permit, Reach},
    naming::Part,
    operator_work::{self, Approver},
    plan::{Fleet, Member, Passed, Plan, Strategy, Turn},
    platform::{Errand, Order},
    target::Target,
    work::PartWork,
};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::{SignedDuration, Timestamp},
};
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};

use crate::{
    counterexample::Checked,
    fleet::noon,
    upgrade_site::{Site, SiteWork},
};

/// Who decides in a world. A faulty one spoils what it is told, or what it answers.
pub(crate) trait Decider {
    fn membership(&self, site: &Site) -> Membership {
        site.membership()
    }

    fn look(&self, facts: Facts, course: &Course, permit: Permit, now: Timestamp) -> Look {
        member::look(facts, course, permit, now)
    }

    fn member(&self, member: Member, _record: Option<&ClusterUpgrade>) -> Member {
        member
    }

    fn plan(&self, fleet: &Fleet, question: &Question) -> Plan {
        question.ask(fleet)
    }
}

/// The engine as it is.
pub(crate) struct Engine;

impl Decider for Engine {}

/// What a planner is asked, besides the clusters that it was told of.
#[derive(Clone)]
pub(crate) struct Question {
    pub(crate) strategy: Strategy,
    pub(crate) target: SetFingerprint,
    pub(crate) passed: Option<Passed>,
    pub(crate) is_paused: bool,
    pub(crate) now: Timestamp,
    /// The clusters in the order in which it was told of them.
    pub(crate) heard: Vec<ClusterName>,
}

impl Question {
    pub(crate) fn ask(&self, fleet: &Fleet) -> Plan {
        fleet.plan(&self.strategy, &self.target, self.passed.as_ref(), self.is_paused, self.now)
    }
}

// ---- What people ask for

/// What clusters can be upgraded to, in their order.
pub(crate) const TARGETS: [&str; 3] = ["4.12.0", "4.12.5", "4.13.0"];

/// How long things may take, in seconds.
pub(crate) const PLATFORM_LIMIT: i64 = 3600;
pub(crate) const OPERATORS_LIMIT: i64 = 600;
pub(crate) const ACTION_LIMIT: i64 = 1200;

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).expect("it is not negative"))
}

/// An upgrade, as people ask for it.
#[expect(clippy::struct_excessive_bools, reason = "each of them is asked for by itself")]
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) target: usize,
    pub(crate) strategy: Strategy,
    pub(crate) has_pre_action: bool,
    pub(crate) has_operators: bool,
    pub(crate) has_post_action: bool,
    pub(crate) may_upgrade_hub: bool,
    pub(crate) is_paused: bool,
    pub(crate) retried: Option<Timestamp>,
}

impl Wish {
    pub(crate) fn target(&self) -> Target {
        Target::of(&TargetVersion { version: Some(TARGETS[self.target].to_owned()), ..TargetVersion::default() })
    }

    fn course(&self, is_at_rest: bool, attentive_since: Timestamp) -> Course {
        Course {
            upgrade: UpgradeRef { namespace: "default".to_owned(), name: "up".to_owned(), uid: Some("u".to_owned()) },
            errand: Errand::of(self.target()),
            operators: self.has_operators.then(operators),
            operator_order: self.has_operators.then(|| OPERATORS.clone()),
            pre_action: self.has_pre_action.then(|| PRE_ACTION.clone()),
            post_action: self.has_post_action.then(|| POST_ACTION.clone()),
            platform_limit: seconds(PLATFORM_LIMIT),
            operators_limit: seconds(OPERATORS_LIMIT),
            may_upgrade_hub: self.may_upgrade_hub,
            retried: self.retried,
            is_at_rest,
            attentive_since,
        }
    }
}

static PRE_ACTION: LazyLock<Action> = LazyLock::new(|| job("backup"));
static POST_ACTION: LazyLock<Action> = LazyLock::new(|| job("check"));
static OPERATORS: LazyLock<Order> = LazyLock::new(|| {
    let approver = Approver::Drover { image: "drover".to_owned() };
    Order::of(operator_work::work(&operators(), seconds(OPERATORS_LIMIT), &approver))
});

fn job(name: &str) -> Action {
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name, "namespace": "ops" } });
    let work: Value = json!({ "manifestWork": { "workload": { "manifests": [job] } } });
    let written: UpgradeAction = serde_json::from_value(work).expect("an action");
    Action::of(&written, seconds(ACTION_LIMIT))
}

fn operators() -> OperatorUpgrades {
    let gitops = OperatorRef { name: "gitops".to_owned(), namespace: "operators".to_owned() };
    OperatorUpgrades { include: vec![gitops], ..OperatorUpgrades::default() }
}

// ---- Phases

/// Whether a cluster in that phase has one of the places of those that are upgraded at a time.
pub(crate) fn has_slot(phase: Phase) -> bool {
    matches!(phase, Phase::Upgrading | Phase::Operators | Phase::PostAction)
}

/// Whether a cluster in that phase is under way.
pub(crate) fn is_under_way(phase: Phase) -> bool {
    has_slot(phase) || phase == Phase::PreAction
}

/// The phase that a status stands for.
pub(crate) fn phase_of(status: Option<&ClusterUpgradeStatus>) -> Phase {
    status.and_then(|status| status.phase).unwrap_or(Phase::Waiting)
}

// ---- The world

/// An upgrade with its clusters, and the hub that does it.
pub(crate) struct World<'d> {
    decider: &'d dyn Decider,
    pub(crate) wish: Wish,
    pub(crate) sites: BTreeMap<ClusterName, Site>,
    /// What is stored of the canaries.
    pub(crate) passed: Option<Passed>,
    pub(crate) now: Timestamp,
    hub: Hub,
}

/// What a hub has in mind.
#[derive(Debug, Default)]
struct Hub {
    tracker: Tracker<Fleet, String>,
    heard: Vec<ClusterName>,
    wake: Option<Timestamp>,
    attended: Option<Timestamp>,
    attentive_since: Timestamp,
    is_at_rest: bool,
}

/// How a hub goes about one round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// Where it begins to look.
    pub(crate) order: usize,
    /// After how many writes it is killed.
    pub(crate) dies_after: Option<usize>,
    /// Whether it does everything twice.
    pub(crate) is_twice: bool,
}

/// Something that can be seen of a round.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment<'a> {
    /// Everybody was looked at, and this is planned.
    Planned(&'a Plan),
    /// This is about to be done.
    Acting(&'a ClusterName, &'a Act),
}

/// Who sees it.
pub(crate) type Observer<'o> = dyn FnMut(&World, Moment) -> Checked + 'o;

/// How long a hub may not have looked, and has missed nothing.
const INATTENTION: SignedDuration = SignedDuration::from_mins(15);

impl<'d> World<'d> {
    pub(crate) fn new(decider: &'d dyn Decider, wish: Wish, sites: BTreeMap<ClusterName, Site>) -> Self {
        Self { decider, wish, sites, passed: None, now: noon(), hub: Hub::default() }
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// Changes a cluster, and the hub hears of it.
    pub(crate) fn change(&mut self, name: &ClusterName, change: impl FnOnce(&mut Site, Timestamp)) {
        let now = self.now;
        if let Some(site) = self.sites.get_mut(name) {
            change(site, now);
            self.hub.tracker.mark(Dirty::member(name));
        }
    }

    /// The agents do their part. Tells whether that changed something.
    pub(crate) fn serve(&mut self) -> bool {
        let names: Vec<_> = self.sites.keys().cloned().collect();
        let changed: Vec<_> = names.iter().filter(|name| self.serve_one(name)).collect();
        !changed.is_empty()
    }

    pub(crate) fn serve_one(&mut self, name: &ClusterName) -> bool {
        let now = self.now;
        let has_changed = self.sites.get_mut(name).is_some_and(|site| site.serve(now));
        if has_changed {
            self.hub.tracker.mark(Dirty::member(name));
        }
        has_changed
    }

    /// The hub is killed, and starts anew.
    pub(crate) fn restart(&mut self) {
        self.hub = Hub::default();
    }

    // ---- What the hub sees

    pub(crate) fn fleet(&self) -> &Fleet {
        &self.hub.tracker.index
    }

    pub(crate) fn course(&self) -> Course {
        self.wish.course(self.hub.is_at_rest, self.hub.attentive_since)
    }

    fn look(&self, name: &ClusterName, course: &Course, permit: Permit) -> (Look, Member) {
        let site = &self.sites[name];
        let (cluster, works) = (site.cluster(), site.part_works());
        let membership = self.decider.membership(site);
        let record = site.record.as_ref();
        let facts = Facts { membership, cluster: cluster.as_ref(), record, works: &works };
        let look = self.decider.look(facts, course, permit, self.now);
        let is_canary = match membership {
            Membership::In { is_canary } => is_canary,
            // It may be back at any time, or goes on to the end.
            Membership::Unsure | Membership::Out => record.is_some_and(|record| record.spec.canary == Some(true)),
        };
        let turn = Turn::of(name, Some(&site.uid()), "default/up", site.priority, site.is_hub);
        let member = Member {
            is_canary,
            is_selected: matches!(membership, Membership::In { .. }),
            turn: turn.given(record),
            standing: look.standing.clone(),
            pre_action: look.pre_action,
            post_action: look.post_action,
            took: look.took,
        };
        (look, self.decider.member(member, record))
    }

    pub(crate) fn question(&self) -> Question {
        Question {
            strategy: self.wish.strategy,
            target: self.wish.target().name().clone(),
            passed: self.passed.clone(),
            is_paused: self.wish.is_paused,
            now: self.now,
            heard: self.hub.heard.clone(),
        }
    }

    /// What a hub sees and plans that has looked at everybody just now, in that order, as attentive as this one.
    pub(crate) fn anew(&self, order: impl Iterator<Item = ClusterName>) -> (Fleet, Plan) {
        let (mut fleet, course) = (Fleet::default(), self.course());
        let mut question = Question { heard: Vec::new(), ..self.question() };
        for name in order {
            fleet.update(&name, Some(self.look(&name, &course, Permit::Wait).1));
            question.heard.push(name);
        }
        let plan = self.decider.plan(&fleet, &question);
        (fleet, plan)
    }

    // ---- What the hub does

    fn attend(&mut self) {
        let is_interrupted =
            self.hub.attended.is_none_or(|attended| attended + INATTENTION < self.now || attended > self.now);
        if is_interrupted {
            self.hub.attentive_since = self.now;
            self.hub.tracker.mark(Dirty::All);
        }
        self.hub.attended = Some(self.now);
    }

    /// Those who have to be looked at.
    fn take_stale(&mut self, order: usize) -> Vec<ClusterName> {
        let context = format!("{:?} {}", self.wish, self.hub.is_at_rest);
        self.hub.tracker.set_context(context);
        let candidates = self.sites.keys().cloned().collect();
        reordered(self.hub.tracker.take_dirty(self.now, || candidates).into_iter().collect(), order)
    }

    /// Looks at everybody who has changed, plans, and does what is to be done. Tells how much that was.
    pub(crate) fn round(&mut self, manner: Manner, observe: &mut Observer) -> Result<usize, TestCaseError> {
        self.attend();
        let mut acts: BTreeMap<ClusterName, Option<Act>> = BTreeMap::new();
        // Whether all are at rest is part of what everybody is looked at by.
        for _ in 0..2 {
            let course = self.course();
            for name in self.take_stale(manner.order) {
                let (look, member) = self.look(&name, &course, Permit::Wait);
                self.hub.heard.retain(|heard| *heard != name);
                self.hub.heard.push(name.clone());
                self.hub.tracker.observed(&name, Observation { member: Some(member), wake: look.wake });
                if look.act.is_some() {
                    self.hub.tracker.pending.insert(name.clone());
                } else {
                    self.hub.tracker.pending.remove(&name);
                }
                acts.insert(name, look.act);
            }
            let is_at_rest = self.hub.tracker.index.tally().restless == 0;
            if is_at_rest == self.hub.is_at_rest {
                break;
            }
            self.hub.is_at_rest = is_at_rest;
        }
        let plan = self.decider.plan(&self.hub.tracker.index, &self.question());
        observe(self, Moment::Planned(&plan))?;
        self.hub.wake = plan.wake;
        let course = self.course();
        for (name, permit) in &plan.permits {
            acts.insert(name.clone(), self.look(name, &course, *permit).0.act);
        }
        let mut writes = 0;
        let dies = |writes: usize| manner.dies_after.is_some_and(|after| writes >= after);
        if plan.passed != self.passed {
            if dies(writes) {
                self.restart();
                return Ok(writes);
            }
            self.passed.clone_from(&plan.passed);
            writes += 1;
        }
        let acts: Vec<_> = acts.into_iter().filter_map(|(name, act)| Some((name, act?))).collect();
        let acts = reordered(acts, manner.order);
        for (name, act) in &acts {
            for _ in 0..=usize::from(manner.is_twice) {
                if dies(writes) {
                    self.restart();
                    return Ok(writes);
                }
                observe(self, Moment::Acting(name, act))?;
                self.change(name, |site, now| site.perform(act, now));
                writes += 1;
            }
        }
        Ok(writes)
    }

    // ---- What comes of it when nothing else happens

    /// Lets the hub and the agents work until nothing changes any more. Returns the plan that they come to rest with, or nothing if they do
    /// not.
    pub(crate) fn settle(&mut self, observe: &mut Observer) -> Result<Option<Plan>, TestCaseError> {
        for _ in 0..1500 {
            let has_changed = self.serve();
            let writes = self.round(Manner::default(), observe)?;
            if has_changed || writes > 0 {
                self.pass(1);
                continue;
            }
            let sites = self.sites.values().filter_map(|site| site.next(self.now));
            let wakes = self.hub.tracker.next_wake().into_iter().chain(self.hub.wake).filter(|wake| *wake > self.now);
            match sites.chain(wakes).min() {
                Some(next) => self.now = next,
                None => return Ok(Some(self.decider.plan(&self.hub.tracker.index, &self.question()))),
            }
        }
        Ok(None)
    }

    // ---- What can be said of what is stored

    /// The phase that is stored for a cluster as it is now.
    pub(crate) fn phase(&self, name: &ClusterName) -> Phase {
        let site = &self.sites[name];
        let current = site.own_record().filter(|record| {
            let status = record.status.as_ref();
            status.is_some_and(|status| status.observed_generation == record.metadata.generation)
        });
        phase_of(current.and_then(|record| record.status.as_ref()))
    }

    /// How many clusters have a place by what is stored.
    pub(crate) fn in_slots(&self) -> usize {
        self.sites.keys().filter(|name| has_slot(self.phase(name))).count()
    }

    /// Whether a cluster's record is about what is wanted now.
    pub(crate) fn is_current(&self, name: &ClusterName) -> bool {
        let record = self.sites[name].record.as_ref();
        record.is_some_and(|record| Target::of(&record.spec.target) == self.wish.target())
    }

    /// The canaries: those who are, and those who were when they were last selected and may be back or go on to the end.
    pub(crate) fn canaries(&self) -> impl Iterator<Item = &ClusterName> {
        let was_canary = |site: &Site| site.own_record().is_some_and(|record| record.spec.canary == Some(true));
        let is_canary = move |name: &ClusterName, site: &Site| match site.membership() {
            Membership::In { is_canary } => is_canary && site.is_there,
            Membership::Unsure => was_canary(site),
            Membership::Out => was_canary(site) && site.is_there && self.stays(name),
        };
        self.sites.iter().filter(move |(name, site)| is_canary(name, site)).map(|(name, _)| name)
    }

    /// Whether a cluster stays a part of the upgrade though nothing selects it.
    fn stays(&self, name: &ClusterName) -> bool {
        let status = self.sites[name].own_record().and_then(|record| record.status.as_ref());
        match self.phase(name) {
            Phase::Upgrading | Phase::Operators | Phase::PostAction => true,
            Phase::Waiting | Phase::PreAction => status.is_some_and(|status| status.platform_completed.is_some()),
            Phase::Complete => self.is_current(name),
            Phase::Failed => false,
        }
    }

    pub(crate) fn is_canary(&self, name: &ClusterName) -> bool {
        self.canaries().any(|canary| canary == name)
    }
}

/// The same in another order.
fn reordered<T>(mut all: Vec<T>, order: usize) -> Vec<T> {
    let from = order.checked_rem(all.len()).unwrap_or(0);
    all.rotate_left(from);
    if order % 2 == 1 {
        all.reverse();
    }
    all
}

/// A time some seconds later.
pub(crate) fn later(time: Timestamp, seconds: i64) -> Timestamp {
    time + SignedDuration::from_secs(seconds)
}

/// A cluster as the hub knows it.
impl Site {
    pub(crate) fn cluster(&self) -> Option<Cluster> {
        let reach = if self.is_online { Reach::Online } else { Reach::Offline { since: self.offline_since } };
        self.is_there.then(|| Cluster {
            uid: Some(self.uid()),
            reach,
            takes_works: self.is_accepted,
            version: self.claim.clone(),
            owner: self.owner.clone(),
            is_hub: self.is_hub,
        })
    }

    fn part_works(&self) -> BTreeMap<Part, PartWork> {
        let read = |(part, site): (&Part, &SiteWork)| (*part, PartWork::of(&site.work, *part, site.note.clone()));
        self.works.iter().map(read).collect()
    }

    /// Does what the hub has decided on.
    fn perform(&mut self, act: &Act, now: Timestamp) {
        match act {
            Act::Make(spec) if self.record.is_none() => {
                let mut record = ClusterUpgrade::new("up-1", (**spec).clone());
                record.metadata.generation = Some(1);
                self.made += 1;
                record.metadata.uid = Some(format!("record-{}", self.made));
                self.record = Some(record);
            }
            Act::Retarget(spec) => {
                if let Some(record) = self.record.as_mut().filter(|record| record.spec != **spec) {
                    record.spec = (**spec).clone();
                    record.metadata.generation = record.metadata.generation.map(|generation| generation + 1);
                }
            }
            Act::Tell(status) => {
                if let Some(record) = &mut self.record {
                    record.status = Some((**status).clone());
                }
            }
            // Somebody else may have been faster.
            Act::Claim if self.owner == Owner::Nobody => self.owner = Owner::Us,
            Act::Release if self.owner == Owner::Us => self.owner = Owner::Nobody,
            Act::Send(part, order) => self.send(*part, order, now),
            Act::Withdraw(parts) => {
                for part in parts {
                    if let Some(site) = self.works.get_mut(part) {
                        site.work.metadata.deletion_timestamp.get_or_insert(Time(now));
                    }
                }
                if !self.is_there {
                    self.works.clear();
                }
            }
            Act::Drop => self.record = None,
            Act::Make(_) | Act::Claim | Act::Release => {}
        }
    }
}
