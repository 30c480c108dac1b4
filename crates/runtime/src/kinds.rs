//! Which kinds a process caches, and how the answer to a write enters the cache.
//!
//! A process caches a kind as one type: the whole object, or the part that its controllers need. A
//! cache lists these types with [`caches!`](crate::caches). It cannot track a type that is not in
//! the list, so whatever is planned from the cache can be entered into it again.

use std::{borrow::Cow, collections::HashMap, fmt};

use drover_engine::plan::Kind;
use kube::{Resource, api::ObjectMeta};
use serde::de::DeserializeOwned;

use crate::{
    cache::{Enqueue, SharedCache, Tracks},
    decode::Decoded,
};

/// A cache with `K` in its table of kinds. [`caches!`](crate::caches) implements it.
pub trait Registers<K> {}

/// A cache with a table of kinds. [`caches!`](crate::caches) implements it.
pub trait Caches: Sized + Send + Sync + 'static {
    /// What changes of its objects fill.
    type Queues: Enqueue;

    /// The table.
    fn kinds() -> CachedKinds<Self>;
}

/// Names the queues of a cache, and lists all kinds that it tracks, each by the type in which it is
/// cached.
#[macro_export]
macro_rules! caches {
    ($cache:ty => $queues:ty; $($kind:ty),* $(,)?) => {
        $(impl $crate::kinds::Registers<$kind> for $cache {})*

        impl $crate::kinds::Caches for $cache {
            type Queues = $queues;

            fn kinds() -> $crate::kinds::CachedKinds<Self> {
                $crate::kinds::CachedKinds::default()$(.with::<$kind>())*
            }
        }
    };
}

/// How answers enter a cache, by group and kind.
pub struct CachedKinds<F: Caches>(HashMap<(Cow<'static, str>, Cow<'static, str>), Cached<F>>);

/// How answers of one kind enter it.
pub(crate) struct Cached<F: Caches> {
    /// Decodes an object and enters it.
    pub(crate) receive: fn(&SharedCache<F>, &str) -> Result<(), serde_json::Error>,
    /// Removes the object that last had this metadata.
    pub(crate) remove: fn(&SharedCache<F>, &ObjectMeta),
}

impl<F: Caches> Default for CachedKinds<F> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<F: Caches> fmt::Debug for CachedKinds<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl<F: Caches> CachedKinds<F> {
    /// The same table with one more kind.
    #[must_use]
    pub fn with<K>(mut self) -> Self
    where
        F: Tracks<K>,
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + 'static,
    {
        let cached = Cached { receive: receive::<F, K>, remove: |cache, last| cache.delete::<K>(last) };
        let former = self.0.insert((K::group(&()), K::kind(&())), cached);
        debug_assert!(former.is_none(), "{} is cached as two types", K::kind(&()));
        self
    }

    /// Whether answers of this kind enter a cache.
    #[must_use]
    pub fn has(&self, kind: &Kind) -> bool {
        self.get(kind).is_some()
    }

    pub(crate) fn get(&self, kind: &Kind) -> Option<&Cached<F>> {
        self.0.get(&(kind.group.clone(), kind.kind.clone()))
    }
}

fn receive<F, K>(cache: &SharedCache<F>, text: &str) -> Result<(), serde_json::Error>
where
    F: Tracks<K>,
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned,
{
    let mut object = Decoded::<K>::parse(text)?;
    object.meta_mut().managed_fields = None;
    cache.receive(object);
    Ok(())
}
