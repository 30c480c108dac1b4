//! What the server does not take of what has to be written down before anybody is given anything.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use drover_api::drover::{AddOnRollout, ConfigRevision};
use drover_engine::plan::{Write, WriteResult};
use drover_runtime::{clock::after, store::ObjectKey};
use k8s_openapi::jiff::Timestamp;

use crate::refusal::refusal;

/// How long it takes until it is tried again. Nobody tells when a right is granted, or when there is room again.
const PATIENCE: Duration = Duration::from_mins(1);

/// What was not written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matter {
    /// The content of a configuration.
    Content,
    /// What rollouts remember.
    Record,
}

impl Matter {
    /// What a write was about, if it is one of these.
    fn of(write: &Write) -> Option<Self> {
        match write.kind() {
            kind if kind.is::<ConfigRevision>() => Some(Self::Content),
            kind if kind.is::<AddOnRollout>() => Some(Self::Record),
            _ => None,
        }
    }
}

/// That something was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) matter: Matter,
    /// What could not be written, and why.
    pub(super) why: String,
    /// When it is tried again.
    pub(super) again: Timestamp,
    /// Whether people were told.
    pub(super) is_told: bool,
}

/// What was last refused of each add-on.
#[derive(Default)]
pub(super) struct Refusals(Mutex<BTreeMap<ObjectKey, Noted>>);

/// A refusal, as it is noted.
struct Noted {
    matter: Matter,
    why: String,
    /// Nobody knows the time when something is refused.
    again: Option<Timestamp>,
    is_told: bool,
}

impl Refusals {
    fn open(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Noted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is not tried for now. When its time has come it is forgotten: then it is taken, or refused once more.
    pub(super) fn of(&self, key: &ObjectKey, now: Timestamp) -> Option<Refusal> {
        let mut noted = self.open();
        let refusal = noted.get_mut(key)?;
        let again = *refusal.again.get_or_insert_with(|| after(now, PATIENCE));
        // A clock that was set back does not make it wait for longer.
        if now >= again || after(now, PATIENCE) < again {
            noted.remove(key);
            return None;
        }
        let Noted { matter, ref why, is_told, .. } = *refusal;
        Some(Refusal { matter, why: why.clone(), again, is_told })
    }

    /// Takes note that people are told.
    pub(super) fn told(&self, key: &ObjectKey) {
        if let Some(noted) = self.open().get_mut(key) {
            noted.is_told = true;
        }
    }

    /// Takes note that a write was refused.
    pub(super) fn note(&self, key: &ObjectKey, write: &Write, result: &WriteResult) {
        // What exists already was written by another hub.
        let is_there = matches!(result, WriteResult::Exists(_));
        let why = refusal(write, result).filter(|_| !is_there);
        if let Some((matter, why)) = Matter::of(write).zip(why) {
            self.open().insert(key.clone(), Noted { matter, why, again: None, is_told: false });
        }
    }

    /// Forgets an add-on.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.open().remove(key);
    }
}
