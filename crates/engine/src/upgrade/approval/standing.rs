//! Where an operator is on its way to its version, and what it waits for.

use std::fmt;

use drover_api::cluster::OperatorRef;

use crate::words::excerpt;

/// Where an operator is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was named, and the cluster does not have it.
    Missing,
    /// New versions of it wait for nobody's approval.
    Automatic,
    /// It had no version to move to when the upgrade began.
    NotOffered,
    /// It runs the version that it was to be upgraded to, or one that has taken its place.
    Upgraded {
        /// The version that it runs.
        version: String,
    },
    /// Its plan is to be approved.
    Ready {
        /// The plan.
        plan: String,
    },
    /// It is waited for.
    Waiting(Wait),
    /// It is held up, and waiting does not help.
    Blocked(Block),
}

/// What an operator waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// There is no plan that brings its version.
    NoPlan {
        /// The version.
        version: String,
    },
    /// Its plan brings versions too of which nobody knows whose they are.
    Unclaimed {
        /// The plan.
        plan: String,
        /// Those versions.
        versions: Vec<String>,
    },
    /// Its plan is approved, and not carried out yet.
    Installing {
        /// The plan.
        plan: String,
        /// What it brings.
        version: String,
    },
    /// It has its version, which does not run yet.
    Settling {
        /// The version.
        version: String,
        /// What the version says of itself; nothing if it is not there.
        phase: Option<String>,
        /// And why.
        message: Option<String>,
    },
}

/// Why an operator can not be upgraded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Its plan would bring more than was asked for.
    Carries {
        /// The plan.
        plan: String,
        /// What else it would bring.
        extra: Vec<Extra>,
    },
    /// Its plan could not be carried out.
    Failed {
        /// The plan.
        plan: String,
        /// What the plan says of that.
        message: Option<String>,
    },
    /// It is offered another version by now.
    Overtaken {
        /// The version that it was to be upgraded to.
        target: String,
        /// The other one.
        offered: String,
    },
}

/// Something that a plan would bring besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extra {
    /// The version.
    pub version: String,
    /// Whose it is.
    pub operator: OperatorRef,
    /// Why it must not be brought.
    pub reason: Reason,
}

/// Why an operator may not be brought to a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The operator was not asked for.
    NotAsked,
    /// The version was not offered yet when the upgrade began.
    Later,
}

impl Standing {
    /// How far behind others it is told: what is held up comes first, and what is done last.
    pub(super) fn concern(&self) -> u8 {
        match self {
            Self::Blocked(_) => 0,
            Self::Waiting(_) => 1,
            Self::Ready { .. } => 2,
            Self::Missing => 3,
            Self::NotOffered => 4,
            Self::Automatic => 5,
            Self::Upgraded { .. } => 6,
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is not on this cluster, and is left out"),
            Self::Automatic => f.write_str("is upgraded without approval, and is left to itself"),
            Self::NotOffered => f.write_str("had no version to move to when the upgrade began: nothing to approve"),
            Self::Upgraded { version } => write!(f, "runs {version}"),
            Self::Ready { plan } => write!(f, "the install plan {plan} is to be approved"),
            Self::Waiting(wait) => wait.fmt(f),
            Self::Blocked(block) => block.fmt(f),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlan { version } => write!(f, "waits for an install plan that brings {version}"),
            Self::Unclaimed { plan, versions } => write!(
                f,
                "the install plan {plan} is not approved: it also brings {}, which no Subscription of the namespace has",
                versions.join(", ")
            ),
            Self::Installing { plan, version } => {
                write!(f, "the install plan {plan} is approved, and waits until {version} is installed")
            }
            Self::Settling { version, phase: None, .. } => {
                write!(f, "waits for {version} to run; there is no such ClusterServiceVersion yet")
            }
            Self::Settling { version, phase: Some(phase), message } => {
                write!(f, "waits for {version} to run; it is {phase}")?;
                because(f, message.as_deref())
            }
        }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Carries { plan, extra } => {
                write!(f, "the install plan {plan} is not approved: it also brings ")?;
                extra.iter().enumerate().try_for_each(|(index, extra)| {
                    let separator = if index == 0 { "" } else { "; and " };
                    write!(f, "{separator}{extra}")
                })
            }
            Self::Failed { plan, message } => {
                write!(f, "the install plan {plan} has failed")?;
                because(f, message.as_deref())
            }
            Self::Overtaken { target, offered } => {
                write!(f, "{target} is not offered any more, but {offered} is: begin another upgrade to have that one")
            }
        }
    }
}

impl fmt::Display for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, operator, reason } = self;
        match reason {
            Reason::NotAsked => write!(f, "{version} of {operator}, which was not asked for"),
            Reason::Later => write!(f, "{version} of {operator}, which was not offered when the upgrade began"),
        }
    }
}

/// Adds what somebody else says of the reason.
fn because(f: &mut fmt::Formatter<'_>, message: Option<&str>) -> fmt::Result {
    match message.filter(|message| !message.is_empty()) {
        Some(message) => write!(f, ": {}", excerpt(message)),
        None => Ok(()),
    }
}
