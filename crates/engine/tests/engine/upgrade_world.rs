//! A world in which clusters are upgraded: an upgrade, its clusters with their agents, records and
//! works, and a hub that plans with a [`Decider`], sends what is planned, and may be killed between
//! any two writes.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use drover_api::{
    cluster::{ManagedClustersUpgrade, ManagedClustersUpgradeSpec, ManagedClustersUpgradeStatus, TargetVersion},
    drover::{ClusterUpgrade, ClusterUpgradePhase as Phase, ClusterUpgradeStatus},
    names::{PAUSE_ANNOTATION, RETRY_ANNOTATION, UPGRADE_FINALIZER, UPGRADE_HUB_ANNOTATION, UPGRADED_BY_ANNOTATION},
    reference::ClusterName,
    work::ManifestWork,
};
use drover_engine::{
    plan::{NoAction, Plan, PlanPart, Verb, Write, WriteResult},
    tracker::{BATCH, Dirty, KeyState},
    upgrade::{
        self, UpgradeState,
        member::{Act, Owner},
        naming::Part,
        plan::{Fleet, Hold, Passed, Strategy},
        platform::Order,
        target::Target,
    },
};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::{SignedDuration, Timestamp},
};
use kube::core::ObjectMeta;
use proptest::test_runner::TestCaseError;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    counterexample::Checked,
    fleet::noon,
    sending::{Failure, Manner, patched, reordered, violation},
    upgrade_known::{CANARY_LABEL, Decision, Known, UP, managed_cluster},
    upgrade_site::Site,
};

/// The planner of a world. A faulty one changes its facts, its plans, or the results of its writes.
pub(crate) trait Decider {
    fn plan(&self, known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
        plan(known, state, time)
    }

    fn sent(&self, state: &mut UpgradeState, write: &Write, result: &WriteResult, now: Timestamp) {
        state.sent::<NoAction>(PlanPart::Write(write), result, now);
    }
}

/// The engine as it is.
pub(crate) struct Engine;

impl Decider for Engine {}

/// Plans as the hub does.
pub(crate) fn plan(known: &Known, state: &mut UpgradeState, time: HubTime) -> Plan {
    upgrade::plan(known, &UP, state, time.now).0
}

/// The time, and when the hub has started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HubTime {
    pub(crate) now: Timestamp,
    pub(crate) started: Timestamp,
}

// ---- What people ask for

/// What clusters can be upgraded to, in their order.
pub(crate) const TARGETS: [&str; 3] = ["4.12.0", "4.12.5", "4.13.0"];

/// How long things may take, in seconds.
pub(crate) const PLATFORM_LIMIT: i64 = 3600;
const OPERATORS_LIMIT: i64 = 600;
const ACTION_LIMIT: i64 = 1200;

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
    /// How often it was asked to try again what had failed.
    pub(crate) retries: usize,
}

impl Wish {
    /// An upgrade of one cluster at a time, with nothing before or after.
    pub(crate) fn plain() -> Self {
        let strategy = Strategy { limit: 1, has_canaries: false, soak: Duration::ZERO, max_failures: None };
        Self {
            target: 0,
            strategy,
            has_pre_action: false,
            has_operators: false,
            has_post_action: false,
            may_upgrade_hub: false,
            is_paused: false,
            retries: 0,
        }
    }

    pub(crate) fn target(&self) -> Target {
        Target::of(&TargetVersion { version: Some(TARGETS[self.target].to_owned()), ..TargetVersion::default() })
    }

