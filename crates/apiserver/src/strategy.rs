//! What a write does to an object of a kind beside what was asked for, and what the kind's own rules are.
//!
//! A new object is stamped with its metadata first, then prepared, then checked. A changed one takes over what it may not change, then is
//! prepared and checked beside what is kept.

mod certificate;
mod config;
mod definition;
mod event;
mod finish;
mod kinds;
mod lease;
mod look;
mod namespace;
mod pod;
mod policy;
mod rbac;
mod service;
mod workload;

use serde_json::{Value, json};

use self::look::{alike, copy, member};
use crate::{
    failure::About,
    field::{ErrorKind, FieldError, Path},
    kind::{Kind, Origin, Version},
    metadata::{self, names::NameRule},
    user::{Part, User},
};

/// Fills in what objects of a built-in kind say where nothing is said.
pub fn defaults(kind: &Kind, object: &mut Value) {
    if kind.origin == Origin::Custom {
        return;
    }
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "secrets") => config::secret_defaults(object),
        ("", "namespaces") => namespace::defaults(object),
        ("", "pods") => pod::defaults(object),
        ("", "services") => service::defaults(object),
        ("" | "events.k8s.io", "events") => event::defaults(object),
        ("apps" | "batch", plural) => workload::defaults(plural, object),
        ("coordination.k8s.io", "leases") => lease::defaults(object),
        ("rbac.authorization.k8s.io", plural) => rbac::defaults(plural, object),
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition::defaults(object),
        ("admissionregistration.k8s.io", _) => policy::defaults(object),
        _ => {}
    }
    finish::zeros(kind, object);
}

/// What objects of a kind say that say nothing, where that is more than structures.
#[must_use]
pub fn blank(kind: &Kind, api_version: &str) -> Option<Value> {
    (kind.origin != Origin::Custom && kind.plural == "events").then(|| {
        let mut blank = json!({ "apiVersion": api_version, "metadata": {} });
        event::defaults(&mut blank);
        blank
    })
}

/// Makes an object that somebody wants to create one that can be kept. It has its name, its uid and its time already.
pub fn prepare_create(kind: &Kind, object: &mut Value, user: &User) {
    defaults(kind, object);
    if has_status(kind, object) {
        look::remove(object, "status");
    }
    match (kind.group.as_str(), kind.plural.as_str()) {
        _ if kind.origin == Origin::Custom => {}
        ("", "namespaces") => namespace::prepare_create(object),
        ("", "serviceaccounts") => config::clean_secrets(object),
        ("", "pods") => pod::prepare_create(object),
        ("batch", "jobs") => workload::select_own_pods(object),
        ("certificates.k8s.io", "certificatesigningrequests") => certificate::prepare_create(object, user),
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition::note_stored(object),
        _ => {}
    }
    finish::zeros(kind, object);
    if kind.has_generation() {
        metadata::set(object, "generation", Some(json!(1)));
    }
}

/// Makes a changed object one that can be kept: what this part of it may not change is as it was.
pub fn prepare_update(kind: &Kind, part: Part, new: &mut Value, old: &Value, now: &str) {
    defaults(kind, new);
    metadata::carry_over(new, old);
    match part {
        Part::Status => keep_all_but_status(kind, new, old, now),
        Part::Approval => certificate::keep_all_but_conditions(new, old, now),
        Part::Finalize => copy(old, new, "status"),
        Part::Whole | Part::Scale => keep_status(kind, new, old),
    }
    if kind.has_generation() && part != Part::Status && wants_more(kind, new, old) {
        let next = metadata::generation(old) + 1;
        metadata::set(new, "generation", Some(json!(next)));
    }
}

fn keep_all_but_status(kind: &Kind, new: &mut Value, old: &Value, now: &str) {
    if kind.origin == Origin::Custom {
        let status = member(new, "status").cloned();
        let managed = metadata::field(new, "managedFields").cloned();
        *new = old.clone();
        metadata::set(new, "managedFields", managed);
        look::put(new, "status", status);
        return;
    }
    let names: Vec<String> = look::members(new).chain(look::members(old)).map(str::to_owned).collect();
    for name in names.iter().filter(|name| !matches!(name.as_str(), "metadata" | "status" | "apiVersion" | "kind")) {
        copy(old, new, name);
    }
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("apps", "deployments") => metadata::set(new, "labels", metadata::field(old, "labels").cloned()),
        ("", "pods") => pod::keep_owners(new, old),
        ("certificates.k8s.io", _) => certificate::keep_decision(new, old, now),
        _ => {}
    }
}

