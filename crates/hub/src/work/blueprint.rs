//! What follows from the spec of a set of works alone. A template can be large, so that this is worked out when the spec changes and not when
//! an agent says something.

use std::sync::Arc;

use drover_api::{
    grammar::SetFingerprint,
    work::{ManifestWorkReplicaSet, ManifestWorkSpec},
};
use drover_engine::{
    work::replica_set::{naming, status::Obstacle},
    workreport::template,
};

/// What follows from the spec of a set alone.
#[derive(Debug)]
pub(super) struct Blueprint {
    /// What the works are to say.
    pub(super) template: Arc<ManifestWorkSpec>,
    /// The name of that.
    pub(super) goal: SetFingerprint,
    /// Why no works can be made from it.
    pub(super) obstacle: Option<Obstacle>,
}

impl Blueprint {
    pub(super) fn of(set: &ManifestWorkReplicaSet) -> Self {
        let template = set.spec.manifest_work_template.clone().unwrap_or_default();
        let unfit = naming::check(set).err().map(Obstacle::from);
        Self {
            goal: template::fingerprint(&template),
            obstacle: unfit.or_else(|| template::flaw(&template).map(Obstacle::from)),
            template: Arc::new(template),
        }
    }
}
