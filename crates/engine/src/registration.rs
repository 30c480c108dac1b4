//! How the agents of add-ons that are made from templates register with the hub: as whom, for what, and who signs for them.

pub mod identity;
pub mod permission;
pub mod request;
pub mod signing;
pub mod status;
