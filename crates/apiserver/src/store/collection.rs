//! The objects of a resource, and what happened to them of late.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use tokio::sync::watch;

use super::{
    TooOld,
    history::{Change, Event, History, Keep},
    key::Scope,
    object::Stored,
};

#[derive(Debug)]
pub(super) struct Collection {
    objects: BTreeMap<Arc<str>, Stored>,
    history: History,
    /// What happened in the parts that somebody watches. Without these, each event would wake all who watch any part.
    parts: HashMap<Arc<str>, History>,
    /// What it costs to remember the history.
    cost: usize,
    /// The revision that nobody can begin to follow from before, though it may all be remembered.
    floor: u64,
    /// The revisions at which the resource ceased to be. Whoever watched it then has to be told everything until then.
    pub(super) endings: Vec<u64>,
}

impl Collection {
    /// A resource of which nothing is remembered up to a revision.
    pub(super) fn new(forgotten: u64) -> Self {
        Self {
            objects: BTreeMap::new(),
            history: History::new(forgotten),
            parts: HashMap::new(),
            cost: 0,
            floor: 0,
            endings: Vec::new(),
        }
    }

    /// Puts an object where it was before the process began. Nobody is told.
    pub(super) fn restore(&mut self, position: Arc<str>, object: Stored) {
        self.objects.insert(position, object);
    }

    pub(super) fn get(&self, position: &str) -> Option<&Stored> {
        self.objects.get(position)
    }

    pub(super) fn positions(&self) -> impl Iterator<Item = &Arc<str>> {
        self.objects.keys()
    }

    /// The objects of a scope that come after a position, in order, with their positions: to count them, no object is touched.
    pub(super) fn range(&self, scope: &Scope, after: Option<&str>) -> impl Iterator<Item = (&str, &Stored)> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let from = after.filter(|after| *after >= scope.as_str());
        let from = from.map_or(Included(scope.as_str()), Excluded);
        let objects = self.objects.range::<str, _>((from, Unbounded));
        objects.map(|(position, object)| (&**position, object)).take_while(|(position, _)| scope.covers(position))
    }

    /// What happened after a revision, if all of that is remembered.
    pub(super) fn since(&self, revision: u64) -> Result<impl DoubleEndedIterator<Item = &Arc<Event>>, TooOld> {
        self.check(revision)?;
        Ok(self.history.after(revision))
    }

    /// Whether everything is remembered that happened after a revision.
    pub(super) fn check(&self, revision: u64) -> Result<(), TooOld> {
        let oldest = self.floor.max(self.history.forgotten());
        if revision < oldest { Err(TooOld { asked: revision, oldest }) } else { Ok(()) }
    }

    /// Makes something happen. Whom to tell is added to the bells.
    pub(super) fn publish(&mut self, event: Arc<Event>, bells: &mut Vec<watch::Sender<()>>) {
        let position = event.object.shared_position();
        match event.change {
            Change::Added | Change::Modified => self.objects.insert(position.clone(), event.object.clone()),
            Change::Deleted => self.objects.remove(&position),
        };
        self.cost += event.cost();
        for part in Scope::around(&position) {
            if let Some(part) = self.parts.get_mut(part) {
                part.push(event.clone());
                bells.push(part.bell());
            }
        }
        self.history.push(event);
        bells.push(self.history.bell());
    }

    /// The resource ceases to be: whoever watches it is told so, after everything up to a revision.
    pub(super) fn end(&mut self, revision: u64, bells: &mut Vec<watch::Sender<()>>) {
        self.endings.push(revision);
        bells.extend(self.parts.values().chain([&self.history]).map(History::bell));
    }

    /// Forgets what is not to be kept any longer.
    pub(super) fn forget(&mut self, keep: Keep, now: Duration) {
        while let Some(oldest) = self.history.oldest_of_several()
            && (self.cost > keep.bytes || now.saturating_sub(oldest.at) > keep.age)
        {
            let revision = oldest.revision();
            self.forget_oldest(revision);
        }
    }

    /// Forgets everything up to a revision.
    pub(super) fn compact(&mut self, revision: u64) {
        while self.forget_oldest(revision) {}
        self.floor = self.floor.max(revision);
    }

    fn forget_oldest(&mut self, revision: u64) -> bool {
        let Some(event) = self.history.forget_oldest(revision) else { return false };
        self.cost -= event.cost();
        for part in Scope::around(event.object.position()) {
            if let Some(part) = self.parts.get_mut(part) {
                part.forget_oldest(event.revision());
            }
        }
        true
    }

    /// Begins to remember what happens in a scope, for somebody who watches it.
    pub(super) fn join(&mut self, scope: &Scope) -> watch::Receiver<()> {
        if scope.is_all() {
            return self.history.join();
        }
        let part = || self.history.part(|event| scope.covers(event.object.position()));
        self.parts.entry(scope.as_str().into()).or_insert_with(part).join()
    }

    /// Somebody ceases to watch a scope. If nobody else does, it need not be remembered apart.
    pub(super) fn leave(&mut self, scope: &Scope) {
        if scope.is_all() {
            self.history.leave();
        } else if self.parts.get_mut(scope.as_str()).is_some_and(History::leave) {
            self.parts.remove(scope.as_str());
        }
    }

    /// What happened in a scope that somebody watches.
    pub(super) fn watched(&self, scope: &Scope) -> &History {
        self.parts.get(scope.as_str()).unwrap_or(&self.history)
    }

    /// How many scopes are remembered apart.
    #[cfg(test)]
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }
}
