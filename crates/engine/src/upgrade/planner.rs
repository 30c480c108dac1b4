//! Plans one upgrade.

mod membership;
mod status_update;
mod writes;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
};

use drover_api::{cluster::ManagedClustersUpgrade, reference::ClusterName};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::{
    facts::UpgradeFacts,
    member::{Act, Course, Facts, Look, Permit, look},
    plan::{Member, Passed, Plan as Turns},
    settings::UpgradeSettings,
    state::{UpgradeContext, UpgradeState},
    steering::{is_paused, may_upgrade_hub},
};
use crate::{
    placement::sets::{Reach as SetsInReach, reach},
    plan::{ObjectKey, Plan},
    presence::{Decided, Unclear},
    tracker::Observation,
};

/// One upgrade, with everything that it is planned from.
pub(super) struct UpgradePlanner<'a, F> {
    facts: &'a F,
    key: &'a ObjectKey,
    upgrade: &'a ManagedClustersUpgrade,
    settings: &'a UpgradeSettings,
    course: Course,
    placements: Vec<ListedPlacement>,
    /// The sets that the namespace is bound to, of those that the selector names.
    reach: SetsInReach,
    /// Whether all placements agree with their decisions on how many they select, once that was needed.
    is_confirmed: OnceCell<bool>,
    now: Timestamp,
}

/// A placement in the list of an upgrade.
struct ListedPlacement {
    key: ObjectKey,
    /// What it says of its decision.
    decided: Result<Decided, Unclear>,
}

impl<'a, F: UpgradeFacts> UpgradePlanner<'a, F> {
    pub(super) fn new(
        facts: &'a F,
        key: &'a ObjectKey,
        upgrade: &'a ManagedClustersUpgrade,
        settings: &'a UpgradeSettings,
        now: Timestamp,
    ) -> Self {
        let listed = &upgrade.spec.placement;
        let placements = listed.iter().map(|listed| ObjectKey::namespaced(&listed.namespace, &listed.name));
        let placements = placements.map(|key| ListedPlacement { decided: facts.decided(&key), key }).collect();
        let named = settings.selector.as_ref().map_or(&[][..], |selector| selector.sets());
        let reach = reach(named, facts.bindings_in(&key.namespace), |set| facts.has_cluster_set(set));
        let (course, is_confirmed) = (settings.course.clone(), OnceCell::new());
        Self { facts, key, upgrade, settings, course, placements, reach, is_confirmed, now }
    }

    /// Brings the derived states of clusters up to date, and plans what follows from them. Also returns
    /// how many clusters were observed.
    pub(super) fn plan(mut self, state: &mut UpgradeState) -> (Plan, usize) {
        self.set_context(state);
        let (mut acts, mut looks) = self.observe_clusters(state);
        let turns = self.plan_turns(state);
        let is_new = turns.passed != self.passed();
        for (cluster, permit) in &turns.permits {
            let look = self.look_at(cluster, *permit, state);
            looks += 1;
            keep(cluster, look.act, &mut acts, state);
        }
        let mut plan = Plan::default();
        let (acts, is_more) = state.tracker.pending.take(acts);
        self.carry_out(acts, &mut plan);
        let is_at_rest = is_at_rest(state);
        let due = self.update_status(state, &turns, is_new, &mut plan);
        // The others are planned when the answers to these writes are known.
        let is_more = is_more || is_at_rest != self.course.is_at_rest;
        let wakes = [turns.wake, due, state.tracker.wake(), is_more.then_some(self.now)];
        plan.wake = wakes.into_iter().flatten().min();
        (plan, looks)
    }

