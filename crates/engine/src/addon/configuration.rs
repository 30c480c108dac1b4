//! What clusters are configured to: the set that a placement asks for, and what users ask for instead on single clusters.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{
    addon::{
        AddOnConfig, ClusterManagementAddOn, ConfigGroupResource, ConfigReferent, ConfigSpecHash, ManagedClusterAddOn,
        PlacementStrategy,
    },
    drover::SetConfig,
    grammar::{SpecHash, Version},
    names::ASSIGNED_VERSION_ANNOTATION,
};
use kube::ResourceExt;

use super::{
    catalog::{Catalog, Found, Template},
    versions::Versions,
};
use crate::{
    dialect::Dialect,
    revision::{Overrides, Set, TEMPLATES, addon_type, template_types},
};

/// The type of configurations that ask for a version.
const HUB_CONFIGS: &str = "addonhubconfigs";

/// Why what is configured can not be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is no such object.
    #[error("the config {0} does not exist: create it, or refer to another")]
    Missing(ConfigName),
    /// It is not this add-on's.
    #[error("the template {template} belongs to the add-on {addon}: refer to another, or correct its addonName")]
    ForeignTemplate {
        /// The template.
        template: String,
        /// The add-on that it names.
        addon: String,
    },
    /// There is no such type.
    #[error("there is no resource {type_}, which the config {0} is of: install its CustomResourceDefinition, or refer to another", type_ = .0.group_resource)]
    NoSuchType(ConfigName),
    /// The hub may not read it.
    #[error("the hub may not read {type_}, which the config {0} is of: grant it with a ClusterRole that is labelled drover.dev/hub-reads-configs=true", type_ = .0.group_resource)]
    Forbidden(ConfigName),
    /// Nobody has looked yet.
    #[error("the config {0} has not been looked up yet")]
    NotYet(ConfigName),
    /// The version can not be had.
    #[error("version {version} is none of those that there are: {}", list(supported))]
    UnsupportedVersion {
        /// The version.
        version: Version,
        /// Those that there are.
        supported: Vec<Version>,
    },
    /// A template and a version that are asked for in one place do not agree.
    #[error(
        "the template {template} is version {is}, and version {asked} is asked for in the same place: keep one of them"
    )]
    VersionsDisagree {
        /// The template.
        template: String,
        /// What it is.
        is: Box<Version>,
        /// What is asked for.
        asked: Box<Version>,
    },
    /// Two templates say they are one version.
    #[error("the templates {} and {} are both version {version}: give one of them another", templates[0], templates[1])]
    SameVersion {
        /// The version.
        version: Version,
        /// The templates.
        templates: [String; 2],
    },
    /// The default version can not be had.
    #[error(
        "the annotation addon.open-cluster-management.io/default-version names {0}, which is none of the supported versions: correct or remove it"
    )]
    DefaultVersion(String),
    /// Nobody has looked for templates yet, or could not.
    #[error("the AddOnTemplates could not be listed yet, so that it is not known which versions there are")]
    TemplatesNotYet,
    /// The hub may not look for templates.
    #[error(
        "the hub may not read AddOnTemplates, so that it is not known which versions there are: grant it with the ClusterRole that comes with the hub"
    )]
    TemplatesForbidden,
    /// What the add-on's manager declares makes no sense.
    #[error("the annotation addon.open-cluster-management.io/supported-versions: {0}")]
    DeclaredVersion(String),
    /// The placement that clusters are chosen by is not there.
    #[error("there is no Placement {0}: create it, or remove it from the list; its clusters stay as they are")]
    NoPlacement(drover_api::reference::PlacementRef),
    /// The add-on is installed by placements, and there are none in its list.
    #[error(
        "type Placements lists no placement: add one under placements, or use type Manual; all clusters stay as they are"
    )]
    NoPlacements,
    /// What has to be written down before anybody is given anything was not taken.
    #[error("what rollouts go by can not be written down: {0}; it is tried again every minute")]
    NotKept(String),
}

fn list(versions: &[Version]) -> String {
    let versions: Vec<_> = versions.iter().map(Version::as_str).collect();
    versions.join(", ")
}

/// A configuration, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigName {
    /// Its type.
    pub group_resource: ConfigGroupResource,
    /// Its namespace and name.
    pub referent: ConfigReferent,
}

impl ConfigName {
    /// The configuration that is a part of a set.
    #[must_use]
    pub fn of(SetConfig { group_resource, config }: &SetConfig) -> Self {
        Self { group_resource: group_resource.clone(), referent: config.referent.clone() }
    }
}

impl std::fmt::Display for ConfigName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ConfigReferent { namespace, name } = &self.referent;
        match namespace.as_deref() {
            Some(namespace) if !namespace.is_empty() => {
                write!(f, "{} {namespace}/{name}", self.group_resource.resource)
            }
            _ => write!(f, "{} {name}", self.group_resource.resource),
        }
    }
}

/// Where something is asked for; a higher place goes before a lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Nowhere,
    Default,
    Placement,
    Cluster,
}

/// Who has asked for a version. The words of an add-on's progress go by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionSource {
    /// An AddOnHubConfig.
    HubConfig,
    /// The template of a placement's add-ons, from which it is copied to the add-on.
    AddOnTemplate,
    /// A template, by being referred to.
    Template,
    /// A user, on the cluster.
    User,
    /// Nobody.
    Default,
}

/// What the clusters of a placement are configured to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configured {
    /// The whole.
    pub set: Set,
    /// Who has asked for the version, if there is one.
    pub version_from: Option<VersionSource>,
}

