//! Where an object is.

use std::{fmt, sync::Arc};

use kube::{Resource, core::ObjectMeta};

/// Where an object is: its namespace, if it is in one, and its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The namespace; empty for objects that are in none.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// An object in a namespace.
    #[must_use]
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// An object that is in no namespace.
    #[must_use]
    pub fn cluster_wide(name: &str) -> Self {
        Self::namespaced("", name)
    }

    /// Where `object` is.
    #[must_use]
    pub fn of<K: Resource>(object: &K) -> Self {
        Self::of_meta(object.meta())
    }

    /// Where the object with this metadata is.
    #[must_use]
    pub fn of_meta(meta: &ObjectMeta) -> Self {
        Self::namespaced(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}
