//! What the hub knows of the fleet, and whom a change concerns.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use drover_api::{
    cluster::{
        AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement, PlacementDecision,
    },
    names::{DECISION_GROUP_INDEX_LABEL, DECISION_GROUP_NAME_LABEL, PLACEMENT_LABEL},
    reference::ClusterName,
};
use drover_engine::{
    cluster::{invalid_spec::with_invalid_spec, taints},
    placement::{Misconfigured, sets::Membership},
    plan::Controller,
    revision::EPOCH,
    rollout::member::Group,
    tracker::Dirty,
};
use drover_runtime::{
    cache::{Enqueue, Tracks},
    clock::Clock,
    decode::{Damaged, Defect},
    informer::Freshness,
    queue::Queue,
    store::{Change, ObjectKey, Store},
};
use k8s_openapi::{api::core::v1::ObjectReference, jiff::Timestamp};
use kube::ResourceExt;

use crate::{
    addon::{Dialect, Inventory, Tokens},
    cluster::Belongings,
    config::Configs,
    defect::DefectReport,
    manifest_work::CachedWork,
    placement::{Judging, slices_of},
    upgrade::Upgrades,
    work::WorkSets,
};

/// The objects of the API that the hub works with, and what is derived from them.
pub(crate) struct Cache {
    pub(crate) clusters: Store<ManagedCluster>,
    pub(crate) sets: Store<ManagedClusterSet>,
    pub(crate) bindings: Store<ManagedClusterSetBinding>,
    pub(crate) placements: Store<Placement>,
    pub(crate) decisions: Store<PlacementDecision>,
    pub(crate) scores: Store<AddOnPlacementScore>,
    pub(crate) works: Store<CachedWork>,
    /// The clusters of each set.
    pub(crate) members: BTreeMap<String, Members>,
    /// The bindings to each set.
    bound: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// The slices of each placement.
    pub(crate) slices: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// What each placement has found out about clusters.
    pub(crate) judging: BTreeMap<ObjectKey, Judging>,
    /// Which placements have selected a cluster, and in how many slices.
    pub(crate) selections: BTreeMap<ClusterName, BTreeMap<ObjectKey, Chosen>>,
    /// What belongs to clusters.
    pub(crate) belongings: Belongings,
    /// The add-ons, and where they are.
    pub(crate) addons: Inventory,
    /// What agents of add-ons have for tokens.
    pub(crate) tokens: Tokens,
    /// The sets of works, and where their works are.
    pub(crate) work_sets: WorkSets,
    /// The upgrades of clusters, and how far they are on each.
    pub(crate) upgrades: Upgrades,
    /// Whether this hub is who keeps clusters: says by taints whether they are there, and sees them out.
    pub(crate) keeps_clusters: bool,
    /// What add-ons are configured with.
    pub(crate) configs: Configs,
    /// In whose words it is reported on add-ons.
    pub(crate) dialect: Dialect,
    /// The epoch of the renderer.
    pub(crate) epoch: i64,
    pub(crate) clock: Clock,
}

/// The keys that need attention, for each controller.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    pub(crate) clusters: Arc<Queue<ObjectKey>>,
    pub(crate) requests: Arc<Queue<ObjectKey>>,
    pub(crate) sets: Arc<Queue<ObjectKey>>,
    pub(crate) bindings: Arc<Queue<ObjectKey>>,
    pub(crate) placements: Arc<Queue<ObjectKey>>,
    /// Add-ons, about where they are installed.
    pub(crate) installs: Arc<Queue<ObjectKey>>,
    /// Add-ons, about what their clusters are given.
    pub(crate) rollouts: Arc<Queue<ObjectKey, Dirty>>,
    /// Add-ons on clusters.
    pub(crate) addons: Arc<Queue<ObjectKey>>,
    /// Contents of configurations that are kept.
    pub(crate) revisions: Arc<Queue<ObjectKey>>,
    /// Configurations that ask for a version, about which there are.
    pub(crate) hub_configs: Arc<Queue<ObjectKey>>,
    /// Add-ons on clusters, about the tokens of their agents.
    pub(crate) tokens: Arc<Queue<ObjectKey>>,
    /// Add-ons on clusters, about what their agents may do on the hub.
    pub(crate) permissions: Arc<Queue<ObjectKey>>,
    /// Requests of agents of add-ons.
    pub(crate) addon_requests: Arc<Queue<ObjectKey>>,
    /// Sets of works.
    pub(crate) work_sets: Arc<Queue<ObjectKey, Dirty>>,
    /// Works, about when they have done what they were for.
    pub(crate) completions: Arc<Queue<ObjectKey>>,
    /// Upgrades of clusters.
    pub(crate) upgrades: Arc<Queue<ObjectKey, Dirty>>,
    /// Objects with values that cannot be parsed.
    pub(crate) defects: Arc<Queue<DefectReport>>,
}

