//! The kinds that run pods.

mod fill;
mod rollout;

use serde_json::{Map, Value, json};

pub(super) use self::fill::{defaults, next_template, select_own_pods};
use super::{
    look::{alike, at, list, member, number, text},
    pod::{restart_policy, template_rules},
    rbac::unsupported,
};
use crate::{
    field::{ErrorKind, FieldError, Path},
    metadata::{self, check_selector},
    selector::Labels,
};

/// What is wrong with an object of such a kind.
pub(super) fn rules(plural: &str, value: &Value) -> Vec<FieldError> {
    let none = json!({});
    let spec = member(value, "spec").unwrap_or(&none);
    let path = Path::Root.field("spec");
    match plural {
        "deployments" => deployment_rules(spec, &path),
        "replicasets" => {
            let mut errors = non_negative(spec, &["replicas", "minReadySeconds"], &path);
            errors.extend(replica_rules(spec, "deployment", "ReplicaSet", &path));
            errors
        }
        "statefulsets" => stateful_set_rules(spec, &path),
        "daemonsets" => daemon_set_rules(spec, &path),
        "jobs" => {
            let mut errors = job_rules(spec, &path);
            errors.extend(job_selector_rules(spec, &path));
            errors
        }
        "cronjobs" => cron_job_rules(value, spec, &path),
        _ => Vec::new(),
    }
}

/// What a change may not do to an object of such a kind.
pub(super) fn update_rules(plural: &str, new: &Value, old: &Value) -> Vec<FieldError> {
    let path = Path::Root.field("spec");
    let fixed: &[&str] = match plural {
        "deployments" | "replicasets" | "daemonsets" => &["selector"],
        "jobs" => &[
            "completions",
            "selector",
            "template",
            "completionMode",
            "podFailurePolicy",
            "backoffLimitPerIndex",
            "managedBy",
            "successPolicy",
        ],
        "statefulsets" => return stateful_set_update_rules(new, old),
        _ => &[],
    };
    let spec = |object, field: &str| at(object, &format!("/spec/{field}"));
    let changed = fixed.iter().filter(|field| !alike(spec(new, field), spec(old, field)));
    let error = |field: &&str| {
        let value = spec(new, field).cloned().unwrap_or_default();
        FieldError::new(ErrorKind::Invalid, &path.field(field), value, "field is immutable")
    };
    changed.map(error).collect()
}

fn stateful_set_update_rules(new: &Value, old: &Value) -> Vec<FieldError> {
    const FREE: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let names = |object: &'_ Value| -> Vec<String> {
        let spec = at(object, "/spec").and_then(Value::as_object);
        spec.into_iter().flat_map(Map::keys).filter(|name| !FREE.contains(&name.as_str())).cloned().collect()
    };
    let same = |name: &String| alike(at(new, &format!("/spec/{name}")), at(old, &format!("/spec/{name}")));
    if names(new).iter().chain(&names(old)).all(same) {
        return Vec::new();
    }
    let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
    vec![FieldError::bare(ErrorKind::Forbidden, &Path::Root.field("spec"), detail)]
}

/// What is wrong with what is reported of an object of such a kind.
pub(super) fn status_rules(plural: &str, value: &Value) -> Vec<FieldError> {
    let parts: &[&str] = match plural {
        "deployments" => &["updatedReplicas", "readyReplicas", "availableReplicas"],
        "replicasets" => &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        "statefulsets" => &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
        _ => return Vec::new(),
    };
    let path = Path::Root.field("status");
    let none = json!({});
    let status = member(value, "status").unwrap_or(&none);
    let count = |name: &str| number(status, &format!("/{name}")).unwrap_or_default();
    let mut errors = non_negative(status, &["observedGeneration", "replicas"], &path);
    errors.extend(non_negative(status, parts, &path));
    for part in parts.iter().filter(|part| count(part) > count("replicas")) {
        let detail = "cannot be greater than status.replicas";
        errors.push(FieldError::new(ErrorKind::Invalid, &path.field(part), count(part), detail));
    }
    if count("availableReplicas") > count("readyReplicas") {
        let of = if plural == "statefulsets" { "status.readyReplicas" } else { "readyReplicas" };
        let path = path.field("availableReplicas");
        let available = count("availableReplicas");
        errors.push(FieldError::new(ErrorKind::Invalid, &path, available, format!("cannot be greater than {of}")));
    }
    errors
}

