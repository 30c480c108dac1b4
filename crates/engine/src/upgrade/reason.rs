//! Why a cluster is where it is in an upgrade: the closed list of what it can wait for, and of what can become of it.

use std::fmt;

use k8s_openapi::jiff::Timestamp;

use crate::words::excerpt;

/// Why a cluster is where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It waits for its turn.
    Queued,
    /// It can not be reached.
    Offline {
        /// Since when, if that is known.
        since: Option<Timestamp>,
    },
    /// The hub does not accept it, or it has no namespace.
    NotAccepted,
    /// Another upgrade has it.
    Owned {
        /// Which.
        by: String,
    },
    /// It is not selected at the moment.
    Unselected,
    /// What was there before is being removed.
    MakingRoom,
    /// It could not be sent what comes before the upgrade.
    NotSent,
    /// The hub runs on it.
    HubItself,
    /// The hub runs on it, and it waits for all others.
    HubLast,
    /// Its agent does not say what the cluster runs.
    Unreported,
    /// Its agent can not tell what the cluster runs.
    Unreadable {
        /// What it says.
        why: Option<String>,
    },
    /// Somebody else is upgrading it.
    Busy {
        /// To what.
        with: String,
    },
    /// It says that it can not be upgraded.
    NotUpgradeable {
        /// Why not.
        why: String,
    },
    /// It knows of no update from what it runs to the target.
    NoUpdatePath {
        /// What it runs.
        from: String,
        /// The target.
        to: String,
    },
    /// It is being found out whether it can be upgraded.
    Preflight,
    /// The action before the upgrade is under way.
    PreActionRunning,
    /// The action before the upgrade has failed.
    PreActionDegraded {
        /// What is said of it.
        why: Option<String>,
    },
    /// All is done that comes before the upgrade; it waits for its turn.
    Prepared,
    /// Its platform is upgraded, and it waits for its turn to do what is left.
    Resuming,
    /// Somebody has asked to try again.
    Retried,
    /// Its agent has not taken up the upgrade yet.
    NotDelivered,
    /// Its agent can not apply the upgrade.
    NotApplied {
        /// What it says.
        why: Option<String>,
    },
    /// It does not take the release.
    ReleaseNotAccepted {
        /// Why not.
        why: Option<String>,
    },
    /// Its platform is being upgraded.
    Upgrading {
        /// How far that is.
        message: Option<String>,
    },
    /// Somebody else has asked it for something else meanwhile.
    Contested {
        /// For what.
        desired: String,
        /// What it was asked for here.
        target: String,
    },
    /// Its operators are being upgraded.
    OperatorsRunning {
        /// Where they are.
        said: Option<String>,
    },
    /// The action after the upgrade is under way.
    PostActionRunning,
    /// It is upgraded.
    Upgraded,
    /// It was there before.
    AlreadyThere,
    /// It is beyond the target.
    Downgrade {
        /// What it runs.
        from: String,
        /// The target.
        to: String,
    },
    /// Somebody else has brought it beyond the target.
    Overtaken {
        /// What it runs.
        at: String,
        /// The target.
        target: String,
    },
    /// Its platform was not upgraded in time.
    TimedOut {
        /// What it said last.
        last: Option<String>,
    },
    /// Its operators could not be upgraded.
    OperatorsFailed {
        /// Where they are.
        said: Option<String>,
    },
    /// Its operators were not upgraded in time.
    OperatorsTimedOut {
        /// Where they are.
        said: Option<String>,
    },
    /// The action after the upgrade has failed.
    PostActionDegraded {
        /// What is said of it.
        why: Option<String>,
    },
}

impl Reason {
    /// One word for programs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Queued => "Queued",
            Self::Offline { .. } => "Offline",
            Self::NotAccepted => "NotAccepted",
            Self::Owned { .. } => "OwnedByAnotherUpgrade",
            Self::Unselected => "Unselected",
            Self::MakingRoom => "MakingRoom",
            Self::NotSent => "NotSent",
            Self::HubItself => "HubItself",
            Self::HubLast => "HubComesLast",
            Self::Unreported => "Unreported",
            Self::Unreadable { .. } => "Unreadable",
            Self::Busy { .. } => "Busy",
            Self::NotUpgradeable { .. } => "NotUpgradeable",
            Self::NoUpdatePath { .. } => "NoUpdatePath",
            Self::Preflight => "Preflight",
            Self::PreActionRunning => "PreActionRunning",
            Self::PreActionDegraded { .. } => "PreActionDegraded",
            Self::Prepared => "Prepared",
            Self::Resuming => "Resuming",
            Self::Retried => "Retried",
            Self::NotDelivered => "NotDelivered",
            Self::NotApplied { .. } => "NotApplied",
            Self::ReleaseNotAccepted { .. } => "ReleaseNotAccepted",
            Self::Upgrading { .. } => "Upgrading",
            Self::Contested { .. } => "Contested",
            Self::OperatorsRunning { .. } => "OperatorsRunning",
            Self::PostActionRunning => "PostActionRunning",
            Self::Upgraded => "Upgraded",
            Self::AlreadyThere => "AlreadyAtTarget",
            Self::Downgrade { .. } => "Downgrade",
            Self::Overtaken { .. } => "Overtaken",
            Self::TimedOut { .. } => "TimedOut",
            Self::OperatorsFailed { .. } => "OperatorsFailed",
            Self::OperatorsTimedOut { .. } => "OperatorsTimedOut",
            Self::PostActionDegraded { .. } => "PostActionDegraded",
        }
    }
}

