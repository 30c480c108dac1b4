//! What metadata may say, when an object is new and when it changes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::names::{self, NameRule};
use crate::{
    field::{ErrorKind, FieldError, Path},
    kind::{Kind, Scope},
};

/// The most that all annotations together may say.
const ANNOTATIONS_SIZE: usize = 256 * 1024;
/// The longest name of a field manager.
const MANAGER_LENGTH: usize = 128;
/// The longest name of a subresource in managed fields.
const SUBRESOURCE_LENGTH: usize = 256;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The rules that metadata has to follow whether the object is new or not, with names as the rule says.
#[must_use]
pub fn rules(kind: &Kind, object: &Value, rule: NameRule) -> Vec<FieldError> {
    let path = Path::Root.field("metadata");
    let mut errors = Vec::new();
    check_names(object, rule, &path, &mut errors);
    check_namespace(kind, object, &path, &mut errors);
    let generation = super::generation(object);
    if generation < 0 {
        errors.push(invalid(&path.field("generation"), generation, "must be greater than or equal to 0"));
    }
    check_common(object, &path, &mut errors);
    check_finalizers(object, &path.field("finalizers"), &mut errors);
    check_managed_fields(object, &path.field("managedFields"), &mut errors);
    errors
}

/// The rules for what a change may do to metadata.
#[must_use]
pub fn update_rules(new: &Value, old: &Value) -> Vec<FieldError> {
    let path = Path::Root.field("metadata");
    let mut errors = Vec::new();
    if super::field(old, "deletionTimestamp").is_some() {
        check_no_new_finalizers(new, old, &path.field("finalizers"), &mut errors);
    }
    if super::text(new, "resourceVersion").is_empty() {
        errors.push(invalid(&path.field("resourceVersion"), "", "must be specified for an update"));
    }
    if super::generation(new) < super::generation(old) {
        errors.push(invalid(&path.field("generation"), super::generation(new), "must not be decremented"));
    }
    for name in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (is, was) = (super::field(new, name), super::field(old, name));
        if is != was && !(is_empty(is) && is_empty(was)) {
            let value = is.cloned().unwrap_or_else(|| unsaid(name));
            errors.push(invalid(&path.field(name), value, "field is immutable"));
        }
    }
    check_common(new, &path, &mut errors);
    check_managed_fields(new, &path.field("managedFields"), &mut errors);
    errors
}

/// What a field is in words where nothing is said.
fn unsaid(name: &str) -> Value {
    if matches!(name, "name" | "namespace" | "uid") { json!("") } else { Value::Null }
}

fn is_empty(value: Option<&Value>) -> bool {
    value.is_none_or(|value| value.as_str().is_some_and(str::is_empty))
}

fn invalid(path: &Path<'_>, value: impl Into<Value>, detail: impl Into<String>) -> FieldError {
    FieldError::new(ErrorKind::Invalid, path, value, detail)
}

fn check_names(object: &Value, rule: NameRule, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut problems = |field: &str, name: &str, is_prefix: bool| {
        let mut found = rule.problems(name, is_prefix);
        if rule == NameRule::Definition && name != defined_name(object) {
            found.push("must be spec.names.plural+\".\"+spec.group".to_owned());
        }
        errors.extend(found.into_iter().map(|problem| invalid(&path.field(field), name, problem)));
    };
    let generated = super::text(object, "generateName");
    if !generated.is_empty() {
        problems("generateName", generated, true);
    }
    match super::text(object, "name") {
        "" => {
            errors.push(FieldError::bare(ErrorKind::Required, &path.field("name"), "name or generateName is required"));
        }
        name => problems("name", name, false),
    }
}

/// The only name that the definition of a kind may have.
fn defined_name(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{}.{}", text("/spec/names/plural"), text("/spec/group"))
}

fn check_namespace(kind: &Kind, object: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (namespace, path) = (super::text(object, "namespace"), path.field("namespace"));
    match (kind.scope, namespace.is_empty()) {
        (Scope::Namespaced, true) => errors.push(FieldError::bare(ErrorKind::Required, &path, "")),
        (Scope::Namespaced, false) => {
            errors.extend(names::label(namespace).into_iter().map(|problem| invalid(&path, namespace, problem)));
        }
        (Scope::Cluster, false) => {
            errors.push(FieldError::bare(ErrorKind::Forbidden, &path, "not allowed on this type"));
        }
        (Scope::Cluster, true) => {}
    }
}

/// What is looked at when an object is new and again whenever it changes.
fn check_common(object: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    errors.extend(check_labels(super::field(object, "labels"), &path.field("labels")));
    check_annotations(super::field(object, "annotations"), &path.field("annotations"), errors);
    check_owners(super::field(object, "ownerReferences"), &path.field("ownerReferences"), errors);
}

/// What is wrong with labels.
#[must_use]
pub fn check_labels(labels: Option<&Value>, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        errors.extend(names::qualified(key).into_iter().map(|problem| invalid(path, key.as_str(), problem)));
        errors.extend(names::label_value(value).into_iter().map(|problem| invalid(path, value, problem)));
    }
    errors
}

/// What is wrong with a selector of labels.
#[must_use]
pub fn check_selector(selector: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = check_labels(selector.get("matchLabels"), &path.field("matchLabels"));
    let list = path.field("matchExpressions");
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for (index, expression) in expressions.into_iter().flatten().enumerate() {
        check_expression(expression, &list.index(index), &mut errors);
    }
    errors
}

