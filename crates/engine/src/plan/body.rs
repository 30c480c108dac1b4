//! Whole objects as the bodies of writes.

use std::{fmt, sync::Arc};

use serde_json::Value;

use super::Writable;

/// A whole object. It is serialised when it is sent, and once: plans may be dropped, and the
/// objects of one plan may share most of their content.
#[derive(Clone)]
pub struct Whole(Arc<dyn ToJson>);

/// What can be sent as JSON.
trait ToJson: Send + Sync {
    fn to_bytes(&self) -> serde_json::Result<Vec<u8>>;
    fn to_value(&self) -> serde_json::Result<Value>;
}

impl<K: Writable> ToJson for K {
    fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    fn to_value(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }
}

impl Whole {
    pub(super) fn new<K: Writable>(object: Arc<K>) -> Self {
        Self(object)
    }

    /// The object as it is sent.
    pub fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        self.0.to_bytes()
    }

    /// The object as JSON; null if it can not be serialised.
    pub(super) fn to_value(&self) -> Value {
        self.0.to_value().unwrap_or_default()
    }
}

impl PartialEq for Whole {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.to_value() == other.to_value()
    }
}

impl fmt::Debug for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_value(), f)
    }
}
