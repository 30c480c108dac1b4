//! What can be done with kinds, and with parts of their objects.

use crate::kind::{Kind, Origin, Version};

const ALL: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// The same for custom kinds, which nobody ever sorted.
const CUSTOM: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// Namespaces can only be deleted one by one.
const NAMESPACE: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const CHANGE: &[&str] = &["get", "patch", "update"];
const CREATE: &[&str] = &["create"];

/// What can be done with a kind.
pub(super) fn of(kind: &Kind) -> &'static [&'static str] {
    match (kind.origin, kind.group.as_str(), kind.plural.as_str()) {
        (Origin::Custom, ..) => CUSTOM,
        (Origin::Review, ..) => CREATE,
        (Origin::BuiltIn, "", "namespaces") => NAMESPACE,
        (Origin::BuiltIn, ..) => ALL,
    }
}

/// A part of objects with an address of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) name: &'static str,
    /// The kind of what is sent there, where that is not the kind itself.
    pub(super) kind: Option<OtherKind>,
    pub(super) verbs: &'static [&'static str],
}

/// A kind by its names.
#[derive(Clone, Copy, Debug)]
pub(super) struct OtherKind {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
}

const STATUS: Part = Part { name: "status", kind: None, verbs: CHANGE };
const SCALE: Part =
    Part { name: "scale", kind: Some(OtherKind { group: "autoscaling", version: "v1", kind: "Scale" }), verbs: CHANGE };

/// The parts of a kind's objects that have addresses of their own.
pub(super) fn parts(kind: &Kind, version: &Version) -> Vec<Part> {
    let status = version.subresources.status.then_some(STATUS);
    let scale = version.subresources.scale.as_ref().map(|_| SCALE);
    let others = version.subresources.others.iter().map(|name| other(name));
    let mut parts: Vec<_> = status.into_iter().chain(scale).chain(others).collect();
    if kind.origin != Origin::Custom {
        parts.sort_by_key(|part| part.name);
    }
    parts
}

fn other(name: &'static str) -> Part {
    let sent = |group, version, kind| Some(OtherKind { group, version, kind });
    let (kind, verbs): (_, &[&str]) = match name {
        "finalize" => (None, &["update"]),
        "log" => (None, &["get"]),
        "token" => (sent("authentication.k8s.io", "v1", "TokenRequest"), CREATE),
        "eviction" => (sent("policy", "v1", "Eviction"), CREATE),
        "binding" => (sent("", "", "Binding"), CREATE),
        _ => (None, CHANGE),
    };
    Part { name, kind, verbs }
}
