//! What clusters are configured to: the set that a placement asks for, and what users ask for instead on single clusters.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{
    addon::{
        AddOnConfig, ClusterManagementAddOn, ConfigGroupResource, ConfigReferent, ConfigSpecHash, ManagedClusterAddOn,
        PlacementStrategy,
    },
    drover::SetConfig,
    grammar::{SetFingerprint, SpecHash, Version},
    names::ASSIGNED_VERSION_ANNOTATION,
};
use kube::ResourceExt;

use super::{
    catalog::{Catalog, Found, Template},
    set::{Overrides, Set},
    versions::Versions,
};

/// The group of the kinds that come with add-ons.
const ADDON_GROUP: &str = "addon.open-cluster-management.io";
/// The type of templates.
const TEMPLATES: &str = "addontemplates";
/// The type of configurations that ask for a version.
const HUB_CONFIGS: &str = "addonhubconfigs";
/// The type of settings that templates are rendered with.
const DEPLOYMENT_CONFIGS: &str = "addondeploymentconfigs";

/// Why what is configured can not be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is no such object.
    #[error("the config {0} does not exist: create it, or refer to another")]
    Missing(ConfigName),
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
    /// What the add-on's manager declares makes no sense.
    #[error("the annotation addon.open-cluster-management.io/supported-versions: {0}")]
    DeclaredVersion(String),
    /// The set that a placement is held at is not known.
    #[error(
        "drover.dev/pin names the set {0}, which is not known: copy one from the AddOnRollout's status.sets, or remove the pin"
    )]
    UnknownSet(SetFingerprint),
    /// The strategy makes no sense.
    #[error("{0}: correct it")]
    Strategy(String),
    /// The placement that clusters are chosen by is not there.
    #[error("there is no Placement {0}: create it, or remove it from the list; its clusters stay as they are")]
    NoPlacement(drover_api::reference::PlacementRef),
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
}

/// A configuration, and where it is asked for.
type Asked = BTreeMap<ConfigGroupResource, (Level, Vec<ConfigReferent>)>;

