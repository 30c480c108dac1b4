//! The records that the server has rejected. No cluster is assigned anything before they are written.

use std::time::Duration;

use drover_api::drover::{AddOnRollout, ConfigRevision};
use k8s_openapi::jiff::Timestamp;

use crate::{
    plan::{Write, WriteResult, rejection},
    time::after,
};

/// How long a rejected record is not sent again. No event says when a permission is granted, or when
/// there is room again.
const RETRY_INTERVAL: Duration = Duration::from_mins(1);

/// What has to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// The content of a configuration.
    Content,
    /// The state of the rollouts.
    Rollout,
}

impl RecordKind {
    fn of(write: &Write) -> Option<Self> {
        match write.kind() {
            kind if kind.is::<ConfigRevision>() => Some(Self::Content),
            kind if kind.is::<AddOnRollout>() => Some(Self::Rollout),
            _ => None,
        }
    }
}

/// A record that the server has rejected, and that is not sent for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RejectedRecord {
    pub(super) kind: RecordKind,
    /// What could not be written, and why.
    pub(super) why: String,
    /// When it is sent again.
    pub(super) again: Timestamp,
    /// Whether an event has reported it.
    pub(super) is_announced: bool,
}

impl RejectedRecord {
    /// What is rejected after a write with this result.
    pub(super) fn after(before: Option<Self>, write: &Write, result: &WriteResult, now: Timestamp) -> Option<Self> {
        let Some(kind) = RecordKind::of(write) else { return before };
        match rejection(write, result) {
            // A record that exists was written by another hub.
            Some(why) if !matches!(result, WriteResult::Exists(_)) => {
                Some(Self { kind, why, again: after(now, RETRY_INTERVAL), is_announced: false })
            }
            _ if *result == WriteResult::Done => before.filter(|before| before.kind != kind),
            _ => before,
        }
    }

    /// Whether it is still not sent. After that it is accepted, or rejected once more.
    pub(super) fn holds(&self, now: Timestamp) -> bool {
        // A clock that was set back does not make it wait for longer.
        now < self.again && self.again <= after(now, RETRY_INTERVAL)
    }
}
