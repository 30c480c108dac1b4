//! Where the kinds of manifests are found on the cluster, as its discovery says.

use std::collections::BTreeMap;

use drover_engine::work::{Located, Manifest};
use kube::{
    Client,
    core::GroupVersionKind,
    discovery::{Scope, pinned_kind},
    error::DiscoveryError,
};

/// What discovery has told so far. Only what is there is remembered: what is not may be any moment.
#[derive(Debug, Default)]
pub(crate) struct Kinds(BTreeMap<Kind, Located>);

/// A kind in one version of its group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    group: String,
    version: String,
    name: String,
}

/// Why it is not known where the objects of a kind are.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotLocated {
    /// The cluster does not serve it.
    #[error("the server doesn't have a resource type {0:?}: install what defines it, or correct apiVersion and kind")]
    NotServed(String),
    /// The cluster could not be asked.
    #[error(transparent)]
    Unanswered(kube::Error),
}

impl Kind {
    pub(crate) fn of(manifest: &Manifest) -> Self {
        Self { group: manifest.group.clone(), version: manifest.version.clone(), name: manifest.kind.clone() }
    }
}

impl Kinds {
    pub(crate) fn get(&self, kind: &Kind) -> Option<&Located> {
        self.0.get(kind)
    }

    pub(crate) fn note(&mut self, kind: Kind, located: Located) {
        self.0.insert(kind, located);
    }

    /// Forgets what was told of a group: its definitions have changed.
    pub(crate) fn forget(&mut self, group: &str) {
        self.0.retain(|kind, _| kind.group != group);
    }
}

/// Asks the cluster where objects of a kind are.
pub(crate) async fn locate(client: &Client, kind: &Kind) -> Result<Located, NotLocated> {
    let Kind { group, version, name } = kind;
    let found = pinned_kind(client, &GroupVersionKind::gvk(group, version, name)).await;
    let not_served = || {
        let separator = if group.is_empty() { "" } else { "/" };
        NotLocated::NotServed(format!("{group}{separator}{version} {name}"))
    };
    match found {
        Ok((resource, capabilities)) => {
            Ok(Located { resource: resource.plural, namespaced: capabilities.scope == Scope::Namespaced })
        }
        Err(kube::Error::Discovery(DiscoveryError::MissingKind(_))) => Err(not_served()),
        // By the code: the answer for a group that is not served is no status, and has no reason.
        Err(kube::Error::Api(status)) if status.code == 404 => Err(not_served()),
        Err(error) => Err(NotLocated::Unanswered(error)),
    }
}
