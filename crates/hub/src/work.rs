//! The controllers of works, and what the hub knows of sets of works.

mod completion;
mod facts;
mod inventory;
mod replica_set;

pub(crate) use self::{completion::Completions, inventory::WorkSets, replica_set::ReplicaSets};
