//! The one state that all controllers of a process share, and how it learns of changes.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, api::ObjectMeta};
use serde::de::DeserializeOwned;

use crate::{
    decode::{Damaged, Decoded, Defect},
    store::{Change, ObjectKey, Store},
    views::Registers,
};

/// A fleet that learns which of its objects cannot be parsed completely.
pub trait ReportsDefects {
    /// Takes note of an object with a defect that it did not have before.
    fn report_defect(&mut self, _object: ObjectReference, _defect: &Defect) {}
}

/// A fleet that keeps the objects of a kind, and knows whom a change of one concerns.
pub trait Tracks<K>: Registers<K> + ReportsDefects + Send + Sync + 'static {
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

    /// Takes note of a change that is in the store already: brings what is derived from it up to date, and marks the
    /// keys that depend on it.
    fn changed(&mut self, change: &Change<K>);

    /// Takes note that all objects of the kind that there are have been listed.
    fn listed(&mut self) {}

    /// Takes note of whether changes of the kind are seen at the moment: not while the watch is broken or everything is listed.
    fn sees(&mut self, _sees: bool) {}
}

/// The fleet, shared by everybody who reads it and by the informers and writers who change it.
///
/// It is rebuilt from the API at every start. Nobody holds it across an await: deciding is synchronous.
pub struct SharedCache<F>(Arc<RwLock<F>>);

impl<F> SharedCache<F> {
    /// Shares a fleet.
    pub fn new(cache: F) -> Self {
        Self(Arc::new(RwLock::new(cache)))
    }

    /// The fleet as it is now.
    ///
    /// Somebody who panicked while changing the fleet has left at most one change unfinished, which the next event or list repairs.
    pub fn read(&self) -> RwLockReadGuard<'_, F> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the fleet in a way that no kind's store tells of.
    pub fn update<T>(&self, change: impl FnOnce(&mut F) -> T) -> T {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes note of an object as it is now.
    pub fn apply<K: Resource>(&self, mut object: K)
    where
        F: Tracks<K>,
    {
        F::trim(&mut object);
        self.change(|cache| cache.store().apply(object));
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
        // Parsing takes its time, so it is done before others have to wait for the fleet.
        let whole = if damaged.defect.is_in_metadata() { damaged.without_defects() } else { F::salvage(damaged) };
        let salvaged = whole.map(|mut object| {
            F::trim(&mut object);
            object
        });
        self.change(|cache| {
            let store = Tracks::<K>::store(cache);
            let key = ObjectKey::of_meta(&damaged.metadata);
            let object = salvaged.or_else(|| F::fall_back(damaged, store.get(&key).map(|known| &**known)));
            let is_news = store.defect(&key) != Some(&damaged.defect);
            let change = store.apply_damaged(&damaged.metadata, object, damaged.defect.clone());
            if is_news {
                cache.report_defect(reference::<K>(&damaged.metadata), &damaged.defect);
            }
            change
        });
    }

    /// Takes note that the object that last had this metadata is gone.
    pub fn delete<K: Resource>(&self, last: &ObjectMeta)
    where
        F: Tracks<K>,
    {
        self.change(|cache| Tracks::<K>::store(cache).delete(last));
    }

    /// All objects of a kind are about to be listed anew.
    pub fn begin_list<K: Resource>(&self)
    where
        F: Tracks<K>,
    {
        self.sees::<K>(false);
        self.change(|cache| {
            Tracks::<K>::store(cache).begin_list();
            None
        });
    }

    /// All objects of a kind have been listed.
    pub fn end_list<K: Resource>(&self)
    where
        F: Tracks<K>,
    {
        self.change(|cache| Tracks::<K>::store(cache).end_list());
        self.update(|cache| Tracks::<K>::listed(cache));
        self.sees::<K>(true);
    }

    /// From now on changes of a kind are seen, or not.
    pub fn sees<K: Resource>(&self, sees: bool)
    where
        F: Tracks<K>,
    {
        self.update(|cache| Tracks::<K>::sees(cache, sees));
    }

    fn change<K, C: IntoIterator<Item = Change<K>>>(&self, change: impl FnOnce(&mut F) -> C)
    where
        F: Tracks<K>,
    {
        self.update(|cache| {
            for change in change(cache) {
                cache.changed(&change);
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

impl<F> Clone for SharedCache<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F> fmt::Debug for SharedCache<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}
