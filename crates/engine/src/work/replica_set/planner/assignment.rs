//! Works with the spec of the template: created, replaced, and labelled as those of their set.

use std::sync::Arc;

use drover_api::{
    names::{GIVEN_ANNOTATION, PROVEN_ANNOTATION, REPLICA_SET_LABEL, WORK_PLACEMENT_LABEL},
    reference::ClusterName,
};
use kube::{Resource, ResourceExt, core::ObjectMeta};

use super::ReplicaSetPlanner;
use crate::{
    plan::{Plan, Write},
    rollout::Give,
    work::replica_set::{facts::ReplicaSetFacts, naming, placed_work::PlacedWork},
    workreport::Note,
};

impl<F: ReplicaSetFacts> ReplicaSetPlanner<'_, F> {
    /// Assigns the template to a cluster.
    pub(super) fn assign(&self, give: &Give, plan: &mut Plan<F::Action>) {
        let placement = &self.placements[give.entry].rollout.name;
        match self.work_on(&give.cluster) {
            Some(work) => {
                plan.parallel.push(Write::replace(work, self.assigned(work.meta().clone(), placement)));
            }
            None => plan.actions.push(self.facts.create(self.new_work(&give.cluster, placement))),
        }
    }

    fn new_work(&self, cluster: &ClusterName, placement: &str) -> PlacedWork {
        let (name, namespace) = (Some(self.work_name()), Some(cluster.to_string()));
        self.assigned(ObjectMeta { name, namespace, ..ObjectMeta::default() }, placement)
    }

    /// A work that has the spec of the template from now on.
    fn assigned(&self, metadata: ObjectMeta, placement: &str) -> PlacedWork {
        let mut work = PlacedWork::new(metadata, Arc::clone(&self.template.spec));
        let note = Note { set: self.template.goal.clone(), since: self.now };
        work.annotations_mut().insert(GIVEN_ANNOTATION.to_owned(), note.write());
        work.annotations_mut().remove(PROVEN_ANNOTATION);
        self.label(&mut work, placement);
        work
    }

    /// Adds the labels that a work has from its set. Others stay.
    pub(super) fn label(&self, work: &mut PlacedWork, placement: &str) {
        let labels = work.labels_mut();
        labels.extend(self.set.labels().clone());
        labels.insert(REPLICA_SET_LABEL.to_owned(), naming::owner_label(&self.key.namespace, &self.key.name));
        labels.insert(WORK_PLACEMENT_LABEL.to_owned(), placement.to_owned());
    }
}
