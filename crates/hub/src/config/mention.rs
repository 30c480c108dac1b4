//! Which configurations an add-on mentions.

use std::collections::BTreeSet;

use drover_api::addon::{
    AddOnConfig, ClusterManagementAddOn, ConfigGroupResource, ConfigMeta, ManagedClusterAddOn, PlacementStrategy,
};
use drover_runtime::store::ObjectKey;

use super::key_of;

/// A configuration that is mentioned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mention {
    pub(super) group_resource: ConfigGroupResource,
    /// The object; without it, only the type is meant. Whoever mentions an object mentions its type, too.
    pub(super) object: Option<ObjectKey>,
}

pub(super) type Mentions = BTreeSet<Mention>;

/// What an add-on mentions: its defaults, and what its placements have instead.
pub(super) fn of_addon(addon: &ClusterManagementAddOn) -> Mentions {
    let spec = &addon.spec;
    let placements = spec.install_strategy.iter().flat_map(|strategy| &strategy.placements);
    let configs = spec.default_configs.iter().chain(placements.flat_map(of_placement));
    configs.flat_map(both).chain(spec.supported_configs.iter().flat_map(supported)).collect()
}

/// What an add-on mentions on one cluster.
pub(super) fn on_cluster(addon: &ManagedClusterAddOn) -> Mentions {
    addon.spec.configs.iter().flat_map(both).collect()
}

fn of_placement(placement: &PlacementStrategy) -> impl Iterator<Item = &AddOnConfig> {
    let template = placement.addon_template.iter().flat_map(|template| &template.configs);
    placement.configs.iter().chain(template)
}

/// A configuration and its type.
fn both(config: &AddOnConfig) -> impl Iterator<Item = Mention> + use<> {
    let object = (!config.is_placeholder()).then(|| key_of(config));
    mentions(&config.group_resource, object)
}

/// A type that is supported, and what is used by default.
fn supported(meta: &ConfigMeta) -> impl Iterator<Item = Mention> + use<> {
    let of_type = |referent| AddOnConfig { group_resource: meta.group_resource.clone(), referent };
    let default = meta.default_config.clone().map(of_type).filter(|config| !config.is_placeholder());
    mentions(&meta.group_resource, default.as_ref().map(key_of))
}

fn mentions(group_resource: &ConfigGroupResource, object: Option<ObjectKey>) -> impl Iterator<Item = Mention> + use<> {
    let object = object.map(Some);
    let group_resource = group_resource.clone();
    std::iter::once(None).chain(object).map(move |object| Mention { group_resource: group_resource.clone(), object })
}
