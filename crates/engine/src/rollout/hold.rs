//! What holds a placement rollout up, and the blocker that everything else reads of it.

use std::fmt;

use drover_api::{
    drover::RolloutState,
    grammar::SetFingerprint,
    names::PAUSE_ANNOTATION,
    reference::{ClusterName, PlacementRef},
};

use super::{
    course::Course,
    gate::Shut,
    revision::{Revision, TargetError},
    standing::Standing,
};
use crate::member::{Blocker, BlockerKind, BlockingObject, MemberState};

/// What holds a placement up, so that nobody is moved.
#[derive(Clone, Debug, PartialEq)]
pub enum Hold<R: Revision> {
    /// What is wanted can not be had.
    Blocked(TargetError<R::Problem>),
    /// Somebody has paused it.
    Paused(String),
    /// Its gate is shut.
    Gate(Shut),
    /// A canary was well with the set, and is no longer.
    CanaryUnhealthy(ClusterName),
    /// Too many clusters have failed.
    Halted {
        /// How many.
        failed: usize,
        /// How many may.
        tolerated: usize,
    },
    /// What is rolling out is made of the content of a configuration that nobody has any more.
    Lost(R::Part),
    /// What is rolling out was made by another Drover, and nobody has tried what this one would make of it.
    Outdated(SetFingerprint),
}

impl<R: Revision> Hold<R> {
    /// What waiting clusters report: without what changes often.
    fn in_short(&self) -> String {
        match self {
            Self::Gate(shut) => shut.in_short(),
            Self::CanaryUnhealthy(_) => "a canary was well with this and is no longer".to_owned(),
            Self::Halted { .. } => "too many clusters have failed".to_owned(),
            Self::Blocked(_) | Self::Paused(_) | Self::Lost(_) | Self::Outdated(_) => self.to_string(),
        }
    }

    /// The blocker that conditions, events and explanations read.
    fn blocker(&self, canary: Option<&PlacementRef>) -> Blocker {
        let blocker = Blocker::new(self.kind(), self.object(canary), self.to_string());
        let until = if let Self::Gate(shut) = self { shut.until() } else { None };
        Blocker { summary: self.in_short(), until, ..blocker }
    }

    fn kind(&self) -> BlockerKind {
        match self {
            Self::Blocked(_) => BlockerKind::InvalidTarget,
            Self::Paused(_) => BlockerKind::Paused,
            Self::Gate(_) => BlockerKind::Gate,
            Self::CanaryUnhealthy(_) => BlockerKind::CanaryUnhealthy,
            Self::Halted { .. } => BlockerKind::Halted,
            Self::Lost(_) => BlockerKind::MissingConfig,
            Self::Outdated(_) => BlockerKind::OutdatedRenderer,
        }
    }

    /// The object that blocks. That of a gate is the placement of the canaries, or one of them.
    fn object(&self, canary: Option<&PlacementRef>) -> Option<BlockingObject> {
        match self {
            Self::Paused(_) => Some(BlockingObject::Annotation(PAUSE_ANNOTATION)),
            Self::Gate(Shut::Overridden(cluster) | Shut::Unproven { first: cluster, .. })
            | Self::CanaryUnhealthy(cluster) => Some(BlockingObject::Cluster(cluster.clone())),
            Self::Gate(_) => canary.cloned().map(BlockingObject::Placement),
            Self::Lost(config) => Some(BlockingObject::Config(config.to_string())),
            Self::Blocked(_) | Self::Halted { .. } | Self::Outdated(_) => None,
        }
    }
}

impl<R: Revision> fmt::Display for Hold<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked(problem) => problem.fmt(f),
            Self::Paused(by) => write!(f, "paused by {by}"),
            Self::Gate(shut) => shut.fmt(f),
            Self::CanaryUnhealthy(cluster) => write!(
                f,
                "the canary {cluster} was well with this and is no longer: nothing new is begun until it recovers or is skipped"
            ),
            Self::Halted { failed, tolerated } => write!(
                f,
                "{failed} failed where {tolerated} may: nothing new is begun until one of them succeeds, something else is wanted, or drover.dev/retry is set"
            ),
            Self::Lost(config) => write!(
                f,
                "the content of the config {config} that this set is made of is not kept any more: nothing new is begun until something else is wanted, or the config has that content again"
            ),
            Self::Outdated(set) => write!(
                f,
                "{set} was made by another Drover, and what this one makes of the same has to come through the gate itself: nothing new of {set} is begun"
            ),
        }
    }
}

