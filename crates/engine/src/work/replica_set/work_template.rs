//! What follows from the spec of a set alone. A template can be large, so that this is worked out
//! when the spec changes, and not with each report of an agent.

use std::sync::Arc;

use drover_api::{
    grammar::SetFingerprint,
    work::{ManifestWorkReplicaSet, ManifestWorkSpec},
};

use super::{naming, status::Obstacle};
use crate::workreport::template;

/// The template of a set, and what follows from it.
#[derive(Debug)]
pub struct WorkTemplate {
    /// The spec of the works.
    pub(super) spec: Arc<ManifestWorkSpec>,
    /// Its name.
    pub(super) goal: SetFingerprint,
    /// Why no works can be made from it.
    pub(super) obstacle: Option<Obstacle>,
}

impl WorkTemplate {
    /// The template of a set.
    #[must_use]
    pub fn of(set: &ManifestWorkReplicaSet) -> Self {
        let spec = set.spec.manifest_work_template.clone().unwrap_or_default();
        let unfit = naming::check(set).err().map(Obstacle::from);
        Self {
            goal: template::fingerprint(&spec),
            obstacle: unfit.or_else(|| template::flaw(&spec).map(Obstacle::from)),
            spec: Arc::new(spec),
        }
    }

    /// Whether works could not name their set, so that there are none.
    pub(super) fn is_unfit(&self) -> bool {
        matches!(self.obstacle, Some(Obstacle::Unfit(_)))
    }
}
