//! Keys that need attention: each once, however often it was marked.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

pub use drover_engine::tracker::Payload;
use k8s_openapi::jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::{
    backoff::Backoff,
    clock::{Clock, after},
};

/// How long a key that could not be reconciled waits.
const RETRY_BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_mins(1));

/// A queue of keys. A key is handed to one taker at a time; if it is marked meanwhile it comes again afterwards.
#[derive(Debug)]
pub struct Queue<T: Ord, P = ()> {
    clock: Clock,
    state: Mutex<State<T, P>>,
    /// Told whenever a key may have become ready.
    changed: Notify,
}

#[derive(Debug)]
struct State<T: Ord, P> {
    /// What can be taken, in the order in which it was marked.
    ready: VecDeque<T>,
    /// The same, to find out whether a key is in it.
    is_ready: BTreeSet<T>,
    /// What was taken and is not done.
    taken: BTreeSet<T>,
    /// What was marked while it was taken.
    again: BTreeSet<T>,
    /// What marks carry that nobody has asked for yet.
    payloads: BTreeMap<T, P>,
    /// When keys want attention although nothing has marked them.
    wake: BTreeSet<(Timestamp, T)>,
    wake_of: BTreeMap<T, Timestamp>,
    /// How often a key has failed in a row.
    failures: BTreeMap<T, u32>,
    is_closed: bool,
}

/// What became of a key that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// All went well. It wants attention again at that time, if at any.
    Well(Option<Timestamp>),
    /// It failed, and rests for a while, the longer the more often in a row.
    Failed,
    /// Somebody else was faster. It rests as if it had failed, unless what changed has marked it already.
    Overtaken,
}

impl<T: Ord + Clone, P: Payload> Queue<T, P> {
    /// A queue without keys.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let state = State {
            ready: VecDeque::new(),
            is_ready: BTreeSet::new(),
            taken: BTreeSet::new(),
            again: BTreeSet::new(),
            payloads: BTreeMap::new(),
            wake: BTreeSet::new(),
            wake_of: BTreeMap::new(),
            failures: BTreeMap::new(),
            is_closed: false,
        };
        Self { clock, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Marks a key as needing attention.
    pub fn mark(&self, key: T) {
        self.mark_with(key, P::default());
    }

    /// Marks a key as needing attention, and adds to what its entry carries.
    pub fn mark_with(&self, key: T, payload: P) {
        self.state().mark_with(key, payload);
        self.changed.notify_one();
    }

    /// Adds to what the next entry of a key carries. The key is not enqueued for it.
    pub fn carry(&self, key: T, payload: P) {
        self.state().carry(key, payload);
    }

    /// Takes what the marks of a key have carried until now, those since it was taken among them.
    pub fn payload(&self, key: &T) -> P {
        self.state().payloads.remove(key).unwrap_or_default()
    }

    /// Takes a mark back: there is nothing to attend to any more. A key that is taken is not concerned.
    pub fn forget(&self, key: &T) {
        let mut state = self.state();
        if state.is_ready.remove(key) {
            state.ready.retain(|ready| ready != key);
        }
        state.payloads.remove(key);
    }

    /// Takes no marks any more: nobody will attend to them.
    pub fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.ready.clear();
        state.is_ready.clear();
        state.payloads.clear();
    }

    /// How many keys are ready to be taken.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.state().ready.len()
    }

    /// Takes the next key, once there is one.
    pub async fn take(&self) -> T {
        loop {
            let next_wake = {
                let mut state = self.state();
                state.wake_up(self.clock.now());
                if let Some(key) = state.take() {
                    // There may be another key for another taker: a notification wakes only one.
                    if !state.ready.is_empty() {
                        self.changed.notify_one();
                    }
                    return key;
                }
                state.wake.first().map_or(Timestamp::MAX, |(time, _)| *time)
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = self.clock.sleep_until(next_wake) => {}
            }
        }
    }

    /// How often a key has not been attended to in a row.
    #[must_use]
    pub fn failures(&self, key: &T) -> u32 {
        self.state().failures.get(key).copied().unwrap_or_default()
    }

    /// Gives a key back that was taken.
    pub fn done(&self, key: &T, done: Done) {
        let now = self.clock.now();
        self.state().done(key, done, now);
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State<T, P>> {
        self.state.lock()
    }
}

impl<T: Ord + Clone, P: Payload> State<T, P> {
    fn mark_with(&mut self, key: T, payload: P) {
        self.carry(key.clone(), payload);
        self.mark(key);
    }

    fn carry(&mut self, key: T, payload: P) {
        if !self.is_closed && !payload.is_empty() {
            self.payloads.entry(key).or_default().merge(payload);
        }
    }

