//! One upgrade, with everything that is decided by.

mod facts;
mod telling;
mod writes;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
};

use drover_api::{cluster::ManagedClustersUpgrade, reference::ClusterName};
use drover_engine::{
    placement::sets::{Reach as SetsInReach, reach},
    plan::Plan,
    presence::{Decided, Unclear},
    tracker::Observation,
    upgrade::{
        member::{Act, Course, Facts, Look, Permit, look},
        plan::{Member, Passed, Plan as Planned},
        steering::{is_paused, may_upgrade_hub},
    },
};
use drover_runtime::store::ObjectKey;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::{
    blueprint::Blueprint,
    book::{Context, Pages},
};
use crate::cache::Cache;

/// One upgrade, with everything that is decided by.
pub(super) struct Case<'a> {
    cache: &'a Cache,
    key: &'a ObjectKey,
    upgrade: &'a ManagedClustersUpgrade,
    blueprint: &'a Blueprint,
    course: Course,
    placements: Vec<Listed>,
    /// The sets that the namespace is bound to, of those that the selector names.
    reach: SetsInReach,
    /// Whether all placements agree with their decisions on how many they select, once somebody has asked.
    is_confirmed: OnceCell<bool>,
    now: Timestamp,
}

/// A placement in the list of an upgrade.
struct Listed {
    key: ObjectKey,
    /// What it says of its decision.
    decided: Result<Decided, Unclear>,
}

impl<'a> Case<'a> {
    pub(super) fn new(
        cache: &'a Cache,
        key: &'a ObjectKey,
        upgrade: &'a ManagedClustersUpgrade,
        blueprint: &'a Blueprint,
        now: Timestamp,
    ) -> Self {
        let listed = &upgrade.spec.placement;
        let placements = listed.iter().map(|listed| ObjectKey::namespaced(&listed.namespace, &listed.name));
        let placements = placements.map(|key| Listed { decided: cache.decided(&key), key }).collect();
        let named = blueprint.selector.as_ref().map_or(&[][..], |selector| selector.sets());
        let bindings = cache.bindings.in_namespace(&key.namespace).map(|(_, binding)| &**binding);
        let reach = reach(named, bindings, |set| cache.members.contains_key(set));
        let (course, is_confirmed) = (blueprint.course.clone(), OnceCell::new());
        Self { cache, key, upgrade, blueprint, course, placements, reach, is_confirmed, now }
    }

    /// Brings the book up to date, and does what follows from it. Also says how many clusters were looked at.
    pub(super) fn follow(mut self, pages: &mut Pages) -> (Plan, usize) {
        self.look_by(pages);
        let (mut acts, mut looks) = self.look_at_clusters(pages);
        let planned = self.plan(pages);
        let is_new = planned.passed != self.passed();
        for (cluster, permit) in &planned.permits {
            let look = self.look_at(cluster, *permit, pages);
            looks += 1;
            keep(cluster, look.act, &mut acts, pages);
        }
        let mut plan = Plan::default();
        self.carry_out(pages.tracker.pending.take(acts), &mut plan);
        let is_at_rest = is_at_rest(pages);
        let due = self.tell(pages, &planned, is_new, &mut plan);
        // Who did not come to anything is looked at again, when what was written is known.
        let is_more = pages.tracker.pending.is_more() || is_at_rest != self.course.is_at_rest;
        let wakes = [planned.wake, due, pages.tracker.wake(), is_more.then_some(self.now)];
        plan.wake = wakes.into_iter().flatten().min();
        (plan, looks)
    }

    /// Settles what all clusters are looked at by.
    fn look_by(&mut self, pages: &mut Pages) {
        let acknowledged = self.upgrade.status.as_ref().and_then(|status| status.acknowledged.as_ref());
        let retried = acknowledged.and_then(|acknowledged| acknowledged.retried.as_ref()).map(|time| time.0);
        let may_upgrade_hub = may_upgrade_hub(self.upgrade.annotations());
        self.course.attentive_since = pages.attend(self.now);
        (self.course.retried, self.course.may_upgrade_hub) = (retried, may_upgrade_hub);
        self.course.is_at_rest = is_at_rest(pages);
        if !pages.unsure.is_empty() {
            pages.confirmed(self.is_confirmed());
        }
        pages.tracker.set_context(Context {
            generation: self.upgrade.metadata.generation,
            sets: if let SetsInReach::Sets(sets) = &self.reach { sets.clone() } else { BTreeSet::new() },
            are_clear: self.placements.iter().map(|listed| listed.decided.is_ok()).collect(),
            may_upgrade_hub,
            retried,
            is_at_rest: self.course.is_at_rest,
        });
    }