/// All that an add-on refers to, so that it can be found out what clusters are configured to.
pub struct Configuration<'a, C> {
    /// The add-on.
    pub addon: &'a ClusterManagementAddOn,
    /// Where configurations are looked up.
    pub catalog: &'a C,
    /// The templates that belong to the add-on.
    pub templates: &'a [Template],
    /// The versions in which it can be had.
    pub versions: &'a Versions,
    /// Whether there are versions at all.
    pub dialect: Dialect,
    /// Whether it is made from templates, so that it is known which types can be configured on single clusters; or why nobody can tell.
    pub is_templated: Result<bool, Problem>,
    /// The epoch of the renderer.
    pub epoch: i64,
}

/// A configuration, and where it is asked for.
type Asked = BTreeMap<ConfigGroupResource, (Level, Vec<ConfigReferent>)>;

/// What is asked for, and the version that goes with it.
type Settled = (Asked, Option<(Version, VersionSource)>);

impl<C: Catalog> Configuration<'_, C> {
    /// What the clusters of an entry are configured to: those of a placement, or those that no placement selects.
    pub fn of(&self, placement: Option<&PlacementStrategy>) -> Result<Configured, Problem> {
        let (asked, version) = self.asked(placement)?;
        let configs = self.look_up_all(&asked, |config| self.hash_by_manager(config))?;
        let version_from = version.as_ref().map(|(_, source)| *source);
        let set = Set::new(configs, version.map(|(version, _)| version)).of_epoch(self.epoch);
        Ok(Configured { set, version_from })
    }

    /// What the clusters of an entry are configured to where the hub may not read some of it: the add-on's manager finds out the hash of
    /// what is listed, and of nothing else. Nothing where nobody can tell what to list.
    #[must_use]
    pub fn listed(&self, placement: Option<&PlacementStrategy>) -> Option<Set> {
        let (asked, version) = self.asked(placement).ok()?;
        let configs = self.list(&asked, |config| self.hash_by_manager(config));
        Some(Set::new(configs, version.map(|(version, _)| version)).of_epoch(self.epoch))
    }

    /// What is asked for of the clusters of an entry.
    fn asked(&self, placement: Option<&PlacementStrategy>) -> Result<Settled, Problem> {
        let asked = asked(self.addon, placement);
        let template = placement.and_then(|placement| placement.addon_template.as_ref());
        let from_placement = template.and_then(|template| template.version());
        let version = match self.hub_config_version(&asked)? {
            Some((level, version)) => Some((level, version, VersionSource::HubConfig)),
            None => from_placement.map(|version| (Level::Placement, version.clone(), VersionSource::AddOnTemplate)),
        };
        self.settle(asked, version)
    }

    /// The version that the effective AddOnHubConfig asks for.
    fn hub_config_version(&self, asked: &Asked) -> Result<Option<(Level, Version)>, Problem> {
        let type_ = addon_type(HUB_CONFIGS);
        let Some((level, referents)) = asked.get(&type_).filter(|_| self.dialect == Dialect::Drover) else {
            return Ok(None);
        };
        let versions = referents.iter().map(|referent| self.version_of(&type_, referent));
        let first = versions.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().next();
        Ok(first.map(|version| (*level, version)))
    }

    fn version_of(&self, type_: &ConfigGroupResource, referent: &ConfigReferent) -> Result<Option<Version>, Problem> {
        let config = AddOnConfig { group_resource: type_.clone(), referent: referent.clone() };
        match self.catalog.config(&config) {
            Found::Content { version, .. } => Ok(version),
            other => Err(problem(&config, &other)),
        }
    }

    /// Brings together which template is referred to and which version is asked for: the higher place goes before the lower one.
    fn settle(&self, mut asked: Asked, version: Option<(Level, Version, VersionSource)>) -> Result<Settled, Problem> {
        if self.dialect == Dialect::Ocm {
            return Ok((asked, None));
        }
        let type_ = addon_type(TEMPLATES);
        let template = asked.get(&type_).and_then(|(level, referents)| Some((*level, referents.first()?.clone())));
        let version = match (&template, version) {
            (None, None) => self.default()?.map(|version| (Level::Nowhere, version, VersionSource::Default)),
            (_, version) => version,
        };
        let Some((version_level, version, source)) = version else {
            let Some((_, referent)) = template else { return Ok((asked, None)) };
            let version = self.version_of(&type_, &referent)?;
            return Ok((asked, version.map(|version| (version, VersionSource::Template))));
        };
        if let Some((template_level, referent)) = &template {
            let is = self.version_of(&type_, referent)?;
            if template_level > &version_level {
                return Ok((asked, is.map(|version| (version, VersionSource::Template))));
            }
            if template_level == &version_level {
                if let Some(is) = is.filter(|is| *is != version) {
                    let (is, asked) = (Box::new(is), Box::new(version));
                    return Err(Problem::VersionsDisagree { template: referent.name.clone(), is, asked });
                }
                return Ok((asked, Some((version, source))));
            }
        }
        self.supported(&version)?;
        if let Some(template) = self.template_of(&version) {
            let referent = ConfigReferent { namespace: None, name: template.name.clone() };
            asked.insert(type_, (version_level, vec![referent]));
        }
        Ok((asked, Some((version, source))))
    }

    /// The version that is asked for where neither a version nor a template is, if there is one.
    fn default(&self) -> Result<Option<Version>, Problem> {
        self.versions.doubt.clone().map_or_else(|| Ok(self.versions.default.clone()), Err)
    }

    fn supported(&self, version: &Version) -> Result<(), Problem> {
        self.versions.doubt.clone().map_or(Ok(()), Err)?;
        if self.versions.supports(version) {
            return Ok(());
        }
        Err(Problem::UnsupportedVersion { version: version.clone(), supported: self.versions.supported.clone() })
    }

    fn template_of(&self, version: &Version) -> Option<&Template> {
        self.templates.iter().find(|template| template.version.as_ref() == Some(version))
    }

    fn look_up_all(
        &self,
        asked: &Asked,
        by_manager: impl Fn(&AddOnConfig) -> Option<SpecHash>,
    ) -> Result<Vec<SetConfig>, Problem> {
        all(asked).map(|config| Ok(with_hash(self.look_up(&config, &by_manager)?, config))).collect()
    }

    /// What is asked for, each with its hash as far as that can be told.
    fn list(&self, asked: &Asked, by_manager: impl Fn(&AddOnConfig) -> Option<SpecHash>) -> Vec<SetConfig> {
        let hash = |config: &AddOnConfig| self.look_up(config, &by_manager).unwrap_or(SpecHash::Missing);
        all(asked).map(|config| with_hash(hash(&config), config)).collect()
    }

    /// The hash of a configuration. What the hub may not read, the add-on's manager may have.
    fn look_up(
        &self,
        config: &AddOnConfig,
        by_manager: impl Fn(&AddOnConfig) -> Option<SpecHash>,
    ) -> Result<SpecHash, Problem> {
        match self.catalog.config(config) {
            Found::Content { hash, .. } => Ok(hash),
            Found::Forbidden => by_manager(config).ok_or_else(|| problem(config, &Found::Forbidden)),
            other => Err(problem(config, &other)),
        }
    }

    /// The hash that the add-on's manager has found for a configuration of its own.
    fn hash_by_manager(&self, config: &AddOnConfig) -> Option<SpecHash> {
        let status = self.addon.status.as_ref()?;
        let placements = status.install_progressions.iter().flat_map(|progression| &progression.config_references);
        let placements = placements.map(|reference| (&reference.group_resource, reference.desired_config.as_ref()));
        // A manager fills in the list of defaults of its own version of the API. What an older one has left behind counts last.
        let defaults =
            status.default_config_references_v1beta1.iter().chain(&status.default_config_references_v1alpha1);
        let defaults = defaults.map(|reference| (&reference.group_resource, reference.desired_config.as_ref()));
        let states = placements.chain(defaults).filter(|(type_, _)| **type_ == config.group_resource);
        let mut states =
            states.filter_map(|(_, state)| state).filter(|state| is_same(&state.referent, &config.referent));
        states.find(|state| !state.spec_hash.is_missing()).map(|state| state.spec_hash.clone())
    }

    /// What a user has asked for on one cluster.
    #[must_use]
    pub fn own(&self, on_cluster: &ManagedClusterAddOn) -> Own {
        let mut asked = Asked::new();
        let mut unsupported = BTreeSet::new();
        let mut unknown = None;
        for config in &on_cluster.spec.configs {
            match self.supports(on_cluster, &config.group_resource) {
                Ok(true) => ask(&mut asked, Level::Cluster, config),
                Ok(false) => drop(unsupported.insert(config.group_resource.clone())),
                Err(problem) => unknown = Some(problem),
            }
        }
        let by_manager = |config: &AddOnConfig| hash_on_cluster(on_cluster, config);
        let settled = unknown.map_or_else(|| self.settle_own(on_cluster, asked), Err);
        let overrides = settled.clone().and_then(|(asked, version)| {
            let configs = self.look_up_all(&asked, by_manager)?;
            Ok(overrides(configs, version))
        });
        let listed = settled.ok().filter(|_| matches!(overrides, Err(Problem::Forbidden(_))));
        let listed = listed.map(|(asked, version)| self::overrides(self.list(&asked, by_manager), version));
        let unsupported = unsupported.into_iter().collect();
        let version = own_version(on_cluster).filter(|_| self.dialect == Dialect::Drover).cloned();
        Own { overrides, listed, unsupported, version }
    }

    /// Whether a type may be configured on single clusters. Those of an add-on made from templates are known.
    fn supports(&self, on_cluster: &ManagedClusterAddOn, type_: &ConfigGroupResource) -> Result<bool, Problem> {
        let mut declared = on_cluster.status.iter().flat_map(|status| &status.supported_configs);
        if declared.any(|declared| declared == type_) {
            return Ok(true);
        }
        if template_types().contains(type_) { self.is_templated.clone() } else { Ok(false) }
    }

    fn settle_own(&self, on_cluster: &ManagedClusterAddOn, asked: Asked) -> Result<Settled, Problem> {
        let version = match own_version(on_cluster) {
            Some(version) => Some((Level::Cluster, version.clone(), VersionSource::User)),
            None => self.hub_config_version(&asked)?.map(|(level, version)| (level, version, VersionSource::HubConfig)),
        };
        match version {
            None if !asked.contains_key(&addon_type(TEMPLATES)) => Ok((asked, None)),
            version => self.settle(asked, version),
        }
    }
}

