//! The version that a placement gives its clusters, copied to where users look for it: the add-on's own spec.

use drover_api::{addon::ManagedClusterAddOn, grammar::Version, names::ASSIGNED_VERSION_ANNOTATION};
use kube::ResourceExt;

/// The version that an add-on on one cluster has from its placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assignment {
    /// The one that is there: nobody decides for the cluster, or nobody knows yet what it was given.
    Stays,
    /// None.
    Nothing,
    /// This one.
    Version(Version),
}

/// An add-on with the version that its placement gives it, or none. What a user has written stays.
#[must_use]
pub fn assigned(on_cluster: &ManagedClusterAddOn, assignment: &Assignment) -> ManagedClusterAddOn {
    let mut wanted = on_cluster.clone();
    let version = match assignment {
        Assignment::Stays => return wanted,
        Assignment::Nothing => None,
        Assignment::Version(version) => Some(version),
    };
    let mark = on_cluster.annotations().get(ASSIGNED_VERSION_ANNOTATION);
    let written = on_cluster.spec.install_version.as_ref();
    let is_ours = mark.map(String::as_str) == written.map(Version::as_str);
    if is_ours {
        wanted.spec.install_version = version.cloned();
    }
    match version.filter(|_| is_ours) {
        Some(version) => {
            wanted.annotations_mut().insert(ASSIGNED_VERSION_ANNOTATION.to_owned(), version.to_string());
        }
        None => {
            wanted.annotations_mut().remove(ASSIGNED_VERSION_ANNOTATION);
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use drover_api::addon::ManagedClusterAddOnSpec;

    use super::*;

    fn version(text: &str) -> Version {
        text.parse().expect("a version")
    }

    fn addon(written: Option<&str>, mark: Option<&str>) -> ManagedClusterAddOn {
        let spec =
            ManagedClusterAddOnSpec { install_version: written.map(version), ..ManagedClusterAddOnSpec::default() };
        let mut addon = ManagedClusterAddOn::new("helloworld", spec);
        if let Some(mark) = mark {
            addon.annotations_mut().insert(ASSIGNED_VERSION_ANNOTATION.to_owned(), mark.to_owned());
        }
        addon
    }

    fn after(written: Option<&str>, mark: Option<&str>, given: Option<&str>) -> (Option<String>, Option<String>) {
        let assignment = given.map_or(Assignment::Nothing, |given| Assignment::Version(version(given)));
        let addon = assigned(&addon(written, mark), &assignment);
        let mark = addon.annotations().get(ASSIGNED_VERSION_ANNOTATION).cloned();
        (addon.spec.install_version.map(|version| version.to_string()), mark)
    }

    #[test]
    fn a_version_is_assigned_moved_on_and_taken_back() {
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(after(None, None, Some("v1")), (of("v1"), of("v1")));
        assert_eq!(after(Some("v1"), Some("v1"), Some("v2")), (of("v2"), of("v2")));
        assert_eq!(after(Some("v2"), Some("v2"), None), (None, None));
    }

    #[test]
    fn what_a_user_has_written_stays() {
        let own = (Some("v3".to_owned()), None);
        assert_eq!(after(Some("v3"), None, Some("v1")), own);
        assert_eq!(after(Some("v3"), Some("v1"), Some("v2")), own, "though it was assigned before");
        assert_eq!(after(Some("v3"), Some("v1"), None), own);
    }

    #[test]
    fn what_nobody_decides_on_stays_whoever_has_written_it() {
        for (written, mark) in [(None, None), (Some("v1"), Some("v1")), (Some("v3"), Some("v1"))] {
            let addon = addon(written, mark);
            assert_eq!(assigned(&addon, &Assignment::Stays), addon);
        }
    }
}