impl Queues {
    pub(crate) fn new(clock: &Clock) -> Self {
        let queue = || Arc::new(Queue::new(clock.clone()));
        Self {
            clusters: queue(),
            requests: queue(),
            sets: queue(),
            bindings: queue(),
            placements: queue(),
            installs: queue(),
            rollouts: Arc::new(Queue::new(clock.clone())),
            addons: queue(),
            revisions: queue(),
            hub_configs: queue(),
            tokens: queue(),
            permissions: queue(),
            addon_requests: queue(),
            work_sets: Arc::new(Queue::new(clock.clone())),
            completions: queue(),
            upgrades: Arc::new(Queue::new(clock.clone())),
            defects: Arc::new(Queue::new(clock.clone())),
        }
    }
}

/// The clusters of one set.
#[derive(Debug)]
pub(crate) struct Members {
    pub(crate) membership: Result<Membership, Misconfigured>,
    pub(crate) clusters: BTreeSet<ClusterName>,
}

impl Members {
    /// The clusters of a set that has just changed. A selector that makes no sense moves nobody: the set keeps those that
    /// it had.
    fn of<'a>(
        set: &ManagedClusterSet,
        former: Option<Self>,
        clusters: impl Iterator<Item = &'a Arc<ManagedCluster>>,
    ) -> Self {
        let membership = Membership::of(set);
        let clusters = match &membership {
            Ok(members) => {
                clusters.filter(|cluster| members.contains(cluster)).map(|cluster| cluster.cluster_name()).collect()
            }
            Err(_) => former.map(|former| former.clusters).unwrap_or_default(),
        };
        Self { membership, clusters }
    }

    /// Takes note of a cluster as it is now, or that it is gone, and says whether it was and whether it is a member.
    fn update(&mut self, name: &ClusterName, cluster: Option<&ManagedCluster>) -> (bool, bool) {
        let was = self.clusters.contains(name);
        let is =
            cluster.is_some_and(|cluster| self.membership.as_ref().map_or(was, |members| members.contains(cluster)));
        if is {
            self.clusters.insert(name.clone());
        } else {
            self.clusters.remove(name);
        }
        (was, is)
    }
}

