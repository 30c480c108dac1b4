//! The placement controller: keeps the decisions of each placement up to date.
//!
//! Watches placements, their decisions, clusters, sets, bindings and scores. Its key is a placement. It writes
//! PlacementDecisions, additions before removals, and the placement's status.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use drover_api::{
    cluster::{Placement, PlacementDecision, PlacementDecisionSpec, PlacementDecisionStatus},
    reference::ClusterName,
};
use drover_engine::placement::{
    Decision, Facts, Misconfigured, Program, Scores, Slice, Verdict, is_disabled,
    plan::{self, changes},
    sets::{self, Reach},
    status::{self, Before},
};
use drover_runtime::{
    controller::{Plan, Reconciler},
    store::ObjectKey,
    write::Write,
};
use k8s_openapi::jiff::Timestamp;
use kube::{Resource, ResourceExt};

use crate::fleet::Fleet;

/// What a placement has found out about clusters, kept so that a change of one cluster is a look at one cluster.
#[derive(Debug)]
pub(crate) struct Judging {
    program: Result<Program, Misconfigured>,
    verdicts: Mutex<Verdicts>,
}

#[derive(Debug, Default)]
struct Verdicts {
    known: BTreeMap<ClusterName, Verdict>,
    /// The clusters that have changed since they were judged.
    stale: BTreeSet<ClusterName>,
}

impl Judging {
    pub(crate) fn new(placement: &Placement) -> Self {
        Self { program: Program::compile(placement), verdicts: Mutex::default() }
    }

    /// Takes note that a cluster has to be judged again.
    pub(crate) fn look_again_at(&self, cluster: &ClusterName) {
        self.verdicts().stale.insert(cluster.clone());
    }

    /// Takes note that a cluster was selected, or is no longer; few verdicts depend on that.
    pub(crate) fn selection_changed(&self, cluster: &ClusterName) {
        let mut verdicts = self.verdicts();
        if verdicts.known.get(cluster).is_some_and(|verdict| verdict.hinges_on_selection) {
            verdicts.stale.insert(cluster.clone());
        }
    }

    /// Whether the placement depends on the AddOnPlacementScores of this name.
    pub(crate) fn reads_score(&self, name: &str) -> bool {
        self.program.as_ref().is_ok_and(|program| program.reads_score(name))
    }

    fn verdicts(&self) -> MutexGuard<'_, Verdicts> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Placements;

impl Reconciler<Fleet> for Placements {
    type Key = ObjectKey;

    const NAME: &'static str = "drover-placement";

