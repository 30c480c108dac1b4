//! Sets of works: one work for each cluster that the placements of a ManifestWorkReplicaSet select.
//!
//! Which cluster is given the template when is decided by the [planner of rollouts](crate::rollout), the same as for add-ons. Here is what it
//! is told of each cluster, what the works are called, who loses its work, and what is said of the whole set.

pub mod member;
pub mod naming;
pub mod revision;
pub mod selection;
pub mod status;
pub mod tally;
