//! How a type of configurations is served: in which version, and as which kind.

use drover_api::addon::ConfigGroupResource;
use drover_runtime::{
    cache::Tracks,
    store::{Change, Store},
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{ApiResource, GroupVersionKind, ObjectMeta, PartialObjectMeta},
    core::Version,
    discovery::{self, ApiCapabilities, verbs},
    error::DiscoveryError,
};

use crate::cache::{Cache, Queues};

/// A CustomResourceDefinition, as something whose changes have to be known.
pub(super) type Definition = PartialObjectMeta<CustomResourceDefinition>;

impl Tracks<Definition> for Cache {
    fn store(&mut self) -> &mut Store<Definition> {
        &mut self.configs.definitions
    }

    fn trim(definition: &mut Definition) {
        let ObjectMeta { name, uid, resource_version, .. } = std::mem::take(&mut definition.metadata);
        definition.metadata = ObjectMeta { name, uid, resource_version, ..ObjectMeta::default() };
    }

    fn changed(&mut self, change: &Change<Definition>, _: &Queues) {
        self.configs.definition_changed(&change.key.name);
    }
}

/// How a type is served now; nothing if it is not.
pub(super) async fn served(client: &Client, of: &ConfigGroupResource) -> Result<Option<ApiResource>, kube::Error> {
    // Users write these names, and they become part of a path.
    if !is_name(&of.resource) || !(of.group.is_empty() || is_name(&of.group)) {
        return Ok(None);
    }
    match defined(client, of).await? {
        Some(definition) => Ok(as_defined(&definition)),
        None => discovered(client, of).await,
    }
}

fn is_name(text: &str) -> bool {
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    is_edge(bytes.first())
        && is_edge(bytes.last())
        && bytes.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
}

async fn defined(client: &Client, of: &ConfigGroupResource) -> Result<Option<CustomResourceDefinition>, kube::Error> {
    if of.group.is_empty() {
        return Ok(None);
    }
    Api::all(client.clone()).get_opt(&format!("{}.{}", of.resource, of.group)).await
}

/// How a definition is served: in the version that is stored, if that is served. So no conversion has a say in what a
/// configuration contains, and a new version changes nothing.
fn as_defined(definition: &CustomResourceDefinition) -> Option<ApiResource> {
    let conditions = definition.status.as_ref()?.conditions.iter().flatten();
    let is_established = conditions.into_iter().any(|it| it.type_ == "Established" && it.status == "True");
    let served = definition.spec.versions.iter().filter(|version| version.served);
    let version = served.max_by_key(|version| (version.storage, Version::parse(&version.name).priority()))?;
    let names = &definition.spec.names;
    let kind = GroupVersionKind::gvk(&definition.spec.group, &version.name, &names.kind);
    is_established.then(|| ApiResource::from_gvk_with_plural(&kind, &names.plural))
}

/// How the server says that a type is served: in the version that it prefers, if it has the type in that.
async fn discovered(client: &Client, of: &ConfigGroupResource) -> Result<Option<ApiResource>, kube::Error> {
    let group = match discovery::group(client, &of.group).await {
        Err(kube::Error::Discovery(DiscoveryError::MissingApiGroup(_) | DiscoveryError::EmptyApiGroup(_))) => {
            return Ok(None);
        }
        group => group?,
    };
    let is_meant = |(resource, can): &(ApiResource, ApiCapabilities)| {
        resource.plural == of.resource && can.supports_operation(verbs::LIST) && can.supports_operation(verbs::WATCH)
    };
    let versions = std::iter::once(group.preferred_version_or_latest()).chain(group.versions());
    let mut resources = versions.flat_map(|version| group.versioned_resources(version));
    Ok(resources.find(is_meant).map(|(resource, _)| resource))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(versions: &[(&str, bool, bool)], established: &str) -> CustomResourceDefinition {
        let versions: Vec<_> = versions
            .iter()
            .map(|(name, served, storage)| json!({ "name": name, "served": served, "storage": storage }))
            .collect();
        let definition = json!({
            "metadata": { "name": "things.example.com" },
            "spec": {
                "group": "example.com",
                "names": { "kind": "Thing", "plural": "things" },
                "scope": "Namespaced",
                "versions": versions,
            },
            "status": { "conditions": [{ "type": "Established", "status": established }] },
        });
        serde_json::from_value(definition).expect("a definition")
    }

    #[test]
    fn a_type_is_read_as_it_is_stored_if_that_is_served() {
        let version = |versions: &[(&str, bool, bool)]| {
            as_defined(&definition(versions, "True")).map(|resource| resource.version)
        };
        let (old, new) = (("v1alpha1", true, true), ("v1", true, false));
        assert_eq!(version(&[old, new]).as_deref(), Some("v1alpha1"));
        assert_eq!(version(&[("v1alpha1", false, true), ("v1beta1", true, false), new]).as_deref(), Some("v1"));
        assert_eq!(version(&[("v1alpha1", false, true)]), None);
    }

    #[test]
    fn a_type_that_is_not_established_is_not_served() {
        assert_eq!(as_defined(&definition(&[("v1", true, true)], "False")), None);
    }

    #[test]
    fn only_names_become_part_of_a_path() {
        for name in ["configmaps", "addon.open-cluster-management.io", "a", "x-1.y"] {
            assert!(is_name(name), "{name}");
        }
        for text in ["", ".", "..", "a/b", "a?b", "A", "-a", "a.", "a b", "ä", "a%2fb"] {
            assert!(!is_name(text), "{text}");
        }
    }
}
