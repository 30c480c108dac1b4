//! Policies of admission and their bindings, beside the expressions in them.

use serde_json::{Value, json};

use super::{
    look::{fill, list, list_mut, member, object, text, texts},
    rbac::unsupported,
};
use crate::{
    field::{ErrorKind, FieldError, Path},
    metadata::{check_selector, names},
};

/// Fills in what policies, bindings and webhooks say where nothing is said.
pub(super) fn defaults(value: &mut Value) {
    let is_policy = text(value, "/kind").ends_with("AdmissionPolicy");
    let has_spec = text(value, "/kind").contains("AdmissionPolicy");
    if let Some(spec) = Some(&mut *value).filter(|_| has_spec).and_then(|value| object(value, "spec")) {
        if is_policy {
            fill(spec, "failurePolicy", "Fail");
        }
        for name in ["matchConstraints", "matchResources"] {
            if let Some(matched) = spec.get_mut(name).filter(|matched| matched.is_object()) {
                match_defaults(matched);
            }
        }
    }
    for webhook in list_mut(value, "/webhooks") {
        fill(webhook, "failurePolicy", "Fail");
        fill(webhook, "timeoutSeconds", 10);
        match_defaults(webhook);
        for rule in list_mut(webhook, "/rules") {
            fill(rule, "scope", "*");
        }
        if let Some(service) = webhook.pointer_mut("/clientConfig/service").filter(|service| service.is_object()) {
            fill(service, "port", 443);
        }
    }
}

fn match_defaults(matched: &mut Value) {
    fill(matched, "matchPolicy", "Equivalent");
    for name in ["namespaceSelector", "objectSelector"] {
        object(matched, name);
    }
    for name in ["/resourceRules", "/excludeResourceRules"] {
        for rule in list_mut(matched, name) {
            fill(rule, "scope", "*");
        }
    }
}

/// What is wrong with a policy or binding.
pub(super) fn rules(plural: &str, value: &Value) -> Vec<FieldError> {
    match plural {
        "validatingadmissionpolicies" => policy_rules(value),
        "validatingadmissionpolicybindings" => binding_rules(value),
        _ => Vec::new(),
    }
}

fn required(path: &Path<'_>, detail: &str) -> FieldError {
    FieldError::bare(ErrorKind::Required, path, detail)
}

fn policy_rules(policy: &Value) -> Vec<FieldError> {
    let path = Path::Root.field("spec");
    let none = json!({});
    let spec = member(policy, "spec").unwrap_or(&none);
    let mut errors = Vec::new();
    let failure = text(spec, "/failurePolicy");
    if failure.is_empty() {
        errors.push(required(&path.field("failurePolicy"), ""));
    } else if !matches!(failure, "Fail" | "Ignore") {
        errors.push(unsupported(&path.field("failurePolicy"), failure, &["Fail", "Ignore"]));
    }
    let constraints = path.field("matchConstraints");
    match member(spec, "matchConstraints") {
        None => errors.push(required(&constraints, "")),
        Some(matched) => {
            errors.extend(match_rules(matched, &constraints));
            if list(matched, "/resourceRules").is_empty() {
                errors.push(required(&constraints.field("resourceRules"), ""));
            }
        }
    }
    errors.extend(variable_rules(spec, &path.field("variables")));
    let (validations, annotations) = (list(spec, "/validations"), list(spec, "/auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.push(required(&path.field("validations"), detail));
        errors.push(required(&path.field("auditAnnotations"), detail));
    }
    let path = path.field("validations");
    for (index, validation) in validations.iter().enumerate() {
        errors.extend(validation_rules(validation, &path.index(index)));
    }
    errors
}

fn variable_rules(spec: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, variable) in list(spec, "/variables").iter().enumerate() {
        let path = path.index(index);
        if text(variable, "/name").trim().is_empty() {
            errors.push(required(&path.field("name"), "name is not specified"));
        }
        if text(variable, "/expression").trim().is_empty() {
            errors.push(required(&path.field("expression"), "expression is not specified"));
        }
    }
    errors
}

