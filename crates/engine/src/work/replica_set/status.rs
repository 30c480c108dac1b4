//! What is said of a set of works: counts, and three conditions.

use drover_api::{
    drover::{RolloutCounts, RolloutState},
    names::{MANIFESTWORK_APPLIED, PLACEMENT_ROLLED_OUT, PLACEMENT_VERIFIED},
    work::{ManifestWorkReplicaSetStatus, PlacementSummary, ReplicaSetSummary},
};
use k8s_openapi::jiff::Timestamp;

use super::{naming::Unfit, revision::Template, tally::Tally};
use crate::{
    condition::{Holds, Word, holds, with_words, word},
    presence::{Decided, Unclear},
    rollout::{Course, Hold},
    words::{clusters, excerpt},
    workreport::template::Flaw,
};

/// Why no works are made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// They could not say whose they are.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// The template makes no sense.
    #[error("manifestWorkTemplate: {0}")]
    Flaw(#[from] Flaw),
    /// The server does not take one.
    #[error("the server refuses it, and it is tried again and again: {0}")]
    Refused(String),
}

/// What is known of one placement of a set.
#[derive(Clone, Debug)]
pub struct Placing<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it says of its decision.
    pub decided: Result<Decided, Unclear>,
    /// The works that it decides for, counted.
    pub tally: Tally,
    /// What it does now, if anything.
    pub course: Option<&'a Course<Template>>,
}

/// What the status of a set follows from.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The status that is stored.
    pub stored: Option<&'a ManifestWorkReplicaSetStatus>,
    /// The generation of the set.
    pub generation: Option<i64>,
    /// Its placements.
    pub placements: Vec<Placing<'a>>,
    /// All its works, counted.
    pub tally: Tally,
    /// Why no works are made.
    pub obstacle: Option<&'a Obstacle>,
    /// The time.
    pub now: Timestamp,
}

impl Facts<'_> {
    /// The status of the set.
    #[must_use]
    pub fn status(&self) -> ManifestWorkReplicaSetStatus {
        let words = [
            (PLACEMENT_VERIFIED, self.verified()),
            (PLACEMENT_ROLLED_OUT, self.rolled_out()),
            (MANIFESTWORK_APPLIED, self.applied()),
        ];
        let stored = self.stored.map(|status| status.conditions.clone()).unwrap_or_default();
        ManifestWorkReplicaSetStatus {
            conditions: with_words(stored, words, self.generation, self.now),
            summary: Some(self.tally.summary()),
            placement_summary: self.placements.iter().map(Placing::summary).collect(),
        }
    }

    fn verified(&self) -> Word {
        let unclear: Vec<_> =
            self.placements.iter().filter_map(|placing| Some((placing.name, placing.decided.err()?))).collect();
        if let Some((_, first)) = unclear.first() {
            let reason = match first {
                Unclear::Missing | Unclear::Undecided => "PlacementDecisionNotFound",
                Unclear::Leaving | Unclear::Unreadable | Unclear::UnreadableDecision => "NotAsExpected",
            };
            let sentences: Vec<_> = unclear
                .iter()
                .map(|(name, why)| format!("the Placement {name}: it {why}; until then all works stay where they are"))
                .collect();
            return word(false, reason, excerpt(&sentences.join("; ")));
        }
        if self.tally.desired == 0 {
            return word(false, "PlacementDecisionEmpty", NOBODY);
        }
        word(true, "AsExpected", format!("{} are selected", clusters(self.tally.desired)))
    }

    fn rolled_out(&self) -> Word {
        let desired = self.tally.desired;
        let done = self.placements.iter().map(|placing| placing.counts().proven).sum::<i32>();
        let is_clear = self.placements.iter().all(|placing| placing.decided.is_ok());
        let is_complete = self.placements.iter().all(Placing::is_complete);
        let progress = format!("{done} of {} run the template", clusters(desired));
        if let Some(obstacle) = self.obstacle.filter(|obstacle| !matches!(obstacle, Obstacle::Refused(_))) {
            return word(false, "Progressing", excerpt(&format!("nothing is rolled out: {obstacle}")));
        }
        if !is_clear {
            return word(false, "Progressing", format!("{progress}; not all placements say whom they select"));
        }
        // That nobody is there to be reached does not mean that everybody has been.
        if desired == 0 {
            return word(false, "PlacementDecisionEmpty", NOBODY);
        }
        if is_complete && i64::from(done) == desired {
            return word(true, "Complete", progress);
        }
        let holds = self.placements.iter().filter_map(Placing::wait);
        let sentences: Vec<_> = std::iter::once(progress).chain(holds).collect();
        word(false, "Progressing", excerpt(&sentences.join("; ")))
    }

    fn applied(&self) -> Word {
        let Tally { desired, updated, applied, available, progressing, degraded, .. } = self.tally;
        match self.obstacle {
            Some(unfit @ Obstacle::Unfit(_)) => return word(false, "InvalidManifestWorkName", unfit.to_string()),
            Some(obstacle) => return word(false, "NotAsExpected", excerpt(&obstacle.to_string())),
            None => {}
        }
        if desired == 0 {
            return word(false, "PlacementDecisionEmpty", NOBODY);
        }
        let message = format!(
            "{updated} of {} have the template; it is applied on {applied}, available on {available}, on its way on {progressing}, degraded on {degraded}",
            clusters(desired)
        );
        let is_well = updated == desired && applied == desired && available == desired;
        if is_well && progressing == 0 && degraded == 0 {
            return word(true, "AsExpected", message);
        }
        let is_under_way = degraded == 0 && (progressing > 0 || updated < desired);
        word(false, if is_under_way { "Processing" } else { "NotAsExpected" }, message)
    }
}

