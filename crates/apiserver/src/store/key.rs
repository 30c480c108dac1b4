//! What objects are found by: their resource, and their place in it.

use std::{fmt, sync::Arc};

/// A resource: all objects of a kind, whatever their version. Copies share the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(Arc<str>);

impl Resource {
    /// The resource of a group; the core group's name is empty.
    #[must_use]
    pub fn new(group: &str, plural: &str) -> Self {
        Self(if group.is_empty() { plural.into() } else { format!("{plural}.{group}").into() })
    }

    /// The text it was made from, as it stands in a journal.
    pub(super) fn of(text: &str) -> Self {
        Self(text.into())
    }

    /// Its full name, such as `leases.coordination.k8s.io`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub(super) resource: Resource,
    pub(super) position: Arc<str>,
}

impl Key {
    /// The key of an object; one without a namespace is in none.
    #[must_use]
    pub fn new(resource: &Resource, namespace: Option<&str>, name: &str) -> Self {
        Self { resource: resource.clone(), position: position(namespace, name) }
    }
}

/// Where an object is in its resource. Objects are sorted by this text, and by its bytes, as they are in etcd: a namespace `a-b`
/// comes before `a`, because `-` comes before `/`.
fn position(namespace: Option<&str>, name: &str) -> Arc<str> {
    namespace.map_or_else(|| name.into(), |namespace| format!("{namespace}/{name}").into())
}

/// The part of a resource that somebody lists or watches.
///
/// The text is the position of an object, or that of a namespace with the slash, or empty for everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope(Arc<str>);

impl Scope {
    /// All objects.
    #[must_use]
    pub fn all() -> Self {
        Self("".into())
    }

    /// The objects of a namespace.
    #[must_use]
    pub fn namespace(namespace: &str) -> Self {
        Self(position(Some(namespace), ""))
    }

    /// One object alone.
    #[must_use]
    pub fn object(namespace: Option<&str>, name: &str) -> Self {
        Self(position(namespace, name))
    }

    /// All scopes that an object is in.
    pub(super) fn around(position: &str) -> impl Iterator<Item = &str> {
        let namespace = position.split_once('/').map(|(namespace, _)| &position[..=namespace.len()]);
        namespace.into_iter().chain([position, ""])
    }

    pub(super) fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn covers(&self, position: &str) -> bool {
        if self.is_all() || self.0.ends_with('/') { position.starts_with(&*self.0) } else { *position == *self.0 }
    }
}
