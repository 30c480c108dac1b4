//! The works of upgrades, as far as decisions need them: what they are for, and what their agents report.

use std::sync::Arc;

use drover_api::{
    grammar::SetFingerprint,
    names::{GIVEN_ANNOTATION, UPGRADE_LABEL, UPGRADE_PART_LABEL},
    work::{ManifestWork, ManifestWorkSpec},
};
use k8s_openapi::jiff::Timestamp;
use kube::{Resource, ResourceExt, core::ObjectMeta};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{naming::Part, platform::Order, work::PartWork};
use crate::workreport::Note;

/// A work of an upgrade. Its spec is most of it, and is not kept.
#[derive(Clone, Debug, Resource)]
#[resource(inherit = ManifestWork)]
pub struct UpgradeWork {
    metadata: ObjectMeta,
    content: UpgradeWorkContent,
}

#[derive(Clone, Debug)]
enum UpgradeWorkContent {
    /// What is stored: what it is for, and what is reported of it. `None` if that is not known.
    Stored(Option<(Part, Box<PartWork>)>),
    /// This is to be written.
    Written(Arc<ManifestWorkSpec>),
}

impl UpgradeWork {
    /// The work of a part, with this spec from now on.
    #[must_use]
    pub fn new(mut metadata: ObjectMeta, part: Part, part_name: &str, order: Order, now: Timestamp) -> Self {
        let labels = metadata.labels.get_or_insert_default();
        labels.insert(UPGRADE_LABEL.to_owned(), part_name.to_owned());
        labels.insert(UPGRADE_PART_LABEL.to_owned(), part.label().to_owned());
        let note = Note { set: order.name, since: now };
        metadata.annotations.get_or_insert_default().insert(GIVEN_ANNOTATION.to_owned(), note.write());
        Self { metadata, content: UpgradeWorkContent::Written(order.spec) }
    }

    /// The name of the ClusterUpgrade that it is for.
    #[must_use]
    pub fn part_name(&self) -> Option<&str> {
        self.labels().get(UPGRADE_LABEL).map(String::as_str)
    }

    /// Whether it is being deleted.
    pub(super) fn is_leaving(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// What it is for, and what is reported of it.
    #[must_use]
    pub fn part(&self) -> Option<(Part, &PartWork)> {
        match &self.content {
            UpgradeWorkContent::Stored(part) => part.as_ref().map(|(part, work)| (*part, &**work)),
            UpgradeWorkContent::Written(_) => None,
        }
    }
}

impl From<ManifestWork> for UpgradeWork {
    fn from(work: ManifestWork) -> Self {
        let part = work.labels().get(UPGRADE_PART_LABEL).and_then(|label| Part::read(label));
        let note = work.annotations().get(GIVEN_ANNOTATION).and_then(|note| Note::read(note));
        // Without its note, it is not known what it was sent for.
        let made = work.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        let note = note.unwrap_or(Note { set: SetFingerprint::of([0; 8]), since: made });
        let stored = part.map(|part| (part, Box::new(PartWork::of(&work, part, note))));
        Self { metadata: work.metadata, content: UpgradeWorkContent::Stored(stored) }
    }
}

impl<'de> Deserialize<'de> for UpgradeWork {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ManifestWork::deserialize(deserializer).map(Self::from)
    }
}

impl Serialize for UpgradeWork {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let spec = match &self.content {
            UpgradeWorkContent::Written(spec) => ManifestWorkSpec::clone(spec),
            // What is compared with each other then are the metadata.
            UpgradeWorkContent::Stored(_) => ManifestWorkSpec::default(),
        };
        ManifestWork { metadata: self.metadata.clone(), spec, status: None }.serialize(serializer)
    }
}
