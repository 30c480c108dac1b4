//! What counts instead of the status of a work that cannot be parsed.

use drover_api::names::WORK_APPLIED;
use kube::core::ObjectMeta;
use serde_json::{Value, json};

/// The status that counts for a work whose own cannot be parsed: that it is not applied. The cluster
/// then fails as one does that cannot apply its work, and nothing it reported before counts.
#[must_use]
pub fn invalid_status(work: &ObjectMeta, why: &str) -> Value {
    json!({ "conditions": [{
        "type": WORK_APPLIED,
        "status": "False",
        "reason": "StatusInvalid",
        "message": format!("the work's status is invalid: {why}"),
        "observedGeneration": work.generation,
        // The hub measures by its own clock how long this holds.
        "lastTransitionTime": work.creation_timestamp,
    }]})
}
