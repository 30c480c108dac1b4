//! One manifest on its way into a work.

use drover_api::names::ORPHAN_ANNOTATION;
use serde_json::Value;

use super::{
    manifest::{Object, annotation},
    vitals::Workload,
};

/// A manifest as it is applied to one cluster.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// The object as the template has it, where it may be in another namespace.
    pub(super) was: Object,
    /// The object as it is on the cluster.
    pub(super) object: Object,
    /// The manifest.
    pub(super) manifest: Value,
    /// The size of the manifest as JSON.
    pub(super) size: usize,
    /// The object, if it says how it is.
    pub(super) workload: Option<Workload>,
}

impl Piece {
    /// Whether the object stays when its work goes.
    pub(super) fn is_kept(&self) -> bool {
        annotation(&self.manifest, ORPHAN_ANNOTATION).is_some()
    }
}
