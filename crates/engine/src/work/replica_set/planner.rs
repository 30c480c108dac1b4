//! Plans one set of works.

mod assignment;
mod upkeep;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use drover_api::{
    drover::RolloutProgress,
    grammar::WindowSize,
    reference::{ClusterName, PlacementRef},
    work::{ManifestWorkReplicaSet, PlacementRollout},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::ResourceExt;

use super::{
    facts::ReplicaSetFacts,
    member::{Held, Spot, member},
    naming,
    placed_work::PlacedWork,
    revision::Template,
    selection,
    state::{ReplicaSetContext, ReplicaSetState},
    status::{self, Facts, Obstacle, Placing},
    tally::Tally,
    work_template::WorkTemplate,
};
use crate::{
    plan::{ObjectKey, Plan, Write},
    presence::{self, Decided, FleetFacts, Leave, Source, Unclear, Unselected},
    rollout::{Entry, Give, Goal, Plan as RolloutPlan, Rollout, Sets, Wish, member::Selection, strategy::Strategy},
    tracker::Observation,
};

/// One set of works, with everything that it is planned from.
pub(super) struct ReplicaSetPlanner<'a, F> {
    facts: &'a F,
    key: &'a ObjectKey,
    set: &'a ManifestWorkReplicaSet,
    template: &'a WorkTemplate,
    placements: Vec<ListedPlacement<'a>>,
    now: Timestamp,
}

/// What is to be done about one cluster.
#[derive(Default)]
struct ClusterStep<'a> {
    /// It is assigned the template.
    give: Option<&'a Give>,
    writes: Vec<Write>,
}

/// A placement in the list of a set.
struct ListedPlacement<'a> {
    rollout: &'a PlacementRollout,
    key: ObjectKey,
    /// What it says of its decision.
    decided: Result<Decided, Unclear>,
}

impl<'a, F: ReplicaSetFacts> ReplicaSetPlanner<'a, F> {
    pub(super) fn new(
        facts: &'a F,
        key: &'a ObjectKey,
        set: &'a ManifestWorkReplicaSet,
        template: &'a WorkTemplate,
        now: Timestamp,
    ) -> Self {
        let listed = selection::listed(set).into_iter();
        let placements = listed.map(|rollout| ListedPlacement::of(facts, key, rollout)).collect();
        Self { facts, key, set, template, placements, now }
    }

    /// Brings the derived states of clusters up to date, and plans what follows from them. Also returns
    /// how many clusters were observed.
    pub(super) fn plan(&self, state: &mut ReplicaSetState) -> (Plan<F::Action>, usize) {
        let observed = self.observe_clusters(state);
        let rollout = self.plan_rollout(state);
        let (mut plan, mut again, mut is_more) = (Plan::default(), None, false);
        if self.template.obstacle.is_none() {
            let (removals, later) = self.removals(state, &rollout);
            let mut steps = self.upkeep(state, &observed, &rollout.gives);
            for (cluster, write) in removals {
                steps.entry(cluster).or_default().writes.push(write);
            }
            for give in &rollout.gives {
                steps.entry(give.cluster.clone()).or_default().give = Some(give);
            }
            is_more = self.carry_out(steps, state, &mut plan);
            again = later;
        }
        state.courses = rollout.courses;
        let due = self.update_status(state, &mut plan);
        let wake = [rollout.wake, again, due, state.tracker.wake(), is_more.then_some(self.now)];
        plan.wake = wake.into_iter().flatten().min();
        (plan, observed.len())
    }

    /// Writes what is to be done about the clusters whose turn it is. Returns whether there are
    /// more.
    fn carry_out(
        &self,
        steps: BTreeMap<ClusterName, ClusterStep<'_>>,
        state: &mut ReplicaSetState,
        plan: &mut Plan<F::Action>,
    ) -> bool {
        let (steps, is_more) = state.tracker.pending.take(steps);
        for (_, step) in steps {
            if let Some(give) = step.give {
                self.assign(give, plan);
            }
            plan.parallel.extend(step.writes);
        }
        is_more
    }

    /// Brings the derived states of clusters up to date: of those that have changed, or of all if what
    /// they are observed by has changed.
    fn observe_clusters(&self, state: &mut ReplicaSetState) -> BTreeSet<ClusterName> {
        let entries: Vec<_> = self.placements.iter().map(|listed| listed.entry(self.facts)).collect();
        if state.tracker.index.entries() != entries {
            state.restart(Rollout::new(entries));
        }
        if state.tracker.context().is_none() {
            self.recall(state);
        }
        state.set_context(ReplicaSetContext {
            goal: self.template.goal.clone(),
            labels: self.set.labels().clone(),
            are_clear: self.placements.iter().map(|listed| listed.decided.is_ok()).collect(),
        });
        let clusters = state.tracker.take_dirty(self.now, || self.candidates());
        for cluster in &clusters {
            self.observe(cluster, state);
        }
        clusters
    }

