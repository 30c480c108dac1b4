//! A world with a set of works: its clusters, what their agents report, and a hub that plans with
//! the engine and sends what is planned.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use drover_api::{
    cluster::{ManagedCluster, ManagedClusterSpec, ManagedClusterStatus, Placement},
    grammar::SetFingerprint,
    names::{GIVEN_ANNOTATION, PROVEN_ANNOTATION, REPLICA_SET_FINALIZER},
    reference::ClusterName,
    work::{ManifestWork, ManifestWorkReplicaSet, ManifestWorkSpec, ManifestWorkStatus},
};
use drover_engine::{
    condition::Holds,
    manifestwork::NewWork,
    plan::{ObjectKey, Plan, PlanPart, PlanStep, Verb, Write, WriteResult},
    presence::{FleetFacts, Known as KnownObject},
    revision::markers::{Proof, Verdict},
    rollout::member::Group,
    tracker::{BATCH, Dirty, KeyState},
    work::replica_set::{self, ReplicaSetState, WorkTemplate, facts::ReplicaSetFacts, placed_work::PlacedWork},
    workreport::{Note, template::fingerprint},
};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::{SignedDuration, Timestamp},
};
use kube::{ResourceExt, core::ObjectMeta};
use serde_json::{Value, json};

use crate::{
    fleet::{noon, placement},
    sending::{Failure, Manner, patched, reordered, violation},
    upgrade_known::available,
};

/// How long a cluster has to stay well, where it has to.
pub(crate) const SOAK: i64 = 60;
/// How long a cluster may take, where that is limited.
const DEADLINE: i64 = 120;

/// How a change reaches the clusters.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) window: usize,
    pub(crate) failures: usize,
    pub(crate) soaks: bool,
    pub(crate) has_deadline: bool,
    /// Whether one decision group comes after the other.
    pub(crate) per_group: bool,
}

impl Limits {
    fn strategy(&self) -> Value {
        let soak = if self.soaks { format!("{SOAK}s") } else { "0".to_owned() };
        let deadline = if self.has_deadline { format!("{DEADLINE}s") } else { "None".to_owned() };
        let settings = json!({ "maxConcurrency": self.window, "maxFailures": self.failures, "minSuccessTime": soak,
            "progressDeadline": deadline });
        if self.per_group {
            json!({ "type": "ProgressivePerGroup", "progressivePerGroup": settings })
        } else {
            json!({ "type": "Progressive", "progressive": settings })
        }
    }
}

/// Something that happens. Clusters go by number.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// An agent says whether the work of its cluster is applied and available.
    Says(usize, Holds, Holds),
    /// A cluster can be reached, or not.
    Reaches(usize, bool),
    /// A user deletes the work of a cluster.
    Loses(usize),
    /// The placement selects a cluster, or not.
    Selects(usize, bool),
    /// The template is another one.
    Changes(u8),
    /// Time passes.
    Passes(i64),
    /// The hub is killed, and starts anew.
    Restarts,
}

/// A mistake that the properties have to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No work records that its cluster ran the template.
    KeepsNoProof,
    /// Every work says that its cluster ran the template, as soon as it is given.
    RecordsTooEarly,
    /// What the writes of a plan came to is not recorded.
    RecordsNoResults,
    /// A plan counts as sent that was dropped.
    RecordsDroppedPlans,
}

/// Creates a work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Create(NewWork);

impl PlanStep for Create {
    fn verb(&self) -> Verb {
        Verb::Create
    }

    fn kind_name(&self) -> Cow<'_, str> {
        Cow::Borrowed("ManifestWork")
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::of(&self.0)
    }
}

/// The objects from which the planner decides.
struct Known {
    set: ManifestWorkReplicaSet,
    template: WorkTemplate,
    placement: Placement,
    clusters: BTreeMap<ClusterName, ManagedCluster>,
    selected: BTreeMap<ClusterName, Group>,
    works: BTreeMap<ClusterName, PlacedWork>,
}

impl FleetFacts for Known {
    fn cluster(&self, name: &ClusterName) -> KnownObject<&ManagedCluster> {
        self.clusters.get(name).map_or(KnownObject::Missing, KnownObject::There)
    }

    fn has_namespace(&self, cluster: &ClusterName) -> bool {
        self.clusters.contains_key(cluster)
    }

    fn keeps_clusters(&self) -> bool {
        true
    }

