//! What counts of an add-on on a cluster whose status cannot be parsed completely.

use drover_api::{addon::ManagedClusterAddOn, names::AVAILABLE};
use k8s_openapi::jiff::Timestamp;

use crate::condition::{self, Holds, Says};

/// The add-on, unavailable: what its agent reports cannot be relied on.
#[must_use]
pub fn with_invalid_status(mut addon: ManagedClusterAddOn, why: &str) -> ManagedClusterAddOn {
    let since = addon.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let message = format!("the add-on's status is invalid: {why}");
    let says =
        Says { type_: AVAILABLE, holds: Holds::No, reason: "StatusInvalid", message: &message, generation: None };
    let status = addon.status.get_or_insert_default();
    status.conditions = condition::with(std::mem::take(&mut status.conditions), says, since);
    addon
}