/// The kind of the blocker that has halted a placement rollout, as its status says it.
#[must_use]
pub fn kind_of_halt(message: &str) -> BlockerKind {
    if message.contains(" failed where ") {
        BlockerKind::Halted
    } else if message.starts_with("the canary ") {
        BlockerKind::CanaryUnhealthy
    } else {
        BlockerKind::MissingConfig
    }
}

/// The kind of the blocker of a placement rollout that waits for canaries, as its status says it.
#[must_use]
pub fn kind_of_wait(message: &str) -> BlockerKind {
    if message.contains(" was made by another Drover") { BlockerKind::OutdatedRenderer } else { BlockerKind::Gate }
}

/// What keeps the clusters of a placement rollout waiting.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacementBlockers {
    /// What keeps clusters from the revision that is rolling out.
    pub current: Option<Blocker>,
    /// What keeps clusters that run this revision from the target, if that is another.
    pub next: Option<Blocker>,
    /// Whether a revision is rolling out.
    pub is_rolling_out: bool,
}

impl PlacementBlockers {
    /// The state of a cluster that stands like this to its placement rollout.
    #[must_use]
    pub fn state(&self, standing: &Standing, placement: Option<&PlacementRef>) -> MemberState {
        let window = || self.is_rolling_out.then(|| Blocker::window(placement));
        match standing {
            Standing::Absent => MemberState::NotInstalled,
            Standing::Skipped => MemberState::Skipped,
            Standing::Paused { .. } => MemberState::Paused,
            Standing::Offline => MemberState::Offline,
            Standing::Ahead { is_there: true } | Standing::Done => {
                self.next.clone().map_or(MemberState::Updated, MemberState::Waiting)
            }
            Standing::Ahead { is_there: false } => MemberState::Updating { until: None },
            Standing::Waiting(_) | Standing::Stray => {
                self.current.clone().or_else(window).map_or(MemberState::Pending, MemberState::Waiting)
            }
            Standing::Moving { until } => MemberState::Updating { until: *until },
            Standing::Soaking { until } => MemberState::Soaking { until: *until },
            Standing::Failed(failure) => MemberState::Failed((*failure).into()),
            Standing::OwnWay | Standing::AtOdds => MemberState::Overridden,
        }
    }
}

impl<R: Revision> Course<R> {
    /// What holds the placement rollout up.
    #[must_use]
    pub fn blocker(&self) -> Option<Blocker> {
        Some(self.blocker_of(self.hold.as_ref()?))
    }

    /// What the status of the subject reports: what holds the placement rollout up, or else what
    /// is wrong with its target.
    #[must_use]
    pub fn status_blocker(&self) -> Option<Blocker> {
        let held = self.blocker().filter(|_| self.progress.state != Some(RolloutState::Complete));
        held.or_else(|| Some(self.blocker_of(&Hold::Blocked(self.problem.clone()?))))
    }

    /// What keeps the clusters of the placement rollout waiting.
    #[must_use]
    pub fn blockers(&self) -> PlacementBlockers {
        let awaits_target = self.goal != self.progress.wanted;
        let problem = || self.problem.clone().map(Hold::Blocked);
        let next = || self.hold.clone().or_else(problem).or_else(|| self.shut.clone().map(Hold::Gate));
        let next = if awaits_target { next() } else { None };
        PlacementBlockers {
            current: self.blocker(),
            next: next.map(|hold| self.blocker_of(&hold)),
            is_rolling_out: self.goal.is_some(),
        }
    }

    /// The blocker that a hold is. Since when is recorded of halts.
    fn blocker_of(&self, hold: &Hold<R>) -> Blocker {
        let canary = self.progress.gates.first().map(|gate| &gate.canary);
        let blocker = hold.blocker(canary);
        let halt = self.progress.halt.as_ref().filter(|halt| halt.message == blocker.message);
        Blocker { since: halt.map(|halt| halt.since.0), ..blocker }
    }
}
