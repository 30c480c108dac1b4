//! The containers of pods.

use serde_json::Value;

use super::super::{
    look::{list, member, number, text},
    rbac::unsupported,
};
use crate::{
    field::{ErrorKind, FieldError, Path},
    metadata::names,
};

/// What is wrong with the containers of a pod that has these volumes.
pub(super) fn container_rules(spec: &Value, volumes: &[&str], path: &Path<'_>) -> Vec<FieldError> {
    let (mut errors, mut seen) = (Vec::new(), Vec::new());
    if list(spec, "/containers").is_empty() {
        errors.push(required(&path.field("containers")));
    }
    for field in ["containers", "initContainers"] {
        let list_path = path.field(field);
        for (index, container) in list(spec, &format!("/{field}")).iter().enumerate() {
            let path = list_path.index(index);
            errors.extend(rules(container, volumes, &path));
            let name = text(container, "/name");
            if seen.contains(&name) {
                errors.push(FieldError::new(ErrorKind::Duplicate, &path.field("name"), name, ""));
            }
            seen.push(name);
            if field == "initContainers" {
                errors.extend(init_rules(container, &path));
            }
        }
    }
    errors
}

fn required(path: &Path<'_>) -> FieldError {
    FieldError::bare(ErrorKind::Required, path, "")
}

fn invalid(path: &Path<'_>, value: impl Into<Value>, detail: impl Into<String>) -> FieldError {
    FieldError::new(ErrorKind::Invalid, path, value, detail)
}

fn rules(container: &Value, volumes: &[&str], path: &Path<'_>) -> Vec<FieldError> {
    const MESSAGES: &[&str] = &["File", "FallbackToLogsOnError"];
    const PULLS: &[&str] = &["Always", "IfNotPresent", "Never"];
    let mut errors = Vec::new();
    let name = text(container, "/name");
    if name.is_empty() {
        errors.push(required(&path.field("name")));
    } else {
        let problems = names::label(name).into_iter();
        errors.extend(problems.map(|problem| invalid(&path.field("name"), name, problem)));
    }
    if text(container, "/image").is_empty() {
        errors.push(required(&path.field("image")));
    }
    errors.extend(choice_rule(container, "terminationMessagePolicy", MESSAGES, path));
    errors.extend(port_rules(container, &path.field("ports")));
    errors.extend(variable_rules(container, &path.field("env")));
    errors.extend(mount_rules(container, volumes, &path.field("volumeMounts")));
    errors.extend(choice_rule(container, "imagePullPolicy", PULLS, path));
    errors
}

fn choice_rule(container: &Value, name: &str, allowed: &[&str], path: &Path<'_>) -> Option<FieldError> {
    let said = member(container, name).and_then(Value::as_str).unwrap_or_default();
    if said.is_empty() {
        return Some(required(&path.field(name)));
    }
    (!allowed.contains(&said)).then(|| unsupported(&path.field(name), said, allowed))
}

fn port_rules(container: &Value, path: &Path<'_>) -> Vec<FieldError> {
    const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
    let (mut errors, mut seen): (Vec<FieldError>, Vec<&str>) = (Vec::new(), Vec::new());
    let in_range = |port: i64| (1..=65535).contains(&port);
    let range = "must be between 1 and 65535, inclusive";
    for (index, port) in list(container, "/ports").iter().enumerate() {
        let path = path.index(index);
        let name = text(port, "/name");
        if !name.is_empty() {
            let problems = names::port(name);
            if problems.is_empty() && seen.contains(&name) {
                errors.push(FieldError::new(ErrorKind::Duplicate, &path.field("name"), name, ""));
            }
            errors.extend(problems.into_iter().map(|problem| invalid(&path.field("name"), name, problem)));
            seen.push(name);
        }
        match number(port, "/containerPort").unwrap_or_default() {
            0 => errors.push(required(&path.field("containerPort"))),
            number if !in_range(number) => errors.push(invalid(&path.field("containerPort"), number, range)),
            _ => {}
        }
        if let Some(host) = number(port, "/hostPort").filter(|host| *host != 0 && !in_range(*host)) {
            errors.push(invalid(&path.field("hostPort"), host, range));
        }
        errors.extend(choice_rule(port, "protocol", PROTOCOLS, &path));
    }
    errors
}

fn variable_rules(container: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, variable) in list(container, "/env").iter().enumerate() {
        let path = path.index(index);
        let name = text(variable, "/name");
        let is_plain = |letter: char| letter.is_ascii_graphic() && letter != '=' || letter == ' ';
        if name.is_empty() {
            errors.push(required(&path.field("name")));
        } else if !name.chars().all(is_plain) {
            let rule =
                "a valid environment variable name must consist only of printable ASCII characters other than '='";
            errors.push(invalid(&path.field("name"), name, rule));
        }
        errors.extend(source_rule(variable, &path.field("valueFrom")));
    }
    errors
}

fn source_rule(variable: &Value, path: &Path<'_>) -> Option<FieldError> {
    const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let from = member(variable, "valueFrom")?;
    let count = SOURCES.iter().filter(|name| member(from, name).is_some()).count();
    let detail = match count {
        0 => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        _ if !text(variable, "/value").is_empty() => "may not be specified when `value` is not empty",
        1 => return None,
        _ => "may not have more than one field specified at a time",
    };
    Some(invalid(path, "", detail))
}

fn mount_rules(container: &Value, volumes: &[&str], path: &Path<'_>) -> Vec<FieldError> {
    let (mut errors, mut seen) = (Vec::new(), Vec::new());
    for (index, mount) in list(container, "/volumeMounts").iter().enumerate() {
        let path = path.index(index);
        let (name, place) = (text(mount, "/name"), text(mount, "/mountPath"));
        if name.is_empty() {
            errors.push(required(&path.field("name")));
        }
        if !volumes.contains(&name) {
            errors.push(FieldError::new(ErrorKind::NotFound, &path.field("name"), name, ""));
        }
        if place.is_empty() {
            errors.push(required(&path.field("mountPath")));
        }
        if seen.contains(&place) {
            errors.push(invalid(&path.field("mountPath"), place, "must be unique"));
        }
        seen.push(place);
    }
    errors
}

/// What containers that end before the others begin may not have.
fn init_rules(container: &Value, path: &Path<'_>) -> Vec<FieldError> {
    if text(container, "/restartPolicy") == "Always" {
        return Vec::new();
    }
    let detail = "may not be set for init containers without restartPolicy=Always";
    let forbidden = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"].into_iter();
    let set = forbidden.filter(|name| member(container, name).is_some());
    set.map(|name| FieldError::bare(ErrorKind::Forbidden, &path.field(name), detail)).collect()
}
