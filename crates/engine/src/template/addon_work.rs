//! The works of add-ons, as far as decisions need them.

use drover_api::{
    names::{
        ADDON_NAME_LABEL, ADDON_NAMESPACE_LABEL, ADDON_VERSION_LABEL, HOLDS_ANNOTATION, SET_ANNOTATION, WORK_APPLIED,
        WORK_AVAILABLE, WORKS_ANNOTATION,
    },
    work::ManifestWork,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::{
    Vitals,
    digest::{digest, objects},
    expected::MarkDigest,
    vitals::vitals_of,
    work_prefix,
};
use crate::{
    condition::Holds,
    manifestwork::{WorkMetadata, is_view_of_work},
    plan::ObjectKey,
    revision::hashes,
    words::excerpt,
};

/// A work of an add-on. Its spec is most of it. A digest and the names of its objects are kept of
/// that if it deploys the add-on.
#[derive(Clone, Debug, PartialEq)]
pub struct AddOnWork {
    metadata: WorkMetadata,
    addon: ObjectKey,
    pub(super) marks: MarkDigest,
    pub(super) owners: Box<[Box<str>]>,
    pub(super) holds: Option<Box<str>>,
    revision: Option<Box<str>>,
    version: Option<Box<str>>,
    hashes: Option<Box<str>>,
    count: Option<usize>,
    digest: Box<str>,
    objects: Box<[String]>,
    applied: Option<ReportedCondition>,
    available: Option<ReportedCondition>,
    vitals: Box<[Vitals]>,
}

/// A condition that the agent has reported of a work.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedCondition {
    /// Its status.
    pub status: Holds,
    /// The generation of the work that it is about.
    pub observed_generation: Option<i64>,
    /// Its message, unless it is true.
    pub message: Box<str>,
}

is_view_of_work!(AddOnWork);

impl AddOnWork {
    /// What is kept of a work; `None` if it is of no add-on.
    #[must_use]
    pub fn of(work: &ManifestWork, metadata: &WorkMetadata) -> Option<Self> {
        let addon = addon_of(work)?;
        // If the work was rendered from a template, be it by OCM, its objects can move to another
        // work.
        let is_deployed = work.name_any().starts_with(&work_prefix(&addon.name));
        let spec = is_deployed.then_some(&work.spec);
        let text = |value: Option<&String>| value.map(|text| text.as_str().into());
        let annotations = work.annotations();
        let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        Some(Self {
            metadata: WorkMetadata::clone(metadata),
            addon,
            marks: MarkDigest::of(work),
            owners: work.owner_references().iter().map(|owner| owner.uid.as_str().into()).collect(),
            holds: text(annotations.get(HOLDS_ANNOTATION)),
            revision: text(annotations.get(SET_ANNOTATION)),
            version: text(work.labels().get(ADDON_VERSION_LABEL)),
            hashes: text(hashes::carried_by(annotations)),
            count: annotations.get(WORKS_ANNOTATION).and_then(|count| count.parse().ok()),
            digest: spec.map(digest).unwrap_or_default().into(),
            objects: spec.map(objects).unwrap_or_default().into(),
            applied: ReportedCondition::find(conditions, WORK_APPLIED),
            available: ReportedCondition::find(conditions, WORK_AVAILABLE),
            vitals: vitals_of(work).collect(),
        })
    }

    /// The add-on that the work is of: its name, and the cluster that the add-on is installed on.
    #[must_use]
    pub fn addon(&self) -> &ObjectKey {
        &self.addon
    }

    /// Whether it is being deleted.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The fingerprint of the revision that it was rendered from, if its annotation says so.
    #[must_use]
    pub fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    /// The version in its label.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// The hashes of the configurations that it was made from, as its annotation has them.
    #[must_use]
    pub fn hashes(&self) -> Option<&str> {
        self.hashes.as_deref()
    }

    /// How many works were rendered with it.
    #[must_use]
    pub fn count(&self) -> Option<usize> {
        self.count
    }

    /// The digest of what it applies; empty if it does not deploy the add-on.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The short names of its objects.
    #[must_use]
    pub fn objects(&self) -> &[String] {
        &self.objects
    }

    /// Whether everything in it is applied, as its agent reports.
    #[must_use]
    pub fn applied(&self) -> Option<&ReportedCondition> {
        self.applied.as_ref()
    }

    /// Whether everything in it is available, as its agent reports.
    #[must_use]
    pub fn available(&self) -> Option<&ReportedCondition> {
        self.available.as_ref()
    }

    /// What its workloads report.
    #[must_use]
    pub fn vitals(&self) -> &[Vitals] {
        &self.vitals
    }

    /// Its generation.
    #[must_use]
    pub fn generation(&self) -> Option<i64> {
        self.metadata.generation
    }
}

impl ReportedCondition {
    fn find(conditions: &[Condition], type_: &str) -> Option<Self> {
        let condition = conditions.iter().find(|condition| condition.type_ == type_)?;
        let status = match condition.status.as_str() {
            "True" => Holds::Yes,
            "False" => Holds::No,
            _ => Holds::Unknown,
        };
        let message = if status == Holds::Yes { String::new() } else { excerpt(&condition.message) };
        Some(Self { status, observed_generation: condition.observed_generation, message: message.into() })
    }
}

/// The add-on that a work is of. A work for an add-on on another cluster names that cluster.
fn addon_of(work: &ManifestWork) -> Option<ObjectKey> {
    let labels = work.labels();
    let namespace = labels.get(ADDON_NAMESPACE_LABEL).cloned().or_else(|| work.namespace()).unwrap_or_default();
    Some(ObjectKey::namespaced(&namespace, labels.get(ADDON_NAME_LABEL)?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use drover_api::work::ManifestWorkSpec;
    use serde_json::json;

    use super::*;

    fn view(name: &str) -> Option<AddOnWork> {
        let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
        let mut work = ManifestWork::new(name, ManifestWorkSpec::default());
        work.labels_mut().insert(ADDON_NAME_LABEL.to_owned(), "hello".to_owned());
        work.spec.workload.get_or_insert_default().manifests.push(manifest);
        AddOnWork::of(&work, &Arc::new(work.metadata.clone()))
    }

    #[test]
    fn objects_are_known_of_works_that_deploy_an_add_on() {
        let objects = |name: &str| view(name).map(|work| work.objects().len());
        assert_eq!(objects("addon-hello-deploy-0"), Some(1), "nothing else shows that one moves to another work");
        assert_eq!(objects("other"), Some(0));
    }

    #[test]
    fn work_without_the_label_is_of_no_add_on() {
        let work = ManifestWork::new("addon-hello-deploy-0", ManifestWorkSpec::default());
        assert_eq!(AddOnWork::of(&work, &WorkMetadata::default()), None);
    }
}
