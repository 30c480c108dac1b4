//! The cache that all controllers of a process share, and how objects enter it.

use std::{fmt, sync::Arc};

use drover_engine::plan::Controller;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, api::ObjectMeta};
use parking_lot::{RwLock, RwLockReadGuard};
use serde::de::DeserializeOwned;

use crate::{
    decode::{Damaged, Decoded, Defect},
    kinds::{Caches, Registers},
    queue::Queue,
    store::{Change, ObjectKey, Store},
};

/// A cache of the objects of a kind. A change of one enqueues the keys that depend on it.
pub trait Tracks<K>: Registers<K> + Caches {
    /// The objects of the kind.
    fn store(&mut self) -> &mut Store<K>;

    /// Takes from an object what the fleet has no use for, before it is kept.
    fn trim(_object: &mut K)
    where
        Self: Sized,
    {
    }

    /// What counts of an object whose status has a defect. Nothing, unless the kind says otherwise:
    /// a status that decisions are based on
    /// must not lose values. Invalid metadata alone is left out of objects of all kinds.
    #[must_use]
    fn salvage(_damaged: &Damaged<K>) -> Option<K>
    where
        K: DeserializeOwned,
        Self: Sized,
    {
        None
    }

    /// What counts of an object of which nothing could be salvaged, given what it was before: that,
    /// with the metadata of now, so
    /// that a deletion is seen. Its generation stays, because its spec does.
    #[must_use]
    fn fall_back(damaged: &Damaged<K>, known: Option<&K>) -> Option<K>
    where
        K: Resource + Clone,
        Self: Sized,
    {
        let mut object = known?.clone();
        let generation = object.meta().generation;
        *object.meta_mut() = ObjectMeta { generation, ..damaged.metadata.clone() };
        Some(object)
    }

    /// Handles a change that is in the store already: updates what is derived from it, and enqueues
    /// the keys that depend on it.
    fn changed(&mut self, change: &Change<K>, queues: &Self::Queues);

    /// Handles the end of a list: all objects of the kind are in the store.
    fn listed(&mut self, _queues: &Self::Queues) {}

    /// Notes whether changes of the kind are seen at the moment: not while the watch is broken or
    /// everything is listed.
    fn sees(&mut self, _sees: bool, _queues: &Self::Queues) {}
}

/// The queues of the controllers that plan from a cache.
pub trait Enqueue: Send + Sync + 'static {
    /// Enqueues a key because the plan of another controller says so. A process in which no plan
    /// does ignores it.
    fn enqueue(&self, _controller: Controller, _key: &ObjectKey) {}

    /// Enqueues a report on an object with a value that cannot be parsed, and that it did not have before.
    fn report_defect(&self, _object: ObjectReference, _defect: &Defect) {}
}

impl Enqueue for () {}

impl<T: Ord + Send + 'static, P: Send + 'static> Enqueue for Arc<Queue<T, P>> {}

/// The cache of a process, shared by controllers that plan from it and by the informers and writers
/// that change it, with the queues that a change fills.
///
/// It is rebuilt from the API at every start. It is not held across an await: planning is
/// synchronous. A controller plans from the cache alone, so that planning cannot enqueue or lock
/// anything.
pub struct SharedCache<F: Caches>(Arc<Parts<F>>);

struct Parts<F: Caches> {
    cache: RwLock<F>,
    queues: F::Queues,
}

impl<F: Caches> SharedCache<F> {
    /// Shares a cache whose changes fill these queues.
    pub fn new(cache: F, queues: F::Queues) -> Self {
        Self(Arc::new(Parts { cache: RwLock::new(cache), queues }))
    }

    /// The queues.
    #[must_use]
    pub fn queues(&self) -> &F::Queues {
        &self.0.queues
    }

    /// The cache as it is now.
    ///
    /// A panic while the cache was changed has left at most one change unfinished, which the next event or list repairs.
    pub fn read(&self) -> RwLockReadGuard<'_, F> {
        self.0.cache.read()
    }

    /// Changes something in the cache that is in no store.
    pub fn update<T>(&self, change: impl FnOnce(&mut F, &F::Queues) -> T) -> T {
        change(&mut self.0.cache.write(), &self.0.queues)
    }

    /// Takes note of an object as it is now.
    pub fn apply<K: Resource>(&self, mut object: K)
    where
        F: Tracks<K>,
    {
        F::trim(&mut object);
        self.change(|cache, _| cache.store().apply(object));
    }

    /// Takes note of an object as it is now, damaged or not.
    pub fn receive<K>(&self, object: Decoded<K>)
    where
        F: Tracks<K>,
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned,
    {
        match object.0 {
            Ok(object) => self.apply(object),
            Err(damaged) => self.apply_damaged(&damaged),
        }
    }

    /// Takes note of what can be parsed of an object as it is now.
    pub fn apply_damaged<K>(&self, damaged: &Damaged<K>)
    where
        F: Tracks<K>,
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned,
    {
        // Parsing takes its time, so it is done before others have to wait for the cache.
        let whole = if damaged.defect.is_in_metadata() { damaged.without_defects() } else { F::salvage(damaged) };
        let salvaged = whole.map(|mut object| {
            F::trim(&mut object);
            object
        });
        self.change(|cache, queues| {
            let store = Tracks::<K>::store(cache);
            let key = ObjectKey::of_meta(&damaged.metadata);
            let object = salvaged.or_else(|| F::fall_back(damaged, store.get(&key).map(|known| &**known)));
            let is_news = store.defect(&key) != Some(&damaged.defect);
            let change = store.apply_damaged(&damaged.metadata, object, damaged.defect.clone());
            if is_news {
                queues.report_defect(reference::<K>(&damaged.metadata), &damaged.defect);
            }
            change
        });
    }

    /// Takes note that the object that last had this metadata is gone.
    pub fn delete<K: Resource>(&self, last: &ObjectMeta)
    where
        F: Tracks<K>,
    {
        self.change(|cache, _| Tracks::<K>::store(cache).delete(last));
    }

    /// All objects of a kind are about to be listed anew.
    pub fn begin_list<K: Resource>(&self)
    where
        F: Tracks<K>,
    {
        self.sees::<K>(false);
        self.change(|cache, _| {
            Tracks::<K>::store(cache).begin_list();
            None
        });
    }

    /// All objects of a kind have been listed.
    pub fn end_list<K: Resource>(&self)
    where
        F: Tracks<K>,
    {
        self.change(|cache, _| Tracks::<K>::store(cache).end_list());
        self.update(Tracks::<K>::listed);
        self.sees::<K>(true);
    }

    /// From now on changes of a kind are seen, or not.
    pub fn sees<K: Resource>(&self, sees: bool)
    where
        F: Tracks<K>,
    {
        self.update(|cache, queues| Tracks::<K>::sees(cache, sees, queues));
    }

    fn change<K, C: IntoIterator<Item = Change<K>>>(&self, change: impl FnOnce(&mut F, &F::Queues) -> C)
    where
        F: Tracks<K>,
    {
        self.update(|cache, queues| {
            for change in change(cache, queues) {
                cache.changed(&change, queues);
            }
        });
    }
}

/// A reference to the object with this metadata.
fn reference<K: Resource<DynamicType = ()>>(metadata: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

impl<F: Caches> Clone for SharedCache<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F: Caches> fmt::Debug for SharedCache<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedCache")
    }
}
