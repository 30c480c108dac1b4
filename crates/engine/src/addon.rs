//! Add-ons: what each cluster is to run, when its turn comes, and what is said of it.

pub mod assignment;
mod beside;
pub mod catalog;
pub mod configuration;
pub mod deciding;
pub mod dialect;
pub mod entries;
#[cfg(test)]
mod fixtures;
pub mod hashes;
pub mod inheritance;
pub mod install;
pub mod invalid_status;
pub mod mark;
pub mod progress;
pub mod published;
pub mod registry;
pub mod revision;
pub mod set;
pub mod status;
pub mod steering;
pub mod token;
pub mod versions;
pub mod words;