/// All configurations that are asked for.
fn all(asked: &Asked) -> impl Iterator<Item = AddOnConfig> {
    let all = asked.iter().flat_map(|(type_, (_, referents))| referents.iter().map(move |referent| (type_, referent)));
    all.map(|(type_, referent)| AddOnConfig { group_resource: type_.clone(), referent: referent.clone() })
}

fn with_hash(spec_hash: SpecHash, AddOnConfig { group_resource, referent }: AddOnConfig) -> SetConfig {
    SetConfig { group_resource, config: ConfigSpecHash { referent, spec_hash } }
}

fn overrides(configs: Vec<SetConfig>, version: Option<(Version, VersionSource)>) -> Overrides {
    let mut overrides = Overrides { version: version.map(|(version, _)| version), ..Overrides::default() };
    for config in configs {
        overrides.configs.entry(config.group_resource).or_default().push(config.config);
    }
    overrides
}

/// What a user has asked for on one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// It, or why it can not be had: then the cluster keeps what it has.
    pub overrides: Result<Overrides, Problem>,
    /// What is listed although the hub may not read all of it, so that the add-on's manager finds out the rest.
    pub listed: Option<Overrides>,
    /// Types that can not be configured on single clusters; what was asked for of them is not used.
    pub unsupported: Vec<ConfigGroupResource>,
    /// The version that the user has asked for.
    pub version: Option<Version>,
}