    /// Recalls from the status of the set that all clusters ran its template before this hub started.
    fn recall(&self, state: &mut ReplicaSetState) {
        let settled = status::settled(self.set.status.as_ref(), self.set.metadata.generation);
        let Some(settled) = settled else { return };
        for listed in &self.placements {
            let goal = Some(self.template.goal.clone());
            let progress = RolloutProgress {
                wanted: goal.clone(),
                last_applied: goal,
                finished: Some(Time(settled)),
                ..RolloutProgress::default()
            };
            state.remembered.insert(listed.rollout.name.clone(), progress);
        }
    }

    /// The clusters that the set may have to do with, as far as that is not known yet.
    fn candidates(&self) -> BTreeSet<ClusterName> {
        let with_work = self.facts.clusters_with_works(self.key).cloned();
        let selected = self.placements.iter().flat_map(|listed| self.facts.selected_by(&listed.key));
        with_work.chain(selected).collect()
    }

    fn observe(&self, cluster: &ClusterName, state: &mut ReplicaSetState) {
        let selections = self.selections(cluster);
        let entry = selections.last().map(|selection| selection.placement);
        let spot = self.spot(cluster);
        let work = if let Spot::Work(placed) = &spot { Some(placed) } else { None };
        let held = self.held(entry, state);
        let tally = Tally::of(work, entry.is_some(), &held);
        let member = entry.map(|_| member(&spot, selections, self.facts.is_online(cluster), &held));
        let is_absent = entry.is_none() && work.is_some();
        state.count(cluster, (entry.is_some() || work.is_some()).then_some((entry, tally)));
        state.tracker.observed(cluster, Observation { member, wake: None });
        if is_absent {
            state.tracker.absences.entry(cluster.clone()).or_default();
        } else {
            state.tracker.absences.remove(cluster);
        }
    }

    /// The placements that select a cluster. The last of them decides.
    fn selections(&self, cluster: &ClusterName) -> Vec<Selection> {
        let clear = self.placements.iter().enumerate().filter(|(_, listed)| listed.decided.is_ok());
        let selected = clear.filter_map(|(placement, listed)| {
            Some(Selection { placement, group: self.facts.selection(cluster, &listed.key)?.clone() })
        });
        selected.collect()
    }

    fn spot(&self, cluster: &ClusterName) -> Spot {
        match self.work_on(cluster) {
            Some(work) if work.is_leaving() => Spot::Vacated,
            Some(work) => Spot::Work(work.placed()),
            None if self.facts.takes_works(cluster) => Spot::Free,
            None => Spot::Closed,
        }
    }

    /// The work of the set on a cluster. Where there are several, one counts: one that stays, and has
    /// the name that it should have.
    fn work_on(&self, cluster: &ClusterName) -> Option<&PlacedWork> {
        let name = self.work_name();
        let works = self.facts.works_on(self.key, cluster);
        works.min_by_key(|work| (work.is_leaving(), work.name_any() != name))
    }

    fn work_name(&self) -> String {
        naming::work_name(&self.key.namespace, &self.key.name)
    }

