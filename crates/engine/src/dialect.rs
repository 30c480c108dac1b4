//! In whose words the hub speaks of add-ons, and what it takes account of for that.

/// In whose words the hub speaks of add-ons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// In Drover's own, with versions, flat hashes and canaries.
    #[default]
    Drover,
    /// In OCM's, where the CRDs are OCM's own: what these have no field for would be lost. There are neither versions nor strategies of
    /// Drover's own, whatever is written.
    Ocm,
}
