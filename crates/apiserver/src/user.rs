//! Who sends a request.

use std::collections::BTreeMap;

/// Somebody whose identity was proven, or nobody in particular.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name, such as `system:serviceaccount:default:robot`.
    pub name: String,
    /// What tells one apart from another who had the name before; empty where nobody says.
    pub uid: String,
    /// The groups, `system:authenticated` among them.
    pub groups: Vec<String>,
    /// What else was proven.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The part of an object that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// Its status.
    Status,
    /// How many replicas it has.
    Scale,
    /// What was decided of a request for a certificate.
    Approval,
    /// What keeps a namespace from going.
    Finalize,
}
