//! Add-ons that are made from a template: what is deployed to a cluster, and how what was deployed is doing.
//!
//! A [`Blueprint`] is what a template says for all clusters; [`render`] makes of it the works of one cluster. Nothing is read from live
//! objects: a template and its settings come as the content that was kept of them, so that the same set is the same works, byte by byte.

mod addon_work;
mod blueprint;
mod configs;
mod credential;
mod decoration;
mod digest;
mod expected;
#[cfg(test)]
pub(crate) mod fixtures;
mod flaw;
mod home;
mod images;
mod manifest;
mod order;
mod orphans;
mod piece;
mod pod;
mod proxy;
mod render;
mod resources;
mod split;
mod variables;
mod vitals;

pub use addon_work::{AddOnWork, ReportedCondition};
pub use blueprint::{Blueprint, settings};
pub use digest::{digest, objects};
pub use expected::{Expected, Marks, is_kin};
pub use flaw::{Fault, Flaw};
pub use images::{has_the_same_registries, registries_of};
pub use order::Order;
pub use render::{Holds, Inputs, RenderedWork, Rendering, install_namespace, render, render_holding, work_prefix};
pub use vitals::{Ailment, Lag, Vitals, Workload, WorkloadKind};
