//! The one state that all controllers of a process share, and how it learns of changes.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use kube::{Resource, api::ObjectMeta};

use crate::store::{Change, ObjectKey, Store};

/// A fleet that keeps the objects of a kind, and knows whom a change of one concerns.
pub trait Tracks<K>: Send + Sync + 'static {
    /// The objects of the kind.
    fn store(&mut self) -> &mut Store<K>;

    /// Takes from an object what the fleet has no use for, before it is kept.
    fn trim(_object: &mut K)
    where
        Self: Sized,
    {
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
pub struct Shared<F>(Arc<RwLock<F>>);

impl<F> Shared<F> {
    /// Shares a fleet.
    pub fn new(fleet: F) -> Self {
        Self(Arc::new(RwLock::new(fleet)))
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
        self.change(|fleet| fleet.store().apply(object));
    }

    /// Takes note that the object that last had this metadata is gone.
    pub fn delete<K: Resource>(&self, last: &ObjectMeta)
    where
        F: Tracks<K>,
    {
        self.change(|fleet| Tracks::<K>::store(fleet).delete(last));
    }

    /// Takes note that an object is there, though not as what.
    pub fn keep<K: Resource>(&self, key: &ObjectKey)
    where
        F: Tracks<K>,
    {
        self.change(|fleet| {
            Tracks::<K>::store(fleet).keep(key);
            None
        });
    }

    /// All objects of a kind are about to be listed anew.
    pub fn begin_list<K: Resource>(&self)
    where
        F: Tracks<K>,
    {
        self.sees::<K>(false);
        self.change(|fleet| {
            Tracks::<K>::store(fleet).begin_list();
            None
        });
    }

    /// All objects of a kind have been listed.
    pub fn end_list<K: Resource>(&self)
    where
        F: Tracks<K>,
    {
        self.change(|fleet| Tracks::<K>::store(fleet).end_list());
        self.update(|fleet| Tracks::<K>::listed(fleet));
        self.sees::<K>(true);
    }

    /// From now on changes of a kind are seen, or not.
    pub fn sees<K: Resource>(&self, sees: bool)
    where
        F: Tracks<K>,
    {
        self.update(|fleet| Tracks::<K>::sees(fleet, sees));
    }

    fn change<K, C: IntoIterator<Item = Change<K>>>(&self, change: impl FnOnce(&mut F) -> C)
    where
        F: Tracks<K>,
    {
        self.update(|fleet| {
            for change in change(fleet) {
                fleet.changed(&change);
            }
        });
    }
}

impl<F> Clone for Shared<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F> fmt::Debug for Shared<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}
