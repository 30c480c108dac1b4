//! Templates and settings that are written down in YAML, and what is made from them.

use std::{fs, path::Path};

use drover_api::{
    addon::{
        AddOnDeploymentConfig, AddOnDeploymentConfigSpec, AddOnTemplate, ConfigGroupResource, ConfigReferent,
        ConfigSpecHash, ImageMirror, ManagedClusterAddOn, ManagedClusterAddOnSpec,
    },
    drover::SetConfig,
    grammar::Version,
};
use drover_engine::{
    hash::{content, spec_hash},
    revision::Set,
    template::{Blueprint, Inputs, Rendering, render, settings},
};
use kube::Resource;
use serde_json::Value;

/// The YAML documents in a file, from the repository's root.
pub(crate) fn documents(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Everything that the works of a cluster are made from, as a hub has it.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) on_cluster: ManagedClusterAddOn,
    pub(crate) set: Set,
    pub(crate) blueprint: Blueprint,
    pub(crate) settings: Option<AddOnDeploymentConfigSpec>,
    pub(crate) registries: Vec<ImageMirror>,
}

impl World {
    /// The template among these objects, and the settings if there are some, for the cluster cluster1.
    pub(crate) fn new(objects: &[Value], version: Option<Version>) -> Self {
        let find = |kind: &str| objects.iter().find(|object| object["kind"] == kind);
        let template = find("AddOnTemplate").expect("there is a template");
        let config = find("AddOnDeploymentConfig");
        let blueprint = Blueprint::read(&name(template), &content(template)).unwrap_or_else(|flaw| panic!("{flaw}"));
        let mut on_cluster = ManagedClusterAddOn::new(blueprint.addon(), ManagedClusterAddOnSpec::default());
        on_cluster.metadata.namespace = Some("cluster1".to_owned());
        on_cluster.metadata.uid = Some("7b2e3c1a-0d4f-4c5e-9a1b-2f6d8e0c4a57".to_owned());
        let configs = [Some(of_set::<AddOnTemplate>(template)), config.map(of_set::<AddOnDeploymentConfig>)];
        Self {
            on_cluster,
            set: Set::new(configs.into_iter().flatten(), version),
            blueprint,
            settings: config
                .map(|config| settings(&name(config), &content(config)).unwrap_or_else(|flaw| panic!("{flaw}"))),
            registries: Vec::new(),
        }
    }

    pub(crate) fn render(&self) -> Rendering {
        let Self { on_cluster, set, blueprint, settings, registries } = self;
        let inputs = Inputs { on_cluster, set, blueprint, settings: settings.as_ref(), registries };
        render(&inputs).unwrap_or_else(|flaw| panic!("{flaw}"))
    }
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().expect("objects are named").to_owned()
}

fn of_set<K: Resource<DynamicType = ()>>(object: &Value) -> SetConfig {
    let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
    SetConfig {
        group_resource: ConfigGroupResource {
            group: K::group(&()).into_owned(),
            resource: K::plural(&()).into_owned(),
        },
        config: ConfigSpecHash {
            referent: ConfigReferent { namespace, name: name(object) },
            spec_hash: spec_hash(&content(object)),
        },
    }
}