fn keep_status(kind: &Kind, new: &mut Value, old: &Value) {
    if has_status(kind, new) {
        copy(old, new, "status");
    }
    match (kind.group.as_str(), kind.plural.as_str()) {
        _ if kind.origin == Origin::Custom => {}
        ("", "namespaces") => namespace::keep_finalizers(new, old),
        ("", "serviceaccounts") => config::clean_secrets(new),
        ("", "secrets") => config::keep_type(new, old),
        ("apps", "daemonsets") => workload::next_template(new, old),
        ("certificates.k8s.io", "certificatesigningrequests") => copy(old, new, "spec"),
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition::note_stored(new),
        _ => {}
    }
}

/// Whether something else is wanted than before, and not only said about the object.
fn wants_more(kind: &Kind, new: &Value, old: &Value) -> bool {
    let has_status = kind.origin != Origin::Custom || has_status(kind, new);
    let is_said = |name: &&str| *name == "metadata" || (has_status && *name == "status");
    let is_type = |name: &&str| kind.origin != Origin::Custom && matches!(*name, "apiVersion" | "kind");
    let mut names = look::members(new).chain(look::members(old)).filter(|name| !is_said(name) && !is_type(name));
    let annotations = |object| metadata::field(object, "annotations");
    let notes_count = kind.group == "apps" && kind.plural == "deployments";
    names.any(|name| !alike(member(new, name), member(old, name)))
        || (notes_count && !alike(annotations(new), annotations(old)))
}

/// Whether the status of objects is written apart from the rest.
fn has_status(kind: &Kind, object: &Value) -> bool {
    version_of(kind, object).is_some_and(|version| version.subresources.status)
}

/// The version that an object is written in.
fn version_of<'a>(kind: &'a Kind, object: &Value) -> Option<&'a Version> {
    let said = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let name = said.rsplit('/').next().unwrap_or_default();
    kind.versions.iter().find(|version| version.name == name).or_else(|| kind.stored())
}

/// The kind, as it is named where an object of it is invalid. Events are of one kind, whichever group they are sent to.
#[must_use]
pub fn about(kind: &Kind) -> About<'_> {
    let is_event = kind.origin != Origin::Custom && kind.group == "events.k8s.io";
    if is_event { About { group: "", name: &kind.kind } } else { kind.about() }
}

/// What is wrong with an object beside what its schema says.
#[must_use]
pub fn validate(kind: &Kind, part: Part, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let Some(old) = old else {
        let errors = rules_for_new(kind, new);
        return if errors.is_empty() { path_rules(kind, new) } else { errors };
    };
    let mut errors = path_rules(kind, new);
    errors.extend(metadata::update_rules(new, old));
    errors.extend(rules_for_changed(kind, part, new, old));
    errors
}

/// What all kinds share: names have to be fit for a path.
fn path_rules(kind: &Kind, object: &Value) -> Vec<FieldError> {
    metadata::rules(kind, object, NameRule::PathSegment)
}

fn rules_for_new(kind: &Kind, object: &Value) -> Vec<FieldError> {
    if kind.origin == Origin::Custom {
        let errors = type_rules(kind, object);
        return if errors.is_empty() { own_metadata_rules(kind, object) } else { errors };
    }
    let is_legacy_event = kind.group.is_empty() && kind.plural == "events";
    let mut errors = if is_legacy_event { Vec::new() } else { own_metadata_rules(kind, object) };
    errors.extend(own_rules(kind, object, None));
    errors
}

