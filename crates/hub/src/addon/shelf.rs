//! Where the configurations of an add-on are looked up.

use drover_api::{
    addon::{AddOnConfig, ClusterManagementAddOn, ManagedClusterAddOn, PlacementStrategy},
    drover::SetConfig,
    grammar::{SpecHash, Version},
};
use drover_engine::{
    addon::{
        catalog::{Catalog, Found, Template},
        configuration::{self, Configuration, Configured, Own, Problem},
        published::DefaultConfig,
        versions::Versions,
        words::Vocabulary,
    },
    revision::Set,
};

use drover_runtime::store::ObjectKey;

use super::Dialect;
use crate::{cache::Cache, config::Config};

/// Where the configurations of an add-on are looked up.
pub(crate) struct Shelf<'a> {
    cache: &'a Cache,
    addon: &'a ClusterManagementAddOn,
    /// The templates that belong to the add-on.
    pub(crate) templates: Vec<Template>,
    /// The versions in which it can be had.
    pub(crate) versions: Versions,
    /// Whether it is made from templates, if that is known.
    is_templated: Result<bool, Problem>,
}

impl Catalog for Shelf<'_> {
    fn config(&self, config: &AddOnConfig) -> Found {
        let own = self.addon.metadata.name.as_deref().unwrap_or_default();
        match self.cache.configs.owner_of_template(config).filter(|owner| *owner != own) {
            Some(addon) => Found::Foreign { addon: addon.to_owned() },
            None => self.cache.configs.find(config),
        }
    }
}

impl<'a> Shelf<'a> {
    pub(crate) fn of(cache: &'a Cache, addon: &'a ClusterManagementAddOn) -> Self {
        let templates = templates_of(cache, addon);
        let unknown = cache.configs.are_templates_unknown();
        let is_templated = unknown.clone().map_or(Ok(!templates.is_empty()), Err);
        let (templates, versions) = match (cache.dialect, unknown) {
            // Versions are not OCM's, and its CRDs have no place for them.
            (Dialect::Ocm, _) => (Vec::new(), Versions::default()),
            (Dialect::Drover, Some(doubt)) => (templates, Versions::last_told(addon, doubt)),
            (Dialect::Drover, None) => {
                let versions = Versions::of(addon, &templates);
                (templates, versions)
            }
        };
        Self { cache, addon, templates, versions, is_templated }
    }

    /// What the clusters of a placement are configured to, or those that no placement selects. `former` is what they were configured to.
    pub(crate) fn configured(
        &self,
        placement: Option<&PlacementStrategy>,
        former: Option<&Set>,
    ) -> Result<Configured, Problem> {
        let configured = self.configuration().of(placement)?;
        let is_any_accepted = self.versions.supported.is_empty();
        let former = former.filter(|_| is_any_accepted && self.cache.dialect == Dialect::Drover);
        let lost = former.and_then(|former| configuration::lost_template(former, &configured.set, self));
        lost.map_or(Ok(configured), Err)
    }

    /// What a user has asked for on one cluster, if anything.
    pub(crate) fn own(&self, on_cluster: &ManagedClusterAddOn) -> Option<Own> {
        configuration::asks_for_something(on_cluster).then(|| self.configuration().own(on_cluster))
    }

    fn configuration(&self) -> Configuration<'_, Self> {
        let Self { addon, ref templates, ref versions, ref is_templated, .. } = *self;
        let (is_templated, dialect) = (is_templated.clone(), self.cache.dialect);
        Configuration { addon, catalog: self, templates, versions, dialect, is_templated, epoch: self.cache.epoch }
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
                    Found::Missing | Found::NoSuchType | Found::Foreign { .. } => Some(SpecHash::Missing),
                    // The add-on's manager may know.
                    Found::Forbidden | Found::NotYet => None,
                };
                DefaultConfig { config, hash }
            })
            .collect()
    }

    /// The generation of a configuration's object, if that has the content that is meant.
    pub(crate) fn generation(&self, config: &SetConfig) -> Option<i64> {
        let SetConfig { group_resource, config } = config.clone();
        match self.config(&AddOnConfig { group_resource, referent: config.referent }) {
            Found::Content { generation, hash, .. } if hash == config.spec_hash => generation,
            _ => None,
        }
    }

    /// The versions in which the add-on can be had.
    pub(crate) fn supported(&self) -> &[Version] {
        &self.versions.supported
    }

    /// In whose words it is told how a cluster stands to a set.
    pub(crate) fn vocabulary(&self, set: Option<&Set>) -> Vocabulary {
        match self.cache.dialect {
            Dialect::Ocm => Vocabulary::Ocm,
            Dialect::Drover if self.supported().is_empty() => Vocabulary::Lifecycle,
            Dialect::Drover if set.is_some_and(configuration::asks_by_hub_config) => Vocabulary::Lifecycle,
            Dialect::Drover => Vocabulary::Version,
        }
    }
}

