//! What is to be there of a work, in so few words that it can be kept for every cluster.

use drover_api::{
    names::{
        ADDON_NAME_LABEL, ADDON_NAMESPACE_LABEL, ADDON_VERSION_LABEL, CONFIG_SPEC_HASH_ANNOTATION,
        FLAT_CONFIG_SPEC_HASH_ANNOTATION, HOLDS_ANNOTATION, SET_ANNOTATION, WORKS_ANNOTATION,
    },
    work::ManifestWork,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;

use super::{
    RenderedWork, Workload,
    digest::{digest, hold_mark, objects},
};
use crate::owner::own;

/// The labels of works that are made from a template, and one that none has: it would make it a work of another cluster's add-on.
const LABELS: [&str; 3] = [ADDON_NAME_LABEL, ADDON_VERSION_LABEL, ADDON_NAMESPACE_LABEL];
/// The annotations of works that are made from a template.
const ANNOTATIONS: [&str; 4] =
    [CONFIG_SPEC_HASH_ANNOTATION, FLAT_CONFIG_SPEC_HASH_ANNOTATION, SET_ANNOTATION, WORKS_ANNOTATION];

/// A work that is to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Its name.
    pub name: String,
    /// The digest of what it applies.
    pub digest: String,
    /// What its objects are called.
    pub objects: Vec<String>,
    /// What it is marked with.
    pub marks: Marks,
    /// What it deploys that says how it is.
    pub workloads: Vec<Workload>,
}

impl Expected {
    /// What is to be there of a work that was made.
    #[must_use]
    pub fn of(made: &RenderedWork) -> Self {
        let RenderedWork { work, digest, workloads } = made;
        Self {
            name: work.name_any(),
            digest: digest.clone(),
            objects: objects(&work.spec),
            marks: Marks::of(work),
            workloads: workloads.clone(),
        }
    }

    /// Whether a work is as it was made.
    #[must_use]
    pub fn is_made(&self, work: &ManifestWork) -> bool {
        let holds = work.annotations().contains_key(HOLDS_ANNOTATION);
        !holds && digest(&work.spec) == self.digest && self.marks.are_on(work)
    }

    /// Whether a work is as it was made, but for objects of others that it still holds.
    #[must_use]
    pub fn is_holding(&self, work: &ManifestWork) -> bool {
        let mark = work.annotations().get(HOLDS_ANNOTATION);
        mark.is_some_and(|mark| *mark == hold_mark(&self.digest, &digest(&work.spec))) && self.marks.are_on(work)
    }
}

/// What a work is marked with: for which add-on, from which set, and with whom it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    texts: Vec<Option<String>>,
    /// The owner that it goes with, if there is one.
    owner: Option<String>,
}

impl Marks {
    /// What a work that was made is marked with.
    #[must_use]
    pub fn of(made: &ManifestWork) -> Self {
        Self { texts: texts(made), owner: made.owner_references().first().map(|owner| owner.uid.clone()) }
    }

    /// Whether a work is marked so. What others have marked it with is not looked at, nor is which of its owners controls it.
    #[must_use]
    pub fn are_on(&self, work: &ManifestWork) -> bool {
        let is_owner = |owner: &String| work.owner_references().iter().any(|there| there.uid == *owner);
        texts(work) == self.texts && self.owner.as_ref().is_none_or(is_owner)
    }

    /// Marks a work as another one is. What others have marked it with stays.
    pub fn copy(from: &ManifestWork, to: &mut ManifestWork) {
        to.labels_mut().retain(|key, _| !LABELS.contains(&&**key));
        to.labels_mut().extend(from.labels().clone());
        to.annotations_mut().retain(|key, _| !ANNOTATIONS.contains(&&**key) && key != HOLDS_ANNOTATION);
        to.annotations_mut().extend(from.annotations().clone());
        for owner in from.owner_references() {
            own(to.owner_references_mut(), owner);
        }
    }
}

/// Whether a work that is there is one of those that are made for this add-on, whatever it is labelled with: a template has made it, or it goes
/// with the add-on.
#[must_use]
pub fn is_kin(there: &ManifestWork, made: &ManifestWork) -> bool {
    let owns_both = |owner: &OwnerReference| {
        let mut owners = made.owner_references().iter();
        owners.any(|other| (&other.kind, &other.name) == (&owner.kind, &owner.name))
    };
    there.annotations().contains_key(SET_ANNOTATION) || there.owner_references().iter().any(owns_both)
}

fn texts(work: &ManifestWork) -> Vec<Option<String>> {
    let labels = LABELS.iter().map(|label| work.labels().get(*label).cloned());
    let annotations = ANNOTATIONS.iter().map(|annotation| work.annotations().get(*annotation).cloned());
    labels.chain(annotations).collect()
}

#[cfg(test)]
mod tests;
