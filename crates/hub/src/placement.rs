//! The placement controller: keeps the decisions of each placement up to date.
//!
//! Watches placements, their decisions, clusters, sets, bindings and scores. Its key is a placement. It writes
//! PlacementDecisions, additions before removals, and the placement's status.

use std::collections::BTreeSet;

use drover_api::{
    cluster::{Placement, PlacementDecision, PlacementDecisionSpec, PlacementDecisionStatus, PlacementStatus},
    reference::ClusterName,
};
use drover_engine::{
    placement::{
        Decision, Facts, Misconfigured, Plugin, Problem, Program, Scores, Slice, Verdict, is_disabled,
        plan::{self, SliceChange, changes},
        sets::{self, Reach},
        status::{self, Before},
        verdicts::{Evidence, Verdicts},
    },
    plan::{Event, NoAction, Plan, Write},
};
use drover_runtime::{controller::Reconciler, metrics::Metrics, store::ObjectKey};
use k8s_openapi::jiff::Timestamp;
use kube::{Resource, ResourceExt};
use parking_lot::{Mutex, MutexGuard};

use crate::cache::Cache;

/// What a placement has found out, kept so that a change of one cluster is a look at one cluster, and that nothing is
/// decided again for nothing.
#[derive(Debug)]
pub(crate) struct Judging {
    program: Result<Program, Misconfigured>,
    found: Mutex<Found>,
}

#[derive(Debug, Default)]
struct Found {
    verdicts: Verdicts,
    settled: Option<Settled>,
}

/// What is stored is what was last decided, and nothing that the decision goes by has changed since.
#[derive(Debug)]
struct Settled {
    /// When that ends by itself.
    until: Option<Timestamp>,
}

impl Judging {
    pub(crate) fn new(placement: &Placement) -> Self {
        Self { program: Program::compile(placement), found: Mutex::default() }
    }

    /// Takes note that a cluster has to be judged again, or is no longer there.
    pub(crate) fn look_again_at(&self, cluster: &ClusterName) {
        self.found().verdicts.look_again_at(cluster);
    }

    /// Takes note that sets or bindings have changed.
    pub(crate) fn reach_changed(&self) {
        self.found().verdicts.reach_changed();
    }

    /// Takes note that the placement itself or its decisions are stored differently now.
    pub(crate) fn stored_changed(&self) {
        self.found().settled = None;
    }

    /// Takes note that a cluster was selected, or is no longer; few verdicts depend on that.
    pub(crate) fn selection_changed(&self, cluster: &ClusterName) {
        let verdicts = &mut self.found().verdicts;
        if verdicts.get(cluster).is_some_and(|verdict| verdict.hinges_on_selection) {
            verdicts.look_again_at(cluster);
        }
    }

    /// Takes note that a cluster has other scores of this name, and says whether that matters.
    pub(crate) fn scores_changed(&self, cluster: &ClusterName, name: &str) -> bool {
        let verdicts = &mut self.found().verdicts;
        // Whom there is no verdict on yet is judged with the scores that there are then.
        let matters =
            self.program.as_ref().is_ok_and(|program| program.reads_score(name)) && verdicts.get(cluster).is_some();
        if matters {
            verdicts.look_again_at(cluster);
        }
        matters
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock()
    }
}

pub(crate) struct Placements {
    pub(crate) metrics: Metrics,
}

impl Reconciler<Cache> for Placements {
    type Key = ObjectKey;
    type State = ();
    type Action = NoAction;

    const NAME: &'static str = "drover-placement";

    fn plan(&self, cache: &Cache, key: &ObjectKey, (): &mut (), now: Timestamp) -> Plan {
        let (Some(placement), Some(judging)) = (cache.placements.get(key), cache.judging.get(key)) else {
            return Plan::default();
        };
        // Decisions go with their placement, by their owner reference.
        if is_disabled(placement) || placement.metadata.deletion_timestamp.is_some() {
            return Plan::default();
        }
        match &judging.program {
            Err(error) => {
                let status = status::misconfigured(error, &before(placement, now));
                with_status(placement, status).into_iter().collect()
            }
            Ok(program) => self.follow(&Case { cache, key, placement, program, now }, &mut judging.found()),
        }
    }
}

