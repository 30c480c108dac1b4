//! What follows from a change of an object: the kinds, rights and policies that are in force, and what there is to tidy up.

use std::sync::Arc;

use serde_json::Value;

use super::{Served, Server, object::Subject};
use crate::{
    definition::{self, Taken},
    keeping::{Task, Ties},
    kind::{Kind, Origin},
    metadata,
    store::{Key, Resource, Scope, Stored},
};

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const EXTENSIONS: &str = "apiextensions.k8s.io";

impl Server {
    /// Puts into force what is kept already, when the server starts.
    pub(super) fn take_stock(&self) {
        self.take_stock_of(|kind| [RBAC, ADMISSION].contains(&kind.group.as_str()) || (kind.group == EXTENSIONS));
        // Kinds are known only now.
        for kind in self.served().kinds.iter() {
            for stored in self.objects_of(kind) {
                let subject = Subject::new(kind, stored.namespace(), stored.name());
                self.note(&subject, &stored, &Ties::of(&stored.value()));
            }
        }
    }

    fn take_stock_of(&self, is_meant: impl Fn(&Kind) -> bool) {
        for kind in self.served().kinds.iter().filter(|kind| is_meant(kind)) {
            for stored in self.objects_of(kind) {
                self.enforce(&Subject::new(kind, stored.namespace(), stored.name()));
            }
        }
    }

    /// All objects of a kind.
    pub(crate) fn objects_of(&self, kind: &Kind) -> Vec<Stored> {
        let resource = super::object::resource_of(kind);
        self.store.list(&resource, &Scope::all(), None, None).map(|page| page.items).unwrap_or_default()
    }

    /// Sees to what follows from a new or changed object.
    pub(super) fn settle(&self, subject: &Subject, stored: &Stored, ties: &Ties) {
        self.enforce(subject);
        self.note(subject, stored, ties);
    }

    /// Sees to what follows from the end of an object.
    pub(super) fn settle_end(&self, subject: &Subject, ties: &Ties) {
        self.enforce(subject);
        self.note_end(subject, ties);
    }

    /// Puts into force what an object says now. It is read under the lock, so that the last who changes it has the last word.
    fn enforce(&self, subject: &Subject) {
        let Subject { kind, key, .. } = subject;
        match (kind.group.as_str(), kind.plural.as_str()) {
            (RBAC, _) => {
                let mut rules = self.rules.write();
                match self.store.get(key) {
                    Some(stored) => rules.apply(&kind.kind, &stored.value()),
                    None => rules.remove(&kind.kind, subject.namespace.as_deref().unwrap_or_default(), &subject.name),
                }
            }
            (ADMISSION, _) => {
                let mut policies = self.policies.write();
                match self.store.get(key) {
                    Some(stored) => policies.apply(&kind.kind, &stored.value()),
                    None => policies.remove(&kind.kind, &subject.name),
                }
            }
            (EXTENSIONS, "customresourcedefinitions") => self.serve(subject),
            _ => {}
        }
    }

    /// Serves what a definition says now.
    fn serve(&self, subject: &Subject) {
        let mut served = self.served.write();
        let crd = self.store.get(&subject.key).map(|stored| stored.value());
        let changed = match crd.filter(is_established) {
            Some(crd) => served.with(definition::kind(&crd)),
            // Its name is its plural and its group.
            None => match subject.name.split_once('.') {
                Some((plural, group)) => served.without(group, plural),
                None => return,
            },
        };
        *served = Arc::new(changed);
    }

    /// Says in a definition what the server makes of it.
    pub(super) fn define(&self, served: &Served, crd: &mut Value) {
        let group = crd.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default().to_owned();
        let (own, definitions) =
            (metadata::text(crd, "name").to_owned(), Resource::new(EXTENSIONS, "customresourcedefinitions"));
        let mut taken = Taken::default();
        for kind in served.kinds.iter().filter(|kind| kind.group == group) {
            let name = format!("{}.{group}", kind.plural);
            if name == own {
                continue;
            }
            if let Some(stored) = self.store.get(&Key::new(&definitions, None, &name)) {
                taken.add(&stored.value());
            } else {
                taken.resources.extend([kind.plural.clone(), kind.singular.clone()]);
                taken.resources.extend(kind.short_names.iter().cloned());
                taken.kinds.extend([kind.kind.clone(), kind.list_kind.clone()]);
            }
        }
        crd["status"] = definition::status(crd, &taken, &self.now());
    }

    /// Notes what there is to tidy up after a new or changed object.
    fn note(&self, subject: &Subject, stored: &Stored, ties: &Ties) {
        self.note_owners(subject, stored, ties);
        let Subject { kind, name, .. } = subject;
        match (kind.group.as_str(), kind.plural.as_str()) {
            ("", "namespaces") if ties.is_going => self.remind(Task::Namespace(name.clone())),
            (EXTENSIONS, "customresourcedefinitions") if ties.is_going => self.remind(Task::Definition(name.clone())),
            ("certificates.k8s.io", "certificatesigningrequests") => self.remind(Task::Request(name.clone())),
            (RBAC, "clusterroles") => self.remind(Task::Roles),
            (RBAC, "clusterrolebindings") => self.remind(Task::Requests),
            _ => {}
        }
    }

    fn note_owners(&self, subject: &Subject, stored: &Stored, ties: &Ties) {
        let mut owners = self.owners();
        // Who has changed it since takes note of that, and has the last word.
        let is_last = self.store.get(&subject.key).is_some_and(|last| last.revision() == stored.revision());
        let tasks = if is_last { owners.change(subject, ties) } else { Vec::new() };
        for task in tasks {
            self.remind(task);
        }
    }

    /// Notes what there is to tidy up after the end of an object.
    fn note_end(&self, subject: &Subject, ties: &Ties) {
        let Subject { kind, namespace, key, .. } = subject;
        let mut owners = self.owners();
        let tasks = owners.end(subject, ties, self.store.get(key).is_some());
        drop(owners);
        for task in tasks {
            self.remind(task);
        }
        if (kind.group.as_str(), kind.plural.as_str()) == (RBAC, "clusterroles") {
            self.remind(Task::Roles);
        }
        // Who waits for a namespace, or a kind, to be empty.
        if let Some(namespace) = namespace.as_deref().filter(|namespace| self.is_leaving(namespace)) {
            self.remind(Task::Namespace(namespace.to_owned()));
        }
        if kind.origin == Origin::Custom {
            self.remind(Task::Definition(format!("{}.{}", kind.plural, kind.group)));
        }
    }

    /// Whether a namespace is on its way out.
    fn is_leaving(&self, namespace: &str) -> bool {
        let stored = self.store.get(&Key::new(&Resource::new("", "namespaces"), None, namespace));
        stored.is_some_and(|stored| metadata::field(&stored.value(), "deletionTimestamp").is_some())
    }
}

fn is_established(crd: &Value) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|it| it["type"] == "Established" && it["status"] == "True")
}
