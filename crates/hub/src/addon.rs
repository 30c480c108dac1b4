//! The controllers of add-ons, and what the hub knows of add-ons.

mod install;
mod inventory;
mod on_cluster;
#[cfg(test)]
mod scene;
mod token;

pub(crate) use self::{
    install::Installs,
    inventory::Inventory,
    on_cluster::AddOns,
    token::{TokenInfrastructure, Tokens, for_tokens},
};
