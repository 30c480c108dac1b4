//! The set: everything that a cluster is given, as one whole.

#[cfg(test)]
pub(crate) mod fixtures;
pub mod hashes;
pub mod markers;

use std::collections::BTreeMap;

use drover_api::{
    addon::{ConfigGroupResource, ConfigSpecHash},
    drover::{ConfigSet, SetConfig},
    grammar::{SetFingerprint, SpecHash, Version},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use sha2::{Digest, Sha256};

/// The epoch of the renderer. It is raised when the same configurations would render differently, so that a new Drover
/// rolls out like a configuration.
pub const EPOCH: i64 = 1;

/// The epoch of what is not rendered here: it never changes.
const UNRENDERED: i64 = 1;

/// The group of the kinds that come with add-ons.
pub(crate) const ADDON_GROUP: &str = "addon.open-cluster-management.io";
/// The type of templates.
pub(crate) const TEMPLATES: &str = "addontemplates";
/// The type of settings that templates are rendered with.
pub(crate) const DEPLOYMENT_CONFIGS: &str = "addondeploymentconfigs";

/// A type of configurations that comes with add-ons.
pub(crate) fn addon_type(resource: &str) -> ConfigGroupResource {
    ConfigGroupResource { group: ADDON_GROUP.to_owned(), resource: resource.to_owned() }
}

/// The types that add-ons made from templates are configured by.
#[must_use]
pub fn template_types() -> [ConfigGroupResource; 2] {
    [TEMPLATES, DEPLOYMENT_CONFIGS].map(addon_type)
}

/// Everything that a cluster is given. What moves is always the whole of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// The configurations, each in one state. Those of one type are in the order in which they were listed, because that
    /// decides which of them goes before the others.
    configs: Vec<SetConfig>,
    /// The version of the add-on.
    version: Option<Version>,
    /// The epoch of the renderer.
    epoch: i64,
}

impl Set {
    /// The set of these configurations, rendered as this Drover does it.
    #[must_use]
    pub fn new(configs: impl IntoIterator<Item = SetConfig>, version: Option<Version>) -> Self {
        let mut configs: Vec<_> = configs.into_iter().collect();
        configs.sort_by(|one, other| one.group_resource.cmp(&other.group_resource));
        Self { configs, version, epoch: UNRENDERED }.of_epoch(EPOCH)
    }

    /// The same set, as a Drover of that epoch renders it. What is not made from a template is not rendered here, and the same in all epochs.
    #[must_use]
    pub fn of_epoch(self, epoch: i64) -> Self {
        if self.template().is_some() { Self { epoch, ..self } } else { self }
    }

    /// The template that the set is made from, if it is.
    #[must_use]
    pub fn template(&self) -> Option<&SetConfig> {
        self.first_of(TEMPLATES)
    }

    /// The settings that the template is rendered with. Of several the first counts.
    #[must_use]
    pub fn settings(&self) -> Option<&SetConfig> {
        self.first_of(DEPLOYMENT_CONFIGS)
    }

    fn first_of(&self, resource: &str) -> Option<&SetConfig> {
        let type_ = addon_type(resource);
        self.configs.iter().find(|config| config.group_resource == type_)
    }

    /// The epoch of the renderer.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// The configurations, by type.
    #[must_use]
    pub fn configs(&self) -> &[SetConfig] {
        &self.configs
    }

    /// The version of the add-on.
    #[must_use]
    pub fn version(&self) -> Option<&Version> {
        self.version.as_ref()
    }

    /// The name of the set. Whoever has the same one runs the same thing.
    #[must_use]
    pub fn fingerprint(&self) -> SetFingerprint {
        let mut digest = Sha256::new();
        // Every part ends with a byte that no part can contain, so that no two sets read the same.
        let mut part = |text: &str| {
            digest.update(text.as_bytes());
            digest.update([0]);
        };
        part(&self.epoch.to_string());
        part(self.version.as_ref().map_or("", Version::as_str));
        for SetConfig { group_resource, config } in &self.configs {
            part(&group_resource.group);
            part(&group_resource.resource);
            part(config.referent.namespace.as_deref().unwrap_or_default());
            part(&config.referent.name);
            part(&config.spec_hash.to_string());
        }
        // Eight bytes are enough that no two sets of an add-on ever share a name, and few enough to read.
        let mut name = [0; 8];
        name.copy_from_slice(&digest.finalize()[..8]);
        SetFingerprint::of(name)
    }

    /// A configuration of which there is no content.
    #[must_use]
    pub fn missing(&self) -> Option<&SetConfig> {
        self.configs.iter().find(|config| config.config.spec_hash.is_missing())
    }

    /// The set, with what a user has asked for on one cluster instead.
    #[must_use]
    pub fn with(&self, overrides: &Overrides) -> Self {
        let kept = self.configs.iter().filter(|config| !overrides.configs.contains_key(&config.group_resource));
        let own = overrides.configs.iter().flat_map(|(group_resource, states)| {
            let of_type =
                |config: &ConfigSpecHash| SetConfig { group_resource: group_resource.clone(), config: config.clone() };
            states.iter().map(of_type)
        });
        let version = overrides.version.clone().or_else(|| self.version.clone());
        let with = Self::new(kept.cloned().chain(own), version);
        // Where there was no template before, there is no epoch either that it could have been rendered in.
        if self.template().is_some() { with.of_epoch(self.epoch) } else { with }
    }

