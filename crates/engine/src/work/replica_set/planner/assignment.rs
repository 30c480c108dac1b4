//! Works with the spec of the template: created, changed, and labelled as those of their set.

use std::{collections::BTreeMap, sync::Arc};

use drover_api::{
    names::{GIVEN_ANNOTATION, PROVEN_ANNOTATION, REPLICA_SET_LABEL, WORK_PLACEMENT_LABEL},
    reference::ClusterName,
};
use kube::ResourceExt;

use super::ReplicaSetPlanner;
use crate::{
    manifestwork::{NewWork, WorkPatch},
    plan::Plan,
    rollout::Give,
    work::replica_set::{facts::ReplicaSetFacts, naming},
    workreport::Note,
};

impl<F: ReplicaSetFacts> ReplicaSetPlanner<'_, F> {
    /// Assigns the template to a cluster.
    pub(super) fn assign(&self, give: &Give, plan: &mut Plan<F::Action>) {
        let placement = &self.placements[give.entry].rollout.name;
        match self.work_on(&give.cluster) {
            Some(work) => plan.parallel.extend(self.assigned(work.lacking(self.labels(placement))).write(work)),
            None => plan.actions.push(self.facts.create(self.new_work(&give.cluster, placement))),
        }
    }

    fn new_work(&self, cluster: &ClusterName, placement: &str) -> NewWork {
        let mut work = NewWork::new(cluster.as_str(), self.work_name(), Arc::clone(&self.template.spec));
        work.labels_mut().extend(self.labels(placement));
        work.annotations_mut().insert(GIVEN_ANNOTATION.to_owned(), self.note().write());
        work
    }

    /// The change by which a work has the spec of the template from now on, and these labels.
    fn assigned(&self, labels: BTreeMap<String, String>) -> WorkPatch {
        let mut patch = WorkPatch::default();
        patch.set_labels(labels);
        patch.annotate(GIVEN_ANNOTATION, self.note().write());
        patch.remove_annotation(PROVEN_ANNOTATION);
        patch.replace_spec(Arc::clone(&self.template.spec));
        patch
    }

    fn note(&self) -> Note {
        Note { set: self.template.goal.clone(), since: self.now }
    }

    /// The labels that a work has from its set.
    pub(super) fn labels(&self, placement: &str) -> BTreeMap<String, String> {
        let mut labels = self.set.labels().clone();
        labels.insert(REPLICA_SET_LABEL.to_owned(), naming::owner_label(&self.key.namespace, &self.key.name));
        labels.insert(WORK_PLACEMENT_LABEL.to_owned(), placement.to_owned());
        labels
    }
}