impl Cache {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clusters: Store::default(),
            sets: Store::default(),
            bindings: Store::default(),
            placements: Store::default(),
            decisions: Store::default(),
            scores: Store::default(),
            works: Store::default(),
            members: BTreeMap::new(),
            bound: BTreeMap::new(),
            slices: BTreeMap::new(),
            judging: BTreeMap::new(),
            selections: BTreeMap::new(),
            belongings: Belongings::default(),
            addons: Inventory::default(),
            tokens: Tokens::default(),
            work_sets: WorkSets::default(),
            upgrades: Upgrades::default(),
            keeps_clusters: false,
            configs: Configs::new("", &Freshness::default()),
            dialect: Dialect::default(),
            epoch: EPOCH,
            clock,
        }
    }

    pub(crate) fn cluster(&self, name: &ClusterName) -> Option<&Arc<ManagedCluster>> {
        self.clusters.get(&ObjectKey::cluster_wide(name.as_str()))
    }

    /// A cluster with the taints that it is about to have, if this hub is who keeps clusters.
    pub(crate) fn foreseen<'a>(&self, cluster: &'a ManagedCluster, now: Timestamp) -> Cow<'a, ManagedCluster> {
        if self.keeps_clusters { taints::foreseen(cluster, now) } else { Cow::Borrowed(cluster) }
    }

    /// The placement that a decision belongs to.
    fn placement_of(decision: &PlacementDecision) -> Option<ObjectKey> {
        let placement = decision.labels().get(PLACEMENT_LABEL)?;
        Some(ObjectKey::namespaced(&decision.namespace()?, placement))
    }

    /// The namespaces that are bound to a set.
    fn namespaces_of_set(&self, set: &str) -> BTreeSet<Arc<str>> {
        self.bound.get(set).into_iter().flatten().map(|binding| Arc::clone(&binding.namespace)).collect()
    }

    /// Has the placements that take clusters from a set look at one of them again.
    fn look_again_at(&self, cluster: &ClusterName, set: &str, queues: &Queues) {
        for namespace in self.namespaces_of_set(set) {
            for (key, placement) in self.placements.in_namespace(&namespace) {
                let named = &placement.spec.cluster_sets;
                if named.is_empty() || named.iter().any(|named| named == set) {
                    self.mark_placement(key, |judging| judging.look_again_at(cluster), queues);
                }
            }
        }
    }

    /// Has the placements of a namespace find out anew which clusters are in reach.
    fn reach_changed_in(&self, namespace: &str, queues: &Queues) {
        for (key, _) in self.placements.in_namespace(namespace) {
            self.mark_placement(key, Judging::reach_changed, queues);
        }
    }

    /// Marks a placement, and has it take note of why.
    fn mark_placement(&self, key: &ObjectKey, take_note: impl Fn(&Judging), queues: &Queues) {
        if let Some(judging) = self.judging.get(key) {
            take_note(judging);
        }
        queues.placements.mark(key.clone());
    }

    fn count_selection(&mut self, cluster: &ClusterName, placement: &ObjectKey, group: Option<&Group>) {
        let chosen_by = self.selections.entry(cluster.clone()).or_default();
        let chosen = chosen_by.entry(placement.clone()).or_default();
        match group {
            Some(group) => *chosen = Chosen { slices: chosen.slices + 1, group: group.clone() },
            None => chosen.slices = chosen.slices.saturating_sub(1),
        }
        if chosen.slices == 0 {
            chosen_by.remove(placement);
        }
        if chosen_by.is_empty() {
            self.selections.remove(cluster);
        }
        if let Some(judging) = self.judging.get(placement) {
            judging.selection_changed(cluster);
        }
    }

    /// The clusters that a placement has selected.
    pub(crate) fn selected_by(&self, placement: &ObjectKey) -> impl Iterator<Item = ClusterName> + use<'_> {
        let slices = slices_of(self, placement).into_iter().filter_map(|slice| slice.status.as_ref());
        slices.flat_map(|status| &status.decisions).map(|decision| decision.cluster_name.clone())
    }

    /// How many clusters a placement has selected.
    pub(crate) fn count_selected_by(&self, placement: &ObjectKey) -> usize {
        let slices = slices_of(self, placement).into_iter().filter_map(|slice| slice.status.as_ref());
        slices.map(|status| status.decisions.len()).sum()
    }
}

/// That a placement has selected a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    /// In how many slices: in two for a moment, when it moves from one to another.
    slices: usize,
    /// In which group.
    pub(crate) group: Group,
}

/// The group that a slice is of.
fn group_of(decision: &PlacementDecision) -> Group {
    let labels = decision.labels();
    Group {
        index: labels.get(DECISION_GROUP_INDEX_LABEL).and_then(|index| index.parse().ok()).unwrap_or_default(),
        name: labels.get(DECISION_GROUP_NAME_LABEL).filter(|name| !name.is_empty()).map(|name| name.as_str().into()),
    }
}

impl Enqueue for Queues {
    fn enqueue(&self, controller: Controller, key: &ObjectKey) {
        let queue = match controller {
            Controller::AddOn => &self.addons,
            Controller::AddOnRegistration => &self.addon_requests,
            Controller::Permission => &self.permissions,
        };
        queue.mark(key.clone());
    }

    fn report_defect(&self, object: ObjectReference, defect: &Defect) {
        self.defects.mark(DefectReport::new(object, defect));
    }
}

impl Tracks<ManagedCluster> for Cache {
    fn store(&mut self) -> &mut Store<ManagedCluster> {
        &mut self.clusters
    }

    /// The agent writes the status. The hub's own conditions in it are written anew where they are
    /// missing.
    fn salvage(damaged: &Damaged<ManagedCluster>) -> Option<ManagedCluster> {
        damaged.without_defects()
    }