fn non_negative(spec: &Value, fields: &[&str], path: &Path<'_>) -> Vec<FieldError> {
    let negative = fields.iter().filter_map(|field| {
        let number = number(spec, &format!("/{field}")).filter(|number| *number < 0)?;
        let detail = "must be greater than or equal to 0";
        Some(FieldError::new(ErrorKind::Invalid, &path.field(field), number, detail))
    });
    negative.collect()
}

fn deployment_rules(spec: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = non_negative(spec, &["replicas"], path);
    errors.extend(replica_rules(spec, "deployment", "ReplicaSet", path));
    errors.extend(rollout::deployment_rules(spec, &path.field("strategy")));
    errors.extend(non_negative(spec, &["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"], path));
    if let Some(deadline) = number(spec, "/progressDeadlineSeconds")
        && deadline <= number(spec, "/minReadySeconds").unwrap_or_default()
    {
        let path = path.field("progressDeadlineSeconds");
        errors.push(FieldError::new(ErrorKind::Invalid, &path, deadline, "must be greater than minReadySeconds"));
    }
    errors
}

/// The selector, and the template with labels that it selects.
fn replica_rules(spec: &Value, kind: &str, owner: &str, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = selector_rules(spec, kind, path);
    errors.extend(matching_rule(spec, path));
    errors.extend(template_rules(template(spec), &path.field("template")));
    errors.extend(always_rules(spec, owner, path));
    errors
}

fn template(spec: &Value) -> &Value {
    member(spec, "template").unwrap_or(&Value::Null)
}

fn selector_rules(spec: &Value, kind: &str, path: &Path<'_>) -> Vec<FieldError> {
    let path = path.field("selector");
    let Some(selector) = member(spec, "selector") else {
        return vec![FieldError::bare(ErrorKind::Required, &path, "")];
    };
    let mut errors = check_selector(selector, &path);
    if is_empty(selector) {
        let detail = format!("empty selector is invalid for {kind}");
        errors.push(FieldError::new(ErrorKind::Invalid, &path, selector.clone(), detail));
    }
    errors
}

fn is_empty(selector: &Value) -> bool {
    alike(member(selector, "matchLabels"), None) && list(selector, "/matchExpressions").is_empty()
}

fn matching_rule(spec: &Value, path: &Path<'_>) -> Option<FieldError> {
    let labels = at(template(spec), "/metadata/labels");
    // What selects nothing in particular selects all; what does not select selects none.
    if member(spec, "selector").is_some_and(|selector| selects(selector, labels)) {
        return None;
    }
    let (template, detail) = (path.field("template"), "`selector` does not match template `labels`");
    let metadata = template.field("metadata");
    let value = labels.cloned().unwrap_or_default();
    Some(FieldError::new(ErrorKind::Invalid, &metadata.field("labels"), value, detail))
}

/// Whether pods with these labels are selected. What can not be read is told of elsewhere.
fn selects(selector: &Value, labels: Option<&Value>) -> bool {
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    Labels::read(Some(selector)).map_or(true, |selector| selector.holds_of(label))
}

/// Pods that are to be there all the time are restarted, and have no deadline.
fn always_rules(spec: &Value, owner: &str, path: &Path<'_>) -> Vec<FieldError> {
    let template_path = path.field("template");
    let path = template_path.field("spec");
    let mut errors = Vec::new();
    let restart = restart_policy(template(spec));
    if restart != "Always" {
        errors.push(unsupported(&path.field("restartPolicy"), restart, &["Always"]));
    }
    if number(template(spec), "/spec/activeDeadlineSeconds").is_some() {
        let detail = format!("activeDeadlineSeconds in {owner} is not Supported");
        errors.push(FieldError::bare(ErrorKind::Forbidden, &path.field("activeDeadlineSeconds"), detail));
    }
    errors
}

fn stateful_set_rules(spec: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = rollout::stateful_set_rules(spec, path);
    errors.extend(non_negative(spec, &["replicas", "minReadySeconds"], path));
    errors.extend(selector_rules(spec, "statefulset", path));
    errors.extend(matching_rule(spec, path));
    errors.extend(template_rules(&with_claims(spec), &path.field("template")));
    errors.extend(always_rules(spec, "StatefulSet", path));
    errors
}