    /// What a cluster is held to that this placement decides for.
    fn held(&self, entry: Option<usize>, state: &ReplicaSetState) -> Held<'_> {
        let strategy = entry.and_then(|entry| state.tracker.index.entries().get(entry)?.strategy.as_ref().ok());
        let name = entry.and_then(|entry| self.placements.get(entry)).map(|listed| &listed.rollout.name);
        let progress = name.and_then(|name| state.remembered.get(name));
        let settled = progress.filter(|progress| progress.last_applied.as_ref() == Some(&self.template.goal));
        Held {
            goal: &self.template.goal,
            soaks: strategy.is_some_and(|strategy| !strategy.soak.is_zero()),
            is_gradual: strategy.is_some_and(Strategy::is_gradual),
            settled: settled.and_then(|progress| progress.finished.as_ref()).map(|time| time.0),
            now: self.now,
        }
    }

    /// Plans the rollout of the template, and keeps its progress.
    fn plan_rollout(&self, state: &mut ReplicaSetState) -> RolloutPlan<Template> {
        let goal = Goal { fingerprint: self.template.goal.clone(), set: Arc::new(Template) };
        let sets: Sets<Template> = [(goal.fingerprint.clone(), Arc::clone(&goal.set))].into_iter().collect();
        let wishes: Vec<_> = self
            .placements
            .iter()
            .map(|listed| {
                let remembered = state.remembered.get(&listed.rollout.name).cloned();
                let begun =
                    || RolloutProgress { wanted: Some(self.template.goal.clone()), ..RolloutProgress::default() };
                let stored = remembered.unwrap_or_else(begun);
                let is_there = listed.decided.is_ok();
                Wish { configured: Some(Ok(goal.clone())), is_there, pause: None, pin: None, stored }
            })
            .collect();
        let planned = state.tracker.index.plan(&wishes, &sets, None, self.now);
        let names = self.placements.iter().map(|listed| listed.rollout.name.clone());
        state.remembered = names.zip(planned.courses.iter().map(|course| course.progress.clone())).collect();
        planned
    }

    /// Deletes the works of clusters that nothing selects any more, where that is sure. Also returns when
    /// to decide again.
    fn removals(
        &self,
        state: &mut ReplicaSetState,
        planned: &RolloutPlan<Template>,
    ) -> (Vec<(ClusterName, Write)>, Option<Timestamp>) {
        let are_clear = self.placements.iter().all(|listed| listed.decided.is_ok());
        if !are_clear || self.placements.is_empty() {
            state.tracker.absences.values_mut().for_each(|absence| *absence = None);
            return (Vec::new(), None);
        }
        let mut counts = self.placements.iter().zip(&planned.courses);
        let is_confirmed =
            counts.all(|(listed, course)| listed.decided.is_ok_and(|decided| decided.clusters == course.selected));
        let (mut writes, mut again) = (Vec::new(), None);
        for (cluster, absence) in &mut state.tracker.absences {
            let unselected = Unselected {
                cluster: self.facts.cluster(cluster),
                before: *absence,
                is_confirmed,
                keeps_clusters: self.facts.keeps_clusters(),
            };
            match presence::leave(&unselected, self.now) {
                Leave::Now => {
                    let work = self.work_on(cluster).filter(|work| !work.is_leaving());
                    writes.extend(work.map(|work| (cluster.clone(), Write::delete(work))));
                }
                Leave::Later { known, again: time } => {
                    *absence = Some(known);
                    again = again.into_iter().chain(time).min();
                }
                Leave::WithCluster => {}
            }
        }
        (writes, again)
    }

    /// Writes the status of the set if it differs, or returns when that may be written.
    fn update_status(&self, state: &ReplicaSetState, plan: &mut Plan<F::Action>) -> Option<Timestamp> {
        let rejection = state.tracker.rejections.of_plan(plan).map(|why| Obstacle::Refused(why.to_owned()));
        let stored = self.set.status.as_ref();
        let placements = self.placements.iter().enumerate().map(|(entry, listed)| Placing {
            name: &listed.rollout.name,
            decided: listed.decided,
            tally: state.sums.get(entry).copied().unwrap_or_default(),
            course: state.courses.get(entry),
        });
        let facts = Facts {
            stored,
            generation: self.set.metadata.generation,
            placements: placements.collect(),
            tally: state.sum,
            obstacle: self.template.obstacle.as_ref().or(rejection.as_ref()),
            now: self.now,
        };
        let wanted = facts.status();
        if stored == Some(&wanted) {
            return None;
        }
        if !status::is_urgent(stored, &wanted)
            && let Err(time) = state.tracker.throttle.check(self.now)
        {
            return Some(time);
        }
        let mut set = self.set.clone();
        set.status = Some(wanted);
        plan.parallel.extend(Write::status(self.set, &set));
        None
    }
}

impl<'a> ListedPlacement<'a> {
    fn of(facts: &impl FleetFacts, set: &ObjectKey, rollout: &'a PlacementRollout) -> Self {
        let key = ObjectKey::namespaced(&set.namespace, &rollout.name);
        Self { rollout, decided: facts.decided(&key), key }
    }

    fn entry(&self, facts: &impl FleetFacts) -> Entry {
        let placement = PlacementRef { namespace: self.key.namespace.to_string(), name: self.rollout.name.clone() };
        let per_group = self.per_group(facts);
        let strategy = Strategy::of_ocm(self.rollout.rollout_strategy.as_ref(), per_group.as_ref());
        Entry { source: Source::Listed(placement), strategy }
    }

    /// How many clusters the placement puts into a decision group.
    fn per_group(&self, facts: &impl FleetFacts) -> Option<WindowSize> {
        let placement = facts.placement(&self.key).into_option()?;
        let strategy = placement.spec.decision_strategy.as_ref()?.group_strategy.as_ref()?;
        strategy.clusters_per_decision_group.clone()
    }
}
