//! Merge patches of works.

use std::{collections::BTreeMap, sync::Arc};

use drover_api::work::ManifestWorkSpec;
use serde::Serialize;

use super::spec_patch::SpecPatch;
use crate::plan::{Stored, Write};

/// What is changed of a work. Labels and annotations that it does not name stay as they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkPatch {
    labels: Changes,
    annotations: Changes,
    spec: Option<Arc<ManifestWorkSpec>>,
}

/// Values to set, and keys to remove.
type Changes = BTreeMap<String, Option<String>>;

/// The patch, for the state of the work that was read and no other.
#[derive(Serialize)]
struct Sent {
    metadata: Metadata,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<SpecPatch>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: Option<String>,
    resource_version: Option<String>,
    #[serde(skip_serializing_if = "Changes::is_empty")]
    labels: Changes,
    #[serde(skip_serializing_if = "Changes::is_empty")]
    annotations: Changes,
}

impl WorkPatch {
    /// Sets a label.
    pub fn label(&mut self, key: &str, value: impl Into<String>) {
        self.labels.insert(key.to_owned(), Some(value.into()));
    }

    /// Sets labels.
    pub fn set_labels(&mut self, labels: BTreeMap<String, String>) {
        self.labels.extend(labels.into_iter().map(|(key, value)| (key, Some(value))));
    }

    /// Removes a label.
    pub fn remove_label(&mut self, key: &str) {
        self.labels.insert(key.to_owned(), None);
    }

    /// Sets an annotation.
    pub fn annotate(&mut self, key: &str, value: impl Into<String>) {
        self.annotations.insert(key.to_owned(), Some(value.into()));
    }

    /// Removes an annotation.
    pub fn remove_annotation(&mut self, key: &str) {
        self.annotations.insert(key.to_owned(), None);
    }

    /// Replaces the spec.
    pub fn replace_spec(&mut self, spec: Arc<ManifestWorkSpec>) {
        self.spec = Some(spec);
    }

    /// The write that applies it to a work; `None` if it changes nothing.
    #[must_use]
    pub fn write<K: Stored>(self, stored: &K) -> Option<Write> {
        let Self { labels, annotations, spec } = self;
        if labels.is_empty() && annotations.is_empty() && spec.is_none() {
            return None;
        }
        let meta = stored.meta();
        let (uid, resource_version) = (meta.uid.clone(), meta.resource_version.clone());
        let metadata = Metadata { uid, resource_version, labels, annotations };
        Some(Write::merge(stored, Sent { metadata, spec: spec.map(SpecPatch) }))
    }
}

#[cfg(test)]
mod tests {
    use drover_api::work::ManifestWork;
    use serde_json::json;

    use super::*;

    fn stored() -> ManifestWork {
        let mut work = ManifestWork::new("w", ManifestWorkSpec::default());
        work.metadata.namespace = Some("one".to_owned());
        (work.metadata.uid, work.metadata.resource_version) = (Some("u".to_owned()), Some("7".to_owned()));
        work
    }

    #[test]
    fn patch_of_nothing_is_no_write() {
        assert_eq!(WorkPatch::default().write(&stored()), None);
    }

    #[test]
    fn patch_names_the_state_that_was_read_and_what_it_changes() {
        let mut patch = WorkPatch::default();
        patch.label("a", "b");
        patch.annotate("c", "d");
        patch.remove_annotation("e");
        let body = patch.write(&stored()).and_then(|write| write.body()).expect("a patch");
        let metadata = json!({ "uid": "u", "resourceVersion": "7", "labels": { "a": "b" },
            "annotations": { "c": "d", "e": null } });
        assert_eq!(body, json!({ "metadata": metadata }));
    }
}
