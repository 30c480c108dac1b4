//! Objects, as they are kept and as they are shown.
//!
//! What is kept does not say its kind and version: it is shown in any version that is served, and those differ in nothing else. Since fields are
//! sorted by their names, both are put in front.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::Value;

use crate::{
    catalog::{core_event, new_event},
    kind::{Kind, Scope, Version},
    store::{Key, Resource, Stored},
};

/// Where objects of a kind are kept. Events of both groups are the same.
pub(crate) fn resource_of(kind: &Kind) -> Resource {
    let group = if is_event(kind) { "" } else { &kind.group };
    Resource::new(group, &kind.plural)
}

/// Whether these are events under their newer name.
fn is_event(kind: &Kind) -> bool {
    kind.group == "events.k8s.io" && kind.plural == "events"
}

/// One object, which need not be there.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) kind: Arc<Kind>,
    pub(crate) key: Key,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl Subject {
    pub(crate) fn new(kind: &Arc<Kind>, namespace: Option<&str>, name: &str) -> Self {
        let namespace = namespace.filter(|_| kind.scope == Scope::Namespaced);
        Self {
            kind: Arc::clone(kind),
            key: Key::new(&resource_of(kind), namespace, name),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    /// What is kept of an object.
    pub(crate) fn kept_form(&self, mut object: Value) -> Value {
        if let Some(fields) = object.as_object_mut() {
            if is_event(&self.kind) {
                core_event(fields);
            }
            fields.remove("apiVersion");
            fields.remove("kind");
        }
        object
    }
}

/// An object in one of its versions.
pub(crate) fn shown(stored: &Stored, kind: &Kind, version: &Version) -> Value {
    shown_value(stored.value(), kind, version)
}

/// A kept object in one of its versions.
pub(crate) fn shown_value(mut object: Value, kind: &Kind, version: &Version) -> Value {
    if let Some(fields) = object.as_object_mut() {
        if is_event(kind) {
            new_event(fields);
        }
        fields.insert("apiVersion".to_owned(), kind.api_version(&version.name).into());
        fields.insert("kind".to_owned(), kind.kind.clone().into());
    }
    object
}

/// What stands in front of a kept object when it is shown.
pub(crate) fn type_prefix(kind: &Kind, version: &Version) -> String {
    // Neither has a character that JSON would want escaped.
    format!("{{\"apiVersion\":\"{}\",\"kind\":\"{}\"", kind.api_version(&version.name), kind.kind)
}

/// Writes an object as it is shown among others: within the limit of depth, so that clients can
/// read the others.
pub(crate) fn write_shown(to: &mut BytesMut, stored: &Stored, kind: &Kind, version: &Version, prefix: &str) {
    if is_event(kind) {
        to.put_slice(shown(stored, kind, version).to_string().as_bytes());
        return;
    }
    write_typed(to, &stored.bounded(), prefix);
}

fn write_typed(to: &mut BytesMut, object: &[u8], prefix: &str) {
    let rest = object.get(1..).unwrap_or_default();
    to.put_slice(prefix.as_bytes());
    if rest.first().is_some_and(|first| *first != b'}') {
        to.put_u8(b',');
    }
    to.put_slice(rest);
}

/// An object as it is shown by itself, in JSON: all of it, however deeply it nests.
pub(crate) fn rendered(stored: &Stored, kind: &Kind, version: &Version) -> Bytes {
    let mut bytes = BytesMut::with_capacity(stored.bytes().len() + 128);
    if is_event(kind) {
        write_shown(&mut bytes, stored, kind, version, &type_prefix(kind, version));
    } else {
        write_typed(&mut bytes, stored.bytes(), &type_prefix(kind, version));
    }
    bytes.freeze()
}
