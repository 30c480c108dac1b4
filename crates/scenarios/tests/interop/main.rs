//! Drover beside Open Cluster Management's own programs: their agents and add-ons on our hub, and our agent on theirs.
//!
//! `./test interop` runs this; `./test` does not, because OCM has to be built first.

mod agent;
mod agents;
mod cluster;
mod program;
