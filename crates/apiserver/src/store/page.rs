//! Lists, page by page, each as of the revision of the first.
//!
//! Nothing is kept for a list that is not read to its end: what an object was at an earlier revision is in the history, where each
//! event has the object before. A list can be continued for as long as that is remembered.

use std::collections::BTreeMap;

use super::{ListError, TooNew, collection::Collection, key::Scope, object::Stored};

/// Where a list goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continue {
    /// The revision that the list is of.
    pub revision: u64,
    /// The position of the last object that was listed. If it is empty, the list begins.
    pub after: String,
}

/// A list, or a part of one.
#[derive(Clone, Debug)]
pub struct Page {
    /// The objects, sorted by position.
    pub items: Vec<Stored>,
    /// The revision that they are of.
    pub revision: u64,
    /// Where the list goes on, if it does.
    pub next: Option<Continue>,
    /// How many objects come after these.
    pub remaining: usize,
}

/// An object and its position.
type Positioned<'a> = (&'a str, &'a Stored);

impl Page {
    pub(super) fn read(
        collection: Option<&Collection>,
        now: u64,
        scope: &Scope,
        from: Option<&Continue>,
        limit: usize,
    ) -> Result<Self, ListError> {
        let revision = from.map_or(now, |from| from.revision);
        if revision > now {
            return Err(TooNew { asked: revision, current: now }.into());
        }
        let Some(collection) = collection else { return Ok(Self::of(&mut std::iter::empty(), revision, limit)) };
        let after = from.map(|from| from.after.as_str());
        let changed = changed(collection, revision, scope, after)?;
        let as_now = collection.range(scope, after).filter(|(position, _)| !changed.contains_key(position));
        let as_then = changed.iter().filter_map(|(position, object)| Some((*position, (*object)?)));
        Ok(Self::of(&mut merged(as_now, as_then), revision, limit))
    }

    fn of<'a>(objects: &mut impl Iterator<Item = Positioned<'a>>, revision: u64, limit: usize) -> Self {
        let items: Vec<_> = objects.take(limit).map(|(_, object)| object.clone()).collect();
        let remaining = objects.count();
        let last = items.last().filter(|_| remaining > 0);
        let next = last.map(|last| Continue { revision, after: last.position().to_owned() });
        Self { items, revision, next, remaining }
    }
}

/// The objects that changed since a revision, as they were then: before the first event after it.
fn changed<'a>(
    collection: &'a Collection,
    revision: u64,
    scope: &Scope,
    after: Option<&str>,
) -> Result<BTreeMap<&'a str, Option<&'a Stored>>, ListError> {
    let is_listed = |position: &str| scope.covers(position) && after.is_none_or(|after| position > after);
    let events = collection.since(revision)?.filter(|event| is_listed(event.object.position()));
    Ok(events.rev().map(|event| (event.object.position(), event.old.as_ref())).collect())
}

/// Two sorted lists as one.
fn merged<'a>(
    some: impl Iterator<Item = Positioned<'a>>,
    others: impl Iterator<Item = Positioned<'a>>,
) -> impl Iterator<Item = Positioned<'a>> {
    let (mut some, mut others) = (some.peekable(), others.peekable());
    std::iter::from_fn(move || match (some.peek(), others.peek()) {
        (Some((one, _)), Some((other, _))) if other < one => others.next(),
        (None, _) => others.next(),
        (Some(_), _) => some.next(),
    })
}
