//! Where the configurations of an add-on are looked up.

use drover_api::{
    addon::{AddOnConfig, ClusterManagementAddOn, ConfigSpecHash, ManagedClusterAddOn, PlacementStrategy},
    drover::SetConfig,
    grammar::{SpecHash, Version},
};
use drover_engine::addon::{
    catalog::{Catalog, Found, Template},
    configuration::{self, Configuration, Configured, Own, Problem},
    set::Set,
    versions::Versions,
    words::Vocabulary,
};

use drover_runtime::store::ObjectKey;

use super::Dialect;
use crate::{config::Config, fleet::Fleet};

/// Where the configurations of an add-on are looked up.
pub(crate) struct Shelf<'a> {
    fleet: &'a Fleet,
    addon: &'a ClusterManagementAddOn,
    dialect: Dialect,
    /// The templates that belong to the add-on.
    pub(crate) templates: Vec<Template>,
    /// The versions in which it can be had.
    pub(crate) versions: Result<Versions, Problem>,
}

impl Catalog for Shelf<'_> {
    fn config(&self, config: &AddOnConfig) -> Found {
        self.fleet.configs.find(config)
    }
}

impl<'a> Shelf<'a> {
    pub(crate) fn of(fleet: &'a Fleet, addon: &'a ClusterManagementAddOn, dialect: Dialect) -> Self {
        // Versions are not OCM's, and its CRDs have no place for them.
        let templates = match dialect {
            Dialect::Drover => templates_of(fleet, addon),
            Dialect::Ocm => Vec::new(),
        };
        let versions = match dialect {
            Dialect::Drover => Versions::of(addon, &templates),
            Dialect::Ocm => Ok(Versions::default()),
        };
        Self { fleet, addon, dialect, templates, versions }
    }

    /// What the clusters of a placement are configured to, or those that no placement selects.
    pub(crate) fn configured(&self, placement: Option<&PlacementStrategy>) -> Result<Configured, Problem> {
        let versions = self.versions.as_ref().map_err(Clone::clone)?;
        Configuration { addon: self.addon, catalog: self, templates: &self.templates, versions }.of(placement)
    }

    /// What a user has asked for on one cluster, if anything.
    pub(crate) fn own(&self, on_cluster: &ManagedClusterAddOn) -> Option<Own> {
        if on_cluster.spec.configs.is_empty() && on_cluster.spec.version().is_none() {
            return None;
        }
        let none = Versions::default();
        let versions = self.versions.as_ref().unwrap_or(&none);
        let configuration = Configuration { addon: self.addon, catalog: self, templates: &self.templates, versions };
        Some(configuration.own(on_cluster))
    }

    /// The default configurations, as they were found.
    pub(crate) fn defaults(&self) -> Vec<SetConfig> {
        let defaults = configuration::defaults(self.addon).into_iter();
        defaults
            .map(|config| {
                let spec_hash = match self.config(&config) {
                    Found::Content { hash, .. } => hash,
                    _ => SpecHash::Missing,
                };
                let AddOnConfig { group_resource, referent } = config;
                SetConfig { group_resource, config: ConfigSpecHash { referent, spec_hash } }
            })
            .collect()
    }

    /// The generation of a configuration's object, if it is there.
    pub(crate) fn generation(&self, config: &SetConfig) -> Option<i64> {
        let SetConfig { group_resource, config } = config.clone();
        match self.config(&AddOnConfig { group_resource, referent: config.referent }) {
            Found::Content { generation, .. } => generation,
            _ => None,
        }
    }

    /// The versions in which the add-on can be had.
    pub(crate) fn supported(&self) -> &[Version] {
        self.versions.as_ref().map(|versions| versions.supported.as_slice()).unwrap_or_default()
    }

    /// In whose words it is told how a cluster stands to a set.
    pub(crate) fn vocabulary(&self, set: Option<&Set>) -> Vocabulary {
        match self.dialect {
            Dialect::Ocm => Vocabulary::Ocm,
            Dialect::Drover if self.supported().is_empty() => Vocabulary::Lifecycle,
            Dialect::Drover if set.is_some_and(configuration::asks_by_hub_config) => Vocabulary::Lifecycle,
            Dialect::Drover => Vocabulary::Version,
        }
    }
}

/// The templates that belong to an add-on.
fn templates_of(fleet: &Fleet, addon: &ClusterManagementAddOn) -> Vec<Template> {
    let templates = fleet.configs.templates_of(addon.metadata.name.as_deref().unwrap_or_default());
    let template = |(key, config): (&ObjectKey, &Config)| Template {
        name: key.name.to_string(),
        version: config.version().cloned(),
    };
    templates.map(template).collect()
}