    fn fall_back(damaged: &Damaged<ManagedCluster>, known: Option<&ManagedCluster>) -> Option<ManagedCluster> {
        let is_accepted = damaged.spec_field("hubAcceptsClient").unwrap_or_default();
        with_invalid_spec(known, &damaged.metadata, is_accepted)
    }

    fn changed(&mut self, change: &Change<ManagedCluster>, queues: &Queues) {
        self.mark_belongings(change, queues);
        self.mark_addons(change, queues);
        self.mark_work_sets(change, queues);
        self.mark_upgrades(change, queues);
        let cluster = ClusterName::from(&*change.key.name);
        let mut touched = Vec::new();
        for (set, members) in &mut self.members {
            let (was, is) = members.update(&cluster, change.new.as_deref());
            if was || is {
                touched.push((set.clone(), was != is));
            }
        }
        if touched.is_empty() {
            // One that is in no set, or was never readable, can be selected still.
            let selected_by: Vec<_> =
                self.selections.get(&cluster).into_iter().flat_map(BTreeMap::keys).cloned().collect();
            for placement in selected_by {
                self.mark_placement(&placement, Judging::stored_changed, queues);
            }
        }
        for (set, moved) in touched {
            if moved {
                queues.sets.mark(ObjectKey::cluster_wide(&set));
            }
            self.look_again_at(&cluster, &set, queues);
        }
    }
}

impl Tracks<ManagedClusterSet> for Cache {
    fn store(&mut self) -> &mut Store<ManagedClusterSet> {
        &mut self.sets
    }

    fn changed(&mut self, change: &Change<ManagedClusterSet>, queues: &Queues) {
        let name = &*change.key.name;
        let same_members = matches!((&change.old, &change.new), (Some(old), Some(new)) if old.spec.cluster_selector == new.spec.cluster_selector);
        if !same_members {
            let former = self.members.remove(name);
            if let Some(set) = &change.new {
                let clusters = self.clusters.iter().map(|(_, cluster)| cluster);
                self.members.insert(name.to_owned(), Members::of(set, former, clusters));
            }
            for namespace in self.namespaces_of_set(name) {
                self.reach_changed_in(&namespace, queues);
            }
            for binding in self.bound.get(name).into_iter().flatten() {
                queues.bindings.mark(binding.clone());
            }
        }
        queues.sets.mark(change.key.clone());
        if !same_members {
            self.mark_selecting_upgrades(queues);
        }
    }
}

impl Tracks<ManagedClusterSetBinding> for Cache {
    fn store(&mut self) -> &mut Store<ManagedClusterSetBinding> {
        &mut self.bindings
    }

    fn changed(&mut self, change: &Change<ManagedClusterSetBinding>, queues: &Queues) {
        queues.bindings.mark(change.key.clone());
        let set = |binding: &Option<Arc<ManagedClusterSetBinding>>| {
            binding.as_ref().map(|binding| binding.spec.cluster_set.clone())
        };
        let (old, new) = (set(&change.old), set(&change.new));
        let was_unreadable = change.old.is_none() && change.new.is_none();
        if old == new && !was_unreadable {
            return;
        }
        if let Some(old) = old {
            remove_from(&mut self.bound, &old, &change.key);
        }
        if let Some(new) = new {
            self.bound.entry(new).or_default().insert(change.key.clone());
        }
        self.reach_changed_in(&change.key.namespace, queues);
        self.mark_selecting_upgrades(queues);
    }
}

impl Tracks<Placement> for Cache {
    fn store(&mut self) -> &mut Store<Placement> {
        &mut self.placements
    }

    fn changed(&mut self, change: &Change<Placement>, queues: &Queues) {
        self.mark_followers_of(change, queues);
        self.mark_work_sets_of(&change.key, queues);
        self.mark_upgrades_of(&change.key, queues);
        match &change.new {
            None => {
                self.judging.remove(&change.key);
                return queues.placements.forget(&change.key);
            }
            Some(new) if change.old.as_ref().is_none_or(|old| old.spec != new.spec) => {
                self.judging.insert(change.key.clone(), Judging::new(new));
            }
            Some(_) => {}
        }
        self.mark_placement(&change.key, Judging::stored_changed, queues);
    }
}

impl Tracks<PlacementDecision> for Cache {
    fn store(&mut self) -> &mut Store<PlacementDecision> {
        &mut self.decisions
    }

