//! The controller of upgrades of clusters, and what the hub knows of them.

mod facts;
mod inventory;
mod managed_clusters_upgrade;

pub(crate) use self::{inventory::Upgrades, managed_clusters_upgrade::ClusterUpgrades};
