//! What the server does not take of what has to be written down before anybody is given anything.

use std::time::Duration;

use drover_api::drover::{AddOnRollout, ConfigRevision};
use drover_engine::plan::{Write, WriteResult, rejection};
use drover_runtime::clock::after;
use k8s_openapi::jiff::Timestamp;

/// How long it takes until it is tried again. Nobody tells when a right is granted, or when there is room again.
const RETRY_INTERVAL: Duration = Duration::from_mins(1);

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

/// That the server did not accept something, and that it is not sent for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(super) matter: Matter,
    /// What could not be written, and why.
    pub(super) why: String,
    /// When it is sent again.
    pub(super) again: Timestamp,
    /// Whether an event has said so.
    pub(in crate::addon) is_announced: bool,
}

impl Refusal {
    /// What is not sent for a while after a write that came to this.
    pub(in crate::addon) fn after(
        before: Option<Self>,
        write: &Write,
        result: &WriteResult,
        now: Timestamp,
    ) -> Option<Self> {
        let Some(matter) = Matter::of(write) else { return before };
        match rejection(write, result) {
            // What exists already was written by another hub.
            Some(why) if !matches!(result, WriteResult::Exists(_)) => {
                Some(Self { matter, why, again: after(now, RETRY_INTERVAL), is_announced: false })
            }
            _ if *result == WriteResult::Done => before.filter(|before| before.matter != matter),
            _ => before,
        }
    }

    /// Whether it is still not sent. After that it is accepted, or rejected once more.
    pub(super) fn holds(&self, now: Timestamp) -> bool {
        // A clock that was set back does not make it wait for longer.
        now < self.again && self.again <= after(now, RETRY_INTERVAL)
    }
}
