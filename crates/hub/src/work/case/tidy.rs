//! What is put right on works without disturbing anybody: labels, notes, and works that are one too many.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{names::PROVEN_ANNOTATION, reference::ClusterName};
use drover_engine::{plan::Write, rollout::Give};
use kube::ResourceExt;

use super::Case;
use crate::work::{book::Pages, placed::PlacedWork};

impl Case<'_> {
    /// Puts the works right of the clusters that were looked at. One that is given something gets it all at once.
    pub(super) fn tidy(&self, pages: &mut Pages, looked: &BTreeSet<ClusterName>, gives: &[Give]) -> Vec<Write> {
        let given: BTreeSet<_> = gives.iter().map(|give| &give.cluster).collect();
        let mut steps = BTreeMap::new();
        for cluster in looked {
            let found = if given.contains(cluster) { Vec::new() } else { self.tidy_up(cluster, pages) };
            if given.contains(cluster) || !found.is_empty() {
                pages.tracker.pending.insert(cluster.clone());
            } else {
                pages.tracker.pending.remove(cluster);
            }
            if !found.is_empty() {
                steps.insert(cluster.clone(), found);
            }
        }
        pages.tracker.pending.take(steps).into_iter().flat_map(|(_, writes)| writes).collect()
    }

    fn tidy_up(&self, cluster: &ClusterName, pages: &Pages) -> Vec<Write> {
        let Some(work) = self.work_on(cluster) else { return Vec::new() };
        let works = self.cache.work_sets.works_on(self.key, cluster);
        let others = works.filter(|other| other.name_any() != work.name_any() && !other.is_leaving());
        let mut writes: Vec<_> = others.map(Write::delete).collect();
        if !work.is_leaving() {
            writes.extend(Write::update(work, &self.tidied(work, cluster, pages)));
        }
        writes
    }

    /// A work with the labels and notes that it is to have.
    fn tidied(&self, work: &PlacedWork, cluster: &ClusterName, pages: &Pages) -> PlacedWork {
        let mut wanted = work.clone();
        let Some((entry, _)) = pages.tracker.index.standing(cluster) else { return wanted };
        self.label(&mut wanted, &self.placements[entry].rollout.name);
        if let Some(proof) = work.placed().to_record(&self.held(Some(entry), pages)) {
            wanted.annotations_mut().insert(PROVEN_ANNOTATION.to_owned(), proof.to_annotation());
        }
        wanted
    }
}
