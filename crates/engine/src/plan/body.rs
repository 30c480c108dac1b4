//! The bodies of writes.

use std::{fmt, sync::Arc};

use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::{Value, value::RawValue};

/// What is sent with a write. It is serialised when it is sent, and once: plans may be dropped, and
/// the bodies of one plan may share most of their content.
#[derive(Clone)]
pub struct Body(Arc<dyn ToJson>);

/// What can be sent as JSON.
trait ToJson: Send + Sync {
    fn to_bytes(&self) -> serde_json::Result<Vec<u8>>;
    fn to_value(&self) -> serde_json::Result<Value>;
}

impl<T: Serialize + Send + Sync> ToJson for T {
    fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    fn to_value(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }
}

impl Body {
    pub(super) fn new<T: Serialize + Send + Sync + 'static>(content: Arc<T>) -> Self {
        Self(content)
    }

    /// The body as it is sent.
    pub fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        self.0.to_bytes()
    }

    /// The body as JSON; null if it can not be serialised.
    pub(super) fn to_value(&self) -> Value {
        self.0.to_value().unwrap_or_default()
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = String::from_utf8(self.to_bytes().map_err(S::Error::custom)?).map_err(S::Error::custom)?;
        RawValue::from_string(text).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.to_value() == other.to_value()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_value(), f)
    }
}
