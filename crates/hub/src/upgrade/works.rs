//! The works of upgrades, as far as the hub keeps them: what they are for, and what their agents say of them.

use std::sync::Arc;

use drover_api::{
    grammar::SetFingerprint,
    names::{GIVEN_ANNOTATION, UPGRADE_LABEL, UPGRADE_PART_LABEL},
    work::{ManifestWork, ManifestWorkSpec},
};
use drover_engine::{
    upgrade::{naming::Part, platform::Order, work::PartWork},
    workreport::Note,
};
use k8s_openapi::jiff::Timestamp;
use kube::{ResourceExt, api::ObjectMeta, runtime::watcher};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Which works are those of upgrades.
pub(crate) fn upgrade_works() -> watcher::Config {
    watcher::Config::default().labels(UPGRADE_LABEL)
}

/// A work of an upgrade. What it applies is most of it, and is not kept.
#[derive(Clone, Debug)]
pub(crate) struct UpgradeWork {
    pub(super) metadata: ObjectMeta,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// What is stored: what it is for, and what is said of it. Nothing if nobody knows what it is for.
    Stored(Option<(Part, Box<PartWork>)>),
    /// This is to be written.
    Written(Arc<ManifestWorkSpec>),
}

impl UpgradeWork {
    /// The work of a part that says this from now on.
    pub(super) fn new(mut metadata: ObjectMeta, part: Part, part_name: &str, order: Order, now: Timestamp) -> Self {
        let labels = metadata.labels.get_or_insert_default();
        labels.insert(UPGRADE_LABEL.to_owned(), part_name.to_owned());
        labels.insert(UPGRADE_PART_LABEL.to_owned(), part.label().to_owned());
        let note = Note { set: order.name, since: now };
        metadata.annotations.get_or_insert_default().insert(GIVEN_ANNOTATION.to_owned(), note.write());
        Self { metadata, content: Content::Written(order.spec) }
    }

    /// The name of the ClusterUpgrade that it is for.
    pub(super) fn part_name(&self) -> Option<&str> {
        self.labels().get(UPGRADE_LABEL).map(String::as_str)
    }

    /// What it is for, and what is said of it.
    pub(super) fn part(&self) -> Option<(Part, &PartWork)> {
        match &self.content {
            Content::Stored(part) => part.as_ref().map(|(part, work)| (*part, &**work)),
            Content::Written(_) => None,
        }
    }
}

impl From<ManifestWork> for UpgradeWork {
    fn from(work: ManifestWork) -> Self {
        let part = work.labels().get(UPGRADE_PART_LABEL).and_then(|label| Part::read(label));
        let note = work.annotations().get(GIVEN_ANNOTATION).and_then(|note| Note::read(note));
        // One whose note somebody has taken off says something that nobody knows, since it was made.
        let made = work.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        let note = note.unwrap_or(Note { set: SetFingerprint::of([0; 8]), since: made });
        let stored = part.map(|part| (part, Box::new(PartWork::of(&work, part, note))));
        Self { metadata: work.metadata, content: Content::Stored(stored) }
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
            Content::Written(spec) => ManifestWorkSpec::clone(spec),
            // What is compared with each other then are the metadata.
            Content::Stored(_) => ManifestWorkSpec::default(),
        };
        ManifestWork { metadata: self.metadata.clone(), spec, status: None }.serialize(serializer)
    }
}

is_a_manifest_work!(UpgradeWork);
