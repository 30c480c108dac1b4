//! Roles and their bindings.

use serde_json::{Value, json};

use super::look::{alike, fill, list, list_mut, member, object, text};
use crate::{
    field::{ErrorKind, FieldError, Path},
    metadata::{check_selector, names},
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Fills in the groups of what is bound, and says that there are no rules where there are none.
pub(super) fn defaults(plural: &str, value: &mut Value) {
    if plural.ends_with("roles") {
        if let Some(members) = value.as_object_mut() {
            members.entry("rules").or_insert(Value::Null);
        }
        return;
    }
    if let Some(role) = object(value, "roleRef") {
        fill(role, "apiGroup", GROUP);
    }
    for subject in list_mut(value, "/subjects") {
        if matches!(text(subject, "/kind"), "User" | "Group") {
            fill(subject, "apiGroup", GROUP);
        }
    }
}

/// What is wrong with a role or binding.
pub(super) fn rules(plural: &str, value: &Value) -> Vec<FieldError> {
    match plural {
        "roles" => policy_rules(value, true),
        "clusterroles" => {
            let mut errors = policy_rules(value, false);
            errors.extend(aggregation_rules(value));
            errors
        }
        "rolebindings" => binding_rules(value, true),
        "clusterrolebindings" => binding_rules(value, false),
        _ => Vec::new(),
    }
}

/// What a change may not do: a binding binds to one role for all time.
pub(super) fn update_rules(plural: &str, new: &Value, old: &Value) -> Vec<FieldError> {
    if !plural.ends_with("bindings") || alike(member(new, "roleRef"), member(old, "roleRef")) {
        return Vec::new();
    }
    // The real server shows its own record here, with its own names of fields.
    let role = json!({
        "APIGroup": text(new, "/roleRef/apiGroup"),
        "Kind": text(new, "/roleRef/kind"),
        "Name": text(new, "/roleRef/name"),
    });
    vec![FieldError::new(ErrorKind::Invalid, &Path::Root.field("roleRef"), role, "cannot change roleRef")]
}

fn policy_rules(role: &Value, is_namespaced: bool) -> Vec<FieldError> {
    let path = Path::Root.field("rules");
    let rules = list(role, "/rules").iter().enumerate();
    rules.flat_map(|(index, rule)| policy_rule(rule, is_namespaced, &path.index(index))).collect()
}

fn policy_rule(rule: &Value, is_namespaced: bool, path: &Path<'_>) -> Vec<FieldError> {
    let is_empty = |name: &str| list(rule, name).is_empty();
    let required = |name: &str, detail: &str| FieldError::bare(ErrorKind::Required, &path.field(name), detail);
    let mut errors = Vec::new();
    if is_empty("/verbs") {
        errors.push(required("verbs", "verbs must contain at least one value"));
    }
    if !is_empty("/nonResourceURLs") {
        let urls = json!(list(rule, "/nonResourceURLs"));
        let field = path.field("nonResourceURLs");
        let invalid = |detail: &str| FieldError::new(ErrorKind::Invalid, &field, urls.clone(), detail);
        if is_namespaced {
            errors.push(invalid("namespaced rules cannot apply to non-resource URLs"));
        }
        if !is_empty("/apiGroups") || !is_empty("/resources") || !is_empty("/resourceNames") {
            errors.push(invalid("rules cannot apply to both regular resources and non-resource URLs"));
        }
        return errors;
    }
    if is_empty("/apiGroups") {
        errors.push(required("apiGroups", "resource rules must supply at least one api group"));
    }
    if is_empty("/resources") {
        errors.push(required("resources", "resource rules must supply at least one resource"));
    }
    errors
}

fn aggregation_rules(role: &Value) -> Vec<FieldError> {
    let Some(rule) = member(role, "aggregationRule") else { return Vec::new() };
    let aggregation = Path::Root.field("aggregationRule");
    let path = aggregation.field("clusterRoleSelectors");
    let selectors = list(rule, "/clusterRoleSelectors");
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        return vec![FieldError::bare(ErrorKind::Required, &path, detail)];
    }
    let numbered = selectors.iter().enumerate();
    numbered.flat_map(|(index, selector)| check_selector(selector, &path.index(index))).collect()
}

fn binding_rules(binding: &Value, is_namespaced: bool) -> Vec<FieldError> {
    let path = Path::Root.field("roleRef");
    let mut errors = Vec::new();
    errors.extend(group_rule(text(binding, "/roleRef/apiGroup"), &path));
    let kinds: &[&str] = if is_namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    let kind = text(binding, "/roleRef/kind");
    if !kinds.contains(&kind) {
        errors.push(unsupported(&path.field("kind"), kind, kinds));
    }
    let name = text(binding, "/roleRef/name");
    if name.is_empty() {
        errors.push(FieldError::bare(ErrorKind::Required, &path.field("name"), ""));
    }
    let invalid = |problem: String| FieldError::new(ErrorKind::Invalid, &path.field("name"), name, problem);
    errors.extend(names::path_segment(name).into_iter().map(invalid));
    let subjects = Path::Root.field("subjects");
    for (index, subject) in list(binding, "/subjects").iter().enumerate() {
        errors.extend(subject_rules(subject, is_namespaced, &subjects.index(index)));
    }
    errors
}

fn subject_rules(subject: &Value, is_namespaced: bool, path: &Path<'_>) -> Vec<FieldError> {
    let (name, group) = (text(subject, "/name"), text(subject, "/apiGroup"));
    let mut errors = Vec::new();
    if name.is_empty() {
        errors.push(FieldError::bare(ErrorKind::Required, &path.field("name"), ""));
    }
    match text(subject, "/kind") {
        "ServiceAccount" => {
            let problems = if name.is_empty() { Vec::new() } else { names::subdomain(name) };
            let invalid = |problem: String| FieldError::new(ErrorKind::Invalid, &path.field("name"), name, problem);
            errors.extend(problems.into_iter().map(invalid));
            if !group.is_empty() {
                errors.push(unsupported(&path.field("apiGroup"), group, &[""]));
            }
            if !is_namespaced && text(subject, "/namespace").is_empty() {
                errors.push(FieldError::bare(ErrorKind::Required, &path.field("namespace"), ""));
            }
        }
        "User" | "Group" => errors.extend(group_rule(group, path)),
        other => errors.push(unsupported(&path.field("kind"), other, &["ServiceAccount", "User", "Group"])),
    }
    errors
}

fn group_rule(group: &str, path: &Path<'_>) -> Option<FieldError> {
    (group != GROUP).then(|| unsupported(&path.field("apiGroup"), group, &[GROUP]))
}

/// What is said of a value that is none of those that are supported.
pub(super) fn unsupported(path: &Path<'_>, value: impl Into<Value>, supported: &[&str]) -> FieldError {
    let listed: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
    FieldError::new(ErrorKind::NotSupported, path, value, format!("supported values: {}", listed.join(", ")))
}