impl Placements {
    fn follow(&self, case: &Case, found: &mut Found) -> Plan {
        let (reach, update) = found.verdicts.update(case, case.now);
        let reach = reach.clone();
        self.metrics.stepped(Self::NAME, "judge", update.judged);
        if update.changed {
            found.settled = None;
        }
        if let Some(Settled { until }) = found.settled
            && until.is_none_or(|until| case.now < until)
        {
            return Plan { wake: until.into_iter().chain(found.verdicts.next_change()).min(), ..Plan::default() };
        }
        self.metrics.stepped(Self::NAME, "decide", 1);
        let stored = slices_of(case.cache, case.key);
        let current: Vec<_> = stored.iter().map(|decision| Slice::read(decision)).collect();
        if let Some(error) = case.unknown(&reach, &current) {
            let status = status::misconfigured(&error, &before(case.placement, case.now));
            return with_status(case.placement, status).into_iter().collect();
        }
        let decision = case.decide(&found.verdicts, &reach, &current);
        let (until, wake) = (decision.held_back_until, decision.wake_up);
        let event = event(case.placement, &current, &decision);
        let writes = writes(case.placement, &stored, &current, decision);
        found.settled = writes.is_empty().then_some(Settled { until });
        Plan { ordered: writes, wake, ..Plan::default() }.with_events(event)
    }
}

/// A placement, with everything that it is decided by.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) cache: &'a Cache,
    pub(crate) key: &'a ObjectKey,
    pub(crate) placement: &'a Placement,
    pub(crate) program: &'a Program,
    pub(crate) now: Timestamp,
}

impl Evidence for Case<'_> {
    fn reach(&self) -> Reach {
        let bindings = self.cache.bindings.in_namespace(&self.key.namespace).map(|(_, binding)| &**binding);
        sets::reach(&self.placement.spec.cluster_sets, bindings, |set| self.cache.members.contains_key(set))
    }

    fn members(&self, set: &str) -> Option<&BTreeSet<ClusterName>> {
        self.cache.members.get(set).map(|members| &members.clusters)
    }

    fn judge(&self, name: &ClusterName) -> Option<Verdict> {
        let cluster = self.cache.cluster(name)?;
        let scores: Scores<'_> = self.cache.scores.in_namespace(name.as_str()).map(|(_, score)| &**score).collect();
        let selected = self.cache.selections.get(name).is_some_and(|by| by.contains_key(self.key));
        let cluster = self.cache.foreseen(cluster, self.now);
        Some(self.program.judge(&cluster, &scores, selected, self.now))
    }
}