/// What the configurations of an entry are: the defaults, and instead of all of a type those of the placement.
fn asked(addon: &ClusterManagementAddOn, placement: Option<&PlacementStrategy>) -> Asked {
    let mut asked = Asked::new();
    for config in defaults(addon) {
        ask(&mut asked, Level::Default, &config);
    }
    let template = placement.and_then(|placement| placement.addon_template.as_ref());
    let of_template = template.map(|template| template.configs.as_slice()).unwrap_or_default();
    let of_placement = placement.map(|placement| placement.configs.as_slice()).unwrap_or_default();
    let is_named_beside =
        |config: &&AddOnConfig| !of_placement.iter().any(|other| other.group_resource == config.group_resource);
    for config in of_placement.iter().chain(of_template.iter().filter(is_named_beside)) {
        ask(&mut asked, Level::Placement, config);
    }
    asked
}

/// The default configurations of an add-on, in whichever way they are written.
#[must_use]
pub fn defaults(addon: &ClusterManagementAddOn) -> Vec<AddOnConfig> {
    let supported = addon.spec.supported_configs.iter().filter_map(|meta| {
        let referent = meta.default_config.clone()?;
        Some(AddOnConfig { group_resource: meta.group_resource.clone(), referent })
    });
    let all = addon.spec.default_configs.iter().cloned().chain(supported);
    let mut defaults: Vec<AddOnConfig> = Vec::new();
    for config in all.filter(|config| !config.is_placeholder() && !config.referent.name.is_empty()) {
        if !defaults.iter().any(|known| known.group_resource == config.group_resource) {
            defaults.push(config);
        }
    }
    defaults.sort_by(|one, other| one.group_resource.cmp(&other.group_resource));
    defaults
}

/// The template of a former set that is gone, where nothing takes its place. A cluster that followed a version is not left with nothing
/// because the template of that version was deleted.
#[must_use]
pub fn lost_template(former: &Set, set: &Set, catalog: &impl Catalog) -> Option<Problem> {
    if set.template().is_some() {
        return None;
    }
    let SetConfig { group_resource, config } = former.template()?.clone();
    let config = AddOnConfig { group_resource, referent: config.referent };
    let found = catalog.config(&config);
    (!matches!(found, Found::Content { .. })).then(|| problem(&config, &found))
}

/// Whether the version of a set comes from an AddOnHubConfig.
#[must_use]
pub fn asks_by_hub_config(set: &Set) -> bool {
    let hub_configs = addon_type(HUB_CONFIGS);
    set.configs().iter().any(|config| config.group_resource == hub_configs)
}

/// Adds a configuration to what is asked for: beside others of its type in the same place, and instead of those in a lower one.
fn ask(asked: &mut Asked, level: Level, config: &AddOnConfig) {
    let (of, referents) = asked.entry(config.group_resource.clone()).or_insert((level, Vec::new()));
    if *of < level {
        (*of, *referents) = (level, Vec::new());
    }
    if !referents.iter().any(|referent| is_same(referent, &config.referent)) {
        referents.push(config.referent.clone());
    }
}

fn is_same(one: &ConfigReferent, other: &ConfigReferent) -> bool {
    let namespace = |referent: &ConfigReferent| referent.namespace.clone().unwrap_or_default();
    one.name == other.name && namespace(one) == namespace(other)
}

/// Whether a user has asked for something on a cluster's add-on.
#[must_use]
pub fn asks_for_something(on_cluster: &ManagedClusterAddOn) -> bool {
    !on_cluster.spec.configs.is_empty() || own_version(on_cluster).is_some()
}

/// The version that a user has written on a cluster's add-on. What the hub itself has written there is none.
fn own_version(on_cluster: &ManagedClusterAddOn) -> Option<&Version> {
    let assigned = on_cluster.annotations().get(ASSIGNED_VERSION_ANNOTATION);
    let installed = on_cluster.spec.install_version.as_ref();
    let own = installed.filter(|version| assigned.map(String::as_str) != Some(version.as_str()));
    on_cluster.spec.desired_version.as_ref().or(own)
}

/// The hash that the add-on's manager has found for a configuration of one cluster.
fn hash_on_cluster(on_cluster: &ManagedClusterAddOn, config: &AddOnConfig) -> Option<SpecHash> {
    let references = on_cluster.status.iter().flat_map(|status| &status.config_references);
    let of_type = references.filter(|reference| reference.group_resource == config.group_resource);
    let mut states = of_type.filter_map(|reference| reference.desired_config.as_ref());
    let state = states.find(|state| is_same(&state.referent, &config.referent) && !state.spec_hash.is_missing());
    state.map(|state| state.spec_hash.clone())
}

