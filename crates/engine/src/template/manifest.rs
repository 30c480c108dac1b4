//! Manifests, and the objects that they are for.

use drover_api::{
    names::{HOSTED_LOCATION_ANNOTATION, PRE_DELETE_ANNOTATION},
    work::{OrphaningRule, ResourceIdentifier},
};
use serde_json::{Map, Value};

use super::flaw::{Fault, Flaw};
use crate::plural;

/// The object that a manifest is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Object {
    /// Its API group; empty for the core group.
    pub(super) group: String,
    pub(super) kind: String,
    /// Its namespace; empty if it has none.
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Object {
    /// The object that a manifest is for, if the manifest says so and may be deployed from a template.
    pub(super) fn of(manifest: &Value) -> Result<Self, Fault> {
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let required =
            |pointer, field| Some(text(pointer)).filter(|text| !text.is_empty()).ok_or(Fault::Without(field));
        let version = required("/apiVersion", "apiVersion")?;
        let object = Self {
            group: version.split_once('/').map_or("", |(group, _)| group).to_owned(),
            kind: required("/kind", "kind")?.to_owned(),
            namespace: text("/metadata/namespace").to_owned(),
            name: required("/metadata/name", "metadata.name")?.to_owned(),
        };
        object.check_place(manifest)?;
        Ok(object)
    }

    /// Whether the object belongs to the add-on on its own cluster, all the time: templates have nothing else.
    fn check_place(&self, manifest: &Value) -> Result<(), Fault> {
        let is_hook = matches!(self.kind.as_str(), "Job" | "Pod")
            && (annotation(manifest, PRE_DELETE_ANNOTATION).is_some()
                || label(manifest, PRE_DELETE_ANNOTATION).is_some());
        if is_hook {
            return Err(Fault::PreDelete);
        }
        match annotation(manifest, HOSTED_LOCATION_ANNOTATION) {
            Some(Value::String(location)) if location == "managed" => Ok(()),
            Some(Value::String(location)) => Err(Fault::Hosted(location.clone())),
            Some(other) => Err(Fault::Hosted(other.to_string())),
            None => Ok(()),
        }
    }

    /// Whether it is of this kind, in some version of this group.
    pub(super) fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }

    /// The resource that objects of its kind go by: the plural, as Kubernetes guesses it from the kind. A `y` after a vowel stays, where
    /// Kubernetes guesses wrong: what is kept for a Gateway has to be found under `gateways`.
    pub(super) fn resource(&self) -> String {
        let singular = self.kind.to_lowercase();
        let before_y = singular.strip_suffix('y');
        match before_y {
            _ if singular.ends_with("endpoints") => singular,
            _ if singular.ends_with('s') => format!("{singular}es"),
            Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
            _ => format!("{singular}s"),
        }
    }

    /// Whether objects of its kind may go by this resource. Who wrote it knows it, and the kind alone leaves several possibilities.
    pub(super) fn may_be(&self, resource: &str) -> bool {
        plural::may_be(resource, &self.kind)
    }

    /// The object, as a work's configurations name it.
    pub(super) fn identifier(&self) -> ResourceIdentifier {
        ResourceIdentifier {
            group: not_empty(&self.group),
            resource: self.resource(),
            name: self.name.clone(),
            namespace: not_empty(&self.namespace),
        }
    }

    /// Says that the object is kept.
    pub(super) fn orphaning_rule(&self) -> OrphaningRule {
        let ResourceIdentifier { group, resource, name, namespace } = self.identifier();
        OrphaningRule { group, resource, namespace, name }
    }
}

fn not_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// An annotation of the manifest's object.
pub(super) fn annotation<'a>(manifest: &'a Value, key: &str) -> Option<&'a Value> {
    manifest.get("metadata")?.get("annotations")?.get(key)
}

fn label<'a>(manifest: &'a Value, key: &str) -> Option<&'a Value> {
    manifest.get("metadata")?.get("labels")?.get(key)
}

/// Sets an annotation of the manifest's object.
pub(super) fn annotate(manifest: &mut Value, key: &str, value: &str) -> Result<(), Fault> {
    let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) else {
        return Err(Fault::Without("metadata.name"));
    };
    fields(metadata, "annotations")?.insert(key.to_owned(), value.into());
    Ok(())
}

/// The fields of a field, which may be missing.
fn fields<'a>(of: &'a mut Map<String, Value>, field: &str) -> Result<&'a mut Map<String, Value>, Fault> {
    let value = of.entry(field).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().ok_or_else(|| Fault::Form { field: field.to_owned(), form: "fields with values" })
}

/// The items of a field, which may be missing.
pub(super) fn items<'a>(of: &'a mut Map<String, Value>, field: &str) -> Result<&'a mut Vec<Value>, Fault> {
    let value = of.entry(field).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().ok_or_else(|| Fault::Form { field: field.to_owned(), form: "a list" })
}

