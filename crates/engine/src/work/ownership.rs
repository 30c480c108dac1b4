//! Whose the objects on a cluster are: the AppliedManifestWorks that own them, and the list of them that each keeps.

use std::fmt::Write as _;

use drover_api::{
    names::APPLIED_WORK_FINALIZER,
    work::{
        AppliedManifestWork, AppliedManifestWorkSpec, AppliedResource, DeleteOption, DeletePropagationPolicy,
        ManifestResourceMeta, ManifestWork, OrphaningRule,
    },
};
use kube::ResourceExt;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::manifest::Target;
use crate::plural;

/// The API group of works.
const GROUP: &str = "work.open-cluster-management.io";
/// The kind of owners.
const KIND: &str = "AppliedManifestWork";

/// The AppliedManifestWork that owns what its work applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// What becomes of an object when its work goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is removed.
    Removed,
    /// It stays, and nobody owns it any more.
    Orphaned,
}

/// Whether an object that belongs to a work is on the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    There {
        /// Its UID.
        uid: String,
    },
    /// It is not.
    Gone,
    /// Nobody could tell.
    Unknown,
}

/// The hash by which a hub is told apart from others: of its URL, as the agent knows it.
#[must_use]
pub fn hub_hash(url: &str) -> String {
    Sha256::digest(url).iter().fold(String::new(), |mut hex, byte| {
        // A text takes everything.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The name of the AppliedManifestWork of a work.
#[must_use]
pub fn applied_work_name(hub_hash: &str, work: &str) -> String {
    format!("{hub_hash}-{work}")
}

/// The AppliedManifestWork of a work, as it is made. An agent without an ID goes by the hash of its hub.
#[must_use]
pub fn applied_work(work: &ManifestWork, hub_hash: &str, agent_id: Option<&str>) -> AppliedManifestWork {
    let spec = AppliedManifestWorkSpec {
        hub_hash: hub_hash.to_owned(),
        agent_id: Some(agent_id.filter(|id| !id.is_empty()).unwrap_or(hub_hash).to_owned()),
        manifest_work_name: work.name_any(),
    };
    let mut applied = AppliedManifestWork::new(&applied_work_name(hub_hash, &work.name_any()), spec);
    applied.metadata.labels.clone_from(&work.metadata.labels);
    applied.metadata.finalizers = Some(vec![APPLIED_WORK_FINALIZER.to_owned()]);
    applied
}

/// What becomes of the object of a manifest when its work goes.
#[must_use]
pub fn fate(option: Option<&DeleteOption>, target: &Target) -> Fate {
    let manifest = &target.manifest;
    fate_where(option, |rule| {
        is_about(rule, &manifest.group, &target.resource, |kind| kind == manifest.kind)
            && rule.name == manifest.name
            && rule.namespace.as_deref().unwrap_or_default() == manifest.namespace
    })
}

/// What becomes of something that was applied when its work goes.
#[must_use]
pub fn fate_of_applied(option: Option<&DeleteOption>, applied: &AppliedResource) -> Fate {
    let group = applied.group.as_deref().unwrap_or_default();
    fate_where(option, |rule| {
        is_about(rule, group, &applied.resource, |kind| plural::may_be(&applied.resource, kind))
            && rule.name == applied.name
            && rule.namespace.as_deref().unwrap_or_default() == applied.namespace.as_deref().unwrap_or_default()
    })
}

fn fate_where(option: Option<&DeleteOption>, keeps: impl Fn(&OrphaningRule) -> bool) -> Fate {
    let Some(option) = option else { return Fate::Removed };
    let mut rules = option.selectively_orphans.iter().flat_map(|orphans| &orphans.orphaning_rules);
    match option.propagation_policy {
        DeletePropagationPolicy::Orphan => Fate::Orphaned,
        DeletePropagationPolicy::SelectivelyOrphan if rules.any(keeps) => Fate::Orphaned,
        DeletePropagationPolicy::Foreground | DeletePropagationPolicy::SelectivelyOrphan => Fate::Removed,
    }
}

/// Whether a rule is about a resource. Some write a kind with its group where the resource belongs, such as `ClusterVersion.config.openshift.io`.
fn is_about(rule: &OrphaningRule, group: &str, resource: &str, is_kind: impl Fn(&str) -> bool) -> bool {
    let rule_group = rule.group.as_deref().unwrap_or_default();
    let is_named = rule_group == group && rule.resource == resource;
    is_named
        || rule.resource.split_once('.').is_some_and(|(kind, of_group)| {
            of_group == group && is_kind(kind) && (rule_group.is_empty() || rule_group == group)
        })
}

impl Owner {
    /// The owner references of an object that belongs to this owner and has these: with this owner, or without it where the object is to stay.
    pub(super) fn references(&self, fate: Fate, present: &[Value]) -> Vec<Value> {
        let is_there = present.iter().any(|reference| self.is(reference));
        match fate {
            Fate::Removed if is_there => present.to_vec(),
            Fate::Removed => present.iter().cloned().chain([self.reference()]).collect(),
            Fate::Orphaned => present.iter().filter(|reference| !self.is(reference)).cloned().collect(),
        }
    }

    /// The change, as a merge patch, that gives an object the owners that it is to have; none if it has them. It fails where the object has changed in
    /// between, because it replaces the references of others too.
    pub(super) fn patch(&self, fate: Fate, live: &Value) -> Option<Value> {
        let present = owner_references(live);
        let wanted = self.references(fate, present);
        (wanted != present).then(|| {
            let known = |field: &str| live.pointer(field).cloned().unwrap_or_default();
            json!({ "metadata": {
                "uid": known("/metadata/uid"),
                "resourceVersion": known("/metadata/resourceVersion"),
                "ownerReferences": wanted,
            }})
        })
    }

    pub(super) fn is(&self, reference: &Value) -> bool {
        reference.get("uid").and_then(Value::as_str) == Some(&self.uid)
    }

    fn reference(&self) -> Value {
        json!({ "apiVersion": format!("{GROUP}/v1"), "kind": KIND, "name": self.name, "uid": self.uid })
    }
}

/// The owner references of an object.
pub(super) fn owner_references(object: &Value) -> &[Value] {
    object.pointer("/metadata/ownerReferences").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether an owner is the AppliedManifestWork of some work.
fn is_work(reference: &Value) -> bool {
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
    text("kind") == KIND && text("apiVersion").split('/').next() == Some(GROUP)
}

/// Whether other works own an object besides this owner. Two works that want different things of one object would repair it in turns without end, so repairs of
/// what is shared have to be paced.
#[must_use]
pub(super) fn is_shared(live: &Value, owner: &Owner) -> bool {
    owner_references(live).iter().any(|reference| is_work(reference) && !owner.is(reference))
}

/// What an AppliedManifestWork lists: the objects that are there, those that nobody could ask for, as they were listed before, and those that are still to go.
#[must_use]
pub fn applied_resources(
    recorded: &[AppliedResource],
    seen: &[(ManifestResourceMeta, Presence)],
    pending: &[AppliedResource],
) -> Vec<AppliedResource> {
    let listed = seen.iter().filter_map(|(meta, presence)| match presence {
        Presence::There { uid } => Some(AppliedResource { uid: Some(uid.clone()), ..intended(meta)? }),
        Presence::Gone => None,
        Presence::Unknown => recorded.iter().find(|recorded| is_same(recorded, meta)).cloned(),
    });
    let mut all: Vec<_> = listed.chain(pending.iter().cloned()).collect();
    all.sort();
    all.dedup();
    all
}

/// What is recorded of an object before it is applied: all but its UID, which nobody knows yet. Nothing where it is not known where the object is.
fn intended(meta: &ManifestResourceMeta) -> Option<AppliedResource> {
    Some(AppliedResource {
        group: meta.group.clone(),
        version: meta.version.clone()?,
        resource: meta.resource.clone()?,
        name: meta.name.clone()?,
        namespace: meta.namespace.clone(),
        uid: None,
    })
}

/// What an AppliedManifestWork lists before these objects are applied; nothing if it lists them all. What nobody knows of can not be removed again.
#[must_use]
pub fn before_applying(
    recorded: &[AppliedResource],
    manifests: impl IntoIterator<Item = ManifestResourceMeta>,
) -> Option<Vec<AppliedResource>> {
    let is_new = |meta: &ManifestResourceMeta| !recorded.iter().any(|there| is_same(there, meta));
    let new: Vec<_> = manifests.into_iter().filter(is_new).filter_map(|meta| intended(&meta)).collect();
    (!new.is_empty()).then(|| {
        let mut all: Vec<_> = recorded.iter().cloned().chain(new).collect();
        all.sort();
        all
    })
}

/// What was recorded and is in no manifest, whether it may be removed or not.
#[must_use]
pub fn unseen(recorded: &[AppliedResource], seen: &[(ManifestResourceMeta, Presence)]) -> Vec<AppliedResource> {
    let is_seen = |applied: &&AppliedResource| seen.iter().any(|(meta, _)| is_same(applied, meta));
    recorded.iter().filter(|applied| !is_seen(applied)).cloned().collect()
}

/// Whether something that was recorded is what a manifest is about. Versions do not matter: they show the same object.
/// Where the kind of the manifest was not found on the cluster, the name has to do.
pub(super) fn is_same(recorded: &AppliedResource, meta: &ManifestResourceMeta) -> bool {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let is_place = match &meta.resource {
        Some(resource) => *resource == recorded.resource && text(&meta.namespace) == text(&recorded.namespace),
        None => text(&recorded.namespace).is_empty() || text(&meta.namespace) == text(&recorded.namespace),
    };
    is_place && text(&meta.group) == text(&recorded.group) && meta.name.as_deref() == Some(&recorded.name)
}

#[cfg(test)]
mod tests;
