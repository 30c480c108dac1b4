//! Works that say what the template says: made, changed, and labelled as those of their set.

use std::sync::Arc;

use drover_api::{
    names::{GIVEN_ANNOTATION, PROVEN_ANNOTATION, REPLICA_SET_LABEL, WORK_PLACEMENT_LABEL},
    reference::ClusterName,
};
use drover_engine::{plan::Write, rollout::Give, work::replica_set::naming, workreport::Note};
use kube::{ResourceExt, api::ObjectMeta};

use super::{Case, WorkPlan};
use crate::{
    adopt::{Adopt, CreateOrAdopt},
    work::placed::PlacedWork,
};

impl Case<'_> {
    /// Has the work of a cluster say what the template says.
    pub(super) fn give(&self, give: &Give, plan: &mut WorkPlan) {
        let placement = &self.placements[give.entry].rollout.name;
        match self.work_on(&give.cluster) {
            Some(work) => {
                plan.parallel.push(Write::replace(work, self.given(work.metadata.clone(), placement)));
            }
            None => plan.actions.push(self.make(&give.cluster, placement)),
        }
    }

    /// Makes the work of a cluster.
    fn make(&self, cluster: &ClusterName, placement: &str) -> CreateOrAdopt<PlacedWork> {
        let (name, namespace) = (Some(self.work_name()), Some(cluster.to_string()));
        CreateOrAdopt::new(self.given(ObjectMeta { name, namespace, ..ObjectMeta::default() }, placement))
    }

    /// A work that says what the template says from now on.
    fn given(&self, metadata: ObjectMeta, placement: &str) -> PlacedWork {
        let mut work = PlacedWork::new(metadata, Arc::clone(&self.blueprint.template));
        let note = Note { set: self.blueprint.goal.clone(), since: self.now };
        work.annotations_mut().insert(GIVEN_ANNOTATION.to_owned(), note.write());
        work.annotations_mut().remove(PROVEN_ANNOTATION);
        self.label(&mut work, placement);
        work
    }

    /// Puts the labels on a work that it has from its set. Others that are there stay.
    pub(super) fn label(&self, work: &mut PlacedWork, placement: &str) {
        let labels = work.labels_mut();
        labels.extend(self.set.labels().clone());
        labels.insert(REPLICA_SET_LABEL.to_owned(), naming::owner_label(&self.key.namespace, &self.key.name));
        labels.insert(WORK_PLACEMENT_LABEL.to_owned(), placement.to_owned());
    }
}

impl Adopt for PlacedWork {
    /// The hub has made it if it has the hub's annotation, and belongs to no other set if it has no label.
    fn adopted(there: &Self, wanted: &Self) -> Option<Self> {
        if !there.annotations().contains_key(GIVEN_ANNOTATION) || there.labels().contains_key(REPLICA_SET_LABEL) {
            return None;
        }
        let mut adopted = Self { metadata: there.metadata.clone(), ..wanted.clone() };
        adopted.labels_mut().extend(wanted.labels().clone());
        adopted.annotations_mut().extend(wanted.annotations().clone());
        Some(adopted)
    }
}
