//! What can be done with kinds and with parts of objects, as a server lists it.

use crate::kind::{Kind, Origin, Version};

/// A part of objects that has an address of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subresource<'a> {
    /// The last part of the address.
    pub name: &'a str,
    /// The group of what is sent and answered; empty, like the version, where that is the object itself.
    pub group: &'a str,
    /// Its version.
    pub version: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// What can be done with it.
    pub verbs: &'static [&'static str],
}

/// What can be done with objects of a kind, in the order that a server has it in.
#[must_use]
pub fn verbs(kind: &Kind) -> &'static [&'static str] {
    match kind.origin {
        Origin::Review => &["create"],
        Origin::BuiltIn if kind.group.is_empty() && kind.plural == "namespaces" => {
            &["create", "delete", "get", "list", "patch", "update", "watch"]
        }
        Origin::BuiltIn => &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        Origin::Custom => &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
    }
}

/// The parts of objects of a version that have addresses of their own, in the order that a server has them in.
#[must_use]
pub fn subresources<'a>(kind: &'a Kind, version: &Version) -> Vec<Subresource<'a>> {
    let parts = &version.subresources;
    let mut names = parts.others.clone();
    names.extend(parts.status.then_some("status"));
    names.extend(parts.scale.as_ref().map(|_| "scale"));
    if kind.origin != Origin::Custom {
        names.sort_unstable();
    }
    names.into_iter().map(|name| subresource(kind, name)).collect()
}

fn subresource<'a>(kind: &'a Kind, name: &'static str) -> Subresource<'a> {
    let (group, version, kind) = match name {
        "scale" => ("autoscaling", "v1", "Scale"),
        "token" => ("authentication.k8s.io", "v1", "TokenRequest"),
        _ => ("", "", kind.kind.as_str()),
    };
    let verbs: &[_] = match name {
        "token" => &["create"],
        "finalize" => &["update"],
        _ => &["get", "patch", "update"],
    };
    Subresource { name, group, version, kind, verbs }
}
