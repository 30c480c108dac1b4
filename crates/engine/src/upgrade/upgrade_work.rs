//! The works of upgrades, as far as decisions need them: what they are for, and what their agents report.

use drover_api::{
    grammar::SetFingerprint,
    names::{GIVEN_ANNOTATION, UPGRADE_LABEL, UPGRADE_PART_LABEL},
    work::ManifestWork,
};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::{naming::Part, platform::Order, work::PartWork};
use crate::{
    manifestwork::{NewWork, WorkMetadata, WorkPatch, is_view_of_work},
    workreport::Note,
};

/// A work of an upgrade. Its spec is most of it, and is not kept.
#[derive(Clone, Debug, PartialEq)]
pub struct UpgradeWork {
    metadata: WorkMetadata,
    /// The name of the ClusterUpgrade that it is for.
    part_name: Box<str>,
    /// What it is for, and what is reported of it; `None` if that is not known.
    part: Option<(Part, PartWork)>,
}

is_view_of_work!(UpgradeWork);

impl UpgradeWork {
    /// What is kept of a work; `None` if it is of no upgrade.
    #[must_use]
    pub fn of(work: &ManifestWork, metadata: &WorkMetadata) -> Option<Self> {
        let part_name = work.labels().get(UPGRADE_LABEL)?;
        let part = work.labels().get(UPGRADE_PART_LABEL).and_then(|label| Part::read(label));
        let note = work.annotations().get(GIVEN_ANNOTATION).and_then(|note| Note::read(note));
        // Without its note, it is not known what it was sent for.
        let created = work.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        let note = note.unwrap_or(Note { set: SetFingerprint::of([0; 8]), since: created });
        Some(Self {
            metadata: WorkMetadata::clone(metadata),
            part_name: part_name.as_str().into(),
            part: part.map(|part| (part, PartWork::of(work, part, note))),
        })
    }

    /// The name of the ClusterUpgrade that it is for.
    #[must_use]
    pub fn part_name(&self) -> &str {
        &self.part_name
    }

    /// Whether it is being deleted.
    pub(super) fn is_leaving(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// What it is for, and what is reported of it.
    #[must_use]
    pub fn part(&self) -> Option<(Part, &PartWork)> {
        self.part.as_ref().map(|(part, work)| (*part, work))
    }
}

/// The work of a part on a cluster.
pub(super) fn new_work(cluster: &str, part: Part, part_name: &str, order: Order, now: Timestamp) -> NewWork {
    let mut work = NewWork::new(cluster, part.work_name(cluster, part_name), order.spec);
    work.labels_mut().insert(UPGRADE_LABEL.to_owned(), part_name.to_owned());
    work.labels_mut().insert(UPGRADE_PART_LABEL.to_owned(), part.label().to_owned());
    let note = Note { set: order.name, since: now };
    work.annotations_mut().insert(GIVEN_ANNOTATION.to_owned(), note.write());
    work
}

/// The change by which the work of a part has another spec from now on.
pub(super) fn resent(part: Part, order: Order, now: Timestamp) -> WorkPatch {
    let mut patch = WorkPatch::default();
    patch.label(UPGRADE_PART_LABEL, part.label());
    patch.annotate(GIVEN_ANNOTATION, Note { set: order.name, since: now }.write());
    patch.replace_spec(order.spec);
    patch
}