    fn placement(&self, _: &ObjectKey) -> KnownObject<&Placement> {
        KnownObject::There(&self.placement)
    }

    fn has_unreadable_decisions(&self, _: &str) -> bool {
        false
    }

    fn selected_by(&self, _: &ObjectKey) -> impl Iterator<Item = ClusterName> {
        self.selected.keys().cloned()
    }
}

impl ReplicaSetFacts for Known {
    type Action = Create;

    fn replica_set(&self, _: &ObjectKey) -> Option<&ManifestWorkReplicaSet> {
        Some(&self.set)
    }

    fn work_template(&self, _: &ObjectKey) -> Option<&WorkTemplate> {
        Some(&self.template)
    }

    fn works_of(&self, _: &ObjectKey) -> impl Iterator<Item = &PlacedWork> {
        self.works.values()
    }

    fn works_on(&self, _: &ObjectKey, cluster: &ClusterName) -> impl Iterator<Item = &PlacedWork> {
        self.works.get(cluster).into_iter()
    }

    fn clusters_with_works(&self, _: &ObjectKey) -> impl Iterator<Item = &ClusterName> {
        self.works.keys()
    }

    fn selection(&self, cluster: &ClusterName, _: &ObjectKey) -> Option<&Group> {
        self.selected.get(cluster)
    }

    fn create(&self, work: NewWork) -> Create {
        Create(work)
    }
}

/// A work as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredWork {
    work: ManifestWork,
    /// Whether the agent has said anything of it since it says what it says.
    is_reported: bool,
    /// Whether the agent says that the cluster is well with it.
    is_well: bool,
    /// Whether the hub has recorded that since then.
    is_recorded: bool,
}

impl StoredWork {
    pub(crate) fn says(&self) -> SetFingerprint {
        fingerprint(&self.work.spec)
    }

    fn given(&self) -> Timestamp {
        let note = self.work.annotations().get(GIVEN_ANNOTATION).and_then(|note| Note::read(note));
        note.expect("the hub notes when it has assigned the template").since
    }

    /// Whether the hub knows that the cluster is well with it, or was. What an agent takes back
    /// before that was recorded is unknown.
    pub(crate) fn has_run(&self) -> bool {
        self.is_well || self.is_recorded
    }

    fn is_failing(&self) -> bool {
        let conditions = self.work.status.iter().flat_map(|status| &status.conditions);
        self.is_reported && conditions.into_iter().any(|said| said.type_ == "Applied" && said.status == "False")
    }
}

/// A set of works with its clusters, and the hub.
pub(crate) struct World {
    limits: Limits,
    fault: Option<Fault>,
    known: Known,
    pub(crate) works: BTreeMap<ClusterName, StoredWork>,
    pub(crate) now: Timestamp,
    /// The clusters of which the server accepts nothing.
    pub(crate) rejects: BTreeSet<ClusterName>,
    /// The clusters for which something was sent to the server.
    pub(crate) asked: BTreeSet<ClusterName>,
    version: u64,
    batch: usize,
    state: ReplicaSetState,
    dirty: Dirty,
}

pub(crate) fn name(number: usize) -> ClusterName {
    ClusterName::from(format!("c{number:03}").as_str())
}

/// The decision group of a cluster.
pub(crate) fn group(cluster: &ClusterName) -> Group {
    let number: u32 = cluster.as_str()[1..].parse().expect("one of ours");
    Group { index: number / 2, name: None }
}

fn spec(number: u8) -> ManifestWorkSpec {
    let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "b" },
        "data": { "number": number.to_string() } });
    serde_json::from_value(json!({ "workload": { "manifests": [manifest] } })).expect("a template")
}

fn key() -> ObjectKey {
    ObjectKey::namespaced("default", "set")
}

impl World {
    pub(crate) fn new(limits: Limits, clusters: usize) -> Self {
        let refs = json!([{ "name": "all", "rolloutStrategy": limits.strategy() }]);
        let mut set: ManifestWorkReplicaSet = serde_json::from_value(json!({
            "metadata": { "name": "set", "namespace": "default", "uid": "s", "resourceVersion": "1", "generation": 1,
                "finalizers": [REPLICA_SET_FINALIZER] },
            "spec": { "placementRefs": refs },
        }))
        .expect("a set");
        set.spec.manifest_work_template = Some(spec(1));
        let names = || (0..clusters).map(name);
        let known = Known {
            template: WorkTemplate::of(&set),
            set,
            placement: placement(&json!({})),
            clusters: names().map(|name| (name.clone(), cluster(&name, true))).collect(),
            selected: names().map(|name| (name.clone(), group(&name))).collect(),
            works: BTreeMap::new(),
        };
        Self {
            limits,
            fault: None,
            known,
            works: BTreeMap::new(),
            now: noon(),
            rejects: BTreeSet::new(),
            asked: BTreeSet::new(),
            version: 1,
            batch: BATCH,
            state: ReplicaSetState::default(),
            dirty: Dirty::default(),
        }
    }

