//! The controllers of add-ons, and what the hub knows of add-ons.

mod deploy;
mod dialect;
mod facts;
mod hub_config;
mod install;
mod inventory;
mod on_cluster;
mod permission;
mod render_cache;
mod rollout;
#[cfg(test)]
pub(crate) mod scene;
mod signing_request;
mod token;
mod works;

pub use self::dialect::{Dialect, detect_dialect};
pub(crate) use self::{
    hub_config::HubConfigs,
    install::Installs,
    inventory::Inventory,
    on_cluster::AddOns,
    permission::Permissions,
    rollout::Rollouts,
    signing_request::AddOnRequests,
    token::{TokenInfrastructure, Tokens, for_tokens},
};
