//! Upgrades of clusters: what is done on a cluster, when, and what became of it.

pub mod approval;
pub mod operator_work;
