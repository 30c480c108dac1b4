//! What is removed from a cluster, and how.

use drover_api::work::{AppliedResource, ManifestResourceMeta};
use serde_json::Value;

use super::{
    order::removal_order,
    ownership::{Fate, Owner, Presence, is_same, is_shared, owner_references},
};

/// What is to be done about an object that its work has no use for any more.
#[derive(Clone, Debug, PartialEq)]
pub enum Removal {
    /// It is gone, or there is another of its name. Nothing is left to do, and it is listed no more.
    Forget,
    /// It does not belong to the work. It stays, and is listed no more.
    Leave,
    /// It stays, without this owner: it has others, or is to be orphaned. This is the change as a merge patch; after that it is listed no more.
    DropOwner(Value),
    /// It is on its way out, and stays in the list until it is gone.
    Await,
    /// It is deleted, with Background propagation as in OCM, and stays in the list until it is gone.
    Delete {
        /// Only the object with this UID.
        uid: String,
    },
}

/// What was recorded as applied and is in no manifest any more, in the order in which it is removed.
///
/// The manifests are all of the work, those that could not be applied too: what failed is not what was taken out. If one could not even be read, nobody knows
/// which object it is about, and nothing is removed. Nor is anything as long as the hub has never been told that the work is applied: a hub that was
/// restored from a backup sends its works one after the other, and the objects of those that are still missing have to live. And what a manifest has found
/// under another name of its API, such as an Ingress that has moved to another group, is the same object by its UID.
#[must_use]
pub fn leftovers(
    recorded: &[AppliedResource],
    seen: &[(ManifestResourceMeta, Presence)],
    hub_has_applied: bool,
) -> Vec<AppliedResource> {
    if !hub_has_applied || seen.iter().any(|(meta, _)| meta.name.is_none()) {
        return Vec::new();
    }
    let is_it = |applied: &AppliedResource, presence: &Presence| match presence {
        Presence::There { uid } => applied.uid.as_ref() == Some(uid),
        Presence::Gone | Presence::Unknown => false,
    };
    let is_left = |applied: &&AppliedResource| {
        !seen.iter().any(|(meta, presence)| is_same(applied, meta) || is_it(applied, presence))
    };
    let mut left: Vec<_> = recorded.iter().filter(is_left).cloned().collect();
    removal_order(&mut left);
    left
}

/// What is to be done about one object that was applied for an owner.
#[must_use]
pub fn removal(applied: &AppliedResource, live: Option<&Value>, owner: &Owner, fate: Fate) -> Removal {
    let Some(live) = live else { return Removal::Forget };
    if !owner_references(live).iter().any(|reference| owner.is(reference)) {
        return Removal::Leave;
    }
    if is_shared(live, owner) || fate == Fate::Orphaned {
        return owner.patch(Fate::Orphaned, live).map_or(Removal::Leave, Removal::DropOwner);
    }
    let uid = live.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
    if applied.uid.as_ref().is_some_and(|recorded| recorded != uid) {
        return Removal::Forget;
    }
    match live.pointer("/metadata/deletionTimestamp") {
        None | Some(Value::Null) => Removal::Delete { uid: uid.to_owned() },
        Some(_) => Removal::Await,
    }
}

#[cfg(test)]
mod tests;
