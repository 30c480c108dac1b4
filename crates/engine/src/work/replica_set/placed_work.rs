//! The works of sets, as far as decisions need them: of which set they are, the fingerprint of their
//! spec, and what their agents report.

use std::collections::BTreeMap;

use drover_api::{
    grammar::SetFingerprint,
    names::{GIVEN_ANNOTATION, PROVEN_ANNOTATION, REPLICA_SET_LABEL},
    work::ManifestWork,
};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::{member::Placed, naming};
use crate::{
    manifestwork::{WorkMetadata, is_view_of_work},
    plan::ObjectKey,
    revision::markers::Proof,
    workreport::{
        Note, Report,
        template::{Rules, fingerprint},
    },
};

/// A work of a set. Its spec is most of it, and only the fingerprint of that is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedWork {
    metadata: WorkMetadata,
    set: ObjectKey,
    labels: Box<[(Box<str>, Box<str>)]>,
    content: SetFingerprint,
    rules: Rules,
    assigned: Option<Note>,
    recorded: Option<Proof>,
    report: Report,
}

is_view_of_work!(PlacedWork);

impl PlacedWork {
    /// What is kept of a work; `None` if it is of no set.
    #[must_use]
    pub fn of(work: &ManifestWork, metadata: &WorkMetadata) -> Option<Self> {
        let set = set_of(work)?;
        let labels = work.labels().iter().map(|(key, value)| (key.as_str().into(), value.as_str().into()));
        let annotation = |key: &str| work.annotations().get(key).map(String::as_str);
        let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        Some(Self {
            metadata: WorkMetadata::clone(metadata),
            set,
            labels: labels.collect(),
            content: fingerprint(&work.spec),
            rules: Rules::of(&work.spec),
            assigned: annotation(GIVEN_ANNOTATION).and_then(Note::read),
            recorded: annotation(PROVEN_ANNOTATION).and_then(Proof::from_annotation),
            report: Report::read(work.metadata.generation, conditions),
        })
    }

    /// The set that the work is of.
    #[must_use]
    pub fn set(&self) -> &ObjectKey {
        &self.set
    }

    /// Whether it is being deleted.
    pub(super) fn is_leaving(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Those of these labels that it lacks, or has with another value.
    pub(super) fn lacking(&self, wanted: BTreeMap<String, String>) -> BTreeMap<String, String> {
        let has = |key: &str, value: &str| self.labels.iter().any(|(label, text)| &**label == key && &**text == value);
        wanted.into_iter().filter(|(key, value)| !has(key, value)).collect()
    }

    /// What is known of it.
    pub(super) fn placed(&self) -> Placed {
        let created = self.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        let note = self.assigned.as_ref().filter(|note| note.set == self.content);
        Placed {
            set: self.content.clone(),
            rules: self.rules,
            given: note.map_or(created, |note| note.since),
            report: self.report,
            recorded: self.recorded.clone(),
        }
    }
}

fn set_of(work: &ManifestWork) -> Option<ObjectKey> {
    let (namespace, name) = naming::owner(work.labels().get(REPLICA_SET_LABEL)?)?;
    Some(ObjectKey::namespaced(namespace, name))
}

/// Whether a work that exists, and is of no set, is adopted under the name of a work of a set: the
/// hub has written it, and its label was removed.
#[must_use]
pub fn may_be_adopted(work: &ManifestWork) -> bool {
    work.annotations().contains_key(GIVEN_ANNOTATION) && !work.labels().contains_key(REPLICA_SET_LABEL)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use drover_api::work::ManifestWorkSpec;
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

    fn view(work: &Value) -> PlacedWork {
        let work: ManifestWork = serde_json::from_value(work.clone()).expect("a work");
        PlacedWork::of(&work, &Arc::new(work.metadata.clone())).expect("it is of a set")
    }

    #[test]
    fn of_a_spec_only_the_fingerprint_is_kept() {
        let stored = view(&work());
        let spec: ManifestWorkSpec = serde_json::from_value(work()["spec"].clone()).expect("a spec");
        let placed = stored.placed();
        assert_eq!(placed.set, fingerprint(&spec));
        assert_eq!(placed.given.to_string(), "2026-01-02T00:00:00Z", "no annotation says when it was assigned");
        assert!(placed.report.applied.is_some());
        assert_eq!(stored.set(), &ObjectKey::namespaced("default", "a.b"));
    }

    #[test]
    fn note_on_another_content_is_ignored() {
        let mut work = work();
        let note = Note { set: view(&work).placed().set, since: "2026-02-02T00:00:00Z".parse().expect("a time") };
        work["metadata"]["annotations"] = json!({ GIVEN_ANNOTATION: note.write() });
        assert_eq!(view(&work).placed().given, note.since);
        let other = Note { set: "ffffffffffffffff".parse().expect("a fingerprint"), ..note };
        work["metadata"]["annotations"] = json!({ GIVEN_ANNOTATION: other.write() });
        assert_eq!(view(&work).placed().given.to_string(), "2026-01-02T00:00:00Z");
    }

    #[test]
    fn labels_of_other_values_are_lacking() {
        let wanted = |pairs: [(&str, &str); 2]| pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let stored = view(&work());
        let lacking = stored.lacking(wanted([(REPLICA_SET_LABEL, "default.a.b"), ("team", "a")]));
        assert_eq!(lacking.keys().map(String::as_str).collect::<Vec<_>>(), ["team"]);
        assert_eq!(stored.lacking(wanted([(REPLICA_SET_LABEL, "default.c"), ("team", "a")])).len(), 2);
    }
}
