//! What a placement has to say of one cluster, before it is compared with others.

use std::fmt;

use drover_api::reference::ClusterName;
use k8s_openapi::jiff::Timestamp;

/// A placement's verdict on one cluster. It holds whatever a decision needs to know of the cluster, so that a decision looks
/// at no cluster again.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The cluster.
    pub cluster: ClusterName,
    /// Whether it may be selected.
    pub outcome: Outcome,
    /// When the verdict may be another one though nothing but time has passed.
    pub may_change: Option<Timestamp>,
    /// The verdict may be another one when the cluster becomes selected or is no longer. Where this is false, a decision
    /// calls for no new verdict.
    pub hinges_on_selection: bool,
}

/// Whether a cluster may be selected.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It may.
    Candidate(Candidate),
    /// It may not.
    LeftOut(LeftOut),
}

/// A cluster that may be selected, with what it is compared by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    /// It is selected only behind all that are not avoided.
    pub(super) avoided: bool,
    /// The first of the placement's named groups that it matches.
    pub(super) group: Option<usize>,
    /// For each spread constraint, the value that the cluster is counted under.
    pub(super) topology: Box<[Option<Box<str>>]>,
    /// For each prioritizer, what it goes by, if the cluster has it.
    pub(super) measures: Box<[Option<i128>]>,
}

/// Why a cluster was left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeftOut {
    /// It is being deleted.
    Terminating,
    /// It meets none of the predicates.
    NoPredicateMet,
    /// It has a taint that is not tolerated.
    Tainted {
        /// The key of the taint.
        key: String,
    },
    /// One more of its kind would be further from the others than the spread constraints allow.
    SpreadTooFar,
    /// As many as were wanted had a better score.
    NotNeeded,
}

impl Verdict {
    /// What the cluster is compared by, if it may be selected.
    #[must_use]
    pub fn candidate(&self) -> Option<&Candidate> {
        match &self.outcome {
            Outcome::Candidate(candidate) => Some(candidate),
            Outcome::LeftOut(_) => None,
        }
    }
}

/// What can follow a number of clusters in a sentence.
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Terminating => f.write_str("being deleted"),
            Self::NoPredicateMet => f.write_str("matching no predicate"),
            Self::Tainted { key } => write!(f, "with the taint {key} not tolerated"),
            Self::SpreadTooFar => f.write_str("kept back by spread constraints"),
            Self::NotNeeded => f.write_str("beyond numberOfClusters"),
        }
    }
}
