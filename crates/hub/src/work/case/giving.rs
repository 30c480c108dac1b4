//! Works that say what the template says: made, changed, and labelled as those of their set.

use std::sync::Arc;

use drover_api::{
    names::{GIVEN_ANNOTATION, PROVEN_ANNOTATION, REPLICA_SET_LABEL, WORK_PLACEMENT_LABEL},
    reference::ClusterName,
};
use drover_engine::{rollout::Give, work::replica_set::naming, workreport::Note};
use drover_runtime::write::Write;
use kube::{ResourceExt, api::ObjectMeta};

use super::Case;
use crate::{fleet::Fleet, work::placed::PlacedWork};

impl Case<'_> {
    /// Has the work of a cluster say what the template says.
    pub(super) fn give(&self, give: &Give) -> Write<Fleet> {
        let placement = &self.placements[give.entry].rollout.name;
        match self.work_on(&give.cluster) {
            Some(work) => Write::replace(work, self.given(work.metadata.clone(), placement)),
            None => self.make(&give.cluster, placement),
        }
    }

    /// Makes the work of a cluster.
    fn make(&self, cluster: &ClusterName, placement: &str) -> Write<Fleet> {
        let (name, namespace) = (Some(self.work_name()), Some(cluster.to_string()));
        let made = self.given(ObjectMeta { name, namespace, ..ObjectMeta::default() }, placement);
        let wanted = made.clone();
        Write::take(made, move |there: &PlacedWork| taken_back(there, &wanted))
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

/// A work that the hub has made and that does not say any more whose it is, as what is wanted; nothing if it is somebody else's.
fn taken_back(there: &PlacedWork, wanted: &PlacedWork) -> Option<PlacedWork> {
    if !there.annotations().contains_key(GIVEN_ANNOTATION) || there.labels().contains_key(REPLICA_SET_LABEL) {
        return None;
    }
    let mut taken = PlacedWork { metadata: there.metadata.clone(), ..wanted.clone() };
    taken.labels_mut().extend(wanted.labels().clone());
    taken.annotations_mut().extend(wanted.annotations().clone());
    Some(taken)
}
