//! What is said of an upgrade as a whole: counts, and conditions in the words of the specification.

#[cfg(test)]
mod tests;

use drover_api::{
    cluster::{CanariesPassed, ManagedClustersUpgradeStatus as Status, UpgradePhase},
    drover::Acknowledged,
    reference::ClusterName,
};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

use super::plan::{Fleet, Hold, Passed};
use crate::{
    condition::{Word, with_words, word},
    words::{clusters, enumerate, excerpt},
};

/// The condition of an upgrade that says whether it has clusters.
pub const SELECTED: &str = "Selected";
/// The condition of an upgrade that says whether anything has reached a cluster.
pub const APPLIED: &str = "Applied";
/// The condition of an upgrade that says whether a cluster is being upgraded.
pub const IN_PROGRESS: &str = "InProgress";
/// The condition of an upgrade that says whether all clusters are done.
pub const COMPLETE: &str = "Complete";
/// The condition of an upgrade that says whether a cluster has failed.
pub const FAILED: &str = "Failed";
/// The condition of an upgrade with canaries that says whether there are some.
pub const CANARIES_SELECTED: &str = "CanariesSelected";

/// What the status of an upgrade follows from.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The status that is stored.
    pub stored: Option<&'a Status>,
    /// The generation of the upgrade.
    pub generation: Option<i64>,
    /// Its clusters.
    pub fleet: &'a Fleet,
    /// What keeps clusters from being begun.
    pub hold: Option<&'a Hold>,
    /// That the canaries have passed.
    pub passed: Option<&'a Passed>,
    /// Whether there are to be canaries.
    pub has_canaries: bool,
    /// Clusters that are selected as canaries and are not upgraded.
    pub outside: Vec<&'a str>,
    /// Why it is not known, or not all, whom it selects.
    pub unclear: Vec<String>,
    /// What makes no sense in what is asked for.
    pub complaints: Vec<String>,
    /// What the server did not take.
    pub refusal: Option<&'a str>,
    /// What has been taken up of what people ask for by annotations.
    pub acknowledged: Option<Acknowledged>,
    /// How many clusters are upgraded at a time.
    pub limit: usize,
    /// The time.
    pub now: Timestamp,
}