    /// The set as it is kept.
    #[must_use]
    pub fn stored(&self, first_wanted: Timestamp) -> ConfigSet {
        ConfigSet {
            fingerprint: self.fingerprint(),
            configs: self.configs.clone(),
            version: self.version.clone(),
            epoch: self.epoch,
            first_wanted: Time(first_wanted),
        }
    }

    /// A set that was kept.
    #[must_use]
    pub fn read(stored: &ConfigSet) -> Self {
        let ConfigSet { configs, version, epoch, .. } = stored.clone();
        Self { configs, version, epoch }
    }

    /// The hash of each configuration, as it is written on works: by type, namespace and name.
    #[must_use]
    pub fn hashes(&self) -> BTreeMap<ConfigKey<'_>, &SpecHash> {
        self.configs.iter().map(|config| (ConfigKey::of(config), &config.config.spec_hash)).collect()
    }
}

/// Which configuration it is, whatever its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigKey<'a> {
    /// Its type.
    pub group_resource: &'a ConfigGroupResource,
    /// Its namespace; empty if it has none.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

impl<'a> ConfigKey<'a> {
    fn of(config: &'a SetConfig) -> Self {
        let referent = &config.config.referent;
        Self {
            group_resource: &config.group_resource,
            namespace: referent.namespace.as_deref().unwrap_or_default(),
            name: &referent.name,
        }
    }
}

/// What a user has asked for on one cluster, instead of what its placement gives. It applies at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// All configurations of some types.
    pub configs: BTreeMap<ConfigGroupResource, Vec<ConfigSpecHash>>,
    /// The version of the add-on.
    pub version: Option<Version>,
}

impl Overrides {
    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.configs.is_empty() && self.version.is_none()
    }
}

#[cfg(test)]
mod tests {
    use drover_api::addon::ConfigReferent;

    use super::*;

    fn state(name: &str, hash: &str) -> ConfigSpecHash {
        let spec_hash = hash.parse().expect("any text is a hash");
        ConfigSpecHash { referent: ConfigReferent { namespace: None, name: name.to_owned() }, spec_hash }
    }

    fn type_(resource: &str) -> ConfigGroupResource {
        ConfigGroupResource { group: "example.com".to_owned(), resource: resource.to_owned() }
    }

    fn config(resource: &str, name: &str, hash: &str) -> SetConfig {
        SetConfig { group_resource: type_(resource), config: state(name, hash) }
    }

    fn version(text: &str) -> Version {
        text.parse().expect("a version")
    }

    #[test]
    fn every_part_of_a_set_makes_another_set() {
        let base = Set::new([config("a", "one", "h1"), config("a", "two", "h2")], Some(version("v1")));
        let others = [
            Set::new([config("a", "one", "h1"), config("a", "two", "h2")], Some(version("v2"))),
            Set::new([config("a", "one", "h1"), config("a", "two", "h2")], None),
            Set::new([config("a", "one", "h3"), config("a", "two", "h2")], Some(version("v1"))),
            Set::new([config("a", "two", "h2"), config("a", "one", "h1")], Some(version("v1"))),
            Set::new([config("a", "one", "h1"), config("b", "two", "h2")], Some(version("v1"))),
            Set::new([config("a", "one", "h1")], Some(version("v1"))),
            Set { epoch: base.epoch + 1, ..base.clone() },
        ];
        for other in others {
            assert_ne!(other.fingerprint(), base.fingerprint(), "{other:?}");
        }
    }

    #[test]
    fn an_epoch_makes_another_set_of_what_is_rendered_here_and_of_nothing_else() {
        let managed = Set::new([config("a", "one", "h1")], None);
        assert_eq!(managed.clone().of_epoch(EPOCH + 1), managed);
        let template = SetConfig { group_resource: addon_type(TEMPLATES), config: state("hello", "h1") };
        let templated = Set::new([template.clone(), config("a", "one", "h1")], None);
        assert_eq!(templated.template(), Some(&template));
        assert_ne!(templated.clone().of_epoch(EPOCH + 1).fingerprint(), templated.fingerprint());
    }

    #[test]
    fn types_have_no_order() {
        let one = Set::new([config("a", "one", "h1"), config("b", "two", "h2")], None);
        let other = Set::new([config("b", "two", "h2"), config("a", "one", "h1")], None);
        assert_eq!(one.fingerprint(), other.fingerprint());
    }

    #[test]
    fn a_fingerprint_stays_what_it_is_in_the_next_release() {
        let set = Set::new([config("a", "one", "h1")], Some(version("v1")));
        assert_eq!(set.fingerprint().as_str(), FIRST_EVER);
    }

    /// Clusters carry this name: if it changes, every one of them is taken to run something unknown.
    const FIRST_EVER: &str = "9c4cebdb16b535a4";

    #[test]
    fn an_override_replaces_all_of_a_type_and_nothing_else() {
        let set = Set::new(
            [config("a", "one", "h1"), config("a", "two", "h2"), config("b", "three", "h3")],
            Some(version("v1")),
        );
        let overrides = Overrides { configs: [(type_("a"), vec![state("own", "h9")])].into(), version: None };
        let expected = Set::new([config("a", "own", "h9"), config("b", "three", "h3")], Some(version("v1")));
        assert_eq!(set.with(&overrides), expected);
        assert_eq!(set.with(&Overrides::default()), set);
    }

    #[test]
    fn a_set_is_read_as_it_was_stored() {
        let set = Set { epoch: 7, ..Set::new([config("a", "one", "h1")], Some(version("v1"))) };
        assert_eq!(Set::read(&set.stored(Timestamp::UNIX_EPOCH)), set);
    }
}
