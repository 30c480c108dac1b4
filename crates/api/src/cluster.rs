//! `cluster.open-cluster-management.io`: clusters, sets of them, placements over them, and their upgrades.

mod addon_placement_score;
mod cluster_claim;
mod managed_cluster;
mod managed_cluster_set;
mod managed_clusters_upgrade;
mod placement;
mod placement_decision;
mod rollout;

pub use addon_placement_score::*;
pub use cluster_claim::*;
pub use managed_cluster::*;
pub use managed_cluster_set::*;
pub use managed_clusters_upgrade::*;
pub use placement::*;
pub use placement_decision::*;
pub use rollout::*;
