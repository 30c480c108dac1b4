//! The manifests of a work, read once.

use drover_api::work::ManifestResourceMeta;
use serde_json::{Map, Value};

/// A manifest, and which object it is for. What there is none of, such as the name of the core group, is empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Its place in the work, from 0.
    pub ordinal: i32,
    /// The object's API group.
    pub group: String,
    /// The version of its API.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// All of the manifest.
    pub object: Value,
}

/// Where the objects of a kind are on a cluster, as its discovery says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The resource, in lower case and plural.
    pub resource: String,
    /// Whether objects of the kind are in namespaces.
    pub namespaced: bool,
}

/// A manifest for an object whose place on the cluster is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The manifest, without a namespace if objects of its kind have none.
    pub manifest: Manifest,
    /// The resource, in lower case and plural.
    pub resource: String,
}

/// What is wrong with a manifest, whatever the cluster makes of its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// It is a text, a list or the like.
    #[error("the manifest is not an object: write one with apiVersion, kind and metadata.name")]
    NotAnObject,
    /// It does not say what it is about.
    #[error("the manifest has no {0}: add it")]
    Without(&'static str),
    /// It leaves the choice of a name to the cluster.
    #[error("the manifest has metadata.generateName: set metadata.name, so that the object is found again")]
    GenerateName,
    /// It does not say where the object belongs.
    #[error("the {kind} {name} has no namespace: set metadata.namespace, as objects of this kind are in namespaces")]
    WithoutNamespace {
        /// The object's kind.
        kind: String,
        /// Its name.
        name: String,
    },
}

impl Manifest {
    /// Reads the manifest at a place in a work.
    pub fn read(ordinal: usize, object: &Value) -> Result<Self, Flaw> {
        let fields = object.as_object().ok_or(Flaw::NotAnObject)?;
        let metadata = fields.get("metadata").and_then(Value::as_object);
        let in_metadata = |field| metadata.map_or("", |metadata| text(metadata, field));
        let (group, version) = match text(fields, "apiVersion") {
            "" => return Err(Flaw::Without("apiVersion")),
            version => version.split_once('/').unwrap_or(("", version)),
        };
        let kind = match text(fields, "kind") {
            "" => return Err(Flaw::Without("kind")),
            kind => kind,
        };
        let name = match (in_metadata("name"), in_metadata("generateName")) {
            ("", "") => return Err(Flaw::Without("metadata.name")),
            ("", _) => return Err(Flaw::GenerateName),
            (name, _) => name,
        };
        Ok(Self {
            ordinal: as_ordinal(ordinal),
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            namespace: in_metadata("namespace").to_owned(),
            name: name.to_owned(),
            object: object.clone(),
        })
    }

    /// The object, as the status of a work names it. Where its kind was not found on the cluster, the resource is missing.
    #[must_use]
    pub fn resource_meta(&self, located: Option<&Located>) -> ManifestResourceMeta {
        let in_namespace = located.is_none_or(|located| located.namespaced);
        ManifestResourceMeta {
            ordinal: self.ordinal,
            group: not_empty(&self.group),
            version: not_empty(&self.version),
            kind: not_empty(&self.kind),
            resource: located.map(|located| located.resource.clone()),
            name: not_empty(&self.name),
            namespace: not_empty(&self.namespace).filter(|_| in_namespace),
        }
    }

    /// The manifest with the place of its object. A namespace that the kind does not know is taken from it, because servers refuse it.
    pub fn locate(&self, located: &Located) -> Result<Target, Flaw> {
        let mut manifest = self.clone();
        if !located.namespaced {
            manifest.namespace.clear();
            let metadata = manifest.object.get_mut("metadata").and_then(Value::as_object_mut);
            metadata.and_then(|metadata| metadata.remove("namespace"));
        } else if manifest.namespace.is_empty() {
            return Err(Flaw::WithoutNamespace { kind: manifest.kind, name: manifest.name });
        }
        Ok(Target { manifest, resource: located.resource.clone() })
    }
}

