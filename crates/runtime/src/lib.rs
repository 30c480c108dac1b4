//! What the hub and the agent share: one informer for each kind, queues of keys that need attention, writes that send
//! differences only, leadership, metrics, and the clock.

pub mod clock;
pub mod controller;
pub mod fleet;
pub mod gate;
pub mod informer;
pub mod lease;
pub mod metrics;
pub mod queue;
pub mod serve;
pub mod store;
pub mod write;
