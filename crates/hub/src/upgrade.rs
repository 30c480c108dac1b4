//! The controller of upgrades of clusters, and what the hub knows of them.

mod blueprint;
mod book;
mod case;
mod inventory;
mod managed_clusters_upgrade;
mod removal;
mod works;

pub(crate) use self::{
    inventory::Upgrades,
    managed_clusters_upgrade::ClusterUpgrades,
    works::{UpgradeWork, upgrade_works},
};
