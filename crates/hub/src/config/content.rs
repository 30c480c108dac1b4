//! One configuration: what the hub keeps of an object, whatever its type.

use std::sync::Arc;

use drover_api::{
    addon::{AddOnHubConfig, AddOnTemplate, ConfigGroupResource},
    grammar::{SpecHash, Version},
    names::ADDON_VERSION_LABEL,
};
use drover_engine::{
    addon::{catalog::Found, config_revision::is_secret},
    hash,
};
use kube::{
    Resource, ResourceExt,
    api::{DynamicObject, NotUsed, Object, ObjectMeta},
};
use serde_json::Value;

/// What is kept of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// The hash of its content.
    pub(crate) hash: SpecHash,
    generation: Option<i64>,
    /// The content; not of a Secret.
    pub(super) content: Option<Arc<str>>,
    about: About,
}

/// What a configuration says about versions.
#[derive(Clone, Debug, PartialEq, Eq)]
enum About {
    /// It is how an add-on is deployed, in some version.
    Template { addon: String, version: Option<Version> },
    /// It asks for a version.
    HubConfig { version: Option<Version> },
    /// Nothing.
    Other,
}

/// A configuration in its store, with what tells its states apart.
pub(super) type Stored = Object<Config, NotUsed>;

/// The type of templates.
pub(super) fn templates() -> ConfigGroupResource {
    type_of::<AddOnTemplate>()
}

/// The type of configurations that ask for a version.
pub(super) fn hub_configs() -> ConfigGroupResource {
    type_of::<AddOnHubConfig>()
}

/// The types that say which versions of an add-on there are.
pub(super) fn own_types() -> [ConfigGroupResource; 2] {
    [templates(), hub_configs()]
}

fn type_of<K: Resource<DynamicType = ()>>() -> ConfigGroupResource {
    ConfigGroupResource { group: K::group(&()).into_owned(), resource: K::plural(&()).into_owned() }
}

impl Config {
    /// What is kept of an object of a type.
    pub(super) fn store(group_resource: &ConfigGroupResource, object: &DynamicObject) -> Stored {
        let content = hash::content(&object.data);
        let spec = Self {
            hash: hash::spec_hash(&content),
            generation: object.metadata.generation,
            content: (!is_secret(group_resource)).then(|| content.into()),
            about: About::of(group_resource, object),
        };
        let ObjectMeta { name, namespace, uid, resource_version, .. } = object.metadata.clone();
        let metadata = ObjectMeta { name, namespace, uid, resource_version, ..ObjectMeta::default() };
        Stored { types: None, metadata, spec, status: None }
    }

    /// The configuration, as something that was looked up.
    pub(super) fn found(&self) -> Found {
        let Self { hash, generation, .. } = self;
        Found::Content { hash: hash.clone(), generation: *generation, version: self.version().cloned() }
    }

    /// The version that the configuration stands for.
    pub(crate) fn version(&self) -> Option<&Version> {
        match &self.about {
            About::Template { version, .. } | About::HubConfig { version } => version.as_ref(),
            About::Other => None,
        }
    }

    /// The add-on whose template it is.
    pub(super) fn template_of(&self) -> Option<&str> {
        match &self.about {
            About::Template { addon, .. } => Some(addon),
            About::HubConfig { .. } | About::Other => None,
        }
    }
}

impl About {
    fn of(group_resource: &ConfigGroupResource, object: &DynamicObject) -> Self {
        let text = |field: &str| object.data.get("spec")?.get(field).and_then(Value::as_str);
        // A text that can not be a version says nothing.
        let version = |field| text(field).and_then(|text| text.parse().ok());
        let [templates, hub_configs] = own_types();
        if *group_resource == templates {
            let label = || object.labels().get(ADDON_VERSION_LABEL)?.parse().ok();
            let addon = text("addonName").unwrap_or_default().to_owned();
            Self::Template { addon, version: version("version").or_else(label) }
        } else if *group_resource == hub_configs {
            Self::HubConfig { version: version("desiredVersion") }
        } else {
            Self::Other
        }
    }
}
