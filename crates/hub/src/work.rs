//! The controllers of works, and what the hub knows of sets of works.

mod blueprint;
mod book;
mod case;
mod completion;
mod inventory;
mod placed;
mod replica_set;

pub(crate) use self::{
    completion::{Completions, FinishingWork},
    inventory::WorkSets,
    placed::{PlacedWork, placed_works},
    replica_set::ReplicaSets,
};
