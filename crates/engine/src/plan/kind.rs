//! The kinds that can be written, as data.

use std::{borrow::Cow, fmt};

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::Resource;
use serde::Serialize;

/// A type that is cached of a kind: a whole object, or the part of it that decisions need. It can
/// be patched and deleted.
pub trait Stored: Resource<DynamicType = (), Scope: WritableScope> {}

impl<K> Stored for K where K: Resource<DynamicType = (), Scope: WritableScope> {}

/// A type whose objects can be created, and compared with each other.
pub trait Writable: Stored + Clone + fmt::Debug + Serialize + Send + Sync + 'static {}

impl<K> Writable for K where K: Stored + Clone + fmt::Debug + Serialize + Send + Sync + 'static {}

/// Whether the objects of a kind are in namespaces.
pub trait WritableScope {
    /// Whether they are.
    const IS_NAMESPACED: bool;
}

impl WritableScope for NamespaceResourceScope {
    const IS_NAMESPACED: bool = true;
}

impl WritableScope for ClusterResourceScope {
    const IS_NAMESPACED: bool = false;
}

/// A kind of the Kubernetes API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its group; empty for the core group.
    pub group: Cow<'static, str>,
    /// Its version.
    pub version: Cow<'static, str>,
    /// Its name in CamelCase.
    pub kind: Cow<'static, str>,
    /// Its name in paths.
    pub plural: Cow<'static, str>,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
    /// Whether the server answers patches with the metadata alone.
    pub is_metadata_only: bool,
}

impl Kind {
    /// The kind of the objects of a type.
    #[must_use]
    pub fn of<K: Stored>() -> Self {
        Self {
            group: K::group(&()),
            version: K::version(&()),
            kind: K::kind(&()),
            plural: K::plural(&()),
            is_namespaced: <K::Scope as WritableScope>::IS_NAMESPACED,
            is_metadata_only: K::metadata_api(),
        }
    }

    /// Whether `K` has objects of this kind, or parts of them.
    #[must_use]
    pub fn is<K: Resource<DynamicType = ()>>(&self) -> bool {
        self.kind == K::kind(&()) && self.group == K::group(&())
    }

    /// The path of all its objects, in one namespace if it has namespaces.
    #[must_use]
    pub fn url_path(&self, namespace: &str) -> String {
        let Self { group, version, plural, .. } = self;
        let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        if self.is_namespaced { format!("{root}/namespaces/{namespace}/{plural}") } else { format!("{root}/{plural}") }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{
        core::v1::{ConfigMap, Namespace},
        rbac::v1::RoleBinding,
    };
    use kube::core::PartialObjectMeta;

    use super::*;

    #[test]
    fn paths_are_those_of_kubes_client() {
        let namespaced = |kind: Kind| kind.url_path("home");
        assert_eq!(namespaced(Kind::of::<ConfigMap>()), ConfigMap::url_path(&(), Some("home")));
        assert_eq!(namespaced(Kind::of::<RoleBinding>()), RoleBinding::url_path(&(), Some("home")));
        assert_eq!(Kind::of::<Namespace>().url_path(""), Namespace::url_path(&(), None));
    }

    #[test]
    fn kind_is_known_by_group_and_name() {
        let (whole, part) = (Kind::of::<ConfigMap>(), Kind::of::<PartialObjectMeta<ConfigMap>>());
        assert!(whole.is::<ConfigMap>() && part.is::<ConfigMap>() && !part.is::<Namespace>());
        assert_eq!((whole.is_metadata_only, part.is_metadata_only), (false, true));
    }
}
