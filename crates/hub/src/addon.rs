//! The controllers of add-ons, and what the hub knows of add-ons.

mod inventory;

pub(crate) use self::inventory::Inventory;
