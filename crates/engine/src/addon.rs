//! Add-ons: what each cluster is to run, when its turn comes, and what is said of it.

pub mod mark;
pub mod set;
