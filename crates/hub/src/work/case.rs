//! One set of works, with everything that is decided by.

mod giving;
mod tidy;

use std::{collections::BTreeSet, sync::Arc};

use drover_api::{
    drover::RolloutProgress,
    grammar::WindowSize,
    reference::{ClusterName, PlacementRef},
    work::{ManifestWorkReplicaSet, PlacementRollout},
};
use drover_engine::{
    plan::{Plan, Write},
    presence::{self, Decided, Leave, Source, Unclear, Unselected},
    rollout::{Entry, Goal, Plan as Planned, Rollout, Sets, Wish, member::Selection, strategy::Strategy},
    tracker::{BATCH, Observation},
    work::replica_set::{
        member::{Held, Spot, member},
        naming,
        revision::Template,
        selection,
        status::{self, Facts, Obstacle, Placing},
        tally::Tally,
    },
};
use drover_runtime::store::ObjectKey;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::ResourceExt;

use super::{
    blueprint::Blueprint,
    book::{Context, Pages},
    placed::PlacedWork,
};
use crate::{adopt::CreateOrAdopt, cache::Cache};

/// What is done about one set of works.
pub(super) type WorkPlan = Plan<CreateOrAdopt<PlacedWork>>;

/// One set of works, with everything that is decided by.
pub(super) struct Case<'a> {
    cache: &'a Cache,
    key: &'a ObjectKey,
    set: &'a ManifestWorkReplicaSet,
    blueprint: &'a Blueprint,
    placements: Vec<Listed<'a>>,
    now: Timestamp,
}

/// A placement in the list of a set.
struct Listed<'a> {
    rollout: &'a PlacementRollout,
    key: ObjectKey,
    /// What it says of its decision.
    decided: Result<Decided, Unclear>,
}

impl<'a> Case<'a> {
    pub(super) fn new(
        cache: &'a Cache,
        key: &'a ObjectKey,
        set: &'a ManifestWorkReplicaSet,
        blueprint: &'a Blueprint,
        now: Timestamp,
    ) -> Self {
        let placements = selection::listed(set).into_iter().map(|rollout| Listed::of(cache, key, rollout)).collect();
        Self { cache, key, set, blueprint, placements, now }
    }

    /// Whether works of the set could not even say whose they are, so that there are none.
    pub(super) fn is_unfit(&self) -> bool {
        matches!(self.blueprint.obstacle, Some(Obstacle::Unfit(_)))
    }

    /// Whether anything may be done to works.
    fn may_act(&self) -> bool {
        self.blueprint.obstacle.is_none()
    }

    /// Brings the book up to date, and does what follows from it. Also says how many clusters were looked at.
    pub(super) fn follow(&self, pages: &mut Pages) -> (WorkPlan, usize) {
        let looked = self.look_at_clusters(pages);
        let planned = self.plan(pages);
        let (mut plan, mut again) = (WorkPlan::default(), None);
        if self.may_act() {
            for give in planned.gives.iter().take(BATCH) {
                self.give(give, &mut plan);
            }
            let (leaving, later) = self.removals(pages, &planned);
            plan.parallel.extend(leaving);
            pages.courses = planned.courses;
            plan.parallel.extend(self.tidy(pages, &looked, &planned.gives));
            again = later;
        } else {
            pages.courses = planned.courses;
        }
        let is_more = plan.actions.len() + plan.parallel.len() > BATCH || planned.gives.len() > BATCH;
        plan.parallel.truncate(BATCH - plan.actions.len());
        let due = self.tell(pages, &mut plan);
        let wake = [planned.wake, again, due, pages.tracker.wake(), is_more.then_some(self.now)];
        plan.wake = wake.into_iter().flatten().min();
        (plan, looked.len())
    }

    /// Brings the clusters in the book up to date: those that have changed, or all if that changed by which they are looked at.
    fn look_at_clusters(&self, pages: &mut Pages) -> BTreeSet<ClusterName> {
        let entries: Vec<_> = self.placements.iter().map(|listed| listed.entry(self.cache)).collect();
        if pages.tracker.index.entries() != entries {
            pages.begin(Rollout::new(entries));
        }
        if pages.tracker.context().is_none() {
            self.recall(pages);
        }
        pages.look_by(Context {
            goal: self.blueprint.goal.clone(),
            labels: self.set.labels().clone(),
            are_clear: self.placements.iter().map(|listed| listed.decided.is_ok()).collect(),
        });
        let clusters = pages.tracker.take_dirty(self.now, || self.candidates());
        for cluster in &clusters {
            self.look_at(cluster, pages);
        }
        clusters
    }

