//! `work.open-cluster-management.io`: what is to be applied to managed clusters, and what became of it.

mod applied_manifest_work;
mod manifest_work;
mod replica_set;

pub use applied_manifest_work::*;
pub use manifest_work::*;
pub use replica_set::*;
