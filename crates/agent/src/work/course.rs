//! How far the agent is with one work.

use std::{sync::Arc, time::Duration};

use drover_api::work::{ManifestResourceMeta, ManifestStatus, ManifestWork};
use drover_engine::work::{Known, Manifest, Presence, unreadable_meta, was_applied};
use drover_runtime::{backoff::Backoff, clock::after};
use k8s_openapi::jiff::Timestamp;

use super::{object::Place, packed::unpack};

/// How long a manifest that could not be applied waits.
const RETRY_BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(5));
/// So many repairs in a row are made at once.
const FREE_REPAIRS: u32 = 3;
/// How long further repairs in a row wait.
const REPAIR_BACKOFF: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_mins(1));
/// For how long it is no failure that a kind is not served which the same work defines.
const ESTABLISHING: Duration = Duration::from_secs(10);

/// One state of a work, and how far the agent is with it.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) uid: Option<String>,
    pub(crate) generation: i64,
    /// One for each manifest, in their order in the work.
    pub(crate) pieces: Vec<Piece>,
    pub(crate) leftovers: Leftovers,
    /// The UID of the record that owns the objects, once it is known.
    owner: Option<String>,
}

/// How far the agent is with what the work has no manifests for any more.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leftovers {
    is_cleared: bool,
    retry: Retry,
}

impl Leftovers {
    /// Takes note of whether all are gone.
    pub(crate) fn note(&mut self, is_cleared: bool, now: Timestamp) {
        self.is_cleared = is_cleared;
        self.retry = if is_cleared { Retry::default() } else { self.retry.later(now, None) };
    }

    /// Takes note that something has gone.
    pub(crate) fn stir(&mut self) {
        self.retry.at = None;
    }

    fn is_due(&self, now: Timestamp) -> bool {
        !self.is_cleared && self.retry.at.is_none_or(|at| at <= now)
    }
}

/// How far the agent is with one manifest.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) meta: ManifestResourceMeta,
    /// Where its object is, once that is known.
    pub(crate) place: Option<Place>,
    /// Whether it was written to its object.
    pub(crate) known: Known,
    pub(crate) presence: Presence,
    /// The state of the object that was last seen.
    pub(crate) seen: Option<String>,
    /// What is reported of it; nothing as long as it was not tried.
    pub(crate) entry: Option<ManifestStatus>,
    /// Whether there may be something new to see.
    pub(crate) is_dirty: bool,
    /// What was last heard of its object, and how often something was.
    heard: Heard,
    retry: Retry,
    patience: Patience,
}

/// What was heard of an object.
#[derive(Clone, Debug, Default)]
struct Heard {
    times: u64,
    version: Option<String>,
    /// How often something else was, such as that its kind is defined.
    other: u64,
}

/// How often an object was repaired lately. Somebody may want it to be otherwise, and go on for ever.
#[derive(Clone, Copy, Debug, Default)]
struct Patience {
    repairs: u32,
    last: Option<Timestamp>,
    /// Until when it is left as it is.
    until: Option<Timestamp>,
}

impl Patience {
    /// After one more repair.
    fn after(self, now: Timestamp) -> Self {
        let is_again = self.last.is_some_and(|last| now < after(last, REPAIR_BACKOFF.longest() * 2));
        let repairs = if is_again { self.repairs.saturating_add(1) } else { 1 };
        let delayed = repairs.checked_sub(FREE_REPAIRS + 1);
        let until = delayed.map(|before| after(now, REPAIR_BACKOFF.delay(before)));
        Self { repairs, last: Some(now), until }
    }
}

/// When something that failed is tried again.
#[derive(Clone, Copy, Debug, Default)]
struct Retry {
    failures: u32,
    first: Option<Timestamp>,
    at: Option<Timestamp>,
}

