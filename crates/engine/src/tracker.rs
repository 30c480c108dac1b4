//! What all kinds of rollouts keep of their members from one plan to the next.

mod dirty;
mod rejections;
mod status_throttle;

pub use self::{dirty::Dirty, rejections::Rejections, status_throttle::StatusThrottle};
