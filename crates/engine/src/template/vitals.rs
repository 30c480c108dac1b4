//! What workloads say of themselves: whether they run the set that they were brought to, and whether they are well.
//!
//! A workload is stamped with its set, and what it says comes back in the feedback of its work, the stamp included. So an old pod that is
//! still well proves nothing about a new set.

use std::fmt;

use drover_api::{
    grammar::SetFingerprint,
    work::{JsonPath, ManifestResourceMeta, ManifestStatus, ManifestWork},
};

use super::manifest::Object;

const SET: &str = "drover-set";
const GENERATION: &str = "drover-generation";
const OBSERVED: &str = "drover-observed-generation";
const WANTED: &str = "drover-wanted";
const TOTAL: &str = "drover-total";
const UPDATED: &str = "drover-updated";
const AVAILABLE: &str = "drover-available";
const CONDITION: &str = "drover-condition";

/// The kinds that say how they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadKind {
    /// Some pods, anywhere.
    Deployment,
    /// A pod on every node.
    DaemonSet,
    /// Some pods with an identity each.
    StatefulSet,
}

impl WorkloadKind {
    fn read(group: &str, kind: &str) -> Option<Self> {
        match (group, kind) {
            ("apps", "Deployment") => Some(Self::Deployment),
            ("apps", "DaemonSet") => Some(Self::DaemonSet),
            ("apps", "StatefulSet") => Some(Self::StatefulSet),
            _ => None,
        }
    }

    /// The kind of an object, if it says how it is.
    pub(super) fn of(object: &Object) -> Option<Self> {
        Self::read(&object.group, &object.kind)
    }

    /// The kind's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::DaemonSet => "DaemonSet",
            Self::StatefulSet => "StatefulSet",
        }
    }
}

/// What is deployed and says how it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its namespace on the cluster.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whether it carries the set that it was made from. One that is not kept up with its manifest does not, and proves nothing.
    pub is_stamped: bool,
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}

/// Where workloads of a kind say what is asked of them.
pub(super) fn paths(kind: WorkloadKind) -> Vec<JsonPath> {
    let [wanted, total, updated, available] = match kind {
        WorkloadKind::Deployment | WorkloadKind::StatefulSet => {
            [".spec.replicas", ".status.replicas", ".status.updatedReplicas", ".status.availableReplicas"]
        }
        WorkloadKind::DaemonSet => [
            ".status.desiredNumberScheduled",
            ".status.currentNumberScheduled",
            ".status.updatedNumberScheduled",
            ".status.numberAvailable",
        ],
    };
    let of_all = [
        (SET, r".metadata.annotations.drover\.dev/set"),
        (GENERATION, ".metadata.generation"),
        (OBSERVED, ".status.observedGeneration"),
        (WANTED, wanted),
        (TOTAL, total),
        (UPDATED, updated),
        (AVAILABLE, available),
    ];
    let condition = (CONDITION, r#".status.conditions[?(@.type=="Available")].status"#);
    let of_deployments = (kind == WorkloadKind::Deployment).then_some(condition);
    let path = |(name, path): (&str, &str)| JsonPath { name: name.to_owned(), version: None, path: path.to_owned() };
    of_all.into_iter().chain(of_deployments).map(path).collect()
}

/// What a workload says of itself in the feedback of its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vitals {
    kind: WorkloadKind,
    namespace: String,
    name: String,
    /// The set that it is stamped with.
    set: Option<String>,
    generation: Option<i64>,
    observed: Option<i64>,
    /// How many pods there are to be.
    wanted: Option<i64>,
    /// How many there are, old and new.
    total: i64,
    updated: i64,
    available: i64,
    /// What a Deployment says about its availability.
    condition: Option<String>,
}

/// What the workloads of a work say.
pub(super) fn vitals_of(work: &ManifestWork) -> impl Iterator<Item = Vitals> {
    let status = work.status.as_ref().and_then(|status| status.resource_status.as_ref());
    status.into_iter().flat_map(|status| &status.manifests).filter_map(Vitals::read)
}

impl fmt::Display for Vitals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}

/// What is missing until a workload proves a set. The sentences go after the workload's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lag {
    /// It is not stamped with any set.
    #[error("has not reported yet which set it runs")]
    Unstamped,
    /// It is stamped with another set.
    #[error("is still at the set {0}")]
    OtherSet(String),
    /// Whoever makes its pods has not seen the change.
    #[error("has changed, and the cluster has yet to act on it")]
    Unobserved,
    /// Too few of its pods are new.
    #[error("has {updated} of {wanted} pods updated")]
    Updating {
        /// How many are new.
        updated: i64,
        /// How many there are to be.
        wanted: i64,
    },
    /// Some of its old pods are still there.
    #[error("has old pods that are still to go: {0}")]
    Old(i64),
    /// Too few of its pods are available.
    #[error("has {available} of {wanted} pods available")]
    Starting {
        /// How many are available.
        available: i64,
        /// How many there are to be.
        wanted: i64,
    },
}

