//! The versions in which an add-on can be had.

use drover_api::{
    addon::ClusterManagementAddOn,
    grammar::Version,
    names::{DEFAULT_VERSION_ANNOTATION, SUPPORTED_VERSIONS_ANNOTATION},
};
use kube::ResourceExt;

use super::{catalog::Template, configuration::Problem};

/// The versions in which an add-on can be had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// All of them, lowest first. With none, any version is accepted.
    pub supported: Vec<Version>,
    /// The one that is installed where none is asked for.
    pub default: Option<Version>,
    /// What is wrong with them. Until that is corrected, nobody is moved to any who asks for one, or for the default.
    pub doubt: Option<Problem>,
}

impl Versions {
    /// The versions of an add-on: those of its templates, and those that its manager declares.
    #[must_use]
    pub fn of(addon: &ClusterManagementAddOn, templates: &[Template]) -> Self {
        let (mut supported, unreadable) = declared(addon);
        supported.extend(templates.iter().filter_map(|template| template.version.clone()));
        supported.sort();
        supported.dedup();
        let (default, unknown) = match default_of(addon, &supported) {
            Ok(default) => (default, None),
            Err(problem) => (None, Some(problem)),
        };
        Self { supported, default, doubt: twice(templates).or(unreadable).or(unknown) }
    }

    /// The versions of an add-on while nobody knows its templates, and why: those that were last told of.
    #[must_use]
    pub fn last_told(addon: &ClusterManagementAddOn, doubt: Problem) -> Self {
        let (mut supported, _) = declared(addon);
        let status = addon.status.as_ref();
        supported.extend(status.into_iter().flat_map(|status| status.supported_versions.iter().cloned()));
        supported.sort();
        supported.dedup();
        let default = status.and_then(|status| status.default_version.clone());
        Self { supported, default, doubt: Some(doubt) }
    }

    /// Whether a version can be had.
    #[must_use]
    pub fn supports(&self, version: &Version) -> bool {
        self.supported.is_empty() || self.supported.contains(version)
    }
}

/// The versions in which each of several add-ons can be had, lowest first. An add-on that can be had in any version rules none out.
#[must_use]
pub fn in_common<'a>(addons: impl IntoIterator<Item = &'a Versions>) -> Vec<Version> {
    let mut limits = addons.into_iter().filter(|versions| !versions.supported.is_empty());
    let Some(first) = limits.next() else { return Vec::new() };
    let mut common = first.supported.clone();
    for versions in limits {
        common.retain(|version| versions.supported.contains(version));
    }
    common
}

/// The versions that an add-on's own manager declares, and what is wrong with those that can not be read.
fn declared(addon: &ClusterManagementAddOn) -> (Vec<Version>, Option<Problem>) {
    let list = addon.annotations().get(SUPPORTED_VERSIONS_ANNOTATION).map_or("", String::as_str);
    let mut problem = None;
    let mut versions = Vec::new();
    for version in list.split(',').map(str::trim).filter(|version| !version.is_empty()) {
        match version.parse() {
            Ok(version) => versions.push(version),
            Err(error) => problem = problem.or(Some(Problem::DeclaredVersion(format!("{error}")))),
        }
    }
    (versions, problem)
}

/// The version that is installed where none is asked for.
fn default_of(addon: &ClusterManagementAddOn, supported: &[Version]) -> Result<Option<Version>, Problem> {
    let Some(named) = addon.annotations().get(DEFAULT_VERSION_ANNOTATION) else {
        return Ok(supported.iter().rev().find(|version| !version.is_prerelease()).cloned());
    };
    let version = supported.iter().find(|version| version.as_str() == named);
    version.cloned().map(Some).ok_or_else(|| Problem::DefaultVersion(named.clone()))
}

/// Two templates that say they are one version.
fn twice(templates: &[Template]) -> Option<Problem> {
    let mut versioned: Vec<_> =
        templates.iter().filter_map(|template| Some((template.version.as_ref()?, template))).collect();
    versioned.sort_by(|one, other| one.0.cmp(other.0));
    versioned.windows(2).find(|pair| pair[0].0 == pair[1].0).map(|pair| Problem::SameVersion {
        version: pair[0].0.clone(),
        templates: [pair[0].1.name.clone(), pair[1].1.name.clone()],
    })
}

#[cfg(test)]
mod tests {
    use drover_api::addon::ClusterManagementAddOnSpec;

