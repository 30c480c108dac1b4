//! Writes: single requests that change one object, as data.

#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use kube::core::ObjectMeta;
use serde::Serialize;
use serde_json::Value;

use super::{
    Kind, ObjectKey, Stored, Writable,
    body::Body,
    difference::{difference_of, lack_of},
};

/// A request that changes one object. The cache has the answer before its key is planned again.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    kind: Kind,
    key: ObjectKey,
    operation: WriteOperation,
    precondition: Precondition,
}

/// How an object is written, and with what.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteOperation {
    /// Creates the object.
    Create(Body),
    /// Changes parts of the object.
    Patch {
        /// The JSON merge patch. It names the uid and resource version that it holds for.
        patch: Body,
        /// The part of the object that it is sent to, if that is not the object itself.
        subresource: Option<Subresource>,
    },
    /// Deletes the object.
    Delete,
}

/// The verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// An object is created.
    Create,
    /// An object is replaced. Only agents do so, on their own clusters.
    Update,
    /// Parts of an object are changed.
    Patch,
    /// An object is deleted.
    Delete,
}

impl Verb {
    /// The verb in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

/// A part of an object that is written by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    /// The status.
    Status,
    /// The decision on a signing request.
    Approval,
}

impl Subresource {
    /// Its name in paths.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Approval => "approval",
        }
    }
}

/// What must hold on the server for a write to be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// There is no object of this name.
    Absent,
    /// The object is still the one that was read, and has not changed since.
    Unchanged {
        /// Its uid.
        uid: String,
        /// Its resource version.
        resource_version: String,
    },
    /// None: the object is known by its name alone.
    None,
}

impl Precondition {
    fn unchanged(meta: &ObjectMeta) -> Self {
        match (&meta.uid, &meta.resource_version) {
            (Some(uid), Some(version)) => Self::Unchanged { uid: uid.clone(), resource_version: version.clone() },
            _ => Self::None,
        }
    }
}

impl Write {
    /// Creates an object.
    pub fn create<K: Writable>(object: K) -> Self {
        Self {
            kind: Kind::of::<K>(),
            key: ObjectKey::of(&object),
            operation: WriteOperation::Create(Body::new(Arc::new(object))),
            precondition: Precondition::Absent,
        }
    }

    /// Gives an object every field that `wanted` has, or creates it; `None` if it has them all.
    /// Fields that `wanted` does not have stay. A list becomes the one in `wanted`.
    pub fn ensure<K: Writable>(stored: Option<&K>, wanted: K) -> Option<Self> {
        match stored {
            None => Some(Self::create(wanted)),
            Some(stored) => Some(Self::patch(stored, lack_of(stored, &wanted)?, None)),
        }
    }

    /// Gives an object the status of `wanted`; `None` if it has it.
    pub fn status<K: Writable>(stored: &K, wanted: &K) -> Option<Self> {
        let patch = difference_of(stored, wanted, |field| field == "status")?;
        Some(Self::patch(stored, patch, Some(Subresource::Status)))
    }

    /// Gives a signing request the decision of `wanted`, which is part of its status; `None` if it
    /// has it.
    pub fn approval<K: Writable>(stored: &K, wanted: &K) -> Option<Self> {
        let patch = difference_of(stored, wanted, |field| field == "status")?;
        Some(Self::patch(stored, patch, Some(Subresource::Approval)))
    }

    /// Makes an object equal to `wanted`, except for its status; `None` if it is.
    pub fn update<K: Writable>(stored: &K, wanted: &K) -> Option<Self> {
        Some(Self::patch(stored, difference_of(stored, wanted, |field| field != "status")?, None))
    }

    /// Applies a merge patch to an object of which only parts are cached, so that the difference is
    /// not known. The patch has to name the uid and the resource version that it holds for.
    pub fn merge<K: Stored>(stored: &K, patch: impl Serialize + Send + Sync + 'static) -> Self {
        Self::patch(stored, patch, None)
    }

    /// Deletes an object, if it has not changed since it was read.
    pub fn delete<K: Stored>(stored: &K) -> Self {
        Self::of(stored, WriteOperation::Delete)
    }

    fn patch<K: Stored>(
        stored: &K,
        patch: impl Serialize + Send + Sync + 'static,
        subresource: Option<Subresource>,
    ) -> Self {
        Self::of(stored, WriteOperation::Patch { patch: Body::new(Arc::new(patch)), subresource })
    }

    fn of<K: Stored>(stored: &K, operation: WriteOperation) -> Self {
        Self {
            kind: Kind::of::<K>(),
            key: ObjectKey::of(stored),
            operation,
            precondition: Precondition::unchanged(stored.meta()),
        }
    }

    /// The kind of the object.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// How it is written, and with what.
    #[must_use]
    pub fn operation(&self) -> &WriteOperation {
        &self.operation
    }

    /// What must hold on the server.
    #[must_use]
    pub fn precondition(&self) -> &Precondition {
        &self.precondition
    }

    /// The verb of the request.
    #[must_use]
    pub fn verb(&self) -> Verb {
        match self.operation {
            WriteOperation::Create(_) => Verb::Create,
            WriteOperation::Patch { .. } => Verb::Patch,
            WriteOperation::Delete => Verb::Delete,
        }
    }

    /// The part of the object that is written, if it is not the object itself.
    #[must_use]
    pub fn subresource(&self) -> Option<Subresource> {
        match self.operation {
            WriteOperation::Patch { subresource, .. } => subresource,
            _ => None,
        }
    }

    /// What is sent, as JSON.
    #[must_use]
    pub fn body(&self) -> Option<Value> {
        match &self.operation {
            WriteOperation::Create(body) | WriteOperation::Patch { patch: body, .. } => Some(body.to_value()),
            WriteOperation::Delete => None,
        }
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} {}", self.verb(), self.kind.kind, self.key)
    }
}
