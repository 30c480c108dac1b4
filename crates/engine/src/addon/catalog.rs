//! What is known of configurations.

use drover_api::{
    addon::AddOnConfig,
    grammar::{SpecHash, Version},
};

/// What there is under the name of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// An object.
    Content {
        /// The hash of its content.
        hash: SpecHash,
        /// Its generation, if it has one.
        generation: Option<i64>,
        /// The version that it is or asks for, if it is of a kind that has one.
        version: Option<Version>,
    },
    /// The template of another add-on.
    Foreign {
        /// That add-on.
        addon: String,
    },
    /// Nothing.
    Missing,
    /// Not even the type.
    NoSuchType,
    /// Something that the hub may not read.
    Forbidden,
    /// Nobody has looked yet.
    NotYet,
}

/// A template that belongs to an add-on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// What it is called.
    pub name: String,
    /// Which version of the add-on it is, if it says so.
    pub version: Option<Version>,
}

/// Where configurations are looked up.
pub trait Catalog {
    /// What there is under the name of a configuration.
    fn config(&self, config: &AddOnConfig) -> Found;
}
