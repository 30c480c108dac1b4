//! What the status of an AddOnRollout says of each placement rollout besides its counts, and how
//! that is read again.

use drover_api::reference::PlacementRef;

use crate::{presence::Source, revision::Set, rollout::Course};

/// The beginning of what is said of a rollout that is pinned.
const PINNED: &str = "held at the set ";
/// The end of that.
const BY_PIN: &str = " by drover.dev/pin";

/// What there is to say of an entry besides its counts.
pub(super) fn note(course: &Course<Set>) -> Option<String> {
    let pin = course.progress.pin.as_ref().filter(|pin| course.progress.wanted.as_ref() == Some(&pin.set));
    let pin = pin.filter(|pin| !pin.let_go);
    let pin = pin.map(|pin| format!("{PINNED}{}{BY_PIN}", pin.set));
    let blocker = course.status_blocker().map(|blocker| blocker.message);
    let notes: Vec<_> = pin.into_iter().chain(blocker).collect();
    (!notes.is_empty()).then(|| notes.join(", "))
}

/// What is said of all entries.
pub fn written<'a>(courses: impl Iterator<Item = (&'a Source, &'a Course<Set>)>) -> Option<String> {
    let notes: Vec<_> =
        courses.filter_map(|(source, course)| Some(format!("{}{}", begin(source), note(course)?))).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// What is said of the blocker of each entry, in the order in which they are written.
pub(crate) fn read<'a>(message: &'a str, sources: &[&Source]) -> Vec<Option<&'a str>> {
    let starts: Vec<_> = sources.iter().map(|source| start(message, &begin(source))).collect();
    let text = |(index, start): (usize, &Option<usize>)| {
        let start = (*start)?;
        let next = starts.iter().flatten().filter(|other| **other > start).min();
        let text = &message[start..next.map_or(message.len(), |next| *next)];
        blocker_in(text.trim_end_matches("; ").strip_prefix(&begin(sources[index]))?)
    };
    starts.iter().enumerate().map(text).collect()
}

fn begin(source: &Source) -> String {
    format!("{}: ", source.placement().map_or_else(|| "defaults".to_owned(), PlacementRef::to_string))
}

fn start(message: &str, begin: &str) -> Option<usize> {
    if message.starts_with(begin) {
        return Some(0);
    }
    message.find(&format!("; {begin}")).map(|before| before + "; ".len())
}

/// A note without what it says of the pin.
fn blocker_in(note: &str) -> Option<&str> {
    let Some(pinned) = note.strip_prefix(PINNED) else { return Some(note) };
    let (_, rest) = pinned.split_once(BY_PIN)?;
    rest.strip_prefix(", ")
}