impl Retry {
    /// After one more failure: at this time, if it is known, or later and later.
    fn later(self, now: Timestamp, again: Option<Duration>) -> Self {
        let delay = again.unwrap_or_else(|| RETRY_BACKOFF.delay(self.failures)).min(RETRY_BACKOFF.longest());
        Self { failures: self.failures.saturating_add(1), first: self.first.or(Some(now)), at: Some(after(now, delay)) }
    }
}

impl Course {
    /// The course of a work, from where it was with a former state of it.
    pub(crate) fn new(work: &ManifestWork, former: Option<(&Self, &ManifestWork)>) -> Self {
        let generation = work.metadata.generation.unwrap_or_default();
        let former = former.filter(|(course, _)| course.uid == work.metadata.uid);
        let manifests = work.spec.manifests();
        let pieces = manifests.iter().enumerate().map(|(ordinal, object)| {
            let read = Manifest::read(ordinal, &unpack(object));
            let meta = read.map_or_else(|_| unreadable_meta(ordinal), |manifest| manifest.resource_meta(None));
            let unchanged = former.and_then(|(course, work)| {
                let at = work.spec.manifests().iter().position(|former| former == object)?;
                course.pieces.get(at)
            });
            match unchanged {
                // The same manifest, perhaps elsewhere in the work, and perhaps to be applied otherwise.
                Some(piece) => Piece {
                    meta: ManifestResourceMeta { ordinal: meta.ordinal, ..piece.meta.clone() },
                    is_dirty: true,
                    entry: None,
                    retry: Retry::default(),
                    patience: Patience::default(),
                    ..piece.clone()
                },
                None => Piece::new(meta, work, generation),
            }
        });
        Self {
            uid: work.metadata.uid.clone(),
            generation,
            pieces: pieces.collect(),
            leftovers: Leftovers::default(),
            owner: former.and_then(|(course, _)| course.owner.clone()),
        }
    }

    /// Whether this is the course of a work in this state.
    pub(crate) fn is_of(&self, work: &ManifestWork) -> bool {
        self.uid == work.metadata.uid && Some(self.generation) == work.metadata.generation
    }

    /// Takes note of the record that is to own the objects. If it is another than before, it has to be written to all of them, before Kubernetes removes them with the former.
    pub(crate) fn owned_by(&mut self, uid: Option<String>, now: Timestamp) {
        let former = std::mem::replace(&mut self.owner, uid);
        if former.is_some() && former != self.owner {
            self.pieces.iter_mut().for_each(|piece| piece.stir(now));
        }
    }

    /// Whether every manifest was tried, and nothing new is known of any.
    pub(crate) fn is_settled(&self) -> bool {
        self.pieces.iter().all(|piece| piece.entry.is_some() && !piece.is_dirty)
    }

    /// Whether something is to be done now.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.leftovers.is_due(now) || self.pieces.iter().any(|piece| piece.is_due(now))
    }

    /// When something is to be done again although nothing has changed.
    pub(crate) fn wake(&self) -> Option<Timestamp> {
        self.pieces.iter().map(|piece| piece.retry.at).chain([self.leftovers.retry.at]).flatten().min()
    }
}

