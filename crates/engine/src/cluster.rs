//! What becomes of one cluster: whether it is let in, what its agent may do, whether it is there, and how it leaves.
//!
//! The conditions name no generation: the hub itself changes the spec, by taints, and each would have to be written anew.

pub mod acceptance;
pub mod access;
pub mod availability;
pub mod invalid_spec;
pub mod marks;
pub mod removal;
pub mod signing_request;
pub mod taints;

use drover_api::{cluster::ManagedCluster, names::CLUSTER_AVAILABLE};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::condition::{self, Holds};

/// What is known of a cluster's state, by type.
#[must_use]
pub fn conditions(cluster: &ManagedCluster) -> &[Condition] {
    cluster.status.as_ref().map_or(&[], |status| &status.conditions)
}

/// Whether the cluster answers. One that has never said so does not.
#[must_use]
pub fn available(cluster: &ManagedCluster) -> Holds {
    condition::holds(conditions(cluster), CLUSTER_AVAILABLE).unwrap_or(Holds::Unknown)
}