fn problem(config: &AddOnConfig, found: &Found) -> Problem {
    let AddOnConfig { group_resource, referent } = config.clone();
    let name = ConfigName { group_resource, referent };
    match found {
        Found::Foreign { addon } => Problem::ForeignTemplate { template: name.referent.name, addon: addon.clone() },
        Found::NoSuchType => Problem::NoSuchType(name),
        Found::Forbidden => Problem::Forbidden(name),
        Found::NotYet => Problem::NotYet(name),
        Found::Missing | Found::Content { .. } => Problem::Missing(name),
    }
}

#[cfg(test)]
mod tests {
    use drover_api::addon::ManagedClusterAddOnSpec;
    use serde_json::{Value, json};

    use super::*;
    use crate::revision::{ADDON_GROUP, DEPLOYMENT_CONFIGS, EPOCH};

    /// Configurations, by resource and name.
    #[derive(Default)]
    struct Shelf {
        found: BTreeMap<(&'static str, &'static str), Found>,
        templates: Vec<Template>,
    }

    impl Shelf {
        fn with(mut self, resource: &'static str, name: &'static str, hash: &str, version: Option<&str>) -> Self {
            let version: Option<Version> = version.map(|version| version.parse().expect("a version"));
            if resource == TEMPLATES {
                self.templates.push(Template { name: name.to_owned(), version: version.clone() });
            }
            let hash = hash.parse().expect("any text is a hash");
            self.found.insert((resource, name), Found::Content { hash, generation: Some(1), version });
            self
        }

        fn but(mut self, resource: &'static str, name: &'static str, found: Found) -> Self {
            self.found.insert((resource, name), found);
            self
        }
    }

    impl Catalog for Shelf {
        fn config(&self, config: &AddOnConfig) -> Found {
            let key = (config.group_resource.resource.as_str(), config.referent.name.as_str());
            self.found.iter().find(|(known, _)| **known == key).map_or(Found::Missing, |(_, found)| found.clone())
        }
    }

    fn addon(spec: Value) -> ClusterManagementAddOn {
        ClusterManagementAddOn::new("helloworld", serde_json::from_value(spec).expect("a valid add-on"))
    }

    fn config(resource: &str, name: &str) -> Value {
        json!({ "group": ADDON_GROUP, "resource": resource, "name": name })
    }

    /// An add-on with defaults, and one placement.
    fn placed(defaults: &[Value], placement: Value) -> ClusterManagementAddOn {
        let mut entry = json!({ "namespace": "default", "name": "aws" });
        if let (Value::Object(entry), Value::Object(placement)) = (&mut entry, placement) {
            entry.extend(placement);
        }
        addon(json!({ "defaultConfigs": defaults, "installStrategy": { "type": "Placements", "placements": [entry] } }))
    }

    fn ask(addon: &ClusterManagementAddOn, shelf: &Shelf) -> Result<Configured, Problem> {
        let templates = shelf.templates.clone();
        let versions = Versions::of(addon, &templates);
        let placement = addon.spec.install_strategy.as_ref().and_then(|strategy| strategy.placements.first());
        let (is_templated, dialect) = (Ok(!templates.is_empty()), Dialect::Drover);
        let (templates, versions) = (&templates, &versions);
        Configuration { addon, catalog: shelf, templates, versions, dialect, is_templated, epoch: EPOCH }.of(placement)
    }

    fn own(addon: &ClusterManagementAddOn, shelf: &Shelf, on_cluster: Value) -> Own {
        let spec = serde_json::from_value(on_cluster).expect("a valid add-on");
        let mut mca = ManagedClusterAddOn::new("helloworld", spec);
        let supported = vec![addon_type(DEPLOYMENT_CONFIGS), addon_type(HUB_CONFIGS)];
        mca.status.get_or_insert_default().supported_configs = supported;
        let templates = shelf.templates.clone();
        let versions = Versions::of(addon, &templates);
        let (is_templated, dialect) = (Ok(!templates.is_empty()), Dialect::Drover);
        let (templates, versions) = (&templates, &versions);
        Configuration { addon, catalog: shelf, templates, versions, dialect, is_templated, epoch: EPOCH }.own(&mca)
    }

    /// A set in a few words: resource/name=hash, and the version.
    fn words(configured: &Configured) -> String {
        let configs = configured.set.configs().iter().map(|config| {
            format!("{}/{}={}", config.group_resource.resource, config.config.referent.name, config.config.spec_hash)
        });
        let version = configured.set.version().map(Version::to_string);
        configs.chain(version).collect::<Vec<_>>().join(" ")
    }

    fn shelf() -> Shelf {
        Shelf::default()
            .with(DEPLOYMENT_CONFIGS, "small", "h1", None)
            .with(DEPLOYMENT_CONFIGS, "large", "h2", None)
            .with(HUB_CONFIGS, "hub-xxx", "h3", Some("v0.10.0"))
            .with(HUB_CONFIGS, "hub-yyy", "h4", Some("v0.11.0"))
    }

    #[test]
    fn a_placement_replaces_all_of_a_type_and_keeps_the_other_defaults() {
        let defaults = [config(DEPLOYMENT_CONFIGS, "small"), config(HUB_CONFIGS, "hub-xxx")];
        let addon = placed(&defaults, json!({ "configs": [config(DEPLOYMENT_CONFIGS, "large")] }));
        let configured = ask(&addon, &shelf()).expect("it can be had");
        assert_eq!(words(&configured), "addondeploymentconfigs/large=h2 addonhubconfigs/hub-xxx=h3 v0.10.0");
        assert_eq!(configured.version_from, Some(VersionSource::HubConfig));
    }

