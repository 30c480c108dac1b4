//! The controllers of works, and what the hub knows of sets of works.

mod completion;
mod facts;
mod inventory;
mod replica_set;

pub(crate) use drover_engine::work::replica_set::placed_work::PlacedWork;

pub(crate) use self::{
    completion::{Completions, FinishingWork},
    inventory::WorkSets,
    replica_set::{ReplicaSets, placed_works},
};
