//! Add-ons: what each cluster is to run, when its turn comes, and what is said of it.

pub mod assignment;
mod beside;
pub mod catalog;
pub mod config_revision;
pub mod configuration;
pub mod entries;
pub mod facts;
pub mod inheritance;
pub mod install;
pub mod invalid_status;
pub mod on_cluster;
pub mod permission;
pub mod progress;
pub mod published;
pub mod registry;
pub mod render_state;
pub mod report;
pub mod resolver;
pub mod rollout;
pub mod status;
pub mod versions;
pub mod words;