fn own_metadata_rules(kind: &Kind, object: &Value) -> Vec<FieldError> {
    let mut errors = metadata::rules(kind, object, NameRule::of(kind));
    // Kinds of the newer groups let everybody name finalizers as they like.
    let groups = ["", "apps", "batch", "certificates.k8s.io", "events.k8s.io", "rbac.authorization.k8s.io"];
    if kind.origin != Origin::Custom && groups.contains(&kind.group.as_str()) {
        errors.extend(namespace::qualified_finalizers(object));
    }
    errors
}

fn rules_for_changed(kind: &Kind, part: Part, new: &Value, old: &Value) -> Vec<FieldError> {
    if kind.origin == Origin::Custom {
        let errors = type_rules(kind, new);
        return if errors.is_empty() { metadata::update_rules(new, old) } else { errors };
    }
    match (kind.group.as_str(), kind.plural.as_str(), part) {
        ("certificates.k8s.io", _, _) => {
            let mut errors = own_metadata_rules(kind, new);
            errors.extend(certificate::rules(new, Some(old)));
            errors.extend(certificate::update_rules(part, new, old));
            errors.extend(metadata::update_rules(new, old));
            errors
        }
        ("", "namespaces", Part::Status | Part::Finalize) => {
            let mut errors = metadata::update_rules(new, old);
            errors.extend(namespace::part_rules(part, new));
            errors
        }
        (_, plural, Part::Status) => {
            let mut errors = metadata::update_rules(new, old);
            errors.extend(workload::status_rules(plural, new));
            errors
        }
        _ => whole_rules(kind, new, old),
    }
}

/// Most kinds look at a changed object as at a new one; workloads have had their metadata looked at when they were new.
fn whole_rules(kind: &Kind, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = metadata::update_rules(new, old);
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "secrets") => errors.extend(config::secret_update_rules(new, old)),
        ("", "configmaps") => errors.extend(config::config_map_update_rules(new, old)),
        ("", "events") | ("events.k8s.io", _) => {
            let mut own = own_rules(kind, new, Some(old));
            own.extend(event::update_rules(&kind.group, new, old));
            return own;
        }
        ("rbac.authorization.k8s.io", plural) => {
            let mut own = own_metadata_rules(kind, new);
            own.extend(own_rules(kind, new, Some(old)));
            own.extend(errors);
            own.extend(rbac::update_rules(plural, new, old));
            return own;
        }
        ("apps" | "batch" | "coordination.k8s.io", plural) => {
            errors.extend(own_rules(kind, new, Some(old)));
            errors.extend(workload::update_rules(plural, new, old));
            return errors;
        }
        _ => {}
    }
    errors.extend(own_metadata_rules(kind, new));
    errors.extend(own_rules(kind, new, Some(old)));
    errors
}

fn own_rules(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "secrets") => config::secret_rules(object),
        ("", "configmaps") => config::config_map_rules(object),
        ("", "namespaces") => namespace::rules(object),
        ("", "pods") => pod::rules(object),
        ("" | "events.k8s.io", "events") => event::rules(&kind.group, object, old.is_none()),
        ("apps" | "batch", plural) => workload::rules(plural, object),
        ("rbac.authorization.k8s.io", plural) => rbac::rules(plural, object),
        ("coordination.k8s.io", "leases") => lease::rules(object),
        ("certificates.k8s.io", "certificatesigningrequests") => certificate::rules(object, old),
        ("admissionregistration.k8s.io", plural) => policy::rules(plural, object),
        _ => Vec::new(),
    }
}

/// Objects of custom kinds have to say what they are.
fn type_rules(kind: &Kind, object: &Value) -> Vec<FieldError> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut errors = Vec::new();
    if text("kind") != kind.kind {
        let detail = format!("must be {}", kind.kind);
        errors.push(FieldError::new(ErrorKind::Invalid, &Path::Root.field("kind"), text("kind"), detail));
    }
    let Some(version) = version_of(kind, object) else { return errors };
    let wanted = kind.api_version(&version.name);
    if text("apiVersion") != wanted {
        let path = Path::Root.field("apiVersion");
        errors.push(FieldError::new(ErrorKind::Invalid, &path, text("apiVersion"), format!("must be {wanted}")));
    }
    errors
}

#[cfg(test)]
mod tests;
