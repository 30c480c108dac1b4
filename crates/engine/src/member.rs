//! The state of a cluster in a rollout, what it waits for, and why it failed: values that planners,
//! conditions, events and explanations share, so that they cannot disagree.

mod blocker;
mod cause;
mod remedy;

use k8s_openapi::jiff::Timestamp;

pub use self::{
    blocker::{Blocker, BlockerKind, BlockingObject},
    cause::{Cause, Failure},
    remedy::Remedy,
};

/// The state of a cluster in a rollout.
#[derive(Clone, Debug, PartialEq)]
pub enum MemberState {
    /// The add-on is not on the cluster yet.
    NotInstalled,
    /// Nothing blocks the cluster, and there is no target yet.
    Pending,
    /// The cluster waits.
    Waiting(Blocker),
    /// A revision is assigned, and not verified yet.
    Updating {
        /// When that counts as a failure.
        until: Option<Timestamp>,
    },
    /// The revision is verified, and has to stay healthy for a while.
    Soaking {
        /// Until when.
        until: Timestamp,
    },
    /// The revision is verified.
    Updated,
    /// The revision is assigned, and failed.
    Failed(Cause),
    /// The cluster is unreachable.
    Offline,
    /// An annotation skips the cluster.
    Skipped,
    /// An annotation pauses the cluster.
    Paused,
    /// A user has configured the cluster otherwise.
    Overridden,
    /// No placement selects the cluster, and the add-on stays as it is.
    Deselected,
}

impl MemberState {
    /// The name of the state, without its blocker or cause.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotInstalled => "NotInstalled",
            Self::Pending => "Pending",
            Self::Waiting(_) => "Waiting",
            Self::Updating { .. } => "Updating",
            Self::Soaking { .. } => "Soaking",
            Self::Updated => "Updated",
            Self::Failed(_) => "Failed",
            Self::Offline => "Offline",
            Self::Skipped => "Skipped",
            Self::Paused => "Paused",
            Self::Overridden => "Overridden",
            Self::Deselected => "Deselected",
        }
    }

    /// What keeps the cluster from its target; `None` if nothing does, or only time.
    #[must_use]
    pub fn blocker(&self) -> Option<Blocker> {
        match self {
            Self::Waiting(blocker) => Some(blocker.clone()),
            Self::Offline => Some(Blocker::offline()),
            Self::Skipped => Some(Blocker::skipped()),
            Self::Paused => Some(Blocker::paused()),
            _ => None,
        }
    }

    /// When the state may change although nothing happens.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Updating { until } => *until,
            Self::Soaking { until } => Some(*until),
            Self::Waiting(blocker) => blocker.until,
            _ => None,
        }
    }

    /// What a user can do about the state.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Failed(_) => Some(Remedy::FixAndRetry),
            Self::Overridden => Some(Remedy::RemoveOverrides),
            other => other.blocker()?.remedy,
        }
    }
}