    fn plan(&self, fleet: &Fleet, key: &ObjectKey, now: Timestamp) -> Plan<Fleet> {
        let (Some(placement), Some(judging)) = (fleet.placements.get(key), fleet.judging.get(key)) else {
            return Plan::default();
        };
        // Decisions go with their placement, by their owner reference.
        if is_disabled(placement) || placement.metadata.deletion_timestamp.is_some() {
            return Plan::default();
        }
        let before = Before { status: placement.status.as_ref(), generation: placement.metadata.generation, now };
        match &judging.program {
            Err(error) => with_status(placement, status::misconfigured(error, &before)).into_iter().collect(),
            Ok(program) => decide(fleet, key, placement, program, judging, before),
        }
    }
}

fn decide(
    fleet: &Fleet,
    key: &ObjectKey,
    placement: &Placement,
    program: &Program,
    judging: &Judging,
    before: Before<'_>,
) -> Plan<Fleet> {
    let bindings = fleet.bindings.in_namespace(&key.namespace).map(|(_, binding)| &**binding);
    let reach = sets::reach(&placement.spec.cluster_sets, bindings, |set| fleet.members.contains_key(set));
    let mut verdicts = judging.verdicts();
    judge(fleet, key, program, &reach, &mut verdicts, before.now);
    let stored: Vec<_> = slices_of(fleet, key).collect();
    let current: Vec<_> = stored.iter().map(|decision| Slice::read(decision)).collect();
    let elsewhere =
        |cluster: &ClusterName| fleet.selections.get(cluster).map_or(0, |by| by.keys().filter(|by| *by != key).count());
    let facts = Facts { reach: &reach, current: &current, elsewhere: &elsewhere, before };
    let Decision { slices, status, wake_up, .. } = program.decide(verdicts.known.values(), &facts);
    let mut writes = Vec::new();
    for change in changes(&current, &slices) {
        let is_new = matches!(change, plan::Write::Create(_));
        writes.extend(write(placement, &stored, change));
        // A slice is made empty and filled in a second step, which is decided on when it is there: what comes after it
        // may take clusters from other slices that it is to hold.
        if is_new {
            return Plan { writes, wake: wake_up, ..Plan::default() };
        }
    }
    writes.extend(with_status(placement, status));
    Plan { writes, wake: wake_up, ..Plan::default() }
}

/// Brings the verdicts up to date: one for each cluster in reach.
fn judge(fleet: &Fleet, key: &ObjectKey, program: &Program, reach: &Reach, verdicts: &mut Verdicts, now: Timestamp) {
    let in_reach: BTreeSet<&ClusterName> = match reach {
        Reach::Sets(sets) => {
            sets.iter().filter_map(|set| fleet.members.get(set)).flat_map(|members| &members.clusters).collect()
        }
        _ => BTreeSet::new(),
    };
    verdicts.known.retain(|cluster, _| in_reach.contains(cluster));
    let stale = std::mem::take(&mut verdicts.stale);
    for name in in_reach {
        let is_known = verdicts.known.get(name).is_some_and(|verdict| verdict.may_change.is_none_or(|time| now < time));
        if is_known && !stale.contains(name) {
            continue;
        }
        let Some(cluster) = fleet.cluster(name) else { continue };
        let scores: Scores<'_> = fleet.scores.in_namespace(name.as_str()).map(|(_, score)| &**score).collect();
        let selected = fleet.selections.get(name).is_some_and(|by| by.contains_key(key));
        verdicts.known.insert(name.clone(), program.judge(cluster, &scores, selected, now));
    }
}

fn slices_of<'a>(fleet: &'a Fleet, key: &'a ObjectKey) -> impl Iterator<Item = &'a PlacementDecision> {
    let decisions = fleet.decisions.in_namespace(&key.namespace).map(|(_, decision)| &**decision);
    decisions.filter(|decision| {
        decision.labels().get(drover_api::names::PLACEMENT_LABEL).is_some_and(|placement| **placement == *key.name)
    })
}

/// The write that makes a slice what it is to be.
fn write(placement: &Placement, stored: &[&PlacementDecision], change: plan::Write) -> Option<Write<Fleet>> {
    let stored_as = |name: &str| stored.iter().find(|decision| decision.name_any() == name).copied();
    match change {
        plan::Write::Create(slice) => Some(Write::create(new_slice(placement, &slice))),
        plan::Write::Delete(name) => stored_as(&name).map(Write::delete),
        plan::Write::Update(slice) => {
            let stored = stored_as(&slice.name)?;
            let mut wanted = stored.clone();
            wanted.labels_mut().extend(slice.labels(&placement.name_any()));
            wanted.status = Some(PlacementDecisionStatus { decisions: slice.decisions });
            // The clusters first: labels say where they are grouped, and are brought up to date in the next step.
            Write::status(stored, &wanted).or_else(|| Write::update(stored, &wanted))
        }
    }
}

fn new_slice(placement: &Placement, slice: &Slice) -> PlacementDecision {
    let mut decision = PlacementDecision::new(&slice.name, PlacementDecisionSpec {});
    decision.metadata.namespace = placement.namespace();
    decision.metadata.owner_references = placement.controller_owner_ref(&()).map(|owner| vec![owner]);
    decision.labels_mut().extend(slice.labels(&placement.name_any()));
    decision
}

fn with_status(placement: &Placement, status: drover_api::cluster::PlacementStatus) -> Option<Write<Fleet>> {
    let mut wanted = placement.clone();
    wanted.status = Some(status);
    Write::status(placement, &wanted)
}