fn check_expression(expression: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
    let values = expression.get("values").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    match text("operator") {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::bare(
            ErrorKind::Required,
            &path.field("values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::bare(
            ErrorKind::Forbidden,
            &path.field("values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.push(invalid(&path.field("operator"), other, "not a valid selector operator")),
    }
    let key = text("key");
    errors.extend(names::qualified(key).into_iter().map(|problem| invalid(&path.field("key"), key, problem)));
    let list = path.field("values");
    for (index, value) in values.iter().filter_map(Value::as_str).enumerate() {
        let problems = names::label_value(value);
        errors.extend(problems.into_iter().map(|problem| invalid(&list.index(index), value, problem)));
    }
}

fn check_annotations(annotations: Option<&Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in annotations.and_then(Value::as_object).into_iter().flatten() {
        size += key.len() + value.as_str().map_or(0, str::len);
        let problems = names::qualified(&key.to_lowercase());
        errors.extend(problems.into_iter().map(|problem| invalid(path, key.as_str(), problem)));
    }
    if size > ANNOTATIONS_SIZE {
        errors.push(too_long(path, ANNOTATIONS_SIZE));
    }
}

fn too_long(path: &Path<'_>, limit: usize) -> FieldError {
    FieldError::bare(ErrorKind::TooLong, path, format!("may not be more than {limit} bytes"))
}

fn check_owners(owners: Option<&Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut controller: Option<String> = None;
    for owner in owners.and_then(Value::as_array).into_iter().flatten() {
        let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default();
        check_owner(owner, path, errors);
        if owner.get("controller").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        let this = format!("{}/{}", text("kind"), text("name"));
        match &controller {
            Some(first) => {
                let all = owners.cloned().unwrap_or_default();
                let only = "Only one reference can have Controller set to true.";
                let detail = format!("{only} Found \"true\" in references for {first} and {this}");
                errors.push(invalid(path, all, detail));
            }
            None => controller = Some(this),
        }
    }
}

fn check_owner(owner: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default();
    let api_version = text("apiVersion");
    let version = api_version.rsplit('/').next().unwrap_or_default();
    if version.is_empty() || api_version.matches('/').count() > 1 {
        errors.push(invalid(&path.field("apiVersion"), api_version, "version must not be empty"));
    }
    for name in ["kind", "name", "uid"] {
        if text(name).is_empty() {
            errors.push(invalid(&path.field(name), "", "must not be empty"));
        }
    }
    if api_version == "v1" && text("kind") == "Event" {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(invalid(path, owner.clone(), detail));
    }
}

fn finalizers(object: &Value) -> Vec<&str> {
    let list = super::field(object, "finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn check_finalizers(object: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let finalizers = finalizers(object);
    for finalizer in &finalizers {
        errors.extend(names::qualified(finalizer).into_iter().map(|problem| invalid(path, *finalizer, problem)));
    }
    if finalizers.contains(&ORPHAN) && finalizers.contains(&FOREGROUND) {
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        errors.push(invalid(path, json!(finalizers), detail));
    }
}

fn check_no_new_finalizers(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let known: BTreeSet<&str> = finalizers(old).into_iter().collect();
    let extra: BTreeSet<&str> = finalizers(new).into_iter().filter(|name| !known.contains(name)).collect();
    if !extra.is_empty() {
        let listed: Vec<String> = extra.iter().map(|name| format!("{name:?}")).collect();
        let rule = "no new finalizers can be added if the object is being deleted";
        let detail = format!("{rule}, found new finalizers []string{{{}}}", listed.join(", "));
        errors.push(FieldError::bare(ErrorKind::Forbidden, path, detail));
    }
}

fn check_managed_fields(object: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let entries = super::field(object, "managedFields").and_then(Value::as_array);
    for (index, entry) in entries.into_iter().flatten().enumerate() {
        let path = path.index(index);
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        if !matches!(text("operation"), "Apply" | "Update") {
            errors.push(invalid(&path.field("operation"), text("operation"), "must be `Apply` or `Update`"));
        }
        if !matches!(text("fieldsType"), "" | "FieldsV1") {
            errors.push(invalid(&path.field("fieldsType"), text("fieldsType"), "must be `FieldsV1`"));
        }
        if text("manager").len() > MANAGER_LENGTH {
            errors.push(too_long(&path.field("manager"), MANAGER_LENGTH));
        }
        if text("subresource").len() > SUBRESOURCE_LENGTH {
            errors.push(too_long(&path.field("subresource"), SUBRESOURCE_LENGTH));
        }
    }
}

/// What to tell whoever adds finalizers to objects of custom kinds that others might add as well.
#[must_use]
pub fn finalizer_warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let known: BTreeSet<&str> = old.map(finalizers).unwrap_or_default().into_iter().collect();
    let added: BTreeSet<&str> = finalizers(new).into_iter().filter(|name| !known.contains(name)).collect();
    let mut warnings = Vec::new();
    for name in added {
        let warning = |text: &str| format!("metadata.finalizers: {name:?}: {text}");
        warnings.extend(names::qualified(name).iter().map(|problem| warning(problem)));
        if !name.contains('/') && ![ORPHAN, FOREGROUND, "kubernetes"].contains(&name) {
            let with_path = if name.contains('.') { " including a path (/)" } else { "" };
            let why = "to avoid accidental conflicts with other finalizer writers";
            warnings.push(warning(&format!("prefer a domain-qualified finalizer name{with_path} {why}")));
        }
    }
    warnings
}
