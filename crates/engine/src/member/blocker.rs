//! What keeps a cluster from its target.

use std::fmt;

use drover_api::{
    names::{PAUSE_ANNOTATION, SKIP_ANNOTATION},
    reference::{ClusterName, PlacementRef},
};
use k8s_openapi::jiff::Timestamp;

use super::Remedy;

/// What keeps a cluster, or all clusters of a placement rollout, from the target.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocker {
    /// Which kind of blocker it is.
    pub kind: BlockerKind,
    /// The object that blocks.
    pub object: Option<BlockingObject>,
    /// What blocks, with counts and names.
    pub message: String,
    /// What blocks, without what changes often: a thousand waiting clusters need not report each
    /// change of a count.
    pub summary: String,
    /// Since when it blocks, if that is recorded.
    pub since: Option<Timestamp>,
    /// When it may clear although nothing happens.
    pub until: Option<Timestamp>,
    /// What a user can do.
    pub remedy: Option<Remedy>,
}

/// The kinds of blockers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockerKind {
    /// The target cannot be used: a configuration, a strategy or a pin is invalid or missing.
    InvalidTarget,
    /// The gate is closed.
    Gate,
    /// A canary was healthy with the revision, and is not any more.
    CanaryUnhealthy,
    /// More clusters have failed than the failure budget allows.
    Halted,
    /// An annotation pauses the rollout or the cluster.
    Paused,
    /// The content of a config of the revision is lost.
    MissingConfig,
    /// Another version of Drover has rendered the revision.
    OutdatedRenderer,
    /// The window is full.
    Window,
    /// The cluster is unreachable.
    Offline,
    /// An annotation skips the cluster.
    Skipped,
}

impl BlockerKind {
    /// The name of the kind.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidTarget => "InvalidTarget",
            Self::Gate => "Gate",
            Self::CanaryUnhealthy => "CanaryUnhealthy",
            Self::Halted => "Halted",
            Self::Paused => "Paused",
            Self::MissingConfig => "MissingConfig",
            Self::OutdatedRenderer => "OutdatedRenderer",
            Self::Window => "Window",
            Self::Offline => "Offline",
            Self::Skipped => "Skipped",
        }
    }

    /// What a user can do about a blocker of a placement rollout.
    #[must_use]
    pub fn remedy(self) -> Option<Remedy> {
        match self {
            Self::InvalidTarget | Self::MissingConfig => Some(Remedy::CorrectConfig),
            Self::Gate | Self::CanaryUnhealthy => Some(Remedy::FixOrSkipCanary),
            Self::Halted => Some(Remedy::FixAndRetry),
            Self::Paused => Some(Remedy::RemovePause),
            Self::OutdatedRenderer | Self::Window => None,
            Self::Offline => Some(Remedy::Reconnect),
            Self::Skipped => Some(Remedy::RemoveSkip),
        }
    }
}

/// The object that blocks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockingObject {
    /// A placement.
    Placement(PlacementRef),
    /// A cluster.
    Cluster(ClusterName),
    /// A config.
    Config(String),
    /// An annotation.
    Annotation(&'static str),
}

impl fmt::Display for BlockingObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Placement(placement) => write!(f, "Placement {placement}"),
            Self::Cluster(cluster) => write!(f, "ManagedCluster {}", cluster.as_str()),
            Self::Config(config) => write!(f, "config {config}"),
            Self::Annotation(annotation) => write!(f, "annotation {annotation}"),
        }
    }
}

impl Blocker {
    /// A blocker with the usual remedy, which says the same in short.
    #[must_use]
    pub fn new(kind: BlockerKind, object: Option<BlockingObject>, message: String) -> Self {
        let summary = message.clone();
        Self { kind, object, message, summary, since: None, until: None, remedy: kind.remedy() }
    }

    /// The window of a placement rollout is full.
    #[must_use]
    pub fn window(placement: Option<&PlacementRef>) -> Self {
        let object = placement.cloned().map(BlockingObject::Placement);
        let message = "other clusters are updating, and the window is full".to_owned();
        Self::new(BlockerKind::Window, object, message)
    }

    pub(super) fn offline() -> Self {
        Self::new(BlockerKind::Offline, None, "the cluster is unreachable".to_owned())
    }

    pub(super) fn skipped() -> Self {
        let object = Some(BlockingObject::Annotation(SKIP_ANNOTATION));
        Self::new(BlockerKind::Skipped, object, format!("the annotation {SKIP_ANNOTATION} skips the cluster"))
    }

    pub(super) fn paused() -> Self {
        let object = Some(BlockingObject::Annotation(PAUSE_ANNOTATION));
        let message = format!("the annotation {PAUSE_ANNOTATION} pauses the cluster");
        let remedy = Some(Remedy::RemovePauseOnCluster);
        Self { remedy, ..Self::new(BlockerKind::Paused, object, message) }
    }
}