/// What is said where placements select nobody.
const NOBODY: &str = "no cluster is selected";

impl Placing<'_> {
    fn counts(&self) -> RolloutCounts {
        self.course.map(|course| course.decided.clone()).unwrap_or_default()
    }

    /// Whether all its clusters have come to run the template.
    fn is_complete(&self) -> bool {
        self.course.is_some_and(|course| course.progress.state == Some(RolloutState::Complete))
    }

    /// What it waits for, if that is not just that clusters are on their way.
    fn wait(&self) -> Option<String> {
        let (course, counts) = (self.course?, self.counts());
        let failed = (counts.failed > 0).then(|| format!("{} failed", counts.failed));
        let offline = (counts.offline > 0).then(|| format!("{} can not be reached", counts.offline));
        let hold = course.hold.as_ref().map(|hold| match hold {
            Hold::Halted { tolerated, .. } => {
                format!(
                    "where {tolerated} may: nothing new is begun until one of them succeeds or the template changes"
                )
            }
            hold => hold.to_string(),
        });
        let all: Vec<_> = [failed, hold, offline].into_iter().flatten().collect();
        (!all.is_empty()).then(|| format!("the Placement {}: {}", self.name, all.join(", ")))
    }

    fn summary(&self) -> PlacementSummary {
        let groups = self.decided.map(|decided| decided.groups).unwrap_or_default();
        let Tally { applied, desired, .. } = self.tally;
        PlacementSummary {
            name: Some(self.name.to_owned()),
            available_decision_groups: Some(format!("{groups} ({applied} / {desired} clusters applied)")),
            summary: Some(self.tally.summary()),
        }
    }
}

/// Whether a status is to be written at once: it differs by more than a few counts.
#[must_use]
pub fn is_urgent(stored: Option<&ManifestWorkReplicaSetStatus>, wanted: &ManifestWorkReplicaSetStatus) -> bool {
    stored.is_none_or(|stored| essence(stored) != essence(wanted))
}

/// A status without what may be a little late: counts are as exact as a hundredth of all clusters.
fn essence(status: &ManifestWorkReplicaSetStatus) -> ManifestWorkReplicaSetStatus {
    let mut status = status.clone();
    status.conditions.iter_mut().for_each(|condition| condition.message.clear());
    status.summary.iter_mut().for_each(coarsen);
    for placement in &mut status.placement_summary {
        placement.available_decision_groups = None;
        placement.summary.iter_mut().for_each(coarsen);
    }
    status
}

fn coarsen(summary: &mut ReplicaSetSummary) {
    let step = (summary.desired_total.unwrap_or_default() / 100).max(1);
    let counts = [
        &mut summary.total,
        &mut summary.updated,
        &mut summary.applied,
        &mut summary.available,
        &mut summary.progressing,
    ];
    for count in counts.into_iter().flatten() {
        *count /= step;
    }
}

/// When a set says that its template had reached all clusters, if it still speaks of the template as it is.
#[must_use]
pub fn settled(status: Option<&ManifestWorkReplicaSetStatus>, generation: Option<i64>) -> Option<Timestamp> {
    let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    let condition = conditions.iter().find(|condition| condition.type_ == PLACEMENT_ROLLED_OUT)?;
    let is_rolled_out = holds(conditions, PLACEMENT_ROLLED_OUT) == Some(Holds::Yes);
    (is_rolled_out && condition.observed_generation == generation).then_some(condition.last_transition_time.0)
}

#[cfg(test)]
mod tests;
