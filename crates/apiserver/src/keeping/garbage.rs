//! What nobody owns any more goes.

use serde_json::Value;

use super::{
    Keeper, Task,
    owners::{Address, has},
};
use crate::{
    failure::Failure,
    kind::{Kind, Scope},
    metadata, ownership,
    server::{FOREGROUND, ORPHAN, Propagation, Subject, Terms},
};

/// What is known of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// It is there.
    There,
    /// It is there, and waits for those that depend on it to go.
    Waiting,
    /// It is not there.
    Gone,
}

impl Keeper {
    /// Sees whether an object is still owned by somebody.
    pub(super) async fn look_after_dependent(&self, address: &Address) -> Result<(), Failure> {
        let Some(subject) = self.subject(address) else { return Ok(()) };
        let Some(object) = self.stored(&subject) else { return Ok(()) };
        let references = references(&object);
        let owners: Vec<_> = references.iter().map(|reference| self.owner(&subject, reference)).collect();
        let is_any = |state| owners.contains(&state);
        if references.is_empty() || (!is_any(Owner::Gone) && !is_any(Owner::Waiting)) {
            return Ok(());
        }
        if is_any(Owner::There) {
            let lost = references.iter().zip(&owners).filter(|(_, owner)| **owner != Owner::There);
            let lost: Vec<_> = lost.map(|(reference, _)| uid(reference).to_owned()).collect();
            return self.disown(&subject, &lost).await;
        }
        if metadata::field(&object, "deletionTimestamp").is_some() {
            return Ok(());
        }
        let has_dependents = !self.server.owners().dependents(metadata::text(&object, "uid")).is_empty();
        let propagation = if has(&object, ORPHAN) {
            Propagation::Orphan
        } else if has(&object, FOREGROUND) || (is_any(Owner::Waiting) && has_dependents) {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        self.let_go(&subject, &Terms::of(metadata::text(&object, "uid"), propagation)).await
    }

    /// What is known of who owns an object. Of a kind that is not served nobody knows, so that it counts as there.
    fn owner(&self, dependent: &Subject, reference: &Value) -> Owner {
        let text = |name: &str| reference[name].as_str().unwrap_or_default();
        let api_version = text("apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let served = self.server.served();
        let Some((kind, _)) = served.kinds.by_kind(group, version, text("kind")) else { return Owner::There };
        if kind.scope == Scope::Namespaced && dependent.namespace.is_none() {
            return Owner::There;
        }
        let owner = Subject::new(&kind, dependent.namespace.as_deref(), text("name"));
        match self.stored(&owner).filter(|owner| metadata::text(owner, "uid") == uid(reference)) {
            None => Owner::Gone,
            Some(owner) if super::owners::waits(&owner) && has(&owner, FOREGROUND) => Owner::Waiting,
            Some(_) => Owner::There,
        }
    }

    /// Takes owners from an object.
    async fn disown(&self, subject: &Subject, lost: &[String]) -> Result<(), Failure> {
        self.server
            .revise(subject, |object| {
                let all = references(object);
                let kept: Vec<_> =
                    all.iter().filter(|it| !lost.iter().any(|uid| uid == self::uid(it))).cloned().collect();
                if kept.len() == all.len() {
                    return None;
                }
                let mut new = object.clone();
                metadata::set(&mut new, "ownerReferences", (!kept.is_empty()).then_some(Value::Array(kept)));
                self.forget_owners_of_fields(&subject.kind, object, &mut new);
                Some(new)
            })
            .await
    }

    /// Nobody owns a field that is gone.
    fn forget_owners_of_fields(&self, kind: &Kind, old: &Value, new: &mut Value) {
        let Some(version) = kind.stored() else { return };
        let api_version = kind.api_version(&version.name);
        let write = ownership::Write {
            manager: "garbage-collector",
            api_version: &api_version,
            subresource: "",
            time: &self.server.now(),
            origin: kind.origin,
            reset: &[],
        };
        ownership::update(Some(old), new, &version.schema, &write);
    }

    /// Sees whether an object that waits for those that depend on it can go.
    pub(super) async fn look_after_owner(&self, address: &Address) -> Result<(), Failure> {
        let Some(subject) = self.subject(address) else { return Ok(()) };
        let Some(object) = self.stored(&subject).filter(super::owners::waits) else { return Ok(()) };
        let uid = metadata::text(&object, "uid").to_owned();
        let dependents = self.server.owners().dependents(&uid);
        if has(&object, ORPHAN) {
            for dependent in dependents.iter().filter_map(|address| self.subject(address)) {
                self.disown(&dependent, std::slice::from_ref(&uid)).await?;
            }
            return self.release(&subject, ORPHAN).await;
        }
        let blocks = |address: &Address| {
            let object = self.subject(address).and_then(|dependent| self.stored(&dependent));
            let references = object.as_ref().map(references).unwrap_or_default();
            references.iter().any(|it| self::uid(it) == uid && it["blockOwnerDeletion"] == true)
        };
        if !dependents.iter().any(blocks) {
            return self.release(&subject, FOREGROUND).await;
        }
        for dependent in dependents {
            self.server.remind(Task::Dependent(dependent));
        }
        Ok(())
    }
}

fn references(object: &Value) -> Vec<Value> {
    metadata::field(object, "ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default()
}

fn uid(reference: &Value) -> &str {
    reference["uid"].as_str().unwrap_or_default()
}