    #[test]
    fn both_ways_to_write_defaults_count() {
        let spec = json!({ "supportedConfigs": [
            { "group": ADDON_GROUP, "resource": DEPLOYMENT_CONFIGS, "defaultConfig": { "name": "small" } },
            { "group": ADDON_GROUP, "resource": HUB_CONFIGS },
        ], "defaultConfigs": [config("others", "__reserved_no_default__")] });
        assert_eq!(
            ask(&addon(spec), &shelf()).map(|configured| words(&configured)),
            Ok("addondeploymentconfigs/small=h1".to_owned())
        );
    }

    #[test]
    fn the_configs_of_an_addon_template_count_where_the_placement_has_none_of_the_type() {
        let template = json!({ "configs": [config(DEPLOYMENT_CONFIGS, "small"), config(HUB_CONFIGS, "hub-xxx")] });
        let addon = placed(&[], json!({ "configs": [config(DEPLOYMENT_CONFIGS, "large")], "addonTemplate": template }));
        assert_eq!(
            words(&ask(&addon, &shelf()).expect("it can be had")),
            "addondeploymentconfigs/large=h2 addonhubconfigs/hub-xxx=h3 v0.10.0"
        );
    }

    #[test]
    fn what_can_not_be_had_is_named() {
        let message = |found: Option<Found>| {
            let addon = placed(&[], json!({ "configs": [config("others", "mine")] }));
            let shelf = found.into_iter().fold(shelf(), |shelf, found| shelf.but("others", "mine", found));
            ask(&addon, &shelf).expect_err("it can not be had").to_string()
        };
        assert!(message(None).starts_with("the config others mine does not exist"), "{}", message(None));
        assert!(message(Some(Found::NoSuchType)).contains("no resource others.addon.open-cluster-management.io"));
        assert!(message(Some(Found::Forbidden)).contains("drover.dev/hub-reads-configs=true"));
        assert!(message(Some(Found::NotYet)).contains("not been looked up yet"));
    }

    #[test]
    fn what_the_hub_may_not_read_the_manager_of_the_addon_may_have() {
        let mut addon = placed(&[], json!({ "configs": [config("others", "mine")] }));
        let shelf = shelf().but("others", "mine", Found::Forbidden);
        addon.status = serde_json::from_value(
            json!({ "installProgressions": [{ "namespace": "default", "name": "aws", "configReferences": [
            { "group": ADDON_GROUP, "resource": "others", "desiredConfig": { "name": "mine", "specHash": "h9" } },
        ] }] }),
        )
        .expect("a valid status");
        assert_eq!(words(&ask(&addon, &shelf).expect("the manager has it")), "others/mine=h9");
    }

    #[test]
    fn what_the_manager_says_of_placements_goes_before_what_is_left_of_an_older_one() {
        let mut addon = placed(&[config("others", "mine")], json!({}));
        let shelf = shelf().but("others", "mine", Found::Forbidden);
        let reference = |hash: &str| json!([{ "group": ADDON_GROUP, "resource": "others", "desiredConfig": { "name": "mine", "specHash": hash } }]);
        let mut found = |status: Value| {
            addon.status = serde_json::from_value(status).expect("a valid status");
            words(&ask(&addon, &shelf).expect("the manager has it"))
        };
        let defaults =
            json!({ "defaultconfigReferences": reference("h1"), "defaultConfigReferences": reference("h2") });
        assert_eq!(found(defaults.clone()), "others/mine=h2");
        let mut all = defaults;
        all["installProgressions"] =
            json!([{ "namespace": "default", "name": "aws", "configReferences": reference("h3") }]);
        assert_eq!(found(all), "others/mine=h3");
    }

    #[test]
    fn what_the_hub_may_not_read_is_listed_without_a_hash_until_the_manager_has_it() {
        let listed = |found: Found| {
            let addon =
                placed(&[config(DEPLOYMENT_CONFIGS, "small")], json!({ "configs": [config("others", "mine")] }));
            let shelf = shelf().but("others", "mine", found);
            let versions = Versions::default();
            let placement = addon.spec.install_strategy.as_ref().and_then(|strategy| strategy.placements.first());
            let configuration = Configuration {
                addon: &addon,
                catalog: &shelf,
                templates: &[],
                versions: &versions,
                dialect: Dialect::Drover,
                is_templated: Ok(false),
                epoch: EPOCH,
            };
            let set = configuration.listed(placement).expect("it can be listed");
            words(&Configured { set, version_from: None })
        };
        assert_eq!(listed(Found::Forbidden), "addondeploymentconfigs/small=h1 others/mine=");
    }

    #[test]
    fn what_a_user_asks_for_and_the_hub_may_not_read_is_listed_too() {
        let addon = placed(&[], json!({}));
        let asked = json!({ "configs": [config(DEPLOYMENT_CONFIGS, "large")] });
        let of = |found: Found| own(&addon, &shelf().but(DEPLOYMENT_CONFIGS, "large", found), asked.clone());
        let forbidden = of(Found::Forbidden);
        assert!(matches!(forbidden.overrides, Err(Problem::Forbidden(_))));
        let listed = forbidden.listed.expect("the manager has to see it");
        assert!(listed.configs[&addon_type(DEPLOYMENT_CONFIGS)][0].spec_hash.is_missing());
        assert_eq!(of(Found::Missing).listed, None, "there is nothing to find out");
    }

