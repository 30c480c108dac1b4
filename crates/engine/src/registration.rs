//! How the agents of add-ons register with the hub: as whom, for what, and who signs for them; and what a cluster's agent does for them.

pub mod enrolment;
pub mod health;
pub mod identity;
pub mod permission;
pub mod request;
pub mod signing;
pub mod status;
pub mod token;
pub mod token_infrastructure;
