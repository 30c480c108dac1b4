//! Everything that is visible, at one revision.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::watch;

use super::{
    batch::Changes,
    collection::Collection,
    history::Keep,
    key::{Key, Resource, Scope},
    object::Stored,
};

/// The time since any fixed moment.
pub type Now = Arc<dyn Fn() -> Duration + Send + Sync>;

/// All objects and what happened to them.
#[derive(Debug)]
pub(super) struct State {
    pub(super) revision: u64,
    collections: HashMap<Resource, Collection>,
}

impl State {
    /// What the first list is of. Revision 0 is none: clients mean "any" by it.
    const FIRST: u64 = 1;

    pub(super) fn new() -> Self {
        Self { revision: Self::FIRST, collections: HashMap::new() }
    }

    /// A resource as a journal has it: the revision of what last happened in it. What that was is not remembered.
    pub(super) fn restore_resource(&mut self, resource: Resource, last: u64) {
        self.revision = self.revision.max(last);
        self.collections.insert(resource, Collection::new(last));
    }

    /// An object as a journal has it.
    pub(super) fn restore(&mut self, resource: &Resource, object: Stored) {
        self.collection_mut(resource).restore(object.shared_position(), object);
    }

    /// How many bytes all objects are.
    pub(super) fn bytes(&self) -> u64 {
        let everything = Scope::all();
        let objects = self.collections.values().flat_map(|collection| collection.range(&everything, None));
        objects.map(|(_, object)| object.bytes().len() as u64).sum()
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Stored> {
        self.collections.get(&key.resource)?.get(&key.position)
    }

    pub(super) fn collection(&self, resource: &Resource) -> Option<&Collection> {
        self.collections.get(resource)
    }

    pub(super) fn collection_mut(&mut self, resource: &Resource) -> &mut Collection {
        self.collections.entry(resource.clone()).or_insert_with(|| Collection::new(0))
    }

    /// Makes changes visible. Whom to tell is in the answer.
    fn publish(&mut self, changes: Changes, keep: Keep, now: Duration) -> Vec<watch::Sender<()>> {
        let mut bells = Vec::with_capacity(changes.events.len());
        for (resource, event) in changes.events {
            let collection = self.collection_mut(&resource);
            collection.publish(event, &mut bells);
            collection.forget(keep, now);
        }
        for (resource, revision) in changes.ended {
            self.collection_mut(&resource).end(revision, &mut bells);
        }
        self.revision = changes.revision;
        bells
    }

    /// Forgets what happened up to a revision: of a resource, or of all.
    pub(super) fn compact(&mut self, resource: Option<&Resource>, revision: u64) {
        let revision = revision.min(self.revision);
        match resource {
            Some(resource) => self.collection_mut(resource).compact(revision),
            None => self.collections.values_mut().for_each(|collection| collection.compact(revision)),
        }
    }
}

/// The state, as all who read and watch it share it.
pub(super) struct Shared {
    state: RwLock<State>,
    revision: watch::Sender<u64>,
    keep: Keep,
    now: Now,
}

impl Shared {
    pub(super) fn new(state: State, keep: Keep, now: Now) -> Self {
        Self { revision: watch::Sender::new(state.revision), state: RwLock::new(state), keep, now }
    }

    // A state is never left half changed by a panic that somebody survives: nothing in here panics between two changes.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }

    pub(super) fn now(&self) -> Duration {
        (self.now)()
    }

    /// Where the newest revision is told.
    pub(super) fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Makes changes visible, and then tells whoever waits for them.
    pub(super) fn publish(&self, mut state: RwLockWriteGuard<'_, State>, changes: Changes) {
        let revision = changes.revision;
        let bells = state.publish(changes, self.keep, self.now());
        drop(state);
        for bell in bells {
            bell.send_replace(());
        }
        // Another thread can be here with a later revision.
        self.revision.send_if_modified(|newest| std::mem::replace(newest, revision.max(*newest)) < revision);
    }
}
