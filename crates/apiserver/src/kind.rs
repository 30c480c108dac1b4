//! The kinds that are served, and in which versions.

use std::sync::Arc;

use serde_json::Value;

use crate::{failure::About, schema::Schema};

/// A kind that is served, in all its versions.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The name in addresses, such as `configmaps`.
    pub plural: String,
    /// The name for one of them, such as `configmap`.
    pub singular: String,
    /// The name in objects, such as `ConfigMap`.
    pub kind: String,
    /// The name of lists in objects, such as `ConfigMapList`.
    pub list_kind: String,
    /// Names for who types them.
    pub short_names: Vec<String>,
    /// Names that stand for several kinds.
    pub categories: Vec<String>,
    /// Whether objects are in namespaces.
    pub scope: Scope,
    /// The versions, the preferred one first.
    pub versions: Vec<Version>,
    /// Where the kind comes from.
    pub origin: Origin,
}

/// Whether objects of a kind are in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// They are.
    Namespaced,
    /// They are not.
    Cluster,
}

/// Where a kind comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is always there.
    BuiltIn,
    /// It is always there, and nothing of it is kept: whoever creates one gets an answer.
    Review,
    /// A CustomResourceDefinition brings it.
    Custom,
}

/// One version of a kind.
#[derive(Clone, Debug)]
pub struct Version {
    /// Its name, such as `v1`.
    pub name: String,
    /// Whether it is served.
    pub is_served: bool,
    /// Whether objects are kept in it.
    pub is_stored: bool,
    /// What to tell whoever uses it, where it is on its way out.
    pub deprecation: Option<String>,
    /// What its objects are made of.
    pub schema: Arc<Schema>,
    /// The same as it was written, for whoever asks for it.
    pub openapi: Arc<Value>,
    /// What is shown of an object in a table, beside its name.
    pub columns: Vec<Column>,
    /// The parts of objects that have addresses of their own.
    pub subresources: Subresources,
    /// The fields, beside name and namespace, that objects can be selected by, as paths such as `.spec.color`.
    pub selectable_fields: Vec<String>,
}

/// The parts of objects that have addresses of their own.
#[derive(Clone, Debug, Default)]
pub struct Subresources {
    /// Whether the status is one.
    pub status: bool,
    /// Where the number of replicas is, if that is one.
    pub scale: Option<Scale>,
    /// Others, such as `approval` of certificate requests.
    pub others: Vec<&'static str>,
}

/// Where the number of replicas is in an object, as paths such as `.spec.replicas`.
#[derive(Clone, Debug)]
pub struct Scale {
    /// How many there are to be.
    pub spec_replicas: String,
    /// How many there are.
    pub status_replicas: String,
    /// The selector of their pods, written as text.
    pub label_selector: Option<String>,
}

/// Something that is shown of an object in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// The type in OpenAPI, `date` among them.
    pub type_: String,
    /// The format in OpenAPI.
    pub format: String,
    /// What it means.
    pub description: String,
    /// Zero if it is always shown.
    pub priority: i32,
    /// Where it is in the object.
    pub path: String,
}

impl Kind {
    /// The resource, as failures name it.
    #[must_use]
    pub fn resource(&self) -> About<'_> {
        About { group: &self.group, name: &self.plural }
    }

    /// The kind, as failures name it.
    #[must_use]
    pub fn about(&self) -> About<'_> {
        About { group: &self.group, name: &self.kind }
    }

    /// A version that is served.
    #[must_use]
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.is_served && version.name == name)
    }

    /// The version that objects are kept in.
    #[must_use]
    pub fn stored(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.is_stored)
    }

    /// What objects of a version say in `apiVersion`.
    #[must_use]
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }
}
