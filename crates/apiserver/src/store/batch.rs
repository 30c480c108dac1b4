//! Changes that are made together: each is checked against what the ones before it leave, and all become visible at once.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use super::{
    WriteError,
    collection::Collection,
    history::{Change, Event},
    key::{Key, Resource},
    object::{Draft, Stored},
    state::State,
};

/// Changes on top of a state that is not touched yet.
pub(super) struct Batch<'a> {
    state: &'a State,
    now: Duration,
    changed: HashMap<Key, Option<Stored>>,
    changes: Changes,
}

/// What is to be made safe, and then visible.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) revision: u64,
    pub(super) events: Vec<(Resource, Arc<Event>)>,
    /// The resources that ceased to be, and when.
    pub(super) ended: Vec<(Resource, u64)>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(state: &'a State, now: Duration) -> Self {
        let changes = Changes { revision: state.revision, events: Vec::new(), ended: Vec::new() };
        Self { state, now, changed: HashMap::new(), changes }
    }

    pub(super) fn finish(self) -> Changes {
        self.changes
    }

    pub(super) fn create(&mut self, key: Key, draft: Draft) -> Result<Stored, WriteError> {
        match self.current(&key) {
            Some(current) => Err(WriteError::Exists(current.clone())),
            None => Ok(self.happen(key, Change::Added, draft)),
        }
    }

    pub(super) fn update(&mut self, key: Key, expected: u64, draft: Draft) -> Result<Stored, WriteError> {
        let current = self.expected(&key, expected)?;
        if draft.is(current) {
            return Ok(current.clone());
        }
        Ok(self.happen(key, Change::Modified, draft))
    }

    pub(super) fn delete(&mut self, key: Key, expected: u64, last: Draft) -> Result<Stored, WriteError> {
        self.expected(&key, expected)?;
        Ok(self.happen(key, Change::Deleted, last))
    }

    /// Deletes all objects of a resource, and ends it. The answer is the revision of its end.
    pub(super) fn drop_resource(&mut self, resource: &Resource) -> u64 {
        let kept = self.state.collection(resource).into_iter().flat_map(Collection::positions);
        let changed = self.changed.keys().filter(|key| key.resource == *resource).map(|key| &key.position);
        let positions: BTreeSet<Arc<str>> = kept.chain(changed).cloned().collect();
        for position in positions {
            let key = Key { resource: resource.clone(), position };
            if let Some(draft) = self.current(&key).and_then(|object| Draft::new(object.value())) {
                self.happen(key, Change::Deleted, draft);
            }
        }
        self.changes.ended.push((resource.clone(), self.changes.revision));
        self.changes.revision
    }

    fn current(&self, key: &Key) -> Option<&Stored> {
        match self.changed.get(key) {
            Some(changed) => changed.as_ref(),
            None => self.state.get(key),
        }
    }

    fn expected(&self, key: &Key, revision: u64) -> Result<&Stored, WriteError> {
        let current = self.current(key).ok_or(WriteError::Gone)?;
        if current.revision() == revision { Ok(current) } else { Err(WriteError::Changed(current.clone())) }
    }

    fn happen(&mut self, key: Key, change: Change, draft: Draft) -> Stored {
        self.changes.revision += 1;
        let old = self.current(&key).cloned();
        let position = old.as_ref().map_or_else(|| key.position.clone(), Stored::shared_position);
        let object = draft.at(self.changes.revision, position);
        let event = Event { change, object: object.clone(), old, at: self.now };
        self.changes.events.push((key.resource.clone(), Arc::new(event)));
        self.changed.insert(key, (change != Change::Deleted).then(|| object.clone()));
        object
    }
}