/// The templates that belong to an add-on.
fn templates_of(cache: &Cache, addon: &ClusterManagementAddOn) -> Vec<Template> {
    let templates = cache.configs.templates_of(addon.metadata.name.as_deref().unwrap_or_default());
    let template = |(key, config): (&ObjectKey, &Config)| Template {
        name: key.name.to_string(),
        version: config.version().cloned(),
    };
    templates.map(template).collect()
}

#[cfg(test)]
mod tests {
    use drover_runtime::informer::Refusal;
    use serde_json::{Value, json};

    use super::*;
    use crate::addon::scene::{Scene, drain};

    fn hello() -> ObjectKey {
        ObjectKey::cluster_wide("hello")
    }

    /// An add-on that has told of its version v1, which a template is.
    fn templated() -> Scene {
        let mut scene = Scene::new();
        let status = json!({ "supportedVersions": ["v1"], "defaultVersion": "v1" });
        scene.set::<ClusterManagementAddOn>(None, "hello", json!({ "spec": {}, "status": status }));
        scene.cache.list_own_types(&[("one", json!({ "addonName": "hello", "version": "v1" }))], &scene.queues);
        scene
    }

    fn shelf(scene: &Scene) -> Shelf<'_> {
        Shelf::of(&scene.cache, scene.cache.addons.cmas.get(&hello()).expect("it is there"))
    }

    #[test]
    fn templates_that_can_not_be_listed_are_not_taken_for_none() {
        let mut scene = templated();
        let known = shelf(&scene).configured(None, None);
        assert_eq!(known.map(|it| it.set.version().map(ToString::to_string)), Ok(Some("v1".to_owned())));
        let refusals =
            [(Refusal::Failing, Problem::TemplatesNotYet), (Refusal::Forbidden, Problem::TemplatesForbidden)];
        for (refusal, problem) in refusals {
            drain(&scene.queues.rollouts);
            scene.cache.refuse_templates(refusal, &scene.queues);
            assert_eq!(drain(&scene.queues.rollouts), ["hello"], "{refusal:?}");
            let shelf = shelf(&scene);
            assert_eq!(shelf.configured(None, None), Err(problem), "nobody is moved");
            let supported: Vec<_> = shelf.supported().iter().map(Version::as_str).collect();
            assert_eq!((supported, shelf.vocabulary(None)), (vec!["v1"], Vocabulary::Version));
        }
        scene.cache.refuse_templates(Refusal::NoSuchKind, &scene.queues);
        assert!(shelf(&scene).supported().is_empty(), "there are none");
    }

    #[test]
    fn the_types_of_an_add_on_made_from_templates_are_known_in_both_dialects() {
        let own = |scene: &mut Scene, dialect| {
            let configs: Value = json!([{ "group": "addon.open-cluster-management.io", "resource": "addontemplates",
                "name": "one" }]);
            scene.on_cluster("one", "hello", &json!({ "spec": { "configs": configs } }));
            let on_cluster = scene.cache.addons.mcas.get(&ObjectKey::namespaced("one", "hello"));
            scene.cache.dialect = dialect;
            let own = shelf(scene).own(on_cluster.expect("it is there")).expect("something is asked for");
            own.unsupported.is_empty() && own.overrides.is_ok_and(|overrides| overrides.configs.len() == 1)
        };
        let mut scene = templated();
        for dialect in [Dialect::Drover, Dialect::Ocm] {
            assert!(own(&mut scene, dialect), "{dialect:?}");
        }
        scene.cache.refuse_templates(Refusal::NoSuchKind, &scene.queues);
        for dialect in [Dialect::Drover, Dialect::Ocm] {
            assert!(!own(&mut scene, dialect), "{dialect:?}");
        }
    }

    #[test]
    fn a_generation_is_of_one_content() {
        let mut scene = templated();
        let edited = json!({ "addonName": "hello", "version": "v1", "text": "edited in place" });
        let given = shelf(&scene).configured(None, None).expect("it can be had").set;
        assert_eq!(shelf(&scene).generation(&given.configs()[0]), Some(1));
        scene.cache.refuse_templates(Refusal::NoSuchKind, &scene.queues);
        scene.cache.list_own_types(&[("one", edited)], &scene.queues);
        assert_eq!(shelf(&scene).generation(&given.configs()[0]), None);
    }
}