/// Whether a text is like a pattern, in which a star stands for any text.
pub(super) fn is_like(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let (Some(first), Some(last)) = (parts.next(), parts.next_back()) else { return text == pattern };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    for part in parts {
        match left.find(part) {
            Some(start) => left = &left[start + part.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

/// What is wrong with a manifest of a template, said of the manifest by its name or by its place.
pub(super) fn flaw(template: &str, place: usize, manifest: &Value, fault: Fault) -> Flaw {
    let manifest = named(manifest).unwrap_or_else(|| format!("spec.agentSpec.workload.manifests[{place}]"));
    Flaw::Manifest { template: template.to_owned(), manifest, fault }
}

/// What people call the manifest, however bad it is.
fn named(manifest: &Value) -> Option<String> {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (kind, name) = (text("/kind")?, text("/metadata/name")?);
    let namespace = text("/metadata/namespace").map(|namespace| format!("{namespace}/")).unwrap_or_default();
    Some(format!("the {kind} {namespace}{name}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str) -> Object {
        Object { group: String::new(), kind: kind.to_owned(), namespace: String::new(), name: "one".to_owned() }
    }

    #[test]
    fn resources_are_the_plurals_of_kinds() {
        for (kind, resource) in [
            ("Deployment", "deployments"),
            ("Ingress", "ingresses"),
            ("NetworkPolicy", "networkpolicies"),
            ("Endpoints", "endpoints"),
            ("Gateway", "gateways"),
        ] {
            assert_eq!(object(kind).resource(), resource);
            assert!(object(kind).may_be(resource), "{resource}");
        }
        assert!(object("Mesh").may_be("meshes"));
        for (kind, other) in [("Deployment", "deployment.apps"), ("Policy", "policemen"), ("Role", "rolebindings")] {
            assert!(!object(kind).may_be(other), "{other}");
        }
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, like, unlike) in [
            ("", &[""][..], &["a"][..]),
            ("a", &["a"], &["", "aa", "b"]),
            ("*", &["", "a", "ü"], &[]),
            ("a*", &["a", "ab"], &["ba", ""]),
            ("*a", &["a", "ba"], &["ab"]),
            ("a*a", &["aa", "aba"], &["a", "ab"]),
            ("a*b*c", &["abc", "axbxbc", "abbc"], &["ac", "acb", "abcx"]),
            ("**", &["", "a"], &[]),
        ] {
            for text in like {
                assert!(is_like(text, pattern), "{text} is like {pattern}");
            }
            for text in unlike {
                assert!(!is_like(text, pattern), "{text} is not like {pattern}");
            }
        }
    }

    #[test]
    fn an_object_has_to_say_what_it_is() {
        let whole =
            json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a", "namespace": "ns" } });
        let object = Object::of(&whole).expect("it is whole");
        assert_eq!(
            (&*object.group, &*object.kind, &*object.namespace, &*object.name),
            ("apps", "Deployment", "ns", "a")
        );
        for (pointer, field) in [
            ("/apiVersion", "apiVersion"),
            ("/kind", "kind"),
            ("/metadata/name", "metadata.name"),
            ("/metadata", "metadata.name"),
        ] {
            for nothing in [Value::Null, json!(""), json!(1)] {
                let mut without = whole.clone();
                *without.pointer_mut(pointer).expect("it is there") = nothing;
                assert_eq!(Object::of(&without), Err(Fault::Without(field)));
            }
        }
        assert_eq!(Object::of(&Value::Null), Err(Fault::Without("apiVersion")));
    }

    #[test]
    fn hooks_and_what_is_hosted_elsewhere_are_refused() {
        let with = |kind: &str, field: &str, key: &str, value: &str| {
            let metadata = json!({ "name": "a", field: { key: value } });
            Object::of(&json!({ "apiVersion": "batch/v1", "kind": kind, "metadata": metadata })).map(|_| ())
        };
        for field in ["annotations", "labels"] {
            assert_eq!(with("Job", field, PRE_DELETE_ANNOTATION, ""), Err(Fault::PreDelete));
            assert_eq!(with("Pod", field, PRE_DELETE_ANNOTATION, "true"), Err(Fault::PreDelete));
            assert_eq!(with("ConfigMap", field, PRE_DELETE_ANNOTATION, ""), Ok(()));
        }
        assert_eq!(with("Job", "annotations", HOSTED_LOCATION_ANNOTATION, "managed"), Ok(()));
        for location in ["hosting", "none", ""] {
            let refused = with("Job", "annotations", HOSTED_LOCATION_ANNOTATION, location);
            assert_eq!(refused, Err(Fault::Hosted(location.to_owned())));
        }
    }

    #[test]
    fn a_flaw_names_the_manifest_or_its_place() {
        let said = |manifest: Value| flaw("t", 3, &manifest, Fault::Without("apiVersion")).to_string();
        assert_eq!(
            said(json!({ "kind": "Role", "metadata": { "name": "a", "namespace": "ns" } })),
            "in the AddOnTemplate t, the Role ns/a has no apiVersion: set it to a text that is not empty"
        );
        assert!(said(json!({ "kind": "Role", "metadata": { "name": "a" } })).contains("the Role a has"));
        assert!(said(json!({ "kind": "Role" })).contains("spec.agentSpec.workload.manifests[3] has"));
    }
}
