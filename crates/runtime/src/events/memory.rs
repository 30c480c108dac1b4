//! What was said lately, so that the same said again is counted.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use drover_engine::plan::Event;

use crate::clock::Tick;

/// How long after it was last said the same counts as said once more. After that it is said anew: the server may have
/// forgotten it.
pub(super) const SERIES: Duration = Duration::from_mins(6);

/// What was said lately. To keep and to recall hardly costs more when much was said: only what is forgotten is walked over.
#[derive(Debug, Default)]
pub(super) struct Memory {
    said: HashMap<Arc<Event>, (Turn, Said)>,
    /// The same events, oldest first.
    turns: BTreeMap<Turn, Arc<Event>>,
    /// How many turns there have been.
    count: u64,
}

/// When something was said. The number tells those apart that were said at once.
type Turn = (Tick, u64);

/// What the server has of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) name: String,
    pub(super) times: i32,
    pub(super) last: Tick,
}

impl Memory {
    /// What was said of that lately. What was said longer ago is forgotten.
    pub(super) fn recall(&mut self, event: &Event, now: Tick) -> Option<Said> {
        self.forget(now);
        self.said.get(event).map(|(_, said)| said.clone())
    }

    /// Keeps in mind what the server has of an event, instead of what it had before.
    pub(super) fn keep(&mut self, event: &Event, said: Said) {
        self.count += 1;
        let turn = (said.last, self.count);
        let event = Arc::new(event.clone());
        self.turns.insert(turn, Arc::clone(&event));
        if let Some((before, _)) = self.said.insert(event, (turn, said)) {
            self.turns.remove(&before);
        }
    }

    fn forget(&mut self, now: Tick) {
        while let Some(oldest) = self.turns.first_entry()
            && now.since(oldest.key().0) >= SERIES
        {
            self.said.remove(&oldest.remove());
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;

    use super::*;

    fn event(note: &str) -> Event {
        Event::normal(&Namespace::default(), "Said", note)
    }

    fn minute(minute: u64) -> Tick {
        Tick::default().after(Duration::from_mins(minute))
    }

    fn said(times: i32, last: Tick) -> Said {
        Said { name: "event-1".to_owned(), times, last }
    }

    /// What is kept, by both orders.
    fn sizes(memory: &Memory) -> (usize, usize) {
        (memory.said.len(), memory.turns.len())
    }

    #[test]
    fn what_is_old_is_forgotten_and_the_rest_is_not() {
        let mut memory = Memory::default();
        // Answers come in another order than their questions were sent.
        for (note, last) in [("second", 1), ("first", 0), ("third", 2), ("also second", 1)] {
            memory.keep(&event(note), said(1, minute(last)));
        }
        assert_eq!(memory.recall(&event("second"), minute(6)), Some(said(1, minute(1))));
        assert_eq!(sizes(&memory), (3, 3));
        assert_eq!(memory.recall(&event("first"), minute(6)), None);
        assert_eq!(memory.recall(&event("second"), minute(7)), None);
        assert_eq!(memory.recall(&event("also second"), minute(7)), None);
        assert_eq!(memory.recall(&event("third"), minute(7)), Some(said(1, minute(2))));
        assert_eq!(memory.recall(&event("third"), minute(8)), None);
        assert_eq!(sizes(&memory), (0, 0));
    }

    #[test]
    fn what_is_repeated_is_kept_once_and_longer() {
        let mut memory = Memory::default();
        for times in 1..=100 {
            memory.keep(&event("again"), said(times, minute(1)));
        }
        memory.keep(&event("again"), said(101, minute(4)));
        assert_eq!(sizes(&memory), (1, 1));
        assert_eq!(memory.recall(&event("again"), minute(9)), Some(said(101, minute(4))));
        assert_eq!(memory.recall(&event("again"), minute(10)), None);
        assert_eq!(sizes(&memory), (0, 0));
    }
}