/// Why a workload is not well. The sentences go after the workload's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ailment {
    /// Nobody knows.
    #[error("has not reported yet how it is")]
    Silent,
    /// It says so itself.
    #[error("is not available: its condition Available is {0}")]
    Unavailable(String),
    /// Too few of its pods are available.
    #[error("has {available} of {wanted} pods available")]
    TooFew {
        /// How many are available.
        available: i64,
        /// How many there are to be.
        wanted: i64,
    },
}

impl Vitals {
    /// What a manifest's object says of itself, if it is of a kind that does.
    #[must_use]
    pub fn read(manifest: &ManifestStatus) -> Option<Self> {
        let meta = &manifest.resource_meta;
        let kind = kind_of(meta)?;
        let values = manifest.status_feedback.as_ref().map_or(&[][..], |feedback| &feedback.values);
        let value = |name: &str| values.iter().find(|value| value.name == name).map(|value| &value.field_value);
        let number = |name| value(name).and_then(|value| value.integer);
        let text = |name| value(name).and_then(|value| value.string.clone());
        Some(Self {
            kind,
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            set: text(SET),
            generation: number(GENERATION),
            observed: number(OBSERVED),
            wanted: number(WANTED),
            // A status leaves out what there is none of.
            total: number(TOTAL).unwrap_or(0),
            updated: number(UPDATED).unwrap_or(0),
            available: number(AVAILABLE).unwrap_or(0),
            condition: text(CONDITION),
        })
    }

    /// Whether this is what the workload says.
    #[must_use]
    pub fn is_of(&self, workload: &Workload) -> bool {
        self.kind == workload.kind && self.namespace == workload.namespace && self.name == workload.name
    }

    /// Whether the workload is stamped, or has not said anything by which one could tell.
    #[must_use]
    pub fn is_stamped_or_silent(&self) -> bool {
        self.set.is_some() || self.generation.is_none()
    }

    /// What is missing until the workload proves the set; nothing if it does.
    #[must_use]
    pub fn lag(&self, set: &SetFingerprint) -> Option<Lag> {
        let wanted = self.wanted();
        match &self.set {
            None => Some(Lag::Unstamped),
            Some(other) if other != set.as_str() => Some(Lag::OtherSet(other.clone())),
            _ if !self.is_observed() => Some(Lag::Unobserved),
            _ if self.updated < wanted => Some(Lag::Updating { updated: self.updated, wanted }),
            _ if self.total > self.updated => Some(Lag::Old(self.total - self.updated)),
            _ if self.available < wanted => Some(Lag::Starting { available: self.available, wanted }),
            _ => None,
        }
    }

    /// Why the workload is not well; nothing if it is. A Deployment says it in a condition; the others are well with all their pods.
    #[must_use]
    pub fn ailment(&self) -> Option<Ailment> {
        let (available, wanted) = (self.available, self.wanted());
        match (self.kind, self.condition.as_deref()) {
            (WorkloadKind::Deployment, Some("True")) => None,
            (WorkloadKind::Deployment, Some(status)) => Some(Ailment::Unavailable(status.to_owned())),
            (WorkloadKind::Deployment, None) => Some(Ailment::Silent),
            // Without this, nothing at all would read as no pods of none.
            (_, _) if self.observed.is_none() => Some(Ailment::Silent),
            (_, _) => (available < wanted).then_some(Ailment::TooFew { available, wanted }),
        }
    }

    fn is_observed(&self) -> bool {
        self.generation.zip(self.observed).is_some_and(|(generation, observed)| observed >= generation)
    }

    /// How many pods there are to be. Where nothing is said, Kubernetes makes one, and a DaemonSet has no node to run on.
    fn wanted(&self) -> i64 {
        let unsaid = match self.kind {
            WorkloadKind::Deployment | WorkloadKind::StatefulSet => 1,
            WorkloadKind::DaemonSet => 0,
        };
        self.wanted.unwrap_or(unsaid)
    }
}

fn kind_of(meta: &ManifestResourceMeta) -> Option<WorkloadKind> {
    WorkloadKind::read(meta.group.as_deref()?, meta.kind.as_deref()?)
}

#[cfg(test)]
mod tests;
