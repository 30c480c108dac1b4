//! Upgrades of clusters: which clusters, in which order, and what is done about each of them.
//!
//! One cluster is a [member](member) with a record that says in which phase it is; a look at it says what is to be done next. Whose turn it is,
//! is [planned](plan) from how all of them stand. Nothing here interrupts a cluster that is under way.

pub mod action;
pub mod approval;
pub mod feedback;
pub mod member;
pub mod naming;
pub mod operator_work;
pub mod plan;
pub mod platform;
pub mod reason;
pub mod selection;
pub mod status;
pub mod steering;
pub mod tally;
pub mod target;
pub mod work;