    #[test]
    fn a_version_chooses_its_template_unless_one_is_named_in_a_higher_place() {
        let shelf = shelf().with(TEMPLATES, "first", "t1", Some("v1")).with(TEMPLATES, "second", "t2", Some("v2"));
        let ask_for = |defaults: &[Value], placement: Value| {
            ask(&placed(defaults, placement), &shelf).map(|configured| (words(&configured), configured.version_from))
        };
        let by_version = |version: &str| json!({ "addonTemplate": { "installVersion": version } });
        assert_eq!(
            ask_for(&[], by_version("v1")),
            Ok(("addontemplates/first=t1 v1".to_owned(), Some(VersionSource::AddOnTemplate)))
        );
        assert_eq!(
            ask_for(&[], json!({})),
            Ok(("addontemplates/second=t2 v2".to_owned(), Some(VersionSource::Default)))
        );
        let default = [config(TEMPLATES, "second")];
        assert_eq!(
            ask_for(&default, by_version("v1")).map(|found| found.0),
            Ok("addontemplates/first=t1 v1".to_owned())
        );
        assert_eq!(
            ask_for(&default, json!({})),
            Ok(("addontemplates/second=t2 v2".to_owned(), Some(VersionSource::Template)))
        );
        let both = json!({ "configs": [config(TEMPLATES, "second")], "addonTemplate": { "installVersion": "v1" } });
        let problem = ask_for(&[], both).expect_err("they do not agree");
        assert_eq!(
            problem.to_string(),
            "the template second is version v2, and version v1 is asked for in the same place: keep one of them"
        );
    }

    #[test]
    fn a_template_in_a_higher_place_than_a_version_decides_the_version() {
        let shelf = shelf()
            .with(TEMPLATES, "first", "t1", Some("v1"))
            .but(
                HUB_CONFIGS,
                "hub",
                Found::Content { hash: "h".parse().expect("a hash"), generation: None, version: "v2".parse().ok() },
            )
            .with(TEMPLATES, "second", "t2", Some("v2"));
        let addon = placed(&[config(HUB_CONFIGS, "hub")], json!({ "configs": [config(TEMPLATES, "first")] }));
        assert_eq!(
            words(&ask(&addon, &shelf).expect("it can be had")),
            "addonhubconfigs/hub=h addontemplates/first=t1 v1"
        );
    }

    #[test]
    fn a_version_that_there_is_not_is_refused_where_versions_are_known() {
        let asked = json!({ "addonTemplate": { "installVersion": "v3" } });
        assert!(ask(&placed(&[], asked.clone()), &shelf()).is_ok(), "without versions any is accepted");
        let shelf = shelf().with(TEMPLATES, "first", "t1", Some("v1"));
        let problem = ask(&placed(&[], asked), &shelf).expect_err("there is none");
        assert_eq!(problem.to_string(), "version v3 is none of those that there are: v1");
    }

    #[test]
    fn there_are_no_versions_where_ocm_s_words_are_spoken() {
        let hub = Found::Content { hash: "h".parse().expect("a hash"), generation: None, version: "v2".parse().ok() };
        let shelf = shelf().with(TEMPLATES, "first", "t1", Some("v1")).but(HUB_CONFIGS, "hub", hub);
        let configs = [config(TEMPLATES, "first"), config(HUB_CONFIGS, "hub")];
        let addon = placed(&configs, json!({ "addonTemplate": { "installVersion": "v3" } }));
        let versions = Versions::default();
        let configuration = Configuration {
            addon: &addon,
            catalog: &shelf,
            templates: &[],
            versions: &versions,
            dialect: Dialect::Ocm,
            is_templated: Ok(false),
            epoch: EPOCH,
        };
        let placement = addon.spec.install_strategy.as_ref().and_then(|strategy| strategy.placements.first());
        let configured = configuration.of(placement).expect("it can be had");
        assert_eq!(words(&configured), "addonhubconfigs/hub=h addontemplates/first=t1");
        let spec = serde_json::from_value(json!({ "installVersion": "v3" })).expect("a valid add-on");
        let own = configuration.own(&ManagedClusterAddOn::new("helloworld", spec));
        assert_eq!((own.overrides, own.version), (Ok(Overrides::default()), None));
    }

    #[test]
    fn a_user_overrides_supported_types_only() {
        let addon = placed(&[config(DEPLOYMENT_CONFIGS, "small")], json!({}));
        let own = own(
            &addon,
            &shelf(),
            json!({ "configs": [config(DEPLOYMENT_CONFIGS, "large"), config("others", "mine")] }),
        );
        assert_eq!(own.unsupported, [addon_type("others")]);
        let overrides = own.overrides.expect("it can be had");
        assert_eq!(overrides.configs.keys().collect::<Vec<_>>(), [&addon_type(DEPLOYMENT_CONFIGS)]);
        assert_eq!(overrides.version, None);
    }

    #[test]
    fn a_version_that_a_user_has_written_is_the_users_and_one_that_the_hub_has_written_is_not() {
        let shelf = shelf().with(TEMPLATES, "first", "t1", Some("v1")).with(TEMPLATES, "second", "t2", Some("v2"));
        let addon = placed(&[], json!({}));
        let overrides = own(&addon, &shelf, json!({ "installVersion": "v1" })).overrides.expect("it can be had");
        assert_eq!(overrides.version.as_ref().map(Version::as_str), Some("v1"));
        assert_eq!(overrides.configs[&addon_type(TEMPLATES)][0].referent.name, "first");
        let mut assigned = ManagedClusterAddOn::new("helloworld", ManagedClusterAddOnSpec::default());
        assigned.spec.install_version = "v1".parse().ok();
        assigned.annotations_mut().insert(ASSIGNED_VERSION_ANNOTATION.to_owned(), "v1".to_owned());
        assert_eq!(own_version(&assigned), None);
        assert!(!asks_for_something(&assigned), "so that nobody has to look at it when versions change");
        assigned.spec.install_version = "v2".parse().ok();
        assert_eq!(own_version(&assigned).map(Version::as_str), Some("v2"));
    }