/// The template with the volumes that claims bring.
fn with_claims(spec: &Value) -> Value {
    let mut template = template(spec).clone();
    let claims = list(spec, "/volumeClaimTemplates").iter().map(|claim| metadata::text(claim, "name"));
    let claims: Vec<&str> = claims.collect();
    if claims.is_empty() {
        return template;
    }
    let kept = list(&template, "/spec/volumes").iter().filter(|volume| !claims.contains(&text(volume, "/name")));
    let brought = claims.iter().map(|name| json!({ "name": name, "persistentVolumeClaim": { "claimName": name } }));
    let volumes: Vec<Value> = brought.chain(kept.cloned()).collect();
    if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("volumes".to_owned(), Value::Array(volumes));
    }
    template
}

fn daemon_set_rules(spec: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let selector_path = path.field("selector");
    let selector = member(spec, "selector");
    errors.extend(selector.into_iter().flat_map(|selector| check_selector(selector, &selector_path)));
    errors.extend(matching_rule(spec, path));
    if let Some(selector) = selector.filter(|selector| is_empty(selector)) {
        let detail = "empty selector is invalid for daemonset";
        errors.push(FieldError::new(ErrorKind::Invalid, &selector_path, selector.clone(), detail));
    }
    errors.extend(template_rules(template(spec), &path.field("template")));
    errors.extend(always_rules(spec, "DaemonSet", path));
    errors.extend(non_negative(spec, &["minReadySeconds"], path));
    errors.extend(rollout::daemon_set_rules(spec, &path.field("updateStrategy")));
    errors.extend(non_negative(spec, &["revisionHistoryLimit"], path));
    errors
}

fn job_rules(spec: &Value, path: &Path<'_>) -> Vec<FieldError> {
    const COUNTS: &[&str] = &[
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    const MODES: &[&str] = &["NonIndexed", "Indexed"];
    let mut errors = non_negative(spec, COUNTS, path);
    let mode = text(spec, "/completionMode");
    if !mode.is_empty() && !MODES.contains(&mode) {
        errors.push(unsupported(&path.field("completionMode"), mode, MODES));
    }
    if mode == "Indexed" && number(spec, "/completions").is_none() {
        let detail = "when completion mode is Indexed";
        errors.push(FieldError::bare(ErrorKind::Required, &path.field("completions"), detail));
    }
    let template_path = path.field("template");
    errors.extend(template_rules(template(spec), &template_path));
    let spec_path = template_path.field("spec");
    let restart_path = spec_path.field("restartPolicy");
    match restart_policy(template(spec)) {
        "OnFailure" | "Never" => {}
        "" | "Always" => {
            let detail = "valid values: \"OnFailure\", \"Never\"";
            errors.push(FieldError::bare(ErrorKind::Required, &restart_path, detail));
        }
        other => errors.push(unsupported(&restart_path, other, &["OnFailure", "Never"])),
    }
    errors
}

fn job_selector_rules(spec: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let Some(selector) = member(spec, "selector") else {
        return vec![FieldError::bare(ErrorKind::Required, &path.field("selector"), "")];
    };
    let mut errors = check_selector(selector, &path.field("selector"));
    errors.extend(matching_rule(spec, path));
    errors
}

fn cron_job_rules(value: &Value, spec: &Value, path: &Path<'_>) -> Vec<FieldError> {
    const POLICIES: &[&str] = &["Allow", "Forbid", "Replace"];
    let mut errors = Vec::new();
    let schedule = text(spec, "/schedule");
    if schedule.is_empty() {
        errors.push(FieldError::bare(ErrorKind::Required, &path.field("schedule"), ""));
    } else if schedule.contains("TZ") {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(FieldError::new(ErrorKind::Invalid, &path.field("schedule"), schedule, detail));
    }
    errors.extend(non_negative(spec, &["startingDeadlineSeconds"], path));
    let policy = text(spec, "/concurrencyPolicy");
    if !POLICIES.contains(&policy) {
        errors.push(unsupported(&path.field("concurrencyPolicy"), policy, POLICIES));
    }
    let job = at(spec, "/jobTemplate/spec").unwrap_or(&Value::Null);
    let template = path.field("jobTemplate");
    let job_path = template.field("spec");
    errors.extend(job_rules(job, &job_path));
    if let Some(selector) = member(job, "selector") {
        let detail = "`selector` will be auto-generated";
        errors.push(FieldError::new(ErrorKind::Invalid, &job_path.field("selector"), selector.clone(), detail));
    }
    errors.extend(non_negative(spec, &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], path));
    let name = metadata::text(value, "name");
    if name.len() > 52 {
        let metadata = Path::Root.field("metadata");
        let detail = "must be no more than 52 characters";
        errors.push(FieldError::new(ErrorKind::Invalid, &metadata.field("name"), name, detail));
    }
    errors
}