impl Facts<'_> {
    /// The status of the upgrade.
    #[must_use]
    pub fn status(&self) -> Status {
        let tally = self.fleet.tally();
        let summary = tally.summary();
        Status {
            conditions: self.conditions(),
            phase: Some(self.phase()),
            progress: Some(format!("{}/{}", summary.complete, summary.total)),
            message: self.message(),
            estimated_completion: self.estimate(),
            observed_generation: self.generation,
            canaries_passed: self
                .passed
                .map(|passed| CanariesPassed { target: passed.target.clone(), time: Time(passed.time) }),
            acknowledged: self.acknowledged.clone(),
            pre_upgrade_action_summary: Some(tally.pre_action()),
            canary_clusters_summery: Some(self.fleet.canaries().summary()),
            clusters_summery: Some(summary),
            post_upgrade_action_summary: Some(tally.post_action()),
        }
    }

    fn conditions(&self) -> Vec<Condition> {
        let mut conditions: Vec<Condition> = self.stored.map(|status| status.conditions.clone()).unwrap_or_default();
        let words = [
            (SELECTED, self.selected()),
            (APPLIED, self.applied()),
            (IN_PROGRESS, self.in_progress()),
            (COMPLETE, self.complete()),
            (FAILED, self.failed()),
        ];
        if !self.has_canaries {
            conditions.retain(|condition| condition.type_ != CANARIES_SELECTED);
        }
        let canaries = self.has_canaries.then(|| (CANARIES_SELECTED, self.canaries()));
        with_words(conditions, words.into_iter().chain(canaries), self.generation, self.now)
    }

    fn selected(&self) -> Word {
        let total = self.fleet.tally().total;
        let problems: Vec<_> = self.complaints.iter().chain(&self.unclear).cloned().collect();
        let problems = excerpt(&problems.join("; "));
        if total == 0 {
            let why = if problems.is_empty() { "nothing matches".to_owned() } else { problems };
            return word(false, "NoClustersSelected", format!("ManagedClusters upgrade select no cluster: {why}"));
        }
        let kept = self.fleet.tally().unselected;
        let selected = format!("ManagedClusters upgrade select {}", clusters(total - kept));
        let kept = (kept > 0).then(|| format!("{} besides, not selected any more", clusters(kept)));
        let problems = (!problems.is_empty()).then_some(problems);
        let message: Vec<_> = [Some(selected), kept, problems].into_iter().flatten().collect();
        word(true, "ManagedClustersSelected", message.join("; "))
    }

    fn applied(&self) -> Word {
        let tally = self.fleet.tally();
        if let Some(refusal) = self.refusal {
            let is_applied = tally.initialized > 0;
            return word(is_applied, "Refused", excerpt(refusal));
        }
        if tally.initialized > 0 || tally.pre_action().applied > 0 {
            return word(true, "ManagedClustersUpgradeApplied", "ManagedClusters upgrade applied");
        }
        word(false, NOT_STARTED, "nothing is applied yet")
    }

    fn in_progress(&self) -> Word {
        let partial = self.fleet.tally().partial;
        if partial > 0 {
            return word(true, UNDER_WAY, format!("ManagedClusters upgrade in progress on {}", clusters(partial)));
        }
        match self.outcome() {
            NOT_STARTED => word(false, NOT_STARTED, "no cluster is upgrading yet"),
            UNDER_WAY => word(false, "ManagedClustersUpgradeNotInProgress", "no cluster is upgrading at the moment"),
            outcome => word(false, outcome, "no cluster is upgrading"),
        }
    }

    fn complete(&self) -> Word {
        let tally = self.fleet.tally();
        if self.is_complete() {
            return word(true, DONE, "ManagedClusters upgrade Complete");
        }
        word(false, self.outcome(), format!("{} of {} complete", tally.complete, clusters(tally.total)))
    }

    fn failed(&self) -> Word {
        let failed: Vec<_> = self.fleet.failed().map(ClusterName::as_str).collect();
        if failed.is_empty() {
            return word(false, "ManagedClustersUpgradeNotFailed", "no cluster failed");
        }
        let message = match (self.hold, self.fleet.failed_canary()) {
            (Some(Hold::CanaryFailed { .. }), Some(canary)) => format!("canary {canary} failed"),
            _ => format!("{} failed: {}", clusters(self.fleet.tally().failed), enumerate(&failed)),
        };
        word(true, self.outcome_of_failure(), message)
    }

    fn canaries(&self) -> Word {
        let total = self.fleet.canaries().total;
        let outside = match self.outside.as_slice() {
            [] => String::new(),
            names => format!("; selected besides, and left alone because they are not upgraded: {}", enumerate(names)),
        };
        if total == 0 {
            return word(false, "NoCanariesSelected", format!("{}{outside}", Hold::NoCanaries));
        }
        let reason = if self.outside.is_empty() { "CanariesSelected" } else { "CanariesOutsideSelection" };
        word(true, reason, format!("{} selected as canaries{outside}", clusters(total)))
    }

    fn is_complete(&self) -> bool {
        let tally = self.fleet.tally();
        tally.total > 0 && tally.complete == tally.total
    }

    /// Whether clusters have failed, and nothing more will be begun.
    fn is_over(&self) -> bool {
        let tally = self.fleet.tally();
        let is_halted = matches!(self.hold, Some(Hold::CanaryFailed { .. } | Hold::Failures { .. }));
        let is_still = tally.in_slots == 0;
        tally.failed > 0 && (tally.restless == 0 || (is_halted && is_still))
    }

    /// One word for how the upgrade stands.
    fn outcome(&self) -> &'static str {
        let tally = self.fleet.tally();
        match () {
            () if self.is_complete() => DONE,
            () if self.is_over() => self.outcome_of_failure(),
            () if tally.initialized == 0 => NOT_STARTED,
            () => UNDER_WAY,
        }
    }

    fn outcome_of_failure(&self) -> &'static str {
        let tally = self.fleet.tally();
        // That it is over must not be taken for success.
        if tally.restless == 0 && tally.complete > 0 {
            "ManagedClustersUpgradeFinishedWithFailures"
        } else {
            "ManagedClustersUpgradeFailed"
        }
    }

    fn phase(&self) -> UpgradePhase {
        let tally = self.fleet.tally();
        let is_begun = tally.initialized > 0 || tally.preparing > 0;
        match () {
            () if self.is_complete() => UpgradePhase::Complete,
            () if self.is_over() => UpgradePhase::Failed,
            () if self.hold == Some(&Hold::Paused) => UpgradePhase::Paused,
            () if tally.total == 0 || !is_begun => UpgradePhase::Waiting,
            () if self.has_canaries && self.passed.is_none() => UpgradePhase::Canaries,
            () => UpgradePhase::Upgrading,
        }
    }

    fn message(&self) -> Option<String> {
        if let Some(complaint) = self.complaints.first() {
            return Some(excerpt(complaint));
        }
        let tally = self.fleet.tally();
        if tally.total == 0 {
            return Some(self.selected().into_message());
        }
        let hold = self.hold.filter(|hold| **hold == Hold::Paused || tally.restless > 0).map(ToString::to_string);
        let is_full =
            tally.pending > tally.barred && usize::try_from(tally.in_slots).is_ok_and(|taken| taken >= self.limit);
        let full = is_full.then(|| format!("as many are being upgraded as may be at a time: {}", tally.in_slots));
        let barred = (tally.barred > 0)
            .then(|| format!("{} can not be begun: see their ClusterUpgrades", clusters(tally.barred)));
        let failed =
            (tally.failed > 0).then(|| format!("{} failed: see their ClusterUpgrades", clusters(tally.failed)));
        let is_told = hold.is_some();
        let parts = [hold, full, barred, failed.filter(|_| !is_told)];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// When all will be done. It is guessed anew when the counts have changed, and at no other time.
    fn estimate(&self) -> Option<Time> {
        let tally = self.fleet.tally();
        let from = match self.hold {
            None | Some(Hold::Canaries { .. }) => self.now,
            Some(Hold::Soak { until }) => *until,
            // Somebody has to do something first.
            Some(_) => return None,
        };
        let remaining = tally.remaining(self.limit)?;
        let stored = self.stored.filter(|stored| stored.clusters_summery.as_ref() == Some(&tally.summary()));
        if let Some(known) = stored.and_then(|stored| stored.estimated_completion.clone()) {
            return Some(known);
        }
        let end = from.checked_add(remaining).ok()?;
        Timestamp::from_second(end.as_second() / 60 * 60).ok().map(Time)
    }
}

const NOT_STARTED: &str = "ManagedClustersUpgradeNotStarted";
const UNDER_WAY: &str = "ManagedClustersUpgradeInProgress";
const DONE: &str = "ManagedClustersUpgradeComplete";