impl Piece {
    fn new(meta: ManifestResourceMeta, work: &ManifestWork, generation: i64) -> Self {
        // After a restart, the hub knows what was written.
        let status = work.status.as_ref();
        let is_written = was_written(status, &meta, generation);
        let known = if is_written { Known::Written { settled: None } } else { Known::New };
        Self {
            meta,
            place: None,
            known,
            presence: Presence::Unknown,
            seen: None,
            entry: None,
            is_dirty: true,
            heard: Heard::default(),
            retry: Retry::default(),
            patience: Patience::default(),
        }
    }

    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.retry.at.map_or(self.is_dirty || self.entry.is_none(), |at| at <= now)
    }

    /// Takes note that its object is in the state of that version now, or gone. What has failed is tried at once then; what was repaired again and
    /// again, later.
    pub(crate) fn hear(&mut self, version: Option<&str>, now: Timestamp) {
        self.heard.times += 1;
        self.heard.version = version.map(str::to_owned);
        self.dirty(now);
    }

    /// Takes note that there may be something new, whatever the state of its object.
    pub(crate) fn stir(&mut self, now: Timestamp) {
        self.heard.other += 1;
        self.dirty(now);
    }

    fn dirty(&mut self, now: Timestamp) {
        self.is_dirty = true;
        self.retry.at = self.patience.until.filter(|until| now < *until);
    }

    /// Takes note that its object was not as it is to be, and was repaired.
    pub(crate) fn repaired(&mut self, now: Timestamp) {
        self.patience = self.patience.after(now);
    }

    /// Takes note of what was seen by somebody who began to look when the piece was like that. What was heard meanwhile, and is not what was seen, is still to be looked at.
    pub(crate) fn see(&mut self, version: Option<String>, begun: &Self) {
        let has_changed = self.heard.times != begun.heard.times && self.heard.version != version;
        self.is_dirty = has_changed || self.heard.other != begun.heard.other;
        self.seen = version;
    }

    /// Takes note that it went well.
    pub(crate) fn succeed(&mut self) {
        self.retry = Retry::default();
    }

    /// Takes note that it failed, and when it is tried again: at this time, if it is known, or later and later.
    pub(crate) fn fail(&mut self, now: Timestamp, again: Option<Duration>) {
        self.retry = self.retry.later(now, again);
        if self.is_dirty {
            // There is something new already.
            self.retry.at = None;
        }
    }

    /// Whether it is too early to call it a failure that its kind is not served, though the work defines it.
    pub(crate) fn may_be_establishing(&self, now: Timestamp) -> bool {
        self.retry.first.is_none_or(|first| now < after(first, ESTABLISHING))
    }
}

/// The hub's entries name resources, which are not known before the cluster was asked.
fn was_written(
    status: Option<&drover_api::work::ManifestWorkStatus>,
    meta: &ManifestResourceMeta,
    generation: i64,
) -> bool {
    let entries = status.and_then(|status| status.resource_status.as_ref()).into_iter().flat_map(|it| &it.manifests);
    let mut same = entries.filter(|entry| {
        let said = &entry.resource_meta;
        (&said.group, &said.version, &said.kind, &said.name) == (&meta.group, &meta.version, &meta.kind, &meta.name)
            && said.ordinal == meta.ordinal
    });
    same.any(|entry| was_applied(status, &entry.resource_meta, generation))
}

/// The name of a work, shared by all who speak of it.
pub(crate) type WorkName = Arc<str>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_heard_while_somebody_looks_is_not_lost() {
        let (now, version) = (Timestamp::UNIX_EPOCH, |number: u32| Some(number.to_string()));
        let mut piece = Piece::new(unreadable_meta(0), &ManifestWork::default(), 1);
        let begun = piece.clone();
        // The object was read as it was before it changed.
        piece.hear(Some("2"), now);
        piece.see(version(1), &begun);
        assert!(piece.is_dirty);
        // It was read as it is, or nothing was heard at all.
        let begun = piece.clone();
        piece.hear(Some("3"), now);
        piece.see(version(3), &begun);
        assert!(!piece.is_dirty);
        let begun = piece.clone();
        piece.see(version(4), &begun);
        assert!(!piece.is_dirty);
    }

    #[test]
    fn who_repairs_again_and_again_takes_a_rest() {
        let start = Timestamp::UNIX_EPOCH;
        let mut patience = Patience::default();
        for _ in 0..FREE_REPAIRS {
            patience = patience.after(start);
            assert_eq!(patience.until, None);
        }
        let rests: Vec<_> = (0..8)
            .map(|_| {
                patience = patience.after(start);
                patience.until.expect("it rests").duration_since(start).as_secs()
            })
            .collect();
        assert_eq!(rests, [2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(patience.after(after(start, Duration::from_mins(10))).until, None, "after a while it is forgotten");
    }
}
