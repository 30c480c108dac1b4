//! Works that are created.

use std::sync::Arc;

use drover_api::work::{ManifestWork, ManifestWorkSpec};
use kube::{Resource, core::ObjectMeta};
use serde::{Serialize, Serializer, ser::SerializeStruct};

/// A work that is created. Works of many clusters share their spec.
#[derive(Clone, Debug, PartialEq, Resource)]
#[resource(inherit = ManifestWork)]
pub struct NewWork {
    metadata: ObjectMeta,
    spec: Arc<ManifestWorkSpec>,
}

impl NewWork {
    /// A work of this name, in the namespace of a cluster.
    #[must_use]
    pub fn new(cluster: &str, name: String, spec: Arc<ManifestWorkSpec>) -> Self {
        let metadata = ObjectMeta { namespace: Some(cluster.to_owned()), name: Some(name), ..ObjectMeta::default() };
        Self { metadata, spec }
    }

    /// What it applies.
    #[must_use]
    pub fn spec(&self) -> &Arc<ManifestWorkSpec> {
        &self.spec
    }
}

impl From<ManifestWork> for NewWork {
    fn from(work: ManifestWork) -> Self {
        Self { metadata: work.metadata, spec: Arc::new(work.spec) }
    }
}

impl Serialize for NewWork {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut work = serializer.serialize_struct("ManifestWork", 4)?;
        work.serialize_field("apiVersion", &ManifestWork::api_version(&()))?;
        work.serialize_field("kind", &ManifestWork::kind(&()))?;
        work.serialize_field("metadata", &self.metadata)?;
        work.serialize_field("spec", &*self.spec)?;
        work.end()
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;
    use serde_json::json;

    use super::*;

    #[test]
    fn new_work_is_sent_as_a_whole_object() {
        let spec = json!({ "workload": { "manifests": [{ "kind": "ConfigMap" }] } });
        let mut work = ManifestWork::new("w", serde_json::from_value(spec).expect("a spec"));
        work.metadata.namespace = Some("one".to_owned());
        work.labels_mut().insert("a".to_owned(), "b".to_owned());
        let new = NewWork::from(work.clone());
        assert_eq!(serde_json::to_value(new).expect("JSON"), serde_json::to_value(work).expect("JSON"));
    }
}
