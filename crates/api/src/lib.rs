//! Every Kubernetes resource that Drover reads or writes, as Rust types.
//!
//! The kinds of Open Cluster Management stand under their own groups and versions, with the fields that OCM gives
//! them and those that the add-on and upgrade specifications add; Drover's own kinds stand under `drover.dev`. There is one
//! module for each API group. [`crds`] makes the CustomResourceDefinitions from the types, so the types
//! are the one place where the API is defined: names, defaults, descriptions and rules.
//!
//! Values with a grammar are parsed types from [`grammar`].

pub mod addon;
pub mod cluster;
mod crd;
pub mod drover;
pub mod grammar;
pub mod names;
pub mod olm;
pub mod reference;
mod schema;
mod spec;
pub mod work;

pub use crd::crds;