    use super::*;

    fn addon(annotations: &[(&str, &str)]) -> ClusterManagementAddOn {
        let mut addon = ClusterManagementAddOn::new("helloworld", ClusterManagementAddOnSpec::default());
        let annotations = annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        addon.annotations_mut().extend(annotations);
        addon
    }

    fn template(name: &str, version: &str) -> Template {
        Template { name: name.to_owned(), version: version.parse().ok() }
    }

    fn texts(versions: &Versions) -> (Vec<&str>, Option<&str>) {
        (versions.supported.iter().map(Version::as_str).collect(), versions.default.as_ref().map(Version::as_str))
    }

    #[test]
    fn templates_make_versions_and_the_highest_that_is_released_is_the_default() {
        let templates = [template("c", "v10"), template("a", "v2.1"), template("b", "v11-rc.1"), template("d", "")];
        let versions = Versions::of(&addon(&[]), &templates);
        assert_eq!(texts(&versions), (vec!["v2.1", "v10", "v11-rc.1"], Some("v10")));
    }

    #[test]
    fn a_manager_declares_its_versions() {
        let versions = Versions::of(&addon(&[(SUPPORTED_VERSIONS_ANNOTATION, "v2, v1,")]), &[]);
        assert_eq!(texts(&versions), (vec!["v1", "v2"], Some("v2")));
    }

    #[test]
    fn the_default_can_be_named() {
        let named = |name| addon(&[(SUPPORTED_VERSIONS_ANNOTATION, "v1,v2"), (DEFAULT_VERSION_ANNOTATION, name)]);
        assert_eq!(texts(&Versions::of(&named("v1"), &[])).1, Some("v1"));
        let versions = Versions::of(&named("v3"), &[]);
        assert_eq!(versions.doubt, Some(Problem::DefaultVersion("v3".to_owned())));
        assert_eq!(texts(&versions), (vec!["v1", "v2"], None));
    }

    #[test]
    fn two_templates_can_not_be_one_version() {
        let versions = Versions::of(&addon(&[]), &[template("a", "v1"), template("b", "v1")]);
        let doubt = versions.doubt.as_ref().map(ToString::to_string).unwrap_or_default();
        assert!(doubt.contains("a and b"), "{doubt}");
        assert_eq!(texts(&versions).0, ["v1"], "it is a version all the same");
    }

    #[test]
    fn what_can_be_read_of_a_declaration_counts() {
        let versions = Versions::of(&addon(&[(SUPPORTED_VERSIONS_ANNOTATION, "v2,no version,v1")]), &[]);
        assert_eq!(texts(&versions).0, ["v1", "v2"]);
        assert!(matches!(versions.doubt, Some(Problem::DeclaredVersion(_))));
    }

    #[test]
    fn add_ons_have_those_versions_in_common_that_none_rules_out() {
        let [some, others, any] = ["v1,v2,v3", "v2,v3,v4", ""]
            .map(|list| Versions::of(&addon(&[(SUPPORTED_VERSIONS_ANNOTATION, list)]), &[]));
        let common =
            |addons: &[&Versions]| in_common(addons.iter().copied()).iter().map(Version::to_string).collect::<Vec<_>>();
        assert_eq!(common(&[&some, &others]), ["v2", "v3"]);
        assert_eq!(common(&[&any, &some]), ["v1", "v2", "v3"]);
        assert!(common(&[&any]).is_empty());
        assert!(common(&[]).is_empty());
    }

    #[test]
    fn without_versions_any_is_accepted() {
        let versions = Versions::of(&addon(&[]), &[]);
        assert!(versions.supports(&"v7".parse().expect("a version")));
    }

    #[test]
    fn while_templates_are_not_known_it_is_kept_to_what_was_last_told() {
        let mut addon = addon(&[(SUPPORTED_VERSIONS_ANNOTATION, "v3")]);
        let status = serde_json::json!({ "supportedVersions": ["v1", "v2"], "defaultVersion": "v2" });
        addon.status = serde_json::from_value(status).expect("a valid status");
        let versions = Versions::last_told(&addon, Problem::TemplatesNotYet);
        assert_eq!(texts(&versions), (vec!["v1", "v2", "v3"], Some("v2")));
        assert_eq!(versions.doubt, Some(Problem::TemplatesNotYet));
    }
}
