//! What happened to the objects of a resource of late. Watches are places in it, so a slow one costs nothing.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::sync::watch;

use super::object::Stored;

/// How long it is remembered what happened to objects. Whoever wants to follow from before that has to begin anew.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// What is older than this is forgotten. Clients hear every minute how far they are, so it has to be longer.
    pub age: Duration,
    /// How many bytes are kept for each resource in addition to its objects, however young they are.
    pub bytes: usize,
}

impl Default for Keep {
    /// As long as Kubernetes lets etcd keep it, if there is room.
    fn default() -> Self {
        Self { age: Duration::from_mins(5), bytes: 8 << 20 }
    }
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It came to be.
    Added,
    /// It changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// Something that happened to an object.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    /// What it was.
    pub change: Change,
    /// The object since then. One that was deleted is as it was last, with the revision of its end.
    pub object: Stored,
    /// The object before; none if there was none.
    pub old: Option<Stored>,
    pub(super) at: Duration,
}

impl Event {
    /// When it happened among everything else.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.object.revision()
    }

    /// What it costs to remember it. The new object is kept anyway: by the store, or as the old one of the next event.
    pub(super) fn cost(&self) -> usize {
        const REST: usize = 256;
        let last = if self.change == Change::Deleted { self.object.bytes().len() } else { 0 };
        REST + last + self.old.as_ref().map_or(0, |old| old.bytes().len())
    }
}

/// What happened in a part of a resource, from the oldest that is remembered to the newest.
#[derive(Debug)]
pub(super) struct History {
    events: VecDeque<Arc<Event>>,
    /// The revision up to which something may be forgotten.
    forgotten: u64,
    news: watch::Sender<()>,
    readers: usize,
}

impl History {
    pub(super) fn new(forgotten: u64) -> Self {
        Self { events: VecDeque::new(), forgotten, news: watch::Sender::new(()), readers: 0 }
    }

    /// The part of the history that something holds of.
    pub(super) fn part(&self, is_in: impl Fn(&Event) -> bool) -> Self {
        let events = self.events.iter().filter(|event| is_in(event)).cloned().collect();
        Self { events, ..Self::new(self.forgotten) }
    }

    pub(super) fn push(&mut self, event: Arc<Event>) {
        self.events.push_back(event);
    }

    /// The oldest event that is remembered, if there is more than one. The newest is never forgotten to make room.
    pub(super) fn oldest_of_several(&self) -> Option<&Event> {
        self.events.front().filter(|_| self.events.len() > 1).map(AsRef::as_ref)
    }

    /// Forgets the oldest event, if it is not after a revision.
    pub(super) fn forget_oldest(&mut self, revision: u64) -> Option<Arc<Event>> {
        let event = self.events.pop_front_if(|event| event.revision() <= revision)?;
        self.forgotten = self.forgotten.max(event.revision());
        Some(event)
    }

    /// The revision up to which something may be forgotten: the oldest one that can be followed from.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// What happened after a revision. All of it is there only if nothing of that is forgotten.
    pub(super) fn after(&self, revision: u64) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        self.events.range(self.events.partition_point(|event| event.revision() <= revision)..)
    }

    /// Somebody begins to wait for news.
    pub(super) fn join(&mut self) -> watch::Receiver<()> {
        self.readers += 1;
        self.news.subscribe()
    }

    /// Somebody ceases to. The answer is whether nobody is left.
    pub(super) fn leave(&mut self) -> bool {
        self.readers -= 1;
        self.readers == 0
    }

    /// Tells all who wait. It is for when the lock is not held any more, because they all want it.
    pub(super) fn bell(&self) -> watch::Sender<()> {
        self.news.clone()
    }
}
