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

/// What of an object matters to who tidies up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ties {
    uid: String,
    /// The uids of its owners.
    owners: BTreeSet<String>,
    /// Whether it is on its way out.
    pub(crate) is_going: bool,
    /// Whether it goes only when something has become of those that depend on it.
    waits: bool,
}

impl Ties {
    pub(crate) fn of(object: &Value) -> Self {
        Self {
            uid: metadata::text(object, "uid").to_owned(),
            owners: owners_of(object),
            is_going: is_going(object),
            waits: waits(object),
        }
    }
}

/// Who owns what.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// The uids of the owners of objects that have any.
    owned: BTreeMap<Address, BTreeSet<String>>,
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

    /// Takes note of what an object is now, and says what there is to do about it.
    pub(crate) fn change(&mut self, subject: &Subject, ties: &Ties) -> Vec<Task> {
        let address = Address::of(subject);
        let mut tasks = self.bind(&address, &ties.owners);
        if ties.waits {
            self.waiting.insert(ties.uid.clone(), address.clone());
            tasks.push(Task::Owner(address));
        }
        tasks
    }

    /// Takes note of the end of an object, in whose place there may be another one already, and says what there is to do about it.
    pub(crate) fn end(&mut self, subject: &Subject, ties: &Ties, is_replaced: bool) -> Vec<Task> {
        let mut tasks = if is_replaced { Vec::new() } else { self.bind(&Address::of(subject), &BTreeSet::new()) };
        self.waiting.remove(&ties.uid);
        tasks.extend(self.dependents(&ties.uid).into_iter().map(Task::Dependent));
        tasks
    }

    /// Notes who owns an object now. Who is found to wait for it and owns it no longer is looked after, and so is itself if it has others.
    fn bind(&mut self, address: &Address, now: &BTreeSet<String>) -> Vec<Task> {
        let before = self.owned.remove(address).unwrap_or_default();
        if !now.is_empty() {
            self.owned.insert(address.clone(), now.clone());
        }
        if before == *now {
            return Vec::new();
        }
        for uid in before.difference(now) {
            self.forget(uid, address);
        }
        for uid in now.difference(&before) {
            self.dependents.entry(uid.clone()).or_default().insert(address.clone());
        }
        let freed = before.difference(now).filter_map(|uid| self.waiting.get(uid)).cloned().map(Task::Owner);
        let bound = (!now.is_empty()).then(|| Task::Dependent(address.clone()));
        freed.chain(bound).collect()
    }

    fn forget(&mut self, uid: &str, address: &Address) {
        if let Some(dependents) = self.dependents.get_mut(uid) {
            dependents.remove(address);
            if dependents.is_empty() {
                self.dependents.remove(uid);
            }
        }
    }
}

/// The uids of an object's owners.
fn owners_of(object: &Value) -> BTreeSet<String> {
    let references = metadata::field(object, "ownerReferences").and_then(Value::as_array);
    references.into_iter().flatten().filter_map(|reference| reference["uid"].as_str()).map(str::to_owned).collect()
}

fn is_going(object: &Value) -> bool {
    metadata::field(object, "deletionTimestamp").is_some()
}

/// Whether an object goes only when something has become of those that depend on it.
pub(super) fn waits(object: &Value) -> bool {
    is_going(object) && (has(object, FOREGROUND) || has(object, ORPHAN))
}

/// Whether an object has a finalizer.
pub(super) fn has(object: &Value, finalizer: &str) -> bool {
    let finalizers = metadata::field(object, "finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|finalizers| finalizers.iter().any(|it| it == finalizer))
}
