//! The action that creates works, and adopts those that exist although the cache does not have them
//! as works of their owner.
//!
//! Owners know their works by labels. When a client has removed the label of a work, its owner does
//! not find it, and creating it anew fails.

use std::borrow::Cow;

use drover_api::{
    names::{ADDON_NAME_LABEL, ADDON_NAMESPACE_LABEL},
    work::{ManifestWork, ManifestWorkSpec},
};
use drover_engine::{
    manifestwork::NewWork,
    plan::{ObjectKey, PlanStep, Verb, Write},
    template::{Marks, is_kin},
    work::replica_set::placed_work::may_be_adopted,
};
use drover_runtime::{
    decode::Decoded,
    execute::{ActionError, Execute},
    write::Writer,
};
use kube::{Api, Resource, ResourceExt};

use crate::{cache::Cache, manifest_work::CachedWork};

/// Creates a work. If one of its name exists, it is read, and adopted if it is the hub's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CreateOrAdopt {
    wanted: NewWork,
    owner: WorkOwner,
}

/// What creates a work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkOwner {
    /// An add-on that is rendered from a template.
    AddOn,
    /// A ManifestWorkReplicaSet.
    ReplicaSet,
}

impl CreateOrAdopt {
    pub(crate) fn new(wanted: NewWork, owner: WorkOwner) -> Self {
        Self { wanted, owner }
    }

    /// The work as it is wanted, with what others have added to the one that exists; `None` if that
    /// one is not the owner's.
    fn adopted(&self, there: &ManifestWork) -> Option<ManifestWork> {
        let spec = ManifestWorkSpec::clone(self.wanted.spec());
        let made = ManifestWork { metadata: self.wanted.meta().clone(), spec, status: None };
        let mut adopted = ManifestWork { metadata: there.metadata.clone(), ..made.clone() };
        match self.owner {
            WorkOwner::AddOn => {
                // A work with this name can be labelled as one of an add-on on another cluster.
                let addon = |work: &ManifestWork| {
                    [ADDON_NAME_LABEL, ADDON_NAMESPACE_LABEL].map(|label| work.labels().get(label).cloned())
                };
                if !is_kin(there, &made) && addon(there) != addon(&made) {
                    return None;
                }
                Marks::copy(&made, &mut adopted);
            }
            WorkOwner::ReplicaSet => {
                if !may_be_adopted(there) {
                    return None;
                }
                adopted.labels_mut().extend(made.metadata.labels.unwrap_or_default());
                adopted.annotations_mut().extend(made.metadata.annotations.unwrap_or_default());
            }
        }
        Some(adopted)
    }
}

impl PlanStep for CreateOrAdopt {
    fn verb(&self) -> Verb {
        Verb::Create
    }

    fn kind_name(&self) -> Cow<'_, str> {
        NewWork::kind(&())
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::of(&self.wanted)
    }
}

impl Execute<Cache> for CreateOrAdopt {
    async fn execute(&self, writer: Writer<Cache>) -> Result<(), ActionError> {
        let exists = match writer.send(&Write::create(self.wanted.clone())).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => status,
            created => return Ok(created?),
        };
        let ObjectKey { namespace, name } = ObjectKey::of(&self.wanted);
        let found = Api::<Decoded<ManifestWork>>::namespaced(writer.client.clone(), &namespace).get(&name).await?;
        // One that cannot be parsed is not adopted: nothing says whose it is.
        let Some(found) = found.0.ok() else { return Err(kube::Error::Api(exists).into()) };
        let Some(adopted) = self.adopted(&found) else { return Err(kube::Error::Api(exists).into()) };
        let update = Write::update(&found, &adopted);
        writer.cache.apply(CachedWork::from(found));
        match update {
            Some(write) => Ok(writer.send(&write).await?),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