    #[test]
    fn a_users_wish_that_can_not_be_had_is_a_problem_of_that_cluster() {
        let shelf = shelf().with(TEMPLATES, "first", "t1", Some("v1"));
        let addon = placed(&[], json!({}));
        let problem = own(&addon, &shelf, json!({ "installVersion": "v3" })).overrides.expect_err("there is none");
        assert!(matches!(problem, Problem::UnsupportedVersion { .. }), "{problem}");
        let missing = own(&addon, &shelf, json!({ "configs": [config(DEPLOYMENT_CONFIGS, "none")] })).overrides;
        assert!(matches!(missing, Err(Problem::Missing(_))), "{missing:?}");
    }

    #[test]
    fn a_template_that_is_gone_is_missed_unless_another_takes_its_place() {
        let addon = addon(json!({}));
        let set = |shelf: &Shelf| ask(&addon, shelf).expect("it can be had").set;
        let one = Shelf::default().with(TEMPLATES, "one", "1", Some("v1"));
        let two = Shelf::default().with(TEMPLATES, "two", "2", Some("v2"));
        let none = Shelf::default();
        let lost = |former: &Shelf, now: &Shelf| lost_template(&set(former), &set(now), now).map(|it| it.to_string());
        let expected = "the config addontemplates one does not exist: create it, or refer to another";
        assert_eq!(lost(&one, &none).as_deref(), Some(expected));
        assert_eq!(lost(&one, &two), None);
        assert_eq!(lost(&none, &none), None);
        assert_eq!(lost_template(&set(&one), &set(&none), &one), None, "it is there, and not asked for any more");
    }

    #[test]
    fn versions_in_doubt_block_what_is_asked_for_by_version_and_nothing_else() {
        let shelf = shelf().with(TEMPLATES, "one", "t1", Some("v1")).with(TEMPLATES, "again", "t2", Some("v1"));
        let problem = |placement: Value| ask(&placed(&[], placement), &shelf).err().map(|it| it.to_string());
        let doubt = Some("the templates one and again are both version v1: give one of them another".to_owned());
        assert_eq!(problem(json!({})), doubt, "the default version is asked for");
        assert_eq!(problem(json!({ "addonTemplate": { "installVersion": "v1" } })), doubt);
        assert_eq!(problem(json!({ "configs": [config(HUB_CONFIGS, "hub-xxx")] })), doubt);
        let refers = json!({ "configs": [config(TEMPLATES, "again"), config(DEPLOYMENT_CONFIGS, "small")] });
        assert_eq!(problem(refers), None, "a template is named");
        let addon = placed(&[], json!({}));
        let by_version = own(&addon, &shelf, json!({ "installVersion": "v1" })).overrides;
        assert!(matches!(by_version, Err(Problem::SameVersion { .. })), "{by_version:?}");
        assert!(own(&addon, &shelf, json!({ "configs": [config(TEMPLATES, "again")] })).overrides.is_ok());
    }

    #[test]
    fn a_default_that_can_not_be_told_is_not_taken_for_none() {
        let mut addon = placed(&[], json!({}));
        addon.annotations_mut().insert("addon.open-cluster-management.io/default-version".to_owned(), "v9".to_owned());
        let shelf = shelf().with(TEMPLATES, "one", "t1", Some("v1"));
        assert_eq!(ask(&addon, &shelf).err(), Some(Problem::DefaultVersion("v9".to_owned())));
    }

    #[test]
    fn without_knowing_the_templates_nobody_can_tell_what_may_be_configured() {
        let (addon, shelf) = (placed(&[], json!({})), shelf());
        let ask = |type_: &str, supported: &[&str], is_templated: Result<bool, Problem>| {
            let mut mca = ManagedClusterAddOn::new("helloworld", ManagedClusterAddOnSpec::default());
            mca.spec.configs = vec![serde_json::from_value(config(type_, "small")).expect("a reference")];
            let supported = supported.iter().map(|type_| addon_type(type_)).collect();
            mca.status.get_or_insert_default().supported_configs = supported;
            let versions = Versions::default();
            let (addon, catalog, versions, dialect) = (&addon, &shelf, &versions, Dialect::Drover);
            let of = Configuration { addon, catalog, templates: &[], versions, dialect, is_templated, epoch: EPOCH };
            let own = of.own(&mca);
            (own.unsupported.len(), own.overrides.map(|overrides| overrides.configs.len()))
        };
        let unknown = || Err(Problem::TemplatesNotYet);
        assert_eq!(ask(DEPLOYMENT_CONFIGS, &[], Ok(true)), (0, Ok(1)));
        assert_eq!(ask(DEPLOYMENT_CONFIGS, &[], Ok(false)), (1, Ok(0)));
        assert_eq!(ask(DEPLOYMENT_CONFIGS, &[], unknown()), (0, Err(Problem::TemplatesNotYet)));
        assert_eq!(ask(DEPLOYMENT_CONFIGS, &[DEPLOYMENT_CONFIGS], unknown()), (0, Ok(1)), "it is declared");
        assert_eq!(ask("others", &[], unknown()), (1, Ok(0)), "no template has anything to do with it");
    }
}