    fn spec(&self) -> ManagedClustersUpgradeSpec {
        let canaries = json!({ "clusterSelector": { "matchLabels": { CANARY_LABEL: "true" } } });
        let strategy = json!({
            "canaryClusters": self.strategy.has_canaries.then_some(canaries),
            "maxConcurrency": self.strategy.limit,
            "maxFailures": self.strategy.max_failures,
            "canarySoak": (!self.strategy.soak.is_zero()).then(|| format!("{}s", self.strategy.soak.as_secs())),
            "clusterUpgradeTimeout": format!("{PLATFORM_LIMIT}s"),
            "operatorsUpgradeTimeout": format!("{OPERATORS_LIMIT}s"),
        });
        let gitops = json!({ "include": [{ "name": "gitops", "namespace": "operators" }] });
        let spec = json!({
            "placement": [{ "namespace": "default", "name": "p" }],
            "clusterVersion": { "version": TARGETS[self.target] },
            "ocpOperators": self.has_operators.then_some(gitops),
            "upgradeStrategy": strategy,
            "preUpgradeAction": self.has_pre_action.then(|| job("backup")),
            "postUpgradeAction": self.has_post_action.then(|| job("check")),
        });
        serde_json::from_value(spec).expect("an upgrade")
    }

    /// Gives an upgrade the spec and the annotations.
    fn write(&self, upgrade: &mut ManagedClustersUpgrade) {
        let (spec, before) = (self.spec(), upgrade.metadata.generation.unwrap_or_default());
        if spec != upgrade.spec {
            (upgrade.spec, upgrade.metadata.generation) = (spec, Some(before + 1));
        }
        let annotations = [
            (PAUSE_ANNOTATION, self.is_paused.then(|| "true".to_owned())),
            (UPGRADE_HUB_ANNOTATION, self.may_upgrade_hub.then(|| "true".to_owned())),
            (RETRY_ANNOTATION, (self.retries > 0).then(|| self.retries.to_string())),
        ];
        let annotations = annotations.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        upgrade.metadata.annotations = Some(annotations.collect());
    }
}

fn job(name: &str) -> Value {
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name, "namespace": "ops" } });
    json!({ "manifestWork": { "workload": { "manifests": [job] } }, "timeout": format!("{ACTION_LIMIT}s") })
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
    pub(crate) decision: Decision,
    pub(crate) sites: BTreeMap<ClusterName, Site>,
    pub(crate) now: Timestamp,
    known: Known,
    /// The clusters of which the server accepts nothing.
    pub(crate) rejects: BTreeSet<ClusterName>,
    /// The clusters for which something was sent to the server.
    pub(crate) asked: BTreeSet<ClusterName>,
    /// How many clusters are written in one plan.
    batch: usize,
    hub: Hub,
}

/// What a hub has in mind.
struct Hub {
    state: UpgradeState,
    /// What its queue carries.
    dirty: Dirty,
    started: Timestamp,
}

impl Hub {
    fn starts(now: Timestamp, batch: usize) -> Self {
        Self { state: UpgradeState::with_batches_of(batch), dirty: Dirty::default(), started: now }
    }
}

