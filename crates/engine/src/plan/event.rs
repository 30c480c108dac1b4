//! Events: what a controller reports about an object, for people who look at it.

use std::hash::{Hash, Hasher};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;

/// A report about an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The object.
    pub about: ObjectReference,
    /// Whether to look into it.
    pub severity: Severity,
    /// One word in CamelCase.
    pub reason: &'static str,
    /// A sentence.
    pub note: String,
}

/// Whether an event calls for attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// It went as it should.
    Normal,
    /// It calls for attention.
    Warning,
}

impl Severity {
    /// The type of the event, as Kubernetes calls it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl Eq for Event {}

impl Hash for Event {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let ObjectReference { namespace, name, .. } = &self.about;
        (namespace, name, self.severity, self.reason, &self.note).hash(state);
    }
}

impl Event {
    /// Something went as it should. The reason is one word in CamelCase, the note a sentence.
    pub fn normal<K: Resource<DynamicType = ()>>(about: &K, reason: &'static str, note: impl Into<String>) -> Self {
        Self { about: about.object_ref(&()), severity: Severity::Normal, reason, note: note.into() }
    }

    /// Something calls for attention. The reason is one word in CamelCase, the note a sentence.
    pub fn warning<K: Resource<DynamicType = ()>>(about: &K, reason: &'static str, note: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::normal(about, reason, note) }
    }

    /// A warning about an object that is known by reference alone.
    pub fn warning_about(about: ObjectReference, reason: &'static str, note: impl Into<String>) -> Self {
        Self { about, severity: Severity::Warning, reason, note: note.into() }
    }
}
