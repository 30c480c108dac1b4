//! Add-ons: what each cluster is to run, when its turn comes, and what is said of it.

pub mod assignment;
mod beside;
pub mod catalog;
pub mod config_revision;
pub mod configuration;
pub mod entries;
pub mod inheritance;
pub mod install;
pub mod invalid_status;
pub mod progress;
pub mod published;
pub mod registry;
pub mod report;
mod rollout;
pub mod status;
pub mod versions;
pub mod words;
