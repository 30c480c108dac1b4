//! Events, in both groups that they are served in.

use serde_json::{Value, json};

use super::look::{alike, at, member, text};
use crate::{
    field::{ErrorKind, FieldError, Path},
    metadata::{self, names},
};

/// Events always have all their times and who reports them, said or not.
pub(super) fn defaults(event: &mut Value) {
    let is_new = text(event, "/apiVersion").starts_with("events.k8s.io/");
    let Some(members) = event.as_object_mut() else { return };
    let always: &[(&str, Value)] = if is_new {
        &[
            ("deprecatedFirstTimestamp", Value::Null),
            ("deprecatedLastTimestamp", Value::Null),
            ("deprecatedSource", json!({})),
            ("eventTime", Value::Null),
            ("regarding", json!({})),
        ]
    } else {
        &[
            ("eventTime", Value::Null),
            ("firstTimestamp", Value::Null),
            ("involvedObject", json!({})),
            ("lastTimestamp", Value::Null),
            ("reportingComponent", json!("")),
            ("reportingInstance", json!("")),
            ("source", json!({})),
        ]
    };
    for (name, value) in always {
        members.entry(*name).or_insert_with(|| value.clone());
    }
}

/// The names of what both groups say, in the words of one.
struct Words {
    object: &'static str,
    message: &'static str,
    reporter: &'static str,
    count: &'static str,
    first: &'static str,
    last: &'static str,
    source: &'static str,
}

const OLD: Words = Words {
    object: "involvedObject",
    message: "message",
    reporter: "reportingComponent",
    count: "count",
    first: "firstTimestamp",
    last: "lastTimestamp",
    source: "source",
};

const NEW: Words = Words {
    object: "regarding",
    message: "note",
    reporter: "reportingController",
    count: "deprecatedCount",
    first: "deprecatedFirstTimestamp",
    last: "deprecatedLastTimestamp",
    source: "deprecatedSource",
};

fn words(group: &str) -> &'static Words {
    if group.is_empty() { &OLD } else { &NEW }
}

fn said<'a>(event: &'a Value, name: &str) -> &'a str {
    member(event, name).and_then(Value::as_str).unwrap_or_default()
}

/// What an event says, if it says more than nothing.
fn set<'a>(event: &'a Value, name: &str) -> Option<&'a Value> {
    member(event, name).filter(|value| *value != "" && *value != 0)
}

fn invalid(path: &Path<'_>, value: &str, detail: impl Into<String>) -> FieldError {
    FieldError::new(ErrorKind::Invalid, path, value, detail)
}

fn required(name: &str) -> FieldError {
    FieldError::bare(ErrorKind::Required, &Path::Root.field(name), "")
}

/// What is wrong with an event. Those of the newer group have to be complete.
pub(super) fn rules(group: &str, event: &Value, is_created: bool) -> Vec<FieldError> {
    let words = words(group);
    let mut errors =
        if member(event, "eventTime").is_none() { old_namespace_rule(words, event) } else { timed_rules(words, event) };
    let namespace = metadata::text(event, "namespace");
    let path = Path::Root.field("namespace");
    errors.extend(names::subdomain(namespace).into_iter().map(|problem| invalid(&path, namespace, problem)));
    if !group.is_empty() && is_created {
        errors.extend(complete_rules(words, event));
    }
    errors
}

fn old_namespace_rule(words: &Words, event: &Value) -> Vec<FieldError> {
    let about = member(event, words.object).map(|object| text(object, "/namespace")).unwrap_or_default();
    let within = metadata::text(event, "namespace");
    let fits = if about.is_empty() { matches!(within, "" | "default") } else { about == within };
    if fits { Vec::new() } else { vec![namespace_mismatch(about)] }
}

fn namespace_mismatch(about: &str) -> FieldError {
    let object = Path::Root.field("involvedObject");
    invalid(&object.field("namespace"), about, "does not match event.namespace")
}

fn timed_rules(words: &Words, event: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let about = member(event, words.object).map(|object| text(object, "/namespace")).unwrap_or_default();
    if about.is_empty() && !matches!(metadata::text(event, "namespace"), "default" | "kube-system") {
        errors.push(namespace_mismatch(about));
    }
    let reporter = said(event, words.reporter);
    if reporter.is_empty() {
        errors.push(required(words.reporter));
    }
    let path = Path::Root.field(words.reporter);
    errors.extend(names::qualified(reporter).into_iter().map(|problem| invalid(&path, reporter, problem)));
    for name in ["reportingInstance", "action", "reason"] {
        let value = said(event, name);
        if value.is_empty() {
            errors.push(required(name));
        }
        errors.extend(length_rule(name, value, 128));
    }
    errors.extend(length_rule("message", said(event, words.message), 1024));
    errors
}

fn length_rule(name: &str, value: &str, limit: usize) -> Option<FieldError> {
    let detail = || format!("can have at most {limit} characters");
    (value.len() > limit).then(|| invalid(&Path::Root.field(name), "", detail()))
}

fn complete_rules(words: &Words, event: &Value) -> Vec<FieldError> {
    let mut errors = series_rules(event);
    if member(event, "eventTime").is_none() {
        errors.push(required("eventTime"));
    }
    let type_ = said(event, "type");
    if !matches!(type_, "Normal" | "Warning") {
        errors.push(invalid(&Path::Root.field("type"), "", format!("has invalid value: {type_}")));
    }
    let counted = member(event, words.count).is_some_and(|count| count.as_i64() != Some(0));
    let sourced = member(event, words.source).is_some_and(|source| !alike(Some(source), None));
    let unset = [
        ("firstTimestamp", member(event, words.first).is_some()),
        ("lastTimestamp", member(event, words.last).is_some()),
        ("count", counted),
        ("source", sourced),
    ];
    let set = unset.into_iter().filter(|(_, is_set)| *is_set);
    errors.extend(set.map(|(name, _)| invalid(&Path::Root.field(name), "", "needs to be unset")));
    errors
}

fn series_rules(event: &Value) -> Vec<FieldError> {
    let Some(series) = member(event, "series") else { return Vec::new() };
    let mut errors = Vec::new();
    if at(series, "/count").and_then(Value::as_i64).unwrap_or_default() < 2 {
        errors.push(invalid(&Path::Root.field("series.count"), "", "should be at least 2"));
    }
    if at(series, "/lastObservedTime").is_none() {
        errors.push(required("series.lastObservedTime"));
    }
    errors
}

/// What a change may not do to an event of the newer group: only its series goes on.
pub(super) fn update_rules(group: &str, new: &Value, old: &Value) -> Vec<FieldError> {
    if group.is_empty() {
        return Vec::new();
    }
    let words = words(group);
    let mut errors = metadata::update_rules(new, old);
    if !alike(member(new, "series"), member(old, "series")) {
        errors.extend(series_rules(new));
    }
    let fixed = [
        (words.object, "involvedObject"),
        ("reason", "reason"),
        (words.message, "message"),
        (words.source, "source"),
        (words.first, "firstTimestamp"),
        (words.last, "lastTimestamp"),
        (words.count, "count"),
        ("reason", "reason"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        (words.reporter, "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ];
    for (name, name_in_errors) in fixed {
        let (new, old) = (set(new, name), set(old, name));
        if !alike(new, old) {
            let nothing = if name == words.count { json!(0) } else { json!("") };
            let value = new.cloned().unwrap_or(nothing);
            let path = Path::Root.field(name_in_errors);
            errors.push(FieldError::new(ErrorKind::Invalid, &path, value, "field is immutable"));
        }
    }
    errors
}
