//! The defect controller: reports objects with values that cannot be parsed, each once.
//!
//! Its key is a report on an object. It writes an event about that object. What the hub makes of
//! such an object is decided where its kind is kept.

use std::{cmp::Ordering, fmt};

use drover_engine::plan::{Event, NoAction, Plan};
use drover_runtime::{controller::Reconciler, decode::Defect};
use k8s_openapi::{api::core::v1::ObjectReference, jiff::Timestamp};

use crate::cache::Cache;

/// That an object has a value that cannot be parsed. Reports on one object are one key, so that a
/// client that keeps writing other invalid values fills no queue.
#[derive(Clone, Debug)]
pub(crate) struct DefectReport {
    object: ObjectReference,
    note: String,
}

impl DefectReport {
    pub(crate) fn new(object: ObjectReference, defect: &Defect) -> Self {
        let consequence = match object.kind.as_deref() {
            _ if defect.is_in_metadata() => "until it is valid, the hub ignores this value",
            Some("ManifestWork" | "ManagedClusterAddOn") if defect.is_in_status() => {
                "until it is valid, the cluster counts as failed in rollouts"
            }
            Some("ManagedCluster") if defect.is_in_status() => "until it is valid, the hub ignores this value",
            _ => "until it is valid, the hub uses the last valid value",
        };
        Self { object, note: format!("{defect}; {consequence}. Correct the client that wrote the value") }
    }

    fn id(&self) -> (&Option<String>, &Option<String>, &Option<String>) {
        (&self.object.kind, &self.object.namespace, &self.object.name)
    }
}

impl Ord for DefectReport {
    fn cmp(&self, other: &Self) -> Ordering {
        self.id().cmp(&other.id())
    }
}

impl PartialOrd for DefectReport {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for DefectReport {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for DefectReport {}

impl fmt::Display for DefectReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, namespace, name) = self.id();
        let [kind, namespace, name] = [kind, namespace, name].map(|part| part.as_deref().unwrap_or_default());
        write!(f, "{kind} {namespace}/{name}")
    }
}

pub(crate) struct DefectReports;

impl Reconciler<Cache> for DefectReports {
    type Key = DefectReport;
    type State = ();
    type Action = NoAction;

    const NAME: &'static str = "drover-defect";

    fn plan(&self, _: &Cache, report: &DefectReport, (): &mut (), _: Timestamp) -> Plan {
        Plan::default().with_events([Event::warning_about(report.object.clone(), "InvalidObject", &*report.note)])
    }
}
