//! Whether an add-on is well, by the Lease that its agent renews on the cluster. The words are OCM's.

use drover_api::{
    addon::{HealthCheckMode, ManagedClusterAddOn},
    names::AVAILABLE,
};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::condition::{Holds, Says};

/// How long an agent may be silent: five times as long as it waits between two renewals.
const GRACE: SignedDuration = SignedDuration::from_mins(5);

/// The Lease of an add-on's agent, as it was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// There is none.
    Missing,
    /// It was renewed then, or never.
    Renewed(Option<Timestamp>),
}

/// What is to be said of an add-on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    holds: Holds,
    reason: &'static str,
    message: String,
    /// Until when that is so if the Lease stays as it is.
    pub until: Option<Timestamp>,
}

impl Health {
    /// As a condition.
    #[must_use]
    pub fn says(&self) -> Says<'_> {
        Says { type_: AVAILABLE, holds: self.holds, reason: self.reason, message: &self.message, generation: None }
    }
}

/// Whether the health of an add-on is told by a Lease, which is so where nobody says otherwise.
#[must_use]
pub fn is_by_lease(addon: &ManagedClusterAddOn) -> bool {
    let check = addon.status.as_ref().and_then(|status| status.health_check.as_ref());
    check.and_then(|check| check.mode) != Some(HealthCheckMode::Customized)
}

/// How an add-on is whose agent's Lease was last seen like that.
#[must_use]
pub fn health(addon: &str, lease: Lease, now: Timestamp) -> Health {
    let end = match lease {
        Lease::Missing => {
            return Health {
                holds: Holds::Unknown,
                reason: "ManagedClusterAddOnLeaseNotFound",
                message: format!("The status of {addon} add-on is unknown."),
                until: None,
            };
        }
        Lease::Renewed(renewed) => renewed.and_then(|renewed| renewed.checked_add(GRACE).ok()),
    };
    match end.filter(|end| now < *end) {
        Some(end) => Health {
            holds: Holds::Yes,
            reason: "ManagedClusterAddOnLeaseUpdated",
            message: format!("{addon} add-on is available."),
            until: Some(end),
        },
        None => Health {
            holds: Holds::No,
            reason: "ManagedClusterAddOnLeaseUpdateStopped",
            message: format!("{addon} add-on is not available."),
            until: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a valid time")
    }

    #[test]
    fn an_add_on_is_well_as_long_as_its_lease_is_renewed() {
        let reason = |lease, now| health("a", lease, at(now)).reason;
        let renewed = Lease::Renewed(Some(at(1000)));
        assert_eq!(reason(renewed, 1000), "ManagedClusterAddOnLeaseUpdated");
        assert_eq!(reason(renewed, 1299), "ManagedClusterAddOnLeaseUpdated");
        assert_eq!(reason(renewed, 1300), "ManagedClusterAddOnLeaseUpdateStopped");
        assert_eq!(reason(Lease::Renewed(None), 1000), "ManagedClusterAddOnLeaseUpdateStopped");
        assert_eq!(reason(Lease::Missing, 1000), "ManagedClusterAddOnLeaseNotFound");
        assert_eq!(health("a", renewed, at(1000)).until, Some(at(1300)));
    }

    #[test]
    fn other_means_are_other_peoples() {
        let of = |status: serde_json::Value| {
            let addon = serde_json::json!({ "metadata": { "name": "a" }, "spec": {}, "status": status });
            is_by_lease(&serde_json::from_value(addon).expect("an add-on"))
        };
        assert!(of(serde_json::json!({})));
        assert!(of(serde_json::json!({ "healthCheck": { "mode": "Lease" } })));
        assert!(!of(serde_json::json!({ "healthCheck": { "mode": "Customized" } })));
    }
}