impl<C: Catalog> Configuration<'_, C> {
    /// What the clusters of an entry are configured to: those of a placement, or those that no placement selects.
    pub fn of(&self, placement: Option<&PlacementStrategy>) -> Result<Configured, Problem> {
        let asked = asked(self.addon, placement);
        let template = placement.and_then(|placement| placement.addon_template.as_ref());
        let from_placement = template.and_then(|template| template.version());
        let version = match self.hub_config_version(&asked)? {
            Some((level, version)) => Some((level, version, VersionSource::HubConfig)),
            None => from_placement.map(|version| (Level::Placement, version.clone(), VersionSource::AddOnTemplate)),
        };
        let (asked, version) = self.settle(asked, version)?;
        let configs = self.look_up_all(&asked, |config| self.hash_by_manager(config))?;
        let version_from = version.as_ref().map(|(_, source)| *source);
        Ok(Configured { set: Set::new(configs, version.map(|(version, _)| version)), version_from })
    }

    /// The version that the effective AddOnHubConfig asks for.
    fn hub_config_version(&self, asked: &Asked) -> Result<Option<(Level, Version)>, Problem> {
        let type_ = addon_type(HUB_CONFIGS);
        let Some((level, referents)) = asked.get(&type_) else { return Ok(None) };
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
    fn settle(
        &self,
        mut asked: Asked,
        version: Option<(Level, Version, VersionSource)>,
    ) -> Result<(Asked, Option<(Version, VersionSource)>), Problem> {
        let type_ = addon_type(TEMPLATES);
        let template = asked.get(&type_).and_then(|(level, referents)| Some((*level, referents.first()?.clone())));
        let by_default =
            || self.versions.default.clone().map(|version| (Level::Nowhere, version, VersionSource::Default));
        let version = if template.is_none() { version.or_else(by_default) } else { version };
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

    fn supported(&self, version: &Version) -> Result<(), Problem> {
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
        let all =
            asked.iter().flat_map(|(type_, (_, referents))| referents.iter().map(move |referent| (type_, referent)));
        all.map(|(type_, referent)| {
            let config = AddOnConfig { group_resource: type_.clone(), referent: referent.clone() };
            let spec_hash = self.look_up(&config, &by_manager)?;
            let config = ConfigSpecHash { referent: referent.clone(), spec_hash };
            Ok(SetConfig { group_resource: type_.clone(), config })
        })
        .collect()
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
        let defaults =
            status.default_config_references_v1alpha1.iter().chain(&status.default_config_references_v1beta1);
        let defaults = defaults.map(|reference| (&reference.group_resource, reference.desired_config.as_ref()));
        let placements = status.install_progressions.iter().flat_map(|progression| &progression.config_references);
        let placements = placements.map(|reference| (&reference.group_resource, reference.desired_config.as_ref()));
        let states = defaults.chain(placements).filter(|(type_, _)| **type_ == config.group_resource);
        let mut states =
            states.filter_map(|(_, state)| state).filter(|state| is_same(&state.referent, &config.referent));
        states.find(|state| !state.spec_hash.is_missing()).map(|state| state.spec_hash.clone())
    }

    /// What a user has asked for on one cluster.
    #[must_use]
    pub fn own(&self, on_cluster: &ManagedClusterAddOn) -> Own {
        let supported = self.supported_types(on_cluster);
        let mut asked = Asked::new();
        let mut unsupported = BTreeSet::new();
        for config in &on_cluster.spec.configs {
            if supported.contains(&config.group_resource) {
                ask(&mut asked, Level::Cluster, config);
            } else {
                unsupported.insert(config.group_resource.clone());
            }
        }
        let overrides = self.overrides(on_cluster, asked);
        Own { overrides, unsupported: unsupported.into_iter().collect(), version: own_version(on_cluster).cloned() }
    }

    /// The types that may be configured on single clusters. Those of an add-on made from templates are known.
    fn supported_types(&self, on_cluster: &ManagedClusterAddOn) -> BTreeSet<ConfigGroupResource> {
        let declared = on_cluster.status.iter().flat_map(|status| status.supported_configs.iter().cloned());
        let known = [TEMPLATES, DEPLOYMENT_CONFIGS].map(addon_type);
        declared.chain(known.into_iter().filter(|_| !self.templates.is_empty())).collect()
    }

    fn overrides(&self, on_cluster: &ManagedClusterAddOn, asked: Asked) -> Result<Overrides, Problem> {
        let version = match own_version(on_cluster) {
            Some(version) => Some((Level::Cluster, version.clone(), VersionSource::User)),
            None => self.hub_config_version(&asked)?.map(|(level, version)| (level, version, VersionSource::HubConfig)),
        };
        let (asked, version) = match version {
            None if !asked.contains_key(&addon_type(TEMPLATES)) => (asked, None),
            version => self.settle(asked, version)?,
        };
        let configs = self.look_up_all(&asked, |config| hash_on_cluster(on_cluster, config))?;
        let mut overrides = Overrides { version: version.map(|(version, _)| version), ..Overrides::default() };
        for config in configs {
            overrides.configs.entry(config.group_resource).or_default().push(config.config);
        }
        Ok(overrides)
    }
}

/// What a user has asked for on one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// It, or why it can not be had: then the cluster keeps what it has.
    pub overrides: Result<Overrides, Problem>,
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

fn addon_type(resource: &str) -> ConfigGroupResource {
    ConfigGroupResource { group: ADDON_GROUP.to_owned(), resource: resource.to_owned() }
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
        Found::NoSuchType => Problem::NoSuchType(name),
        Found::Forbidden => Problem::Forbidden(name),
        Found::NotYet => Problem::NotYet(name),
        Found::Missing | Found::Content { .. } => Problem::Missing(name),
    }
}