    pub(crate) fn with_fault(self, fault: Option<Fault>) -> Self {
        Self { fault, ..self }
    }

    /// Has the hub write no more clusters than this in one plan.
    pub(crate) fn with_batches_of(self, batch: usize) -> Self {
        Self { batch, state: ReplicaSetState::with_batches_of(batch), ..self }
    }

    // ---- What happens

    pub(crate) fn happen(&mut self, event: &Event) {
        match event {
            Event::Says(cluster, applied, available) => self.report(&name(*cluster), *applied, *available),
            Event::Reaches(number, is_online) => {
                let name = name(*number);
                self.known.clusters.insert(name.clone(), cluster(&name, *is_online));
                self.hear(&name);
            }
            Event::Loses(cluster) => {
                self.works.remove(&name(*cluster));
                self.hear(&name(*cluster));
            }
            Event::Selects(cluster, true) => {
                self.known.selected.insert(name(*cluster), group(&name(*cluster)));
                self.hear(&name(*cluster));
            }
            Event::Selects(cluster, false) => {
                self.known.selected.remove(&name(*cluster));
                self.hear(&name(*cluster));
            }
            Event::Changes(number) => self.change_template(*number),
            Event::Passes(seconds) => self.now += SignedDuration::from_secs(*seconds),
            Event::Restarts => self.restart(),
        }
    }

    pub(crate) fn restart(&mut self) {
        (self.state, self.dirty) = (ReplicaSetState::with_batches_of(self.batch), Dirty::default());
    }

    fn change_template(&mut self, number: u8) {
        let set = &mut self.known.set;
        if set.spec.manifest_work_template != Some(spec(number)) {
            set.spec.manifest_work_template = Some(spec(number));
            set.metadata.generation = set.metadata.generation.map(|generation| generation + 1);
            set.metadata.resource_version = Some(self.version.to_string());
            self.version += 1;
            self.known.template = WorkTemplate::of(set);
        }
    }