/// A sentence, with what somebody else says of it.
fn with(sentence: &str, why: Option<&String>) -> String {
    match why {
        Some(why) if !why.is_empty() => format!("{sentence}: {}", excerpt(why)),
        _ => sentence.to_owned(),
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = match self {
            Self::Queued => "it waits for its turn; what holds the upgrade up stands in the ManagedClustersUpgrade".to_owned(),
            Self::Offline { since: Some(since) } => format!("the cluster can not be reached since {since}"),
            Self::Offline { since: None } => "the cluster can not be reached".to_owned(),
            Self::NotAccepted => "the hub does not accept the cluster, or it has no namespace yet: accept it".to_owned(),
            Self::Owned { by } => format!("the upgrade {by} has the cluster: wait for it, or delete it"),
            Self::Unselected => "the cluster is not selected at the moment; it is dropped if that stays so".to_owned(),
            Self::MakingRoom => "the cluster's agent has not removed yet what was there before".to_owned(),
            Self::NotSent => "what comes before the upgrade could not be sent to the cluster, and is tried again in a while: see the condition Applied of the ManagedClustersUpgrade".to_owned(),
            Self::HubItself => "the hub runs on this cluster: to upgrade it too, after all others, annotate the upgrade with drover.dev/upgrade-hub: \"true\"".to_owned(),
            Self::HubLast => "the hub runs on this cluster, so that it is upgraded alone, when every other cluster is done or has failed".to_owned(),
            Self::Unreported => "the cluster's agent has not said yet what the cluster runs".to_owned(),
            Self::Unreadable { why } => with("the cluster's agent can not read the ClusterVersion", why.as_ref()),
            Self::Busy { with } => format!("the cluster is on its way to {with}, which somebody else has asked for"),
            Self::NotUpgradeable { why } => with("the cluster says that it is not upgradeable", Some(why)),
            Self::NoUpdatePath { from, to } => {
                format!("the cluster knows of no update from {from} to {to}: choose another channel or version, or upgrade in steps")
            }
            Self::Preflight => "it is being found out whether the cluster can be upgraded".to_owned(),
            Self::PreActionRunning => "the action before the upgrade is under way".to_owned(),
            Self::PreActionDegraded { why } => with("the action before the upgrade has failed", why.as_ref()),
            Self::Prepared => "all is done that comes before the upgrade; it waits for its turn".to_owned(),
            Self::Resuming => "its platform is upgraded, and it waits for its turn to do what is left".to_owned(),
            Self::Retried => "somebody has asked to try again".to_owned(),
            Self::NotDelivered => "the cluster's agent has not taken up the upgrade yet".to_owned(),
            Self::NotApplied { why } => with("the cluster's agent could not apply the upgrade", why.as_ref()),
            Self::ReleaseNotAccepted { why } => with("the cluster does not take the release", why.as_ref()),
            Self::Upgrading { message } => with("the cluster is being upgraded", message.as_ref()),
            Self::Contested { desired, target } => {
                format!("somebody else has asked the cluster for {desired} instead of {target}; it is asked for {target} again")
            }
            Self::OperatorsRunning { said } => with("the operators are being upgraded", said.as_ref()),
            Self::PostActionRunning => "the action after the upgrade is under way".to_owned(),
            Self::Upgraded => "the cluster is upgraded".to_owned(),
            Self::AlreadyThere => "the cluster was there before".to_owned(),
            Self::Downgrade { from, to } => format!("the cluster runs {from}, and {to} would be a downgrade: nothing is written"),
            Self::Overtaken { at, target } => {
                format!("somebody else has upgraded the cluster to {at}, which is beyond {target}: it is not asked for that any more")
            }
            Self::TimedOut { last } => with("the cluster was not upgraded in time", last.as_ref()),
            Self::OperatorsFailed { said } => {
                with("the operators could not be upgraded, see the Job installplan-approver on the cluster", said.as_ref())
            }
            Self::OperatorsTimedOut { said } => {
                with("the operators were not upgraded in time, see the Job installplan-approver on the cluster", said.as_ref())
            }
            Self::PostActionDegraded { why } => with("the action after the upgrade has failed", why.as_ref()),
        };
        f.write_str(&sentence)
    }
}
