//! `drover.dev`: what Drover has to remember, and OCM's API has no place for.

mod acknowledged;
mod addon_rollout;
mod cluster_upgrade;
mod config_revision;

pub use acknowledged::*;
pub use addon_rollout::*;
pub use cluster_upgrade::*;
pub use config_revision::*;
