//! The controllers of add-ons, and what the hub knows of add-ons.

mod book;
mod dialect;
mod hub_config;
mod install;
mod inventory;
mod on_cluster;
mod progress;
mod rollout;
#[cfg(test)]
mod scene;
mod shelf;
mod token;
mod works;

pub use self::dialect::{Dialect, detect_dialect};
pub(crate) use self::{
    hub_config::HubConfigs,
    install::Installs,
    inventory::Inventory,
    on_cluster::AddOns,
    rollout::Rollouts,
    token::{TokenInfrastructure, Tokens, for_tokens},
    works::works,
};
