//! Templates for tests.

use drover_api::{
    addon::{AddOnDeploymentConfigSpec, ImageMirror, ManagedClusterAddOn, ManagedClusterAddOnSpec},
    work::ManifestWork,
};
use serde_json::{Value, json};

use super::{AddOnWork, Blueprint, Flaw, Inputs, Rendering, render};
use crate::revision::Set;

/// An add-on on a cluster, and what its works are made from.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) on_cluster: ManagedClusterAddOn,
    pub(super) set: Set,
    pub(super) template: Value,
    pub(super) settings: Option<AddOnDeploymentConfigSpec>,
    pub(super) registries: Vec<ImageMirror>,
}

impl Case {
    /// The add-on hello on the cluster one, from a template with these manifests.
    pub(super) fn new(manifests: impl Into<Vec<Value>>) -> Self {
        let mut on_cluster = ManagedClusterAddOn::new("hello", ManagedClusterAddOnSpec::default());
        on_cluster.metadata.namespace = Some("one".to_owned());
        on_cluster.metadata.uid = Some("uid".to_owned());
        let manifests = manifests.into();
        Self {
            on_cluster,
            set: Set::new([], None),
            template: json!({ "addonName": "hello", "agentSpec": { "workload": { "manifests": manifests } } }),
            settings: None,
            registries: Vec::new(),
        }
    }

    /// The same, with something in the template, such as `/agentSpec/executor`.
    pub(super) fn with(mut self, pointer: &str, value: Value) -> Self {
        let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
        self.template.pointer_mut(parent).expect("it is there")[field] = value;
        self
    }

    /// The same, with settings.
    pub(super) fn settings(mut self, settings: Value) -> Self {
        self.settings = Some(serde_json::from_value(settings).expect("settings"));
        self
    }

    pub(super) fn blueprint(&self) -> Result<Blueprint, Flaw> {
        Blueprint::read("hello-template", &json!({ "spec": self.template }).to_string())
    }

    pub(super) fn try_render(&self) -> Result<Rendering, Flaw> {
        render(&self.inputs(&self.blueprint()?))
    }

    pub(super) fn render(&self) -> Rendering {
        self.try_render().unwrap_or_else(|flaw| panic!("{flaw}"))
    }

    /// What can not be rendered, in words.
    pub(super) fn flaw(&self) -> String {
        self.try_render().expect_err("it has a flaw").to_string()
    }

    pub(super) fn inputs<'a>(&'a self, blueprint: &'a Blueprint) -> Inputs<'a> {
        let Self { on_cluster, set, settings, registries, .. } = self;
        Inputs { on_cluster, set, blueprint, settings: settings.as_ref(), registries }
    }

    /// All manifests of all works.
    pub(super) fn manifests(&self) -> Vec<Value> {
        self.render().works.iter().flat_map(|work| work.work.spec.manifests().to_vec()).collect()
    }

    /// The only pod that is deployed by a workload.
    pub(super) fn pod(&self) -> Value {
        let manifests = self.manifests();
        manifests.iter().find_map(|manifest| manifest.pointer("/spec/template/spec")).expect("a pod").clone()
    }
}

/// A manifest with nothing but what every one has.
pub(super) fn manifest(version: &str, kind: &str, name: &str) -> Value {
    json!({ "apiVersion": version, "kind": kind, "metadata": { "name": name, "namespace": "ns" } })
}

/// A workload with one container.
pub(super) fn workload(kind: &str, container: &Value) -> Value {
    let mut workload = manifest("apps/v1", kind, "agent");
    workload["spec"] = json!({ "template": { "spec": { "containers": [container] } } });
    workload
}

pub(super) fn config_map(name: &str) -> Value {
    manifest("v1", "ConfigMap", name)
}

/// What is kept of a work that has the label of its add-on.
pub(crate) fn view(work: &ManifestWork) -> AddOnWork {
    AddOnWork::of(work, &work.metadata.clone().into()).expect("it is of an add-on")
}