    /// Recalls from what the set says that its template had reached all clusters before this hub was there.
    fn recall(&self, pages: &mut Pages) {
        let settled = status::settled(self.set.status.as_ref(), self.set.metadata.generation);
        let Some(settled) = settled else { return };
        for listed in &self.placements {
            let goal = Some(self.blueprint.goal.clone());
            let progress = RolloutProgress {
                wanted: goal.clone(),
                last_applied: goal,
                finished: Some(Time(settled)),
                ..RolloutProgress::default()
            };
            pages.remembered.insert(listed.rollout.name.clone(), progress);
        }
    }

    /// The clusters that the set may have to do with, as far as that is not known yet.
    fn candidates(&self) -> BTreeSet<ClusterName> {
        let with_work = self.cache.work_sets.clusters_of(self.key).cloned();
        let selected = self.placements.iter().flat_map(|listed| self.cache.selected_by(&listed.key));
        with_work.chain(selected).collect()
    }

    fn look_at(&self, cluster: &ClusterName, pages: &mut Pages) {
        let selections = self.selections(cluster);
        let entry = selections.last().map(|selection| selection.placement);
        let spot = self.spot(cluster);
        let work = if let Spot::Work(placed) = &spot { Some(placed) } else { None };
        let held = self.held(entry, pages);
        let tally = Tally::of(work, entry.is_some(), &held);
        let member = entry.map(|_| member(&spot, selections, self.cache.is_online(cluster), &held));
        let is_absent = entry.is_none() && work.is_some();
        pages.count(cluster, (entry.is_some() || work.is_some()).then_some((entry, tally)));
        pages.tracker.observed(cluster, Observation { member, wake: None });
        if is_absent {
            pages.tracker.absences.entry(cluster.clone()).or_default();
        } else {
            pages.tracker.absences.remove(cluster);
        }
    }

    /// The placements that select a cluster. The last of them decides.
    fn selections(&self, cluster: &ClusterName) -> Vec<Selection> {
        let Some(by) = self.cache.selections.get(cluster) else { return Vec::new() };
        let clear = self.placements.iter().enumerate().filter(|(_, listed)| listed.decided.is_ok());
        let chosen = clear.filter_map(|(placement, listed)| Some((placement, by.get(&listed.key)?)));
        chosen.map(|(placement, chosen)| Selection { placement, group: chosen.group.clone() }).collect()
    }

    fn spot(&self, cluster: &ClusterName) -> Spot {
        match self.work_on(cluster) {
            Some(work) if work.is_leaving() => Spot::Vacated,
            Some(work) => Spot::Work(work.placed()),
            None if self.cache.takes_works(cluster) => Spot::Free,
            None => Spot::Closed,
        }
    }

    /// The work of the set on a cluster. Where there are several, one counts: one that stays, and has the name that it should have.
    fn work_on(&self, cluster: &ClusterName) -> Option<&PlacedWork> {
        let name = self.work_name();
        let works = self.cache.work_sets.works_on(self.key, cluster);
        works.min_by_key(|work| (work.is_leaving(), work.name_any() != name))
    }

    fn work_name(&self) -> String {
        naming::work_name(&self.key.namespace, &self.key.name)
    }

