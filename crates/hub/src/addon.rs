//! The controllers of add-ons, and what the hub knows of add-ons.

mod install;
mod inventory;
#[cfg(test)]
mod scene;

pub(crate) use self::{install::Installs, inventory::Inventory};