fn validation_rules(validation: &Value, path: &Path<'_>) -> Vec<FieldError> {
    const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"];
    let mut errors = Vec::new();
    if text(validation, "/expression").trim().is_empty() {
        errors.push(required(&path.field("expression"), "expression is not specified"));
    }
    for name in ["messageExpression", "message"] {
        let said = member(validation, name).and_then(Value::as_str).unwrap_or_default();
        let invalid = |detail: &str| FieldError::new(ErrorKind::Invalid, &path.field(name), said, detail);
        if !said.is_empty() && said.trim().is_empty() {
            errors.push(invalid("must be non-empty if specified"));
        } else if name == "message" && said.trim().contains('\n') {
            errors.push(invalid("must not contain line breaks"));
        }
    }
    let reason = text(validation, "/reason");
    if !reason.is_empty() && !REASONS.contains(&reason) {
        errors.push(unsupported(&path.field("reason"), reason, REASONS));
    }
    errors
}

fn binding_rules(binding: &Value) -> Vec<FieldError> {
    const ACTIONS: &[&str] = &["Audit", "Deny", "Warn"];
    let path = Path::Root.field("spec");
    let mut errors = Vec::new();
    let name = text(binding, "/spec/policyName");
    if name.is_empty() {
        errors.push(required(&path.field("policyName"), ""));
    } else {
        let invalid = |problem: String| FieldError::new(ErrorKind::Invalid, &path.field("policyName"), name, problem);
        errors.extend(names::subdomain(name).into_iter().map(invalid));
    }
    if let Some(matched) = binding.pointer("/spec/matchResources").filter(|matched| matched.is_object()) {
        errors.extend(match_rules(matched, &path.field("matchResources")));
    }
    let path = path.field("validationActions");
    let actions = texts(binding, "/spec/validationActions");
    if actions.is_empty() {
        errors.push(required(&path, ""));
    }
    for (index, action) in actions.iter().enumerate() {
        if !ACTIONS.contains(action) {
            errors.push(unsupported(&path.index(index), *action, ACTIONS));
        }
        if actions[..index].contains(action) {
            errors.push(FieldError::new(ErrorKind::Duplicate, &path.index(index), *action, ""));
        }
    }
    errors
}

fn match_rules(matched: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let policy = text(matched, "/matchPolicy");
    if !matches!(policy, "Exact" | "Equivalent") {
        errors.push(unsupported(&path.field("matchPolicy"), policy, &["Equivalent", "Exact"]));
    }
    for name in ["namespaceSelector", "objectSelector"] {
        match member(matched, name) {
            None => errors.push(required(&path.field(name), "")),
            Some(selector) => errors.extend(check_selector(selector, &path.field(name))),
        }
    }
    for name in ["resourceRules", "excludeResourceRules"] {
        let path = path.field(name);
        for (index, rule) in list(matched, &format!("/{name}")).iter().enumerate() {
            errors.extend(resource_rules(rule, &path.index(index)));
        }
    }
    errors
}

fn resource_rules(rule: &Value, path: &Path<'_>) -> Vec<FieldError> {
    const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    let mut errors = Vec::new();
    let operations = texts(rule, "/operations");
    errors.extend(list_rule(
        &operations,
        &path.field("operations"),
        "if '*' is present, must not specify other operations",
    ));
    for (index, operation) in operations.iter().enumerate().filter(|(_, name)| !OPERATIONS.contains(name)) {
        errors.push(unsupported(&path.field("operations").index(index), *operation, OPERATIONS));
    }
    let groups = texts(rule, "/apiGroups");
    errors.extend(list_rule(&groups, &path.field("apiGroups"), "if '*' is present, must not specify other API groups"));
    let versions = texts(rule, "/apiVersions");
    let detail = "if '*' is present, must not specify other API versions";
    errors.extend(list_rule(&versions, &path.field("apiVersions"), detail));
    if texts(rule, "/resources").is_empty() {
        errors.push(required(&path.field("resources"), ""));
    }
    let scope = text(rule, "/scope");
    if !matches!(scope, "" | "*" | "Cluster" | "Namespaced") {
        errors.push(unsupported(&path.field("scope"), scope, &["*", "Cluster", "Namespaced"]));
    }
    errors
}

fn list_rule(items: &[&str], path: &Path<'_>, detail: &str) -> Option<FieldError> {
    if items.is_empty() {
        return Some(required(path, ""));
    }
    let mixed = items.len() > 1 && items.contains(&"*");
    mixed.then(|| FieldError::new(ErrorKind::Invalid, path, json!(items), detail))
}
