//! Why a cluster is where it is: the closed list of what it can wait for.

use std::fmt;

use k8s_openapi::jiff::Timestamp;

use crate::rollout::{Failure, Hold, Revision, Snapshot, Standing};
use drover_api::reference::ClusterName;

/// Where a cluster is in a rollout, and what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason<R: Revision> {
    /// No placement selects it, and the add-on was made for one: it stays as it is.
    Deselected,
    /// The add-on is not there yet.
    NotInstalled,
    /// Somebody has left it out.
    Skipped,
    /// Somebody has told it to wait.
    Paused,
    /// It can not be reached.
    Offline,
    /// Its placement is held up.
    Held(Hold<R>),
    /// Others are on their way, and not more may be.
    Window,
    /// It is on its way.
    Moving {
        /// When it would count as failed.
        until: Option<Timestamp>,
    },
    /// It runs what is wanted, and has to stay well for a while.
    Soaking {
        /// Until when.
        until: Timestamp,
    },
    /// It has failed.
    Failed(Failure),
    /// A user has configured it otherwise.
    OwnWay,
    /// It runs what is wanted.
    Done,
}

impl<R: Revision> Reason<R> {
    /// When this may change although nothing happens.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Moving { until } => *until,
            Self::Soaking { until } => Some(*until),
            Self::Held(Hold::Gate(shut)) => shut.until(),
            _ => None,
        }
    }

    /// Where a cluster is in rollouts.
    #[must_use]
    pub fn of(cluster: &ClusterName, snapshot: &Snapshot<R>) -> Self {
        let Some((_, standing)) = snapshot.standing(cluster) else { return Self::Deselected };
        let blocked_by = || snapshot.blocked_by(cluster);
        match standing {
            Standing::Absent => Self::NotInstalled,
            Standing::Skipped => Self::Skipped,
            Standing::Paused { .. } => Self::Paused,
            Standing::Offline => Self::Offline,
            Standing::Ahead { is_there: true } | Standing::Done => blocked_by().map_or(Self::Done, Self::Held),
            Standing::Ahead { is_there: false } => Self::Moving { until: None },
            Standing::Waiting(_) | Standing::Stray => blocked_by().map_or(Self::Window, Self::Held),
            Standing::Moving { until } => Self::Moving { until: *until },
            Standing::Soaking { until } => Self::Soaking { until: *until },
            Standing::Failed(failure) => Self::Failed(*failure),
            Standing::OwnWay | Standing::AtOdds => Self::OwnWay,
        }
    }
}

impl<R: Revision> fmt::Display for Reason<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deselected => f.write_str("no placement selects the cluster, and the add-on stays as it is"),
            Self::NotInstalled => f.write_str("the add-on is not there yet"),
            Self::Skipped => f.write_str("it is left out by the annotation drover.dev/skip"),
            Self::Paused => f.write_str("it is told to wait by the annotation drover.dev/pause"),
            Self::Offline => f.write_str("the cluster can not be reached"),
            Self::Held(hold) => hold.fmt(f),
            Self::Window => f.write_str("other clusters are on their way, and not more may be at one time"),
            Self::Moving { until: None } => f.write_str("it is on its way"),
            Self::Moving { until: Some(until) } => {
                write!(f, "it is on its way, and has failed if it is not there by {until}")
            }
            Self::Soaking { until } => write!(f, "it has to stay well until {until}"),
            Self::Failed(failure) => failure.fmt(f),
            Self::OwnWay => f.write_str("a user has configured it otherwise"),
            Self::Done => f.write_str("it runs what is wanted"),
        }
    }
}
