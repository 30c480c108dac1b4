//! Where the configurations of an add-on are looked up.

use drover_api::{
    addon::{AddOnConfig, ClusterManagementAddOn, ManagedClusterAddOn, PlacementStrategy},
    drover::SetConfig,
    grammar::{SpecHash, Version},
};
use drover_engine::addon::{
    catalog::{Catalog, Found, Template},
    configuration::{self, Configuration, Configured, Own, Problem},
    published::DefaultConfig,
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
    pub(crate) versions: Versions,
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
            Dialect::Ocm => Versions::default(),
        };
        Self { fleet, addon, dialect, templates, versions }
    }

    /// What the clusters of a placement are configured to, or those that no placement selects. `former` is what they were configured to.
    pub(crate) fn configured(
        &self,
        placement: Option<&PlacementStrategy>,
        former: Option<&Set>,
    ) -> Result<Configured, Problem> {
        let configured = self.configuration().of(placement)?;
        let is_any_accepted = self.versions.supported.is_empty();
        let former = former.filter(|_| is_any_accepted && self.dialect == Dialect::Drover);
        let lost = former.and_then(|former| configuration::lost_template(former, &configured.set, self));
        lost.map_or(Ok(configured), Err)
    }

    /// What a user has asked for on one cluster, if anything.
    pub(crate) fn own(&self, on_cluster: &ManagedClusterAddOn) -> Option<Own> {
        configuration::asks_for_something(on_cluster).then(|| self.configuration().own(on_cluster))
    }

    fn configuration(&self) -> Configuration<'_, Self> {
        let Self { addon, ref templates, ref versions, dialect, .. } = *self;
        Configuration { addon, catalog: self, templates, versions, dialect }
    }

    /// What the clusters of a placement are configured to, though the hub may not read all of it.
    pub(crate) fn listed(&self, placement: Option<&PlacementStrategy>) -> Option<Set> {
        self.configuration().listed(placement)
    }

    /// The default configurations, as they were found.
    pub(crate) fn defaults(&self) -> Vec<DefaultConfig> {
        let defaults = configuration::defaults(self.addon).into_iter();
        defaults
            .map(|config| {
                let hash = match self.config(&config) {
                    Found::Content { hash, .. } => Some(hash),
                    Found::Missing | Found::NoSuchType => Some(SpecHash::Missing),
                    // The add-on's manager may know.
                    Found::Forbidden | Found::NotYet => None,
                };
                DefaultConfig { config, hash }
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
        &self.versions.supported
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
