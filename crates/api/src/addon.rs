//! `addon.open-cluster-management.io`: add-ons, where they are installed, and how they are configured.
//!
//! OCM serves this group as `v1alpha1` and as `v1beta1`, with some fields under other names and in other shapes.
//! The types here are the union of both, and of what the add-on specifications add; the CRDs serve the same
//! schema under both versions, so that nothing is lost whichever a client speaks.

mod cluster_management_addon;
mod config;
mod deployment_config;
mod hub_config;
mod managed_cluster_addon;
mod rollout;
mod template;

pub use cluster_management_addon::*;
pub use config::*;
pub use deployment_config::*;
pub use hub_config::*;
pub use managed_cluster_addon::*;
pub use rollout::*;
pub use template::*;
