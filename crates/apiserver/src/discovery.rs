//! What is served: groups, versions, kinds and what can be done with them, in the old form with one answer for each version and in the new form with
//! one for all of them.

#[cfg(test)]
mod tests;
mod verbs;
mod versions;

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use self::verbs::{Part, parts};
use crate::{
    catalog,
    kind::{Kind, Origin, Scope, Version},
};

/// The content type of an answer about everything.
pub const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Which half of the API an answer is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// `/api`: the core group.
    Core,
    /// `/apis`: all other groups.
    Groups,
}

/// The answer to `/api`, from a server that clients reach at this address.
#[must_use]
pub fn api_versions(server_address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}],
    })
}

/// The answer to `/apis`: the built-in groups, and then all others.
#[must_use]
pub fn group_list(kinds: &[Arc<Kind>]) -> Value {
    let mut groups = groups(kinds, Root::Groups);
    // There is a service for each version of a group, and groups are listed by the first name of those.
    let first_service = |group: &str| versions::of(kinds, group).into_iter().min().map(str::to_owned);
    groups.sort_by_cached_key(|group| {
        catalog::place_of_group(group).map_or_else(|| (usize::MAX, first_service(group)), |place| (place, None))
    });
    let groups: Vec<_> = groups.into_iter().map(|group| group_body(kinds, group)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// The answer to `/apis/{group}`, if there is such a group.
#[must_use]
pub fn group(kinds: &[Arc<Kind>], group: &str) -> Option<Value> {
    let mut body = groups(kinds, Root::Groups).contains(&group).then(|| group_body(kinds, group))?;
    body.insert("kind".to_owned(), json!("APIGroup"));
    body.insert("apiVersion".to_owned(), json!("v1"));
    Some(Value::Object(body))
}

/// The answer to `/api/v1` and to `/apis/{group}/{version}`, if there is such a version.
#[must_use]
pub fn resource_list(kinds: &[Arc<Kind>], group: &str, version: &str) -> Option<Value> {
    let served = served(kinds, group, version);
    if served.is_empty() {
        return None;
    }
    let resources = served.into_iter().flat_map(|(kind, version)| {
        let parts = parts(kind, version).into_iter().map(|part| part_resource(kind, &part));
        std::iter::once(resource(kind)).chain(parts).collect::<Vec<_>>()
    });
    let resources: Vec<_> = resources.collect();
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": group_version(group, version),
        "resources": resources,
    });
    // The core group never had a version in this place.
    if !group.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    Some(list)
}

/// The answer to `/api` and to `/apis` where everything is asked for at once.
#[must_use]
pub fn aggregated(kinds: &[Arc<Kind>], root: Root) -> Value {
    let items = groups(kinds, root).into_iter().map(|group| {
        let versions = versions::of(kinds, group).into_iter().map(|version| {
            let resources: Vec<_> =
                served(kinds, group, version).into_iter().map(|(kind, version)| discovered(kind, version)).collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        });
        let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
        json!({"metadata": metadata, "versions": versions.collect::<Vec<_>>()})
    });
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items.collect::<Vec<_>>(),
    })
}

/// The names of the groups that have something to serve.
fn groups(kinds: &[Arc<Kind>], root: Root) -> Vec<&str> {
    let mut groups: Vec<&str> = Vec::new();
    for kind in kinds.iter().filter(|kind| kind.group.is_empty() == (root == Root::Core)) {
        if kind.versions.iter().any(|version| version.is_served) && !groups.contains(&kind.group.as_str()) {
            groups.push(&kind.group);
        }
    }
    groups.sort_by_key(|group| (catalog::place_of_group(group).unwrap_or(usize::MAX), *group));
    groups
}

/// The kinds of a group that are served in a version, by their names.
fn served<'a>(kinds: &'a [Arc<Kind>], group: &str, version: &str) -> Vec<(&'a Kind, &'a Version)> {
    let of_group = kinds.iter().filter(|kind| kind.group == group);
    let mut served: Vec<_> = of_group.filter_map(|kind| Some((kind.as_ref(), kind.version(version)?))).collect();
    served.sort_by(|(a, _), (b, _)| a.plural.cmp(&b.plural));
    served
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn group_body(kinds: &[Arc<Kind>], group: &str) -> Map<String, Value> {
    let named = |version: &&str| json!({"groupVersion": group_version(group, version), "version": version});
    let versions: Vec<_> = versions::of(kinds, group).iter().map(named).collect();
    let mut body = Map::new();
    body.insert("name".to_owned(), json!(group));
    body.insert("preferredVersion".to_owned(), versions.first().cloned().unwrap_or_default());
    body.insert("versions".to_owned(), Value::Array(versions));
    body
}

fn resource(kind: &Kind) -> Value {
    let mut resource = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.scope == Scope::Namespaced,
        "kind": kind.kind,
        "verbs": verbs::of(kind),
    });
    add_names(&mut resource, kind);
    if kind.origin != Origin::Review {
        resource["storageVersionHash"] = json!(storage_version_hash(kind));
    }
    resource
}

/// What changes with the version in which objects are kept.
fn storage_version_hash(kind: &Kind) -> String {
    let stored = kind.stored().map(|version| version.name.as_str()).unwrap_or_default();
    let (group, version) = match kind.group.as_str() {
        // Events of both groups are kept as those of the core group.
        "events.k8s.io" => ("", stored),
        // The real server never went on from there.
        "apiextensions.k8s.io" => ("apiextensions.k8s.io", "v1beta1"),
        group => (group, stored),
    };
    let hash = Sha256::digest(format!("{group}/{version}/{}", kind.kind));
    BASE64_STANDARD.encode(&hash[..8])
}

fn part_resource(kind: &Kind, part: &Part) -> Value {
    let mut resource = json!({
        "name": format!("{}/{}", kind.plural, part.name),
        "singularName": "",
        "namespaced": kind.scope == Scope::Namespaced,
        "kind": part.kind.map_or(kind.kind.as_str(), |other| other.kind),
        "verbs": part.verbs,
    });
    if let Some(other) = part.kind.filter(|other| !other.group.is_empty()) {
        resource["group"] = json!(other.group);
        resource["version"] = json!(other.version);
    }
    resource
}

fn add_names(resource: &mut Value, kind: &Kind) {
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        resource["categories"] = json!(kind.categories);
    }
}

fn discovered(kind: &Kind, version: &Version) -> Value {
    // Built-in kinds leave out what their place in the answer says already.
    let own = match kind.origin {
        Origin::Custom => json!({"group": kind.group, "version": version.name, "kind": kind.kind}),
        Origin::BuiltIn | Origin::Review => json!({"group": "", "version": "", "kind": kind.kind}),
    };
    let parts = parts(kind, version).into_iter().map(|part| {
        let kind = part.kind.map_or_else(
            || own.clone(),
            |other| json!({"group": other.group, "version": other.version, "kind": other.kind}),
        );
        json!({"subresource": part.name, "responseKind": kind, "verbs": part.verbs})
    });
    let parts: Vec<_> = parts.collect();
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": own,
        "scope": match kind.scope {
            Scope::Namespaced => "Namespaced",
            Scope::Cluster => "Cluster",
        },
        "singularResource": kind.singular,
        "verbs": verbs::of(kind),
    });
    add_names(&mut resource, kind);
    if !parts.is_empty() {
        resource["subresources"] = Value::Array(parts);
    }
    resource
}
