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
}

impl Versions {
    /// The versions of an add-on: those of its templates, or those that its manager declares.
    pub fn of(addon: &ClusterManagementAddOn, templates: &[Template]) -> Result<Self, Problem> {
        let mut supported = declared(addon)?;
        supported.extend(templates.iter().filter_map(|template| template.version.clone()));
        supported.sort();
        if let Some(twice) = twice(templates) {
            return Err(twice);
        }
        supported.dedup();
        let default = match addon.annotations().get(DEFAULT_VERSION_ANNOTATION) {
            None => supported.iter().rev().find(|version| !version.is_prerelease()).cloned(),
            Some(named) => {
                let version = supported.iter().find(|version| version.as_str() == named);
                Some(version.cloned().ok_or_else(|| Problem::DefaultVersion(named.clone()))?)
            }
        };
        Ok(Self { supported, default })
    }

    /// Whether a version can be had.
    #[must_use]
    pub fn supports(&self, version: &Version) -> bool {
        self.supported.is_empty() || self.supported.contains(version)
    }
}

/// The versions that an add-on's own manager declares.
fn declared(addon: &ClusterManagementAddOn) -> Result<Vec<Version>, Problem> {
    let Some(list) = addon.annotations().get(SUPPORTED_VERSIONS_ANNOTATION) else { return Ok(Vec::new()) };
    let versions = list.split(',').map(str::trim).filter(|version| !version.is_empty());
    versions.map(|version| version.parse().map_err(|error| Problem::DeclaredVersion(format!("{error}")))).collect()
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
        let versions = Versions::of(&addon(&[]), &templates).expect("valid versions");
        assert_eq!(texts(&versions), (vec!["v2.1", "v10", "v11-rc.1"], Some("v10")));
    }

    #[test]
    fn a_manager_declares_its_versions() {
        let versions =
            Versions::of(&addon(&[(SUPPORTED_VERSIONS_ANNOTATION, "v2, v1,")]), &[]).expect("valid versions");
        assert_eq!(texts(&versions), (vec!["v1", "v2"], Some("v2")));
    }

    #[test]
    fn the_default_can_be_named() {
        let named = |name| addon(&[(SUPPORTED_VERSIONS_ANNOTATION, "v1,v2"), (DEFAULT_VERSION_ANNOTATION, name)]);
        assert_eq!(texts(&Versions::of(&named("v1"), &[]).expect("valid versions")).1, Some("v1"));
        assert_eq!(Versions::of(&named("v3"), &[]), Err(Problem::DefaultVersion("v3".to_owned())));
    }

    #[test]
    fn two_templates_can_not_be_one_version() {
        let problem =
            Versions::of(&addon(&[]), &[template("a", "v1"), template("b", "v1")]).expect_err("one version twice");
        assert!(problem.to_string().contains("a and b"), "{problem}");
    }

    #[test]
    fn without_versions_any_is_accepted() {
        let versions = Versions::of(&addon(&[]), &[]).expect("valid versions");
        assert!(versions.supports(&"v7".parse().expect("a version")));
    }
}
