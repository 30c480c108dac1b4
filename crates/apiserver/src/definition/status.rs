//! What the server says about a definition: under which names its objects are served, and whether they are.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{approval::Approval, list, storage_version, structural, text, texts};
use crate::field::{ErrorKind, FieldError, Path};

/// The names that other kinds of the same group have taken.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// Names in addresses: plurals, singulars and short names.
    pub resources: BTreeSet<String>,
    /// Names in objects: of kinds and of their lists.
    pub kinds: BTreeSet<String>,
}

impl Taken {
    /// Adds the names that were accepted for another definition.
    pub fn add(&mut self, crd: &Value) {
        let Some(names) = crd.pointer("/status/acceptedNames") else { return };
        let one = |name: &str| names.get(name).and_then(Value::as_str).map(str::to_owned);
        self.resources.extend(["plural", "singular"].into_iter().filter_map(one));
        self.resources.extend(texts(names, "/shortNames").into_iter().map(str::to_owned));
        self.kinds.extend(["kind", "listKind"].into_iter().filter_map(one));
    }
}

/// The status of a definition at a time, such as `2026-01-01T00:00:00Z`, from the one that it has. Nothing changes where
/// nothing has.
#[must_use]
pub fn status(crd: &Value, taken: &Taken, now: &str) -> Value {
    let mut conditions = Conditions { list: list(crd, "/status/conditions").to_vec(), now };
    let naming = Naming::of(crd, taken);
    let (accepted, reason, message) = match &naming.conflict {
        None => ("True", "NoConflicts", "no conflicts found"),
        Some((reason, message)) => ("False", *reason, message.as_str()),
    };
    conditions.set("NamesAccepted", accepted, reason, message);
    if !super::is_true(crd, "Established") {
        match naming.conflict {
            None => {
                conditions.set("Established", "True", "InitialNamesAccepted", "the initial names have been accepted");
            }
            Some(_) => conditions.set("Established", "False", "NotAccepted", "not all names are accepted"),
        }
    }
    set_approval(crd, &mut conditions);
    set_structure(crd, &mut conditions);
    if crd.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string) {
        let message = "CustomResource deletion is in progress";
        conditions.set("Terminating", "True", "InstanceDeletionInProgress", message);
    }
    json!({
        "acceptedNames": naming.accepted,
        "conditions": conditions.list,
        "storedVersions": stored_versions(crd),
    })
}

/// The versions that objects may be kept in: those that they were, and the one that they are from now on.
pub(super) fn stored_versions(crd: &Value) -> Vec<&str> {
    let mut stored = texts(crd, "/status/storedVersions");
    stored.extend(storage_version(crd).filter(|current| !texts(crd, "/status/storedVersions").contains(current)));
    stored
}

fn set_approval(crd: &Value, conditions: &mut Conditions<'_>) {
    let approval = super::approval::of(crd);
    let (status, reason) = match approval {
        Approval::NotNeeded => return,
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        Approval::Approved => ("True", "ApprovedAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
    };
    conditions.set("KubernetesAPIApprovalPolicyConformant", status, reason, &approval.reason(crd));
}

/// Says of schemas from old times that they are not structural.
fn set_structure(crd: &Value, conditions: &mut Conditions<'_>) {
    let mut errors = Vec::new();
    let spec = Path::Root.field("spec");
    if crd.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true)) {
        errors.push(FieldError::new(ErrorKind::Invalid, &spec.field("preserveUnknownFields"), true, "must be false"));
    }
    let versions = spec.field("versions");
    for (index, version) in list(crd, "/spec/versions").iter().enumerate() {
        if let Some(schema) = super::schema_of(version) {
            errors.extend(structural::check(schema, &versions.index(index).field("schema").field("openAPIV3Schema")));
        }
    }
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    match texts.as_slice() {
        [] => conditions.list.retain(|condition| text(condition, "/type") != "NonStructuralSchema"),
        [only] => conditions.set("NonStructuralSchema", "True", "Violations", only),
        several => conditions.set("NonStructuralSchema", "True", "Violations", &format!("[{}]", several.join(", "))),
    }
}

/// Conditions, each with the time of its last change.
struct Conditions<'a> {
    list: Vec<Value>,
    now: &'a str,
}

impl Conditions<'_> {
    fn set(&mut self, type_: &str, status: &str, reason: &str, message: &str) {
        let known = self.list.iter_mut().find(|condition| text(condition, "/type") == type_);
        let unchanged = known.as_ref().filter(|known| text(known, "/status") == status);
        let time = unchanged.map(|known| text(known, "/lastTransitionTime")).filter(|time| !time.is_empty());
        let condition = json!({
            "lastTransitionTime": time.unwrap_or(self.now),
            "message": message,
            "reason": reason,
            "status": status,
            "type": type_,
        });
        match known {
            Some(known) => *known = condition,
            None => self.list.push(condition),
        }
    }
}

/// The names that a definition gets, and the last one that it does not get.
struct Naming {
    accepted: Map<String, Value>,
    conflict: Option<(&'static str, String)>,
}

impl Naming {
    fn of(crd: &Value, taken: &Taken) -> Self {
        let accepted = crd.pointer("/status/acceptedNames").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut naming = Self { accepted, conflict: None };
        let wanted = crd.pointer("/spec/names").unwrap_or(&Value::Null);
        naming.take(wanted, "plural", &taken.resources, "PluralConflict");
        naming.take(wanted, "singular", &taken.resources, "SingularConflict");
        naming.take_short_names(wanted, &taken.resources);
        naming.take(wanted, "kind", &taken.kinds, "KindConflict");
        naming.take(wanted, "listKind", &taken.kinds, "ListKindConflict");
        naming.put("categories", wanted.get("categories"));
        // These two are there even where they are empty.
        for name in ["kind", "plural"] {
            naming.accepted.entry(name).or_insert_with(|| "".into());
        }
        naming
    }

    fn take(&mut self, wanted: &Value, name: &str, taken: &BTreeSet<String>, reason: &'static str) {
        let requested = wanted.get(name).and_then(Value::as_str).unwrap_or_default();
        let is_ours = self.accepted.get(name).and_then(Value::as_str).unwrap_or_default() == requested;
        if !is_ours && taken.contains(requested) {
            self.conflict = Some((reason, in_use(requested)));
        } else {
            self.put(name, wanted.get(name));
        }
    }

    /// Short names are accepted all or not at all.
    fn take_short_names(&mut self, wanted: &Value, taken: &BTreeSet<String>) {
        let ours = self.accepted.get("shortNames").cloned().unwrap_or_default();
        let is_ours = |name: &str| ours.as_array().is_some_and(|ours| ours.iter().any(|ours| ours == name));
        let requested = texts(wanted, "/shortNames");
        let refused = requested.into_iter().filter(|name| !is_ours(name) && taken.contains(*name));
        let faults: Vec<_> = refused.map(in_use).collect();
        match faults.as_slice() {
            [] => self.put("shortNames", wanted.get("shortNames")),
            [only] => self.conflict = Some(("ShortNamesConflict", only.clone())),
            several => self.conflict = Some(("ShortNamesConflict", format!("[{}]", several.join(", ")))),
        }
    }

    fn put(&mut self, name: &str, value: Option<&Value>) {
        match value.filter(|value| !value.is_null()) {
            Some(value) => self.accepted.insert(name.to_owned(), value.clone()),
            None => self.accepted.remove(name),
        };
    }
}

fn in_use(name: &str) -> String {
    format!("{name:?} is already in use")
}