    /// Decides what all clusters are observed by.
    fn set_context(&mut self, state: &mut UpgradeState) {
        let acknowledged = self.upgrade.status.as_ref().and_then(|status| status.acknowledged.as_ref());
        let retried = acknowledged.and_then(|acknowledged| acknowledged.retried.as_ref()).map(|time| time.0);
        let may_upgrade_hub = may_upgrade_hub(self.upgrade.annotations());
        self.course.attentive_since = state.attend(self.now);
        (self.course.retried, self.course.may_upgrade_hub) = (retried, may_upgrade_hub);
        self.course.is_at_rest = is_at_rest(state);
        if !state.unsure.is_empty() {
            state.confirmed(self.is_confirmed());
        }
        state.tracker.set_context(UpgradeContext {
            generation: self.upgrade.metadata.generation,
            sets: if let SetsInReach::Sets(sets) = &self.reach { sets.clone() } else { BTreeSet::new() },
            are_clear: self.placements.iter().map(|listed| listed.decided.is_ok()).collect(),
            may_upgrade_hub,
            retried,
            is_at_rest: self.course.is_at_rest,
        });
    }

    /// Brings the derived states of clusters up to date: of those that have changed, or of all if what
    /// they are observed by has changed.
    fn observe_clusters(&self, state: &mut UpgradeState) -> (BTreeMap<ClusterName, Act>, usize) {
        let clusters = state.tracker.take_dirty(self.now, || self.candidates());
        let (looks, mut acts) = (clusters.len(), BTreeMap::new());
        for cluster in clusters {
            let look = self.look_at(&cluster, Permit::Wait, state);
            let member = self.member(&cluster, &look);
            state.tracker.observed(&cluster, Observation { member: Some(member), wake: look.wake });
            keep(&cluster, look.act, &mut acts, state);
        }
        (acts, looks)
    }

    /// The clusters that the upgrade may have to do with, as far as that is not known yet.
    fn candidates(&self) -> BTreeSet<ClusterName> {
        let with_part = self.facts.clusters_with_parts(&self.settings.part_name).cloned();
        let selected = self.placements.iter().flat_map(|listed| self.facts.selected_by(&listed.key));
        let in_sets = self.settings.has_selector().then(|| self.facts.clusters());
        let in_sets = in_sets.into_iter().flatten().map(|cluster| ClusterName::from(cluster.name_any()));
        with_part.chain(selected).chain(in_sets).collect()
    }

    fn look_at(&self, cluster: &ClusterName, permit: Permit, state: &mut UpgradeState) -> Look {
        let known = self.known(cluster);
        let works = self.facts.works(&self.settings.part_name, cluster);
        let (membership, wake) = self.membership(cluster, state);
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

    /// Which clusters have their turn. Only canaries have it before it is recorded that they have passed.
    fn plan_turns(&self, state: &UpgradeState) -> Turns {
        let stored = self.passed();
        let (strategy, target) = (&self.settings.strategy, self.course.errand.target.name());
        let mut turns = state.tracker.index.plan(
            strategy,
            target,
            stored.as_ref(),
            is_paused(self.upgrade.annotations()),
            self.now,
        );
        if !self.settings.flaws.is_empty() {
            turns.permits.clear();
        }
        if turns.passed != stored {
            let is_canary =
                |name: &ClusterName| state.tracker.index.member(name).is_some_and(|member| member.is_canary);
            turns.permits.retain(|(cluster, _)| is_canary(cluster));
        }
        turns
    }

    /// That the canaries have passed, as recorded for the current target.
    fn passed(&self) -> Option<Passed> {
        let passed = self.upgrade.status.as_ref()?.canaries_passed.as_ref()?;
        let is_current = self.settings.strategy.has_canaries && passed.target == *self.course.errand.target.name();
        is_current.then(|| Passed { target: passed.target.clone(), time: passed.time.0 })
    }
}

/// Keeps what is to be done about a cluster. It stays pending until a look finds nothing to do.
fn keep(cluster: &ClusterName, act: Option<Act>, acts: &mut BTreeMap<ClusterName, Act>, state: &mut UpgradeState) {
    let Some(act) = act else {
        acts.remove(cluster);
        state.tracker.pending.remove(cluster);
        return;
    };
    state.tracker.pending.insert(cluster.clone());
    acts.insert(cluster.clone(), act);
}

/// Whether nothing more will happen to any cluster of an upgrade by itself.
fn is_at_rest(state: &UpgradeState) -> bool {
    let tally = state.tracker.index.tally();
    tally.total > 0 && tally.restless == 0
}