impl Target {
    /// The object, as the status of a work names it.
    #[must_use]
    pub fn resource_meta(&self) -> ManifestResourceMeta {
        let namespaced = !self.manifest.namespace.is_empty();
        self.manifest.resource_meta(Some(&Located { resource: self.resource.clone(), namespaced }))
    }

    /// Whether the object is of this kind, in some version of this group.
    pub(super) fn is(&self, group: &str, kind: &str) -> bool {
        self.manifest.group == group && self.manifest.kind == kind
    }
}

/// What the status of a work says of a manifest that can not be read: where it stands.
#[must_use]
pub fn unreadable_meta(ordinal: usize) -> ManifestResourceMeta {
    ManifestResourceMeta { ordinal: as_ordinal(ordinal), ..ManifestResourceMeta::default() }
}

fn text<'a>(fields: &'a Map<String, Value>, field: &str) -> &'a str {
    fields.get(field).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn not_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn as_ordinal(place: usize) -> i32 {
    i32::try_from(place).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config_map() -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "b" } })
    }

    fn flaw(object: &Value) -> String {
        Manifest::read(0, object).expect_err("it has a flaw").to_string()
    }

    #[test]
    fn a_manifest_says_which_object_it_is_for() {
        let manifest = Manifest::read(3, &config_map()).unwrap();
        assert_eq!((manifest.ordinal, manifest.group.as_str(), manifest.version.as_str()), (3, "", "v1"));
        assert_eq!((manifest.namespace.as_str(), manifest.name.as_str()), ("b", "a"));
        let role =
            json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "a" } });
        let role = Manifest::read(0, &role).unwrap();
        assert_eq!((role.group.as_str(), role.version.as_str()), ("rbac.authorization.k8s.io", "v1"));
    }

    #[test]
    fn what_can_not_be_applied_is_told_with_what_to_change() {
        assert!(flaw(&json!(["a"])).contains("not an object"));
        assert!(flaw(&json!({ "kind": "A", "metadata": { "name": "a" } })).contains("apiVersion"));
        assert!(flaw(&json!({ "apiVersion": "v1", "metadata": { "name": "a" } })).contains("kind"));
        assert!(flaw(&json!({ "apiVersion": "v1", "kind": "A" })).contains("metadata.name"));
        assert!(flaw(&json!({ "apiVersion": "v1", "kind": "A", "metadata": { "name": 1 } })).contains("metadata.name"));
        let generated = json!({ "apiVersion": "v1", "kind": "A", "metadata": { "generateName": "a-" } });
        assert!(flaw(&generated).contains("generateName"));
    }

    #[test]
    fn the_status_names_what_is_known_of_the_object() {
        let manifest = Manifest::read(1, &config_map()).unwrap();
        let meta = manifest.resource_meta(None);
        assert_eq!((meta.ordinal, meta.resource, meta.group, meta.namespace.as_deref()), (1, None, None, Some("b")));
        let located = Located { resource: "configmaps".into(), namespaced: true };
        assert_eq!(manifest.resource_meta(Some(&located)), manifest.locate(&located).unwrap().resource_meta());
        assert_eq!(unreadable_meta(4), ManifestResourceMeta { ordinal: 4, ..Default::default() });
    }

    #[test]
    fn objects_without_namespaces_lose_theirs() {
        let manifest = Manifest::read(0, &config_map()).unwrap();
        let cluster_wide = Located { resource: "configmaps".into(), namespaced: false };
        let target = manifest.locate(&cluster_wide).unwrap();
        assert_eq!(target.resource_meta().namespace, None);
        assert_eq!(manifest.resource_meta(Some(&cluster_wide)).namespace, None);
        assert_eq!(target.manifest.object["metadata"], json!({ "name": "a" }));
    }

    #[test]
    fn objects_in_namespaces_need_one() {
        let manifest = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" } });
        let located = Located { resource: "secrets".into(), namespaced: true };
        let flaw = Manifest::read(0, &manifest).unwrap().locate(&located).unwrap_err();
        assert!(flaw.to_string().starts_with("the Secret a has no namespace: set metadata.namespace"));
    }
}
