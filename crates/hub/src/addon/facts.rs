//! Reads what decisions about add-ons are made from out of the cache.

use drover_api::{
    addon::{AddOnConfig, ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::{ManagedCluster, Placement},
    drover::{AddOnRollout, SetConfig},
    reference::{ClusterName, PlacementRef},
};
use drover_engine::{
    addon::{
        catalog::{Found, Template},
        configuration::Problem,
        facts::{AddOnFacts, Deployment},
        install::Choice,
        render_state::RenderState,
    },
    plan::{ObjectKey, Write},
    presence::FleetFacts,
    revision::Set,
    rollout::{Snapshot, member::Group},
    template::AddOnWork,
};
use k8s_openapi::api::rbac::v1::RoleBinding;

use super::{Dialect, deploy::deploy, inventory::placement_key, render_cache::RenderRequest};
use crate::{adopt::CreateOrAdopt, cache::Cache, config};

impl AddOnFacts for Cache {
    type Action = CreateOrAdopt;

    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn renderer_epoch(&self) -> i64 {
        self.epoch
    }

    fn cluster(&self, name: &ClusterName) -> Option<&ManagedCluster> {
        self.cluster(name).map(|cluster| &**cluster)
    }

    fn is_online(&self, cluster: &ClusterName) -> bool {
        FleetFacts::is_online(self, cluster)
    }

    fn on_cluster(&self, key: &ObjectKey) -> Option<&ManagedClusterAddOn> {
        self.addons.mcas.get(key).map(|addon| &**addon)
    }

    fn is_on_cluster(&self, key: &ObjectKey) -> bool {
        self.addons.mcas.has(key)
    }

    fn clusters_with(&self, addon: &str) -> impl Iterator<Item = ClusterName> {
        self.addons.on_clusters(addon).map(|key| ClusterName::from(&*key.namespace))
    }

    fn works_of(&self, on_cluster: &ManagedClusterAddOn) -> Vec<&AddOnWork> {
        self.addon_works(on_cluster)
    }

    fn role_bindings_of(&self, on_cluster: &ObjectKey) -> Vec<&RoleBinding> {
        self.belongings.bindings_of_addon(on_cluster).collect()
    }

    fn addon(&self, key: &ObjectKey) -> Option<&ClusterManagementAddOn> {
        self.addons.cmas.get(key).map(|addon| &**addon)
    }

    fn choice(&self, addon: &ObjectKey) -> Option<&Choice> {
        self.addons.choice(addon)
    }

    fn rollout(&self, addon: &ObjectKey) -> Option<&AddOnRollout> {
        self.configs.rollout(addon)
    }

    fn snapshot(&self, addon: &ObjectKey) -> Option<&Snapshot<Set>> {
        self.addons.snapshot(addon)
    }

    fn placement(&self, placement: &PlacementRef) -> Option<&Placement> {
        self.placements.get(&placement_key(placement)).map(|placement| &**placement)
    }

    fn has_placement(&self, placement: &PlacementRef) -> bool {
        self.placements.has(&placement_key(placement))
    }

    fn selection(&self, cluster: &ClusterName, placement: &PlacementRef) -> Option<&Group> {
        self.selections.get(cluster)?.get(&placement_key(placement)).map(|chosen| &chosen.group)
    }

    fn selected_by(&self, placement: &PlacementRef) -> impl Iterator<Item = ClusterName> {
        self.selected_by(&placement_key(placement))
    }

    fn find_config(&self, config: &AddOnConfig) -> Found {
        self.configs.find(config)
    }

    fn owner_of_template(&self, config: &AddOnConfig) -> Option<&str> {
        self.configs.owner_of_template(config)
    }

    fn templates_of(&self, addon: &str) -> Vec<Template> {
        let templates = self.configs.templates_of(addon);
        let templates =
            templates.map(|(key, config)| Template { name: key.name.to_string(), version: config.version().cloned() });
        templates.collect()
    }

    fn why_templates_are_unknown(&self) -> Option<Problem> {
        self.configs.are_templates_unknown()
    }

    fn is_lost(&self, config: &SetConfig) -> bool {
        self.configs.is_lost(config)
    }

    fn missing_revisions<'c>(&self, configs: impl Iterator<Item = &'c SetConfig>) -> Vec<Write> {
        config::missing(self, configs)
    }

    fn render_state(&self, on_cluster: &ManagedClusterAddOn, revision: &Set) -> RenderState {
        self.addons.render_cache.look(&RenderRequest { cache: self, on_cluster, set: revision })
    }

    fn install_namespace(
        &self,
        on_cluster: &ManagedClusterAddOn,
        revision: &Set,
        state: &RenderState,
    ) -> Option<String> {
        RenderRequest { cache: self, on_cluster, set: revision }.namespace(state.blueprint()?)
    }

    fn deploy(&self, on_cluster: &ManagedClusterAddOn, revision: &Set) -> Deployment<Self::Action> {
        deploy(&RenderRequest { cache: self, on_cluster, set: revision })
    }
}

#[cfg(test)]
mod tests {
    use drover_api::grammar::Version;
    use drover_engine::addon::{resolver::ConfigResolver, words::Vocabulary};
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

    fn resolver(scene: &Scene) -> ConfigResolver<'_, Cache> {
        ConfigResolver::of(&scene.cache, scene.cache.addons.cmas.get(&hello()).expect("it is there"))
    }

    #[test]
    fn templates_that_can_not_be_listed_are_not_taken_for_none() {
        let mut scene = templated();
        let known = resolver(&scene).configured(None, None);
        assert_eq!(known.map(|it| it.set.version().map(ToString::to_string)), Ok(Some("v1".to_owned())));
        let refusals =
            [(Refusal::Failing, Problem::TemplatesNotYet), (Refusal::Forbidden, Problem::TemplatesForbidden)];
        for (refusal, problem) in refusals {
            drain(&scene.queues.rollouts);
            scene.cache.refuse_templates(refusal, &scene.queues);
            assert_eq!(drain(&scene.queues.rollouts), ["hello"], "{refusal:?}");
            let resolver = resolver(&scene);
            assert_eq!(resolver.configured(None, None), Err(problem), "nobody is moved");
            let supported: Vec<_> = resolver.supported().iter().map(Version::as_str).collect();
            assert_eq!((supported, resolver.vocabulary(None)), (vec!["v1"], Vocabulary::Version));
        }
        scene.cache.refuse_templates(Refusal::NoSuchKind, &scene.queues);
        assert!(resolver(&scene).supported().is_empty(), "there are none");
    }

    #[test]
    fn the_types_of_an_add_on_made_from_templates_are_known_in_both_dialects() {
        let own = |scene: &mut Scene, dialect| {
            let configs: Value = json!([{ "group": "addon.open-cluster-management.io", "resource": "addontemplates",
                "name": "one" }]);
            scene.on_cluster("one", "hello", &json!({ "spec": { "configs": configs } }));
            let on_cluster = scene.cache.addons.mcas.get(&ObjectKey::namespaced("one", "hello"));
            scene.cache.dialect = dialect;
            let own = resolver(scene).own(on_cluster.expect("it is there")).expect("something is asked for");
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
        let given = resolver(&scene).configured(None, None).expect("it can be had").set;
        assert_eq!(resolver(&scene).generation(&given.configs()[0]), Some(1));
        scene.cache.refuse_templates(Refusal::NoSuchKind, &scene.queues);
        scene.cache.list_own_types(&[("one", edited)], &scene.queues);
        assert_eq!(resolver(&scene).generation(&given.configs()[0]), None);
    }
}
