//! Works: what the hub wants on this cluster, made so and kept so, and reported.
//!
//! [`Site`] is what the agent knows: the works of the hub, what it has recorded on the cluster of each, and how far it is with every manifest. Three controllers
//! act on it. One applies works to the cluster, one clears away what works have left, and one reports to the hub. Objects that were applied are watched, so that
//! a change of one has it looked at again, and nothing else.

mod apply;
mod attend;
mod clear;
mod course;
mod executor;
mod index;
mod kinds;
mod object;
mod outcome;
mod packed;
mod remove;
mod report;
mod site;
mod watch;

pub(crate) use self::{
    apply::Applying,
    clear::Clearing,
    report::Reporting,
    site::{Queues, Settings, Site},
    watch::Watching,
};