    fn mark(&mut self, key: T) {
        if self.is_closed {
            return;
        }
        if self.taken.contains(&key) {
            self.again.insert(key);
        } else if self.is_ready.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    fn wake_up(&mut self, now: Timestamp) {
        while self.wake.first().is_some_and(|(time, _)| *time <= now) {
            if let Some((_, key)) = self.wake.pop_first() {
                self.wake_of.remove(&key);
                self.mark(key);
            }
        }
    }

    fn take(&mut self) -> Option<T> {
        let key = self.ready.pop_front()?;
        self.is_ready.remove(&key);
        self.taken.insert(key.clone());
        Some(key)
    }

    fn done(&mut self, key: &T, done: Done, now: Timestamp) {
        self.taken.remove(key);
        let wake = match done {
            Done::Well(wake) => {
                self.failures.remove(key);
                wake
            }
            Done::Failed | Done::Overtaken => Some(after(now, self.retry_delay(key))),
        };
        self.set_wake(key, wake);
        // What marked a key while it failed is no reason to hurry it; what marks it later is, because something has changed.
        if self.again.remove(key) && done != Done::Failed {
            self.mark(key.clone());
        }
    }

    fn retry_delay(&mut self, key: &T) -> Duration {
        let failures = self.failures.entry(key.clone()).or_insert(0);
        let delay = RETRY_BACKOFF.delay(*failures);
        *failures = failures.saturating_add(1);
        delay
    }

    fn set_wake(&mut self, key: &T, wake: Option<Timestamp>) {
        if let Some(former) = self.wake_of.remove(key) {
            self.wake.remove(&(former, key.clone()));
        }
        if let Some(time) = wake {
            self.wake.insert((time, key.clone()));
            self.wake_of.insert(key.clone(), time);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::clock::ManualClock;

    fn queue() -> (ManualClock, Queue<&'static str>) {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
        let queue = Queue::new(clock.clock());
        (clock, queue)
    }

    fn taken(queue: &Queue<&'static str>) -> Option<&'static str> {
        queue.take().now_or_never()
    }

    #[test]
    fn a_key_that_was_overtaken_comes_at_once_if_the_change_is_known() {
        let (clock, queue) = queue();
        queue.mark("a");
        assert_eq!(taken(&queue), Some("a"));
        queue.mark("a");
        queue.done(&"a", Done::Overtaken);
        assert_eq!(taken(&queue), Some("a"));
        queue.done(&"a", Done::Overtaken);
        assert_eq!(taken(&queue), None, "nothing has changed since");
        clock.advance(RETRY_BACKOFF.longest());
        assert_eq!(taken(&queue), Some("a"));
    }

    #[test]
    fn a_mark_can_be_taken_back_and_a_closed_queue_takes_none() {
        let (_, queue) = queue();
        queue.mark("a");
        queue.mark("b");
        queue.forget(&"a");
        assert_eq!((taken(&queue), taken(&queue)), (Some("b"), None));
        queue.mark("c");
        queue.close();
        queue.mark("d");
        assert_eq!((taken(&queue), queue.depth()), (None, 0));
    }

    #[test]
    fn a_key_that_is_marked_twice_comes_once() {
        let (_, queue) = queue();
        queue.mark("a");
        queue.mark("b");
        queue.mark("a");
        assert_eq!((taken(&queue), taken(&queue), taken(&queue)), (Some("a"), Some("b"), None));
    }

    #[test]
    fn a_key_that_is_marked_while_taken_comes_again_when_it_is_done() {
        let (_, queue) = queue();
        queue.mark("a");
        assert_eq!(taken(&queue), Some("a"));
        queue.mark("a");
        assert_eq!(taken(&queue), None, "a key has one taker at a time");
        queue.done(&"a", Done::Well(None));
        assert_eq!(taken(&queue), Some("a"));
    }

    #[test]
    fn a_key_wakes_at_its_time_without_a_mark() {
        let (clock, queue) = queue();
        queue.mark("a");
        taken(&queue);
        queue.done(&"a", Done::Well(Some(after(Timestamp::UNIX_EPOCH, Duration::from_hours(2)))));
        clock.advance(Duration::from_hours(1));
        assert_eq!(taken(&queue), None);
        clock.advance(Duration::from_hours(1));
        assert_eq!(taken(&queue), Some("a"));
    }

    #[test]
    fn a_later_wake_up_replaces_the_former() {
        let (clock, queue) = queue();
        for hours in [1, 3] {
            queue.mark("a");
            taken(&queue);
            queue.done(&"a", Done::Well(Some(after(Timestamp::UNIX_EPOCH, Duration::from_hours(hours)))));
        }
        clock.advance(Duration::from_hours(2));
        assert_eq!(taken(&queue), None);
        clock.advance(Duration::from_hours(1));
        assert_eq!(taken(&queue), Some("a"));
    }

    #[test]
    fn failures_make_a_key_rest_longer_each_time_until_it_succeeds() {
        let (clock, queue) = queue();
        queue.mark("a");
        for failures in 0..4 {
            assert_eq!(taken(&queue), Some("a"));
            queue.done(&"a", Done::Failed);
            let almost = RETRY_BACKOFF.delay(0).mul_f64(0.9) * (1 << failures);
            clock.advance(almost);
            assert_eq!(taken(&queue), None, "after {failures} failures");
            clock.advance(almost);
        }
        taken(&queue);
        queue.done(&"a", Done::Well(None));
        queue.mark("a");
        taken(&queue);
        queue.done(&"a", Done::Failed);
        clock.advance(RETRY_BACKOFF.delay(0));
        assert_eq!(taken(&queue), Some("a"), "a success is a fresh start");
    }

    #[test]
    fn a_mark_does_not_hurry_a_key_that_rests_after_it_failed_meanwhile() {
        let (clock, queue) = queue();
        queue.mark("a");
        taken(&queue);
        queue.mark("a");
        queue.done(&"a", Done::Failed);
        assert_eq!(taken(&queue), None);
        clock.advance(RETRY_BACKOFF.delay(0));
        assert_eq!(taken(&queue), Some("a"));
        assert_eq!(taken(&queue), None);
    }

    #[tokio::test]
    async fn a_waiting_taker_gets_what_is_marked() {
        let (_, queue) = queue();
        let queue = std::sync::Arc::new(queue);
        let takers: Vec<_> = (0..2)
            .map(|_| {
                tokio::spawn({
                    let queue = queue.clone();
                    async move { queue.take().await }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.mark("a");
        queue.mark("b");
        let mut keys = Vec::new();
        for taker in takers {
            keys.push(taker.await.expect("a taker ends"));
        }
        keys.sort_unstable();
        assert_eq!(keys, ["a", "b"]);
    }
}
