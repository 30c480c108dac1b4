//! What a user can do about the state of a cluster, as it works today.

use std::fmt;

/// What a user can do about the state of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Correct what the placement is configured to.
    CorrectConfig,
    /// Make the canaries healthy, or skip them.
    FixOrSkipCanary,
    /// Fix the cause, and ask for another try.
    FixAndRetry,
    /// Continue a paused rollout.
    RemovePause,
    /// Continue on a paused cluster.
    RemovePauseOnCluster,
    /// Include a skipped cluster again.
    RemoveSkip,
    /// Bring the cluster's agent back.
    Reconnect,
    /// Return a cluster to what its placement assigns.
    RemoveOverrides,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CorrectConfig => "correct the configs, the strategy or the pin of the ClusterManagementAddOn",
            Self::FixOrSkipCanary => {
                "fix the canaries, or skip them: kubectl annotate managedclusteraddon -n CLUSTER NAME drover.dev/skip=true"
            }
            Self::FixAndRetry => {
                "fix the cause, then retry: kubectl annotate --overwrite clustermanagementaddon NAME drover.dev/retry=TOKEN"
            }
            Self::RemovePause => "continue: kubectl annotate clustermanagementaddon NAME drover.dev/pause-",
            Self::RemovePauseOnCluster => {
                "continue: kubectl annotate managedclusteraddon -n CLUSTER NAME drover.dev/pause-"
            }
            Self::RemoveSkip => {
                "remove the cluster from drover.dev/skip of the ClusterManagementAddOn, or: kubectl annotate managedclusteraddon -n CLUSTER NAME drover.dev/skip-"
            }
            Self::Reconnect => "check the agent of the cluster and its connection to the hub",
            Self::RemoveOverrides => "remove the configs or the version from the ManagedClusterAddOn of the cluster",
        })
    }
}
