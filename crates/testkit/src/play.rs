//! The parts of others: a managed cluster's agent, and the manager of an add-on that is not ours.
//!
//! Each acts through the API only, with an identity of its own and the permissions that go with it.

mod addon_manager;
mod agent;
mod conditions;
pub(crate) mod identity;

pub use addon_manager::AddOnManager;
pub use agent::{Agent, Applicant, ask};
