//! Where objects are kept: in memory, and in a file so that they are there again when the process is.
//!
//! There is one revision for everything, which each change raises by one. Changes are made by one writer, in order; with a
//! file, nothing is visible and nobody has an answer before it is on the disk. Everybody reads and watches the same memory.

mod batch;
mod collection;
mod history;
mod journal;
mod key;
mod object;
mod page;
mod state;
#[cfg(test)]
mod tests;
mod watch;
mod writer;

use std::{path::PathBuf, sync::Arc, time::Duration};

use parking_lot::RwLockWriteGuard;
use serde_json::Value;

pub use history::{Change, Event, Keep};
pub use journal::OpenError;
pub use key::{Key, Resource, Scope};
pub use object::Stored;
pub use page::{Continue, Page};
pub use state::Now;
pub use watch::{Watch, WatchEnd};

use object::Draft;
use state::{Shared, State};
use writer::Writer;

use crate::depth::TooDeep;

/// Where objects are written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Journal {
    /// Nowhere: they are gone with the process.
    Memory,
    /// To a file in a folder, which is made if it is not there.
    Folder(PathBuf),
}

/// Why something was not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// There is such an object already: this one.
    #[error("the object exists")]
    Exists(Stored),
    /// Somebody else changed the object: this is how it is now.
    #[error("the object has changed")]
    Changed(Stored),
    /// There is no such object.
    #[error("there is no such object")]
    Gone,
    /// It is too large to be kept.
    #[error("etcdserver: request is too large")]
    TooLarge,
    /// It nests deeper than objects may.
    #[error(transparent)]
    TooDeep(#[from] TooDeep),
    /// What was to be written has no fields, or no metadata.
    #[error("this is not an object")]
    NotAnObject,
    /// The disk does not take it. It is not known whether it will be there after a restart.
    #[error("{0}; restart when the disk is well and has room")]
    Unsafe(String),
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

impl WriteError {
    fn not_safe(error: &redb::Error) -> Self {
        Self::Unsafe(error.to_string())
    }
}

/// What happened after a revision is not remembered any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({oldest})")]
pub struct TooOld {
    /// The revision that was asked for.
    pub asked: u64,
    /// The oldest one that can be asked for.
    pub oldest: u64,
}

/// A revision has not come yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Too large resource version: {asked}, current: {current}")]
pub struct TooNew {
    /// The revision that was asked for.
    pub asked: u64,
    /// The newest one.
    pub current: u64,
}

/// Why there is no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// It is not remembered how it was then.
    #[error(transparent)]
    TooOld(#[from] TooOld),
    /// It is not yet known how it will be then.
    #[error(transparent)]
    TooNew(#[from] TooNew),
}

/// The largest object that is kept, as with etcd: who moves to a Kubernetes can take everything along.
const LARGEST: usize = 3 << 19;

/// An object that is to be kept, perhaps in the place of another one, if it is small enough and
/// nests no deeper than it may.
fn fitting(old: Option<&Stored>, object: Value) -> Result<Draft, WriteError> {
    let draft = Draft::over(old, object).ok_or(WriteError::NotAnObject)?;
    if draft.is_too_deep() {
        return Err(TooDeep.into());
    }
    if draft.len() > LARGEST { Err(WriteError::TooLarge) } else { Ok(draft) }
}

/// Where objects are kept. Copies are of the same store.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    writer: Writer,
}

impl Store {
    /// Opens a store, with everything that was written to its journal. The time tells when to forget what happened.
    pub fn open(journal: &Journal, keep: Keep, now: Now) -> Result<Self, OpenError> {
        match journal {
            Journal::Memory => {
                Ok(Self { shared: Arc::new(Shared::new(State::new(), keep, now)), writer: Writer::Direct })
            }
            Journal::Folder(folder) => {
                let (file, state) = journal::Journal::open(folder)?;
                Self::over(file, state, keep, now)
                    .map_err(|source| OpenError::Unusable { path: folder.clone(), source })
            }
        }
    }

    fn over(file: journal::Journal, state: State, keep: Keep, now: Now) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::new(state, keep, now));
        let writer = Writer::start(shared.clone(), file)?;
        Ok(Self { shared, writer })
    }

    /// Keeps a new object.
    pub async fn create(&self, key: Key, object: Value) -> Result<Stored, WriteError> {
        let draft = fitting(None, object)?;
        self.writer.write(&self.shared, move |batch| batch.create(key, draft)).await
    }

    /// Puts an object in the place of the one of a revision. If both are the same, nothing happens, and the answer is what
    /// was there.
    pub async fn update(&self, key: Key, expected: u64, object: Value) -> Result<Stored, WriteError> {
        let old = self.get(&key).filter(|old| old.revision() == expected);
        let draft = fitting(old.as_ref(), object)?;
        self.writer.write(&self.shared, move |batch| batch.update(key, expected, draft)).await
    }

    /// Deletes the object of a revision. Whoever watches is shown the last one, which is also the answer.
    pub async fn delete(&self, key: Key, expected: u64, last: Value) -> Result<Stored, WriteError> {
        let draft = Draft::new(last).ok_or(WriteError::NotAnObject)?;
        self.writer.write(&self.shared, move |batch| batch.delete(key, expected, draft)).await
    }

    /// Deletes all objects of a resource, and ends all its watches. The answer is the revision after that.
    pub async fn drop_resource(&self, resource: Resource) -> Result<u64, WriteError> {
        self.writer.write(&self.shared, move |batch| Ok(batch.drop_resource(&resource))).await
    }

    /// An object.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Stored> {
        self.shared.read().get(key).cloned()
    }

    /// The objects of a scope, or as many of them as are asked for; 0 is all of them, as in Kubernetes. A list that goes on is
    /// of the revision of its beginning.
    pub fn list(
        &self,
        resource: &Resource,
        scope: &Scope,
        from: Option<&Continue>,
        limit: Option<usize>,
    ) -> Result<Page, ListError> {
        let state = self.shared.read();
        Page::read(
            state.collection(resource),
            state.revision,
            scope,
            from,
            limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX),
        )
    }

    /// The newest revision.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.shared.read().revision
    }

    /// Waits for a revision, but not for ever.
    pub async fn wait_for(&self, revision: u64, timeout: Duration) -> Result<(), TooNew> {
        if self.revision() >= revision {
            return Ok(());
        }
        let mut revisions = self.shared.revisions();
        let come = revisions.wait_for(|newest| *newest >= revision);
        match tokio::time::timeout(timeout, come).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(TooNew { asked: revision, current: self.revision() }),
        }
    }

    /// Follows what happens in a scope after a revision.
    pub fn watch(&self, resource: &Resource, scope: &Scope, from: u64) -> Result<Watch, TooOld> {
        let mut state = self.shared.write();
        if let Some(collection) = state.collection(resource) {
            collection.check(from)?;
        }
        Ok(Watch::begin(&self.shared, &mut state, resource, scope, from))
    }

    /// What is in a scope, and a watch that follows from there: nothing is between the two.
    #[must_use]
    pub fn start(&self, resource: &Resource, scope: &Scope) -> (Vec<Stored>, Watch) {
        let mut state = self.shared.write();
        let revision = state.revision;
        let watch = Watch::begin(&self.shared, &mut state, resource, scope, revision);
        // Others may read meanwhile.
        let state = RwLockWriteGuard::downgrade(state);
        let objects = state.collection(resource).into_iter().flat_map(|objects| objects.range(scope, None));
        (objects.map(|(_, object)| object.clone()).collect(), watch)
    }

    /// Forgets what happened up to a revision: to the objects of a resource, or to all.
    pub fn compact(&self, resource: Option<&Resource>, revision: u64) {
        self.shared.write().compact(resource, revision);
    }

    /// Makes the file as small as it can be. Changes wait for that. It happens by itself when a store is
    /// opened and most of its file is air; while it is open, what is deleted makes room for what is new.
    pub async fn compact_file(&self) -> Result<(), WriteError> {
        self.writer.compact().await
    }

    /// Closes the file. Changes that came before are made, and those that come later are refused.
    pub async fn close(&self) {
        self.writer.close().await;
    }
}
