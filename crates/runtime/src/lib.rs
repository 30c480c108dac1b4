//! What the hub and the agent share: one informer for each kind, queues of keys that need attention, writes that send
//! differences only at the pace that the server can bear, events, leadership, metrics, and the clock.

pub mod backoff;
pub mod cache;
pub mod client;
pub mod clock;
pub mod controller;
pub mod decode;
pub mod events;
pub mod execute;
pub mod gate;
pub mod informer;
pub mod kinds;
pub mod lease;
pub mod metrics;
pub mod pace;
pub mod queue;
pub mod serve;
pub mod stage;
pub mod store;

pub mod write;
