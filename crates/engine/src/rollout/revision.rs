//! What a rollout has to know of the revisions that it moves clusters to. It names them by their
//! hashes; what is in them is up to the subject that is rolled out.

use std::fmt::{Debug, Display};

use drover_api::grammar::SetFingerprint;

use super::strategy::Unreadable;

/// A revision: everything that a cluster gets of a subject, as one whole.
pub trait Revision: Clone + Debug + PartialEq {
    /// What users ask for on one cluster instead of a part of a revision.
    type Overrides: Clone + Debug + PartialEq;

    /// A part of a revision, whose content may be lost.
    type Part: Clone + Debug + Display + PartialEq;

    /// Why there is no revision for what a placement is configured to.
    type Problem: Clone + Debug + Display + PartialEq;

    /// The name of the revision that a cluster with these overrides is to run.
    fn with_overrides(&self, overrides: &Self::Overrides) -> SetFingerprint;
}

/// Why a placement has no target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError<P> {
    /// Its strategy can not be read.
    #[error("{0}: correct it")]
    Strategy(Unreadable),
    /// The set that it is held at is not known.
    #[error(
        "drover.dev/pin names the set {0}, which is not known: copy one from the AddOnRollout's status.sets, or remove the pin"
    )]
    UnknownRevision(SetFingerprint),
    /// There is no revision for what it is configured to.
    #[error("{0}")]
    Configuration(P),
}

impl<P> TargetError<P> {
    /// What is wrong with what the placement is configured to, if that is what is wrong.
    pub fn configuration(&self) -> Option<&P> {
        match self {
            Self::Configuration(problem) => Some(problem),
            Self::Strategy(_) | Self::UnknownRevision(_) => None,
        }
    }
}