    /// Looks at the clusters that have changed, or at all if that changed by which they are looked at.
    fn look_at_clusters(&self, pages: &mut Pages) -> (BTreeMap<ClusterName, Act>, usize) {
        let clusters = pages.tracker.take_dirty(self.now, || self.candidates());
        let (looks, mut acts) = (clusters.len(), BTreeMap::new());
        for cluster in clusters {
            let look = self.look_at(&cluster, Permit::Wait, pages);
            let member = self.member(&cluster, &look);
            pages.tracker.observed(&cluster, Observation { member: Some(member), wake: look.wake });
            pages.tracker.pending.remove(&cluster);
            keep(&cluster, look.act, &mut acts, pages);
        }
        (acts, looks)
    }

    /// The clusters that the upgrade may have to do with, as far as that is not known yet.
    fn candidates(&self) -> BTreeSet<ClusterName> {
        let with_part = self.cache.upgrades.clusters_of(&self.blueprint.part_name).cloned();
        let selected = self.placements.iter().flat_map(|listed| self.cache.selected_by(&listed.key));
        let in_sets = self.blueprint.has_selector().then(|| self.cache.clusters.iter());
        let in_sets = in_sets.into_iter().flatten().map(|(key, _)| ClusterName::from(&*key.name));
        with_part.chain(selected).chain(in_sets).collect()
    }

    fn look_at(&self, cluster: &ClusterName, permit: Permit, pages: &mut Pages) -> Look {
        let known = self.known(cluster);
        let works = self.cache.upgrades.works(&self.blueprint.part_name, cluster);
        let (membership, wake) = self.membership(cluster, pages);
        let facts = Facts { membership, cluster: known.as_ref(), record: self.record(cluster), works: &works };
        let mut look = look(facts, &self.course, permit, self.now);
        look.wake = look.wake.into_iter().chain(wake).min();
        look
    }

    fn member(&self, cluster: &ClusterName, look: &Look) -> Member {
        Member {
            is_canary: self.is_canary(cluster),
            is_selected: self.is_selected(cluster),
            turn: self.turn(cluster),
            standing: look.standing.clone(),
            pre_action: look.pre_action,
            post_action: look.post_action,
            took: look.took,
        }
    }

    /// Whose turn it is. Nobody else's comes before it is written down that the canaries have passed.
    fn plan(&self, pages: &Pages) -> Planned {
        let stored = self.passed();
        let (strategy, target) = (&self.blueprint.strategy, self.course.errand.target.name());
        let mut planned = pages.tracker.index.plan(
            strategy,
            target,
            stored.as_ref(),
            is_paused(self.upgrade.annotations()),
            self.now,
        );
        if !self.blueprint.flaws.is_empty() {
            planned.permits.clear();
        }
        if planned.passed != stored {
            let is_canary =
                |name: &ClusterName| pages.tracker.index.member(name).is_some_and(|member| member.is_canary);
            planned.permits.retain(|(cluster, _)| is_canary(cluster));
        }
        planned
    }

    /// What is written down of the canaries, for what clusters are upgraded to now.
    fn passed(&self) -> Option<Passed> {
        let passed = self.upgrade.status.as_ref()?.canaries_passed.as_ref()?;
        let is_current = self.blueprint.strategy.has_canaries && passed.target == *self.course.errand.target.name();
        is_current.then(|| Passed { target: passed.target.clone(), time: passed.time.0 })
    }
}

/// Takes note of what is to be done about a cluster. It is not done with before a look finds nothing.
fn keep(cluster: &ClusterName, act: Option<Act>, acts: &mut BTreeMap<ClusterName, Act>, pages: &mut Pages) {
    let Some(act) = act else {
        acts.remove(cluster);
        return;
    };
    pages.tracker.pending.insert(cluster.clone());
    acts.insert(cluster.clone(), act);
}

/// Whether every cluster of an upgrade has come to rest.
fn is_at_rest(pages: &Pages) -> bool {
    let tally = pages.tracker.index.tally();
    tally.total > 0 && tally.restless == 0
}
