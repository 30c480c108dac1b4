//! The parts of others: a managed cluster's agent, the manager of an add-on that is not ours, and a crowd of clusters with both.
//!
//! Each acts through the API only, with an identity of its own and the permissions that go with it; but a crowd, which is there for
//! what a hub does with many clusters, has an administrator's.

mod addon_manager;
mod agent;
mod conditions;
mod crowd;
mod feedback;
pub(crate) mod identity;
mod wish;

pub use addon_manager::AddOnManager;
pub use agent::{Agent, Applicant, ask};
pub use crowd::{Behaviour, Crowd};
pub use identity::Asked;
pub use wish::Wish;