    fn report(&mut self, name: &ClusterName, applied: Holds, available: Holds) {
        let (now, version) = (self.now, self.next_version());
        let Some(stored) = self.works.get_mut(name) else { return };
        let generation = stored.work.metadata.generation;
        let said = [("Applied", applied), ("Available", available)];
        let conditions = said.into_iter().map(|(type_, holds)| condition(type_, holds, generation, now)).collect();
        stored.work.status = Some(ManifestWorkStatus { conditions, resource_status: None });
        stored.work.metadata.resource_version = Some(version);
        stored.is_reported = true;
        stored.is_well = (applied, available) == (Holds::Yes, Holds::Yes);
        self.hear(name);
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// The hub hears of a change of a cluster or of its work.
    fn hear(&mut self, name: &ClusterName) {
        match self.works.get(name) {
            Some(stored) => drop(self.known.works.insert(name.clone(), view(&stored.work))),
            None => drop(self.known.works.remove(name)),
        }
        self.dirty.merge(Dirty::member(name));
    }

    // ---- What the hub does

    pub(crate) fn plan(&mut self) -> Plan<Create> {
        let plan = self.plan_only();
        if self.fault == Some(Fault::RecordsDroppedPlans) {
            for action in &plan.actions {
                self.state.sent(PlanPart::Action(action), &WriteResult::Done, self.now);
            }
        }
        plan
    }

    fn plan_only(&mut self) -> Plan<Create> {
        self.decide();
        self.state.mark(std::mem::take(&mut self.dirty));
        replica_set::plan(&self.known, &key(), &mut self.state, self.now).0
    }

    /// Plans after a look at everybody.
    pub(crate) fn plan_after_resync(&mut self) -> Plan<Create> {
        self.dirty = Dirty::All;
        self.plan()
    }

    /// What a hub plans that has just started.
    pub(crate) fn plan_anew(&mut self) -> Plan<Create> {
        self.decide();
        replica_set::plan(&self.known, &key(), &mut ReplicaSetState::with_batches_of(self.batch), self.now).0
    }

    /// The placement says how many it selects.
    fn decide(&mut self) {
        let number_of_selected_clusters = i32::try_from(self.known.selected.len()).expect("not that many");
        let status = drover_api::cluster::PlacementStatus { number_of_selected_clusters, ..Default::default() };
        self.known.placement.status = Some(status);
    }

    /// Plans, sends what is planned, and returns it.
    pub(crate) fn round(&mut self, manner: Manner) -> Plan<Create> {
        for _ in 0..manner.drops {
            self.plan();
        }
        let plan = self.plan();
        self.send_all(&plan, manner);
        plan
    }

    fn send_all(&mut self, plan: &Plan<Create>, manner: Manner) {
        let actions = plan.actions.iter().map(PlanPart::Action);
        let parts = reordered(actions.chain(plan.parallel.iter().map(PlanPart::Write)).collect(), manner.order);
        for (place, part) in parts.into_iter().enumerate() {
            if manner.kills_after(place) {
                return self.restart();
            }
            let result = match part {
                PlanPart::Action(action) => self.send(&Write::create(action.0.clone()), manner.failure_of(place)),
                PlanPart::Write(write) => self.send(write, manner.failure_of(place)),
                PlanPart::Event(_) => continue,
            };
            if self.fault != Some(Fault::RecordsNoResults) {
                self.state.sent(part, &result, self.now);
            }
        }
    }

    fn send(&mut self, write: &Write, failure: Option<Failure>) -> WriteResult {
        if write.kind().is::<ManifestWorkReplicaSet>() {
            return self.store_status(write, failure);
        }
        let name = ClusterName::from(&*write.key().namespace);
        self.asked.insert(name.clone());
        let failure = if self.rejects.contains(&name) { Some(Failure::Rejected) } else { failure };
        let violation = violation(write, self.works.get(&name).map(|stored| &stored.work.metadata));
        let failed = failure.filter(|failure| *failure != Failure::NoAnswer).map(Failure::result);
        if let Some(result) = violation.or(failed) {
            return result;
        }
        self.store(&name, write);
        self.hear(&name);
        failure.map_or(WriteResult::Done, Failure::result)
    }

    fn store_status(&mut self, write: &Write, failure: Option<Failure>) -> WriteResult {
        let failed = failure.filter(|failure| *failure != Failure::NoAnswer).map(Failure::result);
        if let Some(result) = violation(write, Some(&self.known.set.metadata)).or(failed) {
            return result;
        }
        let version = self.next_version();
        let set = &mut self.known.set;
        *set = patched(set, &write.body().expect("a set is only patched"));
        set.metadata.resource_version = Some(version);
        failure.map_or(WriteResult::Done, Failure::result)
    }

    fn store(&mut self, name: &ClusterName, write: &Write) {
        let version = self.next_version();
        let Some(body) = write.body() else {
            self.works.remove(name);
            return;
        };
        let former = self.works.remove(name);
        let mut stored = match (write.verb(), former) {
            (Verb::Patch, Some(former)) if body.get("spec").is_none() => recorded(&former, &body),
            (Verb::Patch, Some(former)) => self.assigned(patched(&former.work, &body), Some(former), &version),
            (_, former) => self.assigned(serde_json::from_value(body).expect("a work"), former, &version),
        };
        stored.work.metadata.resource_version = Some(version);
        if self.fault == Some(Fault::KeepsNoProof) {
            stored.work.annotations_mut().remove(PROVEN_ANNOTATION);
        }
        self.works.insert(name.clone(), stored);
    }

    /// A work as it is stored once the hub has assigned the template.
    fn assigned(&self, mut work: ManifestWork, former: Option<StoredWork>, uid: &str) -> StoredWork {
        let former = former.map(|former| former.work);
        let ObjectMeta { uid: known, generation, .. } =
            former.as_ref().map(|former| former.metadata.clone()).unwrap_or_default();
        work.metadata.uid = known.or_else(|| Some(uid.to_owned()));
        work.metadata.generation = Some(generation.unwrap_or(0) + 1);
        work.status = former.and_then(|former| former.status);
        if self.fault == Some(Fault::RecordsTooEarly) {
            let proof = Proof { set: fingerprint(&work.spec), verdict: Verdict::Proven, since: self.now };
            work.annotations_mut().insert(PROVEN_ANNOTATION.to_owned(), proof.to_annotation());
        }
        StoredWork { work, is_reported: false, is_well: false, is_recorded: false }
    }

    // ---- What can be said of it

    pub(crate) fn goal(&self) -> SetFingerprint {
        fingerprint(&self.known.set.spec.manifest_work_template.clone().unwrap_or_default())
    }

    /// The clusters that a plan assigns the template.
    pub(crate) fn gives(plan: &Plan<Create>) -> Vec<ClusterName> {
        let has_spec = |write: &&Write| {
            write.kind().is::<ManifestWork>() && write.body().is_some_and(|body| body.get("spec").is_some())
        };
        let replaced = plan.parallel.iter().filter(has_spec).map(Write::key).cloned();
        let keys = plan.actions.iter().map(PlanStep::key).chain(replaced);
        keys.map(|key| ClusterName::from(&*key.namespace)).collect()
    }

    pub(crate) fn clusters(&self) -> usize {
        self.known.clusters.len()
    }

    /// How many clusters may be in flight. Where groups follow each other, nothing else limits
    /// them.
    pub(crate) fn room(&self) -> usize {
        if self.limits.per_group { self.clusters() } else { self.limits.window }
    }

    pub(crate) fn is_online(&self, cluster: &ClusterName) -> bool {
        self.known.is_online(cluster)
    }

    fn is_late(&self, work: &StoredWork) -> bool {
        self.limits.has_deadline && (self.now - work.given()).get_seconds() >= DEADLINE
    }

    /// The clusters that were given the template, and of which nothing was heard since.
    pub(crate) fn fresh(&self) -> usize {
        let is_fresh = |(cluster, work): &(&ClusterName, &StoredWork)| {
            work.says() == self.goal() && !work.is_reported && self.is_online(cluster) && !self.is_late(work)
        };
        self.works.iter().filter(is_fresh).count()
    }

    /// The clusters that were given some template, never ran it, and do not say that they can not.
    pub(crate) fn in_flight(&self) -> Vec<ClusterName> {
        let is_in_flight = |(cluster, work): &(&ClusterName, &StoredWork)| {
            !work.has_run() && self.is_online(cluster) && !work.is_failing() && !self.is_late(work)
        };
        self.works.iter().filter(is_in_flight).map(|(cluster, _)| cluster.clone()).collect()
    }

    /// The clusters that have to be given the goal before those of a group are.
    pub(crate) fn come_before(&self, index: u32) -> Vec<&ClusterName> {
        let is_before = |cluster: &&ClusterName| self.limits.per_group && group(cluster).index < index;
        self.known.clusters.keys().filter(is_before).filter(|cluster| self.is_online(cluster)).collect()
    }

    /// Whether the set says that its template has reached all clusters.
    pub(crate) fn is_complete(&self) -> bool {
        let conditions = self.known.set.status.iter().flat_map(|status| &status.conditions);
        conditions.into_iter().any(|said| said.type_ == "PlacementRolledOut" && said.status == "True")
    }
}

/// A work once the hub has recorded something on it.
fn view(work: &ManifestWork) -> PlacedWork {
    PlacedWork::of(work, &work.metadata.clone().into()).expect("it is of the set")
}

fn recorded(former: &StoredWork, patch: &Value) -> StoredWork {
    let proof = patch["metadata"]["annotations"][PROVEN_ANNOTATION].as_str().and_then(Proof::from_annotation);
    let is_recorded = former.is_recorded || proof.is_some_and(|proof| proof.verdict == Verdict::Proven);
    StoredWork { work: patched(&former.work, patch), is_recorded, ..*former }
}

fn cluster(name: &ClusterName, is_online: bool) -> ManagedCluster {
    let spec = ManagedClusterSpec { hub_accepts_client: true, ..ManagedClusterSpec::default() };
    let mut cluster = ManagedCluster::new(name.as_str(), spec);
    let conditions = vec![available(is_online, None)];
    cluster.status = Some(ManagedClusterStatus { conditions, ..ManagedClusterStatus::default() });
    cluster
}

fn condition(type_: &str, holds: Holds, generation: Option<i64>, now: Timestamp) -> Condition {
    let status = match holds {
        Holds::Yes => "True",
        Holds::No => "False",
        Holds::Unknown => "Unknown",
    };
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: "Said".to_owned(),
        message: String::new(),
        last_transition_time: Time(now),
        observed_generation: generation,
    }
}
