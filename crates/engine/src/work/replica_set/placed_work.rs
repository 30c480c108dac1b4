//! The works of sets, as far as decisions need them: of which set they are, the fingerprint of their
//! spec, and what their agents report.

use std::sync::Arc;

use drover_api::{
    grammar::SetFingerprint,
    names::{GIVEN_ANNOTATION, PROVEN_ANNOTATION, REPLICA_SET_LABEL},
    work::{ManifestWork, ManifestWorkSpec},
};
use k8s_openapi::jiff::Timestamp;
use kube::{Resource, ResourceExt, core::ObjectMeta};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{member::Placed, naming};
use crate::{
    plan::ObjectKey,
    revision::markers::Proof,
    workreport::{
        Note, Report,
        template::{Rules, fingerprint},
    },
};

/// A work of a set. Its spec is most of it, and only the fingerprint of that is kept.
#[derive(Clone, Debug, PartialEq, Resource)]
#[resource(inherit = ManifestWork)]
pub struct PlacedWork {
    metadata: ObjectMeta,
    content: WorkContent,
    report: Report,
}

/// What a work says.
#[derive(Clone, Debug, PartialEq)]
enum WorkContent {
    /// What is stored says something of this name, with rules that make these conditions.
    Stored(SetFingerprint, Rules),
    /// This is to be written.
    Written(Arc<ManifestWorkSpec>),
}

impl PlacedWork {
    /// A work with this spec.
    #[must_use]
    pub fn new(metadata: ObjectMeta, spec: Arc<ManifestWorkSpec>) -> Self {
        Self { metadata, content: WorkContent::Written(spec), report: Report::default() }
    }

    /// The set that the work is of.
    #[must_use]
    pub fn set(&self) -> Option<ObjectKey> {
        let (namespace, name) = naming::owner(self.labels().get(REPLICA_SET_LABEL)?)?;
        Some(ObjectKey::namespaced(namespace, name))
    }

    /// Whether it is being deleted.
    pub(super) fn is_leaving(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// What is known of it.
    pub(super) fn placed(&self) -> Placed {
        let (set, rules) = match &self.content {
            WorkContent::Stored(set, rules) => (set.clone(), *rules),
            WorkContent::Written(spec) => (fingerprint(spec), Rules::of(spec)),
        };
        let made = self.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        let note = self.annotations().get(GIVEN_ANNOTATION).and_then(|value| Note::read(value));
        let given = note.filter(|note| note.set == set).map_or(made, |note| note.since);
        let recorded = self.annotations().get(PROVEN_ANNOTATION).and_then(|value| Proof::from_annotation(value));
        Placed { set, rules, given, report: self.report, recorded }
    }

    /// This work with what others have added to the one that exists under its name; `None` if that one
    /// is not to be adopted. It is if it has the hub's annotation, and the label of no set.
    #[must_use]
    pub fn adopting(&self, there: &Self) -> Option<Self> {
        if !there.annotations().contains_key(GIVEN_ANNOTATION) || there.labels().contains_key(REPLICA_SET_LABEL) {
            return None;
        }
        let mut adopted = Self { metadata: there.metadata.clone(), ..self.clone() };
        adopted.labels_mut().extend(self.labels().clone());
        adopted.annotations_mut().extend(self.annotations().clone());
        Some(adopted)
    }
}

impl From<ManifestWork> for PlacedWork {
    fn from(work: ManifestWork) -> Self {
        let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let report = Report::read(work.metadata.generation, conditions);
        Self {
            content: WorkContent::Stored(fingerprint(&work.spec), Rules::of(&work.spec)),
            report,
            metadata: work.metadata,
        }
    }
}

impl<'de> Deserialize<'de> for PlacedWork {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ManifestWork::deserialize(deserializer).map(Self::from)
    }
}

impl Serialize for PlacedWork {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let spec = match &self.content {
            WorkContent::Written(spec) => ManifestWorkSpec::clone(spec),
            // What is compared with each other then are the metadata.
            WorkContent::Stored(..) => ManifestWorkSpec::default(),
        };
        ManifestWork { metadata: self.metadata.clone(), spec, status: None }.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn work() -> Value {
        let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
        let condition = json!({ "type": "Applied", "status": "True", "reason": "", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 4 });
        json!({
            "apiVersion": "work.open-cluster-management.io/v1",
            "kind": "ManifestWork",
            "metadata": { "name": "w", "namespace": "c", "generation": 4, "creationTimestamp": "2026-01-02T00:00:00Z",
                "labels": { (REPLICA_SET_LABEL): "default.a.b" } },
            "spec": { "workload": { "manifests": [manifest] } },
            "status": { "conditions": [condition] },
        })
    }

    #[test]
    fn of_what_is_stored_only_the_name_is_kept() {
        let stored: PlacedWork = serde_json::from_value(work()).expect("a work");
        let spec: ManifestWorkSpec = serde_json::from_value(work()["spec"].clone()).expect("a spec");
        let placed = stored.placed();
        assert_eq!(placed.set, fingerprint(&spec));
        assert_eq!(placed.given.to_string(), "2026-01-02T00:00:00Z", "nobody has noted when it was given");
        assert!(placed.report.applied.is_some());
        assert_eq!(stored.set(), Some(ObjectKey::namespaced("default", "a.b")));
        assert_eq!(serde_json::to_value(&stored).expect("JSON")["spec"], json!({}));
    }

    #[test]
    fn what_is_to_be_written_is_written_whole() {
        let spec: ManifestWorkSpec = serde_json::from_value(work()["spec"].clone()).expect("a spec");
        let written = PlacedWork::new(ObjectMeta::default(), Arc::new(spec.clone()));
        let json = serde_json::to_value(&written).expect("JSON");
        assert_eq!((&json["kind"], &json["spec"]), (&json!("ManifestWork"), &work()["spec"]));
        assert_eq!(written.placed().set, fingerprint(&spec));
    }

    #[test]
    fn a_note_on_something_else_is_not_believed() {
        let mut stored: PlacedWork = serde_json::from_value(work()).expect("a work");
        let note = Note { set: stored.placed().set, since: "2026-02-02T00:00:00Z".parse().expect("a time") };
        stored.annotations_mut().insert(GIVEN_ANNOTATION.to_owned(), note.write());
        assert_eq!(stored.placed().given, note.since);
        let other = Note { set: "ffffffffffffffff".parse().expect("a fingerprint"), ..note };
        stored.annotations_mut().insert(GIVEN_ANNOTATION.to_owned(), other.write());
        assert_eq!(stored.placed().given.to_string(), "2026-01-02T00:00:00Z");
    }
}
