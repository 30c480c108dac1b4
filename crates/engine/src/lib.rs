//! What Drover decides: functions from facts and a time to a plan.
//!
//! Nothing here reads a clock, talks to a server, waits or rolls dice. The hub, the simulator, `drover explain` and
//! the property tests all call the same functions, so what one of them says of a fleet is what the others would do.

pub mod addon;
pub mod cel;
pub mod certificate;
pub mod cluster;
pub mod cluster_set;
pub mod condition;
pub mod dialect;
pub mod explain;
pub mod hash;
pub mod join;
pub mod jsonpath;
pub mod manifestwork;
pub mod member;
pub mod owner;
pub mod placement;
pub mod plan;
mod plural;
pub mod presence;
mod quantity;
pub mod registration;
pub mod revision;
pub mod rollout;
pub mod steering;
pub mod template;
pub mod time;
pub mod tracker;
pub mod upgrade;
mod words;
pub mod work;
pub mod workreport;
