//! What is corrected on works without a rollout: labels, notes, and works that are one too many.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{names::PROVEN_ANNOTATION, reference::ClusterName};
use kube::ResourceExt;

use super::{ClusterStep, ReplicaSetPlanner};
use crate::{
    manifestwork::WorkPatch,
    plan::Write,
    rollout::Give,
    work::replica_set::{facts::ReplicaSetFacts, placed_work::PlacedWork, state::ReplicaSetState},
};

impl<F: ReplicaSetFacts> ReplicaSetPlanner<'_, F> {
    /// Corrects the works of the clusters that were observed. One that is assigned the template gets
    /// everything in one write.
    pub(super) fn upkeep<'g>(
        &self,
        state: &mut ReplicaSetState,
        observed: &BTreeSet<ClusterName>,
        gives: &[Give],
    ) -> BTreeMap<ClusterName, ClusterStep<'g>> {
        let assigned: BTreeSet<_> = gives.iter().map(|give| &give.cluster).collect();
        let mut steps = BTreeMap::new();
        for cluster in observed {
            let found = if assigned.contains(cluster) { Vec::new() } else { self.correct(cluster, state) };
            if assigned.contains(cluster) || !found.is_empty() {
                state.tracker.pending.insert(cluster.clone());
            } else {
                state.tracker.pending.remove(cluster);
            }
            if !found.is_empty() {
                steps.insert(cluster.clone(), ClusterStep { give: None, writes: found });
            }
        }
        steps
    }

    fn correct(&self, cluster: &ClusterName, state: &ReplicaSetState) -> Vec<Write> {
        let Some(work) = self.work_on(cluster) else { return Vec::new() };
        let works = self.facts.works_on(self.key, cluster);
        let others = works.filter(|other| other.name_any() != work.name_any() && !other.is_leaving());
        let mut writes: Vec<_> = others.map(Write::delete).collect();
        if !work.is_leaving() {
            writes.extend(self.correction(work, cluster, state).write(work));
        }
        writes
    }

    /// The change by which a work has the labels and notes that it should have.
    fn correction(&self, work: &PlacedWork, cluster: &ClusterName, state: &ReplicaSetState) -> WorkPatch {
        let mut patch = WorkPatch::default();
        let Some((entry, _)) = state.tracker.index.standing(cluster) else { return patch };
        patch.set_labels(work.lacking(self.labels(&self.placements[entry].rollout.name)));
        if let Some(proof) = work.placed().to_record(&self.held(Some(entry), state)) {
            patch.annotate(PROVEN_ANNOTATION, proof.to_annotation());
        }
        patch
    }
}
