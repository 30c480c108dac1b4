//! A real Kubernetes for Drover's tests, and everybody who takes part in them.
//!
//! A **scenario** is a test that acts on an API server as users and agents do. It is declared once with [`scenarios!`]
//! and run on every backend. It is handed a [`World`]: a connected client, unique names, and
//! `kubectl`. Scenarios without a hub share one server; a hub acts on everything on its server, so a
//! scenario that runs one gets a server of its own, from a pool that is kept warm.
//!
//! Nothing here sleeps for what can be watched: see [`wait`]. Whoever does not exist yet, or is somebody else's program, is
//! played with an identity of its own, by [`play`].
//!
//! The server is the program in `testenv/`, built on first use and kept in a cache. It needs Go.

#![expect(clippy::missing_panics_doc, reason = "a test ends by panicking")]

mod backend;
pub mod certificate;
mod embedded;
pub mod golden;
pub mod objects;
pub mod play;
pub mod proxy;
mod server;
pub mod wait;
mod world;

pub use backend::{Backend, Need, run};
pub use server::Server;
pub use world::{Kubectl, World};