    /// What a cluster is held to that this placement decides for.
    fn held(&self, entry: Option<usize>, pages: &Pages) -> Held<'_> {
        let strategy = entry.and_then(|entry| pages.tracker.index.entries().get(entry)?.strategy.as_ref().ok());
        let name = entry.and_then(|entry| self.placements.get(entry)).map(|listed| &listed.rollout.name);
        let progress = name.and_then(|name| pages.remembered.get(name));
        let settled = progress.filter(|progress| progress.last_applied.as_ref() == Some(&self.blueprint.goal));
        Held {
            goal: &self.blueprint.goal,
            soaks: strategy.is_some_and(|strategy| !strategy.soak.is_zero()),
            is_gradual: strategy.is_some_and(Strategy::is_gradual),
            settled: settled.and_then(|progress| progress.finished.as_ref()).map(|time| time.0),
            now: self.now,
        }
    }

    /// Has the planner decide, and remembers what it says.
    fn plan(&self, pages: &mut Pages) -> Planned<Template> {
        let goal = Goal { fingerprint: self.blueprint.goal.clone(), set: Arc::new(Template) };
        let sets: Sets<Template> = [(goal.fingerprint.clone(), Arc::clone(&goal.set))].into_iter().collect();
        let wishes: Vec<_> = self
            .placements
            .iter()
            .map(|listed| {
                let remembered = pages.remembered.get(&listed.rollout.name).cloned();
                let begun =
                    || RolloutProgress { wanted: Some(self.blueprint.goal.clone()), ..RolloutProgress::default() };
                let stored = remembered.unwrap_or_else(begun);
                let is_there = listed.decided.is_ok();
                Wish { configured: Some(Ok(goal.clone())), is_there, pause: None, pin: None, stored }
            })
            .collect();
        let planned = pages.tracker.index.plan(&wishes, &sets, None, self.now);
        let names = self.placements.iter().map(|listed| listed.rollout.name.clone());
        pages.remembered = names.zip(planned.courses.iter().map(|course| course.progress.clone())).collect();
        planned
    }

    /// Removes the works of clusters that nothing selects any more, where that is sure, and says when it is to be decided on again.
    fn removals(&self, pages: &mut Pages, planned: &Planned<Template>) -> (Vec<Write>, Option<Timestamp>) {
        let are_clear = self.placements.iter().all(|listed| listed.decided.is_ok());
        if !are_clear || self.placements.is_empty() {
            pages.tracker.absences.values_mut().for_each(|absence| *absence = None);
            return (Vec::new(), None);
        }
        let mut counts = self.placements.iter().zip(&planned.courses);
        let is_confirmed =
            counts.all(|(listed, course)| listed.decided.is_ok_and(|decided| decided.clusters == course.selected));
        let (mut writes, mut again) = (Vec::new(), None);
        for (cluster, absence) in &mut pages.tracker.absences {
            let unselected = Unselected {
                cluster: self.cache.known_cluster(cluster),
                before: *absence,
                is_confirmed,
                keeps_clusters: self.cache.keeps_clusters,
            };
            match presence::leave(&unselected, self.now) {
                Leave::Now => writes.extend(self.work_on(cluster).filter(|work| !work.is_leaving()).map(Write::delete)),
                Leave::Later { known, again: time } => {
                    *absence = Some(known);
                    again = again.into_iter().chain(time).min();
                }
                Leave::WithCluster => {}
            }
        }
        (writes, again)
    }

    /// Writes what is said of the set, if it is to be; otherwise says when.
    fn tell(&self, pages: &Pages, plan: &mut WorkPlan) -> Option<Timestamp> {
        let rejection = pages.tracker.rejections.of_plan(plan).map(|why| Obstacle::Refused(why.to_owned()));
        let stored = self.set.status.as_ref();
        let placements = self.placements.iter().enumerate().map(|(entry, listed)| Placing {
            name: &listed.rollout.name,
            decided: listed.decided,
            tally: pages.sums.get(entry).copied().unwrap_or_default(),
            course: pages.courses.get(entry),
        });
        let facts = Facts {
            stored,
            generation: self.set.metadata.generation,
            placements: placements.collect(),
            tally: pages.sum,
            obstacle: self.blueprint.obstacle.as_ref().or(rejection.as_ref()),
            now: self.now,
        };
        let wanted = facts.status();
        if stored == Some(&wanted) {
            return None;
        }
        if !status::is_urgent(stored, &wanted)
            && let Err(time) = pages.tracker.throttle.check(self.now)
        {
            return Some(time);
        }
        let mut set = self.set.clone();
        set.status = Some(wanted);
        plan.parallel.extend(Write::status(self.set, &set));
        None
    }
}

impl<'a> Listed<'a> {
    fn of(cache: &Cache, set: &ObjectKey, rollout: &'a PlacementRollout) -> Self {
        let key = ObjectKey::namespaced(&set.namespace, &rollout.name);
        Self { rollout, decided: cache.decided(&key), key }
    }

    fn entry(&self, cache: &Cache) -> Entry {
        let placement = PlacementRef { namespace: self.key.namespace.to_string(), name: self.rollout.name.clone() };
        let per_group = self.per_group(cache);
        let strategy = Strategy::of_ocm(self.rollout.rollout_strategy.as_ref(), per_group.as_ref());
        Entry { source: Source::Listed(placement), strategy }
    }

    /// How many clusters the placement puts into a decision group.
    fn per_group(&self, cache: &Cache) -> Option<WindowSize> {
        let placement = cache.placements.get(&self.key)?;
        let strategy = placement.spec.decision_strategy.as_ref()?.group_strategy.as_ref()?;
        strategy.clusters_per_decision_group.clone()
    }
}
