//! What kinds are made of, as OpenAPI: an index, and a document for each version of a group.
//!
//! The documents say what clients read in them, kubectl before all: which kind is at which path, what can be sent there and with which parameters, and
//! the schemas. They are made when the kinds change, and kept by whoever serves them.

pub mod older;
mod operations;
mod schemas;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, fmt::Write, sync::Arc};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::kind::{Kind, Origin, Version};

/// What is known about the schemas that others refer to, by their names.
pub type Definitions = Map<String, Value>;

/// What is said about one version of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Where it is under `/openapi/v3/`, such as `apis/apps/v1`.
    pub path: String,
    /// What changes with the text.
    pub hash: String,
    /// The document in JSON.
    pub text: String,
}

impl Document {
    /// Whether it is about a version of that group, which is not the core group.
    #[must_use]
    pub fn is_of_group(&self, group: &str) -> bool {
        let named = self.path.strip_prefix("apis/").and_then(|rest| rest.rsplit_once('/'));
        named.is_some_and(|(named, _)| named == group)
    }
}

/// A kind in one version.
#[derive(Clone, Copy)]
struct Served<'a> {
    kind: &'a Kind,
    version: &'a Version,
}

/// The documents of all versions of all groups. Those that are known stay as they are.
#[must_use]
pub fn documents(kinds: &[Arc<Kind>], definitions: &Definitions, known: &[Arc<Document>]) -> Vec<Arc<Document>> {
    let versions = kinds.iter().flat_map(|kind| kind.versions.iter().map(move |version| (kind, version)));
    let served = versions.filter(|(_, version)| version.is_served);
    let names: BTreeSet<_> = served.map(|(kind, version)| (kind.group.as_str(), version.name.as_str())).collect();
    let of_version = |(group, version)| {
        let known = known.iter().find(|document| document.path == path(group, version)).cloned();
        known.or_else(|| document(kinds, group, version, definitions).map(Arc::new))
    };
    names.into_iter().filter_map(of_version).collect()
}

/// Where the document of a version of a group is.
fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// The document of a version of a group, if anything is served in it.
#[must_use]
pub fn document(kinds: &[Arc<Kind>], group: &str, version: &str, definitions: &Definitions) -> Option<Document> {
    let of_group = kinds.iter().filter(|kind| kind.group == group);
    let served: Vec<_> = of_group.filter_map(|kind| Some(Served { kind, version: kind.version(version)? })).collect();
    let first = served.first()?;
    let path = path(group, version);
    let paths: Map<_, _> =
        served.iter().flat_map(|served| operations::paths(&format!("/{path}"), *served, definitions)).collect();
    let info = match first.kind.origin {
        Origin::Custom => json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}),
        Origin::BuiltIn | Origin::Review => json!({"title": "Kubernetes", "version": "unversioned"}),
    };
    let schemas = schemas::all(&served, &paths, definitions);
    let document = json!({"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}});
    let text = document.to_string();
    Some(Document { path, hash: hash(&text), text })
}

/// The answer to `/openapi/v3`: where each document is. The address changes with the document, so that clients may keep it forever.
#[must_use]
pub fn index(documents: &[Arc<Document>]) -> Value {
    let entry = |document: &Arc<Document>| {
        let url = format!("/openapi/v3/{}?hash={}", document.path, document.hash);
        (document.path.clone(), json!({"serverRelativeURL": url}))
    };
    json!({"paths": documents.iter().map(entry).collect::<Map<_, _>>()})
}

fn hash(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        // Writing to a text does not fail.
        let _ = write!(hex, "{byte:02X}");
        hex
    })
}

impl Served<'_> {
    fn group_version_kind(self, kind: &str) -> Value {
        json!({"group": self.kind.group, "version": self.version.name, "kind": kind})
    }

    /// The name of a schema of this group and version.
    fn schema_name(self, kind: &str, definitions: &Definitions) -> String {
        if self.kind.origin == Origin::Custom {
            let group: Vec<_> = self.kind.group.rsplit('.').collect();
            return format!("{}.{}.{kind}", group.join("."), self.version.name);
        }
        let wanted = self.group_version_kind(kind);
        let known = definitions.iter().find(|(_, schema)| schemas::is_of_kind(schema, &wanted));
        known.map_or_else(|| self.usual_schema_name(kind), |(name, _)| name.clone())
    }

    /// The name that a schema of a built-in kind has by its package.
    fn usual_schema_name(self, kind: &str) -> String {
        let package = match self.kind.group.as_str() {
            "" => "api.core",
            "apiextensions.k8s.io" => "apiextensions-apiserver.pkg.apis.apiextensions",
            group => {
                return format!("io.k8s.api.{}.{}.{kind}", group.split('.').next().unwrap_or(group), self.version.name);
            }
        };
        format!("io.k8s.{package}.{}.{kind}", self.version.name)
    }
}
