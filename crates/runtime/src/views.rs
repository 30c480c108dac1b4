//! Which kinds a process caches, and how the answer to a write enters the cache.
//!
//! A write names its kind, and the [view](CacheView) in which the process caches it. A cache lists
//! all its views with [`caches!`](crate::caches). It cannot track a type that is not in the list, so
//! whatever is planned from the cache can be entered into it again.

use std::{collections::HashMap, fmt};

use drover_engine::plan::CacheView;
use kube::{Resource, api::ObjectMeta};
use serde::de::DeserializeOwned;

use crate::{
    cache::{Enqueue, SharedCache, Tracks},
    decode::Decoded,
};

/// A cache with `K` in its table of views. [`caches!`](crate::caches) implements it.
pub trait Registers<K> {}

/// A cache with a table of views. [`caches!`](crate::caches) implements it.
pub trait Caches: Sized + Send + Sync + 'static {
    /// What changes of its objects fill.
    type Queues: Enqueue;

    /// The table.
    fn views() -> CacheViews<Self>;
}

/// Names the queues of a cache, and lists all kinds that it tracks, each by the type in which it is
/// cached.
#[macro_export]
macro_rules! caches {
    ($cache:ty => $queues:ty; $($kind:ty),* $(,)?) => {
        $(impl $crate::views::Registers<$kind> for $cache {})*

        impl $crate::views::Caches for $cache {
            type Queues = $queues;

            fn views() -> $crate::views::CacheViews<Self> {
                $crate::views::CacheViews::default()$(.with::<$kind>())*
            }
        }
    };
}

/// How answers enter a cache.
pub struct CacheViews<F: Caches>(HashMap<CacheView, Cached<F>>);

/// How answers of one kind enter it.
pub(crate) struct Cached<F: Caches> {
    /// Decodes an object and enters it.
    pub(crate) receive: fn(&SharedCache<F>, &str) -> Result<(), serde_json::Error>,
    /// Removes the object that last had this metadata.
    pub(crate) remove: fn(&SharedCache<F>, &ObjectMeta),
}

impl<F: Caches> Default for CacheViews<F> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<F: Caches> fmt::Debug for CacheViews<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl<F: Caches> CacheViews<F> {
    /// The same table with one more kind.
    #[must_use]
    pub fn with<K>(mut self) -> Self
    where
        F: Tracks<K>,
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + 'static,
    {
        self.0.insert(
            CacheView::of::<K>(),
            Cached { receive: receive::<F, K>, remove: |cache, last| cache.delete::<K>(last) },
        );
        self
    }

    /// Whether answers in this view enter a cache.
    #[must_use]
    pub fn has(&self, view: CacheView) -> bool {
        self.0.contains_key(&view)
    }

    pub(crate) fn get(&self, view: CacheView) -> Option<&Cached<F>> {
        self.0.get(&view)
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
