//! Arithmetic on times that cannot overflow.

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The time that is so much later, or the last one that there is.
#[must_use]
pub fn after(time: Timestamp, duration: Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}
