//! The one namespace that everything of an add-on is moved into, where the settings name one.

use drover_api::{
    addon::AddOnDeploymentConfigSpec,
    work::{ManifestConfig, OrphaningRule, ResourceIdentifier},
};
use serde_json::Value;

use super::manifest::{Object, is_like};

/// The namespace that everything of an add-on is moved into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Home<'a>(&'a str);

impl<'a> Home<'a> {
    /// The namespace that the settings name, if they do. The empty text leaves everything where it is.
    pub(super) fn of(settings: Option<&'a AddOnDeploymentConfigSpec>) -> Option<Self> {
        let namespace = settings?.agent_install_namespace.as_deref()?;
        (!namespace.is_empty()).then_some(Self(namespace))
    }

    pub(super) fn namespace(self) -> &'a str {
        self.0
    }

    /// Moves an object there, and what refers to accounts that are moved too. What has no namespace gets none.
    pub(super) fn take_in(self, object: &mut Object, manifest: &mut Value) {
        if !object.namespace.is_empty() {
            self.write(manifest.pointer_mut("/metadata/namespace"));
            self.0.clone_into(&mut object.namespace);
        }
        if object.is("", "Namespace") {
            self.write(manifest.pointer_mut("/metadata/name"));
            self.0.clone_into(&mut object.name);
        }
        if ["RoleBinding", "ClusterRoleBinding"].iter().any(|kind| object.is("rbac.authorization.k8s.io", kind)) {
            self.take_in_accounts(manifest);
        }
    }

    /// Users and groups have no namespace, and stay what they are.
    fn take_in_accounts(self, binding: &mut Value) {
        let subjects = binding.get_mut("subjects").and_then(Value::as_array_mut);
        for subject in subjects.into_iter().flatten().filter_map(Value::as_object_mut) {
            if subject.get("kind").and_then(Value::as_str) == Some("ServiceAccount") {
                subject.insert("namespace".to_owned(), self.0.into());
            }
        }
    }

    fn write(self, field: Option<&mut Value>) {
        if let Some(field) = field {
            *field = self.0.into();
        }
    }

    /// A configuration for objects that were moved.
    pub(super) fn config(self, config: &ManifestConfig) -> ManifestConfig {
        let mut config = config.clone();
        let ResourceIdentifier { group, resource, name, namespace } = &mut config.resource_identifier;
        self.name([group, namespace], resource, name);
        config
    }

    /// A rule for an object that was moved.
    pub(super) fn rule(self, rule: &OrphaningRule) -> OrphaningRule {
        let mut rule = rule.clone();
        let OrphaningRule { group, resource, namespace, name } = &mut rule;
        self.name([group, namespace], resource, name);
        rule
    }

    /// Names what was named where it was. A pattern that says as much about the new place stays.
    fn name(self, [group, namespace]: [&mut Option<String>; 2], resource: &str, name: &mut String) {
        let is_elsewhere = |text: &&mut String| !text.is_empty() && !is_like(self.0, text);
        if let Some(namespace) = namespace.as_mut().filter(is_elsewhere) {
            self.0.clone_into(namespace);
        }
        let is_namespace = group.as_deref().unwrap_or_default().is_empty() && resource == "namespaces";
        if let Some(name) = Some(name).filter(is_elsewhere).filter(|_| is_namespace) {
            self.0.clone_into(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken_in(mut manifest: Value) -> Value {
        let mut object = Object::of(&manifest).expect("a whole manifest");
        Home("home").take_in(&mut object, &mut manifest);
        assert_eq!(Object::of(&manifest), Ok(object));
        manifest
    }

    fn manifest(version: &str, kind: &str, metadata: &Value, subjects: Option<&Value>) -> Value {
        let mut manifest = json!({ "apiVersion": version, "kind": kind, "metadata": metadata });
        if let Some(subjects) = subjects {
            manifest["subjects"] = subjects.clone();
        }
        manifest
    }

    #[test]
    fn what_has_a_namespace_is_moved() {
        let config_map =
            |namespace: &str| manifest("v1", "ConfigMap", &json!({ "name": "a", "namespace": namespace }), None);
        assert_eq!(taken_in(config_map("ns")), config_map("home"));
        let role = manifest("rbac.authorization.k8s.io/v1", "ClusterRole", &json!({ "name": "a" }), None);
        assert_eq!(taken_in(role.clone()), role);
        let namespace = |name: &str| manifest("v1", "Namespace", &json!({ "name": name }), None);
        assert_eq!(taken_in(namespace("ns")), namespace("home"));
    }

    #[test]
    fn accounts_are_moved_and_people_are_not() {
        let binding = |kind: &str, subjects: Option<&Value>| {
            manifest("rbac.authorization.k8s.io/v1", kind, &json!({ "name": "a" }), subjects)
        };
        let subjects = |namespace: &str| {
            json!([
                { "kind": "ServiceAccount", "name": "a", "namespace": namespace },
                { "kind": "User", "name": "b", "namespace": "ns" },
                { "kind": "Group", "name": "c" },
            ])
        };
        for kind in ["RoleBinding", "ClusterRoleBinding"] {
            let moved = taken_in(binding(kind, Some(&subjects("ns"))));
            assert_eq!(moved, binding(kind, Some(&subjects("home"))));
            assert_eq!(taken_in(binding(kind, None)), binding(kind, None));
        }
        let other = manifest("example.com/v1", "RoleBinding", &json!({ "name": "a" }), Some(&subjects("ns")));
        assert_eq!(taken_in(other.clone()), other);
    }

    #[test]
    fn whatever_is_said_of_an_object_follows_it() {
        let rule = |resource: &str, namespace: Option<&str>, name: &str| OrphaningRule {
            group: None,
            resource: resource.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        };
        for (was, is) in [
            (rule("configmaps", Some("ns"), "a"), rule("configmaps", Some("home"), "a")),
            (rule("namespaces", None, "ns"), rule("namespaces", None, "home")),
            (rule("clusterroles", None, "a"), rule("clusterroles", None, "a")),
            (rule("clusterroles", Some("*"), "a"), rule("clusterroles", Some("*"), "a")),
        ] {
            assert_eq!(Home("home").rule(&was), is);
            let OrphaningRule { group, resource, namespace, name } = was;
            let resource_identifier = ResourceIdentifier { group, resource, name, namespace };
            let config = Home("home").config(&ManifestConfig { resource_identifier, ..ManifestConfig::default() });
            assert_eq!(
                (config.resource_identifier.namespace, config.resource_identifier.name),
                (is.namespace, is.name)
            );
        }
    }

    #[test]
    fn an_empty_namespace_moves_nothing() {
        let settings = |namespace: Option<&str>| AddOnDeploymentConfigSpec {
            agent_install_namespace: namespace.map(str::to_owned),
            ..AddOnDeploymentConfigSpec::default()
        };
        assert_eq!(Home::of(Some(&settings(Some("")))), None);
        assert_eq!(Home::of(Some(&settings(None))), None);
        assert_eq!(Home::of(None), None);
        assert_eq!(Home::of(Some(&settings(Some("home")))), Some(Home("home")));
    }
}
