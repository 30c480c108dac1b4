//! How the kinds that run pods go from one template to the next.

use serde_json::{Value, json};

use super::super::{
    look::{member, number, text},
    rbac::unsupported,
};
use crate::{
    field::{ErrorKind, FieldError, Path},
    metadata::names,
};

/// What is wrong with how a Deployment goes on.
pub(super) fn deployment_rules(spec: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let none = json!({});
    let strategy = member(spec, "strategy").unwrap_or(&none);
    let rolling_path = path.field("rollingUpdate");
    match (text(strategy, "/type"), member(strategy, "rollingUpdate")) {
        ("Recreate", None) => Vec::new(),
        ("Recreate", Some(_)) => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            vec![FieldError::bare(ErrorKind::Forbidden, &rolling_path, detail)]
        }
        ("RollingUpdate", None) => {
            let detail = "this should be defaulted and never be nil";
            vec![FieldError::bare(ErrorKind::Required, &rolling_path, detail)]
        }
        ("RollingUpdate", Some(rolling)) => {
            let mut errors = amount_rules(rolling, "maxUnavailable", &rolling_path);
            errors.extend(amount_rules(rolling, "maxSurge", &rolling_path));
            if amount(rolling, "maxUnavailable") == 0 && amount(rolling, "maxSurge") == 0 {
                let value = rolling.get("maxUnavailable").cloned().unwrap_or_default();
                let path = rolling_path.field("maxUnavailable");
                errors.push(FieldError::new(ErrorKind::Invalid, &path, value, "may not be 0 when `maxSurge` is 0"));
            }
            errors.extend(percent_rule(rolling, "maxUnavailable", &rolling_path));
            errors
        }
        _ => vec![unsupported(path, strategy.clone(), &["Recreate", "RollingUpdate"])],
    }
}

/// What is wrong with how a DaemonSet goes on.
pub(super) fn daemon_set_rules(spec: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let none = json!({});
    let strategy = member(spec, "updateStrategy").unwrap_or(&none);
    let rolling_path = path.field("rollingUpdate");
    match (text(strategy, "/type"), member(strategy, "rollingUpdate")) {
        ("OnDelete", _) => Vec::new(),
        ("RollingUpdate", None) => vec![FieldError::bare(ErrorKind::Required, &rolling_path, "")],
        ("RollingUpdate", Some(rolling)) => {
            let mut errors = amount_rules(rolling, "maxUnavailable", &rolling_path);
            errors.extend(amount_rules(rolling, "maxSurge", &rolling_path));
            errors.extend(percent_rule(rolling, "maxUnavailable", &rolling_path));
            errors.extend(percent_rule(rolling, "maxSurge", &rolling_path));
            match (amount(rolling, "maxUnavailable") != 0, amount(rolling, "maxSurge") != 0) {
                (true, true) => {
                    let value = rolling.get("maxSurge").cloned().unwrap_or_default();
                    let detail = "may not be set when maxUnavailable is non-zero";
                    errors.push(FieldError::new(ErrorKind::Invalid, &rolling_path.field("maxSurge"), value, detail));
                }
                (false, false) => {
                    let path = rolling_path.field("maxUnavailable");
                    errors.push(FieldError::bare(ErrorKind::Required, &path, "cannot be 0 when maxSurge is 0"));
                }
                _ => {}
            }
            errors
        }
        _ => vec![unsupported(path, strategy.clone(), &["RollingUpdate", "OnDelete"])],
    }
}

/// What is wrong with how a StatefulSet makes its pods and goes on.
pub(super) fn stateful_set_rules(spec: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match text(spec, "/podManagementPolicy") {
        "" => errors.push(FieldError::bare(ErrorKind::Required, &path.field("podManagementPolicy"), "")),
        "OrderedReady" | "Parallel" => {}
        other => {
            let path = path.field("podManagementPolicy");
            errors.push(FieldError::new(ErrorKind::Invalid, &path, other, "must be 'OrderedReady' or 'Parallel'"));
        }
    }
    let none = json!({});
    let strategy = member(spec, "updateStrategy").unwrap_or(&none);
    let path = path.field("updateStrategy");
    let rolling_path = path.field("rollingUpdate");
    match (text(strategy, "/type"), member(strategy, "rollingUpdate")) {
        ("", _) => errors.push(FieldError::bare(ErrorKind::Required, &path, "")),
        ("OnDelete", Some(rolling)) => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(FieldError::new(ErrorKind::Invalid, &rolling_path, rolling.clone(), detail));
        }
        ("RollingUpdate", Some(rolling)) => {
            if let Some(partition) = number(rolling, "/partition").filter(|partition| *partition < 0) {
                errors.push(negative(&rolling_path.field("partition"), partition));
            }
        }
        ("OnDelete" | "RollingUpdate", None) => {}
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(FieldError::new(ErrorKind::Invalid, &path, strategy.clone(), detail));
        }
    }
    errors
}

fn negative(path: &Path<'_>, value: i64) -> FieldError {
    FieldError::new(ErrorKind::Invalid, path, value, "must be greater than or equal to 0")
}

/// A number of pods, or a share of them.
fn amount_rules(rolling: &Value, name: &str, path: &Path<'_>) -> Vec<FieldError> {
    let path = path.field(name);
    match rolling.get(name) {
        Some(Value::String(share)) if percent(share).is_none() => {
            let rule = "a valid percent string must be a numeric string followed by an ending '%'";
            let detail = names::mismatch(rule, "[0-9]+%", &["1%", "93%"]);
            vec![FieldError::new(ErrorKind::Invalid, &path, share.as_str(), detail)]
        }
        Some(Value::Number(number)) => {
            let negative_number = number.as_i64().filter(|number| *number < 0);
            negative_number.map(|number| negative(&path, number)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn percent(share: &str) -> Option<u64> {
    let digits = share.strip_suffix('%')?;
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn amount(rolling: &Value, name: &str) -> u64 {
    match rolling.get(name) {
        Some(Value::String(share)) => percent(share).unwrap_or_default(),
        Some(number) => number.as_i64().map(i64::unsigned_abs).unwrap_or_default(),
        None => 0,
    }
}

fn percent_rule(rolling: &Value, name: &str, path: &Path<'_>) -> Option<FieldError> {
    let share = rolling.get(name)?.as_str()?;
    let path = path.field(name);
    let too_much = percent(share).is_some_and(|percent| percent > 100);
    too_much.then(|| FieldError::new(ErrorKind::Invalid, &path, share, "must not be greater than 100%"))
}