    fn changed(&mut self, change: &Change<PlacementDecision>, queues: &Queues) {
        for (decision, selected) in [(&change.old, false), (&change.new, true)] {
            let Some(decision) = decision else { continue };
            let Some(placement) = Self::placement_of(decision) else { continue };
            if selected {
                self.slices.entry(placement.clone()).or_default().insert(change.key.clone());
            } else {
                remove_from(&mut self.slices, &placement, &change.key);
            }
            let group = selected.then(|| group_of(decision));
            for selection in decision.status.iter().flat_map(|status| &status.decisions) {
                self.count_selection(&selection.cluster_name, &placement, group.as_ref());
                self.look_again_at_member(&placement, &selection.cluster_name, queues);
                self.look_again_at_work(&placement, &selection.cluster_name, queues);
                self.look_again_at_upgrade(&placement, &selection.cluster_name, queues);
            }
            self.mark_placement(&placement, Judging::stored_changed, queues);
            self.mark_followers(&placement, queues);
            self.mark_work_sets_of(&placement, queues);
            self.mark_upgrades_of(&placement, queues);
        }
    }
}

impl Tracks<AddOnPlacementScore> for Cache {
    fn store(&mut self) -> &mut Store<AddOnPlacementScore> {
        &mut self.scores
    }

    /// A score that cannot be parsed is none.
    fn salvage(damaged: &Damaged<AddOnPlacementScore>) -> Option<AddOnPlacementScore> {
        damaged.without_defects()
    }

    fn changed(&mut self, change: &Change<AddOnPlacementScore>, queues: &Queues) {
        let cluster = ClusterName::from(&*change.key.namespace);
        for (placement, judging) in &self.judging {
            if judging.scores_changed(&cluster, &change.key.name) {
                queues.placements.mark(placement.clone());
            }
        }
    }
}

/// Takes a key out of an index.
pub(crate) fn remove_from<T: Ord>(index: &mut BTreeMap<T, BTreeSet<ObjectKey>>, entry: &T, key: &ObjectKey) {
    if let Some(keys) = index.get_mut(entry) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use drover_api::cluster::{ClusterSetSelector, ClusterSetSelectorType, ManagedClusterSetSpec, ManagedClusterSpec};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

    use super::*;

    /// A set of the clusters whose `env` stands in this relation to `prod`.
    fn set(operator: &str) -> ManagedClusterSet {
        let requirement = LabelSelectorRequirement {
            key: "env".to_owned(),
            operator: operator.to_owned(),
            values: Some(vec!["prod".to_owned()]),
        };
        let cluster_selector = ClusterSetSelector {
            selector_type: ClusterSetSelectorType::LabelSelector,
            label_selector: Some(LabelSelector { match_expressions: Some(vec![requirement]), match_labels: None }),
        };
        ManagedClusterSet::new("production", ManagedClusterSetSpec { cluster_selector, managed_namespaces: Vec::new() })
    }

    fn cluster(env: &str) -> Arc<ManagedCluster> {
        let mut cluster = ManagedCluster::new("one", ManagedClusterSpec::default());
        cluster.labels_mut().insert("env".to_owned(), env.to_owned());
        Arc::new(cluster)
    }

    #[test]
    fn a_cluster_comes_and_goes_with_its_labels() {
        let name = ClusterName::from("one");
        let mut members = Members::of(&set("In"), None, [].iter());
        assert_eq!(members.update(&name, Some(&cluster("prod"))), (false, true));
        assert_eq!(members.update(&name, Some(&cluster("test"))), (true, false));
        assert_eq!(members.update(&name, Some(&cluster("prod"))), (false, true));
        assert_eq!(members.update(&name, None), (true, false));
    }

    #[test]
    fn a_set_whose_selector_makes_no_sense_keeps_its_clusters() {
        let name = ClusterName::from("one");
        let members = Members::of(&set("In"), None, [cluster("prod")].iter());
        let mut members = Members::of(&set("in"), Some(members), [cluster("prod")].iter());
        assert!(members.membership.is_err());
        assert_eq!(members.update(&name, Some(&cluster("test"))), (true, true));
        assert_eq!(members.update(&name, None), (true, false), "a cluster that is gone is in no set");
    }
}
