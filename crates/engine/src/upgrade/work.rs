//! A work of an upgrade, as far as is decided by it: what it was sent for, and what the agent of the cluster says of it as it is now.

use drover_api::{
    grammar::SetFingerprint,
    names::{WORK_APPLIED, WORK_AVAILABLE, WORK_COMPLETE, WORK_DEGRADED},
    work::{ManifestWork, ManifestWorkStatus},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};

use super::{
    feedback::Feedback,
    naming::Part,
    operator_work::{Outcome, REPORT, REPORTED},
};
use crate::{
    condition::Holds,
    words::beginning,
    workreport::{Note, Report, Said},
};

/// A work of an upgrade on one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct PartWork {
    /// What it was sent for, and when, by the hub's clock.
    pub sent: Note,
    /// Whether it is on its way out.
    pub is_leaving: bool,
    /// What the agent says of it.
    pub report: Report,
    /// Whether it has done what it was for, where a rule in it says so.
    pub complete: Option<Said>,
    /// What the agent says where something is not well.
    pub trouble: Option<String>,
    /// What it reports of the ClusterVersion, or of the record of who upgrades the operators.
    pub feedback: Feedback,
    /// What it reports of the upgrade of operators.
    pub operators: Outcome,
}

impl PartWork {
    /// What counts of a work of that part. `sent` is what the hub has noted down on it.
    #[must_use]
    pub fn of(work: &ManifestWork, part: Part, sent: Note) -> Self {
        let nothing = ManifestWorkStatus::default();
        let status = work.status.as_ref().unwrap_or(&nothing);
        let generation = work.metadata.generation;
        let (feedback, operators) = match part {
            Part::Preflight | Part::Platform => (Feedback::read(status, "clusterversions"), Outcome::Unknown),
            Part::Operators => (Feedback::read(status, "configmaps"), Outcome::read(status)),
            Part::PreAction | Part::PostAction => (Feedback::default(), Outcome::Unknown),
        };
        Self {
            sent,
            is_leaving: work.metadata.deletion_timestamp.is_some(),
            report: Report::read(generation, &status.conditions),
            complete: Report::said(WORK_COMPLETE, generation, &status.conditions),
            trouble: trouble(status),
            feedback,
            operators,
        }
    }

    /// Whether it says what is named so.
    #[must_use]
    pub fn says(&self, what: &SetFingerprint) -> bool {
        self.sent.set == *what
    }

    /// Whether the agent has applied it as it is now.
    #[must_use]
    pub fn is_applied(&self) -> bool {
        self.report.applied.is_some_and(|said| said.holds == Holds::Yes)
    }

    /// Whether the agent could not apply it, or does not find what it is about.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        let is_no = |said: Option<Said>| said.is_some_and(|said| said.holds == Holds::No);
        is_no(self.report.applied) || (self.is_applied() && is_no(self.report.available))
    }

    /// Where operators are, as whoever upgrades them says it.
    #[must_use]
    pub fn said_of_operators(&self) -> Option<String> {
        self.feedback.text(REPORT).map(|said| beginning(said, REPORTED))
    }

    /// When it was sent.
    #[must_use]
    pub fn since(&self) -> Timestamp {
        self.sent.since
    }
}

/// What is said of the first object that is not well, or else of the work as a whole.
fn trouble(status: &ManifestWorkStatus) -> Option<String> {
    let manifests = status.resource_status.iter().flat_map(|status| &status.manifests);
    let all = manifests.map(|manifest| &manifest.conditions).chain([&status.conditions]);
    let found = all.flatten().find(|condition| is_trouble(condition) && !condition.message.is_empty());
    found.map(|condition| condition.message.clone())
}

fn is_trouble(condition: &Condition) -> bool {
    match condition.type_.as_str() {
        WORK_APPLIED | WORK_AVAILABLE => condition.status == "False",
        WORK_DEGRADED => condition.status == "True",
        _ => false,
    }
}
