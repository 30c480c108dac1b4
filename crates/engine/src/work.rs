//! Works. The hub decides which clusters get one for a [set](replica_set), and when one has done what it was for; the agent of a managed cluster decides what is sent to the
//! cluster for each manifest, what is removed from it, and what the hub is told.
//!
//! Names, conditions, reasons and messages are OCM's, so that its clients can read what is written.

pub mod completion;
mod eviction;
mod feedback;
mod ignore;
mod invalid_status;
mod jq;
mod manifest;
mod options;
mod order;
mod ownership;
mod removal;
pub mod replica_set;
mod rules;
mod status;
mod update;

pub use completion::is_complete;
pub use eviction::{Agent, Eviction, eviction, is_of_agent};
pub use feedback::RawJson;
pub use ignore::IgnoreFieldsError;
pub use invalid_status::invalid_status;
pub use manifest::{Flaw, Located, Manifest, Target, unreadable_meta};
pub use options::{Apply, Options, Strategy, options};
pub use order::{apply_order, removal_turn};
pub use ownership::{
    Fate, Owner, Presence, applied_resources, applied_work, applied_work_name, before_applying, fate, fate_of_applied,
    hub_hash, unseen,
};
pub use removal::{Removal, leftovers, removal};
pub use rules::Rules;
pub use status::{
    Applied, Fact, Former, Moment, Sight, deleting, entry, is_manifest_complete, was_applied, work_status,
};
pub use update::{Digest, Known, Step, Wanted, digest};

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod properties;
