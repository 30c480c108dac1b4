//! What a store has to be like: a log, and nothing else.

use std::collections::BTreeMap;

use super::*;
use crate::store::object::Span;

/// Something that happened.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: Key,
    pub(super) change: Change,
    pub(super) object: Stored,
}

/// A change with everything that it takes.
pub(super) enum Aim {
    Create(Value),
    Update(u64, Value),
    Delete(u64, Value),
}

/// An event: what happened, the object, and the one before.
type Seen = (Change, Stored, Option<Stored>);

pub(super) struct Model {
    log: Vec<Entry>,
}

impl Model {
    pub(super) fn new() -> Self {
        Self { log: Vec::new() }
    }

    /// Stands where no object is.
    pub(super) fn nothing() -> Stored {
        Stored::restored(0, "".into(), Span::default(), bytes::Bytes::new())
    }

    pub(super) fn revision(&self) -> u64 {
        self.log.last().map_or(1, |entry| entry.object.revision())
    }

    pub(super) fn next(&self) -> usize {
        usize::try_from(self.revision()).unwrap() + 1
    }

    fn at(&self, revision: u64) -> BTreeMap<(String, String), Stored> {
        let mut state = BTreeMap::new();
        for entry in self.log.iter().filter(|entry| entry.object.revision() <= revision) {
            let key = (entry.key.resource.to_string(), entry.key.position.to_string());
            match entry.change {
                Change::Added | Change::Modified => state.insert(key, entry.object.clone()),
                Change::Deleted => state.remove(&key),
            };
        }
        state
    }

    fn get(&self, key: &Key, revision: u64) -> Option<Stored> {
        let is_it = |entry: &&Entry| entry.key == *key && entry.object.revision() <= revision;
        let last = self.log.iter().rev().find(is_it)?;
        (last.change != Change::Deleted).then(|| last.object.clone())
    }

    pub(super) fn list(&self, resource: &Resource, scope: &Scope, revision: u64) -> Vec<Stored> {
        let is_listed = |key: &(String, String)| key.0 == resource.as_str() && scope.covers(&key.1);
        self.at(revision).into_iter().filter(|(key, _)| is_listed(key)).map(|(_, object)| object).collect()
    }

    /// What happened in a scope after one revision, and until another.
    pub(super) fn events(&self, resource: &Resource, scope: &Scope, after: u64, until: u64) -> Vec<Seen> {
        let is_in = |entry: &&Entry| {
            let revision = entry.object.revision();
            entry.key.resource == *resource
                && scope.covers(&entry.key.position)
                && revision > after
                && revision <= until
        };
        let seen = |entry: &Entry| {
            let old = self.get(&entry.key, entry.object.revision() - 1);
            (entry.change, entry.object.clone(), old)
        };
        self.log.iter().filter(is_in).map(seen).collect()
    }

    /// Something happened: it must have been its turn, and possible.
    pub(super) fn append(&mut self, entry: Entry) {
        let revision = entry.object.revision();
        assert_eq!(revision, self.revision() + 1);
        assert_eq!(entry.object.value()["metadata"]["resourceVersion"], revision.to_string());
        assert_eq!(entry.object.position(), &*entry.key.position);
        assert_eq!(self.get(&entry.key, revision).is_none(), entry.change == Change::Added);
        self.log.push(entry);
    }

    /// An object went because its resource did.
    pub(super) fn append_end(&mut self, resource: &Resource, last: &Stored) {
        let (revision, mut value) = (self.revision() + 1, last.value());
        value["metadata"]["resourceVersion"] = json!(revision.to_string());
        let bytes = serde_json::to_vec(&value).unwrap().into();
        let object = Stored::restored(revision, last.shared_position(), last.labels_at(), bytes);
        let key = Key { resource: resource.clone(), position: last.shared_position() };
        self.append(Entry { key, change: Change::Deleted, object });
    }

    pub(super) fn lose_after(&mut self, revision: u64) {
        self.log.retain(|entry| entry.object.revision() <= revision);
        assert_eq!(self.revision(), revision);
    }

    /// The revision that a change is made of.
    fn aimed(&self, key: &Key, is_right: bool) -> u64 {
        let current = self.get(key, u64::MAX).map_or(1, |object| object.revision());
        if is_right { current } else { current - 1 }
    }

    pub(super) fn aim(&self, write: Write) -> (Key, Aim) {
        match write {
            Write::Create(key, of) => (key, Aim::Create(content(of))),
            Write::Update(key, is_right, of) => {
                let aim = Aim::Update(self.aimed(&key, is_right), content(of));
                (key, aim)
            }
            Write::Delete(key, is_right, of) => {
                let aim = Aim::Delete(self.aimed(&key, is_right), content(of));
                (key, aim)
            }
        }
    }

    /// What a change has to be refused for, if it is the only one.
    pub(super) fn expect(&self, write: &Write) -> Option<WriteError> {
        match write {
            Write::Create(key, _) => self.get(key, u64::MAX).map(WriteError::Exists),
            Write::Update(key, is_right, _) | Write::Delete(key, is_right, _) => match self.get(key, u64::MAX) {
                None => Some(WriteError::Gone),
                Some(_) if *is_right => None,
                Some(current) => Some(WriteError::Changed(current)),
            },
        }
    }
}
