//! The action that creates works, and adopts those that exist without being in the cache.
//!
//! The hub watches works by label. When a client has removed the label of a work, the cache does not
//! have it, and creating it anew fails.

use std::{borrow::Cow, sync::Arc};

use drover_engine::plan::{ObjectKey, PlanStep, Verb, Writable, Write};
use drover_runtime::{
    decode::Decoded,
    execute::{ActionError, Execute},
    write::Writer,
};
use kube::{Api, Resource, core::NamespaceResourceScope};
use serde::de::DeserializeOwned;

use crate::cache::Cache;

/// A type whose objects can be adopted.
pub(crate) trait Adopt:
    Writable + Resource<Scope = NamespaceResourceScope> + DeserializeOwned + PartialEq
{
    /// An object as it is wanted, with what others have added to the one that exists; `None` if
    /// that one is not the hub's.
    fn adopted(there: &Self, wanted: &Self) -> Option<Self>;
}

/// Creates an object. If one of its name exists, it is read, and adopted if it is the hub's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CreateOrAdopt<K>(Arc<K>);

impl<K> CreateOrAdopt<K> {
    pub(crate) fn new(wanted: K) -> Self {
        Self(Arc::new(wanted))
    }
}

impl<K: Adopt> PlanStep for CreateOrAdopt<K> {
    fn verb(&self) -> Verb {
        Verb::Create
    }

    fn kind_name(&self) -> Cow<'_, str> {
        K::kind(&())
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::of(&*self.0)
    }
}

impl<K: Adopt> Execute<Cache> for CreateOrAdopt<K> {
    async fn execute(&self, writer: Writer<Cache>) -> Result<(), ActionError> {
        let Self(wanted) = self;
        let exists = match writer.send(&Write::create_shared(Arc::clone(wanted))).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => status,
            created => return Ok(created?),
        };
        let ObjectKey { namespace, name } = ObjectKey::of(&**wanted);
        let found = Api::<Decoded<K>>::namespaced(writer.client.clone(), &namespace).get(&name).await?;
        // One that cannot be parsed is not adopted: nothing says whose it is.
        let adopted = found.0.ok().and_then(|found| Some(Write::replace(&found, K::adopted(&found, wanted)?)));
        match adopted {
            Some(write) => Ok(writer.send(&write).await?),
            None => Err(kube::Error::Api(exists).into()),
        }
    }
}

#[cfg(test)]
mod tests;
