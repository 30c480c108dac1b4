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
use sha2::{Digest, Sha256};

use super::{
    AddOnWork, RenderedWork, Workload,
    digest::{hold_mark, objects},
};
use crate::{manifestwork::WorkPatch, owner::own};

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
    pub fn is_made(&self, work: &AddOnWork) -> bool {
        work.holds.is_none() && work.digest() == self.digest && self.marks.are_on(work)
    }

    /// Whether a work is as it was made, but for objects of others that it still holds.
    #[must_use]
    pub fn is_holding(&self, work: &AddOnWork) -> bool {
        let mark = work.holds.as_deref();
        mark.is_some_and(|mark| mark == hold_mark(&self.digest, work.digest())) && self.marks.are_on(work)
    }
}

/// What a work is marked with: for which add-on, from which set, and with whom it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    digest: MarkDigest,
    /// The owner that it goes with, if there is one.
    owner: Option<String>,
}

impl Marks {
    /// What a work that was made is marked with.
    #[must_use]
    pub fn of(made: &ManifestWork) -> Self {
        Self { digest: MarkDigest::of(made), owner: made.owner_references().first().map(|owner| owner.uid.clone()) }
    }

    /// Whether a work is marked so. What others have marked it with is not looked at, nor is which of its owners controls it.
    #[must_use]
    pub fn are_on(&self, work: &AddOnWork) -> bool {
        work.marks == self.digest && self.is_owner_of(work)
    }

    /// Whether a work has the owner that it should go with.
    #[must_use]
    pub fn is_owner_of(&self, work: &AddOnWork) -> bool {
        self.owner.as_ref().is_none_or(|owner| work.owners.iter().any(|there| **there == **owner))
    }

    /// Adds to a patch what marks a work as another one, but for its owner.
    pub fn patch(made: &ManifestWork, patch: &mut WorkPatch) {
        for key in LABELS {
            patch.remove_label(key);
        }
        for key in ANNOTATIONS.into_iter().chain([HOLDS_ANNOTATION]) {
            patch.remove_annotation(key);
        }
        patch.set_labels(made.labels().clone());
        for (key, value) in made.annotations() {
            patch.annotate(key, value);
        }
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

/// A digest of the labels and annotations that mark works. A fleet has many works, and all that
/// matters is whether those of two works are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MarkDigest([u8; 8]);

impl MarkDigest {
    pub(super) fn of(work: &ManifestWork) -> Self {
        let labels = LABELS.iter().map(|label| work.labels().get(*label));
        let values = labels.chain(ANNOTATIONS.iter().map(|annotation| work.annotations().get(*annotation)));
        let mut digest = Sha256::new();
        for value in values {
            // The length tells where a value ends, and that an absent value is not an empty one.
            digest.update(value.map_or(u64::MAX, |value| value.len() as u64).to_be_bytes());
            digest.update(value.map(String::as_str).unwrap_or_default());
        }
        let mut short = [0; 8];
        short.copy_from_slice(&digest.finalize()[..8]);
        Self(short)
    }
}

#[cfg(test)]
mod tests;
