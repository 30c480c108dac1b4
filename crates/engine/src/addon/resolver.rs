//! Resolves what an add-on is configured to: versions, templates and configurations.

use drover_api::{
    addon::{AddOnConfig, ClusterManagementAddOn, ManagedClusterAddOn, PlacementStrategy},
    drover::SetConfig,
    grammar::{SpecHash, Version},
};

use super::{
    catalog::{Catalog, Found, Template},
    configuration::{self, Configuration, Configured, Own, Problem},
    facts::AddOnFacts,
    published::DefaultConfig,
    versions::Versions,
    words::Vocabulary,
};
use crate::{dialect::Dialect, revision::Set};

/// Resolves what an add-on is configured to.
#[derive(Debug)]
pub struct ConfigResolver<'a, F> {
    facts: &'a F,
    addon: &'a ClusterManagementAddOn,
    /// The templates that belong to the add-on.
    pub(super) templates: Vec<Template>,
    /// The versions in which it can be installed.
    pub versions: Versions,
    /// Whether it is rendered from templates, if that is known.
    is_templated: Result<bool, Problem>,
}

impl<F: AddOnFacts> Catalog for ConfigResolver<'_, F> {
    fn config(&self, config: &AddOnConfig) -> Found {
        let own = self.addon.metadata.name.as_deref().unwrap_or_default();
        match self.facts.owner_of_template(config).filter(|owner| *owner != own) {
            Some(addon) => Found::Foreign { addon: addon.to_owned() },
            None => self.facts.find_config(config),
        }
    }
}

impl<'a, F: AddOnFacts> ConfigResolver<'a, F> {
    /// The resolver of an add-on.
    #[must_use]
    pub fn of(facts: &'a F, addon: &'a ClusterManagementAddOn) -> Self {
        let templates = facts.templates_of(addon.metadata.name.as_deref().unwrap_or_default());
        let unknown = facts.why_templates_are_unknown();
        let is_templated = unknown.clone().map_or(Ok(!templates.is_empty()), Err);
        let (templates, versions) = match (facts.dialect(), unknown) {
            // OCM has no versions, and its CRDs have no fields for them.
            (Dialect::Ocm, _) => (Vec::new(), Versions::default()),
            (Dialect::Drover, Some(doubt)) => (templates, Versions::last_told(addon, doubt)),
            (Dialect::Drover, None) => {
                let versions = Versions::of(addon, &templates);
                (templates, versions)
            }
        };
        Self { facts, addon, templates, versions, is_templated }
    }

    /// What the clusters of a placement are configured to, or those that no placement selects.
    /// `former` is what they were configured to.
    pub fn configured(
        &self,
        placement: Option<&PlacementStrategy>,
        former: Option<&Set>,
    ) -> Result<Configured, Problem> {
        let configured = self.configuration().of(placement)?;
        let is_any_accepted = self.versions.supported.is_empty();
        let former = former.filter(|_| is_any_accepted && self.facts.dialect() == Dialect::Drover);
        let lost = former.and_then(|former| configuration::lost_template(former, &configured.set, self));
        lost.map_or(Ok(configured), Err)
    }

    /// What a user has overridden on one cluster, if anything.
    #[must_use]
    pub fn own(&self, on_cluster: &ManagedClusterAddOn) -> Option<Own> {
        configuration::asks_for_something(on_cluster).then(|| self.configuration().own(on_cluster))
    }

    fn configuration(&self) -> Configuration<'_, Self> {
        let Self { facts, addon, ref templates, ref versions, ref is_templated } = *self;
        let (is_templated, dialect, epoch) = (is_templated.clone(), facts.dialect(), facts.renderer_epoch());
        Configuration { addon, catalog: self, templates, versions, dialect, is_templated, epoch }
    }

    /// What the clusters of a placement are configured to, although the hub may not read all of it.
    pub(super) fn listed(&self, placement: Option<&PlacementStrategy>) -> Option<Set> {
        self.configuration().listed(placement)
    }

    /// The default configurations, as they were found.
    pub(super) fn defaults(&self) -> Vec<DefaultConfig> {
        let defaults = configuration::defaults(self.addon).into_iter();
        defaults
            .map(|config| {
                let hash = match self.config(&config) {
                    Found::Content { hash, .. } => Some(hash),
                    Found::Missing | Found::NoSuchType | Found::Foreign { .. } => Some(SpecHash::Missing),
                    // The add-on's manager may know.
                    Found::Forbidden | Found::NotYet => None,
                };
                DefaultConfig { config, hash }
            })
            .collect()
    }

    /// The generation of a configuration's object, if that has the content of the revision.
    #[must_use]
    pub fn generation(&self, config: &SetConfig) -> Option<i64> {
        let SetConfig { group_resource, config } = config.clone();
        match self.config(&AddOnConfig { group_resource, referent: config.referent }) {
            Found::Content { generation, hash, .. } if hash == config.spec_hash => generation,
            _ => None,
        }
    }

    /// The versions in which the add-on can be installed.
    #[must_use]
    pub fn supported(&self) -> &[Version] {
        &self.versions.supported
    }

    /// The vocabulary in which the state of a cluster with a revision is reported.
    #[must_use]
    pub fn vocabulary(&self, revision: Option<&Set>) -> Vocabulary {
        match self.facts.dialect() {
            Dialect::Ocm => Vocabulary::Ocm,
            Dialect::Drover if self.supported().is_empty() => Vocabulary::Lifecycle,
            Dialect::Drover if revision.is_some_and(configuration::asks_by_hub_config) => Vocabulary::Lifecycle,
            Dialect::Drover => Vocabulary::Version,
        }
    }
}
