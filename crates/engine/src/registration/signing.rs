//! Whether the certificates that an add-on's agent has asked for were signed, as the add-on says it.

use drover_api::{addon::ManagedClusterAddOn, names::CERTIFICATES_SIGNED};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};

use crate::condition::{self, Holds, Says};

/// What has become of an agent's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signing<'a> {
    /// One was not signed, because of this.
    Failed(&'a str),
    /// All were signed.
    Signed,
    /// None is waited for any more: whoever asked has given up, or was turned down.
    Over,
}

/// Whether an add-on says that a certificate was not signed.
#[must_use]
pub fn says_failed(addon: &ManagedClusterAddOn) -> bool {
    condition::holds(conditions(addon), CERTIFICATES_SIGNED) == Some(Holds::No)
}

fn conditions(addon: &ManagedClusterAddOn) -> &[Condition] {
    addon.status.as_ref().map_or(&[], |status| &status.conditions)
}

/// The add-on, saying so. That all is well is said only where something was not, and nothing at all where nobody knows.
#[must_use]
pub fn saying(addon: &ManagedClusterAddOn, signing: Signing<'_>, now: Timestamp) -> ManagedClusterAddOn {
    let mut wanted = addon.clone();
    let status = wanted.status.get_or_insert_default();
    let (holds, reason, message) = match signing {
        Signing::Failed(why) => (Holds::No, "SigningFailed", why),
        _ if !says_failed(addon) => return addon.clone(),
        Signing::Signed => (Holds::Yes, "Signed", "all certificates were signed"),
        Signing::Over => {
            status.conditions.retain(|condition| condition.type_ != CERTIFICATES_SIGNED);
            return wanted;
        }
    };
    let says = Says { type_: CERTIFICATES_SIGNED, holds, reason, message, generation: None };
    status.conditions = condition::with(std::mem::take(&mut status.conditions), says, now);
    wanted
}

#[cfg(test)]
mod tests {
    use drover_api::addon::ManagedClusterAddOnSpec;

    use super::*;

    #[test]
    fn that_all_is_well_is_said_only_where_it_was_not() {
        let addon = ManagedClusterAddOn::new("hello", ManagedClusterAddOnSpec::default());
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(saying(&addon, Signing::Signed, now), addon);
        let failed = saying(&addon, Signing::Failed("why"), now);
        assert!(says_failed(&failed));
        assert_eq!((&*conditions(&failed)[0].reason, &*conditions(&failed)[0].message), ("SigningFailed", "why"));
        let signed = saying(&failed, Signing::Signed, now);
        assert_eq!((&*conditions(&signed)[0].status, &*conditions(&signed)[0].reason), ("True", "Signed"));
        assert_eq!(saying(&signed, Signing::Signed, now), signed);
        assert_eq!(saying(&signed, Signing::Over, now), signed, "what was signed stays signed");
        assert_eq!(conditions(&saying(&failed, Signing::Over, now)), [], "nobody knows what would have come of it");
    }
}
