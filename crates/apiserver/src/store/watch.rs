//! Watches: places in the history of a resource.

use std::sync::Arc;

use tokio::sync::watch::Receiver;

use super::{
    TooOld,
    history::Event,
    key::{Resource, Scope},
    state::{Shared, State},
};

/// Somebody who follows what happens in a part of a resource.
pub struct Watch {
    shared: Arc<Shared>,
    resource: Resource,
    scope: Scope,
    /// The revision up to which everything was handed out.
    place: u64,
    /// How often the resource had ended when this began.
    endings: usize,
    news: Receiver<()>,
}

/// Why there is nothing more to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchEnd {
    /// It was too slow: what comes next is forgotten.
    #[error(transparent)]
    TooOld(#[from] TooOld),
    /// The resource is not there any more.
    #[error("the resource is gone")]
    ResourceGone,
}

impl Watch {
    /// Begins to follow after a revision. What happened since then has to be remembered.
    pub(super) fn begin(
        shared: &Arc<Shared>,
        state: &mut State,
        resource: &Resource,
        scope: &Scope,
        place: u64,
    ) -> Self {
        let collection = state.collection_mut(resource);
        let news = collection.join(scope);
        let endings = collection.endings.len();
        Self { shared: shared.clone(), resource: resource.clone(), scope: scope.clone(), place, endings, news }
    }

    /// What happens next, in order: nothing is left out, and nothing comes twice. It waits until there is something.
    ///
    /// Whoever does not wait to the end has missed nothing.
    pub async fn next_batch(&mut self, limit: usize) -> Result<Vec<Arc<Event>>, WatchEnd> {
        loop {
            self.news.mark_unchanged();
            let events = self.read(limit)?;
            if !events.is_empty() {
                return Ok(events);
            }
            if self.news.changed().await.is_err() {
                return Err(WatchEnd::ResourceGone);
            }
        }
    }

    /// The next thing that happens.
    pub async fn next(&mut self) -> Result<Arc<Event>, WatchEnd> {
        loop {
            if let Some(event) = self.next_batch(1).await?.pop() {
                return Ok(event);
            }
        }
    }

    /// The revision up to which everything was handed out: at first, that which it began at.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.place
    }

    /// The revision up to which everything was handed out, if that is everything there is: what a bookmark may say.
    pub fn caught_up(&mut self) -> Option<u64> {
        let shared = self.shared.clone();
        let state = shared.read();
        let is_idle = self.pending(&state, 1).is_ok_and(|events| events.is_empty());
        if is_idle {
            self.place = self.place.max(state.revision);
        }
        is_idle.then_some(self.place)
    }

    fn read(&mut self, limit: usize) -> Result<Vec<Arc<Event>>, WatchEnd> {
        let events = self.pending(&self.shared.read(), limit)?;
        if let Some(last) = events.last() {
            self.place = last.revision();
        }
        Ok(events)
    }

    fn pending(&self, state: &State, limit: usize) -> Result<Vec<Arc<Event>>, WatchEnd> {
        let collection = state.collection(&self.resource).ok_or(WatchEnd::ResourceGone)?;
        let history = collection.watched(&self.scope);
        if self.place < history.forgotten() {
            return Err(TooOld { asked: self.place, oldest: history.forgotten() }.into());
        }
        let end = collection.endings.get(self.endings).copied();
        let last = end.unwrap_or(u64::MAX);
        let events = history.after(self.place).take_while(|event| event.revision() <= last);
        let events: Vec<_> = events.take(limit.max(1)).cloned().collect();
        if events.is_empty() && end.is_some() { Err(WatchEnd::ResourceGone) } else { Ok(events) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.write().collection_mut(&self.resource).leave(&self.scope);
    }
}
