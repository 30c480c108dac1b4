//! Taking from an answer what no two runs have in common.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

/// Parts of texts that differ from run to run, and what stands for each.
static PASSING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let pattern = |pattern| Regex::new(pattern).expect("a valid pattern");
    vec![
        (pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
        (pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
        (pattern(r"too old resource version: \d+ \(\d+\)"), "too old resource version: <version>"),
        (pattern(r"Too large resource version: \d+, current: \d+"), "Too large resource version: <version>"),
        (pattern(r"ResourceVersion: \d+"), "ResourceVersion: <version>"),
        (pattern(r"ResourceVersion in the precondition \(\d+\)"), "ResourceVersion in the precondition (<version>)"),
        (pattern(r"ResourceVersion in object meta: \d+"), "ResourceVersion in object meta: <version>"),
        (pattern(r"ResourceVersion in record \(\d+\)"), "ResourceVersion in record (<version>)"),
        // Where the program has the table of its kinds depends on how it was built.
        (pattern(r#"in scheme "[^"]+""#), "in scheme"),
        (pattern(r"selfType\d+"), "selfType"),
        (pattern(r"^(\d+[dhms])+$"), "<age>"),
        (pattern(r"^(testenv-)?admin$"), "<administrator>"),
        (pattern(r"X509SHA256=[0-9a-f]{64}"), "<credential>"),
    ]
});

pub(super) fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => redact_fields(fields),
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::String(text) => *text = redacted(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn redacted(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, instead) in PASSING.iter() {
        text = pattern.replace_all(&text, *instead).into_owned();
    }
    text
}

fn redact_fields(fields: &mut Map<String, Value>) {
    // Who owns a reference to an owner has its uid as a key.
    *fields = std::mem::take(fields).into_iter().map(|(key, value)| (redacted(&key), value)).collect();
    if let Some(prefix) = fields.get("generateName").and_then(Value::as_str).map(str::to_owned) {
        let suffix = fields.get("name").and_then(Value::as_str).and_then(|name| name.strip_prefix(&prefix));
        let length = suffix.map(str::len);
        fields.insert("name".to_owned(), format!("{prefix}<{length:?} characters>").into());
    }
    // Entries of one second are in another order than those of two.
    if let Some(entries) = fields.get_mut("managedFields").and_then(Value::as_array_mut) {
        entries.sort_by_key(|entry| {
            ["operation", "manager", "subresource", "apiVersion"].map(|name| entry[name].to_string())
        });
    }
    // Custom kinds are listed as chance has it.
    if let Some(resources) = fields.get_mut("resources").and_then(Value::as_array_mut) {
        resources.sort_by_key(|resource| ["name", "resource"].map(|name| resource[name].to_string()));
    }
    // Who is told first of several who own a field is up to chance.
    if let Some(causes) = fields.get_mut("causes").and_then(Value::as_array_mut)
        && causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict")
    {
        causes.sort_by_key(|cause| ["message", "field"].map(|name| cause[name].to_string()));
    }
    sort_flaws_of_definition(fields);
    for (key, value) in fields {
        match (key.as_str(), &*value) {
            ("resourceVersion", Value::String(text)) if !text.is_empty() && text != "0" => *value = "<version>".into(),
            ("continue", Value::String(text)) if !text.is_empty() => *value = "<token>".into(),
            ("token", Value::String(_)) => *value = "<token>".into(),
            ("serverAddress", Value::String(_)) => *value = "<address>".into(),
            // PEM in base64.
            ("certificate", Value::String(text)) if text.starts_with("LS0tLS1CRUdJTi") => {
                *value = "<certificate>".into();
            }
            _ => redact(value),
        }
    }
}

/// Puts what is wrong with a definition in order: Kubernetes walks over the properties of a schema as chance has it. The message repeats the list.
fn sort_flaws_of_definition(status: &mut Map<String, Value>) {
    let Some(details) = status.get("details").filter(|details| details["kind"] == "CustomResourceDefinition") else {
        return;
    };
    let Some(causes) = details["causes"].as_array().filter(|causes| causes.len() > 1) else { return };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let listed = |causes: &[Value]| {
        let flaws = causes.iter().map(|cause| format!("{}: {}", text(&cause["field"]), text(&cause["message"])));
        format!("[{}]", flaws.collect::<Vec<_>>().join(", "))
    };
    let mut sorted = causes.clone();
    sorted.sort_by_key(|cause| ["field", "message"].map(|name| text(&cause[name])));
    let message = text(&status["message"]).replace(&listed(causes), &listed(&sorted));
    status.insert("message".to_owned(), message.into());
    status["details"]["causes"] = sorted.into();
}