impl Case<'_> {
    /// What keeps a placement from being decided on, because nobody can tell whether somebody who is selected still should be. It
    /// was so already when this hub started, or the hub would know what was there before.
    fn unknown(&self, reach: &Reach, current: &[Slice]) -> Option<Misconfigured> {
        let unreadable = |kind, key: &ObjectKey| Misconfigured {
            plugin: Plugin::Fleet,
            problem: Problem::Unreadable { kind, name: key.to_string() },
        };
        if current.iter().all(|slice| slice.decisions.is_empty()) {
            return None;
        }
        let cache = self.cache;
        let mut selected = current.iter().flat_map(Slice::clusters).map(ObjectKey::cluster_wide);
        let mut cluster = || selected.find(|key| cache.clusters.get(key).is_none() && cache.clusters.has(key));
        let mut bindings = cache.bindings.unknown().filter(|key| {
            // A binding is called like its set.
            key.namespace == self.key.namespace && self.is_named(&key.name)
        });
        self.unknown_set(reach)
            .or_else(|| cluster().map(|key| unreadable("ManagedCluster", &key)))
            .or_else(|| bindings.next().map(|key| unreadable("ManagedClusterSetBinding", key)))
            .or_else(|| self.unreadable_set().map(|key| unreadable("ManagedClusterSet", &key)))
    }

    /// What is wrong with a set in reach whose clusters nobody can tell, because its selector makes no sense.
    fn unknown_set(&self, reach: &Reach) -> Option<Misconfigured> {
        let Reach::Sets(sets) = reach else { return None };
        let members = sets.iter().filter_map(|set| self.cache.members.get(set));
        let mut without_clusters = members.filter(|members| members.clusters.is_empty());
        without_clusters.find_map(|members| members.membership.as_ref().err().cloned())
    }

    /// Whether the placement takes clusters from a set, if it is bound.
    fn is_named(&self, set: &str) -> bool {
        let named = &self.placement.spec.cluster_sets;
        named.is_empty() || named.iter().any(|named| named == set)
    }

    /// A set that the namespace is bound to, and that can not be read.
    fn unreadable_set(&self) -> Option<ObjectKey> {
        let bindings = self.cache.bindings.in_namespace(&self.key.namespace).map(|(_, binding)| binding);
        let named = bindings.filter(|binding| self.is_named(&binding.spec.cluster_set));
        let mut sets = named.map(|binding| ObjectKey::cluster_wide(&binding.spec.cluster_set));
        sets.find(|key| self.cache.sets.get(key).is_none() && self.cache.sets.has(key))
    }

    fn decide(&self, verdicts: &Verdicts, reach: &Reach, current: &[Slice]) -> Decision {
        self.with_facts(reach, current, |facts| self.program.decide(verdicts.iter(), facts))
    }

    /// What a decision goes by, besides the verdicts.
    pub(crate) fn with_facts<T>(&self, reach: &Reach, current: &[Slice], ask: impl FnOnce(&Facts) -> T) -> T {
        let elsewhere = |cluster: &ClusterName| {
            self.cache.selections.get(cluster).map_or(0, |by| by.keys().filter(|by| *by != self.key).count())
        };
        ask(&Facts { reach, current, elsewhere: &elsewhere, before: before(self.placement, self.now) })
    }
}

fn before(placement: &Placement, now: Timestamp) -> Before<'_> {
    Before { status: placement.status.as_ref(), generation: placement.metadata.generation, now }
}

/// The slices of a placement as they are stored.
pub(crate) fn slices_of<'a>(cache: &'a Cache, placement: &ObjectKey) -> Vec<&'a PlacementDecision> {
    let slices = cache.slices.get(placement).into_iter().flatten();
    slices.filter_map(|slice| cache.decisions.get(slice).map(|decision| &**decision)).collect()
}

/// Tells who comes and who leaves, in the step that makes it so: not while slices are still to be made.
fn event(placement: &Placement, current: &[Slice], decision: &Decision) -> Option<Event> {
    let is_there = |slice: &Slice| current.iter().any(|current| current.name == slice.name);
    let summary = decision.slices.iter().all(is_there).then(|| plan::summary(current, &decision.slices))?;
    summary.map(|note| Event::normal(placement, "DecisionUpdate", note))
}

/// What makes the stored slices and the status be what was decided.
fn writes(placement: &Placement, stored: &[&PlacementDecision], current: &[Slice], decision: Decision) -> Vec<Write> {
    let mut writes = Vec::new();
    for change in changes(current, &decision.slices) {
        let is_new = matches!(change, SliceChange::Create(_));
        writes.extend(write(placement, stored, change));
        // A slice is made empty and filled in a second step, which is decided on when it is there: what comes after it
        // may take clusters from other slices that it is to hold.
        if is_new {
            return writes;
        }
    }
    writes.extend(with_status(placement, decision.status));
    writes
}

/// The write that makes a slice what it is to be.
fn write(placement: &Placement, stored: &[&PlacementDecision], change: SliceChange) -> Option<Write> {
    let stored_as = |name: &str| stored.iter().find(|decision| decision.name_any() == name).copied();
    match change {
        SliceChange::Create(slice) => Some(Write::create(new_slice(placement, &slice))),
        SliceChange::Delete(name) => stored_as(&name).map(Write::delete),
        SliceChange::Update(slice) => {
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

fn with_status(placement: &Placement, status: PlacementStatus) -> Option<Write> {
    let mut wanted = placement.clone();
    wanted.status = Some(status);
    Write::status(placement, &wanted)
}

#[cfg(test)]
mod tests;