/// Something that can be seen of a round.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment<'a> {
    /// This is planned, and not dropped.
    Planned(&'a Plan),
    /// This is about to be recorded of the upgrade.
    Recording(&'a ManagedClustersUpgradeStatus),
    /// This is about to be done.
    Acting(&'a ClusterName, &'a Act),
}

/// Who sees it.
pub(crate) type Observer<'o> = dyn FnMut(&mut World, Moment) -> Checked + 'o;

/// How often nothing comes of a look at everybody before nothing is believed to come of it for
/// ever.
const IDLE_RESYNCS: usize = 8;

impl<'d> World<'d> {
    pub(crate) fn new(decider: &'d dyn Decider, wish: Wish, sites: BTreeMap<ClusterName, Site>) -> Self {
        let mut upgrade = ManagedClustersUpgrade::new("up", wish.spec());
        upgrade.metadata = ObjectMeta {
            name: Some("up".to_owned()),
            namespace: Some("default".to_owned()),
            uid: Some("u".to_owned()),
            resource_version: Some("1".to_owned()),
            generation: Some(1),
            finalizers: Some(vec![UPGRADE_FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        };
        wish.write(&mut upgrade);
        let mut known = Known::new(upgrade);
        for (name, site) in &sites {
            known.meet(name, site);
        }
        let (now, decision) = (noon(), Decision::default());
        let (rejects, asked, hub) = (BTreeSet::new(), BTreeSet::new(), Hub::starts(now, BATCH));
        Self { decider, wish, decision, sites, now, known, rejects, asked, batch: BATCH, hub }
    }

    /// Has the hub write no more clusters than this in one plan.
    pub(crate) fn with_batches_of(mut self, batch: usize) -> Self {
        self.batch = batch;
        self.restart();
        self
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// People ask for something else.
    pub(crate) fn ask(&mut self, change: impl FnOnce(&mut Wish)) {
        change(&mut self.wish);
        let wish = &self.wish;
        self.known.ask(|upgrade| {
            wish.write(upgrade);
            renew(&mut upgrade.metadata);
        });
    }

    /// Changes a cluster, and the hub hears of it.
    pub(crate) fn change(&mut self, name: &ClusterName, change: impl FnOnce(&mut Site, Timestamp)) {
        let now = self.now;
        if let Some(site) = self.sites.get_mut(name) {
            site.version += 1;
            change(site, now);
            self.hear(name);
        }
    }

    fn hear(&mut self, name: &ClusterName) {
        self.known.meet(name, &self.sites[name]);
        self.hub.dirty.merge(Dirty::member(name));
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
            self.hear(name);
        }
        has_changed
    }

    /// The hub is killed, and starts anew.
    pub(crate) fn restart(&mut self) {
        self.hub = Hub::starts(self.now, self.batch);
    }

    // ---- What the hub does

    pub(crate) fn fleet(&self) -> &Fleet {
        &self.hub.state.tracker.index
    }

    pub(crate) fn plan(&mut self) -> Plan {
        self.known.decide(self.decision);
        self.hub.state.mark(std::mem::take(&mut self.hub.dirty));
        let time = HubTime { now: self.now, started: self.hub.started };
        self.decider.plan(&self.known, &mut self.hub.state, time)
    }

    /// Plans after a look at everybody.
    pub(crate) fn plan_after_resync(&mut self) -> Plan {
        self.hub.dirty = Dirty::All;
        self.plan()
    }

    /// Plans, and sends what is planned. Tells how much that was, and when the hub wants to plan
    /// again.
    pub(crate) fn round(
        &mut self,
        manner: Manner,
        observe: &mut Observer,
    ) -> Result<(usize, Option<Timestamp>), TestCaseError> {
        for _ in 0..manner.drops {
            self.plan();
        }
        let plan = self.plan();
        observe(self, Moment::Planned(&plan))?;
        let parallel = reordered(plan.parallel.iter().collect(), manner.order);
        let ordered = plan.ordered.iter().map(|write| (write, true));
        let mut writes = 0;
        for (write, is_ordered) in ordered.chain(parallel.into_iter().map(|write| (write, false))) {
            if manner.kills_after(writes) {
                self.restart();
                break;
            }
            let result = self.send(write, manner.failure_of(writes), observe)?;
            writes += 1;
            self.decider.sent(&mut self.hub.state, write, &result, self.now);
            if is_ordered && result != WriteResult::Done {
                break;
            }
        }
        Ok((writes, plan.wake))
    }

    fn send(
        &mut self,
        write: &Write,
        failure: Option<Failure>,
        observe: &mut Observer,
    ) -> Result<WriteResult, TestCaseError> {
        let cluster = self.address(write).map(|(name, _)| name);
        let is_rejected = cluster.as_ref().is_some_and(|name| self.rejects.contains(name));
        self.asked.extend(cluster);
        let failure = if is_rejected { Some(Failure::Rejected) } else { failure };
        let violation = violation(write, self.stored(write).as_ref());
        let failed = failure.filter(|failure| *failure != Failure::NoAnswer).map(Failure::result);
        if let Some(result) = violation.or(failed) {
            return Ok(result);
        }
        if write.kind().is::<ManagedClustersUpgrade>() {
            self.record(write, observe)?;
        } else if let Some((name, act)) = self.act_of(write) {
            observe(self, Moment::Acting(&name, &act))?;
            self.change(&name, |site, now| site.perform(&act, write.body(), now));
        }
        Ok(failure.map_or(WriteResult::Done, Failure::result))
    }

    /// The metadata of the object that a write is about.
    fn stored(&self, write: &Write) -> Option<ObjectMeta> {
        let kind = write.kind();
        if kind.is::<ManagedClustersUpgrade>() {
            return Some(self.known.upgrade.metadata.clone());
        }
        let (name, part) = self.address(write)?;
        let site = self.sites.get(&name)?;
        if kind.is::<ClusterUpgrade>() {
            return site.record.as_ref().map(|record| record.metadata.clone());
        }
        match part {
            Some(part) => site.works.get(&part).map(|site| site.work.metadata.clone()),
            None => site.is_there.then(|| managed_cluster(&name, site).metadata),
        }
    }

    /// The cluster that a write is about, and the part if it is about a work.
    fn address(&self, write: &Write) -> Option<(ClusterName, Option<Part>)> {
        let key = write.key();
        if key.namespace.is_empty() {
            return Some((ClusterName::from(&*key.name), None));
        }
        let name = ClusterName::from(&*key.namespace);
        let part_name = upgrade::naming::part_name("default", "up");
        let is_named = |part: &Part| part.work_name(name.as_str(), &part_name) == *key.name;
        let part = Part::ALL.into_iter().find(is_named);
        self.sites.contains_key(&name).then_some((name, part))
    }

    fn record(&mut self, write: &Write, observe: &mut Observer) -> Checked {
        let wanted = patched(&self.known.upgrade, &write.body().expect("an upgrade is only patched"));
        if let Some(status) = &wanted.status {
            observe(self, Moment::Recording(status))?;
        }
        self.known.upgrade.status = wanted.status;
        renew(&mut self.known.upgrade.metadata);
        Ok(())
    }

    /// What a write does about a cluster.
    pub(crate) fn act_of(&self, write: &Write) -> Option<(ClusterName, Act)> {
        let ((name, part), body) = (self.address(write)?, write.body());
        let act = if write.kind().is::<ClusterUpgrade>() {
            self.act_on_record(&name, write)?
        } else if let Some(part) = part {
            match body {
                Some(body) => Act::Send(part, Box::new(Order::of(self.sites[&name].written_work(part, &body).spec))),
                None => Act::Withdraw(vec![part]),
            }
        } else {
            let owner = body?["metadata"]["annotations"][UPGRADED_BY_ANNOTATION].clone();
            if owner.is_null() { Act::Release } else { Act::Claim }
        };
        Some((name, act))
    }

    fn act_on_record(&self, name: &ClusterName, write: &Write) -> Option<Act> {
        let body = write.body();
        let spec = |record: ClusterUpgrade| Box::new(record.spec);
        let changed = || Some(patched(self.sites[name].record.as_ref()?, body.as_ref()?));
        match (write.verb(), write.subresource()) {
            (Verb::Create, _) => Some(Act::Make(spec(read(body)))),
            (Verb::Delete, _) => Some(Act::Drop),
            (_, Some(_)) => Some(Act::Tell(Box::new(changed()?.status?))),
            (_, None) => Some(Act::Retarget(spec(changed()?))),
        }
    }

    // ---- What comes of it when nothing else happens

    /// Lets the hub and the agents work until nothing changes any more. Returns what holds the
    /// upgrade up then; an error if there is always something to do.
    pub(crate) fn settle(&mut self, observe: &mut Observer) -> Result<Option<Hold>, TestCaseError> {
        let mut idle = 0;
        for _ in 0..1500 {
            let has_changed = self.serve();
            let (writes, wake) = self.round(Manner::default(), observe)?;
            if has_changed || writes > 0 {
                idle = 0;
                self.pass(1);
                continue;
            }
            let ends = self.sites.values().filter_map(|site| site.next(self.now)).min();
            let is_resync = ends.is_none() && self.hub.state.tracker.next_wake().is_none();
            idle = if is_resync { idle + 1 } else { 0 };
            match ends.into_iter().chain(wake).min() {
                Some(next) if idle < IDLE_RESYNCS => self.now = self.now.max(next),
                _ => return Ok(self.hold()),
            }
        }
        Err(TestCaseError::fail("there is always something to do"))
    }

    /// What keeps clusters from being begun.
    fn hold(&self) -> Option<Hold> {
        let (strategy, target) = (&self.wish.strategy, self.wish.target());
        self.fleet().plan(strategy, target.name(), self.passed().as_ref(), self.wish.is_paused, self.now).hold
    }

    // ---- What can be said of what is stored

    /// What is stored of the canaries.
    pub(crate) fn passed(&self) -> Option<Passed> {
        let passed = self.known.upgrade.status.as_ref()?.canaries_passed.as_ref()?;
        Some(Passed { target: passed.target.clone(), time: passed.time.0 })
    }

    /// Whether it is known that a cluster is selected.
    pub(crate) fn is_selected(&self, name: &ClusterName) -> bool {
        self.sites[name].is_selected && self.decision != Decision::Undecided
    }

    /// Whether nothing selects a cluster, and that may be all there is to it.
    pub(crate) fn is_unsure(&self, name: &ClusterName) -> bool {
        !self.is_selected(name) && self.hub.state.unsure.contains(name)
    }

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
        let is_canary = move |name: &ClusterName, site: &Site| match () {
            () if self.is_selected(name) => site.is_canary && site.is_there,
            () if self.is_unsure(name) => was_canary(site),
            () => was_canary(site) && site.is_there && self.stays(name),
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

/// A time some seconds later.
pub(crate) fn later(time: Timestamp, seconds: i64) -> Timestamp {
    time + SignedDuration::from_secs(seconds)
}

/// Gives an object another resource version.
fn renew(metadata: &mut ObjectMeta) {
    let version: u64 = metadata.resource_version.as_ref().and_then(|version| version.parse().ok()).unwrap_or(0);
    metadata.resource_version = Some((version + 1).to_string());
}

/// The object that was written.
fn read<K: DeserializeOwned>(written: Option<Value>) -> K {
    serde_json::from_value(written.expect("a whole object is sent")).expect("it is one of its kind")
}

impl Site {
    /// Stores what the hub has written.
    fn perform(&mut self, act: &Act, written: Option<Value>, now: Timestamp) {
        let version = Some(self.version.to_string());
        match act {
            Act::Make(_) => {
                self.made += 1;
                let mut record: ClusterUpgrade = read(written);
                record.metadata.generation = Some(1);
                record.metadata.uid = Some(format!("record-{}", self.made));
                self.record = Some(record);
            }
            Act::Retarget(spec) => {
                if let Some(record) = &mut self.record {
                    record.spec = (**spec).clone();
                    record.metadata.generation = record.metadata.generation.map(|generation| generation + 1);
                }
            }
            Act::Tell(status) => self.record.iter_mut().for_each(|record| record.status = Some((**status).clone())),
            Act::Claim => self.owner = Owner::Us,
            Act::Release => self.owner = Owner::Nobody,
            Act::Send(part, _) => {
                let work = self.written_work(*part, &written.expect("a work is sent"));
                self.store(*part, work);
            }
            Act::Withdraw(parts) => parts.iter().for_each(|part| self.withdraw(*part, now)),
            Act::Drop => self.record = None,
        }
        if let Some(record) = &mut self.record {
            record.metadata.resource_version.clone_from(&version);
        }
    }

    /// The work of a part after a write: what was patched, or what is created.
    fn written_work(&self, part: Part, body: &Value) -> ManifestWork {
        match self.works.get(&part) {
            Some(stored) => patched(&stored.work, body),
            None => read(Some(body.clone())),
        }
    }

    /// Deletes a work. Its agent has to let go of it first, if there is one.
    fn withdraw(&mut self, part: Part, now: Timestamp) {
        let Some(site) = self.works.get_mut(&part) else { return };
        site.work.metadata.deletion_timestamp.get_or_insert(Time(now));
        site.work.metadata.resource_version = Some(self.version.to_string());
        if !self.is_there {
            self.works.remove(&part);
        }
    }
}
