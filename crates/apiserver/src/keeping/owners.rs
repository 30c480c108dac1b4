//! Who owns what: an index, so that nobody has to look through everything when an owner goes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Task;
use crate::{
    metadata,
    server::{FOREGROUND, ORPHAN, Subject},
};

/// Where an object is, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl Address {
    fn of(subject: &Subject) -> Self {
        Self {
            group: subject.kind.group.clone(),
            plural: subject.kind.plural.clone(),
            namespace: subject.namespace.clone(),
            name: subject.name.clone(),
        }
    }
}

/// Who owns what.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// Those that depend on an object, by its uid.
    dependents: BTreeMap<String, BTreeSet<Address>>,
    /// Objects that wait for those that depend on them, by uid.
    waiting: BTreeMap<String, Address>,
}

impl Owners {
    /// Those that depend on the object of a uid.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<Address> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Takes note of a change, and says what there is to do about it.
    pub(crate) fn change(&mut self, subject: &Subject, old: Option<&Value>, new: Option<&Value>) -> Vec<Task> {
        let address = Address::of(subject);
        let (before, after) = (owners_of(old), owners_of(new));
        for uid in before.difference(&after) {
            self.forget(uid, &address);
        }
        for uid in after.difference(&before) {
            self.dependents.entry((*uid).to_owned()).or_default().insert(address.clone());
        }
        let mut tasks = self.freed(&before, &after, new);
        if !after.is_empty() && before != after {
            tasks.push(Task::Dependent(address.clone()));
        }
        tasks.extend(self.state(&address, old, new));
        tasks
    }

    fn forget(&mut self, uid: &str, address: &Address) {
        if let Some(dependents) = self.dependents.get_mut(uid) {
            dependents.remove(address);
            if dependents.is_empty() {
                self.dependents.remove(uid);
            }
        }
    }

    /// Owners that wait for this one, which has changed or gone.
    fn freed(&self, before: &BTreeSet<&str>, after: &BTreeSet<&str>, new: Option<&Value>) -> Vec<Task> {
        let is_gone = new.is_none();
        let concerned = before.iter().filter(|uid| is_gone || !after.contains(*uid));
        concerned.filter_map(|uid| self.waiting.get(*uid)).cloned().map(Task::Owner).collect()
    }

    /// What is to be done about an object that goes, or has begun to wait.
    fn state(&mut self, address: &Address, old: Option<&Value>, new: Option<&Value>) -> Vec<Task> {
        match new {
            Some(new) if waits(new) => {
                self.waiting.insert(metadata::text(new, "uid").to_owned(), address.clone());
                vec![Task::Owner(address.clone())]
            }
            Some(_) => Vec::new(),
            None => {
                let uid = old.map(|old| metadata::text(old, "uid")).unwrap_or_default();
                self.waiting.remove(uid);
                self.dependents(uid).into_iter().map(Task::Dependent).collect()
            }
        }
    }
}

/// The uids of an object's owners.
fn owners_of(object: Option<&Value>) -> BTreeSet<&str> {
    let references = object.and_then(|object| metadata::field(object, "ownerReferences")).and_then(Value::as_array);
    references.into_iter().flatten().filter_map(|reference| reference["uid"].as_str()).collect()
}

/// Whether an object goes only when something has become of those that depend on it.
pub(super) fn waits(object: &Value) -> bool {
    metadata::field(object, "deletionTimestamp").is_some() && (has(object, FOREGROUND) || has(object, ORPHAN))
}

/// Whether an object has a finalizer.
pub(super) fn has(object: &Value, finalizer: &str) -> bool {
    let finalizers = metadata::field(object, "finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|finalizers| finalizers.iter().any(|it| it == finalizer))
}
